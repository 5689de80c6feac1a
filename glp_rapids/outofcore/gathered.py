"""Rows that lie in another order than they are asked for, gathered when it is their turn.

For lists of which host memory has no room for a copy in the order of the strips, or that lie in a
mapped file larger than it: threads gather the rows of a strip, piece by piece, into two small
pinned buffers, from where they are copied. That is slower than the bus, and kernels cannot read it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from glp_rapids.outofcore import pinned
from glp_rapids.outofcore.pinned import HostArray

PIECE = 32 << 20  # bytes of a buffer, unless one row is longer
BUFFERS = 2


@dataclass
class GatheredRows(HostArray):
    """Entries of rows that are gathered from ``array``; never pinned.

    ``gather``: given the first row and the one behind the last, writes their entries to an array.
    ``starts``: where rows begin once they are gathered, and the end of the last.
    """

    gather: Callable[[int, int, np.ndarray], None]
    starts: np.ndarray
    xp: Any
    _turn: int = 0
    _buffers: list[Any] = field(default_factory=list)

    def of_a_run(self) -> GatheredRows:
        """Return the same with buffers of its own: runs may share a graph."""
        return replace(self, _turn=0, _buffers=[])

    def copies(self, shift: int, first: int, last: int) -> Iterator[tuple[int, np.ndarray]]:
        """Yield whole rows, gathered; what is yielded is good until two more were asked for."""
        starts, most = self.starts, max(PIECE // self.array.itemsize, 1)
        row, end = np.searchsorted(starts, (first, last)).tolist()
        while row < end:
            behind = int(np.searchsorted(starts, starts[row] + most, side="right")) - 1
            behind = min(max(behind, row + 1), end)
            begin, size = int(starts[row]), int(starts[behind] - starts[row])
            there, done = self._buffer(size, most)
            self.gather(row, behind, there[:size])
            yield begin + shift, there[:size]
            if done is not None:
                done.record()  # on the stream of the copy
            row = behind

    def let_go(self) -> None:
        """Give the buffers back, once all that was copied from them is there."""
        self._buffers.clear()

    def _buffer(self, size: int, most: int) -> tuple[np.ndarray, Any]:
        """Return the buffer whose turn it is, once it is free, and the event that says so."""
        self._turn = (self._turn + 1) % BUFFERS
        on_gpu = self.xp is not np
        while len(self._buffers) < BUFFERS:
            done = self.xp.cuda.Event(disable_timing=True) if on_gpu else None
            self._buffers.append((self._made(max(size, most)), done))
        there, done = self._buffers[self._turn]
        if done is not None:
            done.synchronize()
        if there.size < size:
            there = self._made(size)
            self._buffers[self._turn] = there, done
        return there, done

    def _made(self, size: int) -> np.ndarray:
        device = "cpu" if self.xp is np else "gpu"
        return pinned.empty(size, self.array.dtype, device).array
