"""Pushes of residuals on a GPU: round after round in one launch, and the host is not asked.

A round finds the largest residual, lists the vertices above a quarter of it, and pushes what these
have to their neighbours, as `cpu_pushes.push` does; all blocks meet after each of the three.
Sums are of integers, so they are the same to the bit whoever adds first.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from glp_rapids.jit.cuda import cuda, kernel, load_fresh
from glp_rapids.jit.primitives import grid_barrier

THREADS = 512  # of a block
BLOCKS = 1  # a multiprocessor; an H200 has room for no more
LANES = 32  # threads that share a row
LONG = 1024  # entries; a longer row is one block's
# Words of control: what came to a barrier, what a launch has done, and, for every other round by
# turns, the largest residual, the number of rows that are not long, of those that are, of entries.
ARRIVED, MADE, PUSHED, TOO_LARGE, LARGEST, SHORT_ROWS, LONG_ROWS, WORK = 0, 1, 2, 3, 4, 6, 8, 10
CONTROL = 12


@functools.cache
def build(threads: int, lanes: int, long: int) -> Any:
    """Make the kernel that pushes until no residual is above ``allowed``.

    It ends, too, after so many ``rounds``, and before a round of more than ``most_entries``.

    Launch: cooperative, `BLOCKS` a multiprocessor of `THREADS`. Degrees: any; `LANES` threads share
    a row, a block one of more than `LONG` entries. Shared memory: 5 KB. Registers: 86.

    ``weights`` of no elements: each entry weighs one. ``total``: as for `gpu_residuals`.
    ``listed``, ``amount``, ``before``: room for every vertex, its residual and its number.
    ``control``: zeros.
    """

    def push_residuals(
        indptr, indices, weights, total, damping, numbers, residual, allowed, most_entries, rounds,
        listed, amount, before, control,
    ):  # fmt: skip
        cuda.cg.this_grid()
        maxima = cuda.shared.array(threads, np.int64)
        found = cuda.shared.array(5, np.int64)  # short and long rows, entries; where rows go
        thread, block = np.int64(cuda.threadIdx.x), np.int64(cuda.blockIdx.x)
        blocks, size = np.int64(cuda.gridDim.x), numbers.size
        weighted = weights.size > 0
        made, pushed, barriers, too_large = np.int64(0), np.int64(0), np.int64(0), np.int64(0)
        while True:
            turn = made & 1
            if block == 0 and thread == 0:  # nobody looks at those of the last round any more
                for word in (LARGEST, SHORT_ROWS, LONG_ROWS, WORK):
                    control[word + 1 - turn] = 0
            largest = np.int64(0)
            for v in range(block * threads + thread, size, blocks * threads):
                largest = max(largest, abs(residual[v]))
            maxima[thread] = largest
            step = threads // 2
            while step > 0:
                cuda.syncthreads()
                if thread < step:
                    maxima[thread] = max(maxima[thread], maxima[thread + step])
                step //= 2
            cuda.syncthreads()  # compiled, all threads read the first, of which one makes use
            if thread == 0 and maxima[0] > allowed:
                cuda.atomic.max(control, LARGEST + turn, maxima[0])
            barriers += blocks
            grid_barrier(control, barriers)
            largest = load_fresh(control, LARGEST + turn)
            if largest <= allowed or made == rounds:
                break

            level = max(np.int64(allowed), largest >> 2)
            for first in range(block * threads, size, blocks * threads):
                if thread < 3:
                    found[thread] = 0
                cuda.syncthreads()
                v, place, row_is_long = first + thread, np.int64(-1), False
                if v < size and abs(residual[v]) > level:
                    entries = np.int64(indptr[v + 1]) - np.int64(indptr[v])
                    row_is_long = entries > long
                    place = cuda.atomic.add(found, 1 if row_is_long else 0, np.int64(1))
                    cuda.atomic.add(found, 2, entries)
                cuda.syncthreads()
                of_word = found[min(thread, 2)]  # all read it, and never what is written below
                if thread < 3 and of_word > 0:
                    word = SHORT_ROWS + 2 * thread + turn
                    start = cuda.atomic.add(control, word, of_word)
                    if thread < 2:
                        found[3 + thread] = start
                cuda.syncthreads()
                if place >= 0:
                    if row_is_long:
                        place = size - 1 - found[4] - place
                    else:
                        place += found[3]
                    listed[place] = v
                    amount[place] = residual[v]
                    before[place] = numbers[v]
                cuda.syncthreads()
            barriers += blocks
            grid_barrier(control, barriers)
            work = load_fresh(control, WORK + turn)
            if work > most_entries:
                too_large = np.int64(1)
                break

            short_rows = load_fresh(control, SHORT_ROWS + turn)
            long_rows = load_fresh(control, LONG_ROWS + turn)
            for part in range(2):
                lane, together, place = thread, np.int64(threads), size - long_rows + block
                stop, stride = np.int64(size), blocks
                if part == 0:
                    lane, together = thread % lanes, np.int64(lanes)
                    place = (block * threads + thread) // lanes
                    stop, stride = short_rows, blocks * threads // lanes
                while place < stop:
                    u = np.int64(listed[place])
                    old = damping * np.float64(before[place])
                    number = before[place] + amount[place]
                    new = damping * np.float64(number)
                    if lane == 0:
                        numbers[u] = number
                        cuda.atomic.add(residual, u, -amount[place])
                    for entry in range(indptr[u] + lane, indptr[u + 1], together):
                        v = np.int64(indices[entry])
                        if v != u:
                            weight = 1.0
                            if weighted:
                                weight = np.float64(weights[entry])
                            share = weight / total[v]
                            difference = np.int64(share * new) - np.int64(share * old)
                            if difference != 0:
                                cuda.atomic.add(residual, v, difference)
                    place += stride
            made += 1
            pushed += work
            barriers += blocks
            grid_barrier(control, barriers)
        if block == 0 and thread == 0:
            control[MADE] = made
            control[PUSHED] = pushed
            control[TOO_LARGE] = too_large

    return kernel(push_residuals, f"{threads} {lanes} {long}")
