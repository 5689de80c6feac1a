"""Packed lists of up to 32 entries, one a thread: fewer instructions than a warp takes together."""

from __future__ import annotations

from typing import Any

import numpy as np

from glp_rapids.compressed.format import bits
from glp_rapids.compressed.format.packed import CLASS_BITS, FIRST, GAP, LENGTH, START
from glp_rapids.jit.cuda import cuda
from glp_rapids.jit.target import Target
from glp_rapids.propagation.kernels.gpu import packed_numbers
from glp_rapids.propagation.kernels.gpu.packed_numbers import CLASS_MASK


def build(index_type: Any, ordered: bool, target: Target) -> Any:
    """Make what writes a list to the labels of the table, from a place on."""
    functions = packed_numbers.build(index_type)
    number, natural = functions.number, functions.natural
    class_at, open_part, step_of = functions.class_at, functions.open_part, functions.step_of
    is_64 = index_type is np.int64
    take = bits.build(target).take

    @cuda.jit(device=True)
    def next_number(words, packed, classes, cursor, kind):
        """Read the next number, and the windows of classes and of bits behind it."""
        window, have, place = classes
        if have < CLASS_BITS:
            window |= np.uint64(words[place]) << np.uint64(have)
            have, place = np.int32(have + 32), place + np.uint64(1)
        base, width = class_at(packed, kind, np.uint32(window & np.uint64(CLASS_MASK)))
        classes = window >> np.uint64(CLASS_BITS), np.int32(have - CLASS_BITS), place
        window, have, place = cursor
        if is_64:
            x, window, unsigned, place = take(
                words, window, np.uint32(have), place, np.int64(width)
            )
            return natural(base + x), classes, (window, np.int32(unsigned), place)
        if have < 32:
            window |= np.uint64(words[place]) << np.uint64(have)
            have, place = np.int32(have + 32), place + np.uint64(1)
        x = np.uint32(window & ((np.uint64(1) << np.uint64(width)) - np.uint64(1)))
        cursor = window >> np.uint64(width), np.int32(have - width), place
        return natural(base + x), classes, cursor

    @cuda.jit(device=True)
    def open_window(words, bit):
        """Open a window on the bits from one on."""
        place, offset = np.uint64(bit) >> np.uint64(5), np.uint64(bit & np.int64(31))
        window = np.uint64(words[place]) >> offset
        return window, np.int32(np.int32(32) - np.int32(offset)), place + np.uint64(1)

    @cuda.jit(device=True)
    def put(lists, table, place, entry):
        if ordered:
            entry = number(lists.order[np.uint64(entry)])
        table.labels[np.uint32(place)] = index_type(entry)

    @cuda.jit(device=True)
    def read_list(lists, shared, head, bit, v, degree, place):
        words, settings = lists.words, lists.settings
        table, packed = shared.table, shared.packed
        if np.int64(degree) <= settings.raw_below:
            cursor = open_window(words, bit)
            for i in range(degree):
                entry, window, have, at = take(
                    words, cursor[0], np.uint32(cursor[1]), cursor[2], settings.id_bits
                )
                cursor = window, np.int32(have), at
                put(lists, table, np.int32(place + i), number(entry))
            return
        front, rest, used = open_part(settings, packed, head, degree)
        least, left = number(settings.min_interval), np.int32(degree - rest)
        bit += np.int64(used)
        classes = open_window(words, bit)
        cursor = open_window(words, bit + np.int64(CLASS_BITS * (front + rest)))
        line, own = number(0), np.int32(0)
        while own < front:
            kind = np.int32(FIRST) if own == 0 else np.int32(START)
            x, classes, cursor = next_number(words, packed, classes, cursor, kind)
            line = number(line + step_of(x, kind, v, least))
            length, own = left, np.int32(own + 1)
            if own < front:
                x, classes, cursor = next_number(words, packed, classes, cursor, np.int32(LENGTH))
                length, own = np.int32(number(x) + least), np.int32(own + 1)
            left = np.int32(left - length)
            end = np.int32(place + length)
            while place < end:
                put(lists, table, place, line)
                line, place = number(line + number(1)), np.int32(place + 1)
        line, end, kind = number(0), np.int32(place + rest), np.int32(FIRST)
        while place < end:
            x, classes, cursor = next_number(words, packed, classes, cursor, kind)
            line = number(line + step_of(x, kind, v, least))
            put(lists, table, place, line)
            place, kind = np.int32(place + 1), np.int32(GAP)

    return read_list
