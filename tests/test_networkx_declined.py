"""What the backend declines, or leaves to NetworkX, and why."""

import math

import networkx as nx
import networkx_graphs
import numpy as np
import pytest
from networkx_graphs import convert

from glp_rapids.networkx.backend import BackendInterface
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
    graph = nx.path_graph(4)
    with nx.config(backend_priority=["glp_rapids"]):
        assert nx.has_path(graph, 0, 3)
        assert nx.shortest_path(graph, 0, 2) == [0, 1, 2]
        assert not graph.__networkx_cache__.get("backends")
        assert nx.shortest_path(graph, 0)[3] == [0, 1, 2, 3]
        assert list(graph.__networkx_cache__["backends"]) == ["glp_rapids"]
    assert BackendInterface.should_run("has_path", (graph, 0, 3), {}) is True
    assert "not converted" in BackendInterface.should_run("has_path", (nx.path_graph(2), 0, 1), {})


def test_every_difference_is_written_down():
    for name, entry in info()["functions"].items():
        assert len(entry["additional_docs"]) > 60, name
