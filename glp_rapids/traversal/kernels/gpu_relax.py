"""Edges by layers relaxed in their order, those of all kinds, until nothing changes.

WolfPath's order of work (Zhu, He, Fu and Li, International Journal of Parallel Programming 47,
2019), over all edges: one pass goes through the layers, a grid barrier behind each, small layers
that follow one another taken together. A pass leaves out rows whose distance did not fall in it or
in the one before.

Launch: cooperative, 4 blocks of THREADS a multiprocessor, which get equal numbers of entries.
Degrees: any. Shared memory: 4 KB with 64-bit weights. Registers: 48.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from glp_rapids.jit.cuda import cuda, kernel
from glp_rapids.jit.primitives import grid_barrier, upper_bound
from glp_rapids.traversal.kernels import gpu_frontier

THREADS = 256
IN_A_ROW = 4  # entries of a thread, of which only the first has its row searched for


@functools.cache
def build(threads: int, dtype: Any) -> Any:
    """Make the kernel for weights of a type.

    Rows of places in ``order`` begin at ``offsets`` less ``base``; steps, from ``first`` to
    ``last``, at ``bounds`` in ``order``. ``fallen``: the pass in which a distance last fell.
    """
    window_rows = threads + 1
    rows_of_block = gpu_frontier.build(threads).rows_of_block

    def relax_layers(
        offsets, base, indices, weights, order, bounds, first, last, distance, unreached, cutoff,
        fallen, turn, arrived,
    ):  # fmt: skip
        offset = cuda.shared.array(window_rows, np.int64)
        label = cuda.shared.array(threads, dtype)
        cuda.cg.this_grid()
        thread, block = np.int64(cuda.threadIdx.x), np.int64(cuda.blockIdx.x)
        blocks, goal = np.int64(cuda.gridDim.x), np.int64(0)
        for step in range(first, last):
            begin, end = bounds[step], bounds[step + 1]
            entries = offsets[end] - offsets[begin]
            place = offsets[begin] + entries * block // blocks
            behind = offsets[begin] + entries * (block + 1) // blocks
            row = begin
            if place < behind:
                row += rows_of_block(offsets, begin, end - begin, place)
            while place < behind:
                i = row + thread
                offset[thread] = offsets[min(i, end)]
                label[thread] = unreached
                if i < end:
                    u = order[i]
                    if fallen[u] >= turn - 1:
                        label[thread] = distance[u]
                if thread == 0:
                    offset[threads] = offsets[min(row + threads, end)]
                cuda.syncthreads()
                stop = min(behind, offset[threads])
                for some in range(place + IN_A_ROW * thread, stop, IN_A_ROW * threads):
                    at = upper_bound(offset, 0, threads, some) - 1
                    for entry in range(some, min(some + IN_A_ROW, stop)):
                        while offset[at + 1] <= entry:
                            at += 1
                        here = label[at]
                        if here != unreached:
                            v = indices[entry - base]
                            through = here + weights[entry - base]
                            if through < distance[v] and through <= cutoff:
                                cuda.atomic.min(distance, v, through)
                                fallen[v] = turn
                place = stop
                row += threads
                cuda.syncthreads()
            goal += blocks
            grid_barrier(arrived, goal)

    return kernel(relax_layers, f"{threads} {np.dtype(dtype).name}")
