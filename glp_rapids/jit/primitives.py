"""What the CUDA kernels of ego-networks share: searching, union-find, launching.

None of these kernels uses a warp's own instructions, so all of them also run in Numba's simulator.
"""

from __future__ import annotations

import contextlib

from glp_rapids.jit.cuda import cuda, kernel, multiprocessors
from glp_rapids.jit.launch import launch, launch_together

__all__ = ["cuda", "kernel", "launch", "launch_together", "multiprocessors", "on"]

# Where a list is so many times as long as the other, the other's members are looked up in it; a
# step of a search costs about as much as reading the next few members.
SCANNED = 8


@contextlib.contextmanager
def on(number: int | None):
    """Make a GPU the current one of this thread, for CuPy and for Numba; None: leave it."""
    if number is None:
        yield
        return
    import cupy

    with cupy.cuda.Device(number), cuda.gpus[number]:
        yield


@cuda.jit(device=True)
def place_in(array, first, last, value):
    """Give the first place in array[first:last], which ascends, that is not below a value."""
    while first < last:
        middle = (first + last) >> 1
        if array[middle] < value:
            first = middle + 1
        else:
            last = middle
    return first


@cuda.jit(device=True)
def last_begun(offsets, place):
    """Give the row of a place: the last of the rows that begin at ``offsets`` up to there."""
    first, last = 0, offsets.size - 1
    while first < last:
        middle = (first + last) >> 1
        if offsets[middle] <= place:
            first = middle + 1
        else:
            last = middle
    return first - 1


@cuda.jit(device=True)
def root_of(parent, node):
    """Give the root of a node, and shorten the way there; the smallest node is the root."""
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
def joined(parent, one, other):
    """Join two sets; tell whether they were two. Any number of threads may do so at once."""
    one, other = root_of(parent, one), root_of(parent, other)
    while one != other:
        if one < other:
            one, other = other, one
        found = cuda.atomic.cas(parent, one, one, other)
        if found == one:
            return True
        one, other = root_of(parent, found), root_of(parent, other)
    return False


@cuda.jit(device=True)
def summed_up(partial, thread, threads):
    """Turn one number a thread into the sums up to and with it."""
    cuda.syncthreads()
    step = 1
    while step < threads:
        further = partial[thread - step] if thread >= step else 0
        cuda.syncthreads()
        partial[thread] += further
        cuda.syncthreads()
        step *= 2
