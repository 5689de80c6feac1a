"""Layers in strips: on the device as a whole, or from host memory as far as a limit asks for that.

As many of the first strips as fit stay on the device once they have come; the others are copied,
one while another is worked on, whenever it is their turn. A strip is whole rows, of one layer or of
several.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from glp_rapids.device import LackOfMemory, array_module, to_host
from glp_rapids.outofcore.double_buffer import SLOTS, DoubleBuffer
from glp_rapids.outofcore.pinned import HostArray
from glp_rapids.traversal.engines import Lists

Array = Any
STRIPS = 16  # so many fit the memory, if rows are not too long for that


def lack(needed: int, memory: int, what: str) -> LackOfMemory:
    """Return the error that a limit is too low, and by how much."""
    return LackOfMemory(
        f"memory_limit={memory:,} bytes is {needed - memory:,} too little {what}; raise it, or use "
        "host memory (device='cpu')"
    )


class Strips:
    """The lists in parts: ``number`` of them, which begin at ``first_row``, one more.

    ``beside``: bytes that are taken beside the lists. To be used in a ``with`` block.
    """

    def __init__(self, lists: Lists, xp: Any, beside: int) -> None:
        self._lists = lists
        self.indices, self.weights = lists.indices, lists.weights
        rows, entries = lists.order.size, lists.indices.size
        self.first_row = np.array([0, rows], np.int64)
        self._there: set[int] = set()
        self._buffer: DoubleBuffer | None = None
        if lists.memory is not None and entries:
            self._cut(xp, beside)
        self.number = self.first_row.size - 1 if entries else 0

    def _cut(self, xp: Any, beside: int) -> None:
        lists = self._lists
        parts = [part for part in (lists.indices, lists.weights) if part is not None]
        bytes_an_entry = sum(part.dtype.itemsize for part in parts)
        room = (lists.memory - beside) // bytes_an_entry  # entries
        offsets = lists.offsets
        longest = int(np.diff(offsets).max())
        if (least := min(SLOTS * longest, int(offsets[-1]))) > room:
            needed = beside + least * bytes_an_entry
            raise lack(needed, lists.memory, "for what there is by vertex and the longest rows")
        slot, resident = max(longest, room // STRIPS), int(offsets[-1])
        if resident > room:
            resident = room - SLOTS * slot
        cuts = [0]
        while cuts[-1] < lists.order.size:
            cuts.append(int(np.searchsorted(offsets, offsets[cuts[-1]] + slot, "right")) - 1)
        self.first_row = np.array(cuts, np.int64)
        self._first = offsets[self.first_row]  # entries
        self._stay = int(np.searchsorted(self._first, resident, "right")) - 1
        place = int(self._first[self._stay])
        self._places = tuple(place + slot * turn for turn in range(SLOTS))
        size = place if self._stay == len(cuts) - 1 else place + SLOTS * slot
        self.indices = xp.empty(size, lists.indices.dtype)
        self.weights = None if lists.weights is None else xp.empty(size, lists.weights.dtype)
        pairs = [(HostArray(lists.indices, True), self.indices)]
        if lists.weights is not None:
            pairs.append((HostArray(lists.weights, True), self.weights))
        self._buffer = DoubleBuffer(pairs, xp)

    @property
    def moved(self) -> int:
        """The bytes that were copied so far."""
        return 0 if self._buffer is None else self._buffer.moved

    @property
    def layers_streamed(self) -> int:
        """How many layers do not stay on the device as a whole."""
        if self._buffer is None:
            return 0
        behind = self._lists.first_row[1:]
        return int((behind > self.first_row[self._stay]).sum())

    def combined(self, entries: int) -> np.ndarray:
        """Return where steps begin: layers, small ones that follow one another taken together."""
        first_row = self._lists.first_row
        offsets = self._lists.offsets
        begin = to_host(offsets[array_module(offsets).asarray(first_row)])
        apart = np.flatnonzero(np.diff(begin[:-1] // entries, prepend=-1))
        return np.union1d(np.append(first_row[apart], first_row[-1]), self.first_row)

    def each(self, wanted: Iterable[int]) -> Iterator[tuple[int, int]]:
        """Bring strips one by one, the next while one is worked on.

        Yields its number, and what is to be taken off an entry's number to find its place in
        ``indices`` and ``weights``.
        """
        if self._buffer is None:
            yield from ((strip, 0) for strip in wanted)
            return
        wanted = list(wanted)
        asked = bool(wanted) and self._ask(wanted[0])
        for strip, following in zip(wanted, [*wanted[1:], None], strict=True):
            ahead = following is not None and self._ask(following)
            slot = self._buffer.take() if asked else None
            yield strip, 0 if slot is None else int(self._first[strip]) - self._places[slot]
            if slot is not None:
                self._buffer.give_back(slot)
            asked = ahead

    def _ask(self, strip: int) -> bool:
        """Ask for a strip, unless it is there for good; tell whether that was done."""
        first, last = self._first[strip : strip + 2].tolist()
        if strip >= self._stay:
            self._buffer.ask(self._places, first, last)
        elif strip not in self._there:
            self._buffer.ask_for_good(first, first, last)
            self._there.add(strip)
        else:
            return False
        return True

    def __enter__(self) -> Strips:
        return self

    def __exit__(self, *raised: Any) -> None:
        if self._buffer is not None:
            self._buffer.settle()
