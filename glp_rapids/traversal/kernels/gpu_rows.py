"""Rows copied one after another in another order, in equal numbers of entries a block.

Launch: any number of blocks of THREADS. Degrees: any. Shared memory: 10 KB. Registers: 32.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from glp_rapids.jit.cuda import cuda, kernel
from glp_rapids.traversal.kernels import gpu_frontier

THREADS = 512
LANES = 8  # threads that share a row
LONG = 1 << 9  # entries of a row that a block shares


@functools.cache
def build(threads: int) -> Any:
    """Make the kernel that copies values by entry; ``offsets``: where each row comes to lie."""
    window_rows = threads + 1
    lanes = min(LANES, threads)
    rows_of_block = gpu_frontier.build(threads).rows_of_block

    def copy_rows(indptr, values, order, offsets, copied):
        offset = cuda.shared.array(window_rows, np.int64)
        shift = cuda.shared.array(threads, np.int64)
        long = cuda.shared.array(threads, np.int32)
        number = cuda.shared.array(1, np.int32)
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
                number[0] = 0
            cuda.syncthreads()
            stop = min(last, offset[threads])
            for at in range(thread // lanes, threads, threads // lanes):
                start, end = max(offset[at], place), min(offset[at + 1], stop)
                if end - start <= LONG:
                    for entry in range(start + thread % lanes, end, lanes):
                        copied[entry] = values[entry + shift[at]]
                elif thread % lanes == 0:
                    long[cuda.atomic.add(number, 0, np.int32(1))] = at
            cuda.syncthreads()
            for i in range(number[0]):
                at = long[i]
                start, end = max(offset[at], place), min(offset[at + 1], stop)
                for entry in range(start + thread, end, threads):
                    copied[entry] = values[entry + shift[at]]
            place = stop
            row += threads
            cuda.syncthreads()

    return kernel(copy_rows, f"{threads}")
