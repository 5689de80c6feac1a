"""A walk through one part of a list that trusts nothing, by scheme; see `verify`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from glp_rapids.compressed.format.cgr import CgrFunctions
from glp_rapids.compressed.format.entropy import EntropyFunctions
from glp_rapids.compressed.format.packed import CLASS_BITS, COUNT, REST, PackedFunctions
from glp_rapids.jit.target import Target

PARTS = (
    "degrees", "interval counts", "intervals", "residuals", "raw", "directories", "blocks"
)  # fmt: skip
DEGREES, COUNTS, INTERVALS, RESIDUALS, RAW, DIRECTORIES, FILLING = range(len(PARTS))

TRUNCATED, DEGREE, INTERVAL, RANGE, DIRECTORY, FILLED = range(1, 7)
PROBLEMS = {
    TRUNCATED: "it goes on behind the end of its block",
    DEGREE: "it has more entries than there are vertices",
    INTERVAL: "its intervals do not fit together",
    RANGE: "an entry does not ascend, or is no vertex",
    DIRECTORY: "its parts are not where its directory says",
    FILLED: "its block goes on behind it",
}

ZERO, ONE = np.int64(0), np.int64(1)
NONE = np.int64(np.iinfo(np.int64).max)


def _of_codes(functions: CgrFunctions, target: Target) -> Any:
    """Compile the walk through a part of "cgr"."""
    device = target.device_function
    read_number, read_interval = functions.read_number, functions.read_interval
    read_residual = functions.read_residual

    @device
    def through_intervals(work, bit, end, v, count, largest, tally):
        """Return the bit behind the intervals, their number, and how many entries are left."""
        settings, begin = work.settings, bit
        if settings.min_interval == 0 or count < settings.min_interval:
            return bit, ZERO, count
        intervals, bit = read_number(work.words, work.tables, bit, settings.count)
        if bit > end:
            return np.int64(-TRUNCATED), ZERO, count
        if intervals < 0 or intervals > count:
            return np.int64(-INTERVAL), ZERO, count
        tally[COUNTS] += bit - begin
        begin, beyond = bit, largest
        for number in range(intervals):
            start, after, bit = read_interval(
                work.words, work.tables, bit, v, number, beyond, settings
            )
            if bit > end:
                return np.int64(-TRUNCATED), ZERO, count
            length = after - start
            if (start <= beyond and number > 0) or length < settings.min_interval or length > count:
                return np.int64(-INTERVAL), ZERO, count
            if start <= largest or start >= work.batch.vertices or after > work.batch.vertices:
                return np.int64(-RANGE), ZERO, count
            beyond = after
            count -= length
        tally[INTERVALS] += bit - begin
        return bit, intervals, count

    @device
    def through(work, bit, end, v, count, largest, tally):
        settings, begin = work.settings, bit
        bit, intervals, residuals = through_intervals(work, bit, end, v, count, largest, tally)
        if bit < 0:
            return bit, largest
        number, start, after, interval_bit = ZERO, NONE, largest + ONE, bit
        if intervals > 0:
            _x, interval_bit = read_number(work.words, work.tables, begin, settings.count)
            start, after, interval_bit = read_interval(
                work.words, work.tables, interval_bit, v, number, after, settings
            )
        begin = bit
        if residuals > 0:
            residual = -ONE
            for i in range(residuals):
                before = residual
                residual, bit = read_residual(work.words, work.tables, bit, v, i, before, settings)
                if bit > end:
                    return np.int64(-TRUNCATED), largest
                if i > 0 and residual <= before:  # a gap beyond all numbers
                    return np.int64(-RANGE), largest
                if residual <= largest or residual >= work.batch.vertices:
                    return np.int64(-RANGE), largest
                while after <= residual and number + ONE < intervals:
                    number += ONE
                    start, after, interval_bit = read_interval(
                        work.words, work.tables, interval_bit, v, number, after, settings
                    )
                if start <= residual < after:
                    return np.int64(-RANGE), largest
                largest = residual
            tally[RESIDUALS] += bit - begin
        while number + ONE < intervals:
            number += ONE
            start, after, interval_bit = read_interval(
                work.words, work.tables, interval_bit, v, number, after, settings
            )
        return bit, max(largest, after - ONE)

    return through


def _of_classes(functions: PackedFunctions, target: Target) -> Any:
    """Compile the walk through a part of "packed"."""
    device = target.device_function
    read_number, read_interval = functions.read_number, functions.read_interval
    read_residual = functions.read_residual
    three, two = np.int64(CLASS_BITS), np.int64(2)

    @device
    def through_counts(work, bit, end, count):
        """Count intervals, or return minus what is wrong; then residuals and the bit behind."""
        settings = work.settings
        if settings.min_interval == 0 or count < settings.min_interval:
            return ZERO, count, bit
        intervals, bit = read_number(work.words, work.tables, bit, COUNT)
        if bit > end:
            return np.int64(-TRUNCATED), count, bit
        if intervals < 0 or intervals > count:
            return np.int64(-INTERVAL), count, bit
        if intervals == 0:
            return ZERO, count, bit
        residuals, bit = read_number(work.words, work.tables, bit, REST)
        if bit > end:
            return np.int64(-TRUNCATED), count, bit
        if residuals < 0 or residuals > count - intervals * settings.min_interval:
            return np.int64(-INTERVAL), count, bit
        return intervals, residuals, bit

    @device
    def through_intervals(work, classes, bit, end, v, intervals, left, largest):
        """Return the bit behind the intervals, which have ``left`` ids."""
        settings, beyond = work.settings, largest
        for number in range(intervals):
            start, after, bit = read_interval(
                work.words, work.tables, classes, bit, v, number, intervals, beyond, left, settings
            )
            if bit > end:
                return np.int64(-TRUNCATED)
            length = after - start
            if (start <= beyond and number > 0) or length < settings.min_interval or length > left:
                return np.int64(-INTERVAL)
            if start <= largest or start >= work.batch.vertices or after > work.batch.vertices:
                return np.int64(-RANGE)
            beyond = after
            left -= length
        return bit

    @device
    def through(work, bit, end, v, count, largest, tally):
        settings, begin = work.settings, bit
        intervals, residuals, classes = through_counts(work, bit, end, count)
        if intervals < 0:
            return intervals, largest
        tally[COUNTS] += classes - begin
        front = two * intervals - ONE if intervals > 0 else ZERO
        interval_bit = classes + three * (front + residuals)
        if interval_bit > end:
            return np.int64(-TRUNCATED), largest
        left = count - residuals
        bit = through_intervals(work, classes, interval_bit, end, v, intervals, left, largest)
        if bit < 0:
            return bit, largest
        tally[INTERVALS] += bit - interval_bit + three * front
        begin = bit
        number, start, after = ZERO, NONE, largest + ONE
        if intervals > 0:
            start, after, interval_bit = read_interval(
                work.words, work.tables, classes, interval_bit, v, number, intervals, after, left,
                settings,
            )  # fmt: skip
            left -= after - start
        residual = -ONE
        for i in range(residuals):
            before = residual
            residual, bit = read_residual(
                work.words, work.tables, classes + three * (front + i), bit, v, i, before
            )
            if bit > end:
                return np.int64(-TRUNCATED), largest
            if i > 0 and residual <= before:
                return np.int64(-RANGE), largest
            if residual <= largest or residual >= work.batch.vertices:
                return np.int64(-RANGE), largest
            while after <= residual and number + ONE < intervals:
                number += ONE
                start, after, interval_bit = read_interval(
                    work.words, work.tables, classes, interval_bit, v, number, intervals, after,
                    left, settings,
                )  # fmt: skip
                left -= after - start
            if start <= residual < after:
                return np.int64(-RANGE), largest
            largest = residual
        tally[RESIDUALS] += bit - begin + three * residuals
        while number + ONE < intervals:
            number += ONE
            start, after, interval_bit = read_interval(
                work.words, work.tables, classes, interval_bit, v, number, intervals, after, left,
                settings,
            )  # fmt: skip
            left -= after - start
        return bit, max(largest, after - ONE)

    return through


def _of_runs(functions: EntropyFunctions, target: Target) -> Any:
    """Compile the walk through a part of "entropy", of runs."""
    device = target.device_function
    open_runs, next_run = functions.open_runs, functions.next_run
    end_of_runs, left_below = functions.end_of_runs, functions.left_below

    @device
    def through(work, bit, end, v, count, largest, tally):
        cursor = open_runs(work.words, work.tables, bit, v, count)
        here = end_of_runs(cursor)
        if here > end:
            return np.int64(-TRUNCATED), largest
        tally[COUNTS] += here - bit
        bit, below, read = here, left_below(cursor), ZERO
        lowest, highest, last = np.int64(v), np.int64(v) - ONE, largest
        while read < count:
            first, length, cursor = next_run(work.words, work.tables, cursor, v)
            here = end_of_runs(cursor)
            if here > end:
                return np.int64(-TRUNCATED), largest
            beyond = first + length
            if length < 1 or length > count - read or beyond < first:
                return np.int64(-INTERVAL), largest
            if read < below:
                if beyond > lowest or first <= largest:
                    return np.int64(-RANGE), largest
                lowest = first
            else:
                if first <= highest or first <= largest or beyond > work.batch.vertices:
                    return np.int64(-RANGE), largest
                highest = beyond - ONE
            read += length
            last = max(last, beyond - ONE)
            if length > 1:
                tally[INTERVALS] += here - bit
            else:
                tally[RESIDUALS] += here - bit
            bit = here
        return bit, last

    return through


SCHEMES: dict[str, Callable[[Any, Target], Any]] = {
    "cgr": _of_codes,
    "packed": _of_classes,
    "entropy": _of_runs,
}
"""``through(work, bit, end, v, count, largest, tally)`` gives the bit behind a part, or minus what
is wrong with it, and the largest id so far."""
