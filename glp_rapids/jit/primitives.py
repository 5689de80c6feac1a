"""What CUDA kernels share: a grid barrier, binary search, union-find, a scan.

None of these uses a warp's own instructions, so kernels of them also run in Numba's simulator.
"""

from __future__ import annotations

import numpy as np

from glp_rapids.jit import search
from glp_rapids.jit.cuda import add_released, cuda, load_fresh

lower_bound = cuda.jit(device=True)(search.lower_bound)
upper_bound = cuda.jit(device=True)(search.upper_bound)


@cuda.jit(device=True)
def wait_for_blocks(arrived, goal):
    """Say that this block is here, and wait for the others; one thread of a block does."""
    add_released(arrived, 0, np.int64(1))
    while load_fresh(arrived, 0) < goal:
        pass


@cuda.jit(device=True)
def grid_barrier(arrived, goal):
    """Wait for all blocks of the grid; what they wrote is then seen by all.

    ``arrived``: one int64 that nobody else writes, 0 before the first barrier. ``goal``: how many
    blocks will have come here by then, over all barriers so far and this one.
    """
    cuda.syncthreads()
    if cuda.threadIdx.x == 0:
        wait_for_blocks(arrived, goal)
    cuda.syncthreads()


@cuda.jit(device=True)
def row_of(offsets, place):
    """Return the row of a place: the last of those that begin at ``offsets`` up to there."""
    return upper_bound(offsets, 0, offsets.size - 1, place) - 1


@cuda.jit(device=True)
def find_root(parent, node):
    """Return the root of a node, and halve the way there; the smallest node is the root."""
    while True:
        above = parent[node]
        if above == node:
            return node
        further = parent[above]
        if further == above:
            return above
        parent[node] = further
        node = further


@cuda.jit(device=True)
def union(parent, one, other):
    """Join two sets; tell whether they were two. Any number of threads may do so at once."""
    one, other = find_root(parent, one), find_root(parent, other)
    while one != other:
        if one < other:
            one, other = other, one
        found = cuda.atomic.cas(parent, one, one, other)
        if found == one:
            return True
        one, other = find_root(parent, found), find_root(parent, other)
    return False


@cuda.jit(device=True)
def inclusive_scan(partial, thread, threads):
    """Turn one number a thread of a block into the sums up to and with it."""
    cuda.syncthreads()
    step = 1
    while step < threads:
        further = partial[thread - step] if thread >= step else 0
        cuda.syncthreads()
        partial[thread] += further
        cuda.syncthreads()
        step *= 2
