"""The ways through a level of a breadth-first search, see `gpu_bfs`, as device functions.

All threads of a block call them together, and all blocks the same one.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np

from glp_rapids.jit.cuda import cuda
from glp_rapids.traversal.kernels import gpu_frontier, gpu_queue
from glp_rapids.traversal.kernels.gpu_frontier import ENTRIES, ENTRY_BITS, row_in_window
from glp_rapids.traversal.kernels.gpu_queue import COUNTS, LONGER, SHORT, STOP

FAR = np.int32((1 << 31) - 1)
UNKNOWN = FAR  # a predecessor that is still to be found
NONE = np.int64(1 << 40)  # no distance was lost
QUEUED = 512  # vertices in the queue of a block
LONG = 64  # entries of a row that a whole block works on
LONG_QUEUED = 32  # such rows
LONGEST = 1 << 12  # entries of a row in the queue of a block
DENSE = 8  # entries a vertex of a frontier that is small
SCANNED = 8  # entries of a row that one thread looks at, when vertices look for the frontier
WARP = 32


class Ways(NamedTuple):
    """Device functions."""

    hop: Any
    expand: Any
    pull: Any
    list_level: Any


@functools.cache
def build(threads: int, lanes: int, asks: bool) -> Ways:
    """Make the functions; whether a block ``asks`` for what it will need, see `gpu_frontier`."""
    functions = gpu_frontier.build(threads)
    append, flush = functions.append, functions.flush
    rows_of_block, load_window = functions.rows_of_block, functions.load_window
    ask_around = gpu_frontier.build_ask(asks)
    take = gpu_queue.build_take(QUEUED, LONG_QUEUED, LONG, LONGEST)
    room = QUEUED + LONG_QUEUED
    full = gpu_frontier.STAGED - threads
    warps = max(threads // WARP, 1)
    warp = min(WARP, threads)

    @cuda.jit(device=True)
    def lower(
        indptr, indices, distance, predecessor, u, place, ahead, frontier, begin, words, word, lost,
        queue, counts, next_queue, turn, alone, goes_on,
    ):  # fmt: skip
        """Go along an entry; queue the vertex there if that makes it nearer."""
        v = indices[place]
        # asked for before it is known whether it is wanted: one trip to memory instead of two
        start, end = indptr[v], indptr[v + 1]
        known = cuda.atomic.min(distance, v, ahead)
        if alone and known >= ahead and predecessor.size > 0:
            cuda.atomic.min(predecessor, v, u)  # nobody else finds a shorter way
        if known > ahead:
            degree = end - start
            ask_around(indptr, indices, v, start)
            if degree > 0 and take(queue, counts, next_queue, turn, v, start, degree) < 0:
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
        indptr, indices, distance, predecessor, frontier, begin, behind, words, word, lost, queue,
        counts, staging, level, size, hops, active,
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
                if take(queue, counts, 0, 0, v, start, indptr[v + 1] - start) < 0:
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
            if alone and done > 0 and short > threads // lanes:
                break  # others can help
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
                u, start = queue.vertex[slot], queue.start[slot]
                for place in range(start + thread % lanes, start + queue.degree[slot], lanes):
                    lower(
                        indptr, indices, distance, predecessor, u, place, ahead, frontier, behind,
                        words, word, lost, queue, counts, following, done % 3, alone,
                        goes_on,
                    )  # fmt: skip
            for i in range(long):
                slot = now * room + QUEUED + i
                u, start = queue.vertex[slot], queue.start[slot]
                for place in range(start + thread, start + queue.degree[slot], threads):
                    lower(
                        indptr, indices, distance, predecessor, u, place, ahead, frontier, behind,
                        words, word, lost, queue, counts, following, done % 3, alone,
                        goes_on,
                    )  # fmt: skip
            now = following
            cuda.syncthreads()
        if done < hops and not alone:
            # nothing is left; or there was no room, and all of this will be taken back
            return done
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
        indptr, indices, distance, predecessor, frontier, begin, behind, words, word, staging,
        window, level, size, entries,
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
                    known = distance[v]
                    if known >= ahead and predecessor.size > 0:
                        cuda.atomic.min(predecessor, v, window.vertex[here])
                    if known > ahead and cuda.atomic.min(distance, v, ahead) > ahead:
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

    return Ways(hop, expand, pull, list_level)
