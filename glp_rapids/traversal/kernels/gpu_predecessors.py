"""Predecessors out of distances: of the neighbours before a vertex the one of the smallest index.

Rows ascend, so in the row of the edges into a vertex the first is the smallest, and the rest is not
read. Where these rows are not there, the edges out of every vertex are gone through, and the
smallest is found by atomic minima.

Launch: blocks of THREADS; ``pull_predecessors`` a thread a vertex, ``push_predecessors`` any number
of blocks, which get equal numbers of entries. Degrees: any. Shared memory: 6 and 4 KB. Registers:
32 and 39.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from glp_rapids.jit.cuda import cuda, kernel
from glp_rapids.jit.primitives import upper_bound
from glp_rapids.traversal.kernels import gpu_frontier

THREADS = 512
SCANNED = 8  # entries of a row that one thread looks at; the rest of a row is left to a warp
LONG = 1 << 10  # or, if it is longer, to the block
WARP = 32
NOBODY = np.int32((1 << 31) - 1)


UNWEIGHTED, WEIGHTED, PLATEAU = range(3)  # which edges lead from a predecessor


@cuda.jit(device=True)
def _one_nearer(distance, hop, u, v, weights, place):
    """Tell whether a vertex is one level before another, which was reached."""
    return distance[u] + 1 == distance[v]


@cuda.jit(device=True)
def _nearer(distance, hop, u, v, weights, place):
    """Tell whether a vertex is nearer than another, and on a shortest path to it."""
    here = distance[u]
    return here < distance[v] and here + weights[place] == distance[v]


@cuda.jit(device=True)
def _one_before(distance, hop, u, v, weights, place):
    """Tell whether a vertex is one edge before another on a plateau."""
    return hop[v] > 0 and hop[u] + 1 == hop[v] and distance[u] + weights[place] == distance[v]


EDGES = _one_nearer, _nearer, _one_before


@functools.cache
def build_pull(threads: int, edges: int) -> Any:
    """Make the kernel that looks for the predecessor in the row of the edges into a vertex.

    If some are ``known``, ``predecessor`` holds them, and elsewhere NOBODY, so often as ``missing``
    says. ``alone`` counts vertices that were reached and have none, the starts among them.
    """
    is_before = EDGES[edges]
    warp, warps = min(WARP, threads), max(threads // WARP, 1)

    def pull_predecessors(
        indptr, indices, weights, distance, hop, far, predecessor, known, missing, alone
    ):  # fmt: skip
        vertex = cuda.shared.array(threads, np.int32)
        best = cuda.shared.array(threads, np.int32)
        counts = cuda.shared.array(3, np.int32)
        long = cuda.shared.array(threads, np.int32)
        thread = cuda.threadIdx.x
        if known and missing[0] == 0:
            return
        if thread < 3:
            counts[thread] = 0
        cuda.syncthreads()
        v = np.int64(cuda.blockIdx.x) * threads + thread
        if v < distance.size:
            found, later, start, end = np.int32(-1), False, np.int64(0), np.int64(0)
            if known and predecessor[v] != NOBODY:
                found = predecessor[v]
            elif distance[v] != far and distance[v] > 0:
                start, end = indptr[v], indptr[v + 1]
                middle = min(end, start + SCANNED)
                place = start
                while place < middle and found < 0:
                    # all are asked for before any is looked at
                    second, third = min(place + 1, middle - 1), min(place + 2, middle - 1)
                    last = min(place + 3, middle - 1)
                    a, b, c, d = indices[place], indices[second], indices[third], indices[last]
                    of_a = is_before(distance, hop, a, v, weights, place)
                    of_b = is_before(distance, hop, b, v, weights, second)
                    of_c = is_before(distance, hop, c, v, weights, third)
                    of_d = is_before(distance, hop, d, v, weights, last)
                    if of_d:
                        found = d
                    if of_c:
                        found = c
                    if of_b:
                        found = b
                    if of_a:
                        found = a
                    place += 4
                later = found < 0 and middle < end
            if later:
                slot = cuda.atomic.add(counts, 0, np.int32(1))
                vertex[slot] = v
                best[slot] = NOBODY
                if end - start > LONG:
                    long[cuda.atomic.add(counts, 2, np.int32(1))] = slot
            else:
                predecessor[v] = found
                if found < 0 and distance[v] != far:
                    cuda.atomic.add(counts, 1, np.int32(1))
        cuda.syncthreads()
        for slot in range(thread // warp, counts[0], warps):
            v = np.int64(vertex[slot])
            if indptr[v + 1] - indptr[v] > LONG:
                continue
            for place in range(indptr[v] + SCANNED + thread % warp, indptr[v + 1], warp):
                u = indices[place]
                if u > cuda.atomic.min(best, slot, NOBODY):
                    break
                if is_before(distance, hop, u, v, weights, place):
                    cuda.atomic.min(best, slot, u)
                    break
        for i in range(counts[2]):
            slot = long[i]
            v = np.int64(vertex[slot])
            for place in range(indptr[v] + SCANNED + thread, indptr[v + 1], threads):
                u = indices[place]
                if u > cuda.atomic.min(best, slot, NOBODY):
                    break
                if is_before(distance, hop, u, v, weights, place):
                    cuda.atomic.min(best, slot, u)
                    break
        cuda.syncthreads()
        for slot in range(thread, counts[0], threads):
            found = best[slot]
            if found == NOBODY:
                cuda.atomic.add(counts, 1, np.int32(1))
                found = np.int32(-1)
            predecessor[vertex[slot]] = found
        cuda.syncthreads()
        if thread == 0 and counts[1] > 0:
            cuda.atomic.add(alone, 0, np.int64(counts[1]))

    return kernel(pull_predecessors, f"{threads} {edges}")


@functools.cache
def build_push(threads: int, edges: int) -> Any:
    """Make the kernel that goes along all edges; ``predecessor`` holds NOBODY at first.

    ``hop`` is looked at on plateaus only.
    """
    is_before = EDGES[edges]
    window_rows = threads + 1
    rows_of_block = gpu_frontier.build(threads).rows_of_block

    def push_predecessors(indptr, indices, weights, distance, hop, far, predecessor):
        offset = cuda.shared.array(window_rows, np.int64)
        thread, block, blocks = cuda.threadIdx.x, np.int64(cuda.blockIdx.x), cuda.gridDim.x
        entries, vertices = indices.size, distance.size
        place, last = entries * block // blocks, entries * (block + 1) // blocks
        if place >= last:
            return
        row = rows_of_block(indptr, 0, vertices, place)
        while place < last:
            offset[thread] = indptr[min(row + thread, vertices)]
            if thread == 0:
                offset[threads] = indptr[min(row + threads, vertices)]
            cuda.syncthreads()
            stop = min(last, offset[threads])
            for entry in range(place + thread, stop, threads):
                u = row + upper_bound(offset, 0, threads, entry) - 1
                v = indices[entry]
                if distance[u] != far and is_before(distance, hop, u, v, weights, entry):
                    cuda.atomic.min(predecessor, v, np.int32(u))
            place = stop
            row += threads
            cuda.syncthreads()

    return kernel(push_predecessors, f"{threads} {edges}")
