"""Wide piles of a search for shortest paths: all blocks go through equal parts of them.

See `gpu_sssp`; device functions, which all threads of a block call together.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np

from glp_rapids.jit.cuda import cuda
from glp_rapids.traversal.kernels import gpu_frontier, gpu_piles
from glp_rapids.traversal.kernels.gpu_frontier import row_in_window
from glp_rapids.traversal.kernels.gpu_piles import WORDS


class Wide(NamedTuple):
    """Device functions."""

    expand: Any
    split: Any


@functools.cache
def build(threads: int) -> Wide:
    """Make the functions for blocks of so many threads."""
    functions, piles = gpu_frontier.build(threads), gpu_piles.build(threads)
    append, flush = functions.append, functions.flush
    rows_of_block, load_window = functions.rows_of_block, functions.load_window
    put_waiting, flush_far = piles.put_waiting, piles.flush_far
    full = gpu_frontier.STAGED - threads

    @cuda.jit(device=True)
    def list_fallen(fallen, slot, vertex, label, limit, far):
        """List a vertex that fell; inverted if it is far, and then note its distance."""
        if label > limit:
            if label < far.lowest[0]:
                cuda.atomic.min(far.lowest, 0, label)
            vertex = ~vertex
        fallen.vertex[slot] = vertex

    @cuda.jit(device=True)
    def put_new(
        indptr, v, frontier, begin, words, turn, pile, far_pile, marks, staging, far, vertices,
    ):  # fmt: skip
        """Put a vertex that fell into the near pile, or into the far one if it comes inverted."""
        if v < 0:
            put_waiting(~v, far_pile, words, pile, marks, far, vertices)
        else:
            # asked for together: neither waits for the other
            start, end = indptr[v], indptr[v + 1]
            tag = np.int32(turn + 1)
            known, degree = cuda.atomic.exch(marks.queued, v, tag), end - start
            if known != tag and degree > 0:
                word = WORDS.appended + (turn + 1) % 3
                append(frontier, begin, words, word, staging, v, degree)

    @cuda.jit(device=True)
    def expand(
        indptr, indices, weights, distance, limit, frontier, half, words, turn, pile, far_pile,
        marks, staging, far, fallen, window, labels, size, entries, pace,
    ):  # fmt: skip
        """Work on a block's part of the entries of the near pile.

        A thread goes along four at once. What falls is listed, then put into piles by threads that
        have one each: those are other trips to memory, and only a few entries lead to them.
        """
        thread, block, blocks = cuda.threadIdx.x, np.int64(cuda.blockIdx.x), cuda.gridDim.x
        vertices = np.int64(distance.size)
        begin, behind = half * vertices, (1 - half) * vertices
        word = WORDS.appended + (turn + 1) % 3
        place, last = entries * block // blocks, entries * (block + 1) // blocks
        if place >= last:
            return
        row = rows_of_block(frontier.offset, begin, size, place)
        waiting, list_of, counter = np.int64(0), 0, 0
        while place < last:
            u = load_window(indptr, frontier, begin, size, entries, row, window)
            if u >= 0:
                labels[thread] = distance[u]
            cuda.syncthreads()
            stop = min(last, window.offset[threads])
            while place < stop:
                first = place + 4 * thread
                if first < stop:
                    here1 = row_in_window(window, threads, first)
                    here2, second = here1, min(first + 1, stop - 1)
                    while second >= window.offset[here2 + 1]:
                        here2 += 1
                    here3, third = here2, min(first + 2, stop - 1)
                    while third >= window.offset[here3 + 1]:
                        here3 += 1
                    here4, fourth = here3, min(first + 3, stop - 1)
                    while fourth >= window.offset[here4 + 1]:
                        here4 += 1
                    first, second = first + window.shift[here1], second + window.shift[here2]
                    third, fourth = third + window.shift[here3], fourth + window.shift[here4]
                    # all are asked for before any is looked at
                    v1, v2, v3, v4 = (
                        indices[first], indices[second], indices[third], indices[fourth],
                    )  # fmt: skip
                    weight1, weight2, weight3, weight4 = (
                        weights[first], weights[second], weights[third], weights[fourth],
                    )  # fmt: skip
                    known1, known2, known3, known4 = (
                        distance[v1], distance[v2], distance[v3], distance[v4],
                    )  # fmt: skip
                    through1, through2 = labels[here1] + weight1, labels[here2] + weight2
                    through3, through4 = labels[here3] + weight3, labels[here4] + weight4
                    if through1 < known1 and through1 <= pace.cutoff:
                        known1 = cuda.atomic.min(distance, v1, through1)
                    else:
                        known1 = through1
                    if through2 < known2 and through2 <= pace.cutoff:
                        known2 = cuda.atomic.min(distance, v2, through2)
                    else:
                        known2 = through2
                    if through3 < known3 and through3 <= pace.cutoff:
                        known3 = cuda.atomic.min(distance, v3, through3)
                    else:
                        known3 = through3
                    if through4 < known4 and through4 <= pace.cutoff:
                        known4 = cuda.atomic.min(distance, v4, through4)
                    else:
                        known4 = through4
                    number = np.int32(0)
                    number += 1 if through1 < known1 else 0
                    number += 1 if through2 < known2 else 0
                    number += 1 if through3 < known3 else 0
                    number += 1 if through4 < known4 else 0
                    if number > 0:
                        slot = cuda.atomic.add(fallen.counter, counter, number)
                        slot += list_of * 4 * threads
                        if through1 < known1:
                            list_fallen(fallen, slot, v1, through1, limit, far)
                            slot += 1
                        if through2 < known2:
                            list_fallen(fallen, slot, v2, through2, limit, far)
                            slot += 1
                        if through3 < known3:
                            list_fallen(fallen, slot, v3, through3, limit, far)
                            slot += 1
                        if through4 < known4:
                            list_fallen(fallen, slot, v4, through4, limit, far)
                cuda.syncthreads()
                number = fallen.counter[counter]
                following = counter + 1 if counter < 2 else 0
                if thread == 0:  # all have read it, and nobody adds to it before the next barrier
                    fallen.counter[following + 1 if following < 2 else 0] = 0
                for done in range(0, number, threads):
                    if done + thread < number:
                        v = fallen.vertex[list_of * 4 * threads + done + thread]
                        put_new(
                            indptr, v, frontier, behind, words, turn, pile, far_pile, marks,
                            staging, far, vertices,
                        )  # fmt: skip
                    waiting += min(threads, number - done)
                    if waiting > full:
                        cuda.syncthreads()
                        flush(frontier, behind, words, word, staging)
                        flush_far(far_pile, words, pile, far, vertices)
                        waiting = np.int64(0)
                counter, list_of = following, 1 - list_of
                place += 4 * threads
            place = stop
            row += threads
            cuda.syncthreads()
        if thread < 3:
            fallen.counter[thread] = 0
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
        waiting, moved = np.int64(0), np.int32(0)
        for first in range(block * threads, size, blocks * threads):
            new = False
            if first + thread < size:
                v = far_pile[(pile % 2) * vertices + first + thread]
                here = distance[v]
                if here > before:
                    new = True
                    if here > limit:
                        if here < far.lowest[0]:
                            cuda.atomic.min(far.lowest, 0, here)
                        v = ~v
                    else:
                        moved += 1
                    put_new(
                        indptr, v, frontier, begin, words, turn, pile + 1, far_pile, marks,
                        staging, far, vertices,
                    )  # fmt: skip
            waiting += cuda.syncthreads_count(np.int32(new))
            if waiting > full:
                flush(frontier, begin, words, word, staging)
                flush_far(far_pile, words, pile + 1, far, vertices)
                waiting = 0
        if moved > 0:
            cuda.atomic.add(far.moved, 0, moved)
        flush(frontier, begin, words, word, staging)

    return Wide(expand, split)
