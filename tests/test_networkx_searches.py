"""Shortest paths, searches, components and betweenness by the backend, as by NetworkX."""

import json
import math
import random
from itertools import product

import networkx as nx
import networkx_graphs
import numpy as np
import pytest
from cases import exhaustive, some, turns
from graphs import GRAPHS, edge_frames
from hypothesis import given
from hypothesis import strategies as st
from networkx_graphs import (
    CLASSES,
    FROM_A_NODE,
    agree,
    agree_on_structure,
    awkward,
    convert,
    outcome,
)

from glp_rapids.networkx import searches
from glp_rapids.networkx.backend import BackendInterface

_registered = networkx_graphs.registered  # a fixture

BETWEEN_TWO = (
    ("bidirectional_shortest_path",),
    ("has_path",),
    ("shortest_path",),
    ("shortest_path_length",),
    ("shortest_path_length", "weight"),
    ("dijkstra_path",),
    ("dijkstra_path_length",),
    ("dijkstra_path_length", None),
    ("single_source_dijkstra",),
)
OF_ALL = (
    ("all_pairs_shortest_path_length",),
    ("all_pairs_shortest_path", 2),
    ("all_pairs_dijkstra",),
    ("all_pairs_dijkstra_path", 2),
    ("all_pairs_dijkstra_path_length",),
    ("shortest_path",),
    ("shortest_path_length", None, None, "weight"),
)


@pytest.mark.parametrize(
    ("create_using", "seed"),
    [*product(CLASSES, range(2)), *exhaustive(*turns(CLASSES, range(2, 8)))],
)
def test_all_is_as_in_networkx(create_using, seed):
    graph = awkward(create_using, seed, nodes=20 + 8 * seed, edges=20 + 25 * seed)
    there, nodes = convert(graph, "weight", "absent"), list(graph)
    for node in [*nodes[4:9], "stranger", ["unhashable"], None]:
        for name, *others in FROM_A_NODE:
            agree(graph, there, name, node, *others)
        for other in [*nodes[5:9], "stranger"]:
            for name, *others in BETWEEN_TWO:
                agree(graph, there, name, node, other, *others)
    for node in [*nodes[4:7], "stranger"]:
        agree(graph, there, "shortest_path", None, node)
        agree(graph, there, "shortest_path", None, node, "weight")
        agree(graph, there, "shortest_path", node, None, "weight")
        agree(graph, there, "shortest_path_length", None, node)
        agree(graph, there, "shortest_path_length", None, node, "weight")
        agree(graph, there, "shortest_path_length", node, None)
    for name, *others in OF_ALL:
        agree(graph, there, name, *others)
    for sources in (nodes[4:8], set(nodes[4:8]), [*nodes[5:7], nodes[5]], [], ["stranger"]):
        agree(graph, there, "multi_source_dijkstra", sources)
        agree(graph, there, "multi_source_dijkstra", sources, None, 2, None)
        agree(graph, there, "multi_source_dijkstra", sources, nodes[5])
        agree(graph, there, "multi_source_dijkstra", sources, nodes[10])
        agree(graph, there, "multi_source_dijkstra_path", sources, 3)
        agree(graph, there, "multi_source_dijkstra_path_length", sources)
        agree(graph, there, "bfs_layers", sources)


@pytest.mark.parametrize("around", [0, 3, 1 << 14])
@pytest.mark.parametrize("create_using", CLASSES)
def test_searches_in_a_large_graph_are_as_in_a_small_one(create_using, around, monkeypatch):
    """Whether a heap is enough, or gives up and leaves the search to `sssp`."""
    monkeypatch.setattr(searches, "SHORT", 0)
    monkeypatch.setattr(searches, "AROUND", around)
    graph = awkward(create_using, 3, nodes=40, edges=90)
    there, nodes = convert(graph, "weight", "absent"), list(graph)
    for node in nodes[4:9]:
        for name, *others in FROM_A_NODE:
            agree(graph, there, name, node, *others)
        for other in nodes[5:9]:
            for name, *others in BETWEEN_TWO:
                agree(graph, there, name, node, other, *others)
    agree(graph, there, "multi_source_dijkstra", nodes[4:8], None, 2)


def test_what_a_search_notes_is_gone_after_it():
    graph = awkward(nx.DiGraph, 1, nodes=30, edges=60)
    there = convert(graph, "weight", "absent")
    clean = {}
    for _ in range(2):
        for node in list(graph)[:9]:
            for name, *others in FROM_A_NODE:
                list(getattr(BackendInterface, name)(there, node, *others))
            for other in list(graph)[4:7]:
                agree(graph, there, "shortest_path", node, other)
                agree(graph, there, "dijkstra_path", node, other)
        for key, arrays in there._spare.items():
            assert arrays
            for array in arrays:
                assert array.size == len(graph)
                assert (array == clean.setdefault(key, array[0])).all()
    assert {name for name, _ in clean} == {"seen", "distance", "predecessor"}


def test_a_cutoff_may_be_any_number():
    graph = nx.path_graph(4)
    nx.set_edge_attributes(graph, 1.5, "weight")
    there = convert(graph, "weight")
    for cutoff in (10**400, -(10**400), math.inf, -math.inf, np.float32(1.5), np.int8(2)):
        for name in ("single_source_dijkstra", "single_source_dijkstra_path_length"):
            agree(graph, there, name, 0, *(() if name.endswith("length") else (None,)), cutoff)


@pytest.mark.parametrize("create_using", CLASSES)
def test_a_path_over_weights_is_a_shortest_one(create_using):
    graph = awkward(create_using, 3, nodes=30)
    there, nodes = convert(graph, "weight"), list(graph)
    for source in nodes[5:15]:
        for target in nodes[10:20]:
            length = outcome(nx.shortest_path_length, graph, source, target, "weight")
            path = outcome(BackendInterface.shortest_path, there, source, target, "weight")
            if isinstance(length, tuple):
                assert path == (nx.NetworkXNoPath, (f"No path between {source} and {target}.",))
            else:
                assert (path[0], path[-1]) == (source, target)
                assert nx.path_weight(_lightest(graph), path, "weight") == length


def _lightest(graph):
    """The graph without parallel edges and with all weights."""
    simple = nx.DiGraph() if graph.is_directed() else nx.Graph()
    for source, target, weight in graph.edges(data="weight", default=1):
        known = simple.get_edge_data(source, target, {"weight": math.inf})["weight"]
        simple.add_edge(source, target, weight=min(weight, known))
    return simple


@pytest.mark.parametrize("create_using", CLASSES)
@pytest.mark.parametrize("seed", range(6))
def test_weights_are_in_the_order_of_neighbours(create_using, seed):
    graph = awkward(create_using, seed, nodes=25, edges=20 + 20 * seed)
    there, nodes = convert(graph, "weight"), list(graph)
    lightest = _lightest(graph)
    for reverse, rows in ((False, there.successors), (True, there.predecessors)):
        weights = there.weights_along("weight", reverse=reverse)
        source = np.repeat(np.arange(len(nodes)), np.diff(rows.indptr))
        for here, other, weight in zip(source, rows.indices, weights.tolist(), strict=True):
            ends = (nodes[other], nodes[here]) if reverse else (nodes[here], nodes[other])
            assert lightest.edges[ends]["weight"] == weight


def as_networkx(graph, directed=False, **options):
    """One of `GRAPHS` as a networkx graph of parallel edges."""
    source = options.get("source", ["src"])
    destination = options.get("destination", ["dst"])
    ends = (map(tuple, graph[list(names)].to_numpy().tolist()) for names in (source, destination))
    made = (nx.MultiDiGraph if directed else nx.MultiGraph)()
    made.add_nodes_from((node,) for node in options.get("vertices", []))
    weights = graph["weight"].tolist() if "weight" in graph else [1] * len(graph)
    for start, end, weight in zip(*ends, weights, strict=True):
        made.add_edge(start, end, weight=weight)
    return made


NAMED = [name for name in GRAPHS if name != "empty"]


@pytest.mark.parametrize("name", some(NAMED, "isolated", "zero weights", "directed kept"))
def test_awkward_graphs_are_as_in_networkx(name):
    graph = as_networkx(**GRAPHS[name]())
    _agree_on(graph, random.Random(1).sample(list(graph), min(len(graph), 3)))


@given(edge_frames(), st.randoms(use_true_random=False))
def test_any_graph_is_as_in_networkx(options, draw):
    graph = as_networkx(**options)
    if len(graph):
        if draw.random() < 0.5:
            graph = (nx.DiGraph if graph.is_directed() else nx.Graph)(graph)
        _agree_on(graph, [draw.choice(list(graph))])


def _agree_on(graph, nodes):
    there = convert(graph, "weight")
    for node in nodes:
        for name, *others in FROM_A_NODE:
            if "absent" not in others:
                agree(graph, there, name, node, *others)
        for name, *others in BETWEEN_TWO:
            agree(graph, there, name, node, list(graph)[-1], *others)
    agree_on_structure(graph, there)


@pytest.mark.parametrize("create_using", CLASSES)
def test_components_and_betweenness_are_as_in_networkx(create_using):
    for nodes, edges in ((0, 0), (1, 0), (5, 0), (60, 45), (30, 100)):
        graph = create_using()
        graph.add_nodes_from(map(str, range(nodes)))
        draw = random.Random(nodes)
        graph.add_edges_from([draw.choices(list(graph), k=2) for _ in range(edges)])
        there = convert(graph)
        agree_on_structure(graph, there)
        if nodes and not graph.is_directed():
            agree(graph, there, "node_connected_component", "0")
            agree(graph, there, "node_connected_component", "stranger")
    wrong = "connected_components" if graph.is_directed() else "weakly_connected_components"
    with pytest.raises(nx.NetworkXNotImplemented):
        getattr(BackendInterface, wrong)(there)


def test_the_global_generator_is_drawn_from_as_by_networkx():
    graph, found = nx.gnm_random_graph(40, 90, seed=1), []
    for backend in ("networkx", "glp_rapids"):
        random.seed(4)
        found.append(nx.betweenness_centrality(graph, k=7, backend=backend))
        found.append(random.random())
    assert found[2] == pytest.approx(found[0])
    assert found[3] == found[1]


# ---------------------------------------------------------------- numbers


WEIGHTS = {
    "int": (2, 3, 0),
    "large": (2**53 + 1, 3, 2**53),
    "float": (0.1, 0.2, 0.3),
    "bool": (True, False, True),
    "float32": (np.float32(0.1), np.float32(0.2), np.float32(0.3)),
    "int8": (np.int8(2), np.int8(3), np.int8(1)),
    "some float": (1, 0.5, 2),
    "light": (1.0, 1e-30, 5e-324),
}


@pytest.mark.parametrize("kind", WEIGHTS)
def test_lengths_are_the_numbers_of_networkx(kind):
    graph = nx.gnm_random_graph(25, 60, seed=2)
    for number, edge in enumerate(graph.edges):
        graph.edges[edge]["weight"] = WEIGHTS[kind][number % 3]
    there = convert(graph, "weight")
    agree(graph, there, "single_source_dijkstra", 3)
    lengths = BackendInterface.single_source_dijkstra_path_length(there, 3)
    whole = kind in ("int", "large", "bool", "int8")
    assert [type(length) for length in lengths.values()][1:] == [int if whole else float] * (
        len(lengths) - 1
    )
    assert type(lengths[3]) is int
    steps = BackendInterface.single_source_shortest_path_length(there, 3)
    assert {type(length) for length in steps.values()} == {int}


@pytest.mark.parametrize("name", [row[0] for row in BETWEEN_TWO if len(row) == 1])
def test_a_target_that_cannot_be_hashed_is_as_in_networkx(name):
    graph = nx.path_graph(3)
    agree(graph, convert(graph, "weight"), name, 0, [1])


def test_views_of_graphs_keep_their_order():
    graph = awkward(nx.DiGraph, 2)
    for view in (graph.reverse(copy=False), graph.subgraph(list(graph)[3:40]), graph.copy()):
        there = convert(view, "weight")
        for node in list(view)[:4]:
            agree(view, there, "single_source_dijkstra", node)
            agree(view, there, "bfs_edges", node, True)


# ---------------------------------------------------------------- mappings of paths


def test_paths_are_in_dicts():
    graph = nx.path_graph(6)
    for name, *arguments in (
        ("single_source_shortest_path", 2),
        ("single_target_shortest_path", 2),
        ("single_source_dijkstra_path", 2),
        ("multi_source_dijkstra_path", [2, 5]),
        ("shortest_path", 2),
    ):
        paths = getattr(nx, name)(graph, *arguments, backend="glp_rapids")
        made = getattr(nx, name)(graph, *arguments)
        assert type(paths) is dict, name
        assert json.dumps(paths) == json.dumps(made), name  # their order too
        paths[2].append("further")
        assert {node: paths[node] for node in (0, 1, 3)} == {n: made[n] for n in (0, 1, 3)}, name
