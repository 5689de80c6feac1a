"""The graph that structural diversity is about: undirected, no loops, no weights; and its edges."""

from __future__ import annotations

from functools import partial
from typing import Any

from glp_rapids.common.checks import check_truth
from glp_rapids.common.segments import segment_ids, segment_offsets
from glp_rapids.device import array_module
from glp_rapids.graph.build import csr_of_pairs
from glp_rapids.graph.graph import Graph
from glp_rapids.graph.rows import CSR

Array = Any


def simple(graph: Graph, symmetrize: bool) -> CSR:
    """Return the undirected, loop-free, unweighted CSR of a graph; kept on the graph.

    ``symmetrize``: take the edges of a directed graph as undirected ones. Asked of nobody, since
    what an ego-network of a directed graph is, the caller has to say.
    """
    refuse_directed(graph.directed, symmetrize)
    return graph.keep("simple", partial(_without_loops, graph, False))


def refuse_directed(directed: bool, symmetrize: bool) -> None:
    """Raise if a graph is directed, and nobody has said that its edges are to be undirected."""
    check_truth(symmetrize=symmetrize)
    if directed and not symmetrize:
        raise ValueError(
            "graph is directed, and this is defined for undirected graphs; pass symmetrize=True "
            "to take every edge as undirected"
        )


def weights(graph: Graph) -> Array | None:
    """Return the weight of every entry of the simple CSR; those of both directions are added."""
    return graph.keep("simple weights", lambda: _without_loops(graph, True).weights)


def _without_loops(graph, weighted):
    xp = array_module(graph.indptr)
    weights = graph.weights if weighted else None
    rows = graph.row_indices()
    loops = rows == graph.indices
    loop = xp.flatnonzero(loops)
    if graph.directed:
        proper = ~loops
        arrays = csr_of_pairs(
            rows[proper],
            graph.indices[proper],
            None if weights is None else weights[proper],
            graph.number_of_vertices,
            symmetric=True,
        )
        return CSR(*arrays)
    if not loop.size:
        return CSR(graph.indptr, graph.indices, weights)
    proper = ~loops
    return CSR(
        graph.indptr - xp.searchsorted(loop, graph.indptr),
        graph.indices[proper],
        None if weights is None else weights[proper],
    )


def rows_of_vertices(csr: CSR, vertices: Array) -> tuple[Array, Array, Array]:
    """Put the rows of some vertices one after another.

    Returns where each begins (one more than vertices), and of every entry there which of the
    vertices it belongs to and its place in ``csr.indices``.
    """
    xp = array_module(csr.indptr)
    begin = csr.indptr[vertices]
    offsets = segment_offsets(csr.indptr[vertices + 1] - begin)
    row = segment_ids(offsets, csr.indices.dtype)
    return offsets, row, (begin - offsets[:-1])[row] + xp.arange(row.size)
