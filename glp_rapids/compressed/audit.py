"""A walk through a whole stream that trusts nothing: to see whether it is right, and what is in it.

Every number is checked as it is read, before the next one is, so a walk ends with an answer
whatever the words are; lists that pass can be decoded by readers that check nothing. A reader can
be led astray by one number, by as many bits as that number may take (`MARGIN`): near the end of
the stream it walks on a copy with room behind it. A thread walks through a block of 32 lists.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from itertools import pairwise
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from glp_rapids.compressed import lists
from glp_rapids.compressed.bits import inner
from glp_rapids.compressed.layout import BLOCK, PADDING, CompressedRows, Settings
from glp_rapids.compressed.running import each
from glp_rapids.device import array_module, to_host
from glp_rapids.propagation.compilation import Target

Array = Any

PARTS = (
    "degrees", "interval counts", "intervals", "residuals", "raw", "directories", "blocks"
)  # fmt: skip
DEGREES, COUNTS, INTERVALS, RESIDUALS, RAW, DIRECTORIES, FILLING = range(len(PARTS))
ENTRIES, PROBLEM, VERTEX = range(len(PARTS), len(PARTS) + 3)  # further columns of a tally

BATCH = 1 << 16  # blocks
MARGIN = 4096  # bits; the longest numbers that a reader reads without a check take some 1500
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


class Block(NamedTuple):
    """What the first item of a batch is."""

    number: np.int64
    vertices: np.int64


class Walking(NamedTuple):
    """What a walk works on."""

    settings: Settings
    batch: Block
    tables: Array
    words: Array
    block_starts: Array  # of the batch, and the end of its last
    tally: Array  # a row for each block
    sizes: Array  # bits of each list
    degrees: Array


class Found(NamedTuple):
    """What a walk through a batch found: sizes and degrees of its lists, and the tally."""

    sizes: Array
    degrees: Array
    tally: np.ndarray  # bits by part, then entries


def check(rows: CompressedRows) -> None:
    """Raise a ValueError unless all lists are in order and have as many entries as they should."""
    entries = 0
    for found in walk(rows):
        entries += int(found.tally[ENTRIES])
        if entries > rows.number_of_edges:
            break
    if entries != rows.number_of_edges:
        raise ValueError(
            f"the lists have {'at least ' if entries > rows.number_of_edges else ''}{entries:,} "
            f"entries, not {rows.number_of_edges:,}"
        )


def walk(rows: CompressedRows) -> Iterator[Found]:
    """Walk through all lists, batch by batch; raise a ValueError at the first that is not right."""
    xp = array_module(rows.words)
    starts, blocks = rows.block_starts, rows.block_bytes.size
    safe = 32 * (rows.words.size - PADDING) - MARGIN
    last_safe = int((starts[1:] <= safe).sum())
    firsts = [*range(0, last_safe, BATCH), *range(last_safe, blocks, BATCH)]
    for first, last in pairwise([*firsts, blocks]):
        words, batch_starts = rows.words, starts[first : last + 1]
        if first >= last_safe:
            begin = int(batch_starts[0]) // 32
            words = xp.append(words[begin:], xp.zeros(MARGIN // 32, np.uint32))
            batch_starts = batch_starts - 32 * begin
        yield _batch(rows, first, words, batch_starts)


def _batch(rows: CompressedRows, first: int, words: Array, starts: Array) -> Found:
    xp, blocks, n = array_module(words), starts.size - 1, rows.number_of_vertices
    lists_here = min(n - first * BLOCK, blocks * BLOCK)
    tally = xp.zeros((blocks, len(PARTS) + 3), np.int64)
    sizes, degrees = xp.zeros(lists_here, np.int64), xp.zeros(lists_here, np.int64)
    batch = Block(np.int64(first), np.int64(n))
    work = Walking(rows.settings, batch, rows.tables, words, starts, tally, sizes, degrees)
    each(functions, rows.layout.scheme, "walk_block", blocks, work, rows.device)
    bad = xp.flatnonzero(tally[:, PROBLEM])
    if bad.size:
        row = tally[int(bad[0])]
        raise ValueError(f"the list at {int(row[VERTEX]):,}: {PROBLEMS[int(row[PROBLEM])]}")
    return Found(sizes, degrees, to_host(tally.sum(axis=0)))


@functools.cache
def functions(scheme: str, target: Target) -> SimpleNamespace:
    """Give the compiled function that takes a block and a `Walking`."""
    on_lists = lists.build(scheme, target)
    device = inner(target)
    read_degree, read_bits = on_lists.read_degree, on_lists.read_bits
    directory, part_bit = on_lists.directory, on_lists.part_bit
    through = (_intervals_of if hasattr(on_lists, "open_part") else _runs_of)(on_lists, target)

    # What follows gives the bit behind what it went through, or minus what is wrong with it;
    # ``through``, which goes through a part, also the largest id so far.

    @device
    def through_raw(work, bit, end, degree, tally):
        width = work.settings.id_bits
        if bit + degree * width > end:
            return np.int64(-TRUNCATED)
        before = -ONE
        for _ in range(degree):
            this = np.int64(read_bits(work.words, bit, width))
            if this <= before or this >= work.batch.vertices:
                return np.int64(-RANGE)
            before = this
            bit += width
        tally[RAW] += degree * width
        return bit

    @device
    def through_parts(work, bit, end, v, degree, tally):
        settings, words = work.settings, work.words
        _width, _entries, begin, parts = directory(words, bit, degree, settings)
        if begin > end:
            return np.int64(-TRUNCATED)
        tally[DIRECTORIES] += begin - bit
        here, largest = begin, -ONE
        for part in range(parts):
            if part_bit(words, bit, degree, part, settings) != here:
                return np.int64(-DIRECTORY)
            count = min(settings.segment, degree - part * settings.segment)
            here, largest = through(work, here, end, v, count, largest, tally)
            if here < 0:
                return here
        if part_bit(words, bit, degree, parts, settings) != here:
            return np.int64(-DIRECTORY)
        return here

    @device
    def through_list(work, bit, end, v, degree, tally):
        settings = work.settings
        if degree < 0 or degree > work.batch.vertices:
            return np.int64(-DEGREE)
        if degree == 0:
            return bit
        if degree <= settings.raw_below:
            return through_raw(work, bit, end, degree, tally)
        if degree > settings.segment:
            return through_parts(work, bit, end, v, degree, tally)
        bit, _largest = through(work, bit, end, v, degree, -ONE, tally)
        return bit

    @device
    def walk_block(block, work):
        tally = work.tally[block]
        bit, end = work.block_starts[block], work.block_starts[block + 1]
        first = block * BLOCK
        for i in range(first, min(first + BLOCK, work.sizes.size)):
            begin, v = bit, i + work.batch.number * BLOCK
            degree, bit = read_degree(work.words, work.tables, begin, work.settings)
            tally[DEGREES] += bit - begin
            if bit > end:
                bit = np.int64(-TRUNCATED)
            else:
                bit = through_list(work, bit, end, v, degree, tally)
            if bit < 0:
                tally[PROBLEM], tally[VERTEX] = -bit, v
                return
            tally[ENTRIES] += degree
            work.sizes[i], work.degrees[i] = bit - begin, degree
        tally[FILLING] += end - bit
        if end - bit > 7 or read_bits(work.words, bit, end - bit) != 0:
            last = min(first + BLOCK, work.sizes.size) - ONE
            tally[PROBLEM], tally[VERTEX] = FILLED, last + work.batch.number * BLOCK

    return SimpleNamespace(walk_block=walk_block)


def _intervals_of(on_lists: SimpleNamespace, target: Target) -> Any:
    """Give the walk through a part of intervals and residuals."""
    device = inner(target)
    read_number, read_interval = on_lists.read_number, on_lists.read_interval
    open_residuals, next_gap = on_lists.open_residuals, on_lists.next_gap
    end_of_gaps = on_lists.end_of_gaps

    @device
    def through_intervals(work, bit, end, v, count, largest, tally):
        """Give the bit behind the intervals, their number, and how many entries are left."""
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
            residual, cursor = open_residuals(work.words, work.tables, bit, v, settings)
            for i in range(residuals):
                if i > 0:
                    gap, cursor = next_gap(work.words, work.tables, cursor, settings)
                    residual = residual + gap + ONE if gap >= 0 else -ONE
                bit = end_of_gaps(cursor)
                if bit > end:
                    return np.int64(-TRUNCATED), largest
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


def _runs_of(on_lists: SimpleNamespace, target: Target) -> Any:
    """Give the walk through a part of runs, of the scheme "entropy"."""
    device = inner(target)
    open_runs, next_run = on_lists.open_runs, on_lists.next_run
    end_of_runs, left_below = on_lists.end_of_runs, on_lists.left_below

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
