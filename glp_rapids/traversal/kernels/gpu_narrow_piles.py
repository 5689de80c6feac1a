"""Small piles of a search for shortest paths: every block goes on with a part by itself.

See `gpu_sssp`; device functions, which all threads of a block call together but for ``take``.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np

from glp_rapids.jit.cuda import cuda
from glp_rapids.traversal.kernels import gpu_frontier, gpu_piles
from glp_rapids.traversal.kernels.gpu_piles import LONGER, SHORT, STOP, WORDS


class Narrow(NamedTuple):
    """Device functions."""

    take: Any
    go_on: Any


@functools.cache
def build(threads: int, lanes: int, asks: bool) -> Narrow:
    """Make the functions; whether a block ``asks`` for what it will need, see `gpu_frontier`."""
    flush, ask_around = gpu_frontier.build(threads).flush, gpu_frontier.build_ask(asks)
    put_near, put_far = gpu_piles.build(threads).put_near, gpu_piles.build(threads).put_far
    queued, long_queued = gpu_piles.QUEUED, gpu_piles.LONG_QUEUED
    long_row, longest, room = gpu_piles.LONG, gpu_piles.LONGEST, queued + long_queued

    @cuda.jit(device=True)
    def take(queue, counts, now, step, vertex, start, degree, label):
        """Put a vertex into a queue of the block; tell whether there was room."""
        if degree <= long_row:
            slot = cuda.atomic.add(counts, SHORT + step, np.int32(1))
            if slot >= queued:
                return False
        elif degree > longest:
            return False
        else:
            slot = cuda.atomic.add(counts, LONGER + step, np.int32(1))
            if slot >= long_queued:
                return False
            slot += queued
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
            short = min(counts[SHORT + step], queued)
            long = min(counts[LONGER + step], long_queued)
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
                slot = now * room + queued + i
                start, here = queue.start[slot], queue.label[slot]
                for place in range(start + thread, start + queue.degree[slot], threads):
                    relax(
                        indptr, indices, weights, distance, place, here, limit, frontier, begin,
                        words, turn, pile, far_pile, marks, staging, far, queue, counts, following,
                        done % 3, pace,
                    )  # fmt: skip
            now = following
            cuda.syncthreads()
        short = min(counts[SHORT + done % 3], queued)
        long = min(counts[LONGER + done % 3], long_queued)
        for i in range(thread, short, threads):
            slot = now * room + i
            put_near(
                queue.vertex[slot], np.int64(queue.degree[slot]), frontier, begin, words, turn,
                marks, staging, False,
            )  # fmt: skip
        for i in range(thread, long, threads):
            slot = now * room + queued + i
            put_near(
                queue.vertex[slot], np.int64(queue.degree[slot]), frontier, begin, words, turn,
                marks, staging, False,
            )  # fmt: skip
        cuda.syncthreads()
        flush(frontier, begin, words, WORDS.appended + (turn + 1) % 3, staging)

    return Narrow(take, go_on)
