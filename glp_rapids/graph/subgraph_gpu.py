"""Rows cut out of a graph on a GPU: an entry of theirs has a thread, so that hubs cost no more.

Launch: `_number_kept` has a thread a row that stays, `_mark_inside` a thread an entry of those,
`_copy_inside` a thread for each of either. Degrees: any. Shared memory: none. Registers: 20.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from glp_rapids.common.segments import segment_offsets
from glp_rapids.device import array_module, to_host
from glp_rapids.graph.rows import CSR
from glp_rapids.jit.items import ItemKernel, item_of_thread
from glp_rapids.jit.primitives import row_of

Array = Any


def induced(graph: CSR, kept: Array) -> CSR:
    """Cut out the rows and columns ``kept``, which ascend; they become 0, 1, ..."""
    xp = array_module(kept)
    number = xp.full(graph.indptr.size - 1, -1, graph.indices.dtype)
    degree = xp.empty(kept.size, np.int64)
    _number_kept(kept.size, kept, graph.indptr, number, degree)
    offsets = segment_offsets(degree)
    entries = int(to_host(offsets[-1:])[0])
    inside = xp.empty(entries, bool)
    _mark_inside(entries, graph.indptr, graph.indices, kept, number, offsets, inside)
    place = segment_offsets(inside)
    indptr = xp.empty(kept.size + 1, graph.indptr.dtype)
    indices = xp.empty(int(to_host(place[-1:])[0]), graph.indices.dtype)
    weights = None if graph.weights is None else xp.empty(indices.size, graph.weights.dtype)
    none = xp.empty(0, np.int64)
    read, written = (none, none) if weights is None else (graph.weights, weights)
    _copy_inside(
        max(entries, indptr.size), graph.indptr, graph.indices, read, kept, number,
        offsets, inside, place, indptr, indices, written,
    )  # fmt: skip
    return CSR(indptr, indices, weights)


@ItemKernel
def _number_kept(kept, indptr, number, degree):
    row = item_of_thread()
    if row < kept.size:
        v = kept[row]
        number[v] = row
        degree[row] = indptr[v + 1] - indptr[v]


@ItemKernel
def _mark_inside(indptr, indices, kept, number, offsets, inside):
    item = item_of_thread()
    if item < inside.size:
        row = row_of(offsets, item)
        entry = indptr[kept[row]] + item - offsets[row]
        inside[item] = number[indices[entry]] >= 0


@ItemKernel
def _copy_inside(
    indptr, indices, weights, kept, number, offsets, inside, place, starts, column, weight
):
    item = item_of_thread()
    if item < starts.size:
        starts[item] = place[offsets[item]]
    if item < inside.size and inside[item]:
        row, to = row_of(offsets, item), place[item]
        entry = indptr[kept[row]] + item - offsets[row]
        column[to] = number[indices[entry]]
        if weights.size > 0:
            weight[to] = weights[entry]
