"""Breadth-first searches from up to 64 vertices at once: a bit for each in one word a vertex.

Then, Kaufmann, Chirigati, Hoang-Vu, Pham, Kemper, Neumann and Vo, "The more the merrier: efficient
multi-source graph traversal" (VLDB 2014). An edge is read once for all searches whose frontiers
meet there. How many vertices each search found at a level is counted without looking at single
bits: words are added into planes, of which plane i holds bit i of 64 counters.

What may take long returns early once ``stop[0]`` is not 0, and what it returns then means nothing.
"""

from __future__ import annotations

import numpy as np

from glp_rapids.jit.cache import kept
from glp_rapids.traversal.kernels.cpu_bfs import ONE, U64, trailing_zeros

jit = kept(error_model="numpy", allocates=True)
PLANES = 33  # of counters up to the number of vertices


@jit
def search_together(indptr, indices, starts, depth, trial, distance, summary, stop):
    """Search from up to 64 different ``starts`` to a depth; tell whether that was done.

    It is given up after ``trial[0]`` levels if fewer than ``trial[1]`` searches on average were at
    a vertex at the same time: on a road network each would be faster alone.

    ``distance`` has a row a start, filled with what stands for unreached; or no rows: not wanted.
    ``summary`` has a row a start, zeros at first: how many vertices it reached, itself included,
    the sum of their distances, and the largest.
    """
    vertices = indptr.size - 1
    wanted = distance.shape[0] > 0
    seen, here, ahead = (
        np.zeros(vertices, np.uint64), np.zeros(vertices, np.uint64), np.zeros(vertices, np.uint64),
    )  # fmt: skip
    frontier, following = np.empty(vertices, np.uint32), np.empty(vertices, np.uint32)
    planes = np.zeros(PLANES, np.uint64)
    for search in range(starts.size):
        v = U64(starts[search])
        ahead[v] = ONE << U64(search)
        following[search] = v
    size, level = np.int64(starts.size), np.int64(0)
    active = found = np.int64(0)
    while size and stop[0] == 0:
        for i in range(size):
            v = U64(following[U64(i)])
            new = ahead[v]
            seen[v] |= new
            here[v] = new
            ahead[v] = U64(0)
            plane = 0
            carry = new
            while carry:
                both = planes[plane] & carry
                planes[plane] ^= carry
                carry = both
                plane += 1
            if wanted:
                while new:
                    distance[U64(trailing_zeros(new)), v] = level
                    new &= new - ONE
        active += size
        for search in range(starts.size):
            count = np.int64(0)
            for plane in range(PLANES):
                count += np.int64((planes[plane] >> U64(search)) & ONE) << plane
            if count:
                found += count
                summary[search, 0] += count
                summary[search, 1] += count * level
                summary[search, 2] = level
        planes[:] = U64(0)
        frontier, following = following, frontier
        if level == depth:
            return True
        level += 1
        if level == trial[0] and found < trial[1] * active:
            return False
        last, size = size, np.int64(0)
        for i in range(last):
            u = U64(frontier[U64(i)])
            bits = here[u]
            for p in range(indptr[u], indptr[u + ONE]):
                v = U64(indices[U64(p)])
                new = bits & ~seen[v]
                if new:
                    if ahead[v] == 0:
                        following[U64(size)] = v
                        size += 1
                    ahead[v] |= new
    return True
