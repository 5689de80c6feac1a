"""Rows copied one after another in another order, in equal numbers of entries.

Launch: any number of blocks of THREADS. Degrees: any. Shared memory: 8 KB. Registers: 32.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from glp_rapids.jit.cuda import cuda, kernel
from glp_rapids.jit.primitives import upper_bound
from glp_rapids.traversal.kernels import gpu_frontier

THREADS = 512


@functools.cache
def build(threads: int) -> Any:
    """Make the kernel that copies values by entry; ``offsets``: where each row comes to lie."""
    window_rows = threads + 1
    rows_of_block = gpu_frontier.build(threads).rows_of_block

    def copy_rows(indptr, values, order, offsets, copied):
        offset = cuda.shared.array(window_rows, np.int64)
        shift = cuda.shared.array(threads, np.int64)
        thread, block, blocks = cuda.threadIdx.x, np.int64(cuda.blockIdx.x), cuda.gridDim.x
        entries, rows = copied.size, order.size
        place, last = entries * block // blocks, entries * (block + 1) // blocks
        if place >= last:
            return
        row = rows_of_block(offsets, 0, rows, place)
        while place < last:
            offset[thread] = offsets[min(row + thread, rows)]
            if row + thread < rows:
                shift[thread] = indptr[order[row + thread]] - offset[thread]
            if thread == 0:
                offset[threads] = offsets[min(row + threads, rows)]
            cuda.syncthreads()
            stop = min(last, offset[threads])
            for entry in range(place + thread, stop, threads):
                copied[entry] = values[entry + shift[upper_bound(offset, 0, threads, entry) - 1]]
            place = stop
            row += threads
            cuda.syncthreads()

    return kernel(copy_rows, f"{threads}")
