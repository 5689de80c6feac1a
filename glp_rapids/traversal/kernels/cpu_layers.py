"""Edges layer by layer: how they are stored, relaxations in that order, and path counts."""

from __future__ import annotations

import numpy as np

from glp_rapids.jit.cache import kept

U64 = np.uint64

jit = kept(error_model="numpy", allocates=True)


@jit
def copy_rows(indptr, order, first, last, values, copied):
    """Copy the rows of ``order[first:last]`` one after another."""
    place = np.int64(0)
    for row in range(first, last):
        u = U64(order[row])
        for p in range(indptr[u], indptr[u + U64(1)]):
            copied[U64(place)] = values[U64(p)]
            place += 1


@jit
def relax_rows(
    order, offsets, first, last, base, indices, weights, waits, distance, cutoff, stop
):  # fmt: skip
    """Relax those of the rows from ``first`` to ``last`` whose vertices wait for that.

    A vertex waits once its distance has fallen, until its row is relaxed. ``base`` is taken off the
    offsets to find a row's entries. Returns by how many vertices more there wait.
    """
    more = np.int64(0)
    for row in range(first, last):
        u = U64(order[row])
        if waits[u] == 0:
            continue
        if stop[0] != 0:
            break
        waits[u] = 0
        more -= 1
        here = distance[u]
        for p in range(offsets[row] - base, offsets[row + 1] - base):
            v = U64(indices[U64(p)])
            through = here + weights[U64(p)]
            if through < distance[v] and through <= cutoff:
                distance[v] = through
                more += 1 - waits[v]
                waits[v] = 1
    return more


@jit
def relax_all(order, offsets, indices, weights, distance, unreached, cutoff, stop):
    """Relax the edges of all layers, of every kind, again and again until nothing changes.

    Returns how often.
    """
    waits = (distance != unreached).astype(np.uint8)
    sweeps, waiting = 0, np.int64(waits.sum())
    while waiting and stop[0] == 0:
        sweeps += 1
        waiting += relax_rows(
            order, offsets, 0, order.size, 0, indices, weights, waits, distance, cutoff, stop
        )
    return sweeps


@jit
def count_paths(order, offsets, indices, level, paths, stop):
    """Count shortest paths: what each vertex has goes along its edges into the next layer."""
    for row in range(order.size):
        if stop[0] != 0:
            return
        u = U64(order[row])
        for p in range(offsets[row], offsets[row + 1]):
            v = U64(indices[U64(p)])
            if level[v] == level[u] + 1:
                paths[v] += paths[u]


@jit
def sum_dependencies(order, offsets, indices, level, paths, dependency, stop):
    """Add up what shares of shortest paths lead through a vertex, from the last layer back.

    Sums go over rows in their order. See Brandes in `cpu_brandes`.
    """
    for row in range(order.size - 1, -1, -1):
        if stop[0] != 0:
            return
        u = U64(order[row])
        total = 0.0
        for p in range(offsets[row], offsets[row + 1]):
            v = U64(indices[U64(p)])
            if level[v] == level[u] + 1:
                total += paths[u] / paths[v] * (1.0 + dependency[v])
        dependency[u] = total
