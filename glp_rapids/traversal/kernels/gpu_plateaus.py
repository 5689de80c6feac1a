"""Vertices without a nearer neighbour on a shortest path: over how few edges they are reached.

Edges add nothing to a distance if they weigh 0, or so little that the sum is rounded to what it
was. From the vertices that have a predecessor a search follows such edges level by level; ``hop``
is 0 there, -1 where it is wanted, and in the end the level.

Launch: cooperative, 4 blocks of THREADS a multiprocessor; LANES threads share a row. Degrees: any.
Shared memory: none. Registers: 64.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from glp_rapids.jit.cuda import cuda, kernel, load_fresh
from glp_rapids.jit.primitives import grid_barrier

THREADS = 256
LANES = 32
# The blocks at a barrier, and three: how many a level found. What goes in and comes out: the level
# (0: nothing was done so far), and where the last one's vertices are in the queue.
FOUND, LEVEL, HEAD, TAIL, NUMBER_OF_WORDS = 1, 4, 5, 6, 7


@functools.cache
def build(threads: int, lanes: int) -> Any:
    """Make the kernel."""

    @cuda.jit(device=True)
    def follow(u, level, indptr, indices, weights, distance, hop, queue, words, turn, tail, lane):
        here = distance[u]
        for place in range(indptr[u] + lane, indptr[u + 1], lanes):
            v = indices[place]
            asks = hop[v] == -1 and here + weights[place] == distance[v]
            if asks and cuda.atomic.cas(hop, v, np.int32(-1), np.int32(level)) == -1:
                queue[tail + cuda.atomic.add(words, FOUND + turn % 3, np.int64(1))] = v

    def spread(indptr, indices, weights, distance, far, hop, queue, words, levels):
        cuda.cg.this_grid()
        thread = np.int64(cuda.blockIdx.x) * threads + cuda.threadIdx.x
        blocks = np.int64(cuda.gridDim.x)
        lane, group, groups = thread % lanes, thread // lanes, blocks * threads // lanes
        head, tail, turn = words[HEAD], words[TAIL], words[LEVEL]
        barriers = np.int64(0)
        while (turn == 0 or head < tail) and barriers < levels:
            if thread == 0:
                words[FOUND + (turn + 2) % 3] = 0
            if turn == 0:
                for u in range(group, distance.size, groups):
                    # a look at ``hop`` may come late: who was found meanwhile has a turn later
                    if distance[u] != far and hop[u] == 0:
                        follow(
                            u, turn + 1, indptr, indices, weights, distance, hop, queue, words,
                            turn + 1, tail, lane,
                        )  # fmt: skip
            else:
                for place in range(head + group, tail, groups):
                    follow(
                        np.int64(queue[place]), turn + 1, indptr, indices, weights, distance, hop,
                        queue, words, turn + 1, tail, lane,
                    )  # fmt: skip
            turn += 1
            barriers += 1
            grid_barrier(words, barriers * blocks)
            head, tail = tail, tail + load_fresh(words, FOUND + turn % 3)
        barriers += 1
        grid_barrier(words, barriers * blocks)  # all have read the words
        if thread == 0:
            words[LEVEL], words[HEAD], words[TAIL] = turn, head, tail
            words[FOUND + (turn + 1) % 3] = 0

    return kernel(spread, f"{threads} {lanes}")
