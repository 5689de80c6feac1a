"""The weights from a vertex to the communities around it, in a table of a thread's own.

Few communities are searched one by one; more than ``LISTED`` are indexed by a table of slots,
addressed by the community itself where the graph is small enough, else by a hash of it.
"""

from __future__ import annotations

import numpy as np

from glp_rapids.jit.cpu import compiled

LISTED = 8
LARGEST_DIRECT = 1 << 22  # vertices: 16 MB a thread
MOST_DIRECT = 1 << 26  # slots of all threads together: 256 MB

# Arrays are lent and none is made, so nobody counts references.
inlined = compiled(error_model="numpy", forceinline=True, _nrt=False)


def tables_for(vertices: int, longest: int, threads: int) -> tuple:
    """Allocate the tables of all threads, for rows of up to so many entries."""
    longest = max(longest, 1)
    direct = vertices <= LARGEST_DIRECT and vertices * threads <= MOST_DIRECT
    slots = max(vertices, 1) if direct else 1 << (2 * min(longest, vertices)).bit_length()
    return (
        np.empty((threads, longest), np.int64), np.empty((threads, longest), np.int64),
        np.empty((threads, longest), np.int64), np.zeros((threads, slots), np.int32), direct,
    )  # fmt: skip


@inlined
def table_of(tables, thread):
    """Return a thread's own table."""
    labels, weights, places, slots, direct = tables
    return labels[thread], weights[thread], places[thread], slots[thread], direct


@inlined
def _slot_of(label, slots, direct):
    if direct:
        return np.uint64(label)
    mixed = np.uint64(label) * np.uint64(0x9E3779B97F4A7C15)
    return (mixed >> np.uint64(20)) & np.uint64(slots.size - 1)


@inlined
def _next(slot, slots):
    return (slot + np.uint64(1)) & np.uint64(slots.size - 1)


@inlined
def add(label, weight, count, table):
    """Add a weight to a label's; return how many labels there are then, of ``count`` before."""
    labels, weights, places, slots, direct = table
    entry = 0
    if count <= LISTED:
        while entry < count and labels[np.uint64(entry)] != label:
            entry += 1
        if entry < count:
            weights[np.uint64(entry)] += weight
            return count
        if count < LISTED:
            labels[np.uint64(count)] = label
            weights[np.uint64(count)] = weight
            return count + 1
        for other in range(count):
            slot = _slot_of(labels[np.uint64(other)], slots, direct)
            while slots[slot] != 0:
                slot = _next(slot, slots)
            slots[slot] = other + 1
            places[np.uint64(other)] = slot
    slot = _slot_of(label, slots, direct)
    entry = np.int64(slots[slot]) - 1
    while entry >= 0 and labels[np.uint64(entry)] != label:
        slot = _next(slot, slots)
        entry = np.int64(slots[slot]) - 1
    if entry >= 0:
        weights[np.uint64(entry)] += weight
        return count
    labels[np.uint64(count)] = label
    weights[np.uint64(count)] = weight
    places[np.uint64(count)] = slot
    slots[slot] = count + 1
    return count + 1


@inlined
def clear(count, table):
    """Make the table ready for another row."""
    _, _, places, slots, _ = table
    if count > LISTED:
        for entry in range(count):
            slots[np.uint64(places[np.uint64(entry)])] = 0
