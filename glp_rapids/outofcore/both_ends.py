"""Rows that a GPU and the host's cores share: one takes from the front, the others from the rear.

The GPU takes pieces, in the order in which they are copied to it. The host's threads take units of
some ten thousand entries from behind, each by itself, so neither waits for the other before they
meet (Kozawa et al., CIKM 2017, share by such a queue). One word holds both ends: how many units
the host has taken, and how many the GPU leaves to it; it is changed by compare and swap alone.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from glp_rapids.jit.cache import kept
from glp_rapids.jit.compare_and_swap import compare_and_swap
from glp_rapids.jit.cpu import compiled as compiled_for_cpu

UNIT = 1 << 14  # entries, or one row: a thread is done with them in less than a tenth of a ms
HALF = 32  # bits


@compiled_for_cpu(error_model="numpy")
def take_from_rear(word):
    """Take a unit for the host; return its number, or -1: there is none."""
    while True:
        before = word[0]
        taken = before & ((1 << HALF) - 1)
        if taken >= before >> HALF:
            return -1
        if compare_and_swap(word, before, before + 1) == before:
            return taken


@kept(error_model="numpy")
def leave_to_host(word, units):
    """Leave so many units to the host, or as many as it has taken; return that number."""
    while True:
        before = word[0]
        left = max(units, before & ((1 << HALF) - 1))
        after = (left << HALF) | (before & ((1 << HALF) - 1))
        if left >= before >> HALF:
            return before >> HALF
        if compare_and_swap(word, before, after) == before:
            return left


class Piece(NamedTuple):
    """What the GPU takes at a time: the strip that it is of, and the positions of its rows."""

    strip: int
    first: int
    last: int


@dataclass
class BothEnds:
    """What is left of a class.

    ``pieces``: in ascending order; the host may take from the end of the last one down to
    ``units[-1]``. ``units``: positions, descending: where each unit ends, and the last begins.
    Whole pieces behind that are whole units.
    """

    pieces: list[Piece]
    units: np.ndarray
    word: np.ndarray = field(init=False)
    _next: int = 0

    def __post_init__(self) -> None:
        self.word = np.array([(self.units.size - 1) << HALF], np.int64)

    @property
    def rear(self) -> int:
        """The position from which on the host has taken all."""
        return int(self.units[int(self.word[0]) & ((1 << HALF) - 1)])

    @property
    def share_of_host(self) -> float:
        """Which part of the units the host has taken."""
        return (int(self.word[0]) & ((1 << HALF) - 1)) / max(self.units.size - 1, 1)

    @property
    def over(self) -> bool:
        """Whether nothing is left for the GPU, nor for the host."""
        return self._next == len(self.pieces) or self.pieces[self._next].first >= self.rear

    @property
    def next_piece(self) -> Piece | None:
        """What the GPU would take next, if the host leaves it."""
        return self.pieces[self._next] if self._next < len(self.pieces) else None

    def from_front(self) -> Piece | None:
        """Take the next piece, or what the host has left of it; None: nothing is left."""
        if self._next == len(self.pieces):
            return None
        piece = self.pieces[self._next]
        # of units that begin at its end or behind
        behind = int(np.searchsorted(-self.units, -piece.last, side="right")) - 1
        last = piece.last
        if behind < self.units.size - 1:
            last = min(last, int(self.units[leave_to_host(self.word, max(behind, 0))]))
        if last <= piece.first:
            return None
        self._next += 1
        return piece._replace(last=last)

    def close(self) -> None:
        """Leave what is left to nobody."""
        leave_to_host(self.word, 0)
        self._next = len(self.pieces)


def units_of(starts: np.ndarray, pieces: list[Piece], lowest: int, rear: int) -> np.ndarray:
    """Cut rows from a position on into units; no unit is in two pieces.

    ``starts``: the entry where the row of each position begins, and the end of the last.
    """
    if lowest >= rear:
        return np.array([rear])
    ends = np.arange(starts[lowest], starts[rear], UNIT)
    cuts = np.searchsorted(starts[lowest:rear], ends) + lowest
    edges = [edge for piece in pieces for edge in piece[1:] if lowest < edge < rear]
    return np.unique([lowest, rear, *cuts.tolist(), *edges])[::-1].copy()
