"""Ids of before and of now, which both ascend: where each is, and what goes with it."""

from __future__ import annotations

import numpy as np

from glp_rapids.jit.cache import kept
from glp_rapids.jit.cpu import compiled
from glp_rapids.jit.parallel import ParallelKernel, together

u64 = np.uint64


@kept
def places_of(before, now, place):
    """Fill in ``place``, of every id of before: where it is now, -1 if it has left."""
    j = 0
    for i in range(before.size):
        while j < now.size and now[j] < before[i]:
            j += 1
        place[i] = j if j < now.size and now[j] == before[i] else -1


@kept
def interleave(before, old_value, new_value, to_union, to_old, value, rank):
    """Put new ids among the old; all arrays but the first three are filled in.

    ``before``: of every new id, how many old ones are less; ascends. ``to_union``: of every old id,
    its index among all; ``to_old``: the reverse, -1 for new ones. ``value``: of every id, its own;
    ``rank``: of every value of an id, the index of that among all; what has none stays.
    """
    old = to_union.size
    j = 0
    for i in range(old + 1):
        while j < before.size and before[j] == i:
            of = new_value[u64(j)]
            to_old[u64(i + j)], value[u64(i + j)], rank[u64(of)] = -1, of, i + j
            j += 1
        if i < old:
            of = old_value[u64(i)]
            to_union[u64(i)], to_old[u64(i + j)], value[u64(i + j)] = i + j, i, of
            rank[u64(of)] = i + j


@kept
def insert(before, old_value, new_value, left, value):
    """Fill in the values of those of all ids that are left; the rest is as in `interleave`."""
    j = 0
    for i in range(left.size):
        rank = left[u64(i)]
        while j < before.size and before[u64(j)] + j < rank:
            j += 1
        if j < before.size and before[u64(j)] + j == rank:
            value[u64(i)] = new_value[u64(j)]
        else:
            value[u64(i)] = old_value[u64(rank - j)]


@compiled()
def _move_some(thread, threads, values, place, after):
    size = place.size
    for v in range(size * thread // threads, size * (thread + 1) // threads):
        to = place[u64(v)]
        if to >= 0:
            after[u64(to)] = values[u64(v)]


@ParallelKernel
def move(team, values, place, after):
    """Copy each value to its place in ``after``, if any; no two have the same."""
    together(team, _move_some, (team.threads, values, place, after))
