"""Groups of vertices inside a graph: induced subgraphs, what they hold, and their cores.

Everything is added exactly, so that no order of addition shows.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from glp_rapids.common.scans import exclusive_sums, places_where
from glp_rapids.common.segments import integer_sums, segment_sums
from glp_rapids.device import any_true, array_module
from glp_rapids.graph import vertex_ids
from glp_rapids.graph.graph import Graph
from glp_rapids.graph.rows import CSR

Array = Any


class Groups:
    """Items in groups 0..k-1, numbered by the group key, which is below ``possible``."""

    def __init__(self, keys: Array, possible: int) -> None:
        xp = array_module(keys)
        present = xp.zeros(possible, dtype=bool)
        present[keys] = True
        ranks = xp.cumsum(present)
        self.of = (ranks - 1)[keys]
        number = int(ranks[-1]) if possible else 0
        # NumPy sorts what has 16 bits by radix
        small = xp is np and number <= 1 << 16
        self._order = xp.argsort(self.of.astype(np.uint16) if small else self.of, kind="stable")
        self._ends = xp.searchsorted(self.of[self._order], xp.arange(number + 1))
        self.size = self._ends[1:] - self._ends[:-1]

    def sums(self, values: Array) -> Array:
        """Add up integers or truth values."""
        return integer_sums(values[self._order], self._ends)

    def totals(self, *values: Array) -> Array:
        """Add up float64 that are not negative, correctly rounded; a row for each array.

        All at once: groups are small, and there are dozens of operations to it.
        """
        xp, size = array_module(self.of), self.of.size
        ends = [self._ends[1:] + i * size for i in range(len(values))]
        together = xp.concatenate([one[self._order] for one in values])
        totals = segment_sums(together, xp.concatenate([self._ends[:1], *ends]))
        if any_true(xp.isinf(totals)):
            raise ValueError(
                "weight: the weights in a group add up to more than float64 can hold; divide them"
            )
        return totals.reshape(len(values), self.size.size)


def induced(graph: Graph, kept: Array) -> Graph:
    """Cut out the graph among the vertices ``kept``, which ascend; they become 0, 1, ..."""
    # Numba takes longer to import than a small graph takes to build
    if graph.device == "cpu":
        from glp_rapids.graph.subgraph_cpu import induced as rows_of
    else:
        from glp_rapids.graph.subgraph_gpu import induced as rows_of

    rows = rows_of(graph, kept)
    return Graph(rows.indptr, rows.indices, rows.weights, False, _numbered(kept.size, graph))


def without(graph: Graph, entries: Array) -> Graph:
    """Leave the marked entries out; all vertices stay."""
    stays = places_where(~entries)
    indptr = exclusive_sums(~entries)[graph.indptr].astype(graph.indptr.dtype, copy=False)
    weights = None if graph.weights is None else graph.weights[stays]
    return Graph(indptr, graph.indices[stays], weights, graph.directed, graph.vertices)


def copies(graph: Graph, number: int) -> Graph:
    """Put so many copies of a graph side by side: vertex v of copy i is i * vertices + v."""
    if number == 1:
        return graph
    xp, size = array_module(graph.indptr), graph.number_of_vertices
    copy = xp.arange(number)[:, None]
    ends = (graph.indptr[1:] + copy * graph.number_of_edges).ravel()
    indptr = xp.concatenate([graph.indptr[:1], ends.astype(graph.indptr.dtype, copy=False)])
    indices = (graph.indices + (copy * size).astype(graph.indices.dtype)).ravel()
    weights = None if graph.weights is None else xp.tile(graph.weights, number)
    return Graph(indptr, indices, weights, graph.directed, _numbered(number * size, graph))


def _numbered(size: int, graph: Graph) -> vertex_ids.VertexIds:
    """Name vertices 0, 1, ..., in frames of the kind that those of a graph have."""
    names = vertex_ids.IdColumn(array_module(graph.indptr).arange(size), "integer", None)
    return vertex_ids.VertexIds((names,), graph.vertices.kind)


def inside(graph: Graph, group: Array) -> Array:
    """Tell of every entry whether it joins two different members of one group."""
    row = _rows(graph)
    mine = group[row]
    return (mine >= 0) & (mine == group[graph.indices]) & (row != graph.indices)


def _rows(graph: Graph) -> Array:
    """Return the row of every entry; kept, since graphs that are looked at here are small."""
    return graph.keep("row of every entry", graph.row_indices)


def masked(graph: CSR, which: Array) -> CSR:
    """Copy rows with a weight of 0 on all entries but the marked."""
    xp = array_module(which)
    weights = xp.ones(which.size, dtype=np.int64) if graph.weights is None else graph.weights
    return CSR(graph.indptr, graph.indices, weights * which)


def components(graph: Graph, which: Array) -> Array:
    """Find connected components over the marked entries: each is named by its smallest vertex."""
    xp = array_module(which)
    entry = xp.flatnonzero(which)
    row, column = _rows(graph)[entry].astype(np.int64), graph.indices[entry]
    starts = xp.ones(entry.size, dtype=bool)
    starts[1:] = row[1:] != row[:-1]
    first = xp.flatnonzero(starts)
    label = xp.arange(graph.number_of_vertices)
    while True:
        lower = label.copy()
        lower[row[first]] = xp.minimum(label[row[first]], _smallest(row, label[column], first))
        lower = lower[lower]
        if not any_true(lower != label):
            return label
        label = lower


def _smallest(row: Array, label: Array, first: Array) -> Array:
    """Find the smallest label of each row; rows ascend, and begin at ``first``."""
    xp = array_module(label)
    if xp is np:
        return np.minimum.reduceat(label, first) if first.size else label
    # sorted by row and label, a row begins with the smallest label around it
    return xp.sort(row << 32 | label)[first] & 0xFFFFFFFF


def core(
    graph: Graph, community: Array, total: Array, minimum_share: float, minimum_partners: int
) -> Array:
    """Drop members with too small a share or too few partners inside, until none is left to drop.

    What stays is the largest set that satisfies both, so it does not depend on any order.
    """
    xp = array_module(community)
    while True:
        weak = _weak(graph, community, total, minimum_share, minimum_partners)
        if not any_true(weak):
            return community
        community = xp.where(weak, -1, community)


def _weak(
    graph: Graph, community: Array, total: Array, minimum_share: float, minimum_partners: int
) -> Array:
    """Mark the members with too small a share or too few partners inside."""
    same = inside(graph, community)
    weak = integer_sums(same, graph.indptr) < minimum_partners
    # without self-loops, as `inside` leaves them out
    weak |= segment_sums(masked(graph, same).weights, graph.indptr) < minimum_share * total
    return weak & (community >= 0)


def largest_core(
    graph: Graph, total: Array, minimum_share: float, minimum_partners: int
) -> tuple[Graph, Array]:
    """Cut a graph down to the `core` of all its vertices together; tell which are left.

    Cores of any communities are within it: more company makes nobody weaker.
    """
    xp = array_module(total)
    left = xp.arange(total.size)
    while True:
        together = xp.zeros(left.size, np.int64)
        weak = _weak(graph, together, total[left], minimum_share, minimum_partners)
        if not any_true(weak):
            return graph, left
        stays = xp.flatnonzero(~weak)
        graph, left = induced(graph, stays), left[stays]


def connected_core(
    graph: Graph, agreed: Array, total: Array, minimum_share: float, minimum_partners: int
) -> Array:
    """Find components over the agreed entries, cut to cores that hang together; else -1."""
    xp = array_module(agreed)
    community = components(graph, agreed)
    while True:
        cut = core(graph, community, total, minimum_share, minimum_partners)
        # what was cut may have been the bridge between two
        apart = components(graph, agreed & inside(graph, cut))
        apart = xp.where(cut >= 0, apart, -1)
        if not any_true(apart != community):
            return community
        community = apart
