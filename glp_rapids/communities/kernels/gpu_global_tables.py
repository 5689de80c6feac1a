"""Weights by label in hash tables in global memory, those of hubs and of parts: linear probing.

A label plus one and a sum are one word of 64 bits, where both fit: who claims a slot adds with the
same instruction, and everybody else with one. Where sums take 64 bits there are two words, side by
side, and who claims a slot adds with a second instruction.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np

from glp_rapids.communities.kernels.gpu_tables import U64
from glp_rapids.jit.cuda import add_only, ask_for, cuda

NOT_TAKEN = -1
LOW, HALF = np.int64(0xFFFFFFFF), np.int64(32)


def words_of_slot(wide: bool) -> int:
    """Return how many words of 64 bits a slot takes."""
    return 2 if wide else 1


class Functions(NamedTuple):
    """What `build` makes, compiled for the GPU; ``base`` is where a table begins."""

    # table, base, slots, slot to begin with, label, weight -> the slot if it was taken for this,
    # or NOT_TAKEN
    add: Any
    label: Any  # table, slot of all -> the label there, or -1
    ask: Any  # table, base, slot: have the slot brought near, and don't wait for it
    amount: Any  # table, slot of all -> the sum there
    empty: Any  # table, slot of all


@cuda.jit(device=True)
def slot_of(label, slots):
    """Hash a label to one of some slots."""
    mixed = np.uint32(np.uint32(label) * np.uint32(0x9E3779B1))
    return np.int64((np.uint64(mixed) * np.uint64(slots)) >> np.uint64(32))


@functools.cache
def build(wide: bool) -> Functions:
    """Make the functions of tables whose sums take 64 bits, or 31, as labels do then."""

    @cuda.jit(device=True)
    def add_wide(table, base, slots, slot, label, weight):
        name, taken = np.int64(label) + 1, np.int64(NOT_TAKEN)
        while True:
            place = 2 * (base + slot)
            found = table[U64(place)]
            if found == 0:
                found = cuda.atomic.cas(table, place, np.int64(0), name)
                if found == 0:
                    found, taken = name, slot
            if found == name:
                add_only(table, place + 1, weight)
                return taken
            slot += 1
            if slot == slots:
                slot = np.int64(0)

    @cuda.jit(device=True)
    def add_narrow(table, base, slots, slot, label, weight):
        name = np.int64(label) + 1
        while True:
            place = base + slot
            found = table[U64(place)]
            if found == 0:
                found = cuda.atomic.cas(table, place, np.int64(0), (name << HALF) | weight)
                if found == 0:
                    return slot
            if found >> HALF == name:
                add_only(table, place, weight)
                return np.int64(NOT_TAKEN)
            slot += 1
            if slot == slots:
                slot = np.int64(0)

    words = words_of_slot(wide)

    @cuda.jit(device=True)
    def ask(table, base, slot):
        ask_for(table, words * (base + slot))

    @cuda.jit(device=True)
    def label(table, slot):
        if wide:
            return table[U64(2 * slot)] - 1
        return (table[U64(slot)] >> HALF) - 1

    @cuda.jit(device=True)
    def amount(table, slot):
        if wide:
            return table[U64(2 * slot + 1)]
        return table[U64(slot)] & LOW

    @cuda.jit(device=True)
    def empty(table, slot):
        if wide:
            table[U64(2 * slot)] = 0
            table[U64(2 * slot + 1)] = 0
        else:
            table[U64(slot)] = 0

    return Functions(add_wide if wide else add_narrow, label, ask, amount, empty)
