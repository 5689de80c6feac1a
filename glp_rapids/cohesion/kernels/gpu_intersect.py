"""Intersections of rows: how many neighbours two share, and which.

The rows of some ``vertices``, the egos, lie side by side, each beginning at its place in
``offsets``. Their entries are called *nodes*: those of the ego-networks.

The shorter of two rows is looked up in the longer by binary search, which finds all triangles in
O(m ** 1.5 log n): Chiba and Nishizeki, "Arboricity and subgraph listing algorithms", SIAM Journal
on Computing 14 (1985).
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from glp_rapids.jit.cuda import cuda, kernel
from glp_rapids.jit.primitives import inclusive_scan, lower_bound, row_of, upper_bound

COUNT, FILL = range(2)
# Threads of a block and the nodes it serves: many light ones, or a heavy one, of more than so many
# lookups. Where hubs know each other, one block of 32 would have more than a whole multiprocessor
# should (cnr-2000: 477,493 lookups of 86 M in all).
LIGHT, HEAVY, LARGEST_LIGHT = (32, 32), (256, 1), 256
ONE = np.uint32(1)


@functools.cache
def build(threads: int, nodes_a_block: int) -> Any:
    """Make the kernel that intersects each node's row with that of the vertex whose node it is.

    Launch: a block of ``threads`` for every ``nodes_a_block`` nodes, which puts those of more than
    ``largest`` lookups on the list ``heavy`` instead; then a block for each of these. The lookups
    of a block are shared evenly among its threads. Degrees: any. Shared memory: 1.9 KB, for heavy
    ones 92 bytes. Registers: 39 and 38.

    COUNT: how many neighbours node and vertex have in common, into ``result``. FILL: the nodes in
    common, ascending, into ``result`` from ``places[node]`` on.
    """
    words = max(threads // 32, 1)
    many = nodes_a_block > 1

    def intersect(
        indptr, indices, vertices, offsets, action, places, result,
        heavy, number_heavy, largest,
    ):  # fmt: skip
        sums = cuda.shared.array(nodes_a_block, np.int64)
        nodes = cuda.shared.array(nodes_a_block, np.int64)
        egos = cuda.shared.array(nodes_a_block, np.int64)
        own_first = cuda.shared.array(nodes_a_block, np.int64)
        own_size = cuda.shared.array(nodes_a_block, np.int64)
        other_first = cuda.shared.array(nodes_a_block, np.int64)
        other_size = cuda.shared.array(nodes_a_block, np.int64)
        found = cuda.shared.array(nodes_a_block, np.int32)
        hits = cuda.shared.array(words, np.uint32)

        thread = cuda.threadIdx.x
        last_node = offsets[offsets.size - 1]
        if thread < nodes_a_block:
            node = np.int64(cuda.blockIdx.x) * nodes_a_block + thread
            if not many:
                node = heavy[cuda.blockIdx.x]
            lookups = np.int64(0)
            found[thread] = 0
            nodes[thread] = node
            if node < last_node:
                ego = row_of(offsets, node)
                u = vertices[ego]
                start, size = indptr[u], indptr[u + 1] - indptr[u]
                v = indices[start + node - offsets[ego]]
                other, degree = indptr[v], indptr[v + 1] - indptr[v]
                own_first[thread], own_size[thread] = start, size
                other_first[thread], other_size[thread] = other, degree
                egos[thread] = ego
                lookups = min(size, degree)
                if many and lookups > largest:
                    lookups = 0
                    heavy[cuda.atomic.add(number_heavy, 0, np.int64(1))] = node
                    nodes[thread] = last_node  # it is not this block's any more
            sums[thread] = lookups
        if many:
            inclusive_scan(sums, thread, threads)
        else:
            cuda.syncthreads()
        total = sums[nodes_a_block - 1]

        round_first = np.int64(0)
        while round_first < total:
            if action == FILL:
                if thread < words:
                    hits[thread] = 0
                cuda.syncthreads()
            lookup = round_first + thread
            which, position = 0, np.int64(-1)
            if lookup < total:
                which = upper_bound(sums, 0, nodes_a_block - 1, lookup)
                i = lookup - sums[which - 1] if which > 0 else lookup
                first, size = own_first[which], own_size[which]
                other, degree = other_first[which], other_size[which]
                if size < degree:
                    w = indices[first + i]
                    place = lower_bound(indices, other, other + degree, w)
                    if place < other + degree and indices[place] == w:
                        position = i
                else:
                    w = indices[other + i]
                    place = lower_bound(indices, first, first + size, w)
                    if place < first + size and indices[place] == w:
                        position = place - first
            if action == FILL:
                if position >= 0:
                    cuda.atomic.or_(hits, thread >> 5, ONE << np.uint32(thread & 31))
                cuda.syncthreads()
                if position >= 0:
                    # those of the same node before this one: from the first thread that serves it
                    begun = sums[which - 1] - round_first if which > 0 else -round_first
                    begun = max(begun, np.int64(0))
                    rank = found[which]
                    for word in range(begun >> 5, (thread >> 5) + 1):
                        earlier = hits[word]
                        if word == thread >> 5:
                            earlier &= np.uint32((ONE << np.uint32(thread & 31)) - ONE)
                        if word == begun >> 5:
                            earlier = np.uint32(earlier >> np.uint32(begun & 31))
                        rank += cuda.popc(np.uint32(earlier))
                    result[places[nodes[which]] + rank] = offsets[egos[which]] + position
                cuda.syncthreads()
                if position >= 0:
                    cuda.atomic.add(found, which, np.int32(1))
                cuda.syncthreads()
            elif position >= 0:
                cuda.atomic.add(found, which, np.int32(1))
            round_first += threads
        cuda.syncthreads()
        if thread < nodes_a_block and nodes[thread] < last_node and action == COUNT:
            result[nodes[thread]] = found[thread]

    return kernel(intersect, f"{threads} {nodes_a_block}")
