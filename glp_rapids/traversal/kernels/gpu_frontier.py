"""Frontiers on the device: vertices with the places of their entries, appended by whole blocks.

Whoever appends a vertex reserves a place for it and for the entries of its row in one addition to
one word, the number of vertices above the number of entries. So the places ascend together, the
frontier is its own prefix sum, and the next level is cut into equal numbers of entries by a search
(`rows_of_block`): it makes no difference whether a row has one entry or a million.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np

from glp_rapids.jit.cuda import ask_for, cuda
from glp_rapids.jit.primitives import upper_bound

Array = Any

THREADS = 256  # of a block
BLOCKS_A_MULTIPROCESSOR = 4
LANES = 4  # threads that share a short row
ENTRY_BITS = 34  # of the word in which places are reserved
ENTRIES = (1 << ENTRY_BITS) - 1
MOST_ENTRIES = 1 << ENTRY_BITS
MOST_VERTICES = 1 << (63 - ENTRY_BITS)
# In shared memory it has 32 bits, so vertices of more neighbours are appended one by one.
STAGED_BITS = 20
STAGED = 1023  # vertices
LONGEST_STAGED = 1 << 10


# Where vertices that are near have numbers that are near, as those of road networks, a search comes
# to the next lines of memory soon: bytes from one to the next, of offsets and of neighbours.
AHEAD_OF_OFFSETS, AHEAD_OF_INDICES = 16, 32
ASKS_AHEAD = True


class Frontier(NamedTuple):
    """The vertices of two frontiers, one behind the other: that which is worked on, and the next.

    ``vertex``: int32; ``offset``: int64, where the entries of its row are among those of all.
    """

    vertex: Array
    offset: Array


class Staging(NamedTuple):
    """In shared memory: what a block will append."""

    vertex: Array  # int32
    place: Array  # int32: of the entries
    counter: Array  # int32 [1]: how many vertices, above how many entries
    base: Array  # int64 [1]: what was reserved


class Window(NamedTuple):
    """In shared memory: the rows that a block works on, one a thread."""

    offset: Array  # int64, one more: as of the frontier
    shift: Array  # int64: from there to the place in the graph
    vertex: Array  # int32


class Functions(NamedTuple):
    """Device functions; all threads of a block call them together but for ``append``."""

    append: Any
    flush: Any
    rows_of_block: Any
    load_window: Any


@functools.cache
def build(threads: int) -> Functions:
    """Make the functions for blocks of so many threads."""

    @cuda.jit(device=True)
    def append(frontier, begin, words, word, staging, vertex, degree):
        """Append a vertex to the frontier whose arrays begin at ``begin``, soon or at once."""
        if degree < LONGEST_STAGED:
            packed = cuda.atomic.add(
                staging.counter, 0, np.int32((1 << STAGED_BITS) | np.int64(degree))
            )
            slot = packed >> STAGED_BITS
            staging.vertex[slot] = vertex
            staging.place[slot] = packed & ((1 << STAGED_BITS) - 1)
        else:
            reserved = cuda.atomic.add(words, word, (np.int64(1) << ENTRY_BITS) | np.int64(degree))
            slot = begin + (reserved >> ENTRY_BITS)
            frontier.vertex[slot] = vertex
            frontier.offset[slot] = reserved & ENTRIES

    @cuda.jit(device=True)
    def flush(frontier, begin, words, word, staging):
        """Write what is staged to the frontier; after a barrier of the block."""
        packed = np.int64(staging.counter[0])
        size = packed >> STAGED_BITS
        if size > 0 and cuda.threadIdx.x == 0:
            entries = packed & ((1 << STAGED_BITS) - 1)
            staging.base[0] = cuda.atomic.add(words, word, (size << ENTRY_BITS) | entries)
        cuda.syncthreads()  # all have read the counter
        if size == 0:
            return
        reserved = staging.base[0]
        first, offset = begin + (reserved >> ENTRY_BITS), reserved & ENTRIES
        for slot in range(cuda.threadIdx.x, size, threads):
            frontier.vertex[first + slot] = staging.vertex[slot]
            frontier.offset[first + slot] = offset + staging.place[slot]
        cuda.syncthreads()
        if cuda.threadIdx.x == 0:
            staging.counter[0] = 0
        cuda.syncthreads()

    @cuda.jit(device=True)
    def rows_of_block(offset, begin, size, place):
        """Return the row of the frontier in which an entry is, counted from its first."""
        first, last = np.int64(0), np.int64(size)
        while last - first > 1:
            step = (last - first + threads - 1) // threads
            row = first + cuda.threadIdx.x * step
            below = row < last and offset[begin + row] <= place
            number = np.int64(cuda.syncthreads_count(np.int32(below)))
            first += (number - 1) * step
            last = min(last, first + step)
        return first

    @cuda.jit(device=True)
    def load_window(indptr, frontier, begin, size, entries, row, window):
        """Load so many rows of the frontier as a block has threads, from ``row`` on.

        Returns the row's vertex to each thread, or -1.
        """
        thread = cuda.threadIdx.x
        vertex = np.int32(-1)
        if row + thread < size:
            vertex = frontier.vertex[begin + row + thread]
            offset = frontier.offset[begin + row + thread]
            window.offset[thread] = offset
            window.shift[thread] = indptr[vertex] - offset
            window.vertex[thread] = vertex
        else:
            window.offset[thread] = entries
        if thread == 0:
            behind = np.int64(entries)
            if row + threads < size:
                behind = frontier.offset[begin + row + threads]
            window.offset[threads] = behind
        cuda.syncthreads()
        return vertex

    return Functions(append, flush, rows_of_block, load_window)


@functools.cache
def build_ask(asks: bool) -> Any:
    """Make the function that asks for what a queued vertex, and those near it, will need."""

    @cuda.jit(device=True)
    def ask_around(indptr, indices, vertex, start):
        if asks:
            last, end = np.int64(indptr.size - 1), np.int64(indices.size - 1)
            v = np.int64(vertex)
            ask_for(indptr, min(v + AHEAD_OF_OFFSETS, last))
            ask_for(indptr, max(v - AHEAD_OF_OFFSETS, np.int64(0)))
            ask_for(indices, min(start + AHEAD_OF_INDICES, end))
            ask_for(indices, max(start - AHEAD_OF_INDICES, np.int64(0)))

    return ask_around


@cuda.jit(device=True)
def row_in_window(window, threads, place):
    """Return the row of a window in which an entry is."""
    return upper_bound(window.offset, 0, threads, place) - 1
