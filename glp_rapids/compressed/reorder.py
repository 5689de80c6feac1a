"""The order in which lists are stored: found, checked, applied, undone.

A list compresses where neighbours have near numbers, so vertices that share neighbours belong side
by side. An order is a list of all vertex indices: the vertex at each place. Lists are stored by
place and hold places; only what compresses them knows that.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from glp_rapids.common.checks import errors_named
from glp_rapids.device import array_module, to_device, to_host
from glp_rapids.frames import kinds
from glp_rapids.graph.build import ordering
from glp_rapids.graph.graph import CSR, Graph
from glp_rapids.graph.vertex_order import by_degree, positions
from glp_rapids.jit.cache import kept
from glp_rapids.jit.interrupts import A_CALL

Array = Any
ORDERS = ("llp", "degree", "bfs")


def check_order(order: Any) -> None:
    """Refuse what no order can be, before any work."""
    if order is None or (isinstance(order, str) and order in ORDERS):
        return
    if isinstance(order, str) or not hasattr(order, "__len__"):
        names = ", ".join(map(repr, ORDERS))
        raise ValueError(
            f"order must be {names}, None or a list of all vertex indices, not {order!r:.80}"
        )


def order_of(graph: Graph, order: Any) -> Array | None:
    """Give the vertex at every place, where the graph lives; None: its number."""
    if order is None:
        return None
    if isinstance(order, str):
        found = {"llp": by_layers, "degree": by_rows, "bfs": breadth_first}[order](graph)
    else:
        found = _checked(order, graph)
    found = found.astype(graph.indices.dtype, copy=False)
    xp = array_module(found)
    if bool((found == xp.arange(found.size, dtype=found.dtype)).all()):
        return None
    return found


def by_layers(graph: Graph) -> Array:
    """List the vertices as layered label propagation puts them."""
    from glp_rapids.propagation.functions import layered_label_propagation

    frame = layered_label_propagation(graph, order=True, device=graph.device)
    place = to_device(kinds.to_array(frame["position"]), graph.device)
    return positions(place, graph.indices.dtype)


def by_rows(graph: Graph) -> Array:
    """List the vertices by falling degree, of equals the smaller index first."""
    return by_degree(graph.rows("both"))


def breadth_first(graph: Graph) -> Array:
    """List the vertices as a search finds them that begins with the smallest index, edge by edge.

    Each further component begins with its smallest index. On the CPU: a queue is served in order.
    """
    rows = graph.rows("both")
    indptr, indices = to_host(rows.indptr), to_host(rows.indices)
    found = np.empty(indptr.size - 1, indices.dtype)
    seen, state = np.zeros(found.size, np.bool_), np.zeros(3, np.int64)
    while state[0] < found.size:
        _breadth_first(indptr, indices, found, seen, state, A_CALL)
    return to_device(found, graph.device)


@kept
def _breadth_first(indptr, indices, found, seen, state, entries):
    """Go on from ``state`` (served, found, next start) until about so many entries are read."""
    served, filled, start = state
    while served < found.size and entries > 0:
        if served == filled:
            while seen[start]:
                start += 1
            seen[start] = True
            found[filled] = start
            filled += 1
        vertex = np.int64(found[served])
        served += 1
        entries -= indptr[vertex + 1] - indptr[vertex] + 1
        for neighbour in indices[indptr[vertex] : indptr[vertex + 1]]:
            if not seen[neighbour]:
                seen[neighbour] = True
                found[filled] = neighbour
                filled += 1
    state[0], state[1], state[2] = served, filled, start


def _checked(order: Any, graph: Graph) -> Array:
    n = graph.number_of_vertices
    column = kinds.as_column(order, "order")
    with errors_named("order"):
        nulls = kinds.null_count(column)
    if nulls:
        raise ValueError("order holds nulls; it must name every vertex index once")
    found = kinds.to_array(column)
    if found.dtype.kind not in "iu" and found.size:
        raise TypeError(f"order must hold vertex indices, integers, not {found.dtype}")
    if found.size != n:
        raise ValueError(f"order must name all {n:,} vertices, not {found.size:,}")
    if problem := misplaced(found):
        raise ValueError(f"order {problem}; it must name every vertex index, 0 to {n - 1:,}, once")
    return to_device(found.astype(np.int64), graph.device)


def misplaced(order: Array) -> str | None:
    """Say what keeps an integer array from naming each of 0..n-1 once, or give None."""
    xp = array_module(order)
    outside = (order < 0) | (order >= order.size)
    if bool(outside.any()):
        place = int(outside.argmax())
        return f"holds {int(order[place])} at place {place:,}"
    there = xp.zeros(order.size, dtype=bool)
    there[order] = True
    if not bool(there.all()):
        return f"leaves out vertex {int(there.argmin()):,}"
    return None


def stored(rows: CSR, order: Array | None) -> CSR:
    """Give rows by place, with places in them."""
    if order is None:
        return CSR(rows.indptr, rows.indices, rows.weights)
    return _renumbered(rows, positions(order, rows.indices.dtype))


def restored(rows: CSR, order: Array | None) -> CSR:
    """Give rows by vertex again; what `stored` did is undone."""
    return rows if order is None else _renumbered(rows, order)


def _renumbered(rows: CSR, number: Array) -> CSR:
    """Give the rows with vertex v called ``number[v]``."""
    sorting = ordering(rows.indices)
    source = number[sorting.rows_of(rows.indptr, rows.indices)]
    pairs = source, number[rows.indices], rows.number_of_vertices, False
    if rows.weights is None:
        return CSR(*sorting.merged_entries(*pairs), None)
    indptr, indices, edge = sorting.sorted_entries(*pairs)
    return CSR(indptr, indices, rows.weights[edge])
