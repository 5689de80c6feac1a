"""The weights from a vertex to the communities around it, in a table of a thread's own.

Labels are listed first and added up then, so that the reads of a row don't wait for each other. The
table is as large as the row needs: that of most rows stays in the nearest cache of a processor.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from glp_rapids.jit.cpu import compiled

U64 = np.uint64

inlined = compiled(error_model="numpy", forceinline=True)


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
        The label of each slot in use.
    """

    listed: Any
    amounts: Any
    most: Any
    totals: Any
    keys: Any


def tables_for(longest: int, threads: int, dtype: Any) -> Table:
    """Allocate the tables of all threads, for rows of up to so many entries."""
    slots = 1 << max(2, (2 * longest - 1).bit_length())
    dtype = np.int64 if longest >> 29 else dtype  # a slot is up to four times as large
    return Table(
        np.empty((threads, longest), dtype), np.empty((threads, longest), np.int64),
        np.empty((threads, longest)), np.zeros((threads, slots), np.int64),
        np.empty((threads, slots), dtype),
    )  # fmt: skip


@inlined
def table_of(tables, thread):
    """Return a thread's own table."""
    listed, amounts, most, totals, keys = tables
    return Table(listed[thread], amounts[thread], most[thread], totals[thread], keys[thread])


@inlined
def add_up(count, unit, weighted, table):
    """Add up the weights of the labels in the list; return how many there are.

    The list then holds their slots. Whoever reads the total of a slot at last sets it to 0.
    """
    listed, amounts, _, totals, keys = table
    weight, found, mask = unit, 0, U64(3)
    while mask < U64(2 * count - 1):
        mask += mask + U64(1)
    for i in range(count):
        label = listed[U64(i)]
        if weighted:
            weight = amounts[U64(i)]
        slot = (U64(label) * U64(0x9E3779B97F4A7C15) >> U64(20)) & mask
        while totals[slot] != 0 and keys[slot] != label:
            slot = (slot + U64(1)) & mask
        listed[U64(found)] = slot
        found += totals[slot] == 0
        keys[slot] = label
        totals[slot] += weight
    return found
