"""Graphs of sparse matrices, and of their entries as edges."""

import numpy as np
import scipy.sparse as sp
from graphs import random_pairs

from glp_rapids import as_graph
from glp_rapids.graph.graph import Graph


# under 64-bit starts SciPy would widen the indices
def csr_of(graph):
    data = np.ones(graph.number_of_edges, bool) if graph.weights is None else graph.weights
    arrays = data, graph.indices, graph.indptr.astype(np.int32)
    return sp.csr_array(arrays, shape=(graph.number_of_vertices,) * 2)


def built(graph, **options):
    made = as_graph(graph, device="cpu", **options)
    arrays = made.indptr, made.indices, made.weights
    assert {type(array) for array in arrays} <= {np.ndarray, type(None)}
    return made


def same(one, other):
    assert (one.directed, one.number_of_vertices) == (other.directed, other.number_of_vertices)
    assert one.external().equals(other.external())
    assert one.vertices.columns[0].dtype == other.vertices.columns[0].dtype
    for name in ("indptr", "indices", "weights"):
        mine, its = getattr(one, name), getattr(other, name)
        assert (mine is None) == (its is None)
        if mine is not None:
            assert mine.dtype == its.dtype
            assert mine.tobytes() == its.tobytes()


def by_edges(matrix, directed=False, multigraph="merge"):
    """What a matrix means: an edge an entry; if they are not symmetric, both ways."""
    entries = matrix.tocoo()
    pairs = tuple(end.astype(np.int64) for end in (entries.row, entries.col))
    values = () if entries.data.dtype == bool else (entries.data,)
    options = {"vertices": np.arange(matrix.shape[0]), "multigraph": multigraph}
    graph = built((*pairs, *values), directed=True, **options)
    if directed:
        return graph
    rows = np.repeat(np.arange(graph.number_of_vertices), graph.degree)
    weights = graph.indices if graph.weights is None else graph.weights
    known = dict(zip(zip(rows, graph.indices, strict=True), weights, strict=True))
    if graph.weights is None:
        known = dict.fromkeys(known, 1)
    if all(known.get((v, u)) == weight for (u, v), weight in known.items()):
        return Graph(graph.indptr, graph.indices, graph.weights, False, graph.vertices)
    return built((*pairs, *values), **options)


def symmetric(n, m, seed=3):
    pairs = np.array(random_pairs(n, m, seed))
    graph = built((pairs[:, 0], pairs[:, 1]))
    return csr_of(graph).astype(float)
