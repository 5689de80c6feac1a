"""Louvain and Leiden by the backend, as by NetworkX."""

import functools
import random

import networkx as nx
import networkx_graphs
import numpy as np
import pytest
from networkx_graphs import awkward, convert

from glp_rapids.networkx.backend import BackendInterface
from glp_rapids.networkx.graph import FROM_3_7

_registered = networkx_graphs.registered  # a fixture

MULTILEVEL = ("louvain", "leiden")


def served(name, what="communities"):
    """A function of the backend, by which modularity is made large."""
    function = getattr(BackendInterface, f"{name}_{what}")
    return functools.partial(function, metric="modularity") if name == "leiden" else function


@pytest.mark.parametrize("name", MULTILEVEL)
def test_communities_of_planted_ones(name):
    graph = nx.planted_partition_graph(8, 30, 0.7, 0.01, seed=3)
    find = served(name)
    found = find(convert(graph), weight=None, seed=1)
    assert type(found) is list
    assert set(map(frozenset, found)) == set(map(frozenset, graph.graph["partition"]))


@pytest.mark.parametrize("name", MULTILEVEL)
@pytest.mark.parametrize("create_using", [nx.Graph, nx.MultiGraph])
def test_levels_are_partitions_each_of_parts_of_the_one_before(name, create_using):
    graph = awkward(create_using, 5, nodes=150, edges=300)
    there = convert(graph, "weight")
    partitions, communities = served(name, "partitions"), served(name)
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


@pytest.mark.parametrize("kind", [int, float, np.int32, np.float64])
@pytest.mark.parametrize("create_using", [nx.Graph, nx.DiGraph])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NetworkX divides by 0
def test_modularity_without_weight(create_using, kind):
    graph = create_using([(0, 1, {"weight": kind(0)}), (1, 2, {"weight": kind(0)})])
    there, parts = convert(graph, "weight"), [{0, 1}, {2}]
    try:
        expected = nx.community.modularity.orig_func(graph, parts)
    except ZeroDivisionError:
        with pytest.raises(ZeroDivisionError, match="sum to 0"):
            BackendInterface.modularity(there, parts)
    else:
        found = BackendInterface.modularity(there, parts)
        np.testing.assert_equal(found, expected)


@pytest.mark.parametrize("name", MULTILEVEL)
def test_graphs_without_weight(name):
    find = served(name)
    levels = served(name, "partitions")
    for size in (0, 3):
        there = convert(nx.empty_graph(size), "weight")
        assert find(there) == [{node} for node in range(size)]
        assert list(levels(there)) == [[{node} for node in range(size)]]
    weightless = convert(nx.Graph([(0, 1, {"weight": 0})]), "weight")
    if FROM_3_7 and name == "louvain":
        assert find(weightless) == [{0}, {1}]
        assert list(levels(weightless)) == [[{0}, {1}]]
        return
    with pytest.raises(ZeroDivisionError):
        find(weightless)
    with pytest.raises(ZeroDivisionError):
        list(levels(weightless))


@pytest.mark.parametrize("create_using", [nx.Graph, nx.MultiGraph])
def test_the_constant_potts_model(create_using):
    graph = create_using(nx.planted_partition_graph(8, 30, 0.7, 0.01, seed=3))
    planted = set(map(frozenset, graph.graph["partition"]))
    options = {"weight": None, "metric": "cpm", "resolution": 0.3, "seed": 1}
    there = convert(graph)
    found = BackendInterface.leiden_communities(there, **options)
    assert set(map(frozenset, found)) == planted
    *parts, last = BackendInterface.leiden_partitions(there, **options)
    assert last == found
    assert BackendInterface.leiden_communities(there, max_level=len(parts), **options) == parts[-1]
    # no community is denser than one with an edge between any two
    alone = BackendInterface.leiden_communities(there, **{**options, "resolution": 1.5})
    assert len(alone) == 240


@pytest.mark.skipif(not FROM_3_7, reason="NetworkX has no Leiden of its own before 3.7")
@pytest.mark.parametrize("resolution", [0.05, 0.3, 0.9])
def test_as_much_of_the_constant_potts_model_as_networkx_finds(resolution):
    graph = awkward(nx.Graph, 5, nodes=150, edges=300)
    options = {"resolution": resolution, "seed": 1}
    found = nx.community.leiden_communities(graph, backend="glp_rapids", **options)
    theirs = nx.community.leiden_communities(graph, backend="networkx", **options)
    alone, ours, wanted = (
        nx.community.constant_potts_model(graph, communities, resolution=resolution)
        for communities in ([{node} for node in graph], found, theirs)
    )
    assert ours - alone >= 0.9 * (wanted - alone) > 0


def test_what_only_the_leiden_of_networkx_has_is_left_to_it():
    graph = nx.path_graph(4)
    for options, reason in (
        ({"theta": 0.5}, "theta"), ({"metric": "barber_modularity"}, "metric must be one of"),
    ):  # fmt: skip
        assert reason in BackendInterface.can_run("leiden_communities", (graph,), options)
    assert BackendInterface.can_run("leiden_communities", (graph,), {"metric": "cpm"}) is True
    assert "directed" in BackendInterface.can_run("leiden_partitions", (nx.DiGraph(),), {})


def test_a_threshold_ends_louvain():
    there = convert(nx.gnm_random_graph(300, 700, seed=1))
    all_levels = list(BackendInterface.louvain_partitions(there, None))
    few = list(BackendInterface.louvain_partitions(there, None, threshold=0.1))
    assert 1 < len(few) < len(all_levels)
    assert few == all_levels[: len(few)]
    assert BackendInterface.louvain_communities(there, None, threshold=0.1) == few[-1]
    assert BackendInterface.louvain_communities(there, None) == all_levels[-1]


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
    find = served(name)
    found = [find(convert(graph), None, seed=seed) for seed in (1, 2, None)]
    assert found == [find(convert(shuffled), None, seed=seed) for seed in (1, 2, None)]
    assert found[0] != found[1]
