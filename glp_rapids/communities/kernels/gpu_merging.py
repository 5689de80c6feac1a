"""Contraction on a GPU: entries of a part's vertices are added up in a hash table of its own.

The tables lie side by side in global memory, as large as the entries of a part can need; where that
is as many slots as there are parts, a part is its own slot. Then they are moved together. The order
of a row's entries is whatever it is; nothing that follows depends on it.

Also what else a level needs of its rows: union-find over the edges inside communities. Registers:
20 to 42, none spilled.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np

from glp_rapids.jit.cuda import cuda, kernel
from glp_rapids.jit.primitives import find_root, inclusive_scan, lower_bound, union

Array = Any
THREADS = 256
LANES = 8  # of a row of up to LONGEST entries; of a longer one blocks have pieces
LONGEST = 256
EACH = 8  # slots that a thread looks at
PIECE = 2048  # entries of a longer one that a block takes at a time


class Tables(NamedTuple):
    """A table a part, beginning at ``offsets``."""

    offsets: Array
    table: Array  # int64, two a slot, side by side in memory: a part plus one, and the sum


@functools.cache
def build_totals(threads: int) -> Any:
    """Make the kernel that adds up entries and volumes of parts, and finds their first vertices.

    Launch: a thread a vertex. Degrees: any.
    """

    def add_totals(indptr, parts, volume, entries, volumes, first):
        v = np.int64(cuda.blockIdx.x) * threads + cuda.threadIdx.x
        if v < parts.size:
            part = parts[v]
            cuda.atomic.add(entries, part, indptr[v + 1] - indptr[v])
            cuda.atomic.add(volumes, part, volume[v])
            cuda.atomic.min(first, part, np.int64(v))

    return kernel(add_totals, str(threads))


@functools.cache
def build_add(
    threads: int, lanes: int, longest: int, piece_size: int, weighted: bool, every: bool
) -> Any:  # fmt: skip
    """Make the kernel that adds the entries of all rows to the tables of their parts.

    ``every``: those inside parts and those without weight, too. Launch: LANES threads a row; then,
    with ``long``, blocks for the rows that were too long, each for some of their pieces. Degrees:
    any. Shared memory: 2 KB.
    """

    @cuda.jit(device=True)
    def add(part, other, weight, tables):
        base = tables.offsets[part]
        slots = tables.offsets[part + 1] - base
        slot, name = np.int64(other), np.int64(other) + 1
        if slots < tables.offsets.size - 1:
            mixed = np.uint32(np.uint32(other) * np.uint32(0x9E3779B1))
            slot = np.int64((np.uint64(mixed) * np.uint64(slots)) >> np.uint64(32))
        while True:
            place = 2 * (base + slot)
            found = tables.table[place]
            if found == 0:
                found = cuda.atomic.cas(tables.table, place, np.int64(0), name)
                if found == 0:
                    found = name
            if found == name:
                cuda.atomic.add(tables.table, place + 1, weight)
                return
            slot += 1
            if slot == slots:
                slot = np.int64(0)

    @cuda.jit(device=True)
    def add_row(indices, weights, unit, parts, part, entry, past, step, tables):
        """Add entries; return the weight inside the part, and whether there are such entries."""
        weight, inside, any_inside = unit, np.int64(0), False
        while entry < past:
            other = parts[indices[entry]]
            if weighted:
                weight = weights[entry]
            if other == part:
                inside += weight
                any_inside = True
            elif every or weight > 0:
                add(part, other, weight, tables)
            entry += step
        return inside, any_inside

    @cuda.jit(device=True)
    def add_inside(inside, words):
        """Add up in shared memory, where one address takes far more sums than a global one does."""
        lower = np.uint32(np.uint64(inside) & np.uint64(0xFFFFFFFF))
        before = cuda.atomic.add(words, 0, lower)
        carry = (np.uint64(before) + np.uint64(lower)) >> np.uint64(32)
        upper = np.uint32((np.uint64(inside) >> np.uint64(32)) + carry)
        if upper != np.uint32(0):
            cuda.atomic.add(words, 1, upper)
        cuda.atomic.add(words, 2, np.uint32(1))

    def add_rows(indptr, indices, weights, unit, parts, tables, listed, number, long):
        chosen = cuda.shared.array(threads, np.int64)
        count = cuda.shared.array(1, np.int32)
        words = cuda.shared.array(3, np.uint32)
        thread = np.int64(cuda.threadIdx.x)
        block, blocks = np.int64(cuda.blockIdx.x), np.int64(cuda.gridDim.x)
        if long:
            for start in range(0, number[0], threads):
                if thread == 0:
                    count[0] = 0
                cuda.syncthreads()
                if start + thread < number[0]:
                    v = listed[start + thread]
                    first = (block + blocks - (start + thread) * 61 % blocks) % blocks
                    if first * piece_size < indptr[v + 1] - indptr[v]:
                        chosen[cuda.atomic.add(count, 0, np.int32(1))] = start + thread
                cuda.syncthreads()
                for item in range(count[0]):
                    v = listed[chosen[item]]
                    part = parts[v]
                    first = (block + blocks - chosen[item] * 61 % blocks) % blocks
                    entry = indptr[v] + first * piece_size
                    if thread < 3:
                        words[thread] = 0
                    cuda.syncthreads()
                    while entry < indptr[v + 1]:
                        past = min(entry + piece_size, indptr[v + 1])
                        inside, any_inside = add_row(
                            indices, weights, unit, parts, part, entry + thread, past, threads,
                            tables,
                        )  # fmt: skip
                        if every and any_inside:
                            add_inside(inside, words)
                        entry += piece_size * blocks
                    cuda.syncthreads()
                    if every and thread == 0 and words[2] != 0:
                        whole = (np.uint64(words[1]) << np.uint64(32)) | np.uint64(words[0])
                        add(part, part, np.int64(whole), tables)
                    cuda.syncthreads()
                cuda.syncthreads()
            return
        v, lane = (block * threads + thread) // lanes, thread % lanes
        # what most of the block's rows are in, where parts are large
        common = parts[min((block * threads + threads // 2) // lanes, parts.size - 1)]
        if thread < 3:
            words[thread] = 0
        cuda.syncthreads()
        if v < parts.size:
            if indptr[v + 1] - indptr[v] > longest:
                if lane == 0:
                    listed[cuda.atomic.add(number, 0, np.int64(1))] = v
            else:
                part = parts[v]
                inside, any_inside = add_row(
                    indices, weights, unit, parts, part, indptr[v] + lane, indptr[v + 1], lanes,
                    tables,
                )  # fmt: skip
                if every and any_inside:
                    if part == common:
                        add_inside(inside, words)
                    else:
                        add(part, part, inside, tables)
        cuda.syncthreads()
        if every and thread == 0 and words[2] != 0:
            whole = (np.uint64(words[1]) << np.uint64(32)) | np.uint64(words[0])
            add(common, common, np.int64(whole), tables)

    return kernel(add_rows, f"{threads} {lanes} {longest} {piece_size} {weighted} {every}")


@functools.cache
def build_count(threads: int, each: int) -> Any:
    """Make the kernel that counts the slots in use, of every so many.

    Launch: a block for every ``threads * each`` slots. Shared memory: 8 bytes.
    """

    def count_slots(table, counts):
        count = cuda.shared.array(1, np.int32)
        thread, first = np.int64(cuda.threadIdx.x), np.int64(cuda.blockIdx.x) * threads * each
        if thread == 0:
            count[0] = 0
        cuda.syncthreads()
        own = np.int32(0)
        for slot in range(first + thread, min(first + threads * each, table.size // 2), threads):
            if table[2 * slot] != 0:
                own += np.int32(1)
        if own > 0:
            cuda.atomic.add(count, 0, own)
        cuda.syncthreads()
        if thread == 0:
            counts[cuda.blockIdx.x] = count[0]

    return kernel(count_slots, f"{threads} {each}")


@functools.cache
def build_write(threads: int, each: int) -> Any:
    """Make the kernel that writes the slots in use one after the other, and where rows begin.

    Launch: as `build_count`, of which ``begins`` has the running sums. Shared memory: 10 KB.
    """
    slots = threads * each

    def write_slots(tables, begins, indptr, indices, weights):
        sums = cuda.shared.array(threads, np.int64)
        ranks = cuda.shared.array(slots, np.int32)
        thread, block = np.int64(cuda.threadIdx.x), np.int64(cuda.blockIdx.x)
        first = block * slots
        past = min(first + slots, tables.table.size // 2)
        own, number = first + thread * each, np.int64(0)
        for slot in range(own, min(own + each, past)):
            if tables.table[2 * slot] != 0:
                number += 1
        sums[thread] = number
        inclusive_scan(sums, thread, threads)
        entry = begins[block] + sums[thread] - number
        for slot in range(own, min(own + each, past)):
            ranks[slot - first] = entry - begins[block]
            name = tables.table[2 * slot]
            if name != 0:
                indices[entry] = name - 1
                weights[entry] = tables.table[2 * slot + 1]
                entry += 1
        cuda.syncthreads()
        parts = tables.offsets.size - 1
        part = lower_bound(tables.offsets, 0, parts, first) + thread
        while part < parts and tables.offsets[part] < past:
            indptr[part] = begins[block] + ranks[tables.offsets[part] - first]
            part += threads
        if thread == 0 and past == tables.table.size // 2:
            indptr[parts] = begins[block + 1]

    return kernel(write_slots, f"{threads} {each}")


@functools.cache
def build_unite(threads: int, lanes: int, weighted: bool, index_type: Any) -> Any:
    """Make the kernel that unites the ends of all edges inside communities.

    Launch: LANES threads a row. Degrees: any.
    """

    def unite_inside(indptr, indices, weights, labels, parent):
        thread = np.int64(cuda.blockIdx.x) * threads + cuda.threadIdx.x
        v, lane = thread // lanes, thread % lanes
        if v >= labels.size:
            return
        for entry in range(indptr[v] + lane, indptr[v + 1], lanes):
            u = indices[entry]
            if u < v and labels[u] == labels[v]:
                if weighted and weights[entry] <= 0:
                    continue
                union(parent, index_type(v), u)

    return kernel(unite_inside, f"{threads} {lanes} {weighted}")


@functools.cache
def build_roots(threads: int) -> Any:
    """Make the kernel that names every vertex by its root.

    Launch: a thread a vertex.
    """

    def find_roots(parent, roots):
        v = np.int64(cuda.blockIdx.x) * threads + cuda.threadIdx.x
        if v < roots.size:
            roots[v] = find_root(parent, v)

    return kernel(find_roots, str(threads))
