"""Checks of single arguments that many public functions share: one mistake, one text."""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

_WORKED_WITH = "such values cannot be worked with; cast them to integers or strings"


def shown(value: Any) -> str:
    """Write a value for a message: at most 80 characters, whatever it is."""
    try:
        return f"{value!r:.80}"
    except Exception as error:  # whatever a repr of the caller's own, or of 5,000 digits, raises
        return f"a {type(value).__name__} ({error!s:.80})"


def is_integer(value: Any) -> bool:
    """Tell whether a value is an integer of Python or NumPy; bools and timedelta64 are not."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool | np.timedelta64)


def is_number(value: Any) -> bool:
    """Tell whether a value is a real number of Python or NumPy; bools are not."""
    return is_integer(value) or isinstance(value, float | np.floating)


def is_sequence(value: Any) -> bool:
    """Tell whether a value is iterable, but no string and no array without dimensions."""
    return (
        hasattr(value, "__iter__")
        and not isinstance(value, str | bytes)
        and getattr(value, "ndim", 1) > 0
    )


def as_float(value: Any) -> float:
    """Convert a number to float; one beyond all floats is infinite."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def check_integer(
    name: str, value: Any, least: int, why: str = "", *, most: int | None = None, or_none: str = ""
) -> None:
    """Raise unless a value is an integer from ``least``, and up to ``most`` if that is given."""
    if not is_integer(value):
        raise TypeError(f"{name} must be an integer{or_none}, not {shown(value)}")
    if value < least or (most is not None and value > most):
        span = f"at least {least}{why}" if most is None else f"in {least}..{most}"
        raise ValueError(f"{name} must be {span}, not {shown(value)}")


def check_share(
    name: str, value: Any, words: str = "a number in [0, 1]", *, zero: bool = True
) -> None:
    """Raise unless a value is a number from 0 (``zero=False``: above 0) to 1."""
    if not is_number(value) or not 0 <= value <= 1 or not (zero or value > 0):
        raise ValueError(f"{name} must be {words}, not {shown(value)}")


def check_truth(**values: Any) -> None:
    """Raise unless all values are True or False."""
    for name, value in values.items():
        if not isinstance(value, bool | np.bool_):
            raise TypeError(f"{name} must be True or False, not {shown(value)}")


def check_choice(name: str, value: Any, choices: Iterable[str], words: str = "") -> None:
    """Raise unless a value is one of some strings; ``words`` names them in the message."""
    choices = tuple(choices)
    # a text first: an array of them would be compared one by one
    if not isinstance(value, str) or value not in choices:
        words = words or f"one of {', '.join(map(repr, choices))}"
        raise ValueError(f"{name} must be {words}, not {shown(value)}")


def meant_by(name: str, known: Iterable[str], alike: float = 0.6) -> str | None:
    """Return the known name that one is most like, if any; ``alike``: how much at least, to 1."""
    return _most_like(name, tuple(known), alike)


@functools.lru_cache(1024)  # every run compares the names of its program
def _most_like(name: str, known: tuple[str, ...], alike: float) -> str | None:
    import difflib

    return next(iter(difflib.get_close_matches(name, known, n=1, cutoff=alike)), None)


def refuse_unknown(given: Iterable[str], known: Iterable[str]) -> None:
    """Raise if one of the keywords that were given is not known."""
    known = sorted(known)
    if unknown := sorted(set(given) - set(known)):
        meant = meant_by(unknown[0], known)
        hint = f"; did you mean {meant}?" if meant else ""
        there = f"there are {', '.join(known)}" if known else "there is none"
        raise TypeError(f"unknown option {unknown[0]!r}; {there}{hint}")


def check_progress(progress: Any) -> None:
    """Raise unless ``progress`` is a bool or a function."""
    if not isinstance(progress, bool) and not callable(progress):
        raise TypeError(f"progress must be a bool or a function, not {shown(progress)}")


@contextlib.contextmanager
def errors_named(name: str) -> Iterator[None]:
    """Name an argument in the error of a library that cannot work with it."""
    try:
        yield
    except (TypeError, ValueError, ArithmeticError, LookupError, NotImplementedError) as error:
        if isinstance(error, TypeError | ValueError) and str(error).startswith(name):
            raise
        kind = ValueError if isinstance(error, ValueError) else TypeError
        raise kind(f"{name}: {_WORKED_WITH} ({type(error).__name__}: {error!s:.200})") from error
