"""Communities cut into connected pieces: union-find over the edges inside (Tarjan, 1975)."""

from __future__ import annotations

from typing import Any

import numpy as np

from glp_rapids.jit.cache import kept
from glp_rapids.jit.interrupts import parts_of_rows


def connected_parts(rows: Any, labels: np.ndarray) -> np.ndarray:
    """Name every vertex by the smallest vertex it is connected to inside its community.

    Parameters
    ----------
    rows
        Has ``indptr``, ``indices`` and ``weights``, on the host. Where there are weights, entries
        of 0 join nothing; in which direction an entry goes does not matter.
    labels : integer array
        A community a vertex.

    Returns
    -------
    int64 array
    """
    weights = rows.weights
    if weights is None or not weights.size:
        weights = np.empty(0, np.int64)
    parent = np.arange(labels.size)
    for first, last in parts_of_rows(rows.indptr):
        _join(first, last, rows.indptr, rows.indices, weights, labels, parent)
    _name(parent)
    return parent


@kept
def _root(parent, v):
    """Return the root of a vertex, and halve the way there."""
    while parent[v] != v:
        parent[v] = parent[parent[v]]
        v = parent[v]
    return v


@kept
def _join(first, last, indptr, indices, weights, labels, parent):
    for v in range(first, last):
        for j in range(indptr[v], indptr[v + 1]):
            u = indices[j]
            if labels[u] != labels[v] or (weights.size > 0 and not weights[j] > 0):
                continue
            one, other = _root(parent, v), _root(parent, u)
            if one < other:  # the smallest vertex is the root
                parent[other] = one
            else:
                parent[one] = other


@kept
def _name(parent):
    for v in range(parent.size):
        parent[v] = _root(parent, v)
