"""The edges of a graph that are wanted, each once, side by side in the order of the rows.

Blocks count theirs, and after a running sum write them: no array as long as the entries is made,
whose allocation alone would take longer where nothing pools memory.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from glp_rapids.jit.cuda import cuda, kernel
from glp_rapids.jit.primitives import row_of, upper_bound

ALL, ENTRIES, ENDS = range(3)
# Threads of a block, and how many entries each looks at.
THREADS, STEPS = 256, 16
ONE = np.uint32(1)


@functools.cache
def build_pick(threads: int, steps: int) -> Any:
    """Make the kernel that counts or writes the edges that are wanted.

    Launch: a block for every ``threads * steps`` entries. Degrees: any. Shared memory: a bit a
    thread. Registers: 32.

    An edge is the entry of its smaller end. Wanted are ALL; or those of a value of at least
    ``least``, by the value of its entry (ENTRIES) or the values of both its ends (ENDS). Without
    ``source`` the number of each block goes to ``begin``, one place after the block's; else its
    edges go to ``source``, ``destination`` and, unless that is empty, ``entry_of`` from
    ``begin[block]`` on.
    """
    words = max(threads // 32, 1)

    def pick_edges(
        indptr, indices, wanted, values, least, begin, source, destination, entry_of
    ):  # fmt: skip
        hits = cuda.shared.array(words, np.uint32)
        thread = cuda.threadIdx.x
        first = np.int64(cuda.blockIdx.x) * (threads * steps)
        end = min(first + threads * steps, np.int64(indices.size))
        # the rows of this block, so that the search for an entry's is a short one
        low, high = row_of(indptr, first), row_of(indptr, end - 1) + 1
        writes = source.size > 0
        place = np.int64(begin[cuda.blockIdx.x]) if writes else np.int64(0)
        for step in range(steps):
            entry = first + step * threads + thread
            if thread < words:
                hits[thread] = 0
            cuda.syncthreads()
            picked = entry < end
            if picked and wanted == ENTRIES:
                picked = values[entry] >= least
            u, v = np.int64(0), np.int64(0)
            if picked:
                u = np.int64(upper_bound(indptr, low, high, entry)) - 1
                v = np.int64(indices[entry])
                picked = u < v
                if picked and wanted == ENDS:
                    picked = values[u] >= least and values[v] >= least
            if picked:
                cuda.atomic.or_(hits, thread >> 5, ONE << np.uint32(thread & 31))
            cuda.syncthreads()
            rank = place
            for word in range(words):
                bits = hits[word]
                place += cuda.popc(bits)
                if word == thread >> 5:
                    bits = np.uint32(bits & ((ONE << np.uint32(thread & 31)) - ONE))
                if word <= thread >> 5:
                    rank += cuda.popc(bits)
            if picked and writes:
                source[rank], destination[rank] = u, v
                if entry_of.size > 0:
                    entry_of[rank] = entry
            cuda.syncthreads()
        if thread == 0 and not writes:
            begin[cuda.blockIdx.x + 1] = place

    return kernel(pick_edges, f"{threads} {steps}")
