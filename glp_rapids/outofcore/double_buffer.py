"""Strips of host arrays on their way to a GPU: one is copied while another one is worked on.

The copies run on a stream of their own, in the order in which they are asked for, into slots that
take turns. Events order them and the kernels: a copy waits until its slot is free, a kernel until
its strip has come. The host waits for nobody.
"""

from __future__ import annotations

import contextlib
import time
from collections import deque
from typing import Any

import numpy as np

from glp_rapids.outofcore import pinned
from glp_rapids.outofcore.pinned import HostArray

SLOTS = 2
BUS = 55e9  # bytes a second to one H200, measured for copies of 16 MB and more
MEASURED = 8 << 20  # bytes
TIMES = 1  # that a strip is copied: more, for benchmarks, is as if the bus were so much slower


class DoubleBuffer:
    """Copies strips of some arrays, all alike, into slots of others on the device.

    Parameters
    ----------
    pairs : list of (HostArray, array)
        Each array on the host, and the one on the device that has its slots.
    """

    def __init__(self, pairs: list[tuple[HostArray, Any]], xp: Any):
        self._pairs, self._xp = [(host.of_a_run(), device) for host, device in pairs], xp
        self._asked: deque[tuple[int | None, Any]] = deque()
        self._turn = 0
        self._there, self._free = None, [None] * SLOTS
        self.moved = 0  # bytes
        if xp is not np:
            self._stream = xp.cuda.Stream(non_blocking=True)
            self._free = [self._event() for _ in range(SLOTS)]
            self._there = self._event()
            for event in (*self._free, self._there):  # not before the arrays are there
                event.record()

    @property
    def waiting(self) -> int:
        """How many strips are asked for and not taken."""
        return len(self._asked)

    @property
    def turn(self) -> int:
        """The slot that the next strip takes."""
        return self._turn

    def ask(self, place: tuple[int, int], first: int, last: int) -> None:
        """Ask for a strip: entries ``first`` to ``last``, to where it begins in either slot.

        An empty one only takes its turn.
        """
        slot = self._turn
        self._turn = (slot + 1) % SLOTS
        come = None
        if last > first:
            come = self._ordered(place[slot], first, last, self._free[slot])
        self._asked.append((slot, come))

    def ask_more(self, place: tuple[int, int], first: int, last: int) -> None:
        """Ask for further entries of the strip asked for before, to where they are in its slot."""
        slot = (self._turn - 1) % SLOTS
        self._asked.append((slot, self._ordered(place[slot], first, last)))

    def ask_for_good(self, place: int, first: int, last: int) -> None:
        """Ask for entries that stay where they are put."""
        self._asked.append((None, self._ordered(place, first, last, self._there)))

    def take(self) -> int | None:
        """Let the current stream wait for the next strip; return its slot, if it has one."""
        slot, come = self._asked.popleft()
        if come is not None:
            self._xp.cuda.get_current_stream().wait_event(come)
        return slot

    def give_back(self, slot: int) -> None:
        """Say that what the current stream has to do so far is all that needs a slot."""
        if self._xp is not np:
            self._free[slot].record()

    def settle(self) -> None:
        """Wait for all copies: nobody writes to the slots any more."""
        if self._xp is not np:
            self._stream.synchronize()
        self._asked.clear()
        for host, _ in self._pairs:
            host.let_go()

    def _ordered(self, place: int, first: int, last: int, free: Any = None) -> Any:
        """Copy on the stream of copies, after an event if any; return the event that it is done."""
        if self._xp is np:
            self._copy(place, first, last)
            return None
        with self._stream:
            if free is not None:
                self._stream.wait_event(free)
            self._copy(place, first, last)
            come = self._event()
            come.record(self._stream)
        return come

    def _copy(self, place: int, first: int, last: int) -> None:
        for host, device in self._pairs:
            for there, source in host.copies(place - first, first, last):
                target = device[there : there + source.size]
                self.moved += source.nbytes
                for _ in range(TIMES):
                    pinned.copy(target, source, self._xp)

    def _event(self) -> Any:
        return self._xp.cuda.Event(disable_timing=True)

    def __del__(self) -> None:
        # A copy under way would write to memory that others have by then.
        with contextlib.suppress(AttributeError):
            self.settle()


_speeds: dict[tuple, float] = {}


def bus_speed(entries: HostArray, there: Any, xp: Any) -> float:
    """Return how many bytes a second come from pinned memory to the device, measured once.

    ``there``: where to, which nobody needs now; if it is small nothing is measured, and an H200's
    is returned.
    """
    size = min(MEASURED, entries.array.nbytes, there.nbytes)
    if xp is np or size < MEASURED:
        return BUS
    key = xp.cuda.Device().id, TIMES
    if key not in _speeds:
        host, there, seconds = entries.array.view(np.uint8)[:size], there.view(np.uint8), []
        for _ in range(3):
            xp.cuda.get_current_stream().synchronize()
            begin = time.perf_counter()
            for _ in range(TIMES):
                pinned.copy(there, host, xp)
            xp.cuda.get_current_stream().synchronize()
            seconds.append(time.perf_counter() - begin)
        _speeds[key] = size / min(seconds)
    return _speeds[key]
