"""Running sums over a grid: each block adds up what is its own, and begins where others end."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np

from glp_rapids.jit.cuda import cuda
from glp_rapids.jit.primitives import inclusive_scan


class Scans(NamedTuple):
    """What `build` makes, compiled for the GPU. All threads of a block call these."""

    announce: Any  # number, sums, counts: the block's sum goes to its place in counts
    base: Any  # block, sums, counts -> the sum of the blocks before
    ranked: Any  # number, sums -> the sum up to and with the thread, and the block's
    own_range: Any  # items, block, blocks, tile -> first and end of a block's own, whole tiles


@functools.cache
def build(threads: int) -> Scans:
    """Make the functions for blocks of so many threads; ``sums`` is shared, int64, one a thread."""

    @cuda.jit(device=True)
    def ranked(number, sums):
        thread = np.int64(cuda.threadIdx.x)
        sums[thread] = number
        inclusive_scan(sums, thread, threads)
        own, whole = sums[thread], sums[threads - 1]
        cuda.syncthreads()
        return own, whole

    @cuda.jit(device=True)
    def announce(number, sums, counts):
        _, whole = ranked(number, sums)
        if cuda.threadIdx.x == 0:
            counts[cuda.blockIdx.x] = whole

    @cuda.jit(device=True)
    def base(block, sums, counts):
        number = np.int64(0)
        for other in range(np.int64(cuda.threadIdx.x), block, threads):
            number += counts[other]
        _, whole = ranked(number, sums)
        return whole

    @cuda.jit(device=True)
    def own_range(items, block, blocks, tile):
        tiles = (items + tile - 1) // tile
        each = (tiles + blocks - 1) // blocks * tile
        return min(block * each, items), min((block + 1) * each, items)

    return Scans(announce, base, ranked, own_range)
