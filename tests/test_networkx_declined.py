"""What the backend declines, or leaves to NetworkX, and why."""

import inspect
import math
import re
from itertools import product

import networkx as nx
import networkx_graphs
import numpy as np
import pytest
from networkx_graphs import convert, outcome

from glp_rapids.networkx import backend
from glp_rapids.networkx.backend import FEW, FEW_WITH_WEIGHTS, BackendInterface
from glp_rapids.networkx.info import info

_registered = networkx_graphs.registered  # a fixture


INEXACT = (
    (np.float16(1.5), np.float16(2), "another precision"),
    (np.float32(1.5), 2.5, "another precision"),
    (0.5, 2**53, "integers whose sums"),
    (2**61, 2**61, "integers whose sums"),
    (1e308, 1e308, "longer than float64"),
    (np.float32(1.2e38), np.float32(1), "longer than float32"),
    (np.float32(1e-40), np.float32(1), "so small"),
)


@pytest.mark.parametrize(("first", "second", "reason"), INEXACT)
def test_sums_that_would_differ_are_left_to_networkx(first, second, reason):
    graph = nx.Graph()
    graph.add_weighted_edges_from([("a", "b", first), ("b", "c", second)])
    there = convert(graph, "weight")
    for name, others in (("single_source_dijkstra", ["a"]), ("all_pairs_dijkstra", [])):
        with pytest.raises(NotImplementedError, match=reason):
            getattr(BackendInterface, name)(there, *others)
    with nx.config(backend_priority=["glp_rapids"]):
        theirs = nx.single_source_dijkstra_path_length.orig_func(graph, "a")
        assert nx.single_source_dijkstra_path_length(graph, "a") == theirs
        assert dict(nx.all_pairs_dijkstra_path_length(graph))["a"] == theirs


DECLINED = (
    ("bfs_edges", {"source": 0, "sort_neighbors": sorted}, "sort_neighbors"),
    ("bfs_tree", {"source": 0, "sort_neighbors": sorted}, "sort_neighbors"),
    ("bfs_successors", {"source": 0, "sort_neighbors": sorted}, "sort_neighbors"),
    ("single_source_shortest_path", {"source": 0, "cutoff": "1"}, "cutoff must be a number"),
    ("bfs_edges", {"source": 0, "depth_limit": [1]}, "depth_limit must be a number"),
    ("dijkstra_path", {"source": 0, "target": 1, "weight": max}, "not the function"),
    ("descendants_at_distance", {"source": 0, "distance": "1"}, "distance must be a number"),
    ("shortest_path", {"weight": "weight", "method": "bellman-ford"}, "Bellman"),
    ("betweenness_centrality", {"weight": "weight"}, "by weights"),
    ("betweenness_centrality", {"k": 0}, "k must be"),
    ("louvain_communities", {"resolution": 0}, "resolution must be"),
    ("louvain_communities", {"threshold": -1}, "threshold must be"),
    ("leiden_communities", {"resolution": math.nan}, "resolution must be"),
)


@pytest.mark.parametrize(("name", "options", "reason"), DECLINED)
def test_what_is_declined(name, options, reason):
    assert reason in BackendInterface.can_run(name, (nx.path_graph(3),), options)
    kept = {key: value for key, value in options.items() if key in ("source", "target")}
    kept |= {"distance": 1} if "distance" in options else {}
    assert BackendInterface.can_run(name, (nx.path_graph(3),), kept) is True


def test_negative_weights_are_left_to_networkx():
    graph = nx.Graph()
    graph.add_weighted_edges_from([("a", "b", 1), ("b", "c", -2), ("a", "c", 1)])
    reason = BackendInterface.can_run("dijkstra_path", (graph, "a", "c"), {})
    assert "negative weights" in reason
    priority = nx.config(backend_priority=["glp_rapids"])
    with priority, pytest.raises(ValueError, match="Contradictory paths found"):
        nx.single_source_dijkstra(graph, "a")
    with pytest.raises(ValueError, match="method not supported: magic"):
        nx.shortest_path(graph, "a", "b", method="magic", backend="glp_rapids")


def test_a_search_between_two_nodes_does_not_convert():
    graph = nx.path_graph(FEW)
    with nx.config(backend_priority=["glp_rapids"]):
        assert nx.has_path(graph, 0, 3)
        assert nx.shortest_path(graph, 0, 2) == [0, 1, 2]
        assert not graph.__networkx_cache__.get("backends")
        assert nx.shortest_path(graph, 0)[3] == [0, 1, 2, 3]
        assert list(graph.__networkx_cache__["backends"]) == ["glp_rapids"]
    assert BackendInterface.should_run("has_path", (graph, 0, 3), {}) is True
    assert "not converted" in BackendInterface.should_run("has_path", (nx.path_graph(2), 0, 1), {})


UNWEIGHTED_CALLS = (
    ("single_source_shortest_path_length", (0,), {}),
    ("shortest_path", (0,), {}),
    ("shortest_path_length", (), {"target": 0}),
    ("bfs_edges", (), {"source": 0}),
    ("bfs_layers", (0,), {}),
    ("node_connected_component", (0,), {}),
    ("is_connected", (), {}),
    ("single_source_dijkstra", (0,), {"weight": None}),
)
WEIGHTED_CALLS = (
    ("single_source_dijkstra_path_length", (0,), {}),
    ("dijkstra_path", (0, 3), {}),
    ("shortest_path_length", (0, 3), {"weight": "weight"}),
)


@pytest.mark.parametrize(
    ("few", "call"),
    [*product([FEW], UNWEIGHTED_CALLS), *product([FEW_WITH_WEIGHTS], WEIGHTED_CALLS)],
)
def test_a_search_of_few_nodes_does_not_convert(few, call):
    name, others, options = call
    small, larger = nx.path_graph(few - 1), nx.path_graph(few)
    reason = BackendInterface.should_run(name, (small, *others), options)
    assert f"of {few - 1} nodes" in reason
    assert BackendInterface.should_run(name, (larger, *others), options) is True
    function, found = getattr(nx, name), []
    with nx.config(backend_priority=["glp_rapids"]):
        for graph in (small, larger):
            found.append(outcome(function, graph, *others, **options))
            assert bool(graph.__networkx_cache__.get("backends")) == (graph is larger)
    ours = outcome(function, small, *others, **options, backend="glp_rapids")  # at any size
    assert list(small.__networkx_cache__["backends"]) == ["glp_rapids"]
    assert ours == found[0]
    assert BackendInterface.should_run(name, (small, *others), options) is True  # it is there now


@pytest.mark.parametrize(
    ("name", "others"),
    [
        ("all_pairs_shortest_path_length", ()),  # reads the graph again and again
        ("shortest_path", ()),
        ("shortest_path", (0, 1, "weight")),  # may be another of several
        ("betweenness_centrality", ()),
        ("louvain_communities", ()),  # others than NetworkX's, at any size
        ("label_propagation_communities", ()),
    ],
)
def test_size_does_not_matter_where_results_or_times_would_differ(name, others):
    assert BackendInterface.should_run(name, (nx.path_graph(3), *others), {}) is True


@pytest.mark.parametrize(
    ("args", "options"),
    [
        ((), {"G": 1, "source": 2}),
        ((1,), {"source": 2, "weight": None}),
        ((1, 2, 3, 4, 5), {}),
        ((1, 2, 3, 4, 5, 6), {}),
        ((1,), {}),
        ((), {"G": 1}),
        ((1, 2), {"source": 3}),
        ((1, 2), {"stranger": 3}),
    ],
)
def test_arguments_are_bound_as_python_binds_them(args, options):
    signature = inspect.signature(BackendInterface.single_source_dijkstra)
    try:
        bound = signature.bind(*args, **options)
    except TypeError as error:
        with pytest.raises(TypeError, match=re.escape(str(error))):
            backend._arguments("single_source_dijkstra", args, options)
    else:
        bound.apply_defaults()
        found = backend._arguments("single_source_dijkstra", args, options)
        assert list(found.items()) == list(bound.arguments.items())


def test_every_difference_is_written_down():
    for name, entry in info()["functions"].items():
        assert len(entry["additional_docs"]) > 60, name
