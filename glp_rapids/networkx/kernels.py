"""Searches that meet nodes in NetworkX's order: by the order of neighbours, not of positions.

Who is found first decides which of several shortest paths is returned, and the order of every
result. `breadth_first`, `bidirectional` and `nearest_first` are NetworkX's own loops over arrays.
`settle` repeats what Dijkstra's heap would have done, once the distances are known.

What is noted of every node is noted in arrays that are clean before, and after: a search of a few
nodes in a large graph takes no longer than they do. What may take long returns early once
``stop[0]`` is not 0.
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
def breadth_first(
    indptr, neighbours, starts, depth, most, whole, seen, order, parent, ends, state, stop
):
    """List in ``order`` who is found from different ``starts``, level after level.

    Ends once ``most`` vertices are found, at the end of their level if it is to be ``whole``; the
    next call goes on from there. ``ends[d]`` becomes where the vertices of distance ``d`` end.
    ``parent``: who found each in ``order``; `NOBODY` for the starts. ``seen`` is 0 everywhere
    before, and again when nobody is left.

    ``state``, at first 0: whose neighbours are looked at, from which on, how many vertices are
    found, at which level the search is, and 1 when nobody is left.
    """
    head, entry, tail, level = state[0], state[1], state[2], state[3]
    if tail == 0:
        for i in range(starts.size):
            order[tail], parent[tail] = starts[i], NOBODY
            seen[U64(starts[i])] = 1
            tail += 1
        ends[0] = tail
    limit = np.int64(-1) if whole else np.int64(most)
    full = stopped = False
    while head < tail and level < depth and not full and not stopped:
        end = ends[level]
        while head < end and not full and not stopped:
            stopped = head & LOOK == 0 and stop[0] != 0
            u = U64(order[U64(head)])
            p, last = indptr[u] + entry, indptr[u + ONE]
            while p < last:
                v = U64(neighbours[U64(p)])
                p += 1
                if seen[v] == 0:
                    seen[v] = 1
                    order[U64(tail)], parent[U64(tail)] = v, u
                    tail += 1
                    if tail == limit:
                        full = True
                        break
            entry = np.int64(0)
            if p < last:
                entry = p - indptr[u]
            else:
                head += 1
        if head == end:
            if tail > end:
                level += 1
                ends[level] = tail
            full = tail >= most
    state[0], state[1], state[2], state[3] = head, entry, tail, level
    if head == tail or level >= depth:
        state[4] = 1
        for i in range(tail):
            seen[U64(order[U64(i)])] = 0


@jit
def components(
    indptr, neighbours, in_indptr, in_neighbours, directed, most, seen, order, ends, state, stop
):
    """List in ``order`` the vertices component after component, each as a search finds them.

    Components come by their first vertices; ``ends[c]`` becomes where one ends. Ends with the
    component in which ``most`` vertices are reached; the next call goes on behind it. ``seen`` is 0
    everywhere before, and again when no vertex is left.

    ``state``, at first 0: the vertex to look at, how many vertices and components are listed, and 1
    when no vertex is left.
    """
    first, tail, number = state[0], state[1], state[2]
    n = seen.size
    stopped = False
    while first < n and tail < most and not stopped:
        stopped = first & LOOK == 0 and stop[0] != 0
        if seen[U64(first)] == 0:
            seen[U64(first)] = 1
            head = tail
            order[U64(tail)] = first
            tail += 1
            while head < tail and not stopped:
                stopped = head & LOOK == 0 and stop[0] != 0
                u = U64(order[U64(head)])
                head += 1
                for direction in range(2 if directed else 1):
                    starts, others = indptr, neighbours
                    if direction == 1:
                        starts, others = in_indptr, in_neighbours
                    for p in range(starts[u], starts[u + ONE]):
                        v = U64(others[U64(p)])
                        if seen[v] == 0:
                            seen[v] = 1
                            order[U64(tail)] = v
                            tail += 1
            ends[number] = tail
            number += 1
        first += 1
    state[0], state[1], state[2] = first, tail, number
    if tail == n:
        state[3] = 1
        for i in range(n):
            seen[i] = 0


@jit
def bidirectional(
    indptr, neighbours, in_indptr, in_neighbours, source, target, predecessor, successor, forward,
    backward, path, stop,
):  # fmt: skip
    """Search from both ends, on the side with the smaller frontier; return how long the path is.

    0: there is none. The frontiers are the ends of the queues ``forward`` and ``backward``.
    ``predecessor``, which leads back to the source, and ``successor``, which leads on to the
    target, are `UNSEEN` everywhere, and again afterwards.
    """
    forward[0], predecessor[source] = source, NOBODY
    backward[0], successor[target] = target, NOBODY
    met = np.int64(source if source == target else -1)
    head = other_head = np.int64(0)
    tail = other_tail = np.int64(1)
    while met < 0 and head < tail and other_head < other_tail and stop[0] == 0:
        if tail - head <= other_tail - other_head:
            end = tail
            while met < 0 and head < end:
                u = U64(forward[U64(head)])
                head += 1
                for p in range(indptr[u], indptr[u + ONE]):
                    v = U64(neighbours[U64(p)])
                    if predecessor[v] == UNSEEN:
                        predecessor[v] = u
                        forward[U64(tail)] = v
                        tail += 1
                    if successor[v] != UNSEEN:
                        met = np.int64(v)
                        break
        else:
            end = other_tail
            while met < 0 and other_head < end:
                u = U64(backward[U64(other_head)])
                other_head += 1
                for p in range(in_indptr[u], in_indptr[u + ONE]):
                    v = U64(in_neighbours[U64(p)])
                    if successor[v] == UNSEEN:
                        successor[v] = u
                        backward[U64(other_tail)] = v
                        other_tail += 1
                    if predecessor[v] != UNSEEN:
                        met = np.int64(v)
                        break
    size, v = np.int64(0), met
    while v >= 0:
        path[size] = v
        size, v = size + 1, np.int64(predecessor[U64(v)])
    for i in range(size // 2):
        path[i], path[size - 1 - i] = path[size - 1 - i], path[i]
    if met >= 0:
        v = np.int64(successor[U64(met)])
        while v >= 0:
            path[size] = v
            size, v = size + 1, np.int64(successor[U64(v)])
    for i in range(tail):
        predecessor[U64(forward[U64(i)])] = UNSEEN
    for i in range(other_tail):
        successor[U64(backward[U64(i)])] = UNSEEN
    return size


@jit
def _comes_before(lengths, numbers, one, other):
    """Compare two entries of a heap, of which no two have one number."""
    if lengths[one] != lengths[other]:
        return lengths[one] < lengths[other]
    return numbers[one] < numbers[other]


@jit
def nearest_first(
    indptr, neighbours, weights, starts, limit, target, most, distance, predecessor, heap_lengths,
    heap_numbers, heap_vertices, touched, order, parent, lengths, stop,
):  # fmt: skip
    """List in ``order`` the vertices as Dijkstra's algorithm settles them, with their ``lengths``.

    Vertices farther than ``limit`` are left out; the search ends with ``target`` (-1: none).
    ``parent``: through whom each has its length. ``distance`` is its type's largest value, and
    ``predecessor`` `UNSEEN` everywhere, and again afterwards. Returns how many vertices were
    settled, or -1 if they are more than ``most``, or the heap has no room for them.
    """
    infinite = distance[U64(starts[0])]
    room, full = heap_lengths.size, False
    number = size = touches = settled = np.int64(0)
    for i in range(starts.size):
        v = np.int64(starts[i])
        distance[U64(v)], predecessor[U64(v)] = 0, NOBODY
        heap_lengths[size], heap_numbers[size], heap_vertices[size] = 0, number, v
        touched[touches] = v
        number, size, touches = number + 1, size + 1, touches + 1
    found = False
    while size > 0 and not found and not full:
        if settled > most or (settled & LOOK == 0 and stop[0] != 0):
            break
        here, u = heap_lengths[0], np.int64(heap_vertices[0])
        size -= 1
        length, last, vertex = heap_lengths[size], heap_numbers[size], heap_vertices[size]
        hole = np.int64(0)
        while True:  # the last entry sinks from the top
            child = 2 * hole + 1
            if child >= size:
                break
            if child + 1 < size and _comes_before(heap_lengths, heap_numbers, child + 1, child):
                child += 1
            if heap_lengths[child] > length or (
                heap_lengths[child] == length and heap_numbers[child] > last
            ):
                break
            heap_lengths[hole], heap_numbers[hole] = heap_lengths[child], heap_numbers[child]
            heap_vertices[hole] = heap_vertices[child]
            hole = child
        heap_lengths[hole], heap_numbers[hole], heap_vertices[hole] = length, last, vertex
        if here != distance[U64(u)]:
            continue  # it was settled by a shorter one
        order[settled], parent[settled], lengths[settled] = u, predecessor[U64(u)], here
        settled += 1
        found = u == target
        if found:
            break
        for p in range(indptr[U64(u)], indptr[U64(u) + ONE]):
            v = np.int64(neighbours[U64(p)])
            there = here + weights[U64(p)]
            if there > limit or there >= distance[U64(v)]:
                continue
            if size == room:
                full = True
                break
            if distance[U64(v)] == infinite:
                touched[touches] = v
                touches += 1
            distance[U64(v)], predecessor[U64(v)] = there, u
            hole = size
            size += 1
            while hole > 0:  # it rises
                above = (hole - 1) >> 1
                if heap_lengths[above] <= there:
                    break
                heap_lengths[hole], heap_numbers[hole] = heap_lengths[above], heap_numbers[above]
                heap_vertices[hole] = heap_vertices[above]
                hole = above
            heap_lengths[hole], heap_numbers[hole], heap_vertices[hole] = there, number, v
            number += 1
    for i in range(touches):
        v = U64(touched[i])
        distance[v], predecessor[v] = infinite, UNSEEN
    return np.int64(-1) if full or settled > most else settled


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
def walk_back(order, parent, place, path):
    """Write the vertices from ``order[place]`` back to where its search began; return how many.

    Who found a vertex stands before it.
    """
    path[0], size, at = order[place], np.int64(1), np.int64(place)
    while parent[at] >= 0:
        before = parent[at]
        while order[at] != before:
            at -= 1
        path[size] = before
        size += 1
    return size
