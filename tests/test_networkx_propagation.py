"""Label propagation and modularity by the backend, as by NetworkX."""

import random

import networkx as nx
import networkx_graphs
import numpy as np
import pytest
from networkx.algorithms.community.quality import NotAPartition
from networkx_graphs import (
    CLASSES,
    LABELS,
    NAMES,
    awkward,
    convert,
    find,
    function,
    parts,
    unsettled,
    votes,
)

from glp_rapids.networkx.backend import BackendInterface
from glp_rapids.networkx.graph import FROM_3_7

_registered = networkx_graphs.registered  # a fixture


# modularity


@pytest.mark.parametrize("create_using", CLASSES)
@pytest.mark.parametrize("weight", ["weight", None, "absent"])
@pytest.mark.parametrize("seed", range(3))
def test_modularity_is_that_of_networkx(create_using, weight, seed, device):
    graph = awkward(create_using, seed)
    for count, resolution in ((1, 1), (4, 0), (9, 2.5)):
        found = parts(graph, count, seed)
        expected = nx.community.modularity(graph, found, weight, resolution)
        ours = nx.community.modularity(
            graph, iter(found), weight, resolution, backend="glp_rapids", device=device
        )
        assert type(ours) is float
        assert ours == pytest.approx(expected, rel=1e-12, abs=1e-12)


def test_modularity_of_weights_near_the_end_of_integers():
    graph = nx.Graph([(0, 1, {"weight": 2**62}), (1, 2, {"weight": 2**62}), (3, 4)])
    found = [{0, 1}, {2}, {3, 4}]
    expected = nx.community.modularity(graph, found)
    assert nx.community.modularity(graph, found, backend="glp_rapids") == pytest.approx(expected)


@pytest.mark.parametrize(
    "found",
    [
        [{0, 1}],
        [{0, 1}, {1, 2}],
        [[0, 0, 1], [2]],
        [{0, 1, 2, 3}],
        [{0, 1}, {2}, {"stranger"}],
        [],
    ],
)
def test_modularity_refuses_what_is_no_partition(found):
    for backend in ("networkx", "glp_rapids"):
        with pytest.raises(NotAPartition, match="not a valid partition"):
            nx.community.modularity(nx.path_graph(3), found, backend=backend)


@pytest.mark.parametrize("graph", [nx.null_graph(), nx.empty_graph(2, nx.DiGraph)])
def test_modularity_without_edges(graph):
    alone = [{node} for node in graph]
    for backend in ("networkx", "glp_rapids"):
        if FROM_3_7:
            assert nx.community.modularity(graph, alone, backend=backend) == 0
            continue
        with pytest.raises(ZeroDivisionError):
            nx.community.modularity(graph, alone, backend=backend)


# communities


STABLE = [
    *((name, cls, weight) for name in LABELS for cls in CLASSES for weight in (None, "weight")),
    *(("label_propagation_communities", cls, None) for cls in (nx.Graph, nx.MultiGraph)),
]


@pytest.mark.parametrize(("name", "create_using", "weight"), STABLE)
def test_communities_are_a_stable_partition(name, create_using, weight, device):
    options = {"device": device}
    if name in LABELS:
        options |= {"weight": weight, "seed": 5}
    for seed in range(3):
        graph = awkward(create_using, seed, edges=110 - 30 * seed)
        found = find(name, graph, **options)
        assert sorted(map(hash, graph)) == sorted(hash(node) for nodes in found for node in nodes)
        if name == "asyn_lpa_communities" and graph.is_directed():
            continue  # labels need not come to rest
        everything = name == "fast_label_propagation_communities"
        assert unsettled(graph, found, weight, everything) == []


@pytest.mark.parametrize("name", NAMES)
def test_pairs_come_together(name, device):
    # where both of a pair are in one class they swap labels for ever, which must not be the end
    graph = nx.Graph([(i, i + 1000) for i in range(1000)])
    found = find(name, graph, device=device)
    assert found == {frozenset({i, i + 1000}) for i in range(1000)}


@pytest.mark.parametrize("name", NAMES)
def test_cliques_are_found_as_by_networkx(name, device):
    graph = nx.disjoint_union_all([nx.complete_graph(n) for n in range(1, 9)])
    kinds = (int, str, lambda i: (i, "x"), lambda i: frozenset({i}))
    graph = nx.relabel_nodes(graph, {i: kinds[i % 4](i) for i in graph})
    assert find(name, graph, device=device) == set(map(frozenset, function(name)(graph)))


@pytest.mark.parametrize("name", NAMES)
def test_planted_communities_are_found_as_by_networkx(name, device):
    graph = nx.planted_partition_graph(8, 30, 0.7, 0.01, seed=3)
    planted = set(map(frozenset, graph.graph["partition"]))
    options = {} if name == "label_propagation_communities" else {"seed": 1}
    assert find(name, graph, device=device, **options) == planted
    assert set(map(frozenset, function(name)(graph, **options))) == planted


@pytest.mark.parametrize("name", NAMES)
def test_results_are_of_the_types_of_networkx(name):
    for graph in (nx.null_graph(), nx.path_graph(["a", "b"])):
        ours, theirs = (function(name)(graph, backend=b) for b in ("glp_rapids", "networkx"))
        assert type(ours) is type(theirs)
        ours, theirs = list(ours), list(theirs)
        assert ours == theirs
        assert all(type(nodes) is set for nodes in ours)


def test_label_propagation_communities_are_undirected():
    for graph in (nx.DiGraph([(0, 1)]), convert(nx.DiGraph([(0, 1)]))):
        with pytest.raises(nx.NetworkXNotImplemented):
            nx.community.label_propagation_communities(graph)
    with pytest.raises(nx.NetworkXNotImplemented):
        BackendInterface.label_propagation_communities(convert(nx.DiGraph([(0, 1)])))


@pytest.mark.parametrize("create_using", CLASSES)
@pytest.mark.parametrize("weight", [None, "weight"])
@pytest.mark.parametrize("everything", [True, False])
def test_directions_and_parallel_edges_count_as_in_networkx(create_using, weight, everything):
    graph = awkward(create_using, 6)
    there = convert(graph, "weight").csr(weight, count=everything, fold=everything, device="cpu")
    weights = np.ones(there.indices.size) if there.weights is None else there.weights
    for node, place in (own := {node: i for i, node in enumerate(graph)}).items():
        row = slice(there.indptr[place], there.indptr[place + 1])
        heard = dict(zip(there.indices[row].tolist(), weights[row].tolist(), strict=True))
        assert heard == votes(graph, node, own, weight, everything)


@pytest.mark.parametrize("name", LABELS)
def test_weights_decide(name):
    graph = nx.Graph([("a", "b"), ("b", "c"), ("c", "d")])
    graph["a"]["b"]["w"] = graph["c"]["d"]["w"] = 3
    assert find(name, graph, weight="w") == {frozenset("ab"), frozenset("cd")}


SEEDS = (
    7,
    random.Random(7),
    np.random.RandomState(7),
    np.random.default_rng(7),
    np.random,
    None,
)


@pytest.mark.parametrize("seed", SEEDS, ids=lambda seed: type(seed).__name__)
@pytest.mark.parametrize("name", LABELS)
def test_seeds_of_every_kind(name, seed):
    graph = nx.gnm_random_graph(60, 90, seed=1)
    found = find(name, graph, seed=seed)
    assert unsettled(graph, found) == []


@pytest.mark.parametrize("name", LABELS)
def test_a_seed_fixes_the_result_and_none_does_too(name):
    graph = nx.gnm_random_graph(300, 450, seed=1)
    state = random.getstate()
    by_seed = [find(name, graph, seed=seed) for seed in (None, *range(6))]
    again = [find(name, graph, seed=seed) for seed in (None, *range(6))]
    assert by_seed == again
    assert random.getstate() == state
    assert len(set(map(frozenset, by_seed))) > 1
    generator = random.Random(3)
    assert find(name, graph, seed=generator) == by_seed[4]
    assert generator.getstate() != random.Random(3).getstate()


@pytest.mark.parametrize("name", NAMES)
def test_the_order_of_edges_and_the_device_change_nothing(name, device):
    graph = nx.gnm_random_graph(300, 450, seed=1)
    edges = list(graph.edges)
    random.Random(1).shuffle(edges)
    shuffled = nx.empty_graph(300)
    shuffled.add_edges_from((v, u) for u, v in edges)
    assert find(name, graph, device="cpu") == find(name, shuffled, device=device)
