"""Breadth-first searches from up to 64 vertices at once, all levels in one persistent launch.

Then, Kaufmann, Chirigati, Hoang-Vu, Pham, Kemper, Neumann and Vo, "The more the merrier: efficient
multi-source graph traversal" (VLDB 2014): a bit for each search in one word a vertex, so an edge is
read once for all searches. A level has two halves: the words of the next one are collected along
edges (from the frontier, or by every vertex that some search has not seen), then the vertices that
got any see them. What a neighbour had seen before this level the vertex has seen as well, so
nobody keeps the frontier's own bits.

Launch: cooperative, BLOCKS_A_MULTIPROCESSOR blocks of THREADS a multiprocessor. Degrees: any.
Shared memory: 19 KB. Registers: 64.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np

from glp_rapids.jit.cuda import cuda, kernel, load_fresh
from glp_rapids.jit.primitives import grid_barrier
from glp_rapids.traversal.kernels import gpu_frontier
from glp_rapids.traversal.kernels.gpu_frontier import (
    ENTRIES,
    ENTRY_BITS,
    Staging,
    Window,
    row_in_window,
)

SEARCHES = 64  # of one launch
ONE, NONE = np.uint64(1), np.uint64(0)
SCANNED = 8  # entries of a row that one thread looks at, when vertices look for the frontier
LOOK = 8  # entries that a thread of a warp adds up before it looks at what the others have
HALF, LOW = np.uint64(32), np.uint64(0xFFFFFFFF)
WARP = 32


class Words(NamedTuple):
    """Where in the words of a search something lies; int64. First what goes in and comes out."""

    level: int  # the distance of the frontier; -1: nothing was done so far
    size: int  # of the frontier
    entries: int  # of its rows
    half: int  # which half of the arrays it is in
    over: int  # whether the search is
    barriers: int
    appended: int  # three: vertices and entries of a level


WORDS = Words(*range(7))
NUMBER_OF_WORDS = 9


class Pace(NamedTuple):
    """How to search."""

    depth: np.int64
    levels: np.int64  # of this launch
    pulls: bool  # whether rows of edges into vertices are there
    alpha: np.int64  # wide enough to pull: entries times this are more than those of the graph
    wanted: bool  # whether distances are


class Halves(NamedTuple):
    """In shared memory: what was collected for rows that are left to warps, 32 bits and 32."""

    low: Any
    high: Any


@functools.cache
def build(threads: int) -> Any:
    """Make the kernel."""
    functions = gpu_frontier.build(threads)
    append, flush = functions.append, functions.flush
    rows_of_block, load_window = functions.rows_of_block, functions.load_window
    staged, window_rows = gpu_frontier.STAGED, threads + 1
    full = gpu_frontier.STAGED - threads
    warp, warps = min(WARP, threads), max(threads // WARP, 1)

    @cuda.jit(device=True)
    def push(indptr, indices, seen, ahead, frontier, half, words, word, staging, window, own,
             size, entries):  # fmt: skip
        """Collect along the block's part of the frontier's entries."""
        thread, block, blocks = cuda.threadIdx.x, np.int64(cuda.blockIdx.x), cuda.gridDim.x
        vertices = np.int64(seen.size)
        begin, behind = half * vertices, (1 - half) * vertices
        place, last = entries * block // blocks, entries * (block + 1) // blocks
        if place >= last:
            return
        row = rows_of_block(frontier.offset, begin, size, place)
        waiting = np.int64(0)
        while place < last:
            u = load_window(indptr, frontier, begin, size, entries, row, window)
            if u >= 0:
                own[thread] = seen[u]
            cuda.syncthreads()
            stop = min(last, window.offset[threads])
            while place < stop:
                new = False
                if place + thread < stop:
                    here = row_in_window(window, threads, place + thread)
                    v = indices[place + thread + window.shift[here]]
                    bits = own[here] & ~seen[v]
                    news = (bits & ~ahead[v]) != NONE
                    if news and cuda.atomic.or_(ahead, v, bits) == NONE:
                        degree = indptr[v + 1] - indptr[v]
                        append(frontier, behind, words, word, staging, v, degree)
                        new = True
                waiting += cuda.syncthreads_count(np.int32(new))
                if waiting > full:
                    flush(frontier, behind, words, word, staging)
                    waiting = 0
                place += threads
            place = stop
            row += threads
            cuda.syncthreads()
        flush(frontier, behind, words, word, staging)

    @cuda.jit(device=True)
    def pull(indptr, in_indptr, in_indices, seen, ahead, everyone, frontier, behind, words, word,
             staging, window, deferred, number):  # fmt: skip
        """Let every vertex that some search has not seen collect from its neighbours."""
        thread, block, blocks = cuda.threadIdx.x, np.int64(cuda.blockIdx.x), cuda.gridDim.x
        waiting = np.int64(0)
        low, high = window.low, window.high
        if thread == 0:
            number[0] = 0
        cuda.syncthreads()
        for first in range(block * threads, seen.size, blocks * threads):
            v = first + thread
            own, new = NONE, False
            if v < seen.size:
                wanted = everyone & ~seen[v]
                start, end = in_indptr[v], in_indptr[v + 1]
                if wanted != NONE and start < end:
                    middle = min(end, start + SCANNED)
                    place = start
                    while place < middle and own & wanted != wanted:
                        # all are asked for before any is looked at
                        a = in_indices[place]
                        b = in_indices[min(place + 1, middle - 1)]
                        c = in_indices[min(place + 2, middle - 1)]
                        d = in_indices[min(place + 3, middle - 1)]
                        own |= seen[a] | seen[b] | seen[c] | seen[d]
                        place += 4
                    own &= wanted
                    if own != wanted and middle < end:
                        slot = cuda.atomic.add(number, 0, np.int32(1))
                        deferred[slot] = v
                        low[slot] = np.uint32(own & LOW)
                        high[slot] = np.uint32(own >> HALF)
                        own = NONE
                    if own != NONE:
                        ahead[v] = own
                        append(
                            frontier, behind, words, word, staging, np.int32(v),
                            indptr[v + 1] - indptr[v],
                        )  # fmt: skip
                        new = True
            cuda.syncthreads()
            size = number[0]
            for slot in range(thread // warp, size, warps):
                v = np.int64(deferred[slot])
                wanted = everyone & ~seen[v]
                own, looks = NONE, 0
                for place in range(in_indptr[v] + SCANNED + thread % warp, in_indptr[v + 1], warp):
                    own |= seen[in_indices[place]]
                    looks += 1
                    if looks == LOOK:
                        looks = 0
                        own &= wanted
                        of_low = cuda.atomic.or_(low, slot, np.uint32(own & LOW))
                        of_high = cuda.atomic.or_(high, slot, np.uint32(own >> HALF))
                        own |= np.uint64(of_low) | (np.uint64(of_high) << HALF)
                        if own == wanted:
                            break
                own &= wanted
                if own & LOW != NONE:
                    cuda.atomic.or_(low, slot, np.uint32(own & LOW))
                if own >> HALF != NONE:
                    cuda.atomic.or_(high, slot, np.uint32(own >> HALF))
            waiting += cuda.syncthreads_count(np.int32(new))
            if waiting + size > full:
                flush(frontier, behind, words, word, staging)
                waiting = 0
            new = False
            if thread < size:
                own = np.uint64(low[thread]) | (np.uint64(high[thread]) << HALF)
                v = np.int64(deferred[thread])
                if own != NONE:
                    ahead[v] = own
                    append(
                        frontier, behind, words, word, staging, np.int32(v),
                        indptr[v + 1] - indptr[v],
                    )  # fmt: skip
                    new = True
            if thread == 0:
                number[0] = 0
            waiting += cuda.syncthreads_count(np.int32(new))
            if waiting > full:
                flush(frontier, behind, words, word, staging)
                waiting = 0
        flush(frontier, behind, words, word, staging)

    @cuda.jit(device=True)
    def see(seen, ahead, distance, wanted, summary, frontier, begin, size, level, counts):
        """Let the vertices of the next frontier see what was collected; count."""
        thread, block, blocks = cuda.threadIdx.x, np.int64(cuda.blockIdx.x), cuda.gridDim.x
        if block * threads >= size:
            return
        vertices = np.int64(seen.size)
        for search in range(thread, SEARCHES, threads):
            counts[search] = 0
        cuda.syncthreads()
        for i in range(block * threads + thread, size, blocks * threads):
            v = frontier.vertex[begin + i]
            bits = ahead[v]
            ahead[v] = NONE
            seen[v] |= bits
            # each thread of a warp begins elsewhere, so they don't meet
            for step in range(SEARCHES):
                search = (step + thread) % SEARCHES
                if (bits >> np.uint64(search)) & ONE != NONE:
                    cuda.atomic.add(counts, search, np.int32(1))
                    if wanted:
                        distance[search * vertices + v] = level
        cuda.syncthreads()
        for search in range(thread, SEARCHES, threads):
            found = np.int64(counts[search])
            if found > 0:
                cuda.atomic.add(summary, 3 * search, found)
                cuda.atomic.add(summary, 3 * search + 1, found * level)
                cuda.atomic.max(summary, 3 * search + 2, level)

    def search_together(
        indptr, indices, in_indptr, in_indices, starts, seen, ahead, distance, summary, frontier,
        words, arrived, pace,
    ):  # fmt: skip
        staging = Staging(
            vertex=cuda.shared.array(staged, np.int32),
            place=cuda.shared.array(staged, np.int32),
            counter=cuda.shared.array(1, np.int32),
            base=cuda.shared.array(1, np.int64),
        )
        window = Window(
            offset=cuda.shared.array(window_rows, np.int64),
            shift=cuda.shared.array(threads, np.int64),
            vertex=cuda.shared.array(threads, np.int32),
        )
        own = cuda.shared.array(threads, np.uint64)
        halves = Halves(
            low=cuda.shared.array(threads, np.uint32),
            high=cuda.shared.array(threads, np.uint32),
        )
        deferred = cuda.shared.array(threads, np.int32)
        number = cuda.shared.array(1, np.int32)
        counts = cuda.shared.array(SEARCHES, np.int32)
        cuda.cg.this_grid()
        thread, block = cuda.threadIdx.x, np.int64(cuda.blockIdx.x)
        blocks, vertices = np.int64(cuda.gridDim.x), np.int64(seen.size)
        first = block == 0 and thread == 0
        if thread == 0:
            staging.counter[0] = 0
        cuda.syncthreads()
        level, size, entries = words[WORDS.level], words[WORDS.size], words[WORDS.entries]
        half = words[WORDS.half]
        everyone = ~NONE
        if starts.size < SEARCHES:
            everyone = (ONE << np.uint64(starts.size)) - ONE
        turn, barriers = np.int64(0), np.int64(0)
        if level < 0:
            for v in range(block * threads + thread, vertices, blocks * threads):
                seen[v] = NONE
                ahead[v] = NONE
            barriers += 1
            grid_barrier(arrived, barriers * blocks)
            for i in range(block * threads + thread, starts.size, blocks * threads):
                v = starts[i]
                seen[v] = ONE << np.uint64(i)
                summary[3 * i] = 1
                if pace.wanted:
                    distance[i * vertices + v] = 0
                reserved = cuda.atomic.add(
                    words, WORDS.appended, (np.int64(1) << ENTRY_BITS) | (indptr[v + 1] - indptr[v])
                )
                frontier.vertex[reserved >> ENTRY_BITS] = v
                frontier.offset[reserved >> ENTRY_BITS] = reserved & ENTRIES
            barriers += 1
            grid_barrier(arrived, barriers * blocks)
            packed = load_fresh(words, WORDS.appended)
            size, entries, level = packed >> ENTRY_BITS, packed & ENTRIES, np.int64(0)
        end = min(pace.depth, level + pace.levels)
        while size > 0 and level < end:
            word = WORDS.appended + (turn + 1) % 3
            if first:
                words[WORDS.appended + (turn + 2) % 3] = 0
            if pace.pulls and entries * pace.alpha > indices.size:
                pull(
                    indptr, in_indptr, in_indices, seen, ahead, everyone, frontier,
                    (1 - half) * vertices, words, word, staging, halves, deferred, number,
                )  # fmt: skip
            else:
                push(
                    indptr, indices, seen, ahead, frontier, half, words, word, staging, window, own,
                    size, entries,
                )  # fmt: skip
            half = 1 - half
            turn += 1
            level += 1
            barriers += 1
            grid_barrier(arrived, barriers * blocks)
            packed = load_fresh(words, word)
            size, entries = packed >> ENTRY_BITS, packed & ENTRIES
            see(
                seen, ahead, distance, pace.wanted, summary, frontier, half * vertices, size, level,
                counts,
            )  # fmt: skip
            barriers += 1
            grid_barrier(arrived, barriers * blocks)
        if first:
            words[WORDS.level], words[WORDS.size], words[WORDS.entries] = level, size, entries
            words[WORDS.half] = half
            words[WORDS.over] = 1 if size == 0 or level >= pace.depth else 0
            words[WORDS.barriers] += barriers
            for i in range(3):
                words[WORDS.appended + i] = 0

    bounds = threads, gpu_frontier.BLOCKS_A_MULTIPROCESSOR
    return kernel(search_together, f"{threads}", launch_bounds=bounds)
