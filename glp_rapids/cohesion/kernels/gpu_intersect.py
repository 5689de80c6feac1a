"""Intersections of rows: how many neighbours two share, which, or joining who know each other.

A *node* is a member of an ego-network: the j-th entry of the rows of some vertices. ``vertices``
and ``offsets`` say whose rows these are and where each begins among the nodes. For all vertices of
a graph, nodes are its entries.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from glp_rapids.jit.cuda import cuda, kernel
from glp_rapids.jit.primitives import inclusive_scan, lower_bound, row_of, union, upper_bound

COUNT, COUNT_UPPER, CORNERS, FILL, JOIN = range(5)
# Threads of a block and the nodes it serves: many short ones, or one long one. Long is a node for
# which so much is to be looked up: where hubs know each other, one block of 32 would have more than
# a whole multiprocessor should (cnr-2000: 477,493 lookups of 86 M in all).
SHORT, LONG, LARGEST_SHORT = (32, 32), (256, 1), 256
PLACES = 256  # threads of a block that have a place each
ONE = np.uint32(1)


@functools.cache
def build_intersect(threads: int, nodes_a_block: int) -> Any:
    """Make the kernel that intersects each node's row with that of its ego.

    Launch: blocks of ``threads``, each for as many nodes, or each for one of those ``listed``. The
    lookups of a block are shared evenly among its threads, the shorter row being looked up in the
    longer. If each has many nodes, those of more than ``largest`` lookups are listed instead.
    Shared memory: 2 KB. Degrees: any.

    COUNT: how many an ego and its member have in common, into ``result``. COUNT_UPPER: only where
    the member comes after the ego, for graphs in which the other way round is the same. CORNERS:
    the same, added up for both in ``corners``. FILL: the nodes in common, ascending, into
    ``result`` from ``places[node]`` on. JOIN: each pair of nodes joined in ``result``, a
    union-find's parents.
    """
    words = max(threads // 32, 1)
    many = nodes_a_block > 1

    def intersect(
        indptr, indices, vertices, offsets, action, places, result, corners,
        listed, number_listed, largest,
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
                node = listed[cuda.blockIdx.x]
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
                if v > u or action not in (COUNT_UPPER, CORNERS):
                    lookups = min(size, degree)
                if many and lookups > largest:
                    lookups = 0
                    listed[cuda.atomic.add(number_listed, 0, np.int64(1))] = node
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
                if action == JOIN:
                    node, other_node = nodes[which], offsets[egos[which]] + position
                    if other_node > node:
                        union(result, np.int32(node), np.int32(other_node))
                else:
                    cuda.atomic.add(found, which, np.int32(1))
            round_first += threads
        cuda.syncthreads()
        if thread < nodes_a_block and nodes[thread] < last_node:
            if action in (COUNT, COUNT_UPPER):
                result[nodes[thread]] = found[thread]
            elif action == CORNERS and found[thread] > 0:
                u = vertices[egos[thread]]
                v = indices[own_first[thread] + nodes[thread] - offsets[egos[thread]]]
                cuda.atomic.add(corners, u, np.int64(found[thread]))
                cuda.atomic.add(corners, v, np.int64(found[thread]))

    return kernel(intersect, f"{threads} {nodes_a_block}")


@functools.cache
def build_rows(threads: int) -> Any:
    """Make the kernel that finds the row of every place of rows that begin at ``offsets``.

    Launch: a thread a place. Any sizes.
    """

    def find_rows(offsets, rows):
        place = np.int64(cuda.blockIdx.x) * threads + cuda.threadIdx.x
        if place < rows.size:
            rows[place] = row_of(offsets, place)

    return kernel(find_rows, str(threads))


@functools.cache
def build_sort_out(threads: int, above: tuple[int, ...]) -> Any:
    """Make the kernel that lists vertices by degree: ``lists[i]`` those above ``above[i]``.

    Launch: a thread a vertex. ``above`` ascends, and a vertex is in the last list it could be in;
    ``numbers`` counts, from 0. In one launch, since many small ones are what costs where few
    vertices are asked for, or threads take turns to launch. A list keeps vertices together that
    were, but not their order.
    """
    lists_there = len(above)

    def sort_out(indptr, vertices, lists, numbers):
        taken = cuda.shared.array(lists_there, np.int32)
        start = cuda.shared.array(lists_there, np.int64)
        thread = cuda.threadIdx.x
        i = np.int64(cuda.blockIdx.x) * threads + thread
        if thread < lists_there:
            taken[thread] = 0
        cuda.syncthreads()
        which, rank = -1, np.int32(0)
        if i < vertices.size:
            v = vertices[i]
            degree = indptr[v + 1] - indptr[v]
            for least in above:
                if degree > least:
                    which += 1
            if which >= 0:
                rank = cuda.atomic.add(taken, which, np.int32(1))
        cuda.syncthreads()
        if thread < lists_there and taken[thread] > 0:
            start[thread] = cuda.atomic.add(numbers, thread, np.int64(taken[thread]))
        cuda.syncthreads()
        if which >= 0:
            lists[which, start[which] + rank] = i

    return kernel(sort_out, f"{threads} {above}")
