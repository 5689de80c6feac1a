"""A walk through all lists that trusts nothing: to see whether they are right, and what is in them.

Every number is checked as it is read, before the next one is, so a walk ends with an answer
whatever the words are; lists that pass can be decoded by readers that check nothing. A reader can
be led astray by one number, by as many bits as that number may take (`MARGIN`): near the end of
the bit stream it walks on a copy with room behind it. A thread walks through a block of 32 lists.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from glp_rapids.compressed.file import verify_parts
from glp_rapids.compressed.file.verify_parts import (
    DEGREE,
    DEGREES,
    DIRECTORIES,
    DIRECTORY,
    FILLED,
    FILLING,
    PARTS,
    PROBLEMS,
    RANGE,
    RAW,
    TRUNCATED,
)
from glp_rapids.compressed.format import bits, neighbour_list
from glp_rapids.compressed.format.layout import BLOCK, PADDING, CompressedRows, Settings
from glp_rapids.compressed.format.scheme import Function
from glp_rapids.device import array_module, to_host
from glp_rapids.jit.parallel_for import each
from glp_rapids.jit.target import Target

Array = Any

ENTRIES, PROBLEM, VERTEX = range(len(PARTS), len(PARTS) + 3)  # further columns of a tally

BATCH = 1 << 16  # blocks
MARGIN = 4096  # bits; the longest numbers that a reader reads without a check take some 1500

ZERO, ONE = np.int64(0), np.int64(1)


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
def functions(scheme: str, target: Target) -> dict[str, Function]:
    """Compile the function that takes a block and a `Walking`."""
    on_lists = neighbour_list.build(scheme, target)
    device = target.device_function
    read_degree, read_bits = on_lists.read_degree, bits.build(target).read_bits
    directory, part_bit = on_lists.directory, on_lists.part_bit
    through = verify_parts.SCHEMES[scheme](on_lists.scheme, target)

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

    return {"walk_block": walk_block}
