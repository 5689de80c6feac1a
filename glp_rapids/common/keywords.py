"""Keywords that a public function takes, those that it passes on included."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Iterable
from typing import NamedTuple

from glp_rapids.common.checks import meant_by

COLUMNS = "source", "destination", "weight"  # keywords of `as_graph`
# What other functions have that one may have looked for here.
ELSEWHERE = {"resolution": "multilevel_label_propagation", "gammas": "layered_label_propagation"}
ALIKE = 0.75  # to 1: a keyword that is so much like another is that one, misspelt


class _Keywords(NamedTuple):
    """What a function takes by name, what it passes on included; ``alone``: it knows all of it.

    ``placed``: what it takes by place, too; ``shown``: what can be left out.
    """

    names: frozenset[str]
    placed: tuple[str, ...]
    shown: tuple[str, ...]
    alone: bool


@functools.cache
def _keywords(function: Callable) -> _Keywords:
    parameters = inspect.signature(function).parameters.values()
    several = inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD
    own = {one.name for one in parameters if one.kind not in several}
    shown = {one.name for one in parameters if one.default is not one.empty}
    passed = next((str(one.annotation) for one in parameters if one.kind is one.VAR_KEYWORD), "")
    options = re.fullmatch(r"Unpack\[(\w+)\]", passed)
    named = set(function.__globals__[options[1]].__annotations__) if options else set()
    # who has options of a run checks them itself, as some have no meaning for some functions
    alone = not passed or passed.endswith("EdgeOptions]")
    placed = tuple(one.name for one in parameters if one.kind is one.POSITIONAL_OR_KEYWORD)
    return _Keywords(frozenset(own | named), placed, tuple(sorted(shown | named)), alone)


def refuse_unknown(function: Callable, given: Iterable[str], placed: int) -> None:
    """Raise if a keyword is none of a function, surely misspelt, or one of ``placed`` arguments."""
    known = _keywords(function)
    for name in known.placed[:placed]:
        if name in given:
            mend = "; if it is to name a column, read the edges by as_graph before"
            raise TypeError(
                f"{name} of {function.__name__} is given twice, by place and by name"
                f"{mend if name in COLUMNS else ''}"
            )
    for name in sorted(set(given) - known.names):
        meant = meant_by(name, sorted(known.names), ALIKE)
        if name in ELSEWHERE and function.__name__ != ELSEWHERE[name]:
            raise TypeError(
                f"unknown option {name!r} of {function.__name__}; {ELSEWHERE[name]} has it"
            )
        if meant is None and not known.alone:
            continue
        mend = f"did you mean {meant}?" if meant else f"there are {', '.join(known.shown)}"
        raise TypeError(f"unknown option {name!r} of {function.__name__}; {mend}")
