"""Sums between pairs of parts in a block's shared memory: what comes often is added up there.

Pairs that find no room go to the tables in global memory at once. Where few parts are left, most
entries of a graph lie between a few pairs, and one address there takes few sums at a time.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from glp_rapids.jit.cuda import cuda

Array = Any
SLOTS, PROBES = 1024, 2
NONE = -1
MOST_PARTS = 1 << 31  # whose pairs have numbers of 63 bits


class Cache(NamedTuple):
    """Shared memory: numbers of pairs, and their sums in halves, which one instruction adds."""

    pairs: Array
    low: Array
    high: Array  # where sums take 64 bits


class Functions(NamedTuple):
    """What `build` makes, compiled for the GPU."""

    lay_out: Any  # -> a cache, empty once the block has met
    add: Any  # part, other, weight, parts, cache -> whether there was room
    flush: Any  # cache, merging: add all to the tables; the block has met before


@functools.cache
def build(threads: int, slots: int, wide: bool, add_to_table: Callable) -> Functions:
    """Make the functions for blocks of so many threads, and sums of 64 bits or 32."""
    low_half, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    high_slots = slots if wide else 1

    @cuda.jit(device=True)
    def lay_out():
        # a line each: Numba's simulator knows shared arrays by their lines
        cache = Cache(
            cuda.shared.array(slots, np.int64),
            cuda.shared.array(slots, np.uint32),
            cuda.shared.array(high_slots, np.uint32),
        )
        for slot in range(np.int64(cuda.threadIdx.x), slots, threads):
            cache.pairs[slot] = NONE
            cache.low[slot] = 0
            if wide:
                cache.high[slot] = 0
        return cache

    @cuda.jit(device=True)
    def add(part, other, weight, parts, cache):
        if parts > MOST_PARTS:
            return False
        pair = np.int64(part) * parts + other
        mixed = np.uint64(pair) * np.uint64(0x9E3779B97F4A7C15)
        slot = np.int64(mixed >> half) & (slots - 1)
        for _ in range(PROBES):
            found = cache.pairs[slot]
            if found == NONE:
                found = cuda.atomic.cas(cache.pairs, slot, np.int64(NONE), pair)
                if found == NONE:
                    found = pair
            if found == pair:
                lower = np.uint32(np.uint64(weight) & low_half)
                before = cuda.atomic.add(cache.low, slot, lower)
                if wide:
                    carry = (np.uint64(before) + np.uint64(lower)) >> half
                    upper = np.uint32((np.uint64(weight) >> half) + carry)
                    if upper != np.uint32(0):
                        cuda.atomic.add(cache.high, slot, upper)
                return True
            slot = (slot + 1) & (slots - 1)
        return False

    @cuda.jit(device=True)
    def flush(cache, merging):
        parts = np.int64(merging.entries.size)
        for slot in range(np.int64(cuda.threadIdx.x), slots, threads):
            pair = cache.pairs[slot]
            if pair != NONE:
                weight = np.uint64(cache.low[slot])
                if wide:
                    weight |= np.uint64(cache.high[slot]) << half
                add_to_table(pair // parts, pair % parts, np.int64(weight), merging)

    return Functions(lay_out, add, flush)
