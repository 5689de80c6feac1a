"""Classes of vertices that are updated together, and their rows by how many threads serve one.

The lists of a level: vertices by class and, inside of it, by *size*: how long their rows are.
Both are found inside of a persistent kernel, by all of its blocks.

The longest rows, of *hubs*, are cut into pieces, which blocks share; each hub has room in a table
in global memory.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from glp_rapids.common.hashing import CLASS_SEED, mix
from glp_rapids.communities.schedule import CLASSES
from glp_rapids.jit.cuda import cuda, gpu_target
from glp_rapids.jit.primitives import wait_for_blocks

Array = Any

THREADS, WARP = 256, 32
SLOTS = 2048  # of the tables of a block, all together
# Rows up to so many entries have a thread, or a few lanes; see `longest_rows`.
LARGEST = (8, 32)
LANES = (1, 8, WARP)
SIZES = 5
LISTS = CLASSES * SIZES
HUBS = SIZES - 1
ROOMS = 3  # how many pieces there are, how many of them are listed, and what tables take
PIECES, LISTED_PIECES, TABLES = (CLASSES * word for word in range(ROOMS))

hashed = gpu_target().compile(mix)


# Of `Begins.offsets`, behind where lists begin: the first hub of a class, and its first piece.
FIRST_HUB = LISTS + 1
FIRST_PIECE = FIRST_HUB + CLASSES


class Lengths(NamedTuple):
    """Which of the longer rows have how many threads, in entries."""

    warp: Any  # at the most, of a row that a warp has: no more than its share of SLOTS
    block: Any  # at the most, of a row that a block has: no more than SLOTS
    piece: Any  # of the longest rows, those of hubs, of which blocks have pieces


class Lists(NamedTuple):
    """Vertices in lists, one a class and size, one after the other."""

    members: Array
    goals: Array  # of each member: where it goes, or -1
    counts: Array  # int64, LISTS for each time that classes are drawn
    cursors: Array  # likewise
    rooms: Array  # likewise, ROOMS times CLASSES: what is known of hubs
    bases: Array  # of each hub where its table begins
    pieces: Array  # likewise the number of its first piece
    owners: Array  # of each piece the place of its hub
    classes: Any  # how many there are
    lengths: Lengths


class Begins(NamedTuple):
    """Where lists begin, in a block's shared memory; see `list_classes`.

    Short rows are dealt out to warps in chunks; found once, since divisions take their time.
    """

    offsets: Array
    chunks: Array  # int32: of each list how many rows a chunk has
    dealt: Array  # int64: of each list how many warps were dealt something before, of all


@functools.cache
def build_begins() -> Callable:
    """Make the function that lays out what `list_classes` takes in shared memory."""
    lists, begins = LISTS, FIRST_PIECE + CLASSES + 1

    @cuda.jit(device=True)
    def lay_out():
        return Begins(
            cuda.shared.array(begins, np.int64),
            cuda.shared.array(lists, np.int32),
            cuda.shared.array(lists, np.int64),
        )

    return lay_out


@cuda.jit(device=True)
def barrier(arrived, goal):
    """Wait for all blocks of the grid, as `grid_barrier` does; of one alone for its threads."""
    cuda.syncthreads()
    if cuda.threadIdx.x == 0 and cuda.gridDim.x > 1:
        wait_for_blocks(arrived, goal)
    cuda.syncthreads()


@cuda.jit(device=True)
def quotient(one, other):
    """Divide numbers below 2^32; code for 64 bits is long."""
    return np.int64(np.uint32(one) // np.uint32(other))


@cuda.jit(device=True)
def remainder(one, other):
    """Return what division leaves, likewise."""
    return np.int64(np.uint32(one) % np.uint32(other))


@cuda.jit(device=True)
def room_for(degree):
    """Return how many slots the table of a hub has."""
    return degree + (degree >> 1) + 1


@cuda.jit(device=True)
def deal(begins, group, blocks):
    """Say which rows of a class are whose, longest first; one thread does."""
    warps, offsets = blocks * (THREADS // WARP), begins.offsets
    last = group * SIZES + HUBS - 1
    dealt = offsets[last + 1] - offsets[last]  # a block each
    for reverse in range(HUBS - 1):
        place = last - 1 - reverse
        number, at_once = offsets[place + 1] - offsets[place], WARP // lanes_of(HUBS - 2 - reverse)
        # as many as a warp has lanes, as long as all warps have some
        chunk = min(max(quotient(number + warps - 1, warps), at_once), np.int64(WARP))
        begins.chunks[place] = chunk
        begins.dealt[place] = dealt = remainder(dealt, warps)
        dealt += quotient(number + chunk - 1, chunk)


@cuda.jit(device=True)
def pieces_of(degree, lengths):
    """Return how many pieces a hub has."""
    return quotient(degree + lengths.piece - 1, lengths.piece)


@cuda.jit(device=True)
def first_piece(place, block, blocks):
    """Return the first piece of a hub that is a block's own; every ``blocks``-th follows."""
    return remainder(block + blocks - remainder(place * 61, blocks), blocks)


@cuda.jit(device=True)
def longest_rows(rows, blocks, lengths):
    """Return how long rows of all sizes but hubs are at the most, for so many rows of a class.

    Where blocks have few rows each, a step takes as long as a row does: so all have more threads,
    as many as there are.
    """
    first, second, third = np.int64(LARGEST[0]), np.int64(LARGEST[1]), np.int64(lengths.warp)
    if rows <= blocks * (THREADS // LANES[1]):
        first = np.int64(0)
    if rows <= blocks * (THREADS // LANES[2]):
        second = np.int64(0)
    if rows <= blocks:
        third = np.int64(0)
    return first, second, third


@cuda.jit(device=True)
def size_of(degree, longest, lengths):
    """Return which threads serve a row."""
    size = 0
    for largest in longest:
        if degree > largest:
            size += 1
    if degree > lengths.block:
        size += 1
    return size


@cuda.jit(device=True)
def lanes_of(size):
    """Return how many threads serve a row of a size."""
    if size == 0:
        return LANES[0]
    if size == 1:
        return LANES[1]
    if size == 2:
        return LANES[2]
    return THREADS


@cuda.jit(device=True)
def class_of(word, seed, draw, classes):
    """Draw the class of a vertex, as `draws_of_classes` does."""
    mixed = hashed(
        word, np.uint64(seed) + np.uint64(CLASS_SEED) + (np.uint64(draw) << np.uint64(32))
    )
    return np.int64(mixed % np.uint64(classes))


@cuda.jit(device=True)
def list_classes(level, turns, joined, seed, draw, lists, round_, shared, arrived, turn):
    """List the vertices that have not joined by class and size; return the next barrier's turn.

    Their classes go to ``turns`` unless that is empty. ``round_`` counts how often this was done.
    Into ``shared.offsets`` go the beginnings of the lists, and the numbers of the first hub of each
    class and of its first piece; the rest of ``shared`` says who evaluates which rows.
    """
    offsets, local, begins = shared
    thread, block = np.int64(cuda.threadIdx.x), np.int64(cuda.blockIdx.x)
    blocks = np.int64(cuda.gridDim.x)
    vertices = level.indptr.size - 1
    writes = turns.size > 0
    rooms = lists.rooms[round_ * ROOMS * CLASSES : (round_ + 1) * ROOMS * CLASSES]
    longest = longest_rows(quotient(vertices, lists.classes), blocks, lists.lengths)
    for place in range(thread, LISTS, THREADS):
        local[place] = 0
    cuda.syncthreads()
    for v in range(block * THREADS + thread, vertices, blocks * THREADS):
        if writes and round_ > 0 and turns[v] == joined:
            continue
        group = class_of(level.words[v], seed, draw, lists.classes)
        if writes:
            turns[v] = group
        degree = level.indptr[v + 1] - level.indptr[v]
        size = size_of(degree, longest, lists.lengths)
        cuda.atomic.add(local, group * SIZES + size, np.int32(1))
        if size == HUBS:
            cuda.atomic.add(rooms, PIECES + group, pieces_of(degree, lists.lengths))
    cuda.syncthreads()
    for place in range(thread, LISTS, THREADS):
        if local[place] > 0:
            cuda.atomic.add(lists.counts, round_ * LISTS + place, np.int64(local[place]))
    turn += 1
    barrier(arrived, turn * blocks)
    for place in range(thread, LISTS, THREADS):
        begins[place] = lists.counts[round_ * LISTS + place]
    cuda.syncthreads()
    if thread == 0:
        total, hubs, pieces = np.int64(0), np.int64(0), np.int64(0)
        for place in range(LISTS):
            offsets[place] = total
            total += begins[place]
            if place % SIZES == HUBS:
                offsets[FIRST_HUB + place // SIZES] = hubs
                offsets[FIRST_PIECE + place // SIZES] = pieces
                hubs += begins[place]
                pieces += rooms[PIECES + place // SIZES]
        offsets[LISTS], offsets[FIRST_PIECE + CLASSES] = total, pieces
    begin = block * THREADS
    while begin < vertices:
        for place in range(thread, LISTS, THREADS):
            local[place] = 0
        cuda.syncthreads()
        v = begin + thread
        place, rank = np.int64(-1), np.int64(0)
        if v < vertices and not (writes and round_ > 0 and turns[v] == joined):
            group = class_of(level.words[v], seed, draw, lists.classes)
            degree = level.indptr[v + 1] - level.indptr[v]
            place = group * SIZES + size_of(degree, longest, lists.lengths)
            rank = np.int64(cuda.atomic.add(local, place, np.int32(1)))
        cuda.syncthreads()
        for other in range(thread, LISTS, THREADS):
            if local[other] > 0:
                begins[other] = offsets[other] + cuda.atomic.add(
                    lists.cursors, round_ * LISTS + other, np.int64(local[other])
                )
        cuda.syncthreads()
        if place >= 0:
            place_of = begins[place] + rank
            lists.members[place_of] = v
            if place % SIZES == HUBS:
                group = place // SIZES
                hub = offsets[FIRST_HUB + group] + place_of - offsets[place]
                lists.bases[hub] = cuda.atomic.add(rooms, TABLES + group, room_for(degree))
                number = pieces_of(degree, lists.lengths)
                first = cuda.atomic.add(rooms, LISTED_PIECES + group, number)
                first += offsets[FIRST_PIECE + group]
                lists.pieces[hub] = first
                for piece in range(number):
                    lists.owners[first + piece] = place_of
        cuda.syncthreads()
        begin += blocks * THREADS
    cuda.syncthreads()
    for group in range(thread, CLASSES, THREADS):
        deal(shared, group, blocks)
    turn += 1
    barrier(arrived, turn * blocks)
    return turn
