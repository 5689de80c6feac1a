"""What one vertex adds to the betweenness of all others, on one CPU core.

Brandes, "A faster algorithm for betweenness centrality", Journal of Mathematical Sociology 25
(2001). Path counts and dependencies are sums over a row in its order, never over a queue: they do
not depend on the order in which a search found the vertices.
"""

from __future__ import annotations

import numpy as np

from glp_rapids.jit.cache import kept

U64 = np.uint64
ONE = np.uint64(1)

jit = kept(error_model="numpy")


@jit
def dependencies(
    indptr, indices, in_indptr, in_indices, source, level, queue, paths, dependency, stop
):  # fmt: skip
    """Fill in ``dependency`` of the vertices that a source reaches; list them in ``queue``.

    ``level`` is -1 everywhere at first, and again at the end. ``paths`` may hold anything. Returns
    how many vertices were reached, or -1 if paths are too many for float64. Stops early once
    ``stop[0]`` is not 0.
    """
    queue[0], level[U64(source)] = source, 0
    head, tail = np.int64(0), np.int64(1)
    while head < tail and stop[0] == 0:
        u = U64(queue[U64(head)])
        head += 1
        for p in range(indptr[u], indptr[u + ONE]):
            v = U64(indices[U64(p)])
            if level[v] < 0:
                level[v] = level[u] + 1
                queue[U64(tail)] = v
                tail += 1
    most = 1.0
    paths[U64(source)] = 1.0
    for i in range(1, tail):
        v = U64(queue[U64(i)])
        total = 0.0
        for p in range(in_indptr[v], in_indptr[v + ONE]):
            u = U64(in_indices[U64(p)])
            if level[u] >= 0 and level[u] + 1 == level[v]:
                total += paths[u]
        paths[v] = total
        most = max(most, total)
    for i in range(tail - 1, -1, -1):
        u = U64(queue[U64(i)])
        total = 0.0
        for p in range(indptr[u], indptr[u + ONE]):
            v = U64(indices[U64(p)])
            if level[v] == level[u] + 1:
                total += paths[u] / paths[v] * (1.0 + dependency[v])
        dependency[u] = total
    for i in range(tail):
        level[U64(queue[U64(i)])] = -1
    return tail if most < np.inf else np.int64(-1)
