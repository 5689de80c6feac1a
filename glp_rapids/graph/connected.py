"""Communities cut into connected pieces: union-find over the edges inside (Tarjan, 1975)."""

from __future__ import annotations

import numpy as np

from glp_rapids.graph.rows import CSR, ENTRIES_AT_ONCE, FEWEST_AT_ONCE, Rows
from glp_rapids.jit.cache import kept
from glp_rapids.jit.interrupts import parts_of_rows

U64 = np.uint64


def connected_parts(stored: Rows, labels: np.ndarray) -> np.ndarray:
    """Name every vertex by the smallest vertex it is connected to inside its community.

    Parameters
    ----------
    stored : Rows
        On the host, read a few at a time. Where there are weights, entries of 0 join nothing; in
        which direction an entry goes does not matter, nor the order of those of a row.
    labels : integer array
        A community a vertex.

    Returns
    -------
    int64 array
    """
    labels = stored.by_place(labels)
    parent = np.arange(labels.size)
    # so that what is decoded takes less memory than the vertices do
    few = min(max(FEWEST_AT_ONCE, labels.size // 8), ENTRIES_AT_ONCE)
    for first, _, rows in stored.chunks(few):
        _join_rows(first, rows, labels, parent)
    name_roots(parent)
    if stored.ascends:  # places are vertices
        return parent
    vertices = stored.by_place(np.arange(labels.size))
    smallest = np.full(labels.size, labels.size)
    np.minimum.at(smallest, parent, vertices)
    return stored.by_vertex(smallest[parent])


def _join_rows(place: int, rows: CSR, labels: np.ndarray, parent: np.ndarray) -> None:
    weights = np.empty(0, np.int64) if rows.weights is None else rows.weights
    for first, last in parts_of_rows(rows.indptr):
        _join(first, last, place, rows.indptr, rows.indices, weights, labels, parent)


@kept
def root(parent, v):
    """Return the root of a vertex, and halve the way there."""
    while parent[v] != v:
        parent[v] = parent[parent[v]]
        v = parent[v]
    return v


@kept
def join(parent, v, u):
    """Join two vertices: the smallest one of a piece is its root, which is returned."""
    one, other = root(parent, v), root(parent, u)
    smaller = min(one, other)
    parent[max(one, other)] = smaller
    return smaller


@kept
def _join(first, last, place, indptr, indices, weights, labels, parent):
    for row in range(first, last):
        v = U64(place + row)
        label, own = labels[v], root(parent, place + row)
        parent[v] = own
        for j in range(indptr[U64(row)], indptr[U64(row + 1)]):
            u = U64(indices[U64(j)])
            # most neighbours have the root for a parent already, and no other way to go
            if labels[u] != label or parent[u] == own:
                continue
            if weights.size > 0 and weights[U64(j)] <= 0:
                continue
            own = join(parent, own, np.int64(u))


@kept
def join_pairs(first, others, parent):
    """Join vertices that follow one another, each with another one."""
    for place in range(others.size):
        join(parent, first + place, others[place])


@kept
def name_roots(parent):
    """Name every vertex by its root."""
    for v in range(parent.size):
        parent[v] = root(parent, v)
