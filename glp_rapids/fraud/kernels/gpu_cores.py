"""Cores of communities on a GPU, and the pieces that these fall into, in one launch.

`graph.subgraph` says what they are, and finds the same. Who has too few partners or too little of
its trade inside goes, and takes itself from those around it, round after round; sums are of
integers, so it does not matter who is first. Pieces are found by union-find.

Launch: cooperative, one block of `THREADS` a multiprocessor; `LANES` threads share a row. Degrees:
any. Shared memory: none. Registers: 56.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from glp_rapids.jit.cuda import cuda, kernel, load_fresh
from glp_rapids.jit.primitives import find_root, grid_barrier, union

THREADS = 512
LANES = 32
# Words of control: what came to a barrier; by turns, how many go, and how many are elsewhere.
ARRIVED, GONE, ELSEWHERE = 0, 1, 3
CONTROL = 5


@functools.cache
def build(threads: int, lanes: int) -> Any:
    """Make the kernel that cuts communities down to cores.

    ``weights`` of no elements: each entry weighs one; else integers. ``least_trade``: what each
    vertex must keep inside. ``community``: of every vertex, -1 for none. ``agreed``: marks of the
    entries that pieces hang together by; of no elements: communities stay in one piece, else they
    are looked for until each is a core. ``partners``, ``trade``, ``queue``, ``parent``: room for
    every vertex. ``control``: zeros.
    """

    def cut_cores(
        indptr, indices, weights, least_partners, least_trade, agreed, community, partners, trade,
        queue, parent, control,
    ):  # fmt: skip
        cuda.cg.this_grid()
        thread = np.int64(cuda.blockIdx.x) * threads + cuda.threadIdx.x
        blocks, size = np.int64(cuda.gridDim.x), np.int64(community.size)
        every = blocks * threads
        lane, group, groups = thread % lanes, thread // lanes, every // lanes
        weighted, falls_apart = weights.size > 0, agreed.size > 0
        barriers, round_, turn = np.int64(0), np.int64(0), np.int64(0)
        again = True
        while again:
            for v in range(thread, size, every):
                partners[v] = 0
                trade[v] = 0
            barriers += blocks
            grid_barrier(control, barriers)
            for v in range(group, size, groups):
                mine = community[v]
                number, sum_ = np.int64(0), np.int64(0)
                if mine >= 0:
                    for entry in range(indptr[v] + lane, indptr[v + 1], lanes):
                        u = np.int64(indices[entry])
                        if u != v and community[u] == mine:
                            number += 1
                            if weighted:
                                sum_ += np.int64(weights[entry])
                            else:
                                sum_ += 1
                if number > 0:
                    cuda.atomic.add(partners, v, number)
                    cuda.atomic.add(trade, v, sum_)
            barriers += blocks
            grid_barrier(control, barriers)

            goes_on = True
            while goes_on:
                side = round_ & 1
                if thread == 0:
                    control[GONE + 1 - side] = 0
                for v in range(thread, size, every):
                    if community[v] >= 0 and (
                        partners[v] < least_partners or np.float64(trade[v]) < least_trade[v]
                    ):
                        queue[cuda.atomic.add(control, GONE + side, np.int64(1))] = v
                barriers += blocks
                grid_barrier(control, barriers)
                gone = load_fresh(control, GONE + side)
                for place in range(group, gone, groups):
                    v = np.int64(queue[place])
                    mine = community[v]
                    for entry in range(indptr[v] + lane, indptr[v + 1], lanes):
                        u = np.int64(indices[entry])
                        if u != v and community[u] == mine:
                            less = np.int64(1)
                            if weighted:
                                less = np.int64(weights[entry])
                            cuda.atomic.sub(partners, u, np.int64(1))
                            cuda.atomic.sub(trade, u, less)
                barriers += blocks
                grid_barrier(control, barriers)
                for place in range(thread, gone, every):
                    community[queue[place]] = -1
                barriers += blocks
                grid_barrier(control, barriers)
                goes_on = gone > 0
                round_ += 1

            again = False
            if falls_apart:
                side = turn & 1
                if thread == 0:
                    control[ELSEWHERE + 1 - side] = 0
                for v in range(thread, size, every):
                    parent[v] = v
                barriers += blocks
                grid_barrier(control, barriers)
                for v in range(group, size, groups):
                    mine = community[v]
                    if mine >= 0:
                        for entry in range(indptr[v] + lane, indptr[v + 1], lanes):
                            u = np.int64(indices[entry])
                            if u < v and agreed[entry] and community[u] == mine:
                                union(parent, np.int32(v), np.int32(u))
                barriers += blocks
                grid_barrier(control, barriers)
                for v in range(thread, size, every):
                    if community[v] >= 0:
                        root = find_root(parent, np.int32(v))
                        if root != community[v]:
                            community[v] = root
                            cuda.atomic.add(control, ELSEWHERE + side, np.int64(1))
                barriers += blocks
                grid_barrier(control, barriers)
                again = load_fresh(control, ELSEWHERE + side) > 0
                turn += 1

    return kernel(cut_cores, f"{threads} {lanes}")
