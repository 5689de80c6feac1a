"""Shortest paths: near and far vertices, all rounds in one persistent launch.

Davidson, Baxter, Garland and Owens, "Work-efficient parallel GPU methods for single-source shortest
paths" (IPDPS 2014), with two piles. Vertices up to a limit are near and are worked on as often as
their distance falls; others wait in the far pile. When no near one is left the limit goes up, to a
step above the least distance in the far pile; the step is doubled when that brings hardly any near,
or when going through the far pile is more work than what came of it. Distances are the fixed point
of all relaxations, so they do not depend on the order of work, which is why blocks may go on by
themselves: a small pile is cut into parts, and a block goes on with what it finds for some steps,
in a queue in shared memory, between two barriers of the grid. Wide piles are cut into equal numbers
of entries, see `gpu_frontier`.

Nobody takes marks back: ``queued`` holds the turn for which a vertex was last put into the near
pile, ``waiting`` the number of the far pile.

Launch: cooperative, BLOCKS_A_MULTIPROCESSOR blocks of THREADS a multiprocessor. Degrees: any.
Shared memory: 41 KB with 64-bit weights. Registers: 80, and 56 bytes of local memory a thread.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np

from glp_rapids.jit.cuda import cuda, kernel, load_fresh
from glp_rapids.jit.primitives import grid_barrier
from glp_rapids.traversal.kernels import (
    gpu_frontier,
    gpu_narrow_piles,
    gpu_piles,
    gpu_wide_piles,
)
from glp_rapids.traversal.kernels.gpu_frontier import ENTRIES, ENTRY_BITS, Staging, Window
from glp_rapids.traversal.kernels.gpu_piles import (
    COUNTS,
    DENSE,
    HOPS_ALONE,
    NUMBER_OF_WORDS,
    RARE,
    STOP,
    WARP,
    WORDS,
    Fallen,
    Far,
    Marks,
    Queue,
)

__all__ = ["BLOCKS_A_MULTIPROCESSOR", "NUMBER_OF_WORDS", "WORDS", "Marks", "Pace", "build"]


BLOCKS_A_MULTIPROCESSOR = 3  # of four a thread would have 64 registers, and more in local memory
UNCOUNTED = ENTRIES  # more than can be: nobody counts what blocks relax by themselves

class Pace(NamedTuple):
    """How to search; ``cutoff`` and ``unreached`` in the type of the weights."""

    cutoff: Any
    unreached: Any
    steps: np.int64  # of this launch, at most that and those of one turn
    hops: np.int64  # steps between two barriers
    chunk: np.int64  # vertices that are enough for a block
    most: np.int64  # and those that are too many
    light: np.int64  # entries for each of the far pile, at most, that the step is doubled for


@functools.cache
def build(threads: int, lanes: int, dtype: Any, asks: bool) -> Any:
    """Make the kernel for weights of a type.

    Whether a block ``asks`` for what it will need: see `gpu_frontier`.
    """
    piles, narrow_ones = gpu_piles.build(threads), gpu_narrow_piles.build(threads, lanes, asks)
    put_near, put_far, flush_far = piles.put_near, piles.put_far, piles.flush_far
    take, go_on = narrow_ones
    expand, split = gpu_wide_piles.build(threads)
    staged, window_rows = gpu_frontier.STAGED, threads + 1
    queued, long = gpu_piles.QUEUED, gpu_piles.LONG
    two_rooms, two_lists = 2 * (queued + gpu_piles.LONG_QUEUED), 2 * 4 * threads

    def search_near_far(
        indptr, indices, weights, starts, targets, distance, frontier, far_pile, marks, words,
        limits, arrived, pace,
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
        labels = cuda.shared.array(threads, dtype)
        queue = Queue(
            vertex=cuda.shared.array(two_rooms, np.int32),
            start=cuda.shared.array(two_rooms, np.int64),
            degree=cuda.shared.array(two_rooms, np.int32),
            label=cuda.shared.array(two_rooms, dtype),
        )
        far = Far(
            vertex=cuda.shared.array(staged, np.int32),
            counter=cuda.shared.array(1, np.int32),
            base=cuda.shared.array(1, np.int64),
            lowest=cuda.shared.array(1, dtype),
            moved=cuda.shared.array(1, np.int32),
        )
        fallen = Fallen(
            vertex=cuda.shared.array(two_lists, np.int32),
            counter=cuda.shared.array(3, np.int32),
        )
        counts = cuda.shared.array(COUNTS, np.int32)
        cuda.cg.this_grid()
        thread, block = cuda.threadIdx.x, np.int64(cuda.blockIdx.x)
        blocks, vertices = np.int64(cuda.gridDim.x), np.int64(distance.size)
        first = block == 0 and thread == 0
        if thread == 0:
            staging.counter[0] = 0
            far.counter[0] = 0
            far.lowest[0] = pace.unreached
            far.moved[0] = 0
        if thread < 3:
            fallen.counter[thread] = 0
        cuda.syncthreads()
        turn, pile = words[WORDS.turn], words[WORDS.pile]
        size, entries, half = words[WORDS.size], words[WORDS.entries], words[WORDS.half]
        scanned, relaxed = words[WORDS.scanned], words[WORDS.relaxed]
        # the limit, three times the least distance in a far pile, and the step
        limit, step = limits[0], limits[4]
        barriers = np.int64(0)
        if turn < 0:
            for v in range(block * threads + thread, vertices, blocks * threads):
                distance[v] = pace.unreached
                marks.queued[v] = -1
                marks.waiting[v] = -1
            grid_barrier(arrived, blocks)
            for i in range(block * threads + thread, starts.size, blocks * threads):
                v = starts[i]
                distance[v] = 0
                degree = indptr[v + 1] - indptr[v]
                put_near(v, degree, frontier, 0, words, np.int64(-1), marks, staging, True)
            barriers += 2
            grid_barrier(arrived, barriers * blocks)
            turn = np.int64(0)
            packed = load_fresh(words, WORDS.appended)
            size, entries = packed >> ENTRY_BITS, packed & ENTRIES
        left, over = pace.steps, False
        while left > 0:
            left -= 1
            relaxed += entries
            begin, behind = half * vertices, (1 - half) * vertices
            narrow = size <= pace.most * blocks and entries <= DENSE * (size + WARP)
            narrow = narrow and load_fresh(words, WORDS.stuck + turn % 3) == 0
            if first:
                words[WORDS.appended + (turn + 2) % 3] = 0
                words[WORDS.stuck + (turn + 2) % 3] = 0
            for i in range(thread, COUNTS, threads):
                counts[i] = 0
            cuda.syncthreads()
            written = pile  # the far pile that this turn adds to
            if size == 0:
                waiting = load_fresh(words, WORDS.far + pile % 3)
                missing = False
                for i in range(thread, targets.size, threads):
                    missing = missing or not distance[targets[i]] <= limit
                number = cuda.syncthreads_count(np.int32(missing))
                if waiting == 0 or (targets.size > 0 and number == 0):
                    over = True
                    break
                before, lowest = limit, limits[1 + pile % 3]
                small = load_fresh(words, WORDS.moved + pile % 3) * RARE <= scanned
                small = small or relaxed <= pace.light * scanned
                if small and scanned > 0 and step < pace.cutoff - step:
                    step += step
                limit = pace.cutoff
                if lowest < pace.cutoff - step:
                    limit = lowest + step
                written, scanned, relaxed = pile + 1, waiting, np.int64(0)
                if first:
                    words[WORDS.moved + (pile + 2) % 3] = 0
                    words[WORDS.far + (pile + 2) % 3] = 0
                    limits[1 + (pile + 2) % 3] = pace.unreached
                if waiting <= pace.most * blocks:
                    left -= pace.hops
                    relaxed = UNCOUNTED
                    active = min(blocks, (waiting + pace.chunk - 1) // pace.chunk)
                    if block < active:
                        for i in range(
                            waiting * block // active + thread,
                            waiting * (block + 1) // active,
                            threads,
                        ):
                            v = far_pile[(pile % 2) * vertices + i]
                            here = distance[v]
                            if here > limit:
                                put_far(v, here, far_pile, words, written, marks, far, vertices)
                            elif here > before:
                                cuda.atomic.add(far.moved, 0, np.int32(1))
                                start = indptr[v]
                                degree = indptr[v + 1] - start
                                if degree > 0 and not take(
                                    queue, counts, 0, 0, v, start, degree, here
                                ):
                                    counts[STOP] = 1
                                    words[WORDS.stuck + (turn + 1) % 3] = 1
                                    put_near(
                                        v, degree, frontier, behind, words, turn, marks, staging,
                                        True,
                                    )  # fmt: skip
                        cuda.syncthreads()
                        go_on(
                            indptr, indices, weights, distance, limit, frontier, behind, words,
                            turn, written, far_pile, marks, staging, far, queue, counts,
                            pace.hops, False, pace,
                        )  # fmt: skip
                else:
                    split(
                        indptr, distance, limit, before, frontier, behind, words, turn, pile,
                        far_pile, marks, staging, far, waiting,
                    )  # fmt: skip
            elif narrow:
                active = min(blocks, (size + pace.chunk - 1) // pace.chunk)
                hops = pace.hops if active > 1 else np.int64(HOPS_ALONE)
                left -= hops
                relaxed += entries * hops  # no more than about that
                if block < active:
                    for i in range(
                        size * block // active + thread, size * (block + 1) // active, threads
                    ):
                        v = frontier.vertex[begin + i]
                        start = indptr[v]
                        degree = indptr[v + 1] - start
                        if not take(queue, counts, 0, 0, v, start, degree, distance[v]):
                            counts[STOP] = 1
                            words[WORDS.stuck + (turn + 1) % 3] = 1
                            put_near(v, degree, frontier, behind, words, turn, marks, staging, True)
                    cuda.syncthreads()
                    go_on(
                        indptr, indices, weights, distance, limit, frontier, behind, words, turn,
                        written, far_pile, marks, staging, far, queue, counts,
                        hops, active == 1, pace,
                    )  # fmt: skip
            else:
                expand(
                    indptr, indices, weights, distance, limit, frontier, half, words, turn,
                    written, far_pile, marks, staging, far, fallen, window, labels, size, entries,
                    pace,
                )  # fmt: skip
            cuda.syncthreads()
            flush_far(far_pile, words, written, far, vertices)
            # all read before one writes: loads may be moved before a branch that only one takes
            found, moved = far.lowest[0], far.moved[0]
            cuda.syncthreads()
            if thread == 0:
                if found != pace.unreached:
                    cuda.atomic.min(limits, 1 + written % 3, found)
                if moved > 0:
                    cuda.atomic.add(words, WORDS.moved + written % 3, np.int64(moved))
                far.lowest[0] = pace.unreached
                far.moved[0] = 0
            half = 1 - half
            turn += 1
            pile = written
            barriers += 1
            grid_barrier(arrived, barriers * blocks)
            packed = load_fresh(words, WORDS.appended + turn % 3)
            size, entries = packed >> ENTRY_BITS, packed & ENTRIES
        barriers += 1
        grid_barrier(arrived, barriers * blocks)  # all have read the words
        if first:
            words[WORDS.turn], words[WORDS.pile] = turn, pile
            words[WORDS.size], words[WORDS.entries], words[WORDS.half] = size, entries, half
            words[WORDS.over] = 1 if over else 0
            words[WORDS.barriers] += barriers
            words[WORDS.appended + (turn + 1) % 3] = 0
            words[WORDS.scanned], words[WORDS.relaxed] = scanned, relaxed
            limits[0], limits[4] = limit, step

    digest = f"{threads} {lanes} {queued} {long} {np.dtype(dtype).name} {asks}"
    bounds = threads, BLOCKS_A_MULTIPROCESSOR
    return kernel(search_near_far, digest, launch_bounds=bounds)
