"""A property that is computed once an object, and kept on it.

Python 3.11's own holds one lock for all objects of a class while it computes: threads wait for each
other, and in a process forked meanwhile whoever asks next waits for ever. Here two threads that ask
at once may both compute, as in Python 3.12.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, Self, TypeVar, overload

T = TypeVar("T")


class cached_property(Generic[T]):
    """A method without arguments whose result takes its place on the object."""

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self._compute, self._name = compute, compute.__name__
        self.__doc__ = compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, holder: None, owner: type) -> Self: ...
    @overload
    def __get__(self, holder: object, owner: type) -> T: ...
    def __get__(self, holder: object | None, owner: type) -> Self | T:
        if holder is None:
            return self
        return vars(holder).setdefault(self._name, self._compute(holder))
