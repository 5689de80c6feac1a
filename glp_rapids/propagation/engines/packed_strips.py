"""Packed lists on the host, laid out as a GPU reads them, strip by strip: a `Layout` of words.

A list begins with a word of its own, behind its degree, which the plan knows. That takes about as
many bits more as the degrees took, and a strip is a stretch of words.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from glp_rapids.compressed.rows import CompressedCSR
from glp_rapids.device import to_device
from glp_rapids.graph.id_words import IdWords
from glp_rapids.jit.cpu import compiled as compiled_for_cpu
from glp_rapids.jit.cuda import bound
from glp_rapids.jit.parallel import ParallelKernel, threads_available, together
from glp_rapids.outofcore import pinned
from glp_rapids.propagation.engines.strips import Layout, copied, pinned_copy
from glp_rapids.propagation.kernels.gpu import packed_numbers, plan

BITS = 32  # of a word
BEYOND = 4  # words behind the last list, which a decoder looks at


@dataclass(frozen=True)
class PackedLayout(Layout):
    """Packed lists in host memory, in the order of a plan; ``starts`` are words."""

    @property
    def number_of_entries(self) -> int:
        """Of all lists."""
        return int(self.degrees.sum(dtype=np.int64))

    def shown(self, array: Any) -> Any:
        """Show words, where they lie on the device or the host, to a kernel."""
        return bound(array)

    def plan_starts(self, degrees: Any, xp: Any) -> Any:
        """Say at which bit each list begins, and where the last one ends."""
        starts = copied(self.starts, xp)
        if xp is np:
            starts = starts.copy()
        starts *= BITS
        return starts


@compiled_for_cpu(error_model="numpy")
def _find_some(thread, threads, places, offsets, bits, degrees, least, widths, begins, starts):
    first = places.size * thread // threads
    last = places.size * (thread + 1) // threads
    for position in range(first, last):
        place, degree = np.int64(places[position]), degrees[position]
        which = least.size - 1
        while which > 0 and least[which] > degree:
            which -= 1
        begin = offsets[place] + widths[which]
        # a list ends where the next one begins, or a few bits before, where a block does
        end = bits
        if place + 1 < offsets.size:
            end = offsets[place + 1]
        begins[position] = begin
        starts[position + 1] = (end - begin + BITS - 1) // BITS


@ParallelKernel
def find_lists(team, places, offsets, bits, degrees, least, widths, begins, starts):
    """Say at which bit of a stream each list begins, and after one element how many words it is."""
    given = team.threads, places, offsets, bits, degrees, least, widths, begins, starts
    together(team, _find_some, given)


@compiled_for_cpu(error_model="numpy")
def _move_some(thread, threads, begins, words, starts, copy):
    first = begins.size * thread // threads
    last = begins.size * (thread + 1) // threads
    for position in range(first, last):
        begin = begins[np.uint64(position)]
        j, offset = begin >> 5, np.uint32(begin & 31)
        k, end = starts[np.uint64(position)], starts[np.uint64(position + 1)]
        while k < end:
            both = np.uint64(words[np.uint64(j)]) | (
                np.uint64(words[np.uint64(j + 1)]) << np.uint64(32)
            )
            copy[np.uint64(k)] = np.uint32(both >> np.uint64(offset))
            k += 1
            j += 1


@ParallelKernel
def move_lists(team, begins, words, starts, copy):
    """Copy the lists that begin at some bits of ``words`` to the words at which they then begin."""
    together(team, _move_some, (team.threads, begins, words, starts, copy))


def laid_out(
    rows: CompressedCSR, classes: int, id_words: IdWords, bins: tuple[list[int], list[int]], xp: Any
) -> PackedLayout:
    """Sort the vertices on the device and copy their lists in that order, on the host."""
    device, lists = "cpu" if xp is np else "gpu", rows.lists
    indptr = np.zeros(rows.number_of_vertices + 1, np.int64)
    np.cumsum(rows.degrees, out=indptr[1:])
    vertices, starts, degrees, ends = plan.listed_vertices(
        to_device(indptr, device), rows.index_dtype, *bins, id_words, (classes, 1, 1), None, xp
    )
    del starts, indptr
    (begins,), (ends,) = plan.range_ends(ends, [1], classes)
    vertices, degrees = (pinned_copy(array, device) for array in (vertices, degrees))
    places = vertices if rows.order is None else rows.place[vertices]
    first = np.empty(vertices.size, np.int64)
    starts = pinned.empty(vertices.size + 1, np.int64, device).array
    starts[0] = longest = 0
    if first.size:
        find_lists(
            threads_available(), places, np.asarray(lists.offsets), np.int64(lists.stream_bits),
            degrees, *packed_numbers.classes_of_degrees(lists.tables, np), first, starts,
        )  # fmt: skip
        longest = int(starts[1:].max())
        np.cumsum(starts, out=starts)
    copy = pinned.empty(starts[-1] + BEYOND, np.uint32, device)
    copy.array[starts[-1] :] = 0
    if first.size:
        move_lists(threads_available(), first, np.asarray(lists.words), starts, copy.array)
    return PackedLayout(vertices, degrees, starts, longest, begins, ends, copy, None)
