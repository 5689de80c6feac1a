"""Cores of communities on a CPU core, and the pieces that these fall into.

`graph.subgraph` says what they are, and finds the same. Who has too few partners or too little of
its trade inside goes, and takes itself from those around it; each entry is read when a community
is looked at and when its row goes, not once for every round of leavers. Sums are of integers, so
it does not matter who is first. Pieces are found by union-find.
"""

from __future__ import annotations

import numpy as np

from glp_rapids.graph.connected import root
from glp_rapids.jit.cache import kept

jit = kept(error_model="numpy", allocates=True)


@jit
def _add_up(indptr, indices, weights, community, partners, trade, stop):
    """Count every member's partners in its community, and its trade with them."""
    weighted = weights.size > 0
    for v in range(community.size):
        if stop[0] != 0:
            return
        mine, number, inside = community[v], 0, np.int64(0)
        if mine >= 0:
            for entry in range(indptr[v], indptr[v + 1]):
                u = indices[entry]
                if u != v and community[u] == mine:
                    number += 1
                    inside += np.int64(weights[entry]) if weighted else 1
        partners[v], trade[v] = number, inside


@jit
def _cut(
    indptr, indices, weights, least_partners, least_trade, community, partners, trade, queue,
    left, stop,
):  # fmt: skip
    """Drop the weak until none is; ``queue`` and ``left``: who went, and from which community."""
    weighted, end = weights.size > 0, 0
    for v in range(community.size):
        if community[v] >= 0 and (
            partners[v] < least_partners or np.float64(trade[v]) < least_trade[v]
        ):
            queue[end], left[end] = v, community[v]
            end += 1
    for place in range(end):
        community[queue[place]] = -1
    place = 0
    while place < end and stop[0] == 0:
        v, mine = queue[place], left[place]
        place += 1
        for entry in range(indptr[v], indptr[v + 1]):
            u = indices[entry]
            if u == v or community[u] != mine:
                continue
            partners[u] -= 1
            trade[u] -= np.int64(weights[entry]) if weighted else 1
            if partners[u] < least_partners or np.float64(trade[u]) < least_trade[u]:
                queue[end], left[end], community[u] = u, mine, -1
                end += 1


@jit
def _fall_apart(indptr, indices, agreed, community, parent, stop):
    """Name members by the smallest that they hang together with; tell whether any had another."""
    for v in range(community.size):
        parent[v] = v
    for v in range(community.size):
        if stop[0] != 0:
            return False
        if community[v] < 0:
            continue
        for entry in range(indptr[v], indptr[v + 1]):
            u = indices[entry]
            if u < v and agreed[entry] and community[u] == community[v]:
                one, other = root(parent, v), root(parent, np.int64(u))
                parent[max(one, other)] = min(one, other)
    moved = False
    for v in range(community.size):
        if community[v] >= 0:
            smallest = root(parent, v)
            moved |= smallest != community[v]
            community[v] = smallest
    return moved


@jit
def cut_cores(
    indptr, indices, weights, least_partners, least_trade, agreed, community, partners, trade, stop
):
    """Cut communities down to cores.

    ``weights`` of no elements: each entry weighs one; else integers. ``least_trade``: what each
    vertex must keep inside. ``agreed``: marks of the entries that pieces hang together by; of no
    elements: communities stay in one piece, else they are looked for until each is a core.
    ``community``: of every vertex, -1 for none. ``partners``, ``trade``: of its members, what they
    have inside in the end. Ends early once ``stop[0]`` is not 0, and what is there then means
    nothing.
    """
    size = community.size
    queue, left = np.empty(size, np.int64), np.empty(size, np.int64)
    again = True
    while again and stop[0] == 0:
        _add_up(indptr, indices, weights, community, partners, trade, stop)
        _cut(
            indptr, indices, weights, least_partners, least_trade, community, partners, trade,
            queue, left, stop,
        )  # fmt: skip
        again = agreed.size > 0 and _fall_apart(indptr, indices, agreed, community, queue, stop)
