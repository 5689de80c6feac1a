"""Orienting a symmetric graph: every edge once, at its end of lower degree, ties by number.

No row is then longer than the square root of twice the edges, not even a hub's: Chiba and
Nishizeki, "Arboricity and subgraph listing algorithms", SIAM Journal on Computing 14 (1985).

A bit an entry says which are kept; how many each block keeps, summed up, and the bits tell the
place of each. Half of the entries are kept, so nobody has to wait for that number.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from glp_rapids.jit.cuda import cuda, kernel
from glp_rapids.jit.primitives import inclusive_scan, lower_bound, row_of, upper_bound

# Threads of a block, and how many entries each looks at: a word of 32 bits at least for a block.
THREADS, STEPS = 256, 16
ONE = np.uint32(1)


@cuda.jit(device=True)
def comes_first(u, v, indptr):
    """Tell whether the edge of two vertices is kept at the first."""
    mine, other = indptr[u + 1] - indptr[u], indptr[v + 1] - indptr[v]
    return mine < other or (mine == other and u < v)


@functools.cache
def build_mark(threads: int, steps: int) -> Any:
    """Make the kernel that marks the entries to be kept, and counts those of each block.

    Launch: a block for every ``threads * steps`` entries, a multiple of 32. Degrees: any. Shared
    memory: a bit an entry (512 bytes). Registers: 40.

    ``kept``: the bits. ``begin``: 0, and after it the numbers of the blocks.
    """
    entries, words = threads * steps, threads * steps // 32

    def mark_kept(indptr, indices, kept, begin):
        bits = cuda.shared.array(words, np.uint32)
        number = cuda.shared.array(1, np.int32)
        thread = cuda.threadIdx.x
        first = np.int64(cuda.blockIdx.x) * entries
        last = min(first + entries, np.int64(indices.size))
        # the rows of this block, so that the search for an entry's is a short one
        low, high = row_of(indptr, first), row_of(indptr, last - 1) + 1
        for word in range(thread, words, threads):
            bits[word] = 0
        if thread == 0:
            number[0] = 0
        cuda.syncthreads()
        for entry in range(first + thread, last, threads):
            u = np.int64(upper_bound(indptr, low, high, entry)) - 1
            if comes_first(u, np.int64(indices[entry]), indptr):
                cuda.atomic.or_(bits, (entry - first) >> 5, ONE << np.uint32(entry & 31))
        cuda.syncthreads()
        for word in range(thread, words, threads):
            if first // 32 + word < kept.size:
                kept[first // 32 + word] = bits[word]
            cuda.atomic.add(number, 0, np.int32(cuda.popc(bits[word])))
        cuda.syncthreads()
        if thread == 0:
            begin[cuda.blockIdx.x + 1] = number[0]

    return kernel(mark_kept, f"{threads} {steps}")


@functools.cache
def build_fill(threads: int, steps: int) -> Any:
    """Make the kernel that writes the entries that are kept side by side.

    Launch: as `build_mark`. Degrees: any. Shared memory: 1.5 KB. Registers: 31.

    ``begin``: where each block's begin. ``entry_of``: unless it is empty, for every edge the entry
    of the end that has the smaller number.
    """
    entries, words = threads * steps, threads * steps // 32
    scanned = max(threads, words)

    def fill_kept(indptr, indices, kept, begin, ends, entry_of):
        bits = cuda.shared.array(words, np.uint32)
        ranks = cuda.shared.array(scanned, np.int32)
        thread = cuda.threadIdx.x
        first = np.int64(cuda.blockIdx.x) * entries
        last = min(first + entries, np.int64(indices.size))
        low, high = row_of(indptr, first), row_of(indptr, last - 1) + 1
        ranks[thread] = 0
        if thread < words:
            bits[thread] = kept[first // 32 + thread] if first + 32 * thread < last else 0
            ranks[thread] = cuda.popc(bits[thread])
        inclusive_scan(ranks, thread, threads)
        base = np.int64(begin[cuda.blockIdx.x])
        for entry in range(first + thread, last, threads):
            word = (entry - first) >> 5
            bit = np.uint32(ONE << np.uint32(entry & 31))
            if bits[word] & bit:
                above = cuda.popc(np.uint32(bits[word] & ~np.uint32(bit - ONE)))
                place = base + ranks[word] - above
                ends[place] = indices[entry]
                if entry_of.size > 0:
                    u = np.int64(upper_bound(indptr, low, high, entry)) - 1
                    v = np.int64(indices[entry])
                    smaller = entry
                    if v < u:
                        smaller = np.int64(lower_bound(indices, indptr[v], indptr[v + 1], u))
                    entry_of[place] = smaller

    return kernel(fill_kept, f"{threads} {steps}")


@functools.cache
def build_starts(threads: int, entries: int) -> Any:
    """Make the kernel that finds where the oriented rows begin.

    Launch: a thread a vertex and one more. Degrees: any. Shared memory: none. Registers: 31.

    ``entries``: those of a block of `build_mark`.
    """

    def oriented_starts(indptr, kept, begin, starts):
        v = np.int64(cuda.blockIdx.x) * threads + cuda.threadIdx.x
        if v < indptr.size:
            entry = np.int64(indptr[v])
            block = entry // entries
            place = np.int64(begin[block])
            for word in range(block * (entries // 32), entry >> 5):
                place += cuda.popc(kept[word])
            if entry & 31:
                below = np.uint32((ONE << np.uint32(entry & 31)) - ONE)
                place += cuda.popc(np.uint32(kept[entry >> 5] & below))
            starts[v] = place

    return kernel(oriented_starts, f"{threads} {entries}")


@functools.cache
def build_place(threads: int) -> Any:
    """Make the kernel that puts the value of every edge at an entry of it.

    Launch: a thread an edge. Shared memory: none. Registers: 16.
    """

    def place_values(entry_of, values, result):
        edge = np.int64(cuda.blockIdx.x) * threads + cuda.threadIdx.x
        if edge < values.size:
            result[entry_of[edge]] = values[edge]

    return kernel(place_values, str(threads))
