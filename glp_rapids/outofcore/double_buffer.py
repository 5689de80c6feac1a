"""Strips of host arrays on their way to a GPU: one is copied while another one is worked on.

The copies run on a stream of their own, in the order in which they are asked for, into slots that
take turns. Events order them and the kernels: a copy waits until its slot is free, a kernel until
its strip has come. The host waits for nobody.
"""

from __future__ import annotations

import contextlib
from collections import deque
from typing import Any

import numpy as np

from glp_rapids.outofcore.pinned import HostArray

SLOTS = 2


class DoubleBuffer:
    """Copies strips of some arrays, all alike, into slots of others on the device.

    Parameters
    ----------
    pairs : list of (HostArray, array)
        Each array on the host, and the one on the device that has its slots.
    """

    def __init__(self, pairs: list[tuple[HostArray, Any]], xp: Any):
        self._pairs, self._xp = pairs, xp
        self._asked: deque[tuple[int, Any]] = deque()
        self._turn = 0
        self.moved = 0  # bytes
        if xp is not np:
            self._stream = xp.cuda.Stream(non_blocking=True)
            self._free = [self._event() for _ in range(SLOTS)]
            for event in self._free:  # not before the arrays are there
                event.record()

    @property
    def waiting(self) -> int:
        """How many strips are asked for and not taken."""
        return len(self._asked)

    def ask(self, place: tuple[int, int], first: int, last: int) -> None:
        """Ask for a strip: entries ``first`` to ``last``, to where it begins in either slot.

        An empty one only takes its turn.
        """
        slot = self._turn
        self._turn = (slot + 1) % SLOTS
        come = None
        if last > first:
            with contextlib.nullcontext() if self._xp is np else self._stream:
                if self._xp is not np:
                    self._stream.wait_event(self._free[slot])
                self._copy(place[slot], first, last)
                if self._xp is not np:
                    come = self._event()
                    come.record(self._stream)
        self._asked.append((slot, come))

    def take(self) -> int:
        """Let the current stream wait for the next strip; return its slot."""
        slot, come = self._asked.popleft()
        if come is not None:
            self._xp.cuda.get_current_stream().wait_event(come)
        return slot

    def give_back(self, slot: int) -> None:
        """Say that what the current stream has to do so far is all that needs a slot."""
        if self._xp is not np:
            self._free[slot].record()

    def load(self, place: int, first: int, last: int) -> None:
        """Copy entries that stay where they are put, on the current stream."""
        self._copy(place, first, last)

    def settle(self) -> None:
        """Wait for all copies: nobody writes to the slots any more."""
        if self._xp is not np:
            self._stream.synchronize()
        self._asked.clear()

    def _copy(self, place: int, first: int, last: int) -> None:
        for host, device in self._pairs:
            source, target = host.array[first:last], device[place : place + last - first]
            self.moved += source.nbytes
            if self._xp is np:
                target[:] = source
            elif source.nbytes:
                self._xp.cuda.runtime.memcpyAsync(
                    target.data.ptr, source.ctypes.data, source.nbytes,
                    self._xp.cuda.runtime.memcpyHostToDevice,
                    self._xp.cuda.get_current_stream().ptr,
                )  # fmt: skip

    def _event(self) -> Any:
        return self._xp.cuda.Event(disable_timing=True)

    def __del__(self) -> None:
        # A copy under way would write to memory that others have by then.
        with contextlib.suppress(AttributeError):
            self.settle()
