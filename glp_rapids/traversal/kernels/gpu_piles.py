"""The near and the far pile of a search for shortest paths, see `gpu_sssp`, as device functions.

What goes through them is in `gpu_narrow_piles` and `gpu_wide_piles`.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np

from glp_rapids.jit.cuda import cuda
from glp_rapids.traversal.kernels import gpu_frontier
from glp_rapids.traversal.kernels.gpu_frontier import ENTRIES, ENTRY_BITS

QUEUED = 256  # vertices in the queue of a block
LONG = 64  # entries of a row that a whole block works on
LONG_QUEUED = 32  # such rows
LONGEST = 1 << 12  # entries of a row in the queue of a block
DENSE = 8  # entries a vertex of a frontier that is small
RARE = 16  # if no more than one in so many of the far pile came near, the step is doubled
WARP = 32
HOPS_ALONE = 1 << 10  # steps of one block between two barriers, when the others have nothing to do
# What a block counts, of three steps in turn: short and long rows queued, and whether it must stop.
SHORT, LONGER, STOP, COUNTS = 0, 3, 6, 9


class Words(NamedTuple):
    """Where in the words of a search something lies; int64. First what goes in and comes out."""

    turn: int  # -1: nothing was done so far
    pile: int  # the number of the far pile, which is how often the limit went up
    size: int  # of the near pile
    entries: int  # of its rows
    half: int  # which half of the arrays it is in
    over: int  # whether the search is
    barriers: int
    appended: int  # three: vertices and entries that a turn put into the near pile
    far: int  # three: vertices in a far pile
    moved: int  # three: how many of them came near when it was gone through
    stuck: int  # three: whether a block had no room for its part of a pile
    scanned: int  # how many were in the last one that was
    relaxed: int  # entries of the near pile since then


WORDS = Words(*range(8), 10, 13, 16, 19, 20)
NUMBER_OF_WORDS = 21


class Marks(NamedTuple):
    """By vertex: when it was last put into the near pile, and into which far pile."""

    queued: Any  # int32
    waiting: Any  # int32


class Queue(NamedTuple):
    """In shared memory: two queues of a block, each first of short rows, then of long."""

    vertex: Any
    start: Any
    degree: Any
    label: Any


class Far(NamedTuple):
    """In shared memory: what a block will put into the far pile."""

    vertex: Any
    counter: Any  # int32 [1]
    base: Any  # int64 [1]
    lowest: Any  # [1]: of the distances
    moved: Any  # int32 [1]: how many of another pile came near


class Fallen(NamedTuple):
    """In shared memory: two lists of what fell, that are filled and emptied in turns."""

    vertex: Any  # int32: inverted, if it is far
    counter: Any  # int32 [3]: one of a list, one of the next, and one that is 0 until then


class Piles(NamedTuple):
    """Device functions; all threads of a block call the last together."""

    put_near: Any
    put_waiting: Any
    put_far: Any
    flush_far: Any


@functools.cache
def build(threads: int) -> Piles:
    """Make the functions for blocks of so many threads."""
    append, staged = gpu_frontier.build(threads).append, gpu_frontier.STAGED

    @cuda.jit(device=True)
    def put_near(vertex, degree, frontier, begin, words, turn, marks, staging, directly):
        """Put a vertex into the near pile of the next turn, unless it is there."""
        tag = np.int32(turn + 1)
        if cuda.atomic.exch(marks.queued, vertex, tag) == tag:
            return
        word = WORDS.appended + (turn + 1) % 3
        if directly:
            reserved = cuda.atomic.add(words, word, (np.int64(1) << ENTRY_BITS) | degree)
            slot = begin + (reserved >> ENTRY_BITS)
            frontier.vertex[slot] = vertex
            frontier.offset[slot] = reserved & ENTRIES
        else:
            append(frontier, begin, words, word, staging, vertex, degree)

    @cuda.jit(device=True)
    def put_waiting(vertex, far_pile, words, pile, marks, far, vertices):
        """Put a vertex into a far pile, unless it is there."""
        tag = np.int32(pile)
        if cuda.atomic.exch(marks.waiting, vertex, tag) == tag:
            return
        slot = cuda.atomic.add(far.counter, 0, np.int32(1))
        if slot < staged:
            far.vertex[slot] = vertex
        else:
            place = cuda.atomic.add(words, WORDS.far + pile % 3, np.int64(1))
            far_pile[(pile % 2) * vertices + place] = vertex

    @cuda.jit(device=True)
    def put_far(vertex, label, far_pile, words, pile, marks, far, vertices):
        """Put a vertex into a far pile, unless it is there, and note its distance."""
        if label < far.lowest[0]:
            cuda.atomic.min(far.lowest, 0, label)
        put_waiting(vertex, far_pile, words, pile, marks, far, vertices)

    @cuda.jit(device=True)
    def flush_far(far_pile, words, pile, far, vertices):
        """Write what is staged to the far pile; after a barrier of the block."""
        size = min(far.counter[0], staged)
        if size > 0 and cuda.threadIdx.x == 0:
            far.base[0] = cuda.atomic.add(words, WORDS.far + pile % 3, np.int64(size))
        cuda.syncthreads()  # all have read the counter
        if size == 0:
            return
        first = (pile % 2) * vertices + far.base[0]
        for slot in range(cuda.threadIdx.x, size, threads):
            far_pile[first + slot] = far.vertex[slot]
        cuda.syncthreads()
        if cuda.threadIdx.x == 0:
            far.counter[0] = 0
        cuda.syncthreads()

    return Piles(put_near, put_waiting, put_far, flush_far)
