"""Residuals of the equation of scores on CPU cores: read row by row, or pushed to neighbours.

What a vertex hears from a neighbour is one integer, a function of the neighbour's number
and of their edge alone; a residual is a sum of such integers. So it is the same whether all of it
is read (`residuals`, on all cores) or only what has changed is added (`push`), in any order.
Pushes go to where the residual is largest first, as Gauss and Southwell relaxed systems by hand;
by rounds, as in Berkhin, Bookmark-coloring algorithm for personalized PageRank computing (Internet
Mathematics 3, 2006).

A kernel returns early once ``stop[0]`` is not 0, and what it returns then means nothing.
"""

from __future__ import annotations

import numpy as np

from glp_rapids.jit.cache import kept
from glp_rapids.jit.cpu import compiled
from glp_rapids.jit.parallel import ParallelKernel, together

U64 = np.uint64
ONE = np.uint64(1)
CHUNK = 256  # rows that a thread takes at a time
LISTED = np.uint8(1)

jit = kept(error_model="numpy")
part = compiled(error_model="numpy", _nrt=False)


@part
def _residuals_some(thread, threads, indptr, indices, weights, total, said, numbers, found, stop):
    weighted = weights.size > 0
    for chunk in range(thread, (total.size + CHUNK - 1) // CHUNK, threads):
        if stop[0] != 0:
            return
        for row in range(chunk * CHUNK, min(total.size, (chunk + 1) * CHUNK)):
            v = U64(row)
            heard = np.int64(0)
            if total[v] < np.inf:
                share = 1.0 / total[v]
                for p in range(indptr[v], indptr[v + ONE]):
                    u = U64(indices[U64(p)])
                    if u == v:
                        continue
                    if weighted:
                        share = np.float64(weights[U64(p)]) / total[v]
                    heard += np.int64(share * said[u])
                heard -= numbers[v]
            found[v] = heard


@ParallelKernel
def residuals(team, indptr, indices, weights, total, said, numbers, found, stop):
    """Fill in ``found``, the residual of every vertex.

    ``weights`` of no elements: each entry weighs one. ``total``: what the entries of a row weigh
    without its self-loop; infinite for vertices without a residual, on whom nothing is pushed
    then. ``said``: what all neighbours hear of a vertex, the damping times its number.
    """
    together(team, _residuals_some, (
        team.threads, indptr, indices, weights, total, said, numbers, found, stop,
    ))  # fmt: skip


@jit
def push(
    indptr, indices, weights, total, damping, numbers, residual, allowed, entries, rounds, stop
):  # fmt: skip
    """Push residuals to the neighbours, round after round, until none is above ``allowed``.

    A round is of the vertices whose residual is above a quarter of the largest one, too. It ends
    before a round whose rows have more than ``entries`` entries, or after so many rounds.

    Returns how many rounds were made, how many entries pushed, and whether a round was too large.
    """
    weighted = weights.size > 0
    vertices = numbers.size
    listed = np.zeros(vertices, np.uint8)
    active, frontier = np.empty(vertices, np.int64), np.empty(vertices, np.int64)
    before = np.empty(vertices, np.int64)
    size = made = pushed = np.int64(0)
    for v in range(vertices):
        if abs(residual[v]) > allowed:
            listed[v] = LISTED
            active[size] = v
            size += 1
    while stop[0] == 0:
        left = largest = np.int64(0)
        for i in range(size):
            v = active[i]
            if abs(residual[v]) > allowed:
                largest = max(largest, abs(residual[v]))
                active[left] = v
                left += 1
            else:
                listed[v] = 0
        size = left
        if size == 0 or made == rounds:
            break
        level = max(allowed, largest >> 2)
        count = work = np.int64(0)
        for i in range(size):
            v = active[i]
            if abs(residual[v]) > level:
                frontier[count] = v
                count += 1
                work += indptr[v + 1] - indptr[v]
        if work > entries:
            return made, pushed, True
        for i in range(count):
            v = frontier[i]
            before[i] = numbers[v]
            numbers[v] += residual[v]
            residual[v] = 0
        for i in range(count):
            u = U64(frontier[i])
            old, new = damping * np.float64(before[i]), damping * np.float64(numbers[u])
            for p in range(indptr[u], indptr[u + ONE]):
                v = U64(indices[U64(p)])
                if v == u:
                    continue
                weight = np.float64(weights[U64(p)]) if weighted else 1.0
                share = weight / total[v]
                after = residual[v] + (np.int64(share * new) - np.int64(share * old))
                residual[v] = after
                if abs(after) > allowed and listed[v] == 0:
                    listed[v] = LISTED
                    active[size] = np.int64(v)
                    size += 1
        made += 1
        pushed += work
    return made, pushed, False
