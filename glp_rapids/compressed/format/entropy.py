"""The scheme for size: runs of ids to both sides of the vertex, in static Huffman codes.

The bit stream of a graph under "entropy" is laid out as under the others, but all numbers are in
Huffman codes made for the graph, and a part is::

    lower      how many entries are less than the vertex, say l of c: 2l if 2l <= c, else
               2(c - l) + 1
    runs       of those l entries, from the vertex downwards; then of the others, upwards
                 gap      ids left out: from the vertex (downwards from the one below it), or from
                          the run before, less the one that is always left out between two runs
                 length   consecutive ids: a flag in the symbol of the gap says whether there are
                          more than one; if so, their number less 2

Neighbours are near the vertex on either side of it, and what ascends from the far end says nothing
of that. Consecutive ids need no structure of their own, and nothing has to be merged.

A number below 8 is a symbol; of larger ones the symbol tells the number of bits and the highest two
of them, and the other bits follow as they are: numbers are ``top << extra | rest``. Which code a
symbol is in depends on its context: what is known of the list by then. ``tables`` holds for every
context where its table begins and how many bits its longest code has; then the tables, each with an
entry of 16 bits for every string of so many bits: the length of the code that the string begins
with (4 bits), the flag (1), ``top`` (3) and ``extra`` (6).
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np

from glp_rapids.compressed.format import bits
from glp_rapids.compressed.format.scheme import Function, PartFunctions
from glp_rapids.jit.target import Target

DIRECT = 8
"""Numbers below are symbols themselves."""

SYMBOLS = 256
"""Numbers of 63 bits have 8 + 2 * 60 symbols, each with the flag and without."""

FIELDS = {"degree": 1, "lower": 24, "gap": 8 * 8 * 2, "length": 8 * 8}
"""How many contexts the symbols of a kind have."""

CONTEXTS = sum(FIELDS.values())
DEGREE, LOWER, GAP, LENGTH = (int(first) for first in np.cumsum([0, *FIELDS.values()])[:-1])

LENGTH_BITS, FLAG_BITS, TOP_BITS, EXTRA_BITS = 4, 1, 3, 6
TOP_AT = LENGTH_BITS + FLAG_BITS
EXTRA_AT = TOP_AT + TOP_BITS

ZERO, ONE = np.int64(0), np.int64(1)
ONE_32 = np.uint32(1)
LAST_CLASS = np.int64(7)


@dataclass(frozen=True)
class EntropyFunctions(PartFunctions):
    """Functions of the scheme; who writes or measures passes `code_tables.codes_of` for tables.

    ``open_runs(words, tables, bit, v, count)``
        A cursor on the runs of a part: eight numbers.
    ``next_run(words, tables, cursor, v)``
        The first id of a run, its length, and the cursor behind it; to be called until as many ids
        are read as the part has. First runs below ``v`` come, downwards, then the others.
    ``end_of_runs(cursor)``
        The bit behind the runs that were read.
    ``left_below(cursor)``
        How many ids below ``v`` have not been read.
    ``count_part(counts, indices, first, last, v, settings)``, ``count_number(counts, x, context)``
        Count the symbols that would be written, in ``counts[context * SYMBOLS + symbol]``.
    """

    open_runs: Function
    next_run: Function
    end_of_runs: Function
    left_below: Function
    count_part: Function
    count_number: Function


@functools.cache
def build(target: Target) -> EntropyFunctions:
    """Compile the functions of the scheme."""
    code = bits.build(target)
    device = target.device_function
    open_window, fill, take = code.open_window, code.fill, code.take
    bit_length, write_bits = code.bit_length, code.write_bits
    add = _add(target)
    low_half = np.uint32(0xFFFF)

    @device
    def lower_context(count):
        if count < 16:
            return np.int64(LOWER) + count
        return np.int64(LOWER) + min(np.int64(11) + bit_length(np.uint64(count)), np.int64(23))

    @device
    def gap_context(before, left, upwards):
        length = min(bit_length(np.uint64(left)) - ONE, LAST_CLASS)
        return np.int64(GAP) + ((before * np.int64(8) + length) * np.int64(2)) + upwards

    @device
    def length_context(gap_class, left):
        length = min(bit_length(np.uint64(left - np.int64(2))), LAST_CLASS)
        return np.int64(LENGTH) + gap_class * np.int64(8) + length

    @device
    def class_of(gap):
        return min(bit_length(np.uint64(gap) + np.uint64(1)), LAST_CLASS)

    @device
    def next_number(words, tables, window, have, place, context):
        window, have, place = fill(words, window, have, place)
        head = tables[np.uint64(context)]
        string = np.uint32(window) & np.uint32((ONE_32 << (head & np.uint32(15))) - ONE_32)
        at = np.uint32((head >> np.uint32(4)) + string)
        entry = tables[np.uint64(at >> ONE_32)] >> ((at & ONE_32) << np.uint32(4))
        length = np.uint32(entry & np.uint32(15))
        more = np.uint32(entry >> np.uint32(LENGTH_BITS)) & ONE_32
        top = np.uint64(entry >> np.uint32(TOP_AT)) & np.uint64((1 << TOP_BITS) - 1)
        extra = np.uint32(entry >> np.uint32(EXTRA_AT)) & np.uint32((1 << EXTRA_BITS) - 1)
        window >>= np.uint64(length)
        have = np.uint32(have - length)
        if extra > have:  # of 32 bits or more
            rest, window, have, place = take(words, window, have, place, np.int64(extra))
            return np.int64(top << np.uint64(extra) | rest), more, window, have, place
        rest = window & ((np.uint64(1) << np.uint64(extra)) - np.uint64(1))
        window >>= np.uint64(extra)
        have = np.uint32(have - extra)
        return np.int64(top << np.uint64(extra) | rest), more, window, have, place

    @device
    def bit_at(have, place):
        return np.int64(place << np.uint64(5)) - np.int64(have)

    @device
    def read_number(words, tables, bit, context):
        window, have, place = open_window(words, bit)
        x, _more, _window, have, place = next_number(words, tables, window, have, place, context)
        return x, bit_at(have, place)

    @device
    def open_runs(words, tables, bit, v, count):
        window, have, place = open_window(words, bit)
        folded, _more, window, have, place = next_number(
            words, tables, window, have, place, lower_context(count)
        )
        lower = folded >> ONE
        if folded & ONE:
            lower = count - lower
        lower = min(max(lower, ZERO), count)  # whatever the bits say
        if lower == 0:
            return window, have, place, np.int64(v), count, ZERO, ONE, ZERO
        return window, have, place, np.int64(v) - ONE, lower, count - lower, -ONE, ZERO

    @device
    def next_run(words, tables, cursor, v):
        window, have, place, nearest, left, above, step, before = cursor
        upwards = np.int64(step > 0)
        gap, more, window, have, place = next_number(
            words, tables, window, have, place, gap_context(before, left, upwards)
        )
        before = class_of(gap)
        length = ONE
        if more:
            length, _more, window, have, place = next_number(
                words, tables, window, have, place, length_context(before, left)
            )
            length = max(min(length + np.int64(2), left), ONE)
        first = nearest + step * gap
        nearest = first + step * (length + ONE)
        if upwards == 0:
            first -= length - ONE
        left -= length
        if left == 0 and upwards == 0:
            return first, length, (window, have, place, np.int64(v), above, ZERO, ONE, ZERO)
        return first, length, (window, have, place, nearest, left, above, step, before)

    @device
    def end_of_runs(cursor):
        return bit_at(cursor[1], cursor[2])

    @device
    def left_below(cursor):
        return cursor[4] if cursor[6] < 0 else ZERO

    @device
    def read_part(words, tables, bit, v, count, settings, out, place):
        cursor = open_runs(words, tables, bit, v, count)
        below = left_below(cursor)
        above = below
        read = ZERO
        while read < count:
            first, length, cursor = next_run(words, tables, cursor, v)
            if below > 0:
                below -= length
                to = place + below
            else:
                to = place + above
                above += length
            for one in range(length):
                out[np.uint64(to + one)] = first + one
            read += length
        return end_of_runs(cursor)

    @device
    def skip_part(words, tables, bit, count, settings):
        cursor = open_runs(words, tables, bit, ZERO, count)
        read = ZERO
        while read < count:
            _first, length, cursor = next_run(words, tables, cursor, ZERO)
            read += length
        return end_of_runs(cursor)

    @device
    def split(x, more):
        """Find the symbol of a number and how many bits of it follow."""
        if x < DIRECT:
            return np.int64(2) * x + more, ZERO
        length = bit_length(np.uint64(x))
        extra = length - np.int64(2)
        symbol = np.int64(DIRECT) + np.int64(2) * (length - np.int64(4)) + ((x >> extra) & ONE)
        return np.int64(2) * symbol + more, extra

    @device
    def count_symbol(counts, codes, bit, context, x, more):
        symbol, _extra = split(x, more)
        # Rows are counted before anybody looks whether they ascend.
        symbol = min(symbol, np.int64(SYMBOLS - 1))
        add(counts, context * np.int64(SYMBOLS) + symbol)
        return bit

    @device
    def symbol_size(words, codes, bit, context, x, more):
        symbol, extra = split(x, more)
        word = codes[np.uint64(codes[np.uint64(context)]) + np.uint64(symbol)]
        return bit + np.int64(word >> np.uint32(16)) + extra

    @device
    def write_symbol(words, codes, bit, context, x, more):
        symbol, extra = split(x, more)
        word = codes[np.uint64(codes[np.uint64(context)]) + np.uint64(symbol)]
        bit = write_bits(words, bit, np.uint64(word & low_half), np.int64(word >> np.uint32(16)))
        rest = np.uint64(x) & ((np.uint64(1) << np.uint64(extra)) - np.uint64(1))
        return write_bits(words, bit, rest, extra) if extra > 0 else bit

    def visitor(put):
        """Compile what puts every number of a part."""

        @device
        def visit(sink, codes, bit, indices, first, last, v):
            count = np.int64(last - first)
            middle, end = first, last
            while middle < end:
                half_way = (middle + end) >> ONE
                if indices[np.uint64(half_way)] < v:
                    middle = half_way + ONE
                else:
                    end = half_way
            lower = np.int64(middle - first)
            folded = ONE + np.int64(2) * (count - lower)
            if np.int64(2) * lower <= count:
                folded = np.int64(2) * lower
            bit = put(sink, codes, bit, lower_context(count), folded, ZERO)
            at, step, left, before = middle - ONE, -ONE, lower, ZERO
            nearest = np.int64(v) - ONE
            upwards = ZERO
            while True:
                if left == 0:
                    if upwards == 1:
                        return bit
                    at, step, left, before = middle, ONE, count - lower, ZERO
                    nearest = np.int64(v)
                    upwards = ONE
                    continue
                here = np.int64(indices[np.uint64(at)])
                length = ONE
                while length < left:
                    if indices[np.uint64(at + step * length)] != here + step * length:
                        break
                    length += ONE
                gap = (here - nearest) * step
                more = np.int64(length > 1)
                bit = put(sink, codes, bit, gap_context(before, left, upwards), gap, more)
                before = class_of(gap)
                if length > 1:
                    context = length_context(before, left)
                    bit = put(sink, codes, bit, context, length - np.int64(2), ZERO)
                at += step * length
                left -= length
                nearest = here + step * (length + ONE)

        return visit

    count_all, size_all, write_all = map(visitor, (count_symbol, symbol_size, write_symbol))

    @device
    def count_part(counts, indices, first, last, v, settings):
        count_all(counts, counts, ZERO, indices, first, last, v)

    @device
    def part_size(codes, indices, first, last, v, settings):
        return size_all(codes, codes, ZERO, indices, first, last, v)

    @device
    def write_part(words, codes, bit, indices, first, last, v, settings):
        return write_all(words, codes, bit, indices, first, last, v)

    @device
    def count_number(counts, x, context):
        count_symbol(counts, counts, ZERO, context, x, ZERO)

    @device
    def number_size(codes, x, context):
        return symbol_size(codes, codes, ZERO, context, x, ZERO)

    @device
    def write_number(words, codes, bit, x, context):
        return write_symbol(words, codes, bit, context, x, ZERO)

    return EntropyFunctions(
        read_number=read_number, open_runs=open_runs, next_run=next_run, end_of_runs=end_of_runs,
        left_below=left_below, read_part=read_part, skip_part=skip_part, count_part=count_part,
        part_size=part_size, write_part=write_part, count_number=count_number,
        number_size=number_size, write_number=write_number,
    )  # fmt: skip


def _add(target: Target):
    """Choose how a processor counts where other threads may count the same."""
    if target.name == "cpu":

        def add(counts, place):
            counts[place] += 1

    else:
        from glp_rapids.jit.cuda import cuda

        def add(counts, place):
            cuda.atomic.add(counts, place, 1)

    return target.device_function(add)
