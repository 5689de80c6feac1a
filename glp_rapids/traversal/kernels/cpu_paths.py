"""Paths walked back from their ends over the places of predecessors."""

from __future__ import annotations

import numpy as np

from glp_rapids.jit.cache import kept

jit = kept(error_model="numpy", allocates=True)


@jit
def path_sizes(before, ends):
    """Count the vertices on the path to each end; -1 if it leads in a circle."""
    sizes = np.empty(ends.size, np.int64)
    known = np.zeros(before.size, np.int64)  # the sizes of paths to places; 0: not seen so far
    for i in range(ends.size):
        place, size = ends[i], np.int64(0)
        while place >= 0 and known[place] == 0:
            known[place] = -1  # it stays so in a circle, and on the way into one
            place = before[place]
            size += 1
        if place >= 0:
            size = size + known[place] if known[place] > 0 else np.int64(-1)
        sizes[i] = size
        place = ends[i]
        while size > 0 and place >= 0 and known[place] < 0:
            known[place] = size
            place = before[place]
            size -= 1
    return sizes


@jit
def walk_back(before, ends, offsets, places):
    """Write the places on the path to each end to ``places``, the start first."""
    for i in range(ends.size):
        place = ends[i]
        for j in range(offsets[i + 1] - 1, offsets[i] - 1, -1):
            places[j] = place
            place = before[place]
