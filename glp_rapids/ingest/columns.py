"""Which columns of a table hold edges: those that a caller names, or a pair of usual names."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from glp_rapids.common.checks import shown

if TYPE_CHECKING:
    from glp_rapids.ingest.edges import Options

ARGUMENTS = ("source", "destination", "weight")
# The first is the default; the others are looked for where a table has neither of its columns.
NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?")
PAIRS = (("src", "dst"), ("source", "destination"), ("source", "target"), ("from", "to"))


class Columns(NamedTuple):
    """Which columns of a frame hold what; ``weights``: one or none."""

    sources: list[Any]
    destinations: list[Any]
    weights: list[Any]

    @property
    def names(self) -> list[Any]:
        """All of them, each once: the ends of ids of several columns may share some."""
        return list(dict.fromkeys(name for names in self for name in names))


class UnknownColumns(ValueError):
    """The columns of the ends are not there, or nobody says which they are."""


def column_names(there: list[Any], options: Options) -> Columns:
    """Name the source, destination and weight columns, all of which are there."""
    sources, destinations = ends_of(there, options.source, options.destination)
    if len(sources) != len(destinations):
        raise ValueError(
            f"source names {len(sources)} column(s) and destination {len(destinations)}: "
            f"{sources} and {destinations}; a vertex id has as many columns on both ends"
        )
    weights = [] if options.weight is None else names_of(options.weight, "weight", there)
    columns = Columns(sources, destinations, weights)
    known = set(there)
    for argument, names in zip(ARGUMENTS, columns, strict=True):
        for name in names:
            if name not in known:
                given = getattr(options, argument)
                raise UnknownColumns(
                    f"{argument}={name if given is None else given!r}: the frame has no column "
                    f"{name!r}; its columns are {there}; name yours by {argument}="
                )
    refuse_repeated(there, columns)
    if len(weights) > 1:
        raise ValueError(f"weight must be one column, not {weights}")
    return columns


def refuse_repeated(there: list[Any], columns: Columns) -> None:
    """Raise if one of the names is that of several columns, or both ends are of the same."""
    number_of = Counter(there)
    for argument, names in zip(ARGUMENTS, columns, strict=True):
        for name in names:
            if number_of[name] > 1:
                raise ValueError(f"{argument}: the frame has several columns named {name!r}")
    if columns.sources == columns.destinations:
        shown_names = ", ".join(map(repr, columns.sources))
        raise ValueError(
            f"source and destination both name {shown_names}, by which every edge would be a loop; "
            "name two columns"
        )


def ends_of(there: list[Any], source: Any, destination: Any) -> tuple[list[Any], list[Any]]:
    """Return the columns of the two ends as a caller names them, there or not.

    Where the caller names neither, they are those of a pair of usual names.
    """
    if source is None and destination is None:
        source, destination = _usual_pair(there)
    given = zip((source, destination), PAIRS[0], ARGUMENTS[:2], strict=True)
    sources, destinations = (
        names_of(default if names is None else names, argument, there)
        for names, default, argument in given
    )
    return sources, destinations


def _usual_pair(there: list[Any]) -> tuple[str, str]:
    """Find the one pair of usual names that is there."""
    default, *others = PAIRS
    if not set(default).isdisjoint(there):
        return default
    found = [pair for pair in others if set(pair) <= set(there)]
    if len(found) == 1:
        return found[0]
    mend = f"its columns are {there}; say which are source and destination"
    separators = [one for one in ";|\t, " if len(there) == 1 and one in str(there[0]).strip()]
    if separators and not str(there[0]).startswith("#"):
        how = f"pandas.read_csv(..., sep={separators[0]!r})"
        mend = f"its only column is {there[0]!r}; if that is several, pass the frame of {how}"
    if _is_no_header(there):
        what = "that is no line of names"
        if str(there[0]).startswith(("#", "%")):
            what = "names come after that line, take it out; if edges do"
        mend += (
            f", or, if {what}, read the file with --no-header (of the command line; as a frame: "
            "pandas.read_csv(..., header=None, names=['src', 'dst']))"
        )
    if found:
        raise UnknownColumns(
            f"source, destination: the frame has the columns {_listed(found, ' and also ')}, and "
            f"not {_listed([default])}; {mend}"
        )
    raise UnknownColumns(
        f"source, destination: the frame has no columns {_listed([default])}, nor "
        f"{_listed(others)}; {mend}"
    )


def _is_no_header(there: list[Any]) -> bool:
    """Tell whether names look like an edge or a comment: the file may have no line of names."""
    texts = [name for name in there if isinstance(name, str)]
    if len(texts) < len(there) or not texts:
        return False
    return texts[0].startswith(("#", "%")) or all(map(NUMBER.fullmatch, texts))


def _listed(pairs: list[tuple[str, str]], between: str = " or ") -> str:
    return between.join(f"{source!r} and {end!r}" for source, end in pairs)


def names_of(names: Any, argument: str, there: Sequence[Any] = ()) -> list[Any]:
    """Return the columns that an argument names, one or a list of them.

    ``there``: those of the frame, where a tuple may be the name of one.
    """
    several = isinstance(names, list | tuple)
    if isinstance(names, tuple) and are_hashable(names) and names in set(there):
        return [names]
    if several and not names:
        raise ValueError(f"{argument} must name at least one column")
    if not (are_hashable(names) if several else isinstance(names, str | int | np.integer)):
        raise TypeError(
            f"{argument} must be a column name or a list of them, not {shown(names)}; arrays go in "
            "as the graph: (src, dst, weight)"
        )
    return list(names) if several else [names]


def are_hashable(names: list[Any] | tuple[Any, ...]) -> bool:
    """Tell whether all of them can be names."""
    try:
        return hash(tuple(names)) is not None
    except TypeError:
        return False
