"""The first labels of a warm run, where ids of the earlier result ascend as those of a graph do."""

from __future__ import annotations

import numpy as np

from glp_rapids.jit.cache import kept
from glp_rapids.jit.interrupts import parts


def labels_of_ascending(
    known: np.ndarray, asked: np.ndarray, communities: np.ndarray, labels: np.ndarray
) -> np.ndarray:
    """Write the first label of every vertex; return the vertices that are not among ``asked``.

    A community is labelled by the smallest index among its members, who is not asked for by itself.
    ``known`` and ``asked`` are ids of one type, both ascending without duplicates; communities are
    numbers from 0 on, few of them unused.
    """
    smallest = np.full(int(communities.max(initial=-1)) + 1, -1, labels.dtype)
    new, cursor = np.empty(known.size, labels.dtype), np.zeros(2, np.int64)
    for first, last in parts(known.size):
        _label(first, last, known, asked, communities, smallest, labels, new, cursor)
    return new[: cursor[1]].copy()


@kept(error_model="numpy")
def _label(first, last, known, asked, communities, smallest, labels, new, cursor):
    # unsigned indices spare a test of each for being negative
    size = np.uint64(asked.size)
    place, missing = np.uint64(cursor[0]), np.uint64(cursor[1])
    for v in range(np.uint64(first), np.uint64(last)):
        identity = known[v]
        while place < size and asked[place] < identity:
            place += np.uint64(1)
        if place < size and asked[place] == identity:
            community = np.uint64(communities[place])
            label = smallest[community]
            if label < 0:
                label = labels.dtype.type(v)
                smallest[community] = label
            labels[v] = label
            place += np.uint64(1)
        else:
            labels[v] = v
            new[missing] = v
            missing += np.uint64(1)
    cursor[0], cursor[1] = place, missing
