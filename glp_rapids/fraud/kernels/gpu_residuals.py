"""Residuals of the equation of scores on a GPU: what every vertex hears, added up in integers.

The sums are of integers, so they are those of `cpu_residuals` to the bit, whoever adds first.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from glp_rapids.device import array_module
from glp_rapids.jit.cuda import cuda, kernel

THREADS = 256  # of a block
ENTRIES = 16  # of a thread; it adds once for every row that has some of them


def first_rows(graph: Any) -> Any:
    """Return the row of the first entry of each thread."""
    xp = array_module(graph.indptr)
    begins = xp.arange(0, graph.indices.size, ENTRIES, dtype=np.int64)
    return xp.searchsorted(graph.indptr, begins, side="right") - 1


@functools.cache
def build_totals() -> Any:
    """Make the kernel that adds to ``sums`` the integer weights of each row but its self-loop's.

    Launch and the other arguments: as `build`. Registers: 25.
    """

    def add_weights(indptr, indices, weights, first_row, sums):
        chunk = np.int64(cuda.blockIdx.x) * np.int64(cuda.blockDim.x) + np.int64(cuda.threadIdx.x)
        first = chunk * ENTRIES
        last = min(first + ENTRIES, np.int64(indices.size))
        if first >= last:
            return
        weighted = weights.size > 0
        v = np.int64(first_row[chunk])
        end, sum_ = indptr[v + 1], np.int64(0)
        for entry in range(first, last):
            if entry >= end:
                if sum_ != 0:
                    cuda.atomic.add(sums, v, sum_)
                sum_ = np.int64(0)
                while entry >= end:
                    v += 1
                    end = indptr[v + 1]
            if np.int64(indices[entry]) != v:
                if weighted:
                    sum_ += np.int64(weights[entry])
                else:
                    sum_ += 1
        if sum_ != 0:
            cuda.atomic.add(sums, v, sum_)

    return kernel(add_weights, f"{ENTRIES}")


@functools.cache
def build() -> Any:
    """Make the kernel that adds to ``found`` what each vertex hears.

    Launch: a thread for every ``ENTRIES`` entries, so that a hub takes no longer than its entries.
    Degrees: any. No shared memory. Registers: 40.

    ``first_row``: the row of the first entry of each thread. ``total``: what the entries of a row
    weigh without its self-loop; infinite for vertices that hear nothing. ``weights`` of no
    elements: each entry weighs one. ``said``: what all neighbours hear of a vertex, float64.
    """

    def add_heard(indptr, indices, weights, first_row, total, said, found):
        chunk = np.int64(cuda.blockIdx.x) * np.int64(cuda.blockDim.x) + np.int64(cuda.threadIdx.x)
        first = chunk * ENTRIES
        last = min(first + ENTRIES, np.int64(indices.size))
        if first >= last:
            return
        weighted = weights.size > 0
        v = np.int64(first_row[chunk])
        end = indptr[v + 1]
        all_of_row = total[v]
        share = 1.0 / all_of_row
        heard = np.int64(0)
        for entry in range(first, last):
            if entry >= end:
                if heard != 0:
                    cuda.atomic.add(found, v, heard)
                heard = np.int64(0)
                while entry >= end:
                    v += 1
                    end = indptr[v + 1]
                all_of_row = total[v]
                share = 1.0 / all_of_row
            u = np.int64(indices[entry])
            if u != v:
                if weighted:
                    share = np.float64(weights[entry]) / all_of_row
                heard += np.int64(share * said[u])
        if heard != 0:
            cuda.atomic.add(found, v, heard)

    return kernel(add_heard, f"{ENTRIES}")


@functools.cache
def build_step() -> Any:
    """Make the kernel of `ArrayEngine.step`: one pass instead of nine. A thread a vertex."""
    import cupy

    return cupy.ElementwiseKernel(
        "bool fixed, int64 clamp, int64 most, float64 factor, int64 previous, int64 numbers, "
        "int64 residual",
        "int64 following",
        "long long step = (long long)rint(factor * (double)(residual + numbers - previous));"
        "long long there = min(max(previous + step, 0LL), (long long)most);"
        "following = fixed ? clamp : there",
        "glp_step_of_scores",
    )


@functools.cache
def build_above() -> Any:
    """Make the reduction of `ArrayEngine.above`, which needs no list of the vertices."""
    import cupy

    return cupy.ReductionKernel(
        "int64 residual, D degree, int64 allowed", "int64 entries",
        "(residual > allowed || -residual > allowed) ? (long long)degree : 0LL", "a + b",
        "entries = a", "0", "glp_entries_above",
    )  # fmt: skip
