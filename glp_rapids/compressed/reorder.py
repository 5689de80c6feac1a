"""The order in which lists are stored: checked, applied, undone; `compression` finds one.

An order is a list of all vertex indices: the vertex at each place. Lists are stored by place and
hold places; only what compresses them knows that.
"""

from __future__ import annotations

from typing import Any

from glp_rapids.device import all_true, any_true, array_module
from glp_rapids.graph.build import ordering
from glp_rapids.graph.rows import CSR
from glp_rapids.graph.vertex_order import positions

Array = Any


def misplaced(order: Array) -> str | None:
    """Say what keeps an integer array from naming each of 0..n-1 once, or give None."""
    xp = array_module(order)
    outside = (order < 0) | (order >= order.size)
    if any_true(outside):
        place = int(outside.argmax())
        return f"holds {int(order[place])} at place {place:,}"
    there = xp.zeros(order.size, dtype=bool)
    there[order] = True
    if not all_true(there):
        return f"leaves out vertex {int(there.argmin()):,}"
    return None


def stored(rows: CSR, order: Array | None) -> CSR:
    """Renumber rows from vertices to places."""
    if order is None:
        return CSR(rows.indptr, rows.indices, rows.weights)
    return _renumbered(rows, positions(order, rows.indices.dtype))


def restored(rows: CSR, order: Array | None) -> CSR:
    """Renumber rows from places to vertices; what `stored` did is undone."""
    return rows if order is None else _renumbered(rows, order)


def _renumbered(rows: CSR, number: Array) -> CSR:
    """Call vertex v ``number[v]`` in rows."""
    sorting = ordering(rows.indices)
    source = number[rows.row_indices()]
    pairs = source, number[rows.indices], rows.number_of_vertices, False
    if rows.weights is None:
        return CSR(*sorting.merged_entries(*pairs), None)
    indptr, indices, edge = sorting.sorted_entries(*pairs)
    return CSR(indptr, indices, rows.weights[edge])
