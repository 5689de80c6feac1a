"""The near and the far pile of a search for shortest paths, see `gpu_sssp`, as device functions."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np

from glp_rapids.jit.cuda import cuda
from glp_rapids.traversal.kernels import gpu_frontier
from glp_rapids.traversal.kernels.gpu_frontier import ENTRIES, ENTRY_BITS, row_in_window

QUEUED = 256  # vertices in the queue of a block
LONG = 64  # entries of a row that a whole block works on
LONG_QUEUED = 32  # such rows
LONGEST = 1 << 12  # entries of a row in the queue of a block
DENSE = 8  # entries a vertex of a frontier that is small
RARE = 16  # if no more than one in so many of the far pile came near, the step is doubled
WARP = 32
HOPS_ALONE = 1 << 10  # steps of one block between two barriers, when the others have nothing to do
# What a block counts, of three steps in turn: short and long rows queued, and whether it must stop.
SHORT, LONGER, STOP, COUNTS = 0, 3, 6, 9


class Words(NamedTuple):
    """Where in the words of a search something lies; int64. First what goes in and comes out."""

    turn: int  # -1: nothing was done so far
    pile: int  # the number of the far pile, which is how often the limit went up
    size: int  # of the near pile
    entries: int  # of its rows
    half: int  # which half of the arrays it is in
    over: int  # whether the search is
    barriers: int
    appended: int  # three: vertices and entries that a turn put into the near pile
    far: int  # three: vertices in a far pile
    moved: int  # three: how many of them came near when it was gone through
    stuck: int  # three: whether a block had no room for its part of a pile
    scanned: int  # how many were in the last one that was


WORDS = Words(*range(8), 10, 13, 16, 19)
NUMBER_OF_WORDS = 20


class Marks(NamedTuple):
    """By vertex: when it was last put into the near pile, and into which far pile."""

    queued: Any  # int32
    waiting: Any  # int32


class Queue(NamedTuple):
    """In shared memory: two queues of a block, each first of short rows, then of long."""

    vertex: Any
    start: Any
    degree: Any
    label: Any


class Far(NamedTuple):
    """In shared memory: what a block will put into the far pile."""

    vertex: Any
    counter: Any  # int32 [1]
    base: Any  # int64 [1]
    lowest: Any  # [1]: of the distances
    moved: Any  # int32 [1]: how many of another pile came near


class Steps(NamedTuple):
    """Device functions; all threads of a block call the last four together."""

    put_near: Any
    put_far: Any
    take: Any
    flush_far: Any
    go_on: Any
    expand: Any
    split: Any


@functools.cache
def build(threads: int, lanes: int, asks: bool) -> Steps:
    """Make the functions; whether a block ``asks`` for what it will need, see `gpu_frontier`."""
    functions = gpu_frontier.build(threads)
    append, flush = functions.append, functions.flush
    rows_of_block, load_window = functions.rows_of_block, functions.load_window
    ask_around = gpu_frontier.build_ask(asks)
    staged, full = gpu_frontier.STAGED, gpu_frontier.STAGED - threads
    room = QUEUED + LONG_QUEUED

    @cuda.jit(device=True)
    def put_near(vertex, degree, frontier, begin, words, turn, marks, staging, directly):
        """Put a vertex into the near pile of the next turn, unless it is there."""
        tag = np.int32(turn + 1)
        if cuda.atomic.exch(marks.queued, vertex, tag) == tag:
            return
        word = WORDS.appended + (turn + 1) % 3
        if directly:
            reserved = cuda.atomic.add(words, word, (np.int64(1) << ENTRY_BITS) | degree)
            slot = begin + (reserved >> ENTRY_BITS)
            frontier.vertex[slot] = vertex
            frontier.offset[slot] = reserved & ENTRIES
        else:
            append(frontier, begin, words, word, staging, vertex, degree)

    @cuda.jit(device=True)
    def put_far(vertex, label, far_pile, words, pile, marks, far, vertices):
        """Put a vertex into a far pile, unless it is there."""
        if label < far.lowest[0]:
            cuda.atomic.min(far.lowest, 0, label)
        tag = np.int32(pile)
        if cuda.atomic.exch(marks.waiting, vertex, tag) == tag:
            return
        slot = cuda.atomic.add(far.counter, 0, np.int32(1))
        if slot < staged:
            far.vertex[slot] = vertex
        else:
            place = cuda.atomic.add(words, WORDS.far + pile % 3, np.int64(1))
            far_pile[(pile % 2) * vertices + place] = vertex

    @cuda.jit(device=True)
    def flush_far(far_pile, words, pile, far, vertices):
        """Write what is staged to the far pile; after a barrier of the block."""
        size = min(far.counter[0], staged)
        if size > 0 and cuda.threadIdx.x == 0:
            far.base[0] = cuda.atomic.add(words, WORDS.far + pile % 3, np.int64(size))
        cuda.syncthreads()  # all have read the counter
        if size == 0:
            return
        first = (pile % 2) * vertices + far.base[0]
        for slot in range(cuda.threadIdx.x, size, threads):
            far_pile[first + slot] = far.vertex[slot]
        cuda.syncthreads()
        if cuda.threadIdx.x == 0:
            far.counter[0] = 0
        cuda.syncthreads()

    @cuda.jit(device=True)
    def take(queue, counts, now, step, vertex, start, degree, label):
        """Put a vertex into a queue of the block; tell whether there was room."""
        if degree <= LONG:
            slot = cuda.atomic.add(counts, SHORT + step, np.int32(1))
            if slot >= QUEUED:
                return False
        elif degree > LONGEST:
            return False
        else:
            slot = cuda.atomic.add(counts, LONGER + step, np.int32(1))
            if slot >= LONG_QUEUED:
                return False
            slot += QUEUED
        slot += now * room
        queue.vertex[slot] = vertex
        queue.start[slot] = start
        queue.degree[slot] = np.int32(degree)
        queue.label[slot] = label
        return True

    @cuda.jit(device=True)
    def relax(
        indptr, indices, weights, distance, place, here, limit, frontier, begin, words, turn, pile,
        far_pile, marks, staging, far, queue, counts, following, step, pace,
    ):  # fmt: skip
        """Go along an entry; queue the vertex there if that makes it nearer."""
        v = indices[place]
        through = here + weights[place]
        # asked for before it is known whether it is wanted: one trip to memory instead of two
        start, end = indptr[v], indptr[v + 1]
        if not (through < distance[v] and through <= pace.cutoff):
            return
        if through < cuda.atomic.min(distance, v, through):
            degree = end - start
            ask_around(indptr, indices, v, start)
            if through > limit:
                put_far(v, through, far_pile, words, pile, marks, far, distance.size)
            elif degree > 0 and not take(queue, counts, following, step, v, start, degree, through):
                counts[STOP + step] = 1
                put_near(v, degree, frontier, begin, words, turn, marks, staging, True)

    @cuda.jit(device=True)
    def go_on(
        indptr, indices, weights, distance, limit, frontier, begin, words, turn, pile, far_pile,
        marks, staging, far, queue, counts, hops, alone, pace,
    ):  # fmt: skip
        """Work on a block's queue for some steps; leave the rest to the next turn."""
        thread = cuda.threadIdx.x
        now, done = 0, np.int64(0)
        while done < hops:
            step = done % 3
            short = min(counts[SHORT + step], QUEUED)
            long = min(counts[LONGER + step], LONG_QUEUED)
            if short + long == 0 or counts[STOP + step] != 0:
                break
            if alone and done > 0 and short > threads // lanes:
                break  # others can help
            following = 1 - now
            done += 1
            if thread == 0:  # nobody looks at these any more, or before the next barrier
                counts[SHORT + (step + 2) % 3] = 0
                counts[LONGER + (step + 2) % 3] = 0
                counts[STOP + (step + 2) % 3] = 0
            for i in range(thread // lanes, short, threads // lanes):
                slot = now * room + i
                start, here = queue.start[slot], queue.label[slot]
                if distance[queue.vertex[slot]] < here:
                    continue  # it has been queued again
                for place in range(start + thread % lanes, start + queue.degree[slot], lanes):
                    relax(
                        indptr, indices, weights, distance, place, here, limit, frontier, begin,
                        words, turn, pile, far_pile, marks, staging, far, queue, counts, following,
                        done % 3, pace,
                    )  # fmt: skip
            for i in range(long):
                slot = now * room + QUEUED + i
                start, here = queue.start[slot], queue.label[slot]
                for place in range(start + thread, start + queue.degree[slot], threads):
                    relax(
                        indptr, indices, weights, distance, place, here, limit, frontier, begin,
                        words, turn, pile, far_pile, marks, staging, far, queue, counts, following,
                        done % 3, pace,
                    )  # fmt: skip
            now = following
            cuda.syncthreads()
        short = min(counts[SHORT + done % 3], QUEUED)
        long = min(counts[LONGER + done % 3], LONG_QUEUED)
        for i in range(thread, short, threads):
            slot = now * room + i
            put_near(
                queue.vertex[slot], np.int64(queue.degree[slot]), frontier, begin, words, turn,
                marks, staging, False,
            )  # fmt: skip
        for i in range(thread, long, threads):
            slot = now * room + QUEUED + i
            put_near(
                queue.vertex[slot], np.int64(queue.degree[slot]), frontier, begin, words, turn,
                marks, staging, False,
            )  # fmt: skip
        cuda.syncthreads()
        flush(frontier, begin, words, WORDS.appended + (turn + 1) % 3, staging)

    @cuda.jit(device=True)
    def expand(
        indptr, indices, weights, distance, limit, frontier, half, words, turn, pile, far_pile,
        marks, staging, far, window, labels, size, entries, pace,
    ):  # fmt: skip
        """Work on a block's part of the entries of the near pile."""
        thread, block, blocks = cuda.threadIdx.x, np.int64(cuda.blockIdx.x), cuda.gridDim.x
        vertices = np.int64(distance.size)
        begin, behind = half * vertices, (1 - half) * vertices
        word = WORDS.appended + (turn + 1) % 3
        place, last = entries * block // blocks, entries * (block + 1) // blocks
        if place >= last:
            return
        row = rows_of_block(frontier.offset, begin, size, place)
        waiting = np.int64(0)
        while place < last:
            u = load_window(indptr, frontier, begin, size, entries, row, window)
            if u >= 0:
                labels[thread] = distance[u]
            cuda.syncthreads()
            stop = min(last, window.offset[threads])
            while place < stop:
                new = False
                if place + thread < stop:
                    here = row_in_window(window, threads, place + thread)
                    entry = place + thread + window.shift[here]
                    v = indices[entry]
                    through = labels[here] + weights[entry]
                    nearer = through < distance[v] and through <= pace.cutoff
                    if nearer and through < cuda.atomic.min(distance, v, through):
                        new = True
                        degree = indptr[v + 1] - indptr[v]
                        if through > limit:
                            put_far(v, through, far_pile, words, pile, marks, far, vertices)
                        elif degree > 0:
                            put_near(
                                v, degree, frontier, behind, words, turn, marks, staging, False
                            )
                waiting += cuda.syncthreads_count(np.int32(new))
                if waiting > full:
                    flush(frontier, behind, words, word, staging)
                    flush_far(far_pile, words, pile, far, vertices)
                    waiting = 0
                place += threads
            place = stop
            row += threads
            cuda.syncthreads()
        flush(frontier, behind, words, word, staging)

    @cuda.jit(device=True)
    def split(
        indptr, distance, limit, before, frontier, begin, words, turn, pile, far_pile, marks,
        staging, far, size,
    ):  # fmt: skip
        """Sort a block's part of the far pile: near, and far."""
        thread, block, blocks = cuda.threadIdx.x, np.int64(cuda.blockIdx.x), cuda.gridDim.x
        vertices = np.int64(distance.size)
        word = WORDS.appended + (turn + 1) % 3
        waiting = np.int64(0)
        for first in range(block * threads, size, blocks * threads):
            new = False
            if first + thread < size:
                v = far_pile[(pile % 2) * vertices + first + thread]
                here = distance[v]
                if here > limit:
                    put_far(v, here, far_pile, words, pile + 1, marks, far, vertices)
                    new = True
                elif here > before:
                    cuda.atomic.add(far.moved, 0, np.int32(1))
                    degree = indptr[v + 1] - indptr[v]
                    if degree > 0:
                        put_near(v, degree, frontier, begin, words, turn, marks, staging, False)
                        new = True
            waiting += cuda.syncthreads_count(np.int32(new))
            if waiting > full:
                flush(frontier, begin, words, word, staging)
                flush_far(far_pile, words, pile + 1, far, vertices)
                waiting = 0
        flush(frontier, begin, words, word, staging)

    return Steps(put_near, put_far, take, flush_far, go_on, expand, split)
