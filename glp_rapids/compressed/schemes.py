"""How schemes code the numbers and the gaps of a list; what a list is made of is in ``lists``.

A scheme is a function that takes a target and gives compiled functions: those of `cgr`.
"""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from glp_rapids.compressed import bits
from glp_rapids.compressed.layout import GROUP, WIDTH_BITS
from glp_rapids.propagation.compilation import Target

ZERO, ONE = np.int64(0), np.int64(1)


def cgr(target: Target) -> SimpleNamespace:
    """Give how the scheme "cgr" codes: every number in a code, gap after gap.

    ``read_number(words, tables, bit, code)``
        A natural number, int64, and the bit behind it; ``code`` is a field of `Settings`.
    ``number_size(tables, x, code)``, ``write_number(words, tables, bit, x, code)``
        Its bits; the bit behind it, once written.
    ``open_gaps(words, bit)``
        A gap cursor at a bit: three numbers that ``next_gap`` takes and gives.
    ``next_gap(words, tables, cursor, settings)``
        A gap, int64, and the cursor behind it.
    ``end_of_gaps(cursor)``
        The bit behind the gaps that were read.
    ``skip_gaps(words, tables, bit, count, settings)``
        The bit behind so many gaps.
    ``gap_size(tables, gap, number, state, settings)``
        What gap number ``number`` adds to the size, and the state to ask about the next one with;
        it is asked about all gaps of a part in their order, from 0 with state 0.
    ``last_gaps_size(count, state)``
        What is to be added when those were all.
    ``write_gap(words, tables, bit, gap, number, state, settings)``
        The bit behind a gap, once written, and the state for the next one.
    ``grouped``
        Whether gaps come in groups of 8: then the state, at the first of a group, is the width of
        the largest.
    """
    code = bits.build(target)
    device = bits.inner(target)
    read_code, skip_code = code.read_code, code.skip_code
    size, write = code.code_size, code.write_code

    @device
    def read_number(words, tables, bit, code):
        return read_code(words, bit, code)

    @device
    def number_size(tables, x, code):
        return size(x, code)

    @device
    def write_number(words, tables, bit, x, code):
        return write(words, bit, x, code)

    # A cursor carries where it is and no bits: what it costs to load those again, loads of several
    # gaps at a time make good.
    @device
    def open_gaps(words, bit):
        return bit, ZERO, ZERO

    @device
    def end_of_gaps(cursor):
        return cursor[0]

    @device
    def next_gap(words, tables, cursor, settings):
        gap, bit = read_code(words, cursor[0], settings.gap)
        return gap, (bit, ZERO, ZERO)

    @device
    def skip_gaps(words, tables, bit, count, settings):
        for _ in range(count):
            bit = skip_code(words, bit, settings.gap)
        return bit

    @device
    def gap_size(tables, gap, number, state, settings):
        return size(gap, settings.gap), ZERO

    @device
    def last_gaps_size(count, state):
        return ZERO

    @device
    def write_gap(words, tables, bit, gap, number, state, settings):
        return write(words, bit, gap, settings.gap), ZERO

    return SimpleNamespace(
        read_number=read_number,
        number_size=number_size,
        write_number=write_number,
        open_gaps=open_gaps,
        next_gap=next_gap,
        end_of_gaps=end_of_gaps,
        skip_gaps=skip_gaps,
        gap_size=gap_size,
        last_gaps_size=last_gaps_size,
        write_gap=write_gap,
        grouped=False,
    )


def packed(target: Target) -> SimpleNamespace:
    """Give how the scheme "packed" codes: as `cgr`, but groups of gaps share a width."""
    code = bits.build(target)
    device = bits.inner(target)
    read_bits, write_bits, bit_length = code.read_bits, code.write_bits, code.bit_length
    group, width_bits = np.int64(GROUP), np.int64(WIDTH_BITS)

    @device
    def next_gap(words, tables, cursor, settings):
        bit, width, left = cursor
        if left == 0:
            width, left = np.int64(read_bits(words, bit, width_bits)), group
            bit += width_bits
        return np.int64(read_bits(words, bit, width)), (bit + width, width, left - ONE)

    @device
    def skip_gaps(words, tables, bit, count, settings):
        while count > 0:
            width = np.int64(read_bits(words, bit, width_bits))
            bit += width_bits + width * min(count, group)
            count -= group
        return bit

    @device
    def gap_size(tables, gap, number, widest, settings):
        widest = max(widest, bit_length(np.uint64(gap)))
        if number & (group - ONE) == group - ONE:
            return width_bits + widest * group, ZERO
        return ZERO, widest

    @device
    def last_gaps_size(count, widest):
        rest = count & (group - ONE)
        return width_bits + widest * rest if rest > 0 else ZERO

    @device
    def write_gap(words, tables, bit, gap, number, width, settings):
        if number & (group - ONE) == 0:
            bit = write_bits(words, bit, np.uint64(width), width_bits)
        return write_bits(words, bit, np.uint64(gap), width), width

    return SimpleNamespace(
        **{
            **vars(cgr(target)),
            "next_gap": next_gap,
            "skip_gaps": skip_gaps,
            "gap_size": gap_size,
            "last_gaps_size": last_gaps_size,
            "write_gap": write_gap,
            "grouped": True,
        }
    )
