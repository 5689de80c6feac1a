"""Searches that meet nodes in NetworkX's order: by the order of neighbours, not of positions.

Who is found first decides which of several shortest paths is returned, and the order of every
result. `breadth_first` and `bidirectional` are NetworkX's own loops over arrays. `settle` repeats
what Dijkstra's heap would have done, once the distances are known.

``predecessor`` holds `UNSEEN` at first. What may take long returns early once ``stop[0]`` is not 0.
"""

from __future__ import annotations

import numpy as np

from glp_rapids.jit.cache import kept

U64 = np.uint64
ONE = np.uint64(1)
UNSEEN, NOBODY = -2, -1
LOOK = 4095  # vertices between two looks at the flag, less one

jit = kept(error_model="numpy")


@jit
def breadth_first(indptr, neighbours, starts, depth, predecessor, order, ends, stop):
    """List in ``order`` who is found from different ``starts``, level after level.

    ``ends[d]`` becomes where the vertices of distance ``d`` end. ``predecessor``: who found a
    vertex; `NOBODY` for the starts. Returns the number of levels.
    """
    tail = np.int64(0)
    for i in range(starts.size):
        order[tail] = starts[i]
        predecessor[U64(starts[i])] = NOBODY
        tail += 1
    head = level = np.int64(0)
    ends[0] = tail
    while head < tail and level < depth:
        end = tail
        while head < end:
            if head & LOOK == 0 and stop[0] != 0:
                return level
            u = U64(order[U64(head)])
            head += 1
            for p in range(indptr[u], indptr[u + ONE]):
                v = U64(neighbours[U64(p)])
                if predecessor[v] == UNSEEN:
                    predecessor[v] = u
                    order[U64(tail)] = v
                    tail += 1
        if tail > end:
            level += 1
            ends[level] = tail
    return level + 1


@jit
def bidirectional(
    indptr, neighbours, in_indptr, in_neighbours, source, target, predecessor, successor, forward,
    backward, stop,
):  # fmt: skip
    """Search from both ends, on the side with the smaller frontier; return where they met, or -1.

    ``predecessor`` leads back to the source, ``successor``, which begins as `UNSEEN` too, on to the
    target. The frontiers are the ends of the queues ``forward`` and ``backward``.
    """
    forward[0], predecessor[source] = source, NOBODY
    backward[0], successor[target] = target, NOBODY
    if source == target:
        return source
    head = other_head = np.int64(0)
    tail = other_tail = np.int64(1)
    while head < tail and other_head < other_tail and stop[0] == 0:
        if tail - head <= other_tail - other_head:
            end = tail
            while head < end:
                u = U64(forward[U64(head)])
                head += 1
                for p in range(indptr[u], indptr[u + ONE]):
                    v = U64(neighbours[U64(p)])
                    if predecessor[v] == UNSEEN:
                        predecessor[v] = u
                        forward[U64(tail)] = v
                        tail += 1
                    if successor[v] != UNSEEN:
                        return np.int64(v)
        else:
            end = other_tail
            while other_head < end:
                u = U64(backward[U64(other_head)])
                other_head += 1
                for p in range(in_indptr[u], in_indptr[u + ONE]):
                    v = U64(in_neighbours[U64(p)])
                    if successor[v] == UNSEEN:
                        successor[v] = u
                        backward[U64(other_tail)] = v
                        other_tail += 1
                    if predecessor[v] != UNSEEN:
                        return np.int64(v)
    return np.int64(-1)


@jit
def settle(
    indptr, neighbours, row_starts, indices, weights, distance, rank, place, starts, predecessor,
    order, stop,
):  # fmt: skip
    """List the vertices as Dijkstra's algorithm settles them: by distance, then first come.

    Of several vertices through which another has its distance, the one settled first is its
    predecessor, and pushed it onto the heap; vertices of one distance leave the heap as they came.

    ``row_starts``, ``indices``, ``weights``: the same edges in ascending rows. ``rank``: the place
    of a vertex's distance among all distances, -1 if it was not reached; ``place``: where in
    ``order`` the vertices of each rank begin, and, in the end, end.
    """
    for i in range(starts.size):
        order[U64(place[0])] = starts[i]
        predecessor[U64(starts[i])] = NOBODY
        place[0] += 1
    for i in range(order.size):
        if i & LOOK == 0 and stop[0] != 0:
            return
        u = U64(order[U64(i)])
        here = distance[u]
        for p in range(indptr[u], indptr[u + ONE]):
            v = neighbours[U64(p)]
            at = rank[U64(v)]
            if at < 0 or predecessor[U64(v)] != UNSEEN:
                continue
            low, high = row_starts[u], row_starts[u + ONE]
            while low < high:
                middle = (low + high) >> 1
                if indices[U64(middle)] < v:
                    low = middle + 1
                else:
                    high = middle
            if here + weights[U64(low)] == distance[U64(v)]:
                predecessor[U64(v)] = u
                order[U64(place[at])] = v
                place[at] += 1


@jit
def walk_back(predecessor, vertex, path):
    """Write the vertices from ``vertex`` back to where its search began; return how many."""
    size = np.int64(0)
    while vertex >= 0:
        path[size] = vertex
        size += 1
        vertex = np.int64(predecessor[U64(vertex)])
    return size
