"""Contraction on a GPU: entries of a part's vertices are added up in a hash table of its own.

The tables lie side by side in global memory, as large as the entries of a part can need; where that
is as many slots as there are parts, a part is its own slot. Then they are moved together. The order
of a row's entries is whatever it is; nothing that follows depends on it.

A thread has four entries at once, and waits for memory as often as for one. Of large graphs an H100
adds 9 to 14 billion entries a second, whatever was tried: rows in the order of their parts, so that
a table is in the cache while it is added to, or three to five blocks on a multiprocessor.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np

from glp_rapids.communities.kernels import (
    gpu_classes,
    gpu_global_tables,
    gpu_pair_cache,
    gpu_scans,
    gpu_sums,
    gpu_windows,
    gpu_writing,
)
from glp_rapids.communities.kernels.gpu_numbering import NUMBER
from glp_rapids.communities.kernels.gpu_tables import U64, Weights
from glp_rapids.jit.cuda import cuda, kernel
from glp_rapids.jit.primitives import lower_bound

Array = Any
THREADS = 256
TOGETHER = 4  # entries that a thread has at once
BLOCKS = 4  # on a multiprocessor
ARRIVED, USED, BLOCKS_OF_ALL = range(3)  # of `Merging.done`


class Merging(NamedTuple):
    """What blocks share; ``entries``, ``table`` and ``done`` begin as zeros."""

    numbered: Array  # `Numbering.done`: there may be fewer parts than there is room for
    entries: Array  # int64: of each part
    offsets: Array  # int64: where its table begins, and the end
    table: Array  # int64, see `gpu_global_tables`
    counts: Array  # int64, one a block
    done: Array  # int64: for the barrier, slots in use, blocks


class Vertices(NamedTuple):
    """What the parts are as the vertices of the next level: the last three are filled in.

    ``first``: of each part the first vertex; ``first_of_all``: likewise of each community.
    """

    volume: Array
    words: Array
    first: Array
    communities: Array
    first_of_all: Array
    volumes: Array  # zeros
    words_of_parts: Array
    labels: Array


class Adding(NamedTuple):
    """What `build_add_all` makes, compiled for the GPU."""

    lay_out: Any  # -> a cache of pairs in shared memory
    add_all: Any  # rows, vertices, merging, sums, window, cache, arrived, turn -> the turn


@functools.cache
def build_add_all(threads: int, weights: Weights, every: bool) -> Adding:
    """Make the function that adds the entries of all rows to the tables of their parts.

    All threads call it. ``every``: entries inside parts and those without weight are added, too.
    Else what the parts are as vertices is found as well. ``sums``, int64, one a thread, and the
    ``window`` are in shared memory.
    """
    barrier = gpu_classes.barrier
    announce, base_of, ranked, own_range = gpu_scans.build(threads)
    weighted, wide = weights
    peek, claim, finish, add_to_table, label_at, _, _, _ = gpu_global_tables.build(wide)
    slot_of, warp_size = gpu_global_tables.slot_of, gpu_classes.WARP
    add_to_total = gpu_sums.build(gpu_sums.to_total)
    _, fill, find = gpu_windows.build(threads)
    tile = threads * TOGETHER

    @cuda.jit(device=True)
    def first_slot(other, slots, parts):
        """Return where in a table to begin; one with room for all parts has them in order."""
        if slots < parts:
            return slot_of(other, slots)
        return np.int64(other)

    @cuda.jit(device=True)
    def add(part, other, weight, merging):
        base = merging.offsets[part]
        slots = merging.offsets[part + 1] - base
        slot = first_slot(other, slots, merging.numbered[NUMBER])
        add_to_table(merging.table, base, slots, slot, other, weight)

    lay_out, add_to_cache, flush = gpu_pair_cache.build(
        threads, gpu_pair_cache.SLOTS if every else 1, wide, add
    )

    @cuda.jit(device=True)
    def add_to_pair(part, other, weight, merging, cache):
        if not add_to_cache(part, other, weight, merging.numbered[NUMBER], cache):
            add(part, other, weight, merging)

    @cuda.jit(device=True)
    def add_inside(part, number, inside, into):
        merging, cache = into
        add_to_pair(part, part, inside, merging, cache)

    add_inside_by_warp = gpu_sums.build(add_inside)

    @cuda.jit(device=True)
    def count_entries(rows, vertices, merging):
        """Count the entries of parts, and add up their volumes."""
        thread, size = np.int64(cuda.threadIdx.x), np.int64(rows.parts.size)
        lane = gpu_classes.remainder(thread, warp_size)
        start = np.int64(cuda.blockIdx.x) * threads + thread - lane
        while start < size:
            v = start + lane
            part, degree, volume = np.int64(-1), np.int64(0), np.int64(0)
            if v < size:
                part, degree = np.int64(rows.parts[v]), rows.indptr[v + 1] - rows.indptr[v]
                if not every:
                    volume = vertices.volume[v]
            add_to_total(part, degree, merging.entries)
            if not every:
                add_to_total(part, volume, vertices.volumes)
            start += np.int64(cuda.gridDim.x) * threads

    @cuda.jit(device=True)
    def name_vertices(vertices, parts, number):
        """Write what the parts are hashed by, and the communities they begin in."""
        everywhere = np.int64(cuda.blockIdx.x) * threads + np.int64(cuda.threadIdx.x)
        all_threads = np.int64(cuda.gridDim.x) * threads
        for part in range(everywhere, number, all_threads):
            v = vertices.first[part]
            vertices.words_of_parts[part] = vertices.words[v]
            vertices.labels[part] = parts[vertices.first_of_all[vertices.communities[v]]]

    @cuda.jit(device=True)
    def slots_of(merging, part):
        entries = merging.entries[part]
        return min(entries + (entries >> 1) + 1, merging.numbered[NUMBER])

    @cuda.jit(device=True)
    def lay_tables(merging, sums, arrived, turn):
        """Find where the tables of parts begin; return the next barrier's turn."""
        thread, block = np.int64(cuda.threadIdx.x), np.int64(cuda.blockIdx.x)
        blocks, number = np.int64(cuda.gridDim.x), merging.numbered[NUMBER]
        begin, past = own_range(number, block, blocks, np.int64(threads))
        own = np.int64(0)
        for part in range(begin + thread, past, threads):
            own += slots_of(merging, part)
        announce(own, sums, merging.counts)
        turn += 1
        barrier(arrived, turn * blocks)
        base = base_of(block, sums, merging.counts)
        for start in range(begin, past, threads):
            part, slots = start + thread, np.int64(0)
            if part < past:
                slots = slots_of(merging, part)
            rank, whole = ranked(slots, sums)
            if part < past:
                merging.offsets[part] = base + rank - slots
            base += whole
        if block == blocks - 1 and thread == 0:
            merging.offsets[number] = base
        turn += 1
        barrier(arrived, turn * blocks)
        return turn

    @cuda.jit(device=True)
    def row_from(window, number, row, entry):
        """Return the row of an entry, from an earlier one's on."""
        while row + 1 < number and window.begins[row + 1] <= entry:
            row += 1
        return row

    @cuda.jit(device=True)
    def weight_at(rows, entry):
        if weighted:
            return np.int64(rows.weights[U64(entry)])
        return np.int64(1)

    @cuda.jit(device=True)
    def look(window, row, other, parts, merging):
        """Return the slot to begin with, and what is there."""
        slot = first_slot(other, np.int64(window.slots[row]), parts)
        return slot, peek(merging.table, np.int64(window.bases[row]), slot)

    @cuda.jit(device=True)
    def take(window, row, slot, other, weight, found, merging):
        """Take the slot if it is empty and the entry counts; return what is there."""
        if weight > 0 and other != window.parts[row]:
            base = np.int64(window.bases[row])
            found = claim(merging.table, base, slot, other, weight, found)
        return found

    @cuda.jit(device=True)
    def add_between(rows, window, number, entry, end, merging):
        """Add some entries of a thread, if they lie between parts."""
        row, last, parts = find(window, number, entry), end - 1, merging.numbered[NUMBER]
        entry1, entry2, entry3 = min(entry + 1, last), min(entry + 2, last), min(entry + 3, last)
        row1 = row_from(window, number, row, entry1)
        row2 = row_from(window, number, row1, entry2)
        row3 = row_from(window, number, row2, entry3)
        u, u1 = U64(rows.indices[U64(entry)]), U64(rows.indices[U64(entry1)])
        u2, u3 = U64(rows.indices[U64(entry2)]), U64(rows.indices[U64(entry3)])
        weight, weight1 = weight_at(rows, entry), weight_at(rows, entry1)
        weight2, weight3 = weight_at(rows, entry2), weight_at(rows, entry3)
        other, other1 = rows.parts[u], rows.parts[u1]
        other2, other3 = rows.parts[u2], rows.parts[u3]
        slot, found = look(window, row, other, parts, merging)
        slot1, found1 = look(window, row1, other1, parts, merging)
        slot2, found2 = look(window, row2, other2, parts, merging)
        slot3, found3 = look(window, row3, other3, parts, merging)
        # past the end the last entry was read again, which must not count twice
        if entry + 1 > last:
            weight1 = np.int64(0)
        if entry + 2 > last:
            weight2 = np.int64(0)
        if entry + 3 > last:
            weight3 = np.int64(0)
        found = take(window, row, slot, other, weight, found, merging)
        found1 = take(window, row1, slot1, other1, weight1, found1, merging)
        found2 = take(window, row2, slot2, other2, weight2, found2, merging)
        found3 = take(window, row3, slot3, other3, weight3, found3, merging)
        for _ in range(TOGETHER):
            if weight > 0 and other != window.parts[row]:
                base, slots = np.int64(window.bases[row]), np.int64(window.slots[row])
                finish(merging.table, base, slots, slot, other, weight, found)
            row, slot, other, weight, found = row1, slot1, other1, weight1, found1
            row1, slot1, other1, weight1, found1 = row2, slot2, other2, weight2, found2
            row2, slot2, other2, weight2, found2 = row3, slot3, other3, weight3, found3

    @cuda.jit(device=True)
    def add_each(rows, window, number, entry, end, merging, cache):
        """Add some entries of a thread, wherever they lie; the whole warp calls."""
        part, inside, row = np.int64(-1), np.int64(0), np.int64(0)
        if entry < end:
            row = find(window, number, entry)
        for following in range(entry, min(entry + TOGETHER, end)):
            row = row_from(window, number, row, following)
            weight = weight_at(rows, following)
            other = np.int64(rows.parts[U64(rows.indices[U64(following)])])
            if window.parts[row] != part:
                if part >= 0:
                    add_to_pair(part, part, inside, merging, cache)
                part = np.int64(-1)
            if window.parts[row] != other:
                add_to_pair(window.parts[row], other, weight, merging, cache)
            elif part == other:
                inside += weight
            else:
                part, inside = other, weight
        # of few parts many threads find some
        add_inside_by_warp(part, inside, (merging, cache))

    @cuda.jit(device=True)
    def add_rows(rows, merging, window, cache):
        """Add what is the block's own run of entries."""
        thread, size = np.int64(cuda.threadIdx.x), np.int64(rows.parts.size)
        begin, past = own_range(
            rows.indptr[size], np.int64(cuda.blockIdx.x), np.int64(cuda.gridDim.x),
            np.int64(warp_size),
        )  # fmt: skip
        first = lower_bound(rows.indptr, 0, size, begin + 1) - 1
        while begin < past:
            number, end = fill(rows, merging.offsets, first, window)
            end = min(begin + tile, past, end)
            entry = begin + thread * TOGETHER
            if every:
                add_each(rows, window, number, entry, end, merging, cache)
            elif entry < end:
                add_between(rows, window, number, entry, end, merging)
            first += find(window, number, end)
            begin = end
            cuda.syncthreads()

    @cuda.jit(device=True)
    def add_all(rows, vertices, merging, sums, window, cache, arrived, turn):
        thread, block = np.int64(cuda.threadIdx.x), np.int64(cuda.blockIdx.x)
        blocks = np.int64(cuda.gridDim.x)
        count_entries(rows, vertices, merging)
        if not every:
            name_vertices(vertices, rows.parts, merging.numbered[NUMBER])
        turn += 1
        barrier(arrived, turn * blocks)
        turn = lay_tables(merging, sums, arrived, turn)
        add_rows(rows, merging, window, cache)
        if every:
            cuda.syncthreads()
            flush(cache, merging)
        turn += 1
        barrier(arrived, turn * blocks)
        room = merging.offsets[merging.numbered[NUMBER]]
        begin, past = own_range(room, block, blocks, np.int64(1))
        own = np.int64(0)
        for slot in range(begin + thread, past, threads):
            if label_at(merging.table, slot) >= 0:
                own += 1
        _, whole = ranked(own, sums)
        if thread == 0:
            merging.counts[block] = whole
            cuda.atomic.add(merging.done, USED, whole)
            if block == 0:
                merging.done[BLOCKS_OF_ALL] = blocks
        return turn

    return Adding(lay_out, add_all)


@functools.cache
def build_add(threads: int, each: int, weights: Weights, every: bool) -> Any:
    """Make the kernel that adds, and writes where there is something to write to.

    Launch: cooperative, any number of blocks. Degrees: any. Shared memory: 18 KB, with ``every``
    30 KB, where sums take 64 bits 34. Registers: 64, as BLOCKS leaves, without ``every`` with 64 to
    88 bytes of a thread in memory.
    """
    lay_out, add_all = build_add_all(threads, weights, every)
    lay_out_window, barrier = gpu_windows.build(threads).lay_out, gpu_classes.barrier
    slots = threads * each
    write_all = gpu_writing.build_write_all(threads, each, weights.wide, False)

    def add_rows(rows, vertices, merging, written):
        cuda.cg.this_grid()
        sums = cuda.shared.array(threads, np.int64)
        turn = add_all(
            rows, vertices, merging, sums, lay_out_window(), lay_out(), merging.done, np.int64(0)
        )
        ranks = cuda.shared.array(slots, np.int32)
        if written.indptr.size > 0:
            barrier(merging.done, (turn + 1) * np.int64(cuda.gridDim.x))
            write_all(merging, written, sums, ranks)

    return kernel(
        add_rows, f"{threads} {TOGETHER} {each} {weights} {every}",
        launch_bounds=(threads, BLOCKS),
    )  # fmt: skip
