"""The scheme "cgr": intervals and residuals, every number in the code that suits its kind.

As in CGR (Sha, Li, Tan, SIGMOD 2019); `layout` says what a part looks like.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np

from glp_rapids.compressed.format import bits, runs
from glp_rapids.compressed.format.scheme import Function, NumberFunctions, PartFunctions
from glp_rapids.jit.target import Target

ZERO, ONE = np.int64(0), np.int64(1)
NONE = np.int64(np.iinfo(np.int64).max)  # beyond every id


@dataclass(frozen=True)
class CgrFunctions(PartFunctions):
    """Functions of the scheme.

    ``open_part(words, tables, bit, count, settings)``
        The number of intervals of a part, their bit, the number of residuals, their bit.
    ``read_interval(words, tables, bit, v, number, beyond, settings)``
        Interval ``number`` of a part: the first id, the id behind the last, the bit behind the
        interval; ``beyond`` is the id behind the interval before, if there is one.
    ``read_residual(words, tables, bit, v, number, before, settings)``
        Residual ``number`` of a part and the bit behind it; ``before`` is the one before.
    """

    open_part: Function
    read_interval: Function
    read_residual: Function


@functools.cache
def build(target: Target) -> CgrFunctions:
    """Compile the functions of the scheme."""
    numbers = _numbers(target)
    return CgrFunctions(
        **vars(numbers), **_readers(numbers.read_number, target), **_writers(numbers, target)
    )


def _numbers(target: Target) -> NumberFunctions:
    code = bits.build(target)
    device = target.device_function
    read_code, size, write = code.read_code, code.code_size, code.write_code

    @device
    def read_number(words, tables, bit, code):
        return read_code(words, bit, code)

    @device
    def number_size(tables, x, code):
        return size(x, code)

    @device
    def write_number(words, tables, bit, x, code):
        return write(words, bit, x, code)

    return NumberFunctions(read_number, number_size, write_number)


def _readers(read_number: Function, target: Target) -> dict[str, Function]:
    device = target.device_function
    unfold = bits.build(target).unfold

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
    def read_residual(words, tables, bit, v, number, before, settings):
        if number == 0:
            x, bit = read_number(words, tables, bit, settings.first)
            return v + unfold(x), bit
        x, bit = read_number(words, tables, bit, settings.gap)
        return before + x + ONE, bit

    @device
    def read_part(words, tables, bit, v, count, settings, out, place):
        intervals, interval_bit, residuals, bit = open_part(words, tables, bit, count, settings)
        residual, beyond, read, end = NONE, ZERO, ZERO, place + count
        if residuals > 0:
            residual, bit = read_residual(words, tables, bit, v, read, ZERO, settings)
        # Interval by interval, so that threads with parts of their own read intervals together.
        for number in range(intervals + ONE):
            start = NONE
            if number < intervals:
                start, beyond, interval_bit = read_interval(
                    words, tables, interval_bit, v, number, beyond, settings
                )
            while residual < start and place < end:
                out[np.uint64(place)] = residual
                place += ONE
                read += ONE
                if read < residuals:
                    residual, bit = read_residual(words, tables, bit, v, read, residual, settings)
                else:
                    residual = NONE
            if number < intervals:
                for i in range(min(beyond - start, end - place)):
                    out[np.uint64(place + i)] = start + i
                place += beyond - start
        return bit

    @device
    def skip_part(words, tables, bit, count, settings):
        _intervals, _bit, residuals, bit = open_part(words, tables, bit, count, settings)
        for number in range(residuals):
            _residual, bit = read_residual(words, tables, bit, ZERO, number, ZERO, settings)
        return bit

    return {
        "open_part": open_part,
        "read_interval": read_interval,
        "read_residual": read_residual,
        "read_part": read_part,
        "skip_part": skip_part,
    }


def _writers(numbers: NumberFunctions, target: Target) -> dict[str, Function]:
    device = target.device_function
    fold = bits.build(target).fold
    number_size, write_number = numbers.number_size, numbers.write_number
    run = runs.build(target)
    end_of_run, shortest_interval = run.end_of_run, run.shortest_interval
    next_residual = run.next_residual

    @device
    def interval_numbers(indices, i, v, number, beyond, settings):
        """Find the code of the start of the interval at place i, and the number in that code."""
        start = np.int64(indices[np.uint64(i)])
        if number == 0:
            return settings.first, fold(start - v)
        return settings.start, start - beyond - ONE

    @device
    def part_size(tables, indices, first, last, v, settings):
        shortest = shortest_interval(last - first, settings)
        intervals, beyond, residuals, before, size = ZERO, ZERO, ZERO, ZERO, ZERO
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
                    size += number_size(tables, this - before - ONE, settings.gap)
                before = this
                residuals += ONE
                i += ONE
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
    def write_part(words, tables, bit, indices, first, last, v, settings):
        shortest = shortest_interval(last - first, settings)
        if shortest <= last - first:
            bit = write_intervals(words, tables, bit, indices, first, last, v, shortest, settings)
        i, run = next_residual(indices, first, first, last, shortest)
        if i == last:
            return bit
        before = np.int64(indices[np.uint64(i)])
        bit = write_number(words, tables, bit, fold(before - v), settings.first)
        i, run = next_residual(indices, i + ONE, run, last, shortest)
        while i < last:
            this = np.int64(indices[np.uint64(i)])
            bit = write_number(words, tables, bit, this - before - ONE, settings.gap)
            before = this
            i, run = next_residual(indices, i + ONE, run, last, shortest)
        return bit

    return {"part_size": part_size, "write_part": write_part}
