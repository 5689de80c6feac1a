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
distance looks for a neighbour in the frontier, and the first in its row is its predecessor. Others
are left to `gpu_predecessors`.

Launch: cooperative, BLOCKS_A_MULTIPROCESSOR blocks of THREADS a multiprocessor. Degrees: any.
Shared memory: 34 KB. Registers: 64.
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

FAR = np.int32((1 << 31) - 1)
UNKNOWN = np.int32(-2)  # a predecessor that is still to be found
NONE = np.int64(1 << 40)  # no distance was lost
QUEUED = 512  # vertices in the queue of a block
LONG = 64  # entries of a row that a whole block works on
LONG_QUEUED = 32  # such rows
LONGEST = 1 << 12  # entries of a row in the queue of a block
DENSE = 8  # entries a vertex of a frontier that is small
SCANNED = 8  # entries of a row that one thread looks at, when vertices look for the frontier
WARP = 32
# What a block counts, of three steps in turn: short and long rows queued, and whether it must stop.
SHORT, LONGER, STOP, COUNTS = 0, 3, 6, 9


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
    barriers: int
    arrived: int  # at barriers
    appended: int  # three: vertices and entries that a round appended
    lost: int  # three: the smallest distance of a vertex that had no room
    hopped: int  # three: levels that one block did alone


WORDS = Words(*range(13), 13, 16, 19)
NUMBER_OF_WORDS = 22


class Pace(NamedTuple):
    """How to search."""

    depth: np.int64
    levels: np.int64  # of this launch
    hops: np.int64  # levels between two barriers
    chunk: np.int64  # vertices that are enough for a block
    pulls: bool  # whether rows of edges into vertices are there
    alpha: np.int64  # wide enough to pull: entries times this are more than those left
    beta: np.int64  # and times this, more than vertices


class Queue(NamedTuple):
    """In shared memory: two queues of a block, each first of short rows, then of long."""

    vertex: Any
    start: Any
    degree: Any


@functools.cache
def build(threads: int, lanes: int) -> Any:
    """Make the kernel."""
    functions = gpu_frontier.build(threads)
    append, flush = functions.append, functions.flush
    rows_of_block, load_window = functions.rows_of_block, functions.load_window
    staged, window_rows = gpu_frontier.STAGED, threads + 1
    room = QUEUED + LONG_QUEUED
    two_rooms = 2 * room
    full = gpu_frontier.STAGED - threads
    warps = max(threads // WARP, 1)
    warp = min(WARP, threads)

    @cuda.jit(device=True)
    def take(queue, counts, now, turn, vertex, start, degree):
        """Put a vertex into a queue of the block; tell whether there was room."""
        if degree <= LONG:
            slot = cuda.atomic.add(counts, SHORT + turn, np.int32(1))
            if slot >= QUEUED:
                return False
        elif degree > LONGEST:
            return False
        else:
            slot = cuda.atomic.add(counts, LONGER + turn, np.int32(1))
            if slot >= LONG_QUEUED:
                return False
            slot += QUEUED
        slot += now * room
        queue.vertex[slot] = vertex
        queue.start[slot] = start
        queue.degree[slot] = np.int32(degree)
        return True

    @cuda.jit(device=True)
    def lower(
        indptr, indices, distance, place, ahead, frontier, begin, words, word, lost, queue, counts,
        next_queue, turn, goes_on,
    ):  # fmt: skip
        """Go along an entry; queue the vertex there if that makes it nearer."""
        v = indices[place]
        # asked for before it is known whether it is wanted: one trip to memory instead of two
        start, end = indptr[v], indptr[v + 1]
        if cuda.atomic.min(distance, v, ahead) > ahead:
            degree = end - start
            if degree > 0 and not take(queue, counts, next_queue, turn, v, start, degree):
                counts[STOP + turn] = 1
                if goes_on:
                    cuda.atomic.min(words, lost, np.int64(ahead))
                else:
                    reserved = cuda.atomic.add(words, word, (np.int64(1) << ENTRY_BITS) | degree)
                    slot = begin + (reserved >> ENTRY_BITS)
                    frontier.vertex[slot] = v
                    frontier.offset[slot] = reserved & ENTRIES

    @cuda.jit(device=True)
    def hop(
        indptr, indices, distance, frontier, begin, behind, words, word, lost, queue, counts,
        staging, level, size, hops, active,
    ):  # fmt: skip
        """Let the first blocks work on parts of the frontier for some levels; return how many."""
        thread, block = cuda.threadIdx.x, np.int64(cuda.blockIdx.x)
        alone = active == 1
        for i in range(thread, COUNTS, threads):
            counts[i] = 0
        cuda.syncthreads()
        for i in range(size * block // active + thread, size * (block + 1) // active, threads):
            v = frontier.vertex[begin + i]
            if distance[v] == level:
                start = indptr[v]
                # the way was chosen so that there is room
                if not take(queue, counts, 0, 0, v, start, indptr[v + 1] - start):
                    counts[STOP] = 1
                    cuda.atomic.min(words, lost, np.int64(level))
        cuda.syncthreads()
        now, done = 0, np.int64(0)
        while done < hops:
            turn = done % 3
            short = min(counts[SHORT + turn], QUEUED)
            long = min(counts[LONGER + turn], LONG_QUEUED)
            if short + long == 0 or counts[STOP + turn] != 0:
                break
            following = 1 - now
            done += 1
            if thread == 0:  # nobody looks at these any more, or before the next barrier
                counts[SHORT + (turn + 2) % 3] = 0
                counts[LONGER + (turn + 2) % 3] = 0
                counts[STOP + (turn + 2) % 3] = 0
            ahead = np.int32(level + done)
            goes_on = not alone and done < hops
            for i in range(thread // lanes, short, threads // lanes):
                slot = now * room + i
                start = queue.start[slot]
                for place in range(start + thread % lanes, start + queue.degree[slot], lanes):
                    lower(
                        indptr, indices, distance, place, ahead, frontier, behind, words, word,
                        lost, queue, counts, following, done % 3, goes_on,
                    )  # fmt: skip
            for i in range(long):
                slot = now * room + QUEUED + i
                start = queue.start[slot]
                for place in range(start + thread, start + queue.degree[slot], threads):
                    lower(
                        indptr, indices, distance, place, ahead, frontier, behind, words, word,
                        lost, queue, counts, following, done % 3, goes_on,
                    )  # fmt: skip
            now = following
            cuda.syncthreads()
        short = min(counts[SHORT + done % 3], QUEUED)
        long = min(counts[LONGER + done % 3], LONG_QUEUED)
        for i in range(thread, short, threads):
            slot = now * room + i
            append(frontier, behind, words, word, staging, queue.vertex[slot], queue.degree[slot])
        for i in range(thread, long, threads):
            slot = now * room + QUEUED + i
            append(frontier, behind, words, word, staging, queue.vertex[slot], queue.degree[slot])
        cuda.syncthreads()
        flush(frontier, behind, words, word, staging)
        return done

    @cuda.jit(device=True)
    def expand(
        indptr, indices, distance, frontier, begin, behind, words, word, staging, window, level,
        size, entries,
    ):  # fmt: skip
        """Work on a block's part of the entries of a frontier."""
        thread, block, blocks = cuda.threadIdx.x, np.int64(cuda.blockIdx.x), cuda.gridDim.x
        place, last = entries * block // blocks, entries * (block + 1) // blocks
        if place >= last:
            return
        row = rows_of_block(frontier.offset, begin, size, place)
        ahead = np.int32(level + 1)
        waiting = np.int64(0)
        while place < last:
            load_window(indptr, frontier, begin, size, entries, row, window)
            stop = min(last, window.offset[threads])
            while place < stop:
                new = False
                if place + thread < stop:
                    here = row_in_window(window, threads, place + thread)
                    v = indices[place + thread + window.shift[here]]
                    if distance[v] > ahead and cuda.atomic.min(distance, v, ahead) > ahead:
                        degree = indptr[v + 1] - indptr[v]
                        if degree > 0:
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
    def pull(
        indptr, in_indptr, in_indices, distance, predecessor, words, word, staging, totals, level
    ):  # fmt: skip
        """Let vertices without a distance look for the frontier.

        Rows ascend, so the first of it that is found is the predecessor.
        """
        wanted = predecessor.size > 0
        thread, block, blocks = cuda.threadIdx.x, np.int64(cuda.blockIdx.x), cuda.gridDim.x
        ahead = np.int32(level + 1)
        found, degrees = np.int64(0), np.int64(0)
        if thread == 0:
            staging.counter[0] = 0
        cuda.syncthreads()
        for first in range(block * threads, distance.size, blocks * threads):
            v = first + thread
            if v < distance.size and distance[v] == FAR:
                start, end = in_indptr[v], in_indptr[v + 1]
                middle = min(end, start + SCANNED)
                place, hit = start, np.int32(-1)
                while place < middle and hit < 0:
                    # all are asked for before any is looked at
                    a = in_indices[place]
                    b = in_indices[min(place + 1, middle - 1)]
                    c = in_indices[min(place + 2, middle - 1)]
                    d = in_indices[min(place + 3, middle - 1)]
                    of_a, of_b, of_c, of_d = distance[a], distance[b], distance[c], distance[d]
                    if of_d == level:
                        hit = d
                    if of_c == level:
                        hit = c
                    if of_b == level:
                        hit = b
                    if of_a == level:
                        hit = a
                    place += 4
                if hit >= 0:
                    distance[v] = ahead
                    if wanted:
                        predecessor[v] = hit
                    found += 1
                    degrees += indptr[v + 1] - indptr[v]
                elif middle < end:
                    slot = cuda.atomic.add(staging.counter, 0, np.int32(1))
                    staging.vertex[slot] = v
                    staging.place[slot] = FAR
            cuda.syncthreads()
            deferred = staging.counter[0]
            for slot in range(thread // warp, deferred, warps):
                v = staging.vertex[slot]
                start = in_indptr[v] + SCANNED + thread % warp
                for place in range(start, in_indptr[v + 1], warp):
                    u = in_indices[place]
                    if u > cuda.atomic.min(staging.place, slot, FAR):
                        break
                    if distance[u] == level:
                        cuda.atomic.min(staging.place, slot, u)
                        break
            cuda.syncthreads()
            if thread < deferred and staging.place[thread] != FAR:
                v = staging.vertex[thread]
                distance[v] = ahead
                if wanted:
                    predecessor[v] = staging.place[thread]
                found += 1
                degrees += indptr[v + 1] - indptr[v]
            if thread == 0:
                staging.counter[0] = 0
            cuda.syncthreads()
        # halves, since shared memory adds no words of 64 bits at once
        if thread < 3:
            totals[thread] = 0
        cuda.syncthreads()
        if found > 0:
            cuda.atomic.add(totals, 0, np.int32(found))
            cuda.atomic.add(totals, 1, np.int32(degrees & 0xFFFF))
            cuda.atomic.add(totals, 2, np.int32(degrees >> 16))
        cuda.syncthreads()
        if thread == 0 and totals[0] > 0:
            degrees = (np.int64(totals[2]) << 16) + np.int64(totals[1])
            cuda.atomic.add(words, word, (np.int64(totals[0]) << ENTRY_BITS) + degrees)

    @cuda.jit(device=True)
    def list_level(indptr, distance, frontier, begin, words, word, staging, level, takes_back):
        """Append all vertices of a level; take back larger distances, if that is wanted."""
        thread, block, blocks = cuda.threadIdx.x, np.int64(cuda.blockIdx.x), cuda.gridDim.x
        waiting = np.int64(0)
        for first in range(block * threads, distance.size, blocks * threads):
            v, new = first + thread, False
            if v < distance.size:
                here = distance[v]
                if here == level:
                    degree = indptr[v + 1] - indptr[v]
                    if degree > 0:
                        append(frontier, begin, words, word, staging, np.int32(v), degree)
                        new = True
                elif takes_back and here > level and here != FAR:
                    distance[v] = FAR
            waiting += cuda.syncthreads_count(np.int32(new))
            if waiting > full:
                flush(frontier, begin, words, word, staging)
                waiting = 0
        flush(frontier, begin, words, word, staging)

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
    def sum_up(distance, words, totals):
        """Find the largest distance, and how many there are."""
        thread = np.int64(cuda.blockIdx.x) * threads + cuda.threadIdx.x
        number, most = np.int32(0), np.int32(0)
        if cuda.threadIdx.x < 2:
            totals[cuda.threadIdx.x] = 0
        cuda.syncthreads()
        for v in range(thread, distance.size, np.int64(cuda.gridDim.x) * threads):
            here = distance[v]
            if here != FAR:
                number += 1
                most = max(most, here)
        if number > 0:
            cuda.atomic.add(totals, 0, number)
            cuda.atomic.max(totals, 1, most)
        cuda.syncthreads()
        if cuda.threadIdx.x == 0 and totals[0] > 0:
            cuda.atomic.add(words, WORDS.reached, np.int64(totals[0]))
            cuda.atomic.max(words, WORDS.most, np.int64(totals[1]))

    def search_levels(
        indptr, indices, in_indptr, in_indices, starts, distance, predecessor, frontier, words,
        arrived, pace,
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
            elif pause <= 0 and size <= pace.chunk * blocks and entries <= DENSE * (size + WARP):
                active = min(blocks, (size + pace.chunk - 1) // pace.chunk)
                hops = min(pace.hops, end - level)
                if active == 1:
                    hops = end - level
                if cuda.blockIdx.x < active:
                    done = hop(
                        indptr, indices, distance, frontier, begin, behind, words, word, lost,
                        queue, counts, staging, level, size, hops, active,
                    )  # fmt: skip
                    if active == 1 and thread == 0:
                        words[WORDS.hopped + turn % 3] = done
                if active == 1:
                    hops = np.int64(-1)  # as many as the block says
            else:
                expand(
                    indptr, indices, distance, frontier, begin, behind, words, word, staging,
                    window, level, size, entries,
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
            sum_up(distance, words, totals)

    bounds = threads, gpu_frontier.BLOCKS_A_MULTIPROCESSOR
    return kernel(search_levels, f"{threads} {lanes} {QUEUED} {LONG}", launch_bounds=bounds)
