"""Contraction on a GPU: entries of a part's vertices are added up in a hash table of its own.

The tables lie side by side in global memory, as large as the entries of a part can need; where that
is as many slots as there are parts, a part is its own slot. Then they are moved together. The order
of a row's entries is whatever it is; nothing that follows depends on it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from glp_rapids.communities.kernels import (
    gpu_classes,
    gpu_global_tables,
    gpu_pair_cache,
    gpu_scans,
)
from glp_rapids.communities.kernels.gpu_tables import U64, Weights
from glp_rapids.jit.cuda import add_only, cuda, kernel, load_fresh
from glp_rapids.jit.primitives import lower_bound

Array = Any
THREADS = 256
LANES = 8  # of a row of up to LONGEST entries; of a longer one blocks have pieces
LONGEST = 256
EACH = 8  # slots that a thread looks at
PIECE = 2048  # entries of a longer one that a block takes at a time
TOGETHER = {False: 5, True: 4}  # blocks on a multiprocessor, by `every`
ARRIVED, LISTED, USED, BLOCKS = range(4)  # of `Merging.done`


class Rows(NamedTuple):
    """The rows that are merged, and which part each is in."""

    indptr: Array
    indices: Array
    weights: Array  # in any unit; empty where each weighs one
    parts: Array


class Merging(NamedTuple):
    """What blocks share; ``entries``, ``table`` and ``done`` begin as zeros."""

    entries: Array  # int64: of each part
    offsets: Array  # int64: where its table begins, and the end
    table: Array  # int64, see `gpu_global_tables`
    listed: Array  # rows of more than LONGEST entries
    counts: Array  # int64, one a block
    done: Array  # int64: for the barrier, long rows, slots in use, blocks


class Vertices(NamedTuple):
    """What the parts are as the vertices of the next level; all but ``volumes`` is written.

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
    add_all: Any  # rows, vertices, merging, sums, chosen, count, cache, arrived, turn -> the turn


@functools.cache
def build_add_all(
    threads: int, lanes: int, longest: int, piece_size: int, weights: Weights, every: bool
) -> Adding:  # fmt: skip
    """Make the function that adds the entries of all rows to the tables of their parts.

    All threads call it. ``every``: entries inside parts and those without weight are added, too.
    Else what the parts are as vertices is found as well. ``sums``, ``chosen``, one a thread, and
    ``count``, int32, are in shared memory.
    """
    barrier, first_piece = gpu_classes.barrier, gpu_classes.first_piece
    announce, base_of, ranked, own_range = gpu_scans.build(threads)
    weighted, wide = weights
    add_to_table, label_at, _, _, _ = gpu_global_tables.build(wide)
    slot_of = gpu_global_tables.slot_of

    @cuda.jit(device=True)
    def add_between(base, slots, other, weight, merging):
        """Add to the table of a part, which begins at ``base``."""
        slot = np.int64(other)
        if slots < merging.offsets.size - 1:
            slot = slot_of(other, slots)
        add_to_table(merging.table, base, slots, slot, other, weight)

    @cuda.jit(device=True)
    def add(part, other, weight, merging):
        base = merging.offsets[part]
        add_between(base, merging.offsets[part + 1] - base, other, weight, merging)

    lay_out, add_to_cache, flush = gpu_pair_cache.build(
        threads, gpu_pair_cache.SLOTS if every else 1, wide, add
    )

    @cuda.jit(device=True)
    def add_row(rows, part, entry, past, step, merging, cache):
        """Add entries; return the weight inside the part, and the number of such entries."""
        weight, inside, number = np.int64(1), np.int64(0), np.int64(0)
        base = merging.offsets[part]
        slots = merging.offsets[part + 1] - base
        following = part
        if entry < past:
            following = rows.parts[U64(rows.indices[U64(entry)])]
        while entry < past:
            other, after = following, entry + step
            if after < past:  # on its way while this one is added
                following = rows.parts[U64(rows.indices[U64(after)])]
            if weighted:
                weight = np.int64(rows.weights[U64(entry)])
            if other == part:
                inside += weight
                number += 1
            elif every:
                if not add_to_cache(part, other, weight, merging.entries.size, cache):
                    add_between(base, slots, other, weight, merging)
            elif weight > 0:
                add_between(base, slots, other, weight, merging)
            entry = after
        return inside, number

    @cuda.jit(device=True)
    def add_inside(part, inside, merging, cache):
        """Add what was found inside of a part; of few parts many threads find some."""
        if not add_to_cache(part, part, inside, merging.entries.size, cache):
            add(part, part, inside, merging)

    @cuda.jit(device=True)
    def add_own(part, inside, number, merging, sums, cache):
        """Add what all threads of a block found inside of a part, in so many entries."""
        _, number = ranked(number, sums)
        if number > 0:
            _, inside = ranked(inside, sums)
            if cuda.threadIdx.x == 0:
                add_inside(part, inside, merging, cache)

    @cuda.jit(device=True)
    def count_entries(rows, vertices, merging, sums):
        """Count the entries of parts, add up their volumes, and list long rows."""
        thread, size = np.int64(cuda.threadIdx.x), np.int64(rows.parts.size)
        begin, past = own_range(
            size, np.int64(cuda.blockIdx.x), np.int64(cuda.gridDim.x), np.int64(threads)
        )
        # what many of the block's vertices are in: one address takes few sums at once
        common = rows.parts[min(begin + (past - begin) // 2, size - 1)]
        own_entries, own_volume = np.int64(0), np.int64(0)
        for v in range(begin + thread, past, threads):
            part, degree = rows.parts[v], rows.indptr[v + 1] - rows.indptr[v]
            if degree > longest:
                merging.listed[cuda.atomic.add(merging.done, LISTED, np.int64(1))] = v
            if part == common:
                own_entries += degree
                if not every:
                    own_volume += vertices.volume[v]
            else:
                add_only(merging.entries, np.int64(part), degree)
                if not every:
                    add_only(vertices.volumes, np.int64(part), vertices.volume[v])
        _, own_entries = ranked(own_entries, sums)
        _, own_volume = ranked(own_volume, sums)
        if thread == 0 and begin < past:
            add_only(merging.entries, np.int64(common), own_entries)
            if not every:
                add_only(vertices.volumes, np.int64(common), own_volume)

    @cuda.jit(device=True)
    def name_vertices(vertices, parts):
        """Write what the parts are hashed by, and the communities they begin in."""
        everywhere = np.int64(cuda.blockIdx.x) * threads + np.int64(cuda.threadIdx.x)
        all_threads = np.int64(cuda.gridDim.x) * threads
        for part in range(everywhere, vertices.labels.size, all_threads):
            v = vertices.first[part]
            vertices.words_of_parts[part] = vertices.words[v]
            vertices.labels[part] = parts[vertices.first_of_all[vertices.communities[v]]]

    @cuda.jit(device=True)
    def slots_of(merging, part):
        entries = merging.entries[part]
        return min(entries + (entries >> 1) + 1, merging.entries.size)

    @cuda.jit(device=True)
    def lay_tables(merging, sums, arrived, turn):
        """Find where the tables of parts begin; return the next barrier's turn."""
        thread, block = np.int64(cuda.threadIdx.x), np.int64(cuda.blockIdx.x)
        blocks, number = np.int64(cuda.gridDim.x), np.int64(merging.entries.size)
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
    def add_short_rows(rows, merging, sums, cache):
        thread, block = np.int64(cuda.threadIdx.x), np.int64(cuda.blockIdx.x)
        blocks, vertices = np.int64(cuda.gridDim.x), np.int64(rows.parts.size)
        at_once = np.int64(threads // lanes)
        tile = at_once * max(min(vertices // (4 * blocks * at_once), np.int64(8)), np.int64(1))
        for begin in range(block * tile, vertices, blocks * tile):
            past = min(begin + tile, vertices)
            common = rows.parts[begin + (past - begin) // 2]
            own, number = np.int64(0), np.int64(0)
            for v in range(begin + thread // lanes, past, at_once):
                entry, end = rows.indptr[v] + thread % lanes, rows.indptr[v + 1]
                if end - rows.indptr[v] <= longest:
                    part = rows.parts[v]
                    inside, entries = add_row(rows, part, entry, end, lanes, merging, cache)
                    if part == common:
                        own += inside
                        number += entries
                    elif every and entries > 0:
                        add_inside(part, inside, merging, cache)
            if every:
                add_own(common, own, number, merging, sums, cache)

    @cuda.jit(device=True)
    def add_long_rows(rows, merging, sums, chosen, count, cache):
        thread, block = np.int64(cuda.threadIdx.x), np.int64(cuda.blockIdx.x)
        blocks, number = np.int64(cuda.gridDim.x), load_fresh(merging.done, np.int64(LISTED))
        for start in range(0, number, threads):
            if thread == 0:
                count[0] = 0
            cuda.syncthreads()
            if start + thread < number:
                v = merging.listed[start + thread]
                first = first_piece(start + thread, block, blocks)
                if first * piece_size < rows.indptr[v + 1] - rows.indptr[v]:
                    chosen[cuda.atomic.add(count, 0, np.int32(1))] = start + thread
            cuda.syncthreads()
            for item in range(count[0]):
                v = merging.listed[chosen[item]]
                part, end = rows.parts[v], rows.indptr[v + 1]
                first = first_piece(chosen[item], block, blocks)
                entry = rows.indptr[v] + first * piece_size
                own, inside_all = np.int64(0), np.int64(0)
                while entry < end:
                    past = min(entry + piece_size, end)
                    inside, entries = add_row(
                        rows, part, entry + thread, past, threads, merging, cache
                    )
                    own += inside
                    inside_all += entries
                    entry += piece_size * blocks
                if every:
                    add_own(part, own, inside_all, merging, sums, cache)
            cuda.syncthreads()

    @cuda.jit(device=True)
    def add_all(rows, vertices, merging, sums, chosen, count, cache, arrived, turn):
        thread, block = np.int64(cuda.threadIdx.x), np.int64(cuda.blockIdx.x)
        blocks = np.int64(cuda.gridDim.x)
        count_entries(rows, vertices, merging, sums)
        if not every:
            name_vertices(vertices, rows.parts)
        turn += 1
        barrier(arrived, turn * blocks)
        turn = lay_tables(merging, sums, arrived, turn)
        add_short_rows(rows, merging, sums, cache)
        add_long_rows(rows, merging, sums, chosen, count, cache)
        if every:
            cuda.syncthreads()
            flush(cache, merging)
        turn += 1
        barrier(arrived, turn * blocks)
        room = merging.offsets[merging.entries.size]
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
                merging.done[BLOCKS] = blocks
        return turn

    return Adding(lay_out, add_all)


@functools.cache
def build_add(
    threads: int, lanes: int, longest: int, piece_size: int, weights: Weights, every: bool
) -> Any:  # fmt: skip
    """Make the kernel that does so.

    Launch: cooperative, any number of blocks. LANES threads have a row; rows that are too long are
    listed, and blocks have some of their pieces. Degrees: any. Shared memory: 4 KB, with ``every``
    16 KB, where sums take 64 bits 20. Registers: 48, as TOGETHER leaves, with ``every`` 64, with 16
    to 40 bytes of a thread in memory.
    """
    lay_out, add_all = build_add_all(threads, lanes, longest, piece_size, weights, every)

    def add_rows(rows, vertices, merging):
        cuda.cg.this_grid()
        sums = cuda.shared.array(threads, np.int64)
        chosen = cuda.shared.array(threads, np.int64)
        count = cuda.shared.array(1, np.int32)
        add_all(rows, vertices, merging, sums, chosen, count, lay_out(), merging.done, np.int64(0))

    digest = f"{threads} {lanes} {longest} {piece_size} {weights} {every}"
    return kernel(add_rows, digest, launch_bounds=(threads, TOGETHER[every]))


@functools.cache
def build_write_all(threads: int, each: int, wide: bool, empties: bool) -> Callable:
    """Make the function that writes the slots in use one after the other, and where rows begin.

    All threads call it, of as many blocks as added, each for the slots that it counted there.
    ``empties``: the slots end as zeros. ``sums``, int64, one a thread, and ``ranks``, one a slot,
    are in shared memory.
    """
    slots = threads * each
    _, label_at, _, amount_at, empty_slot = gpu_global_tables.build(wide)
    _, base_of, ranked, own_range = gpu_scans.build(threads)

    @cuda.jit(device=True)
    def write_all(merging, indptr, indices, weights, sums, ranks):
        thread, block = np.int64(cuda.threadIdx.x), np.int64(cuda.blockIdx.x)
        parts = np.int64(merging.entries.size)
        room = merging.offsets[parts]
        begin, end = own_range(room, block, np.int64(cuda.gridDim.x), np.int64(1))
        base = base_of(block, sums, merging.counts)
        for first in range(begin, end, slots):
            past = min(first + slots, end)
            own, number = first + thread * each, np.int64(0)
            for slot in range(own, min(own + each, past)):
                if label_at(merging.table, slot) >= 0:
                    number += 1
            rank, whole = ranked(number, sums)
            entry = base + rank - number
            for slot in range(own, min(own + each, past)):
                ranks[slot - first] = entry - base
                other = label_at(merging.table, slot)
                if other >= 0:
                    indices[entry] = other
                    weights[entry] = amount_at(merging.table, slot)
                    if empties:
                        empty_slot(merging.table, slot)
                    entry += 1
            cuda.syncthreads()
            part = lower_bound(merging.offsets, 0, parts, first) + thread
            while part < parts and merging.offsets[part] < past:
                indptr[part] = base + ranks[merging.offsets[part] - first]
                part += threads
            base += whole
            cuda.syncthreads()
        if thread == 0 and begin < end and end == room:
            indptr[parts] = base

    return write_all


@functools.cache
def build_write(threads: int, each: int, wide: bool) -> Any:
    """Make the kernel that does so.

    Launch: as many blocks as `build_add` had. Shared memory: 10 KB. Registers: 39.
    """
    write_all, slots = build_write_all(threads, each, wide, False), threads * each

    def write_slots(merging, indptr, indices, weights):
        sums = cuda.shared.array(threads, np.int64)
        ranks = cuda.shared.array(slots, np.int32)
        write_all(merging, indptr, indices, weights, sums, ranks)

    return kernel(write_slots, f"{threads} {each} {wide}")
