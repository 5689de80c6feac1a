"""Along the edges of a level on a GPU: the terms of objectives, and what is connected.

Threads have runs of entries, wherever rows begin, so that hubs take no longer.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from glp_rapids.communities.kernels import gpu_scans, gpu_sums
from glp_rapids.communities.kernels.gpu_tables import U64
from glp_rapids.jit.cuda import cuda, kernel
from glp_rapids.jit.primitives import find_root, lower_bound, union

Array = Any
THREADS, EACH = 256, 8  # entries a thread
MASK, HALF = np.int64((1 << 31) - 1), np.int64((1 << 32) - 1)


class Edges(NamedTuple):
    """The rows of a level, and the community of every vertex."""

    indptr: Array
    indices: Array
    weights: Array  # empty where each weighs one
    labels: Array


@functools.cache
def _build_first_row(threads: int, each: int) -> Callable:
    """Make the function that finds the row of a thread's first entry; all threads call."""

    @cuda.jit(device=True)
    def first_row(edges, bounds):
        thread, begin = cuda.threadIdx.x, np.int64(cuda.blockIdx.x) * threads * each
        entries = np.int64(edges.indices.size)
        if thread < 2:
            entry = min(begin + thread * (threads * each - 1), entries - 1)
            bounds[thread] = lower_bound(edges.indptr, 0, edges.labels.size, entry + 1)
        cuda.syncthreads()
        entry = min(begin + np.int64(thread) * each, entries)
        return lower_bound(edges.indptr, bounds[0], bounds[1], entry + 1) - 1

    return first_row


@functools.cache
def build_unite(threads: int, each: int, weighted: bool, index_type: Any) -> Any:
    """Make the kernel that unites the ends of all edges inside communities.

    Launch: a thread for EACH entries. Degrees: any. Shared memory: 16 bytes. Registers: 23.
    """
    first_row = _build_first_row(threads, each)

    def unite_inside(edges, parent):
        v = first_row(edges, cuda.shared.array(2, np.int64))
        begin = (np.int64(cuda.blockIdx.x) * threads + cuda.threadIdx.x) * each
        for entry in range(begin, min(begin + each, edges.indices.size)):
            while entry >= edges.indptr[v + 1]:
                v += 1
            u = edges.indices[U64(entry)]
            joins = u < v and (not weighted or edges.weights[U64(entry)] > 0)
            if joins and edges.labels[U64(u)] == edges.labels[U64(v)]:
                union(parent, index_type(v), u)

    return kernel(unite_inside, f"{threads} {each} {weighted}")


@functools.cache
def build_roots(threads: int) -> Any:
    """Make the kernel that names every vertex by its root, and adds up the volumes of roots.

    Launch: a thread a vertex. Registers: 26.
    """
    add_to_total = gpu_sums.build(gpu_sums.to_total)

    def find_roots(parent, roots, volume, volumes):
        v = np.int64(cuda.blockIdx.x) * threads + cuda.threadIdx.x
        root, own = np.int64(-1), np.int64(0)
        if v < roots.size:
            root, own = np.int64(find_root(parent, v)), volume[v]
            roots[v] = root
        add_to_total(root, own, volumes)

    return kernel(find_roots, str(threads))


# What `build_terms` adds up: the weight from one community to another, from both ends, and the
# squares of volumes, 2^31 high + low: those of high, the products, and those of low, in halves.
CROSSING, HIGH, PRODUCT, LOW_HIGH, LOW_LOW, JUDGED = range(6)


@functools.cache
def build_terms(threads: int, each: int, weighted: bool) -> Any:
    """Make the kernel that adds up what an objective makes of a partition; see above.

    Launch: a thread for EACH entries. Degrees: any. Shared memory: 2 KB. Registers: 36.
    """
    first_row = _build_first_row(threads, each)
    _, _, ranked, _ = gpu_scans.build(threads)

    @cuda.jit(device=True)
    def add(judged, word, own, sums):
        _, whole = ranked(own, sums)
        if cuda.threadIdx.x == 0 and whole != 0:
            cuda.atomic.add(judged, word, whole)

    def sum_terms(edges, volumes, judged):
        v = first_row(edges, cuda.shared.array(2, np.int64))
        sums = cuda.shared.array(threads, np.int64)
        block, blocks = np.int64(cuda.blockIdx.x), np.int64(cuda.gridDim.x)
        begin = (block * threads + cuda.threadIdx.x) * each
        own = np.int64(0)
        for entry in range(begin, min(begin + each, edges.indices.size)):
            while entry >= edges.indptr[v + 1]:
                v += 1
            if edges.labels[U64(edges.indices[U64(entry)])] != edges.labels[U64(v)]:
                if weighted:
                    own += np.int64(edges.weights[U64(entry)])
                else:
                    own += 1
        add(judged, CROSSING, own, sums)
        if block * threads >= volumes.size:
            return
        high, product, low_high, low_low = np.int64(0), np.int64(0), np.int64(0), np.int64(0)
        for label in range(block * threads + cuda.threadIdx.x, volumes.size, blocks * threads):
            upper, lower = volumes[label] >> 31, volumes[label] & MASK
            high += upper * upper
            product += upper * lower
            low_high += lower * lower >> 32
            low_low += lower * lower & HALF
        add(judged, HIGH, high, sums)
        add(judged, PRODUCT, product, sums)
        add(judged, LOW_HIGH, low_high, sums)
        add(judged, LOW_LOW, low_low, sums)

    return kernel(sum_terms, f"{threads} {each} {weighted}")


def squares(told: list[int]) -> int:
    """Return the sum of the squares of volumes that a kernel found."""
    return (told[HIGH] << 62) + (told[PRODUCT] + told[LOW_HIGH] << 32) + told[LOW_LOW]
