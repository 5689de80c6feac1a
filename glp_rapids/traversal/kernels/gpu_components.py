"""Components by union-find on the device: the smallest vertex of a set is its root.

First every vertex joins its first neighbours, which leaves most of them in one set; after the ways
to the roots were cut short, most edges are seen to lie within it by one look at each end (Sutton,
Ben-Nun and Barak, "Optimizing parallel graph connectivity computation via subgraph sampling", IPDPS
2018).

Launch: blocks of THREADS. ``join_first`` and ``find_roots``: a thread a vertex; ``join_all``: any
number of blocks, which get equal numbers of entries. Degrees: any. Shared memory: 4 KB in
``join_all``. Registers: 34.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from glp_rapids.jit.cuda import cuda, kernel
from glp_rapids.jit.primitives import find_root, union, upper_bound
from glp_rapids.traversal.kernels import gpu_frontier

THREADS = 512
FIRST = 2  # neighbours


@functools.cache
def build_first(threads: int) -> Any:
    """Make the kernel that joins every vertex with its first neighbours."""

    def join_first(indptr, indices, parent):
        v = cuda.blockIdx.x * threads + cuda.threadIdx.x
        if v < parent.size:
            for place in range(indptr[v], min(indptr[v + 1], indptr[v] + FIRST)):
                union(parent, np.int32(v), indices[place])

    return kernel(join_first, f"{threads} {FIRST}")


@functools.cache
def build_roots(threads: int) -> Any:
    """Make the kernel that finds the root of every vertex.

    ``roots`` may be ``parent``: then ways get shorter, but others who shorten theirs may put back
    what is no root.
    """

    def find_roots(parent, roots):
        v = cuda.blockIdx.x * threads + cuda.threadIdx.x
        if v < parent.size:
            roots[v] = find_root(parent, np.int32(v))

    return kernel(find_roots, f"{threads}")


@functools.cache
def build_all(threads: int) -> Any:
    """Make the kernel that joins the ends of all edges."""
    window_rows = threads + 1
    rows_of_block = gpu_frontier.build(threads).rows_of_block

    def join_all(indptr, indices, parent):
        offset = cuda.shared.array(window_rows, np.int64)
        thread, block, blocks = cuda.threadIdx.x, np.int64(cuda.blockIdx.x), cuda.gridDim.x
        entries, vertices = indices.size, parent.size
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
                u = np.int32(row + upper_bound(offset, 0, threads, entry) - 1)
                v = indices[entry]
                if parent[u] != parent[v]:
                    union(parent, u, v)
            place = stop
            row += threads
            cuda.syncthreads()

    return kernel(join_all, f"{threads}")
