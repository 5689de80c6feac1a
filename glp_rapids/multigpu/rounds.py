"""Ranks that one thread leads, in rounds: what each leaves for the others they find in the next.

For GPUs of one process that are only told what to do, one launch after the other: the thread does a
round of each in turn, waits for none, and the GPUs order themselves by events. Threads of their own
would have to meet after every class of a sweep, which takes longer than the launches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any


class Rounds:
    """What ranks leave for one another; every rank leaves something in a round, or none does."""

    def __init__(self, ranks: int):
        # Two sets in turn: the first rank leaves something again before the last one has looked.
        self._left: tuple[list[Any], list[Any]] = ([None] * ranks, [None] * ranks)

    def leave(self, number: int, rank: int, value: Any) -> None:
        """Leave a value in a round, which then ends for this rank."""
        self._left[number & 1][rank] = value

    def left(self, number: int) -> list[Any]:
        """Return what all ranks left in a round, the last one that is over."""
        return self._left[number & 1]


Scope = Callable[[int], AbstractContextManager[Any]]


def in_rounds(works: Sequence[Iterator[str]], scopes: Mapping[str, Scope], first: str) -> None:
    """Do what ranks have to do, each up to its next ``yield`` in turn, until all are through.

    A rank yields the name of the scope in which it goes on; all begin in the one named ``first``.
    """
    going = dict.fromkeys(range(len(works)), first)
    while going:
        for rank, name in list(going.items()):
            with scopes[name](rank):
                try:
                    going[rank] = next(works[rank])
                except StopIteration:
                    del going[rank]
