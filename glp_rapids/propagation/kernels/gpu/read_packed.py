"""Compressed rows that a warp reads where it counts them.

Under "packed" a part of a list has the classes of all its numbers, which are of equal width, before
their bits. So the 32 lanes of a warp find a number each by one sum over lanes, and by another what
these stand for: of intervals, starts and ends follow one another on the line of ids as numbers are
added up; residuals do so behind. What a warp has read lies in its part of a small array in shared
memory; nothing of a row is ever in global memory, and rows that are not evaluated are not decoded.
Short lists are read a list a lane, which takes fewer instructions.

What classes are is in shared memory too, and how a list begins is loaded for all rows of a ticket
at once: a warp that reads row after row would else wait for every single one.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from glp_rapids.compressed.format import bits, neighbour_list
from glp_rapids.compressed.format.packed import (
    CLASS_BITS,
    CLASSES,
    COUNT,
    DEGREE,
    FIRST,
    GAP,
    KINDS,
    LENGTH,
    REST,
    START,
    WIDTH_BITS,
)
from glp_rapids.device import to_host
from glp_rapids.jit.cuda import cuda
from glp_rapids.jit.target import Target
from glp_rapids.propagation.kernels.gpu.votes import ALL, LANES, SHORT, STEP, THREADS

SEGMENT = SHORT  # entries of a part at the most: STEP a lane
ENTRIES = len(KINDS) * CLASSES  # of the tables
LONGEST = 2 * SEGMENT  # of rows that a warp reads part by part; blocks read eight at a time
HEAD_WIDTH = 13  # of what says how many intervals and residuals there are: both are in 32 bits


def build(index_type: Any, ordered: bool, stored: Any, target: Target) -> SimpleNamespace:
    """Make what reads lists under "packed" whose parts have up to ``SEGMENT`` entries.

    ``head(stream, bit)``
        What a list of one part begins with.
    ``read_names(names, v, start, degree, offset, stride, begin, rows, stream, here)``
        Give the lanes of a warp what is in one part of a list; and which entries these are, the
        first and the step to the next.
    ``read_short(names, v, start, degree, head, rows, stream, here)``
        Give the lanes of a warp every 32nd entry of a list of one part.
    ``read_list(stream, here, head, bit, v, degree, place)``
        Write a list of up to 32 entries to ``here.keys[place:]``, a list a lane.
    ``fill_tables(stream, here)``
        Put the tables into shared memory; all threads of a block call it.
    """
    wide = index_type is np.int64
    # Numbers of a graph with 32-bit indices have 32 bits, and so have sums of them, in the end.
    number, natural = (np.int64, np.uint64) if wide else (np.int32, np.uint32)
    one, bits_of_number = natural(1), np.int32(64 if wide else 32)
    width_mask, class_mask = np.uint32((1 << WIDTH_BITS) - 1), np.uint32(CLASSES - 1)
    summed_widths, summed_steps = _sum_of_lanes(np.int32), _sum_of_lanes(number)
    part_bit = neighbour_list.build("packed", target).part_bit
    take = bits.build(target).take

    @cuda.jit(device=True)
    def fill_tables(stream, here):
        i = cuda.threadIdx.x
        while i < ENTRIES:
            low, high = stream.tables[2 * i], stream.tables[2 * i + 1]
            here.classes[i] = np.uint64(low) | (np.uint64(high) << np.uint64(32))
            i += THREADS

    @cuda.jit(device=True)
    def class_at(here, kind, name):
        """Give the base and the width of a class."""
        entry = here.classes[np.uint32(kind * np.int32(CLASSES) + np.int32(name))]
        high = np.uint32(entry >> np.uint64(32))
        base = natural(entry & np.uint64(0xFFFFFFFF))
        if wide:
            base = natural(base | (np.uint64(high >> np.uint32(WIDTH_BITS)) << np.uint64(32)))
        return base, np.int32(high & width_mask)

    @cuda.jit(device=True)
    def bits_at(words, place, bit):
        """Give the bits from one on that is counted from a word: 32, or 64 of wide numbers."""
        at = place + np.uint64(np.uint32(bit) >> np.uint32(5))
        offset = np.uint64(np.uint32(bit) & np.uint32(31))
        both = np.uint64(words[at]) | (np.uint64(words[at + np.uint64(1)]) << np.uint64(32))
        found = both >> offset
        if wide and offset > 0:
            found |= np.uint64(words[at + np.uint64(2)]) << (np.uint64(64) - offset)
        return natural(found)

    @cuda.jit(device=True)
    def head(stream, bit):
        place, offset = np.uint64(bit) >> np.uint64(5), np.uint64(bit & np.int64(31))
        both = np.uint64(stream.words[place]) | (
            np.uint64(stream.words[place + np.uint64(1)]) << np.uint64(32)
        )
        return np.int32(np.uint32(both >> offset))

    @cuda.jit(device=True)
    def in_head(here, window, kind):
        """Give a number at the beginning of a window, and the bits it takes."""
        base, width = class_at(here, kind, window & class_mask)
        found = np.uint32(window >> np.uint32(CLASS_BITS))
        found &= np.uint32((np.uint32(1) << np.uint32(width)) - np.uint32(1))
        return np.int32(np.uint32(base) + found), np.int32(width + CLASS_BITS)

    @cuda.jit(device=True)
    def open_part(settings, here, head, count):
        """Give the numbers of intervals, the residuals, and the bits that say so."""
        if settings.min_interval == 0 or np.int64(count) < settings.min_interval:
            return np.int32(0), np.int32(count), np.int32(0)
        window = np.uint32(head)
        intervals, used = in_head(here, window, np.int32(COUNT))
        if intervals == 0:
            return np.int32(0), np.int32(count), used
        rest, further = in_head(here, np.uint32(window >> np.uint32(used)), np.int32(REST))
        return np.int32(2 * intervals - 1), rest, np.int32(used + further)

    @cuda.jit(device=True)
    def step_of(x, kind, v, least):
        """Give the step on the line of ids that a number stands for."""
        if kind == np.int32(FIRST):
            return number(number(v) + number(number(x >> one) ^ number(-number(x & one))))
        if kind == np.int32(LENGTH):
            return number(number(x) + least)
        return number(number(x) + number(1))

    @cuda.jit(device=True)
    def read_part(stream, here, head, bit, v, count, lane, base):
        """Read a part with all lanes of a warp into its part of ``here.near``."""
        words, settings = stream.words, stream.settings
        front, rest, used = open_part(settings, here, head, count)
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
            smallest, width = class_at(here, kind, np.uint32(name) & class_mask)
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
                here.near[np.uint32(base + own - front)] = index_type(line)
            source = np.int32(0)
            while source < edge and source < LANES:
                start = cuda.shfl_sync(ALL, line, source)
                beyond = cuda.shfl_sync(ALL, line, np.int32(source + 1))
                length = np.int32(beyond - start)
                if source + 1 == edge:
                    length = left
                left = np.int32(left - length)
                if lane < length:
                    here.near[np.uint32(place + lane)] = index_type(start + number(lane))
                if length > LANES:
                    for k in range(1, STEP):
                        i = np.int32(lane + LANES * k)
                        if i < length:
                            here.near[np.uint32(place + i)] = index_type(start + number(i))
                place = np.int32(place + length)
                source = np.int32(source + 2)
            line = cuda.shfl_sync(ALL, line, LANES - 1)
            first = np.int32(first + LANES)
        cuda.syncwarp()

    @cuda.jit(device=True)
    def read_names(names, v, start, degree, offset, stride, begin, rows, stream, here):
        """Read the part that begins at entry ``begin``; behind the last one, that once more.

        A user's function sees entries of the row then, whatever becomes of what it says.
        """
        bit = start
        part = min(begin, np.int64(degree - 1)) // np.int64(SEGMENT)
        if degree > SEGMENT:
            bit = part_bit(stream.words, bit, np.int64(degree), part, stream.settings)
        count = np.int32(min(np.int64(degree) - part * np.int64(SEGMENT), np.int64(SEGMENT)))
        read_lanes(names, v, bit, count, head(stream, bit), stream, here)
        return begin + np.int32(cuda.laneid), np.int64(LANES)

    @cuda.jit(device=True)
    def read_short(names, v, start, degree, first_bits, rows, stream, here):
        """Read a list of one part."""
        read_lanes(names, v, start, np.int32(degree), first_bits, stream, here)

    @cuda.jit(device=True)
    def read_lanes(names, v, bit, count, first_bits, stream, here):
        """Give the lanes every 32nd entry of a part; where there is none a lane gets the last."""
        lane = np.int32(cuda.laneid)
        base = np.int32(cuda.threadIdx.x // LANES * SEGMENT)
        read_part(stream, here, first_bits, bit, stored(stream, v), count, lane, base)
        for k in range(STEP):
            own = np.int32(min(np.int32(lane + LANES * k), np.int32(count - 1)))
            names[k] = here.near[np.uint32(base + own)]
        if ordered:
            for k in range(STEP):
                names[k] = index_type(stream.order[np.uint64(names[k])])
        cuda.syncwarp()

    @cuda.jit(device=True)
    def next_number(words, here, names, cursor, kind):
        """Give a lane's next number, and the windows of classes and of bits behind it."""
        window, have, place = names
        if have < CLASS_BITS:
            window |= np.uint64(words[place]) << np.uint64(have)
            have, place = np.int32(have + 32), place + np.uint64(1)
        base, width = class_at(here, kind, np.uint32(window & np.uint64(class_mask)))
        names = window >> np.uint64(CLASS_BITS), np.int32(have - CLASS_BITS), place
        window, have, place = cursor
        if wide:
            x, window, unsigned, place = take(
                words, window, np.uint32(have), place, np.int64(width)
            )
            return natural(base + x), names, (window, np.int32(unsigned), place)
        if have < 32:
            window |= np.uint64(words[place]) << np.uint64(have)
            have, place = np.int32(have + 32), place + np.uint64(1)
        x = np.uint32(window & ((np.uint64(1) << np.uint64(width)) - np.uint64(1)))
        cursor = window >> np.uint64(width), np.int32(have - width), place
        return natural(base + x), names, cursor

    @cuda.jit(device=True)
    def opened(words, bit):
        """Give a window on the bits from one on."""
        place, offset = np.uint64(bit) >> np.uint64(5), np.uint64(bit & np.int64(31))
        window = np.uint64(words[place]) >> offset
        return window, np.int32(np.int32(32) - np.int32(offset)), place + np.uint64(1)

    @cuda.jit(device=True)
    def put(stream, here, place, name):
        if ordered:
            name = number(stream.order[np.uint64(name)])
        here.keys[np.uint32(place)] = index_type(name)

    @cuda.jit(device=True)
    def read_list(stream, here, head, bit, v, degree, place):
        words, settings = stream.words, stream.settings
        if np.int64(degree) <= settings.raw_below:
            cursor = opened(words, bit)
            for i in range(degree):
                name, window, have, at = take(
                    words, cursor[0], np.uint32(cursor[1]), cursor[2], settings.id_bits
                )
                cursor = window, np.int32(have), at
                put(stream, here, np.int32(place + i), number(name))
            return
        front, rest, used = open_part(settings, here, head, degree)
        least, left = number(settings.min_interval), np.int32(degree - rest)
        bit += np.int64(used)
        names = opened(words, bit)
        cursor = opened(words, bit + np.int64(CLASS_BITS * (front + rest)))
        line, own = number(0), np.int32(0)
        while own < front:
            kind = np.int32(FIRST) if own == 0 else np.int32(START)
            x, names, cursor = next_number(words, here, names, cursor, kind)
            line = number(line + step_of(x, kind, v, least))
            length, own = left, np.int32(own + 1)
            if own < front:
                x, names, cursor = next_number(words, here, names, cursor, np.int32(LENGTH))
                length, own = np.int32(number(x) + least), np.int32(own + 1)
            left = np.int32(left - length)
            end = np.int32(place + length)
            while place < end:
                put(stream, here, place, line)
                line, place = number(line + number(1)), np.int32(place + 1)
        line, end, kind = number(0), np.int32(place + rest), np.int32(FIRST)
        while place < end:
            x, names, cursor = next_number(words, here, names, cursor, kind)
            line = number(line + step_of(x, kind, v, least))
            put(stream, here, place, line)
            place, kind = np.int32(place + 1), np.int32(GAP)

    return SimpleNamespace(
        head=head,
        read_names=read_names,
        read_short=read_short,
        read_list=read_list,
        fill_tables=fill_tables,
    )


def build_plain() -> SimpleNamespace:
    """Make ``read_names`` and ``read_short`` of rows that are not compressed."""

    @cuda.jit(device=True)
    def read_names(names, v, start, degree, offset, stride, begin, rows, stream, here):
        """Give a thread entry ``offset`` of a row and every ``stride``th from there on."""
        for k in range(STEP):
            names[k] = rows.indices[np.uint64(start + min(offset + stride * k, degree - 1))]
        return offset, stride

    @cuda.jit(device=True)
    def read_short(names, v, start, degree, head, rows, stream, here):
        """Give the lanes of a warp every 32nd entry of a row."""
        lane = np.int64(cuda.laneid)
        for k in range(STEP):
            names[k] = rows.indices[np.uint64(start + min(lane + LANES * k, degree - 1))]

    return SimpleNamespace(read_names=read_names, read_short=read_short)


def fits(tables: Any, index_dtype: np.dtype) -> bool:
    """Tell whether numbers are as `build` takes them: `compress` makes no others for its parts."""
    widths = (to_host(tables)[1::2] & ((1 << WIDTH_BITS) - 1)).reshape(-1, CLASSES)
    of_heads = max(widths[int(kind)].max() for kind in (COUNT, REST))
    return of_heads <= HEAD_WIDTH and widths.max() <= (32 if index_dtype.itemsize == 4 else 64)


def behind_degrees(tables: Any, degrees: Any, xp: Any) -> Any:
    """Give the bits that the degrees of lists take."""
    own = tables[2 * CLASSES * int(DEGREE) : 2 * CLASSES * (int(DEGREE) + 1)].astype(xp.int64)
    low, high = own[::2], own[1::2]
    widths = high & ((1 << WIDTH_BITS) - 1)
    bases = low | (high >> WIDTH_BITS) << 32
    return CLASS_BITS + widths[xp.searchsorted(bases, degrees, side="right") - 1]


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
