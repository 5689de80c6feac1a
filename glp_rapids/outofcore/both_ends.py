"""Rows that a GPU and the host's cores share: one takes from the front, the other from the rear.

The GPU takes strips, in the order in which they are copied to it; the host takes rows from behind,
as many at a time as keep both at work until the end: half of its share of what is left, by how fast
each has been so far (guided self-scheduling; Kozawa et al., CIKM 2017, share by such a queue, too).
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

LEAST = 1 << 17  # entries: fewer take the host longer to be called for than to evaluate


class Strip(NamedTuple):
    """A strip that the GPU takes: its number, and the positions of its rows."""

    number: int
    first: int
    last: int


@dataclass
class BothEnds:
    """What is left of a class; threads may ask at the same time.

    ``strips``: in ascending order. ``starts``: the entry where the row of each position begins.
    ``lowest``, ``rear``: from here to there positions are for the host, if the GPU is not first.
    """

    strips: list[Strip]
    starts: np.ndarray
    lowest: int
    rear: int
    _next: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def from_front(self) -> Strip | None:
        """Take the next strip, or what the host has left of it; None: nothing is left."""
        with self._lock:
            if self._next == len(self.strips):
                return None
            strip = self.strips[self._next]
            if strip.first >= self.rear:
                return None
            self._next += 1
            strip = strip._replace(last=min(strip.last, self.rear))
            self.lowest = max(self.lowest, strip.last)
            return strip

    @property
    def over(self) -> bool:
        """Whether nothing is left for the GPU, nor for the host."""
        with self._lock:
            return self._next == len(self.strips) or self.strips[self._next].first >= self.rear

    def close(self) -> None:
        """Leave what is left to nobody."""
        with self._lock:
            self._next, self.lowest = len(self.strips), self.rear

    def from_rear(self, share: float) -> tuple[int, int] | None:
        """Take rows for the host, which does ``share`` of the entries in a time; None: no more."""
        with self._lock:
            last, starts = self.rear, self.starts
            if self.lowest >= last:
                return None
            left = share * float(starts[last] - starts[self.lowest])
            if left < LEAST:
                return None  # the GPU is done before
            entries = max(int(left / 2), LEAST)
            first = int(np.searchsorted(starts, starts[last] - entries, side="left"))
            first = max(min(first, last - 1), self.lowest)
            self.rear = first
            return first, last
