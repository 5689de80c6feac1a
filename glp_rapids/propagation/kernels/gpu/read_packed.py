"""Packed lists that a warp reads where it counts them, part by part: nothing is buffered.

Under "packed" a part of a list has the classes of all its numbers, which are of equal width, before
their bits. So the 32 lanes of a warp find a number each by one sum over lanes, and by another what
these stand for: of intervals, starts and ends follow one another on the line of ids as numbers are
added up; residuals do so behind. What a warp has read lies in its segment of a small array in
shared memory (4 KB a block, 8 with 64-bit indices); nothing of a row is ever in global memory, and
rows that are not evaluated are not decoded. Lists of up to 32 entries are read one a thread, see
`read_packed_list`.

How a list begins is loaded for all rows of a ticket at once: a warp that reads row after row would
else wait for every single one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from glp_rapids.compressed.format import neighbour_list
from glp_rapids.compressed.format.packed import CLASS_BITS, FIRST, GAP, LENGTH, START
from glp_rapids.jit.cuda import cuda
from glp_rapids.jit.target import Target
from glp_rapids.propagation.kernels.gpu import packed_numbers
from glp_rapids.propagation.kernels.gpu.decode_buffer import build_list_of
from glp_rapids.propagation.kernels.gpu.packed_numbers import CLASS_MASK
from glp_rapids.propagation.kernels.gpu.shared_memory import LANES
from glp_rapids.propagation.kernels.gpu.votes import ALL, STEP, WARP_ENTRIES

SEGMENT = WARP_ENTRIES  # entries of a part at the most: STEP a lane
LONGEST = 2 * SEGMENT  # of rows that a warp reads part by part; blocks read eight at a time


@dataclass(frozen=True)
class PackedReader:
    """Device functions that read lists whose parts have up to ``SEGMENT`` entries."""

    first_bits: Any  # of a list of one part
    read_entries: Any  # of a part of a list: lanes get four each
    read_row: Any  # a list of one part: likewise


@cuda.jit(device=True)
def first_bits(lists, bit):
    """Return the bits with which a list of one part begins."""
    place, offset = np.uint64(bit) >> np.uint64(5), np.uint64(bit & np.int64(31))
    both = np.uint64(lists.words[place]) | (
        np.uint64(lists.words[place + np.uint64(1)]) << np.uint64(32)
    )
    return np.int32(np.uint32(both >> offset))


def build(index_type: Any, ordered: bool, target: Target) -> PackedReader:
    """Make the functions; ``ordered``: lists are in an order of their own."""
    list_of = build_list_of(ordered)
    functions = packed_numbers.build(index_type)
    number, natural = functions.number, functions.natural
    class_at, open_part, step_of = functions.class_at, functions.open_part, functions.step_of
    is_64 = index_type is np.int64
    one, bits_of_number = natural(1), np.int32(64 if is_64 else 32)
    summed_widths, summed_steps = _prefix_sum(np.int32), _prefix_sum(number)
    part_bit = neighbour_list.build("packed", target).part_bit

    @cuda.jit(device=True)
    def bits_at(words, place, bit):
        """Return the bits from one on that is counted from a word, as many as an index has."""
        at = place + np.uint64(np.uint32(bit) >> np.uint32(5))
        offset = np.uint64(np.uint32(bit) & np.uint32(31))
        both = np.uint64(words[at]) | (np.uint64(words[at + np.uint64(1)]) << np.uint64(32))
        found = both >> offset
        if is_64 and offset > 0:
            found |= np.uint64(words[at + np.uint64(2)]) << (np.uint64(64) - offset)
        return natural(found)

    @cuda.jit(device=True)
    def read_part(lists, packed, head, bit, v, count, lane, base):
        """Read a part with all lanes of a warp into its segment of ``packed.entries``."""
        words, settings = lists.words, lists.settings
        front, rest, used = open_part(settings, packed, head, count)
        total, least = np.int32(front + rest), number(settings.min_interval)
        word = np.uint64(bit) >> np.uint64(5)
        classes = np.int32(np.int32(bit & np.int64(31)) + used)
        data = np.int32(classes + CLASS_BITS * total)
        left = np.int32(count - rest)
        line, first = number(0), np.int32(0)
        place = np.int32(base + rest)  # where the next interval goes: residuals are before
        while first < total:
            if first == front:
                line = number(0)
            own = np.int32(first + lane)
            live = own < total
            kind = np.int32(GAP)
            if own == 0 or own == front:
                kind = np.int32(FIRST)
            elif own < front:
                kind = np.int32(LENGTH) if own & 1 else np.int32(START)
            name = bits_at(words, word, np.int32(classes + CLASS_BITS * min(own, total)))
            smallest, width = class_at(packed, kind, np.uint32(name) & CLASS_MASK)
            if not live:
                width = np.int32(0)
            until = summed_widths(width, lane)
            x = bits_at(words, word, np.int32(data + until - width))
            if width < bits_of_number:
                x = natural(x & natural(natural(one << natural(width)) - one))
            data = np.int32(data + cuda.shfl_sync(ALL, until, LANES - 1))
            step = step_of(natural(x + smallest), kind, v, least)
            if not live:
                step = number(0)
            line = number(line + summed_steps(step, lane))
            edge = np.int32(front - first)
            if 0 < edge < LANES:
                # The line begins anew with the residuals.
                before = cuda.shfl_sync(ALL, line, np.int32(edge - 1))
                if own >= front:
                    line = number(line - before)
            if live and own >= front:
                packed.entries[np.uint32(base + own - front)] = index_type(line)
            source = np.int32(0)
            while source < edge and source < LANES:
                start = cuda.shfl_sync(ALL, line, source)
                beyond = cuda.shfl_sync(ALL, line, np.int32(source + 1))
                length = np.int32(beyond - start)
                if source + 1 == edge:
                    length = left
                left = np.int32(left - length)
                if lane < length:
                    packed.entries[np.uint32(place + lane)] = index_type(start + number(lane))
                if length > LANES:
                    for k in range(1, STEP):
                        i = np.int32(lane + LANES * k)
                        if i < length:
                            packed.entries[np.uint32(place + i)] = index_type(start + number(i))
                place = np.int32(place + length)
                source = np.int32(source + 2)
            line = cuda.shfl_sync(ALL, line, LANES - 1)
            first = np.int32(first + LANES)
        cuda.syncwarp()

    @cuda.jit(device=True)
    def read_lanes(entries, v, bit, count, head, lists, packed):
        """Read every 32nd entry of a part into each lane; where there is none it gets the last."""
        lane = np.int32(cuda.laneid)
        base = np.int32(cuda.threadIdx.x // LANES * SEGMENT)
        read_part(lists, packed, head, bit, list_of(lists, v), count, lane, base)
        for k in range(STEP):
            own = np.int32(min(np.int32(lane + LANES * k), np.int32(count - 1)))
            entries[k] = packed.entries[np.uint32(base + own)]
        if ordered:
            for k in range(STEP):
                entries[k] = index_type(lists.order[np.uint64(entries[k])])
        cuda.syncwarp()

    @cuda.jit(device=True)
    def read_entries(entries, v, start, degree, offset, stride, begin, rows, lists, shared):
        """Read the part that begins at entry ``begin``; behind the last one, that once more.

        A user's function sees entries of the row then, whatever becomes of what it says.
        """
        bit = start
        part = min(begin, np.int64(degree - 1)) // np.int64(SEGMENT)
        if degree > SEGMENT:
            bit = part_bit(lists.words, bit, np.int64(degree), part, lists.settings)
        count = np.int32(min(np.int64(degree) - part * np.int64(SEGMENT), np.int64(SEGMENT)))
        read_lanes(entries, v, bit, count, first_bits(lists, bit), lists, shared.packed)
        return begin + np.int32(cuda.laneid), np.int64(LANES)

    @cuda.jit(device=True)
    def read_row(entries, v, start, degree, head, rows, lists, shared):
        """Read a list of one part."""
        read_lanes(entries, v, start, np.int32(degree), head, lists, shared.packed)

    return PackedReader(first_bits, read_entries, read_row)


def _prefix_sum(value_type: Any) -> Any:
    """Make the sum of a value of all lanes up to and with one."""

    @cuda.jit(device=True)
    def summed(value, lane):
        for distance in (1, 2, 4, 8, 16):
            other = cuda.shfl_up_sync(ALL, value, distance)
            if lane >= distance:
                value = value_type(value + other)
        return value

    return summed
