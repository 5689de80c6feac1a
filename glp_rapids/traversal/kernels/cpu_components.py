"""Components by union-find on one CPU core: the smallest vertex of a set is its root."""

from __future__ import annotations

import numpy as np

from glp_rapids.jit.cache import kept

U64 = np.uint64
ONE = np.uint64(1)
LOOK = 4095  # rows between two looks at the flag, less one

jit = kept(error_model="numpy")


@jit
def _root(parent, node):
    """Find the root of a node, and halve the way there."""
    while parent[node] != node:
        above = U64(parent[node])
        parent[node] = parent[above]
        node = U64(parent[node])
    return node


@jit
def components(indptr, indices, parent, label, stop):
    """Number the components by their smallest vertices; return how many there are.

    ``parent`` is room to work in. Stops early once ``stop[0]`` is not 0.
    """
    vertices = indptr.size - 1
    for v in range(vertices):
        parent[v] = v
    for row in range(vertices):
        if row & LOOK == 0 and stop[0] != 0:
            return 0
        root = _root(parent, U64(row))
        for p in range(indptr[row], indptr[row + 1]):
            other = U64(indices[U64(p)])
            if parent[other] == root:
                continue
            other = _root(parent, other)
            if other < root:
                parent[root] = other
                root = other
            else:
                parent[other] = root
    found = 0
    for v in range(vertices):
        root = _root(parent, U64(v))
        if root == U64(v):
            label[v] = found
            found += 1
        else:
            label[v] = label[root]
    return found
