"""Work on edges that are stored layer by layer: relaxations in that order, and path counts."""

from __future__ import annotations

import numpy as np

from glp_rapids.jit.cache import kept

U64 = np.uint64

jit = kept(error_model="numpy")


@jit
def relax_all(order, offsets, indices, weights, distance, unreached, cutoff, stop):
    """Relax the edges of all layers, of every kind, again and again until nothing changes.

    Returns how often, the last time included.
    """
    sweeps, changed = 0, True
    while changed and stop[0] == 0:
        sweeps += 1
        changed = False
        for row in range(order.size):
            if stop[0] != 0:
                break
            here = distance[U64(order[row])]
            if here == unreached:
                continue
            for p in range(offsets[row], offsets[row + 1]):
                v = U64(indices[U64(p)])
                through = here + weights[U64(p)]
                if through < distance[v] and through <= cutoff:
                    distance[v] = through
                    changed = True
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
