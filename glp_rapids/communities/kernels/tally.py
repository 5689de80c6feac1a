"""The weights from a vertex to the communities around it, in a table of a thread's own.

Labels are listed first and added up then: the reads of a row don't wait for each other, and where a
label comes is settled without a branch, which a processor would guess wrong every other time. A
graph that is small enough has a slot a label; else a table as large as the row needs is searched
from a hash on.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from glp_rapids.jit.cpu import compiled

HASHED = 256  # slots, at least twice as many as labels: beside them a processor's nearest cache
LARGEST_DIRECT = 1 << 22  # vertices: 32 MB a thread
MOST_DIRECT = 1 << 25  # slots of all threads together: 256 MB

# Arrays are lent and none is made, so nobody counts references.
inlined = compiled(error_model="numpy", forceinline=True, _nrt=False)


class Table(NamedTuple):
    """What one thread adds up in; of all threads, a row each.

    Parameters
    ----------
    listed : index array
        The labels of a row, then the slots they fall in: room for the longest row.
    amounts : int64 array
        The weights that go with the labels.
    most : float64 array
        Of each label, what a gain is at most.
    totals : int64 array
        Of each slot, 0 between two rows.
    keys : index array
        The label of each slot in use, where slots are not labels.
    """

    listed: Any
    amounts: Any
    most: Any
    totals: Any
    keys: Any


def tables_for(vertices: int, longest: int, threads: int, dtype: Any) -> Table:
    """Allocate the tables of all threads, for rows of up to so many entries."""
    longest = max(longest, 1)
    direct = vertices <= LARGEST_DIRECT and vertices * threads <= MOST_DIRECT
    hashed = HASHED if direct else 1 << (2 * longest).bit_length()
    dtype = np.int64 if longest >> 29 else dtype  # a slot is up to four times as large
    return Table(
        np.empty((threads, longest), dtype), np.empty((threads, longest), np.int64),
        np.empty((threads, longest)),
        np.zeros((threads, max(hashed, vertices if direct else 0)), np.int64),
        np.empty((threads, hashed), dtype),
    )  # fmt: skip


@inlined
def table_of(tables, thread):
    """Return a thread's own table."""
    listed, amounts, most, totals, keys = tables
    return Table(listed[thread], amounts[thread], most[thread], totals[thread], keys[thread])


@inlined
def add_up(count, unit, weighted, table):
    """Add up the weights of the labels in the list; return how many there are, and if by key.

    The list then holds their slots, of each of which `label_at` tells the label. Whoever reads the
    total of a slot at last sets it to 0.
    """
    listed, amounts, _, totals, keys = table
    weight, found = unit, 0
    by_key = 2 * count <= keys.size
    if not by_key:
        for i in range(count):
            label = listed[np.uint64(i)]
            if weighted:
                weight = amounts[np.uint64(i)]
            total = totals[np.uint64(label)]
            listed[np.uint64(found)] = label
            found += total == 0
            totals[np.uint64(label)] = total + weight
        return found, by_key
    mask = np.uint64(3)
    while mask < np.uint64(2 * count - 1):
        mask += mask + np.uint64(1)
    for i in range(count):
        label = listed[np.uint64(i)]
        if weighted:
            weight = amounts[np.uint64(i)]
        slot = (np.uint64(label) * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(20)) & mask
        while totals[slot] != 0 and keys[slot] != label:
            slot = (slot + np.uint64(1)) & mask
        listed[np.uint64(found)] = slot
        found += totals[slot] == 0
        keys[slot] = label
        totals[slot] += weight
    return found, by_key


@inlined
def label_at(slot, by_key, table):
    """Return the label of a slot."""
    return np.int64(table.keys[np.uint64(slot)]) if by_key else np.int64(slot)
