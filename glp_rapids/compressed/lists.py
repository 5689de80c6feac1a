"""One neighbour list in the stream: read, skipped, measured and written, whatever the scheme.

`glp_rapids.compressed.layout` says what lists look like, and `glp_rapids.compressed.schemes` how
numbers and gaps are coded. The functions are scalar: a thread works on a list, or on a part of one.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace

import numpy as np

from glp_rapids.compressed import bits, entropy, schemes
from glp_rapids.compressed.layout import GROUP, WIDTH_BITS
from glp_rapids.propagation.compilation import Target

ZERO, ONE = np.int64(0), np.int64(1)
NONE = np.int64(np.iinfo(np.int64).max)  # beyond every id


def _of_intervals(coding: Callable[[Target], SimpleNamespace], target: Target) -> SimpleNamespace:
    """Give the functions on parts that are intervals and residuals, coded in some way."""
    scheme = coding(target)
    return SimpleNamespace(
        read_number=scheme.read_number,
        number_size=scheme.number_size,
        write_number=scheme.write_number,
        **vars(_readers(scheme, target)),
        **vars(_writers(scheme, target)),
    )


PARTS: dict[str, Callable[[Target], SimpleNamespace]] = {
    "cgr": partial(_of_intervals, schemes.cgr),
    "packed": partial(_of_intervals, schemes.packed),
    "entropy": entropy.build,
}


@functools.cache
def build(scheme: str, target: Target) -> SimpleNamespace:
    """Give the compiled functions on lists under a scheme, for compiled code alone to call.

    Bits, vertices, degrees and places are int64; ``settings`` is a `Settings`, ``out`` an array of
    vertices, ``indices`` the entries of a CSR. A bit "of a list" is the one behind its degree.

    ``read_degree(words, tables, bit, settings)``
        A degree and the bit behind it.
    ``read_list(words, tables, bit, v, degree, settings, out, place)``
        Write a list of degree <= max(raw_below, segment) to ``out[place:]``, ascending; give the
        bit behind it.
    ``read_part(words, tables, bit, v, count, settings, out, place)``
        The same with a part of ``count`` entries.
    ``directory(words, bit, degree, settings)``
        Of a longer list: the directory's width, the bit of its first entry, that of the first
        part, and the number of parts.
    ``part_bit(words, bit, degree, part, settings)``
        Where a part of a longer list begins; part number ``number of parts``: where the list ends.
    ``skip_list(words, tables, bit, degree, settings)``
        The bit behind any list.
    ``skip_part(words, tables, bit, count, settings)``
        The bit behind a part.

    Of parts that are intervals and residuals (not under "entropy", which has runs instead):

    ``open_part(words, tables, bit, count, settings)``
        The number of intervals of a part, their bit, the number of residuals, their bit.
    ``read_interval(words, tables, bit, v, number, beyond, settings)``
        Interval ``number`` of a part: the first id, the id behind the last, the bit behind the
        interval; ``beyond`` is the id behind the interval before, if there is one.
    ``open_residuals(words, tables, bit, v, settings)``
        The first residual of a part that has any, and the scheme's gap cursor behind it, to be
        used as: ``gap, cursor = next_gap(words, tables, cursor, settings)``, and then the next
        residual is the one before + gap + 1. ``end_of_gaps(cursor)`` gives a cursor's bit.

    For writers; under "entropy" ``tables`` are then those of `entropy.codes_of`:

    ``part_size(tables, indices, first, last, v, settings)``
        The bits of a part of ``indices[first:last]``.
    ``write_part(words, tables, bit, indices, first, last, v, settings)``
        Put it into words of zeros; give the bit behind it.
    ``write_raw(words, bit, indices, first, last, settings)``
        The same with a list that is left raw.
    ``read_number``, ``number_size``, ``write_number``
        Of the scheme.
    ``read_bits``, ``write_bits``, ``bit_length``
        Of `glp_rapids.compressed.bits`.
    """
    parts = PARTS[scheme](target)
    return SimpleNamespace(**vars(parts), **vars(_lists(parts, target)))


def _lists(parts: SimpleNamespace, target: Target) -> SimpleNamespace:
    """Give the functions on whole lists, made of those on parts."""
    code = bits.build(target)
    device = bits.inner(target)
    read_bits, open_window, take = code.read_bits, code.open_window, code.take
    read_number, read_part, skip_part = parts.read_number, parts.read_part, parts.skip_part
    write_bits = code.write_bits
    width_bits = np.int64(WIDTH_BITS)

    @device
    def read_degree(words, tables, bit, settings):
        return read_number(words, tables, bit, settings.degree)

    @device
    def read_raw(words, bit, degree, settings, out, place):
        window, have, word = open_window(words, bit)
        for i in range(place, place + degree):
            value, window, have, word = take(words, window, have, word, settings.id_bits)
            out[np.uint64(i)] = np.int64(value)
        return bit + degree * settings.id_bits

    @device
    def read_list(words, tables, bit, v, degree, settings, out, place):
        if degree == 0:
            return bit
        if degree <= settings.raw_below:
            return read_raw(words, bit, degree, settings, out, place)
        return read_part(words, tables, bit, v, degree, settings, out, place)

    @device
    def directory(words, bit, degree, settings):
        parts = (degree + settings.segment - ONE) >> settings.segment_shift
        width = np.int64(read_bits(words, bit, width_bits))
        bit += width_bits
        return width, bit, bit + parts * width, parts

    @device
    def part_bit(words, bit, degree, part, settings):
        width, entries, parts_bit, _parts = directory(words, bit, degree, settings)
        if part == 0:
            return parts_bit
        return parts_bit + np.int64(read_bits(words, entries + (part - ONE) * width, width))

    @device
    def skip_list(words, tables, bit, degree, settings):
        if degree == 0:
            return bit
        if degree <= settings.raw_below:
            return bit + degree * settings.id_bits
        if degree > settings.segment:
            width, entries, parts_bit, parts = directory(words, bit, degree, settings)
            return parts_bit + np.int64(read_bits(words, entries + (parts - ONE) * width, width))
        return skip_part(words, tables, bit, degree, settings)

    @device
    def write_raw(words, bit, indices, first, last, settings):
        for i in range(first, last):
            bit = write_bits(words, bit, np.uint64(indices[np.uint64(i)]), settings.id_bits)
        return bit

    return SimpleNamespace(
        read_degree=read_degree,
        read_list=read_list,
        directory=directory,
        part_bit=part_bit,
        skip_list=skip_list,
        write_raw=write_raw,
        write_bits=write_bits,
        read_bits=read_bits,
        bit_length=code.bit_length,
    )


def _readers(scheme: SimpleNamespace, target: Target) -> SimpleNamespace:
    code = bits.build(target)
    device = bits.inner(target)
    unfold = code.unfold
    read_number, next_gap = scheme.read_number, scheme.next_gap
    open_gaps, end_of_gaps, skip_gaps = scheme.open_gaps, scheme.end_of_gaps, scheme.skip_gaps

    @device
    def open_part(words, tables, bit, count, settings):
        if settings.min_interval == 0 or count < settings.min_interval:
            return ZERO, bit, count, bit
        intervals, bit = read_number(words, tables, bit, settings.count)
        begin, residuals = bit, count
        for i in range(intervals):
            start_code = settings.first if i == 0 else settings.start
            _start, bit = read_number(words, tables, bit, start_code)
            length, bit = read_number(words, tables, bit, settings.length)
            residuals -= length + settings.min_interval
        return intervals, begin, residuals, bit

    @device
    def read_interval(words, tables, bit, v, number, beyond, settings):
        x, bit = read_number(words, tables, bit, settings.first if number == 0 else settings.start)
        length, bit = read_number(words, tables, bit, settings.length)
        start = v + unfold(x) if number == 0 else beyond + x + ONE
        return start, start + length + settings.min_interval, bit

    @device
    def open_residuals(words, tables, bit, v, settings):
        x, bit = read_number(words, tables, bit, settings.first)
        return v + unfold(x), open_gaps(words, bit)

    @device
    def read_part(words, tables, bit, v, count, settings, out, place):
        intervals, interval_bit, residuals, bit = open_part(words, tables, bit, count, settings)
        residual, cursor = NONE, open_gaps(words, bit)
        if residuals > 0:
            residual, cursor = open_residuals(words, tables, bit, v, settings)
        beyond, end = ZERO, place + count
        # Interval by interval, so that lanes with parts of their own read intervals together.
        for number in range(intervals + ONE):
            start = NONE
            if number < intervals:
                start, beyond, interval_bit = read_interval(
                    words, tables, interval_bit, v, number, beyond, settings
                )
            while residual < start and place < end:
                out[np.uint64(place)] = residual
                place += ONE
                residuals -= ONE
                if residuals > 0:
                    gap, cursor = next_gap(words, tables, cursor, settings)
                    residual += gap + ONE
                else:
                    residual = NONE
            if number < intervals:
                for i in range(min(beyond - start, end - place)):
                    out[np.uint64(place + i)] = start + i
                place += beyond - start
        return end_of_gaps(cursor)

    @device
    def skip_part(words, tables, bit, count, settings):
        _intervals, _bit, residuals, bit = open_part(words, tables, bit, count, settings)
        if residuals <= 0:
            return bit
        _x, bit = read_number(words, tables, bit, settings.first)
        return skip_gaps(words, tables, bit, residuals - ONE, settings)

    return SimpleNamespace(
        read_part=read_part,
        skip_part=skip_part,
        open_part=open_part,
        read_interval=read_interval,
        open_residuals=open_residuals,
        next_gap=next_gap,
        end_of_gaps=end_of_gaps,
    )


def _writers(scheme: SimpleNamespace, target: Target) -> SimpleNamespace:
    code = bits.build(target)
    device = bits.inner(target)
    fold, bit_length = code.fold, code.bit_length
    number_size, write_number = scheme.number_size, scheme.write_number
    gap_size, last_gaps_size, write_gap = scheme.gap_size, scheme.last_gaps_size, scheme.write_gap
    grouped, group = scheme.grouped, np.int64(GROUP)

    @device
    def end_of_run(indices, i, last):
        """Give the place behind the consecutive ids that begin at place i."""
        i += ONE
        while (
            i < last
            and np.int64(indices[np.uint64(i)]) == np.int64(indices[np.uint64(i - ONE)]) + ONE
        ):
            i += ONE
        return i

    @device
    def shortest_interval(count, settings):
        """Give the ids of the shortest interval that a part may have; too many if it has none."""
        if settings.min_interval == 0 or count < settings.min_interval:
            return count + ONE
        return settings.min_interval

    @device
    def next_residual(indices, i, run, last, shortest):
        """Give the first residual at place i or later, and the end of the run that it is in.

        ``run`` is the end of the run that the residual before was in.
        """
        while i < last and i == run:
            run = end_of_run(indices, i, last)
            if run - i >= shortest:
                i = run
        return i, run

    @device
    def interval_numbers(indices, i, v, number, beyond, settings):
        """Give the code of the start of the interval at place i, and the number in that code."""
        start = np.int64(indices[np.uint64(i)])
        if number == 0:
            return settings.first, fold(start - v)
        return settings.start, start - beyond - ONE

    @device
    def part_size(tables, indices, first, last, v, settings):
        shortest = shortest_interval(last - first, settings)
        intervals, beyond, residuals, before, size, state = ZERO, ZERO, ZERO, ZERO, ZERO, ZERO
        i = first
        while i < last:
            end = end_of_run(indices, i, last)
            if end - i >= shortest:
                start_code, x = interval_numbers(indices, i, v, intervals, beyond, settings)
                size += number_size(tables, x, start_code)
                size += number_size(tables, end - i - shortest, settings.length)
                beyond = np.int64(indices[np.uint64(i)]) + end - i
                intervals += ONE
                i = end
            while i < end:
                this = np.int64(indices[np.uint64(i)])
                if residuals == 0:
                    size += number_size(tables, fold(this - v), settings.first)
                else:
                    gap = this - before - ONE
                    bits, state = gap_size(tables, gap, residuals - ONE, state, settings)
                    size += bits
                before = this
                residuals += ONE
                i += ONE
        if residuals > 0:
            size += last_gaps_size(residuals - ONE, state)
        if shortest <= last - first:
            size += number_size(tables, intervals, settings.count)
        return size

    @device
    def write_intervals(words, tables, bit, indices, first, last, v, shortest, settings):
        intervals, i = ZERO, first
        while i < last:
            end = end_of_run(indices, i, last)
            if end - i >= shortest:
                intervals += ONE
            i = end
        bit = write_number(words, tables, bit, intervals, settings.count)
        number, beyond, i = ZERO, ZERO, first
        while number < intervals:
            end = end_of_run(indices, i, last)
            if end - i >= shortest:
                start_code, x = interval_numbers(indices, i, v, number, beyond, settings)
                bit = write_number(words, tables, bit, x, start_code)
                bit = write_number(words, tables, bit, end - i - shortest, settings.length)
                beyond = np.int64(indices[np.uint64(i)]) + end - i
                number += ONE
            i = end
        return bit

    @device
    def group_width(indices, i, run, last, before, shortest):
        """Give the bits of the largest of the next 8 gaps, from the residual at place i on."""
        largest, number = ZERO, ZERO
        while i < last and number < group:
            this = np.int64(indices[np.uint64(i)])
            largest = max(largest, this - before - ONE)
            before = this
            number += ONE
            i, run = next_residual(indices, i + ONE, run, last, shortest)
        return bit_length(np.uint64(largest))

    @device
    def write_part(words, tables, bit, indices, first, last, v, settings):
        shortest = shortest_interval(last - first, settings)
        if shortest <= last - first:
            bit = write_intervals(words, tables, bit, indices, first, last, v, shortest, settings)
        i, run = next_residual(indices, first, first, last, shortest)
        if i == last:
            return bit
        before, number, state = np.int64(indices[np.uint64(i)]), ZERO, ZERO
        bit = write_number(words, tables, bit, fold(before - v), settings.first)
        i, run = next_residual(indices, i + ONE, run, last, shortest)
        while i < last:
            if grouped and number & (group - ONE) == 0:
                state = group_width(indices, i, run, last, before, shortest)
            this = np.int64(indices[np.uint64(i)])
            gap = this - before - ONE
            bit, state = write_gap(words, tables, bit, gap, number, state, settings)
            before = this
            number += ONE
            i, run = next_residual(indices, i + ONE, run, last, shortest)
        return bit

    return SimpleNamespace(part_size=part_size, write_part=write_part)
