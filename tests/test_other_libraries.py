"""Graphs as SciPy's, CuPy's and NetworkX's: nothing is lost on the way there and back."""

import graphs
import networkx as nx
import numpy as np
import pandas as pd
import pytest

from glp_rapids import as_graph, compress


def arrays_of(graph):
    return graph.indptr, graph.indices, graph.weights


def assert_same(found, expected):
    assert found.directed == expected.directed
    for one, other in zip(arrays_of(found), arrays_of(expected), strict=True):
        assert (one is None) == (other is None)
        assert one is None or np.array_equal(one, other)


@pytest.mark.parametrize("name", graphs.GRAPHS)
def test_networkx_and_back(name):
    graph = as_graph(**graphs.GRAPHS[name](), device="cpu")
    found = graph.to_networkx()
    assert found.is_directed() == graph.directed
    assert len(found) == graph.number_of_vertices
    loops = nx.number_of_selfloops(found)
    assert graph.number_of_edges == (1 if graph.directed else 2) * found.size() - (
        0 if graph.directed else loops
    )
    if graph.number_of_vertices and graph.number_of_edges:
        weight = None if graph.weights is None else "weight"
        back = as_graph(found, weight=weight, device="cpu")
        assert_same(back, graph)
        ids = graph.external()
        nodes = list(ids.itertuples(index=False, name=None)) if ids.ndim > 1 else ids.tolist()
        assert list(found) == back.external().tolist() == nodes


@pytest.mark.parametrize("name", graphs.GRAPHS)
def test_the_adjacency_matrix_is_networkx_s(name):
    graph = as_graph(**graphs.GRAPHS[name](), device="cpu")
    found = graph.adjacency()
    size = graph.number_of_vertices
    assert found.shape == (size, size)
    assert found.dtype == np.float64
    if size:
        expected = nx.to_scipy_sparse_array(graph.to_networkx(), dtype=float)
        assert (found != expected).nnz == 0
        back = as_graph(found, directed=graph.directed, device="cpu")
        weights = np.ones(graph.number_of_edges) if graph.weights is None else graph.weights
        assert np.array_equal(back.indices, graph.indices)
        assert np.array_equal(back.weights, weights)


def test_the_matrix_is_a_copy():
    graph = as_graph(pd.DataFrame({"src": [0, 1], "dst": [1, 2], "w": [2.0, 3.0]}), weight="w",
                     device="cpu")  # fmt: skip
    matrix = graph.adjacency()
    matrix.data[:] = 0
    matrix.indices[:] = 0
    assert graph.weights.tolist() == [2, 2, 3, 3]
    assert graph.indices.tolist() == [1, 0, 2, 1]


def test_compressed_graphs_are_decoded():
    frame = pd.DataFrame({"src": ["a", "b"], "dst": ["b", "c"]})
    graph = as_graph(frame, device="cpu")
    packed = compress(graph)
    assert (packed.adjacency() != graph.adjacency()).nnz == 0
    assert nx.utils.graphs_equal(packed.to_networkx(), graph.to_networkx())


@pytest.mark.gpu
@pytest.mark.parametrize("weight", [None, "w"])
def test_on_a_gpu_the_matrix_is_cupy_s(weight):
    sparse = pytest.importorskip("cupyx.scipy.sparse")
    frame = pd.DataFrame({"src": ["a", "b", "c"], "dst": ["b", "c", "c"], "w": [2, 3, 5]})
    graph = as_graph(frame, weight=weight, device="gpu")
    found = graph.adjacency()
    assert sparse.isspmatrix_csr(found)
    expected = as_graph(frame, weight=weight, device="cpu")
    assert np.array_equal(found.get().toarray(), expected.adjacency().toarray())
    assert nx.utils.edges_equal(
        graph.to_networkx().edges(data=True), expected.to_networkx().edges(data=True)
    )
