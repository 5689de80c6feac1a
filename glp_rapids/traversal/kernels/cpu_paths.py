"""Paths walked back from their ends over the places of predecessors."""

from __future__ import annotations

import numpy as np

from glp_rapids.jit.cache import kept

jit = kept(error_model="numpy")


@jit
def path_sizes(before, ends):
    """Count the vertices on the path to each end; -1 if it does not end within all there are."""
    sizes = np.empty(ends.size, np.int64)
    for i in range(ends.size):
        place, size = ends[i], np.int64(0)
        while place >= 0 and size <= before.size:
            place = before[place]
            size += 1
        sizes[i] = size if place < 0 else -1
    return sizes


@jit
def walk_back(before, ends, offsets, places):
    """Write the places on the path to each end to ``places``, the start first."""
    for i in range(ends.size):
        place = ends[i]
        for j in range(offsets[i + 1] - 1, offsets[i] - 1, -1):
            places[j] = place
            place = before[place]
