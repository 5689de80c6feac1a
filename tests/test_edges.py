"""Graphs as tables of edges."""

import graphs
import pandas as pd
import pytest
from built_graphs import same
from hypothesis import given

from glp_rapids import as_graph, contract, label_propagation


def read_again(graph):
    weight = {} if graph.weights is None else {"weight": "weight"}
    number = len(graph.vertices.columns)
    source, destination = (
        [f"{i}_{end}" for i in range(number)] if number > 1 else end for end in ("src", "dst")
    )
    return as_graph(
        graph.edges(), source=source, destination=destination, **weight,
        directed=graph.directed, vertices=graph.external(), device=graph.device,
    )  # fmt: skip


@pytest.mark.parametrize("name", graphs.GRAPHS)
def test_a_graph_is_read_back_from_its_edges(name, device):
    graph = as_graph(**graphs.GRAPHS[name](), device=device)
    same(read_again(graph), graph)


@given(graphs.edge_frames())
def test_any_graph_is_read_back_from_its_edges(edges):
    graph = as_graph(**edges, device="cpu")
    same(read_again(graph), graph)


def test_each_edge_is_a_row_by_source_and_destination():
    graph = as_graph(([2, 0, 1, 1], [1, 2, 1, 2]), directed=True, device="cpu")
    assert graph.edges().to_numpy().tolist() == [[0, 2], [1, 1], [1, 2], [2, 1]]
    graph = as_graph(pd.DataFrame({"src": ["b", "a", "c"], "dst": ["a", "c", "c"],
                                   "weight": [0.5, 2.0, 3.0]}),
                     weight="weight", device="cpu")  # fmt: skip
    assert graph.edges().to_numpy().tolist() == [["a", "b", 0.5], ["a", "c", 2.0], ["c", "c", 3.0]]


def test_ids_of_several_columns_are_as_cugraph_names_them():
    rows = pd.DataFrame({"a": [1, 2], "b": ["x", "y"], "c": [2, 1], "d": ["y", "z"]})
    graph = as_graph(rows, source=["a", "b"], destination=["c", "d"], device="cpu")
    assert graph.edges().columns.tolist() == ["0_src", "1_src", "0_dst", "1_dst"]
    same(read_again(graph), graph)


def test_communities_that_were_contracted_are_a_table(device):
    edges = pd.DataFrame({"src": [0, 0, 1, 3, 3, 4, 2], "dst": [1, 2, 2, 4, 5, 5, 3]})
    found = label_propagation(edges, device=device)
    small = contract(edges, found, device=device).edges()
    assert small.columns.tolist() == ["src", "dst", "weight"]
    assert int(small["weight"].sum()) == len(edges)


def test_a_table_is_the_callers():
    graph = as_graph(([0, 1], [1, 2], [5.0, 6.0]), directed=True, device="cpu")
    table = graph.edges()
    table.loc[:, "weight"] = 7.0
    table.loc[:, "src"] = 9
    assert graph.weights.tolist() == [5, 6]
    assert graph.external().tolist() == [0, 1, 2]
