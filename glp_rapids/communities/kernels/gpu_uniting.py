"""Connected pieces of communities on a GPU: union-find over the edges inside.

Registers: 22 to 29, none spilled.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from glp_rapids.jit.cuda import cuda, kernel
from glp_rapids.jit.primitives import find_root, union

THREADS, LANES = 256, 8


@functools.cache
def build_unite_row(weighted: bool, index_type: Any) -> Callable:
    """Make the function with which a thread goes along a row, and unites it with what is inside."""

    @cuda.jit(device=True)
    def unite_row(v, entry, step, indptr, indices, weights, labels, parent):
        while entry < indptr[v + 1]:
            u = indices[entry]
            if u < v and labels[u] == labels[v] and (not weighted or weights[entry] > 0):
                union(parent, index_type(v), u)
            entry += step

    return unite_row


@functools.cache
def build_unite(threads: int, lanes: int, weighted: bool, index_type: Any) -> Any:
    """Make the kernel that unites the ends of all edges inside communities.

    Launch: LANES threads a row. Degrees: any.
    """
    unite_row = build_unite_row(weighted, index_type)

    def unite_inside(indptr, indices, weights, labels, parent):
        thread = np.int64(cuda.blockIdx.x) * threads + cuda.threadIdx.x
        v, lane = thread // lanes, thread % lanes
        if v < labels.size:
            unite_row(v, indptr[v] + lane, lanes, indptr, indices, weights, labels, parent)

    return kernel(unite_inside, f"{threads} {lanes} {weighted}")


@functools.cache
def build_roots(threads: int) -> Any:
    """Make the kernel that names every vertex by its root.

    Launch: a thread a vertex.
    """

    def find_roots(parent, roots):
        v = np.int64(cuda.blockIdx.x) * threads + cuda.threadIdx.x
        if v < roots.size:
            roots[v] = find_root(parent, v)

    return kernel(find_roots, str(threads))
