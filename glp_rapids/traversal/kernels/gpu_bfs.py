"""Breadth-first search: all levels in one persistent launch.

Three ways through a level, chosen by every block alike:

*Small frontiers* are worked on for several levels between two barriers of the grid: a block takes
a part of the frontier and goes on with what it finds, in a queue in shared memory. Whoever lowers a
vertex's distance queues it, so after k steps all distances up to k more are exact, whoever found
them. If a block's queue is full or a row too long for it, the others may have gone on from
distances that are too large: those beyond the last exact ones are taken back. One block alone needs
no barrier, and goes on as long as it can.

*Wide levels* are cut into equal numbers of entries, see `gpu_frontier`.

*Levels that hold a good part of the edges left* are searched from the other side (Beamer, Asanovic
and Patterson, "Direction-optimizing breadth-first search", SC 2012): every vertex without a
distance looks for a neighbour in the frontier, and the first in its row is its predecessor.

Wide levels, and those of one block alone, find the smallest predecessors by atomic minima on the
way. Where several blocks go on by themselves they are left to `gpu_predecessors`, and counted.

Launch: cooperative, BLOCKS_A_MULTIPROCESSOR blocks of THREADS a multiprocessor. Degrees: any.
Shared memory: 31 KB. Registers: 64, and 104 bytes of local memory a thread.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np

from glp_rapids.jit.cuda import cuda, kernel, load_fresh
from glp_rapids.jit.primitives import grid_barrier
from glp_rapids.traversal.kernels import gpu_frontier, gpu_levels
from glp_rapids.traversal.kernels.gpu_frontier import ENTRIES, ENTRY_BITS, Staging, Window
from glp_rapids.traversal.kernels.gpu_levels import DENSE, FAR, NONE, UNKNOWN, WARP
from glp_rapids.traversal.kernels.gpu_queue import COUNTS, Queue


class Words(NamedTuple):
    """Where in the words of a search something lies; int64. First what goes in and comes out."""

    level: int  # the distance of the frontier
    size: int  # of the frontier
    entries: int  # of its rows
    left: int  # entries of rows that were in no frontier so far
    half: int  # which half of the arrays the frontier is in
    listed: int  # whether it is there
    pause: int  # levels to go before blocks work on their own
    penalty: int  # how long the next pause will be
    over: int  # whether the search is
    most: int  # the largest distance
    reached: int  # vertices
    missing: int  # of these, how many have a predecessor that is still to be found
    barriers: int
    arrived: int  # at barriers
    appended: int  # three: vertices and entries that a round appended
    lost: int  # three: the smallest distance of a vertex that had no room
    hopped: int  # three: levels that one block did alone


WORDS = Words(*range(14), 14, 17, 20)
NUMBER_OF_WORDS = 23


class Asked(NamedTuple):
    """What is new in every search: where it begins, and where its results go."""

    starts: Any
    distance: Any  # int32: of every vertex
    predecessor: Any  # likewise, or empty if none are wanted


class Pace(NamedTuple):
    """How to search."""

    depth: np.int64
    levels: np.int64  # of this launch
    hops: np.int64  # levels between two barriers
    chunk: np.int64  # vertices that are enough for a block
    most: np.int64  # and those that are too many
    pulls: bool  # whether rows of edges into vertices are there
    alpha: np.int64  # wide enough to pull: entries times this are more than those left
    beta: np.int64  # and times this, more than vertices


@functools.cache
def build(threads: int, lanes: int, asks: bool) -> Any:
    """Make the kernel; whether a block ``asks`` for what it will need, see `gpu_frontier`."""
    ways = gpu_levels.build(threads, lanes, asks)
    hop, expand, pull, list_level = ways.hop, ways.expand, ways.pull, ways.list_level
    staged, window_rows = gpu_frontier.STAGED, threads + 1
    queued, long = gpu_levels.QUEUED, gpu_levels.LONG
    two_rooms = 2 * (queued + gpu_levels.LONG_QUEUED)

    @cuda.jit(device=True)
    def begin_search(
        indptr, starts, distance, predecessor, frontier, words, word, arrived, goal
    ):  # fmt: skip
        """Clear the distances, and append the starts."""
        thread = np.int64(cuda.blockIdx.x) * threads + cuda.threadIdx.x
        all_threads = np.int64(cuda.gridDim.x) * threads
        for v in range(thread, distance.size, all_threads):
            distance[v] = FAR
            if predecessor.size > 0:
                predecessor[v] = UNKNOWN
        grid_barrier(arrived, goal)
        for i in range(thread, starts.size, all_threads):
            v = starts[i]
            distance[v] = 0
            degree = indptr[v + 1] - indptr[v]
            reserved = cuda.atomic.add(words, word, (np.int64(1) << ENTRY_BITS) | degree)
            frontier.vertex[reserved >> ENTRY_BITS] = v
            frontier.offset[reserved >> ENTRY_BITS] = reserved & ENTRIES

    @cuda.jit(device=True)
    def sum_up(distance, predecessor, words, totals):
        """Find the largest distance, and how many there are; of predecessors who has none."""
        thread = np.int64(cuda.blockIdx.x) * threads + cuda.threadIdx.x
        number, most, missing = np.int32(0), np.int32(0), np.int32(0)
        if cuda.threadIdx.x < 3:
            totals[cuda.threadIdx.x] = 0
        cuda.syncthreads()
        for v in range(thread, distance.size, np.int64(cuda.gridDim.x) * threads):
            here = distance[v]
            if here != FAR:
                number += 1
                most = max(most, here)
            if predecessor.size > 0 and predecessor[v] == UNKNOWN:
                if here == FAR or here == 0:
                    predecessor[v] = -1
                else:
                    missing += 1
        if number > 0:
            cuda.atomic.add(totals, 0, number)
            cuda.atomic.max(totals, 1, most)
        if missing > 0:
            cuda.atomic.add(totals, 2, missing)
        cuda.syncthreads()
        if cuda.threadIdx.x == 0 and totals[0] > 0:
            cuda.atomic.add(words, WORDS.reached, np.int64(totals[0]))
            cuda.atomic.max(words, WORDS.most, np.int64(totals[1]))
        if cuda.threadIdx.x == 0 and totals[2] > 0:
            cuda.atomic.add(words, WORDS.missing, np.int64(totals[2]))

    def search_levels(
        indptr, indices, in_indptr, in_indices, frontier, words, arrived, pace, asked
    ):  # fmt: skip
        starts, distance, predecessor = asked
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
        queue = Queue(
            vertex=cuda.shared.array(two_rooms, np.int32),
            start=cuda.shared.array(two_rooms, np.int64),
            degree=cuda.shared.array(two_rooms, np.int32),
        )
        counts = cuda.shared.array(COUNTS, np.int32)
        totals = cuda.shared.array(3, np.int32)
        cuda.cg.this_grid()
        thread, blocks = cuda.threadIdx.x, np.int64(cuda.gridDim.x)
        vertices = np.int64(distance.size)
        first = cuda.blockIdx.x == 0 and thread == 0
        if thread == 0:
            staging.counter[0] = 0
        cuda.syncthreads()
        level, size, entries = words[WORDS.level], words[WORDS.size], words[WORDS.entries]
        left, half, listed = words[WORDS.left], words[WORDS.half], words[WORDS.listed] != 0
        pause, penalty = words[WORDS.pause], words[WORDS.penalty]
        turn, barriers = np.int64(0), np.int64(0)
        if level < 0:
            begin_search(
                indptr, starts, distance, predecessor, frontier, words, WORDS.appended, arrived,
                blocks,
            )  # fmt: skip
            barriers += 2
            grid_barrier(arrived, barriers * blocks)
            packed = load_fresh(words, WORDS.appended)
            size, entries, level = packed >> ENTRY_BITS, packed & ENTRIES, np.int64(0)
        end = min(pace.depth, level + pace.levels)
        while size > 0 and level < end:
            word = WORDS.appended + (turn + 1) % 3
            lost = WORDS.lost + (turn + 1) % 3
            if first:
                words[WORDS.appended + (turn + 2) % 3] = 0
                words[WORDS.lost + (turn + 2) % 3] = NONE
            begin, behind = half * vertices, (1 - half) * vertices
            hops = np.int64(1)
            wide = entries * pace.alpha > left and entries * pace.beta > vertices
            left -= entries
            if pace.pulls and wide:
                pull(
                    indptr, in_indptr, in_indices, distance, predecessor, words, word, staging,
                    totals, level,
                )  # fmt: skip
                listed = False
            elif not listed:
                list_level(indptr, distance, frontier, behind, words, word, staging, level, False)
                listed, hops = True, np.int64(0)
                left += entries
            elif pause <= 0 and size <= pace.most * blocks and entries <= DENSE * (size + WARP):
                active = min(blocks, (size + pace.chunk - 1) // pace.chunk)
                hops = min(pace.hops, end - level)
                if active == 1:
                    hops = end - level
                if cuda.blockIdx.x < active:
                    done = hop(
                        indptr, indices, distance, predecessor, frontier, begin, behind, words,
                        word, lost, queue, counts, staging, level, size, hops, active,
                    )  # fmt: skip
                    if active == 1 and thread == 0:
                        words[WORDS.hopped + turn % 3] = done
                if active == 1:
                    hops = np.int64(-1)  # as many as the block says
            else:
                expand(
                    indptr, indices, distance, predecessor, frontier, begin, behind, words, word,
                    staging, window, level, size, entries,
                )  # fmt: skip
                pause -= 1
            half = 1 - half
            barriers += 1
            grid_barrier(arrived, barriers * blocks)
            if hops < 0:
                hops = load_fresh(words, WORDS.hopped + turn % 3)
            level += hops
            turn += 1
            away = load_fresh(words, lost)
            if away != NONE:
                word = WORDS.appended + (turn + 1) % 3
                if first:
                    words[WORDS.appended + (turn + 2) % 3] = 0
                    words[WORDS.lost + (turn + 2) % 3] = NONE
                level, pause, penalty = away, penalty, min(2 * penalty, NONE)
                list_level(
                    indptr, distance, frontier, half * vertices, words, word, staging, level, True
                )
                turn += 1
                barriers += 1
                grid_barrier(arrived, barriers * blocks)
            packed = load_fresh(words, WORDS.appended + turn % 3)
            size, entries = packed >> ENTRY_BITS, packed & ENTRIES
        over = size == 0 or level >= pace.depth
        barriers += 1
        grid_barrier(arrived, barriers * blocks)  # all have read the words
        if first:
            words[WORDS.most] = 0
            words[WORDS.level], words[WORDS.size], words[WORDS.entries] = level, size, entries
            words[WORDS.left], words[WORDS.half] = left, half
            words[WORDS.listed] = 1 if listed else 0
            words[WORDS.pause], words[WORDS.penalty] = pause, penalty
            words[WORDS.over] = 1 if over else 0
            words[WORDS.barriers] += barriers
            for i in range(3):
                words[WORDS.appended + i] = 0
                words[WORDS.lost + i] = NONE
        if over:
            barriers += 1
            grid_barrier(arrived, barriers * blocks)
            sum_up(distance, predecessor, words, totals)

    bounds = threads, gpu_frontier.BLOCKS_A_MULTIPROCESSOR
    return kernel(search_levels, f"{threads} {lanes} {queued} {long} {asks}", launch_bounds=bounds)
