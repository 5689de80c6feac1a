"""Rows copied one after another in another order, in equal shares of rows and entries together.

A block's share counts a row as ROW_COST entries: were it entries alone, a block among rows of one
entry would look up as many rows as others copy entries, and all would wait for it.

Launch: any number of blocks of THREADS. Degrees: any. Shared memory: 4 KB. Registers: 40.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from glp_rapids.jit.cuda import cuda, kernel
from glp_rapids.jit.primitives import upper_bound

THREADS = 256
BLOCKS_A_MULTIPROCESSOR = 32
AT_ONCE = 6  # of them
ROW_COST = 16
WARP = 32


@functools.cache
def build(threads: int) -> Any:
    """Make the kernel that copies values by entry; ``offsets``: where each row comes to lie."""
    window_rows, warp, row_cost = threads + 1, min(WARP, threads), ROW_COST
    warps = threads // warp

    @cuda.jit(device=True)
    def row_of_share(offsets, rows, work):
        """Return the last row that begins up to so much work; all threads of a block call it."""
        first, last = np.int64(0), np.int64(rows)
        while last - first > 1:
            step = (last - first + threads - 1) // threads
            row = first + cuda.threadIdx.x * step
            below = row < last and offsets[row] + row * row_cost <= work
            number = np.int64(cuda.syncthreads_count(np.int32(below)))
            first += (number - 1) * step
            last = min(last, first + step)
        return first

    @cuda.jit(device=True)
    def entry_of_share(offsets, row, work):
        return min(offsets[row + 1], work - row * row_cost)

    def copy_rows(indptr, values, order, offsets, copied):
        offset = cuda.shared.array(window_rows, np.int64)
        shift = cuda.shared.array(threads, np.int64)
        thread, block, blocks = cuda.threadIdx.x, np.int64(cuda.blockIdx.x), cuda.gridDim.x
        rows = np.int64(order.size)
        work = copied.size + rows * row_cost
        row = row_of_share(offsets, rows, work * (block + 1) // blocks)
        last = entry_of_share(offsets, row, work * (block + 1) // blocks)
        row = row_of_share(offsets, rows, work * block // blocks)
        place = entry_of_share(offsets, row, work * block // blocks)
        while place < last:
            offset[thread] = offsets[min(row + thread, rows)]
            if row + thread < rows:
                shift[thread] = indptr[order[row + thread]] - offset[thread]
            if thread == 0:
                offset[threads] = offsets[min(row + threads, rows)]
            cuda.syncthreads()
            stop = min(last, offset[threads])
            part = stop - place
            entry = place + part * (thread // warp) // warps + thread % warp
            end = place + part * (thread // warp + 1) // warps
            following, by = np.int64(-1), np.int64(0)
            here = 0
            while entry < end:
                if entry >= following:
                    here = upper_bound(offset, here, threads, entry)
                    following, by = offset[here], shift[here - 1]
                if entry + 3 * warp < min(following, end):
                    # all are asked for before any is written
                    one, two = values[entry + by], values[entry + warp + by]
                    three, four = values[entry + 2 * warp + by], values[entry + 3 * warp + by]
                    copied[entry], copied[entry + warp] = one, two
                    copied[entry + 2 * warp], copied[entry + 3 * warp] = three, four
                    entry += 4 * warp
                else:
                    copied[entry] = values[entry + by]
                    entry += warp
            place = stop
            row += threads
            cuda.syncthreads()

    return kernel(
        copy_rows, f"{threads} {warp} {row_cost}", launch_bounds=(threads, AT_ONCE)
    )
