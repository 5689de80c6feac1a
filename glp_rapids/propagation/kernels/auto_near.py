"""Compressed rows that a warp reads where it counts them: the lanes have a number each.

Under "packed" a part of a list has the classes of all its numbers, which are of equal width, before
their bits. So 32 lanes find their numbers by one sum over lanes, and by another what these stand
for: of intervals, starts and ends follow one another on the line of ids as numbers are added up;
residuals do so behind. What a warp has read lies in its part of a small array in shared memory;
nothing of a row is ever in global memory, and rows that are not evaluated are not decoded.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from glp_rapids.compressed import lists
from glp_rapids.compressed.packed import (
    CLASS_BITS,
    CLASSES,
    FIRST,
    GAP,
    LENGTH,
    START,
    WIDTH_BITS,
)
from glp_rapids.propagation.compilation import Target
from glp_rapids.propagation.kernels.auto_common import ALL, LANES, SHORT, STEP
from glp_rapids.propagation.kernels.cuda_target import cuda

SEGMENT = SHORT  # entries of a part, at the most, that lanes read STEP each


def build(index_type: Any, ordered: bool, stored: Any, target: Target) -> Any:
    """Make ``read_names``, which gives the lanes of a warp what is in one part of a list.

    It gives which entries these are, too: the first, and the step to the next. Shared memory:
    ``SEGMENT`` ids a warp.
    """
    functions = lists.build("packed", target)
    read_degree, part_bit = functions.read_degree, functions.part_bit
    open_part = functions.open_part
    wide = index_type is np.int64
    # Numbers of a graph with 32-bit indices have 32 bits, and so have sums of them, in the end.
    number, natural = (np.int64, np.uint64) if wide else (np.int32, np.uint32)
    bits_of_number = np.int32(64 if wide else 32)
    one, width_mask = natural(1), np.uint32((1 << WIDTH_BITS) - 1)
    summed_widths, summed_steps = _sum_of_lanes(np.int32), _sum_of_lanes(number)

    @cuda.jit(device=True)
    def bits_at(words, bit):
        """Give the bits from one on: 32, or 64 of wide numbers."""
        place, offset = np.uint64(bit) >> np.uint64(5), np.uint64(bit & np.int64(31))
        both = np.uint64(words[place]) | (
            np.uint64(words[place + np.uint64(1)]) << np.uint64(32)
        )
        found = both >> offset
        if wide and offset > 0:
            found |= np.uint64(words[place + np.uint64(2)]) << (np.uint64(64) - offset)
        return natural(found)

    @cuda.jit(device=True)
    def number_at(words, tables, classes, bit, kind, live, lane):
        """Give a lane's number, and the bits of the numbers of all lanes; no number is 0."""
        name = np.uint32(bits_at(words, classes)) & np.uint32(CLASSES - 1)
        entry = np.uint64((kind * np.int32(CLASSES) + np.int32(name)) * np.int32(2))
        low, high = tables[entry], tables[entry + np.uint64(1)]
        width = np.int32(high & width_mask)
        if not live:
            width = np.int32(0)
        until = summed_widths(width, lane)
        found = bits_at(words, bit + np.int64(until - width))
        if width < bits_of_number:
            found = natural(found & natural((one << natural(width)) - one))
        x = natural(natural(low) + found)
        if wide:
            x = natural(x + natural(np.uint64(high >> np.uint32(WIDTH_BITS)) << np.uint64(32)))
        return x, np.int64(cuda.shfl_sync(ALL, until, LANES - 1))

    @cuda.jit(device=True)
    def read_part(words, tables, settings, bit, v, count, lane, base, here):
        """Read a part with all lanes of a warp into its part of ``here.near``."""
        _intervals, residuals, front, classes, bit = open_part(words, tables, bit, count, settings)
        front, rest = np.int32(front), np.int32(residuals)
        left, least = np.int32(count - residuals), number(settings.min_interval)
        total = np.int32(front + rest)
        line = number(0)
        place = np.int32(base + rest)  # where the next interval goes: residuals are before
        first = np.int32(0)
        while first < total:
            if first == front:
                line = number(0)
            own = np.int32(first + lane)
            live = own < total
            odd = own & np.int32(1) != 0
            kind = np.int32(GAP)
            if own == 0 or own == front:
                kind = np.int32(FIRST)
            elif own < front:
                kind = np.int32(LENGTH) if odd else np.int32(START)
            name = np.int64(own if live else first) * np.int64(CLASS_BITS)
            x, used = number_at(words, tables, classes + name, bit, kind, live, lane)
            bit += used
            step = number(number(x) + number(1))
            if kind == np.int32(FIRST):
                step = number(number(v) + number(number(x >> one) ^ number(-number(x & one))))
            elif kind == np.int32(LENGTH):
                step = number(number(x) + least)
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
                here.near[np.uint32(base + own - front)] = index_type(line)
            source = np.int32(0)
            while source < edge and source < LANES:
                start = cuda.shfl_sync(ALL, line, source)
                beyond = cuda.shfl_sync(ALL, line, np.int32(source + 1))
                length = np.int32(beyond - start)
                if source + 1 == edge:
                    length = left
                left = np.int32(left - length)
                i = np.int32(lane)
                while i < length:
                    here.near[np.uint32(place + i)] = index_type(start + number(i))
                    i = np.int32(i + LANES)
                place = np.int32(place + length)
                source = np.int32(source + 2)
            line = cuda.shfl_sync(ALL, line, LANES - 1)
            first = np.int32(first + LANES)
        cuda.syncwarp()

    @cuda.jit(device=True)
    def read_names(names, v, start, degree, offset, stride, begin, rows, stream, here):
        """Give the lanes of a warp entry ``begin`` + lane of a list, and every 32nd from there on.

        ``begin`` is that of a part of the list, or behind it. Where there is no more entry a lane
        gets another's.
        """
        lane = np.int32(cuda.laneid)
        base = np.int32(cuda.threadIdx.x // LANES * SEGMENT)
        v = stored(stream, v)
        _, bit = read_degree(
            stream.words, stream.tables, stream.offsets[np.uint64(v)], stream.settings
        )
        count = np.int32(min(np.int64(degree) - begin, np.int64(SEGMENT)))
        if degree > SEGMENT and count > 0:
            bit = part_bit(
                stream.words, bit, np.int64(degree), begin // np.int64(SEGMENT), stream.settings
            )
        if count > 0:
            read_part(
                stream.words, stream.tables, stream.settings, bit, v, np.int64(count), lane, base,
                here,
            )  # fmt: skip
        for k in range(STEP):
            name = np.int64(v)
            if count > 0:
                name = np.int64(here.near[np.uint32(base + min(lane + LANES * k, count - 1))])
            if ordered:
                name = np.int64(stream.order[np.uint64(name)])
            names[k] = index_type(name)
        cuda.syncwarp()
        return begin + lane, np.int64(LANES)

    return read_names


def build_plain() -> Any:
    """Make what `build` makes, of rows that are not compressed."""

    @cuda.jit(device=True)
    def read_names(names, v, start, degree, offset, stride, begin, rows, stream, here):
        """Give a thread entry ``offset`` of a row and every ``stride``th from there on."""
        for k in range(STEP):
            names[k] = rows.indices[np.uint64(start + min(offset + stride * k, degree - 1))]
        return offset, stride

    return read_names


def _sum_of_lanes(value_type: Any) -> Any:
    """Make what gives the sum of a value of all lanes up to and with one."""

    @cuda.jit(device=True)
    def summed(value, lane):
        for distance in (1, 2, 4, 8, 16):
            other = cuda.shfl_up_sync(ALL, value, distance)
            if lane >= distance:
                value = value_type(value + other)
        return value

    return summed
