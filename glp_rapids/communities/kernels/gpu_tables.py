"""Weights from a vertex to the labels around it, in hash tables of a block's shared memory.

Linear probing. A weight is added in halves of 32 bits, because only these are added in shared
memory by one instruction; where all entries weigh the same, they are counted instead.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np

from glp_rapids.jit.cuda import cuda

EMPTY = -1
ADDED, NO_ROOM = -1, -2
LOW, HALF = np.uint64(0xFFFFFFFF), np.uint64(32)


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
def build(weighted: bool, index_type: Any) -> TableFunctions:
    """Make the functions of tables of labels of a type, with weights or counts."""
    empty = index_type(EMPTY)

    @cuda.jit(device=True)
    def include(low, high, place, weight):
        if weighted:
            amount = (np.uint64(high[place]) << HALF) + np.uint64(low[place]) + np.uint64(weight)
            low[place], high[place] = np.uint32(amount & LOW), np.uint32(amount >> HALF)
        else:
            low[place] += np.uint32(1)

    @cuda.jit(device=True)
    def add_to(low, high, place, weight):
        if weighted:
            amount = np.uint64(weight)
            lower = np.uint32(amount & LOW)
            before = cuda.atomic.add(low, place, lower)
            carry = (np.uint64(before) + np.uint64(lower)) >> HALF
            upper = np.uint32((amount >> HALF) + carry)
            if upper != np.uint32(0):
                cuda.atomic.add(high, place, upper)
        else:
            cuda.atomic.add(low, place, np.uint32(1))

    @cuda.jit(device=True)
    def add(keys, low, high, first, slots, probes, label, weight):
        slot = slot_of(label, slots)
        for _ in range(probes):
            place, taken = first + slot, np.int64(ADDED)
            found = keys[place]
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
        if weighted:
            return np.int64((np.uint64(high[place]) << HALF) | np.uint64(low[place]))
        return np.int64(low[place])

    return TableFunctions(add, amount, include)
