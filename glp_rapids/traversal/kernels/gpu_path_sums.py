"""Sums over shortest paths, level by level: how many there are, and Brandes's dependencies on them.

Every vertex of a level adds up what its neighbours one level before (or behind) have, in the order
of its row, so that floating point gives the same bits on every device. Threads add up short rows by
themselves, groups of WARP threads longer ones, a block the longest: all fetch, one adds. Counts are
whole numbers, so of these each adds what it fetches, and only rows that come to EXACT are added up
again in their order.

Launch: cooperative, BLOCKS_A_MULTIPROCESSOR blocks of THREADS a multiprocessor.
Degrees: any. Shared memory: 4 KB. Registers: 80.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from glp_rapids.jit.cuda import cuda, kernel
from glp_rapids.jit.primitives import grid_barrier

THREADS = 256
BLOCKS_A_MULTIPROCESSOR = 3
WARP = 32
SHORT = 16  # entries of a row that a thread adds up
MEDIUM = 1 << 10  # and a group
EXACT = 2.0**53  # counts below are whole numbers, whose sum is the same in any order
AT_ONCE = 8  # terms that are loaded before the first is added


@cuda.jit(device=True)
def _paths(level, paths, dependency, u, v):
    """Return the paths to a vertex by way of a neighbour before it."""
    return paths[v] if level[v] + 1 == level[u] else 0.0


@cuda.jit(device=True)
def _dependency(level, paths, dependency, u, v):
    """Return a vertex's share of the dependencies on a neighbour behind it."""
    return paths[u] / paths[v] * (1.0 + dependency[v]) if level[u] + 1 == level[v] else 0.0


@functools.cache
def build(threads: int, counts: bool, by_vertex: bool) -> Any:
    """Make the kernel that ``counts`` paths forward, or adds up dependencies backward.

    Rows begin at ``offsets`` less ``base``, of vertices, or of places in ``order``. Levels, from
    ``first`` to ``last`` in turn, begin at ``bounds`` in ``order``.
    """
    term = _paths if counts else _dependency
    warp, short, medium, at_once = min(WARP, threads), SHORT, MEDIUM, AT_ONCE

    @cuda.jit(device=True)
    def add_row(indices, level, paths, dependency, u, start, end):
        total = 0.0
        for place in range(start, end):
            total += term(level, paths, dependency, u, indices[place])
        return total

    @cuda.jit(device=True)
    def add_up(terms, first, number, total):
        """Add terms in their order."""
        i = 0
        while i + at_once <= number:
            a, b, c, d = (
                terms[first + i], terms[first + i + 1], terms[first + i + 2], terms[first + i + 3],
            )  # fmt: skip
            e, f, g, h = (
                terms[first + i + 4], terms[first + i + 5], terms[first + i + 6],
                terms[first + i + 7],
            )  # fmt: skip
            total = (((((((total + a) + b) + c) + d) + e) + f) + g) + h
            i += at_once
        while i < number:
            total += terms[first + i]
            i += 1
        return total

    @cuda.jit(device=True)
    def add_rows(
        width, listed, number, offsets, base, indices, order, level, paths, dependency, values,
        terms,
    ):  # fmt: skip
        """Let groups of some threads add up the listed rows; all threads of a block call it."""
        thread = cuda.threadIdx.x
        lane, own = thread % width, thread - thread % width
        groups = threads // width
        for batch in range(0, number, groups):
            which = batch + thread // width
            u, start, end = np.int64(0), np.int64(0), np.int64(0)
            if which < number:
                i = np.int64(listed[which])
                u = np.int64(order[i])
                row = u if by_vertex else i
                start, end = offsets[row] - base, offsets[row + 1] - base
            exact = True
            if counts:
                total = 0.0
                for place in range(start + lane, end, width):
                    total += term(level, paths, dependency, u, indices[place])
                terms[thread] = total
                cuda.syncthreads()
                if lane == 0 and which < number:
                    total = add_up(terms, own, np.int64(width), 0.0)
                    values[u] = total
                    exact = total < EXACT
                exact = cuda.syncthreads_count(np.int32(not exact)) == 0
            if counts and exact:
                continue
            total = 0.0
            while cuda.syncthreads_count(np.int32(start < end)) > 0:
                one = 0.0
                if start + lane < end:
                    one = term(level, paths, dependency, u, indices[start + lane])
                terms[thread] = one
                some = cuda.syncthreads_count(np.int32(one != 0.0))
                if lane == 0 and start < end and some > 0:
                    total = add_up(terms, own, min(end - start, np.int64(width)), total)
                start += width
            if lane == 0 and which < number:
                values[u] = total

    def sum_levels(
        offsets, base, indices, order, bounds, first, last, level, paths, dependency, arrived
    ):  # fmt: skip
        terms = cuda.shared.array(threads, np.float64)
        middling = cuda.shared.array(threads, np.int32)
        long = cuda.shared.array(threads, np.int32)
        listed = cuda.shared.array(2, np.int32)
        cuda.cg.this_grid()
        thread, block = np.int64(cuda.threadIdx.x), np.int64(cuda.blockIdx.x)
        blocks, goal = np.int64(cuda.gridDim.x), np.int64(0)
        values = paths if counts else dependency
        for step in range(last - first):
            at = first + step if counts else last - 1 - step
            begin, end = bounds[at], bounds[at + 1]
            # runs of rows are dealt to the blocks in turn: hubs often have numbers that are near
            mine = (thread // warp * blocks + block) * warp + thread % warp
            for some in range(begin, end, blocks * threads):
                if thread < 2:
                    listed[thread] = 0
                cuda.syncthreads()
                i = some + mine
                if i < end:
                    u = np.int64(order[i])
                    row = u if by_vertex else i
                    start, stop = offsets[row] - base, offsets[row + 1] - base
                    if stop - start <= short:
                        values[u] = add_row(indices, level, paths, dependency, u, start, stop)
                    elif stop - start <= medium:
                        middling[cuda.atomic.add(listed, 0, np.int32(1))] = i
                    else:
                        long[cuda.atomic.add(listed, 1, np.int32(1))] = i
                cuda.syncthreads()
                add_rows(
                    warp, middling, listed[0], offsets, base, indices, order, level, paths,
                    dependency, values, terms,
                )  # fmt: skip
                add_rows(
                    threads, long, listed[1], offsets, base, indices, order, level, paths,
                    dependency, values, terms,
                )  # fmt: skip
                cuda.syncthreads()
            goal += blocks
            grid_barrier(arrived, goal)

    bounds = threads, BLOCKS_A_MULTIPROCESSOR
    return kernel(sum_levels, f"{threads} {counts} {by_vertex}", launch_bounds=bounds)
