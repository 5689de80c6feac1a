"""Intersections of rows: how many neighbours two share, which, or joining who know each other.

A *node* is a member of an ego-network: the j-th entry of the rows of some vertices. ``vertices``
and ``offsets`` say whose rows these are and where each begins among the nodes, ``ego_of`` the place
of each node's vertex among the vertices. For all vertices of a graph, nodes are its entries.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from glp_rapids.diversity.kernels.gpu_common import (
    cuda,
    digest,
    joined,
    kernel,
    place_in,
    summed_up,
)

COUNT, COUNT_UPPER, FILL, JOIN = range(4)
THREADS = 32  # and as many nodes a block
ONE = np.uint32(1)


@functools.cache
def build_intersect(threads: int) -> Any:
    """Make the kernel that intersects each node's row with that of its ego.

    Launch: blocks of ``threads`` (up to 32), each for as many nodes. The lookups of all nodes of a
    block are shared evenly among its threads, the shorter row being looked up in the longer.
    Shared memory: 1.7 KB. Registers: 32. Degrees: any.

    COUNT: how many an ego and its member have in common, into ``result``. COUNT_UPPER: only where
    the member comes after the ego, for graphs in which the other way round is the same. FILL: the
    nodes in common, ascending, into ``result`` from ``places[node]`` on. JOIN: each pair of nodes
    joined in ``result``, a union-find's parents.
    """

    def intersect(indptr, indices, vertices, offsets, ego_of, action, places, result):
        sums = cuda.shared.array(threads, np.int64)
        own_first = cuda.shared.array(threads, np.int64)
        own_size = cuda.shared.array(threads, np.int64)
        other_first = cuda.shared.array(threads, np.int64)
        other_size = cuda.shared.array(threads, np.int64)
        base = cuda.shared.array(threads, np.int64)
        found = cuda.shared.array(threads, np.int32)
        hits = cuda.shared.array(1, np.uint32)

        thread = cuda.threadIdx.x
        first_node = np.int64(cuda.blockIdx.x) * threads
        node = first_node + thread
        lookups = np.int64(0)
        found[thread] = 0
        if node < ego_of.size:
            ego = ego_of[node]
            u = vertices[ego]
            start, size = indptr[u], indptr[u + 1] - indptr[u]
            v = indices[start + node - offsets[ego]]
            other, degree = indptr[v], indptr[v + 1] - indptr[v]
            own_first[thread], own_size[thread] = start, size
            other_first[thread], other_size[thread] = other, degree
            base[thread] = offsets[ego]
            if action != COUNT_UPPER or v > u:
                lookups = min(size, degree)
        sums[thread] = lookups
        summed_up(sums, thread, threads)
        total = sums[threads - 1]

        round_first = np.int64(0)
        while round_first < total:
            if action == FILL:
                if thread == 0:
                    hits[0] = 0
                cuda.syncthreads()
            lookup = round_first + thread
            which, position = 0, np.int64(-1)
            if lookup < total:
                low, high = 0, threads - 1
                while low < high:
                    middle = (low + high) >> 1
                    if sums[middle] > lookup:
                        high = middle
                    else:
                        low = middle + 1
                which = low
                i = lookup - sums[which - 1] if which > 0 else lookup
                first, size = own_first[which], own_size[which]
                other, degree = other_first[which], other_size[which]
                if size < degree:
                    w = indices[first + i]
                    place = place_in(indices, other, other + degree, w)
                    if place < other + degree and indices[place] == w:
                        position = i
                else:
                    w = indices[other + i]
                    place = place_in(indices, first, first + size, w)
                    if place < first + size and indices[place] == w:
                        position = place - first
            if action == FILL:
                if position >= 0:
                    cuda.atomic.or_(hits, 0, ONE << np.uint32(thread))
                cuda.syncthreads()
                if position >= 0:
                    # those of the same node before this one: from the first thread that serves it
                    begun = sums[which - 1] - round_first if which > 0 else -round_first
                    begun = np.uint32(max(begun, np.int64(0)))
                    earlier = hits[0] & np.uint32((ONE << np.uint32(thread)) - ONE)
                    rank = cuda.popc(np.uint32(earlier >> begun)) + found[which]
                    result[places[first_node + which] + rank] = base[which] + position
                cuda.syncthreads()
                if position >= 0:
                    cuda.atomic.add(found, which, np.int32(1))
                cuda.syncthreads()
            elif position >= 0:
                if action == JOIN:
                    other_node = base[which] + position
                    if other_node > first_node + which:
                        joined(result, np.int32(first_node + which), np.int32(other_node))
                else:
                    cuda.atomic.add(found, which, np.int32(1))
            round_first += threads
        if action in (COUNT, COUNT_UPPER):
            cuda.syncthreads()
            if node < ego_of.size:
                result[node] = found[thread]

    return kernel(intersect, f"{digest()} {threads}")
