"""Quotient graphs: every edge of the graph is in the contracted one, and modularity stays."""

import graphs
import networkx as nx
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from glp_rapids import as_graph, compress, contract, label_propagation, modularity


def dense(graph):
    """The weights as a matrix, in which an undirected loop is what it weighs."""
    n = graph.number_of_vertices
    matrix = np.zeros((n, n), dtype=object)
    weights = np.ones(graph.number_of_edges, int) if graph.weights is None else graph.weights
    for u, v, weight in zip(graph.row_indices(), graph.indices, weights.tolist(), strict=True):
        matrix[u, v] += weight
    return matrix


def assert_contracts(graph, labels):
    found = graph.frame({"partition": labels})
    small = contract(graph, found)
    distinct = sorted(set(labels.tolist()))
    assert small.external().tolist() == distinct
    assert small.directed == graph.directed
    member = np.array([[label == one for one in labels.tolist()] for label in distinct], object)
    member = member.reshape(len(distinct), labels.size)
    whole = dense(graph)
    expected = member @ whole @ member.T
    if not graph.directed:
        for place, label in enumerate(distinct):
            inside = labels == label
            block = whole[np.ix_(inside, inside)]
            expected[place, place] = np.triu(block).sum()
    np.testing.assert_allclose(dense(small).astype(float), expected.astype(float), rtol=1e-12)
    if graph.weights is None or graph.weights.dtype.kind == "i":
        assert small.weights.dtype == np.int64
        assert (dense(small) == expected).all()
    alone = small.frame({"partition": np.arange(len(distinct))})
    np.testing.assert_allclose(modularity(small, alone), modularity(graph, found), atol=1e-12)


@pytest.mark.parametrize("name", graphs.GRAPHS)
def test_communities_become_vertices(name):
    graph = as_graph(**graphs.GRAPHS[name](), device="cpu")
    found = label_propagation(graph)
    assert_contracts(graph, found["partition"].to_numpy())
    assert_contracts(graph, np.arange(graph.number_of_vertices) // 7 * 10 - 3)


@given(graphs.edge_frames(), st.lists(st.integers(-2, 5), min_size=20, max_size=20))
def test_any_partition(edges, labels):
    graph = as_graph(**edges, device="cpu")
    assert_contracts(graph, np.array(labels[: graph.number_of_vertices], np.int64))


def test_as_networkx_does():
    graph = as_graph(**graphs.GRAPHS["random"](), device="cpu")
    found = label_propagation(graph)
    G = nx.Graph(zip(graph.row_indices().tolist(), graph.indices.tolist(), strict=True))
    blocks = found.reset_index().groupby("partition")["index"].apply(set).tolist()
    quotient = nx.quotient_graph(G, blocks, relabel=True)
    small = contract(graph, found)
    matrix = dense(small)
    for u, v, weight in quotient.edges(data="weight"):
        assert matrix[u, v] == weight
    assert [matrix[i, i] for i in quotient] == [quotient.nodes[i]["nedges"] for i in quotient]


def assert_contracts_the_same(edges, seed):
    graph = as_graph(**edges, device="cpu")
    labels = np.random.default_rng(seed).integers(0, 1 + seed % 7, graph.number_of_vertices)
    partition = graph.frame({"partition": labels})
    small = contract(graph, partition, device="cpu")
    found = contract(graph, partition, device="gpu")
    assert found.device == "gpu"
    for name in ("indptr", "indices", "weights"):
        one, other = getattr(found, name).get(), getattr(small, name)
        assert one.dtype == other.dtype
        assert one.tolist() == other.tolist()


@pytest.mark.gpu
@pytest.mark.parametrize("name", graphs.GRAPHS)
def test_a_gpu_contracts_the_same(name):
    for seed in (5, 6):
        assert_contracts_the_same(graphs.GRAPHS[name](), seed)


@pytest.mark.gpu
@given(graphs.edge_frames(), st.integers(0, 99))
def test_a_gpu_contracts_any_graph_the_same(edges, seed):
    assert_contracts_the_same(edges, seed)


def test_labels_of_any_kind_and_rows_in_any_order():
    edges = pd.DataFrame({"src": ["a", "b", "c", "d"], "dst": ["b", "c", "d", "a"]})
    found = pd.DataFrame({"vertex": list("dcba"), "partition": ["y", "x", "x", "y"]})
    small = contract(edges, found)
    assert small.external().tolist() == ["x", "y"]
    assert small.weights.tolist() == [1, 2, 2, 1]
    assert label_propagation(small)["vertex"].tolist() == ["x", "y"]
    graph = compress(as_graph(edges))
    assert contract(graph, found).weights.tolist() == [1, 2, 2, 1]


def test_integers_are_exact_and_too_many_refused():
    edges = graphs.edges([(0, 2), (1, 3)], [2**61, 2**61 + 1])
    found = pd.DataFrame({"vertex": range(4), "partition": [0, 0, 1, 1]})
    small = contract(**edges, partition=found)
    assert small.weights.tolist() == [2**62 + 1] * 2
    edges = graphs.edges([(0, 2), (1, 3)], [2**62, 2**62])
    with pytest.raises(ValueError, match="add up to more than 2"):
        contract(**edges, partition=found)


@pytest.mark.parametrize(
    ("found", "error", "words"),
    [
        ({"vertex": [0], "partition": [0]}, ValueError, "partition lacks 1 vertices"),
        ({"vertex": [0, 0, 1], "partition": [0] * 3}, ValueError, "several rows for 1 vertices"),
        ({"vertex": [0, 1], "partition": [0, None]}, ValueError, "null"),
        ({"vertex": [0, 9], "partition": [0, 1]}, ValueError, "no vertex of the graph"),
        ({"vertex": [0, 1]}, ValueError, "partition has no column 'partition'"),
    ],
)
def test_bad_partitions(found, error, words):
    edges = pd.DataFrame({"src": [0], "dst": [1]})
    with pytest.raises(error, match=words):
        contract(edges, pd.DataFrame(found))
    with pytest.raises(TypeError, match="partition must be a frame"):
        contract(edges, [0, 1])
