"""Louvain and Leiden by the backend, as by NetworkX."""

import random

import networkx as nx
import networkx_graphs
import pytest
from networkx_graphs import awkward, convert

from glp_rapids.networkx.backend import BackendInterface

_registered = networkx_graphs.registered  # a fixture

MULTILEVEL = ("louvain", "leiden")


@pytest.mark.parametrize("name", MULTILEVEL)
def test_communities_of_planted_ones(name):
    graph = nx.planted_partition_graph(8, 30, 0.7, 0.01, seed=3)
    find = getattr(BackendInterface, f"{name}_communities")
    found = find(convert(graph), weight=None, seed=1)
    assert type(found) is list
    assert set(map(frozenset, found)) == set(map(frozenset, graph.graph["partition"]))


@pytest.mark.parametrize("name", MULTILEVEL)
@pytest.mark.parametrize("create_using", [nx.Graph, nx.MultiGraph])
def test_levels_are_partitions_each_of_parts_of_the_one_before(name, create_using):
    graph = awkward(create_using, 5, nodes=150, edges=300)
    there = convert(graph, "weight")
    partitions = getattr(BackendInterface, f"{name}_partitions")
    communities = getattr(BackendInterface, f"{name}_communities")
    below = [{node} for node in graph]
    for level, found in enumerate(partitions(there, seed=3), 1):
        assert nx.community.is_partition(graph, found)
        home = {node: number for number, nodes in enumerate(found) for node in nodes}
        assert all(len({home[node] for node in nodes}) == 1 for nodes in below)
        assert len(found) < len(below)
        assert communities(there, max_level=level, seed=3) == found
        below = found
    assert level > 1
    best = communities(there, seed=3)
    reached = nx.community.modularity(graph, best)
    assert reached >= nx.community.modularity(graph, below) - 1e-12
    assert reached > nx.community.modularity(graph, nx.community.louvain_communities(graph)) - 0.03
    if name == "leiden":
        assert all(nx.is_connected(graph.subgraph(nodes)) for nodes in best)
    with pytest.raises(ValueError, match="max_level argument must be a positive integer"):
        communities(there, max_level=0)


@pytest.mark.parametrize("name", MULTILEVEL)
def test_graphs_without_weight(name):
    find = getattr(BackendInterface, f"{name}_communities")
    levels = getattr(BackendInterface, f"{name}_partitions")
    for size in (0, 3):
        there = convert(nx.empty_graph(size), "weight")
        assert find(there) == [{node} for node in range(size)]
        assert list(levels(there)) == [[{node} for node in range(size)]]
    weightless = convert(nx.Graph([(0, 1, {"weight": 0})]), "weight")
    with pytest.raises(ZeroDivisionError):
        find(weightless)
    with pytest.raises(ZeroDivisionError):
        list(levels(weightless))


def test_a_threshold_ends_louvain():
    there = convert(nx.gnm_random_graph(300, 700, seed=1))
    all_levels = list(BackendInterface.louvain_partitions(there, None))
    few = list(BackendInterface.louvain_partitions(there, None, threshold=0.1))
    assert 1 < len(few) < len(all_levels)
    assert few == all_levels[: len(few)]


def test_directed_louvain_is_left_to_networkx():
    graph = nx.DiGraph([(0, 1), (1, 0), (2, 3)])
    assert "directed" in BackendInterface.can_run("louvain_communities", (graph,), {})
    with pytest.raises(NotImplementedError, match="directed"):
        BackendInterface.louvain_partitions(convert(graph), None)
    with nx.config(backend_priority=["glp_rapids"]):
        assert len(nx.community.louvain_communities(graph)) == 2


@pytest.mark.parametrize("name", MULTILEVEL)
def test_a_seed_fixes_communities_whatever_the_order_of_edges(name):
    graph = nx.gnm_random_graph(300, 500, seed=1)
    edges = list(graph.edges)
    random.Random(1).shuffle(edges)
    shuffled = nx.empty_graph(300)
    shuffled.add_edges_from((v, u) for u, v in edges)
    find = getattr(BackendInterface, f"{name}_communities")
    found = [find(convert(graph), None, seed=seed) for seed in (1, 2, None)]
    assert found == [find(convert(shuffled), None, seed=seed) for seed in (1, 2, None)]
    assert found[0] != found[1]
