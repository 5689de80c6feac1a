"""Weights from a vertex to the labels around it, in hash tables of a block's shared memory.

Linear probing. Sums of 64 bits are added in halves, because only 32 are added in shared memory by
one instruction; where sums are smaller there is one half, and where all entries weigh the same,
they are counted.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np

from glp_rapids.jit.cuda import cuda

EMPTY = -1
ADDED, NO_ROOM = -1, -2
LOW, HALF = np.uint64(0xFFFFFFFF), np.uint64(32)
MOST_NARROW = (1 << 31) - 1
U64 = np.uint64  # Numba asks of signed indices whether they count from the end


class Weights(NamedTuple):
    """What the entries of a level weigh, in its unit, and how large sums of them may be."""

    listed: bool  # each has a weight of its own; else one unit
    wide: bool  # sums take 64 bits; else 31, and so do labels


def sum_type(weights: Weights) -> Any:
    """Return the type that sums have room in."""
    return np.int64 if weights.wide else np.int32


def weights_of(indices: Any, weights: Any) -> Weights:
    """Tell what entries weigh: int32 only where all of them together fit in there."""
    listed = weights.size > 0
    narrow = weights.dtype == np.int32 if listed else indices.size <= MOST_NARROW
    return Weights(listed, not (narrow and indices.dtype == np.int32))


class TableFunctions(NamedTuple):
    """What `build` makes, compiled for the GPU."""

    # keys, low, high, first, slots, probes, label, weight -> the slot if it was taken for this,
    # ADDED if it was there, or NO_ROOM
    add: Any
    amount: Any  # low, high, place -> the sum there, to be multiplied by the unit
    include: Any  # low, high, place, weight: add to a slot that no other thread looks at


@cuda.jit(device=True)
def slot_of(label, slots):
    """Hash a label to one of 2^k slots."""
    mixed = np.uint32(np.uint32(label) * np.uint32(0x9E3779B1))
    return np.int64(mixed >> np.uint32(8)) & (slots - 1)


@functools.cache
def build(weights: Weights, index_type: Any) -> TableFunctions:
    """Make the functions of tables of labels of a type."""
    empty = index_type(EMPTY)
    weighted, halves = weights.listed, weights.listed and weights.wide

    @cuda.jit(device=True)
    def include(low, high, at, weight):
        place = U64(at)
        if halves:
            amount = (np.uint64(high[place]) << HALF) + np.uint64(low[place]) + np.uint64(weight)
            low[place], high[place] = np.uint32(amount & LOW), np.uint32(amount >> HALF)
        elif weighted:
            low[place] += np.uint32(weight)
        else:
            low[place] += np.uint32(1)

    @cuda.jit(device=True)
    def add_to(low, high, place, weight):
        if halves:
            amount = np.uint64(weight)
            lower = np.uint32(amount & LOW)
            before = cuda.atomic.add(low, place, lower)
            carry = (np.uint64(before) + np.uint64(lower)) >> HALF
            upper = np.uint32((amount >> HALF) + carry)
            if upper != np.uint32(0):
                cuda.atomic.add(high, place, upper)
        elif weighted:
            cuda.atomic.add(low, place, np.uint32(weight))
        else:
            cuda.atomic.add(low, place, np.uint32(1))

    @cuda.jit(device=True)
    def add(keys, low, high, first, slots, probes, label, weight):
        slot = slot_of(label, slots)
        for _ in range(probes):
            place, taken = first + slot, np.int64(ADDED)
            found = keys[U64(place)]
            if found == empty:
                found = cuda.atomic.cas(keys, place, empty, label)
                if found == empty:
                    found, taken = label, slot
            if found == label:
                add_to(low, high, place, weight)
                return taken
            slot = (slot + 1) & (slots - 1)
        return np.int64(NO_ROOM)

    @cuda.jit(device=True)
    def amount(low, high, place):
        if halves:
            return np.int64((np.uint64(high[U64(place)]) << HALF) | np.uint64(low[U64(place)]))
        return np.int64(low[U64(place)])

    return TableFunctions(add, amount, include)
