"""The scheme "packed": numbers by class of equal width, the classes of a part before its bits.

A number is of one of eight classes, which three bits name; then come as many bits as the numbers of
that class have, its *width*. The number is what these say more than the first one of its class, the
*base*. Widths are chosen for the graph and for each kind of number, in this order::

    degree, count, start, length, first, gap   as under "cgr"
    rest                                       how many residuals a part has

``tables`` holds two words for every class, kind after kind: the lower 32 bits of the base; and the
width in the lowest 6 bits, above it the rest of the base. The first base of a kind is 0, any other
that of the class before and ``1 << width`` of it more, so each number has one form. A part is::

    number of intervals    of the kind ``count``, as under "cgr"
    number of residuals    of the kind ``rest``, if there are intervals
    classes                three bits for each of the numbers that follow
    bits                   of the numbers, in the same order
                             start and length of every interval as under "cgr", but no length of
                             the last one, which has what is left
                             the residuals as under "cgr"

Classes come first so that where each number begins is a sum of widths: the threads of a warp read a
number each. And nothing has to be looked for bit by bit, as the ends of codes under "cgr" are.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np

from glp_rapids.compressed.format import bits, runs
from glp_rapids.compressed.format.scheme import Function, NumberFunctions, PartFunctions
from glp_rapids.jit.target import Target

KINDS = ("degree", "count", "start", "length", "first", "gap", "rest")
DEGREE, COUNT, START, LENGTH, FIRST, GAP, REST = (np.int64(i) for i in range(len(KINDS)))
CLASS_BITS = 3
CLASSES = 1 << CLASS_BITS
WIDTH_BITS = 6  # in a word of the tables
MOST_BITS = 58  # of a base

ZERO, ONE, TWO = np.int64(0), np.int64(1), np.int64(2)
NONE = np.int64(np.iinfo(np.int64).max)  # beyond every id
THREE = np.int64(CLASS_BITS)


@dataclass(frozen=True)
class ClassFunctions(NumberFunctions):
    """Functions on single numbers of the scheme.

    ``read_apart(words, tables, classes, bit, kind)``
        A number, int64, whose class and whose bits are at two places, and the bit behind it.
    ``class_at(tables, kind, name)``
        The base and the width of a class, int64.
    ``write_apart(words, tables, classes, bit, x, kind)``
        Put a number so; give the bit behind it.
    """

    class_at: Function
    read_apart: Function
    write_apart: Function


@dataclass(frozen=True)
class PackedFunctions(PartFunctions, ClassFunctions):
    """Functions of the scheme.

    ``open_part(words, tables, bit, count, settings)``
        The number of intervals of a part, that of its residuals, that of the numbers of its
        intervals, the bit of the classes, and that of the bits.
    ``read_interval``, ``read_residual``
        See there.
    """

    open_part: Function
    read_interval: Function
    read_residual: Function


@functools.cache
def build(target: Target) -> PackedFunctions:
    """Compile the functions of the scheme."""
    numbers = _numbers(target)
    return PackedFunctions(
        **vars(numbers), **_readers(numbers, target), **_writers(numbers, target)
    )


def _numbers(target: Target) -> ClassFunctions:
    code = bits.build(target)
    device = target.device_function
    read_bits, write_bits = code.read_bits, code.write_bits
    width_mask, base_shift = np.uint64((1 << WIDTH_BITS) - 1), np.uint64(32 - WIDTH_BITS)
    high_mask = np.uint64(0xFFFF_FFFF & ~((1 << WIDTH_BITS) - 1))

    @device
    def class_at(tables, kind, name):
        place = np.uint64((kind * np.int64(CLASSES) + name) * TWO)
        low, high = np.uint64(tables[place]), np.uint64(tables[place + np.uint64(1)])
        return np.int64(low | ((high & high_mask) << base_shift)), np.int64(high & width_mask)

    @device
    def class_of(tables, x, kind):
        """Find the class of a number, its base and its width."""
        name, step = ZERO, np.int64(CLASSES // 2)
        while step > 0:
            if x >= class_at(tables, kind, name + step)[0]:
                name += step
            step >>= ONE
        base, width = class_at(tables, kind, name)
        return name, base, width

    @device
    def read_apart(words, tables, classes, bit, kind):
        base, width = class_at(tables, kind, np.int64(read_bits(words, classes, THREE)))
        return base + np.int64(read_bits(words, bit, width)), bit + width

    @device
    def read_number(words, tables, bit, kind):
        return read_apart(words, tables, bit, bit + THREE, kind)

    @device
    def number_size(tables, x, kind):
        _name, _base, width = class_of(tables, x, kind)
        return THREE + width

    @device
    def write_apart(words, tables, classes, bit, x, kind):
        name, base, width = class_of(tables, x, kind)
        write_bits(words, classes, np.uint64(name), THREE)
        return write_bits(words, bit, np.uint64(x - base), width)

    @device
    def write_number(words, tables, bit, x, kind):
        return write_apart(words, tables, bit, bit + THREE, x, kind)

    return ClassFunctions(
        class_at=class_at,
        read_apart=read_apart,
        read_number=read_number,
        number_size=number_size,
        write_apart=write_apart,
        write_number=write_number,
    )


def _readers(numbers: ClassFunctions, target: Target) -> dict[str, Function]:
    device = target.device_function
    unfold = bits.build(target).unfold
    read_number, read_apart = numbers.read_number, numbers.read_apart

    @device
    def open_part(words, tables, bit, count, settings):
        if settings.min_interval == 0 or count < settings.min_interval:
            return ZERO, count, ZERO, bit, bit + THREE * count
        intervals, bit = read_number(words, tables, bit, COUNT)
        if intervals == 0:
            return ZERO, count, ZERO, bit, bit + THREE * count
        residuals, bit = read_number(words, tables, bit, REST)
        front = TWO * intervals - ONE
        return intervals, residuals, front, bit, bit + THREE * (front + residuals)

    @device
    def kind_of(number, front):
        if number == 0 or number == front:
            return FIRST
        if number > front:
            return GAP
        return LENGTH if number & ONE else START

    @device
    def skip_part(words, tables, bit, count, settings):
        _intervals, residuals, front, classes, bit = open_part(words, tables, bit, count, settings)
        for number in range(front + residuals):
            _x, bit = read_apart(words, tables, classes, bit, kind_of(number, front))
            classes += THREE
        return bit

    @device
    def read_interval(words, tables, classes, bit, v, number, intervals, beyond, left, settings):
        """Read the first id of an interval, the id behind the last, and the bit behind it.

        ``beyond`` is the id behind the interval before; ``left``, how many ids intervals have yet.
        """
        classes += THREE * (TWO * number)
        if number == 0:
            x, bit = read_apart(words, tables, classes, bit, FIRST)
            start = v + unfold(x)
        else:
            x, bit = read_apart(words, tables, classes, bit, START)
            start = beyond + x + ONE
        if number == intervals - ONE:
            return start, start + left, bit
        length, bit = read_apart(words, tables, classes + THREE, bit, LENGTH)
        return start, start + length + settings.min_interval, bit

    @device
    def read_residual(words, tables, classes, bit, v, number, before):
        """Read a residual and the bit behind it; ``classes`` is the bit of the class of its own."""
        if number == 0:
            x, bit = read_apart(words, tables, classes, bit, FIRST)
            return v + unfold(x), bit
        x, bit = read_apart(words, tables, classes, bit, GAP)
        return before + x + ONE, bit

    @device
    def read_part(words, tables, bit, v, count, settings, out, place):
        intervals, residuals, front, classes, interval_bit = open_part(
            words, tables, bit, count, settings
        )
        bit = interval_bit
        for number in range(front):
            _x, bit = read_apart(
                words, tables, classes + THREE * number, bit, kind_of(number, front)
            )
        residual, beyond, left, read = NONE, ZERO, count - residuals, ZERO
        if residuals > 0:
            residual, bit = read_residual(
                words, tables, classes + THREE * front, bit, v, read, ZERO
            )
        end = place + count
        for number in range(intervals + ONE):
            start = NONE
            if number < intervals:
                start, beyond, interval_bit = read_interval(
                    words, tables, classes, interval_bit, v, number, intervals, beyond, left,
                    settings,
                )  # fmt: skip
                left -= beyond - start
            while residual < start and place < end:
                out[np.uint64(place)] = residual
                place += ONE
                read += ONE
                if read < residuals:
                    residual, bit = read_residual(
                        words, tables, classes + THREE * (front + read), bit, v, read, residual
                    )
                else:
                    residual = NONE
            if number < intervals:
                for i in range(min(beyond - start, end - place)):
                    out[np.uint64(place + i)] = start + i
                place += beyond - start
        return bit

    return {
        "open_part": open_part,
        "skip_part": skip_part,
        "read_interval": read_interval,
        "read_residual": read_residual,
        "read_part": read_part,
    }


def _writers(numbers: ClassFunctions, target: Target) -> dict[str, Function]:
    device = target.device_function
    fold = bits.build(target).fold
    number_size, write_number = numbers.number_size, numbers.write_number
    write_apart = numbers.write_apart
    run = runs.build(target)
    end_of_run, shortest_interval = run.end_of_run, run.shortest_interval
    next_residual = run.next_residual

    @device
    def counted(indices, first, last, shortest):
        """Read the number of intervals and that of residuals."""
        intervals, residuals, i = ZERO, ZERO, first
        while i < last:
            end = end_of_run(indices, i, last)
            if end - i >= shortest:
                intervals += ONE
            else:
                residuals += end - i
            i = end
        return intervals, residuals

    @device
    def part_size(tables, indices, first, last, v, settings):
        shortest = shortest_interval(last - first, settings)
        intervals, beyond, residuals, before, size = ZERO, ZERO, ZERO, ZERO, ZERO
        length, i = ZERO, first
        while i < last:
            end = end_of_run(indices, i, last)
            if end - i >= shortest:
                start = np.int64(indices[np.uint64(i)])
                if intervals == 0:
                    size += number_size(tables, fold(start - v), FIRST)
                else:
                    size += number_size(tables, start - beyond - ONE, START)
                    size += number_size(tables, length, LENGTH)
                length, beyond = end - i - shortest, start + end - i
                intervals += ONE
                i = end
            while i < end:
                this = np.int64(indices[np.uint64(i)])
                if residuals == 0:
                    size += number_size(tables, fold(this - v), FIRST)
                else:
                    size += number_size(tables, this - before - ONE, GAP)
                before = this
                residuals += ONE
                i += ONE
        if shortest <= last - first:
            size += number_size(tables, intervals, COUNT)
        if intervals > 0:
            size += number_size(tables, residuals, REST)
        return size

    @device
    def write_intervals(words, tables, classes, bit, indices, first, last, v, intervals, shortest):
        number, beyond, i = ZERO, ZERO, first
        while number < intervals:
            end = end_of_run(indices, i, last)
            if end - i >= shortest:
                start = np.int64(indices[np.uint64(i)])
                if number == 0:
                    bit = write_apart(words, tables, classes, bit, fold(start - v), FIRST)
                else:
                    bit = write_apart(words, tables, classes, bit, start - beyond - ONE, START)
                classes += THREE
                number += ONE
                beyond = start + end - i
                if number < intervals:
                    bit = write_apart(words, tables, classes, bit, end - i - shortest, LENGTH)
                    classes += THREE
            i = end
        return bit

    @device
    def write_part(words, tables, bit, indices, first, last, v, settings):
        shortest = shortest_interval(last - first, settings)
        intervals, residuals = counted(indices, first, last, shortest)
        if shortest <= last - first:
            bit = write_number(words, tables, bit, intervals, COUNT)
        front = ZERO
        if intervals > 0:
            bit = write_number(words, tables, bit, residuals, REST)
            front = TWO * intervals - ONE
        classes, bit = bit, bit + THREE * (front + residuals)
        bit = write_intervals(
            words, tables, classes, bit, indices, first, last, v, intervals, shortest
        )
        classes += THREE * front
        i, end = next_residual(indices, first, first, last, shortest)
        before, number = ZERO, ZERO
        while number < residuals:
            this = np.int64(indices[np.uint64(i)])
            if number == 0:
                bit = write_apart(words, tables, classes, bit, fold(this - v), FIRST)
            else:
                bit = write_apart(words, tables, classes, bit, this - before - ONE, GAP)
            classes += THREE
            before = this
            number += ONE
            i, end = next_residual(indices, i + ONE, end, last, shortest)
        return bit

    return {"part_size": part_size, "write_part": write_part}
