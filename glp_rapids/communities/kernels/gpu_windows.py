"""Rows at hand on a GPU, so that threads have entries of them in equal shares.

However long rows are, threads have equal shares: a block goes through a run of entries, and has the
rows they are in, one a thread at the most, in shared memory, where each thread finds those of its
own entries (as in merge-based sparse matrix products: Merrill and Garland 2016). Where rows are
shorter than a thread's share, rows run out first, and some threads have none.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np

from glp_rapids.jit.cuda import cuda

Array = Any


class Rows(NamedTuple):
    """Rows, and the part that each is in."""

    indptr: Array
    indices: Array
    weights: Array  # in any unit; empty where each weighs one
    parts: Array


class Window(NamedTuple):
    """Rows at hand, in shared memory: one a thread."""

    begins: Array
    parts: Array
    bases: Array  # where the table of the part begins, and how many slots it has
    slots: Array


class Functions(NamedTuple):
    """What `build` makes, compiled for the GPU. All threads of a block call the first two."""

    lay_out: Any  # -> a window
    # rows, where tables begin, first, window -> how many rows are at hand, and where they end
    fill: Any
    find: Any  # window, number, entry -> the last row that begins there or before


@functools.cache
def build(threads: int) -> Functions:
    """Make the functions for blocks of so many threads."""

    @cuda.jit(device=True)
    def lay_out():
        # a line each: Numba's simulator knows shared arrays by their lines
        return Window(
            cuda.shared.array(threads, np.int64),
            cuda.shared.array(threads, np.int64),
            cuda.shared.array(threads, np.int64),
            cuda.shared.array(threads, np.int64),
        )

    @cuda.jit(device=True)
    def fill(rows, offsets, first, window):
        thread = np.int64(cuda.threadIdx.x)
        number = min(np.int64(threads), rows.parts.size - first)
        if thread < number:
            part = np.int64(rows.parts[first + thread])
            base = offsets[part]
            window.begins[thread] = rows.indptr[first + thread]
            window.parts[thread], window.bases[thread] = part, base
            window.slots[thread] = offsets[part + 1] - base
        cuda.syncthreads()
        return number, rows.indptr[first + number]

    @cuda.jit(device=True)
    def find(window, number, entry):
        low, high = np.int32(0), np.int32(number)
        while high - low > 1:
            middle = (low + high) >> 1
            if window.begins[middle] <= entry:
                low = middle
            else:
                high = middle
        return np.int64(low)

    return Functions(lay_out, fill, find)
