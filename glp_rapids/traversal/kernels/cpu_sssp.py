"""Shortest paths on one CPU core: near and far vertices, as label-correcting work.

Davidson, Baxter, Garland and Owens, "Work-efficient parallel GPU methods for single-source shortest
paths" (IPDPS 2014), with two piles. Vertices up to a limit are *near* and are worked on first in,
first out, as often as their distance falls; others wait in the *far* pile, each once. When no near
one is left the limit goes up. How far it goes at a time is corrected on the way: twice as far when
sorting the pile cost more than the work it made, half as far when vertices were worked on again
and again. Distances are the least over all paths of the sum from the source on, rounded edge by
edge; that does not depend on the order of work.

Where every sum fits 32 bits a vertex is one 64-bit word, ``distance << 32 | predecessor``, as in
breadth-first search: one comparison finds the least distance and the smallest predecessor, and one
cache line is read and written in the place of two. Beside the same weights as float64 that took a
third off the time on a road network and an eighth on a Kronecker graph.

What may take long returns early once ``stop[0]`` is not 0, and what it returns then means nothing.
"""

from __future__ import annotations

import numpy as np

from glp_rapids.jit.cache import kept
from glp_rapids.jit.prefetch import prefetch

U64 = np.uint64
ONE = np.uint64(1)
HIGH, LOW = np.uint64(32), np.uint64(0xFFFFFFFF)
NEAR, WAITING = np.uint8(1), np.uint8(2)
LATER = 8  # vertices: how far ahead of their turn rows are asked for
LOOK = 4095  # vertices between two looks at the flag, less one
FAR = np.uint64(0xFFFFFFFF_FFFFFFFF)  # the word of a vertex without a distance
MOST = (1 << 32) - 2  # the largest sum that half a word can hold

jit = kept(error_model="numpy", allocates=True)


@jit
def near_far(
    indptr, indices, weights, starts, step, least_step, cutoff, targets, distance, predecessor,
    low, stop,
):  # fmt: skip
    """Fill in ``distance``, which begins as its largest value everywhere.

    The limit goes up by ``step`` at first, never by less than ``least_step``. Paths longer than
    ``cutoff`` do not count. With ``targets`` the search ends once these have their distances; that
    of a vertex farther than all of them may then be too large. ``predecessor`` (of no elements: not
    wanted) holds the largest value of its type at first, and then the smallest neighbour that is
    nearer and on a shortest path; it stays where no last edge adds to the distance.

    Either ``low`` is None and distances are of the weights' type, or it is `LOW`, ``predecessor``
    is None, and distances are words, as are ``step``, ``least_step`` and ``cutoff``, whose low half
    is all ones; then integer weights add up to `MOST` at most. (An argument that is None is known
    when this is compiled, and what asks for it left out.)

    Returns how often the limit went up.
    """
    vertices = distance.size
    place = np.zeros(vertices, np.uint8)
    near, far = np.empty(vertices, indices.dtype), np.empty(vertices, indices.dtype)
    # the step, the limit, the lowest of the far pile: of one type, whatever they are made of
    pace = np.zeros(3, distance.dtype)
    pace[0], pace[2] = step, cutoff
    if low is not None:
        pace[1] = low
    step, limit, lowest = pace[0], pace[1], pace[2]
    nobody = ~indices.dtype.type(0)
    head = size = waiting = np.int64(0)
    for i in range(starts.size):
        v = U64(starts[i])
        distance[v] = limit
        near[U64(size)] = v
        place[v] = NEAR
        size += 1
    worked = again = entries = rounds = settled = np.int64(0)
    while True:
        while size:
            u = U64(near[U64(head)])
            if size > 2 * LATER:
                later = head + 2 * LATER
                if later >= vertices:
                    later -= vertices
                prefetch(indptr, U64(near[U64(later)]))
                later = head + LATER
                if later >= vertices:
                    later -= vertices
                row = U64(indptr[U64(near[U64(later)])])
                prefetch(indices, row)
                prefetch(weights, row)
            head += 1
            if head == vertices:
                head = 0
            size -= 1
            place[u] &= WAITING
            worked += 1
            if worked & LOOK == 0 and stop[0] != 0:
                return rounds
            here = distance[u]
            if low is not None:
                here = here & ~low | u
            entries += indptr[u + ONE] - indptr[u]
            for p in range(indptr[u], indptr[u + ONE]):
                v = U64(indices[U64(p)])
                known = distance[v]
                if low is not None:
                    weight = U64(weights[U64(p)]) << HIGH
                    through = here + weight
                    if through >= known:
                        continue
                    if weight == 0:
                        through |= low
                    if through >= known or through > cutoff:
                        continue
                    distance[v] = through
                    if through | low == known | low:
                        continue
                if predecessor is not None:
                    through = here + weights[U64(p)]
                    if through == known and predecessor.size and through > here:
                        if u < predecessor[v]:
                            predecessor[v] = u
                        continue
                    if through >= known or through > cutoff:
                        continue
                    distance[v] = through
                    if predecessor.size:
                        if through > here:
                            predecessor[v] = u
                        else:
                            predecessor[v] = nobody
                at = place[v]
                if through <= limit:
                    if at & NEAR == 0:
                        if known <= limit:
                            again += 1
                        behind = head + size
                        if behind >= vertices:
                            behind -= vertices
                        near[U64(behind)] = v
                        size += 1
                        place[v] = at | NEAR
                else:
                    lowest = min(lowest, through)
                    if at == 0:
                        far[U64(waiting)] = v
                        waiting += 1
                        place[v] = WAITING
        while settled < targets.size and distance[U64(targets[settled])] <= limit:
            settled += 1
        if waiting == 0 or (targets.size and settled == targets.size):
            return rounds
        if stop[0] != 0:
            return rounds
        if rounds and worked and waiting > entries:
            if step < cutoff - step:
                pace[0] += step
        elif again > worked // 2 and step > least_step:
            pace[0] /= 2
        step = pace[0]
        worked = again = entries = np.int64(0)
        rounds += 1
        before = limit
        if lowest < cutoff - step:
            limit = lowest + step
        else:
            limit = cutoff
        if low is not None:
            limit |= low
        left = np.int64(0)
        lowest = cutoff
        for i in range(waiting):
            v = U64(far[U64(i)])
            if i + 2 * LATER < waiting:
                prefetch(distance, U64(far[U64(i + 2 * LATER)]))
            here = distance[v]
            if here <= before:
                place[v] = 0  # it has been near in the meantime
            elif here <= limit:
                behind = head + size
                if behind >= vertices:
                    behind -= vertices
                near[U64(behind)] = v
                size += 1
                place[v] = NEAR
            else:
                far[U64(left)] = v
                left += 1
                lowest = min(lowest, here)
        waiting = left


@jit
def find_nearer(indptr, indices, weights, distance, unreached, predecessor, stop):
    """Find, of the neighbours on a shortest path that are nearer than a vertex, the smallest."""
    for v in range(distance.size):
        u = U64(v)
        here = distance[u]
        if here == unreached:
            continue
        if v & LOOK == 0 and stop[0] != 0:
            return
        for p in range(indptr[u], indptr[u + ONE]):
            other = U64(indices[U64(p)])
            there = distance[other]
            if here < there and here + weights[U64(p)] == there and u < predecessor[other]:
                predecessor[other] = u


@jit
def join_plateaus(indptr, indices, weights, distance, unreached, predecessor, nobody, starts, stop):
    """Find predecessors where no neighbour is nearer: over the fewest edges that add nothing.

    Of several such neighbours the smallest. Edges add nothing if they weigh 0, or so little that
    the sum is rounded to what it was.
    """
    vertices = distance.size
    asks = np.zeros(vertices, np.uint8)
    open_ends = 0
    for v in range(vertices):
        if distance[v] != unreached and predecessor[v] == nobody:
            asks[v] = 1
            open_ends += 1
    for i in range(starts.size):
        asks[U64(starts[i])] = 0
        open_ends -= 1
    if open_ends == 0:
        return
    queue, found_in = np.empty(open_ends, indices.dtype), np.zeros(vertices, np.uint32)
    head = tail = np.int64(0)
    for v in range(vertices):  # ascending: whoever comes first is the smallest
        u = U64(v)
        if asks[u] or distance[u] == unreached:
            continue
        if v & LOOK == 0 and stop[0] != 0:
            return
        for p in range(indptr[u], indptr[u + ONE]):
            other = U64(indices[U64(p)])
            if not asks[other] or predecessor[other] != nobody:
                continue
            if distance[u] + weights[U64(p)] == distance[other]:
                predecessor[other] = u
                found_in[other] = 1
                queue[U64(tail)] = other
                tail += 1
    hop = 1
    while head < tail and stop[0] == 0:
        end = tail
        hop += 1
        while head < end:
            u = U64(queue[U64(head)])
            head += 1
            for p in range(indptr[u], indptr[u + ONE]):
                other = U64(indices[U64(p)])
                if asks[other] and distance[u] + weights[U64(p)] == distance[other]:
                    if predecessor[other] == nobody:
                        predecessor[other] = u
                        found_in[other] = hop
                        queue[U64(tail)] = other
                        tail += 1
                    elif found_in[other] == hop and u < predecessor[other]:
                        predecessor[other] = u
