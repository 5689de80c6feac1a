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

    # To add is three steps, for who adds several at a time: what is in a slot, table, base, slot;
    # take it if it is empty, table, base, slot, label, weight, found -> what is there, 0 if taken;
    # add, there or further on, table, base, slots, slot, label, weight, found -> as `add`.
    peek: Any
    claim: Any
    finish: Any
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
    words = words_of_slot(wide)

    @cuda.jit(device=True)
    def peek(table, base, slot):
        return table[U64(words * (base + slot))]

    @cuda.jit(device=True)
    def claim(table, base, slot, label, weight, found):
        if found == 0:
            taken = np.int64(label) + 1
            if not wide:
                taken = (taken << HALF) | weight
            found = cuda.atomic.cas(table, words * (base + slot), np.int64(0), taken)
        return found

    @cuda.jit(device=True)
    def finish(table, base, slots, slot, label, weight, found):
        name = np.int64(label) + 1
        while True:
            taken = found == 0
            here = found == name if wide else found >> HALF == name
            if here or (wide and taken):
                add_only(table, words * (base + slot) + words - 1, weight)
            if taken:
                return slot
            if here:
                return np.int64(NOT_TAKEN)
            slot += 1
            if slot == slots:
                slot = np.int64(0)
            found = claim(table, base, slot, label, weight, peek(table, base, slot))

    @cuda.jit(device=True)
    def add(table, base, slots, slot, label, weight):
        found = claim(table, base, slot, label, weight, peek(table, base, slot))
        return finish(table, base, slots, slot, label, weight, found)

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

    return Functions(peek, claim, finish, add, label, ask, amount, empty)
