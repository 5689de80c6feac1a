"""Communities of multilevel label propagation: their modularity beside others', connectedness."""

import graphs
import networkx as nx
import numpy as np
import pandas as pd
import pytest
import reference_multilevel as twin
from cases import some
from hypothesis import given
from hypothesis import strategies as st

from glp_rapids import (
    CompressedGraph,
    as_graph,
    compress,
    cpm,
    label_propagation,
    leiden,
    louvain,
    multilevel_label_propagation,
)
from glp_rapids.datasets import load
from glp_rapids.graph import connected

UNDIRECTED = [name for name in graphs.GRAPHS if not name.startswith("directed")]


def host_graph(edges):
    return as_graph(**edges, device="cpu")


def networkx_graph(graph):
    G = nx.Graph()
    G.add_nodes_from(range(graph.number_of_vertices))
    edges = twin.edges_of(graph.indptr, graph.indices, graph.weights)
    G.add_weighted_edges_from(edges)
    return G


def communities_of(found):
    return found.reset_index().groupby("partition")["index"].apply(set).tolist()


@pytest.mark.parametrize("resolution", some([0.4, 1.0, 3.0], 0.4))
@pytest.mark.parametrize("name", UNDIRECTED)
def test_modularity_is_that_of_networkx(name, resolution):
    graph = host_graph(graphs.GRAPHS[name]())
    found = multilevel_label_propagation(graph, resolution=resolution, device="cpu")
    G = networkx_graph(graph)
    if not G.size(weight="weight"):
        assert np.isnan(found.attrs["glp"]["modularity"])
        return
    known = nx.community.modularity(G, communities_of(found), resolution=resolution)
    assert found.attrs["glp"]["modularity"] == pytest.approx(known, abs=1e-9)


def assert_connected(graph, found):
    G = networkx_graph(graph)
    G.remove_edges_from([(u, v) for u, v, weight in G.edges(data="weight") if not weight])
    for community in communities_of(found):
        assert nx.is_connected(G.subgraph(community))


@pytest.mark.parametrize(
    "options",
    some([{}, {"max_level": 1}, {"objective": "cpm", "resolution": 0.1}], {"max_level": 1}),
)
@pytest.mark.parametrize("name", UNDIRECTED)
def test_refined_communities_are_connected(name, options):
    graph = host_graph(graphs.GRAPHS[name]())
    assert_connected(graph, multilevel_label_propagation(graph, **options))


@given(graphs.edge_frames(40, 90), st.integers(0, 99), st.sampled_from([0.3, 1.0, 4.0]))
def test_refined_communities_of_any_graph_are_connected(edges, seed, resolution):
    graph = host_graph({**edges, "directed": False})
    for levels in (1, 2, 100):
        found = multilevel_label_propagation(
            graph, seed=seed, resolution=resolution, max_level=levels
        )
        assert_connected(graph, found)


@given(graphs.edge_frames(30, 60), st.integers(0, 99))
def test_levels_are_nested_and_their_parts_connected(edges, seed):
    graph = host_graph({**edges, "directed": False})
    levels = multilevel_label_propagation(graph, levels=True, seed=seed)
    table = levels.pivot(index="vertex", columns="level", values="partition")
    for level in list(table)[:-1]:
        assert (table.groupby(level)[level + 1].nunique() == 1).all()
        part = pd.DataFrame({"partition": table[level].to_numpy()})
        assert_connected(graph, part)


@pytest.mark.parametrize(
    ("name", "networkit", "igraph"),
    [
        # medians of five seeds of NetworKit 11.2's PLM and igraph 0.11's Leiden, two iterations
        ("football", 0.6046, 0.6046),
        ("facebook_combined", 0.8348, 0.8357),
        ("ca-CondMat", 0.7326, 0.7406),
        *some([("email-Enron", 0.5974, 0.6245), ("lfr-10000-mu0.1", 0.9196, 0.9259)]),
    ],
)
def test_modularity_is_as_high_as_that_of_others(name, networkit, igraph, data):
    frame = load(name)
    frame = frame[frame["src"] != frame["dst"]]
    graph = as_graph(frame, device="cpu")
    assert median_modularity(graph) >= max(networkit - 0.001, igraph - 0.002)
    assert median_modularity(graph, refine=False) >= networkit - 0.001


def median_modularity(graph, **options):
    found = [multilevel_label_propagation(graph, seed=seed, **options) for seed in range(5)]
    return np.median([one.attrs["glp"]["modularity"] for one in found])


@pytest.mark.exhaustive
def test_a_small_graph_has_iterations_enough(data):
    graph = as_graph(load("graphalytics-p2p-31"), device="cpu")
    assert median_modularity(graph) >= 0.5146 - 0.002  # igraph's Leiden, as above
    assert median_modularity(graph, iterations=2) < 0.5146 - 0.003


@pytest.mark.parametrize(
    "options",
    [{}, {"resolution": 2.5, "tol": 0.0}, {"objective": "cpm", "resolution": 0.3}, {"tol": 0.4},
     {"resolution": 1e12}],
)  # fmt: skip
def test_lone_vertices_are_judged_only_where_it_counts(monkeypatch, options):
    outcomes = []
    for _ in range(2):
        founds = [
            multilevel_label_propagation(host_graph(graphs.GRAPHS[name]()), **options)
            for name in UNDIRECTED
        ]
        outcomes.append([
            (found["partition"].tolist(), found.attrs["glp"]["converged"],
             [level["moved"] for level in found.attrs["glp"]["levels"]])
            for found in founds
        ])  # fmt: skip
        shortcut = "glp_rapids.communities.levels._beats_all_alone"
        monkeypatch.setattr(shortcut, lambda *_: False)
    assert outcomes[0] == outcomes[1]


def test_two_cliques_and_a_bridge_and_a_star():
    found = multilevel_label_propagation(**graphs.GRAPHS["two cliques"](), device="cpu")
    assert found["partition"].tolist() == [0] * 5 + [1] * 5
    star = multilevel_label_propagation(**graphs.GRAPHS["star"](), device="cpu")
    assert star["partition"].nunique() == 1


def test_resolution_says_how_large_communities_are():
    edges = graphs.GRAPHS["power law"]()
    number = [
        multilevel_label_propagation(**edges, resolution=resolution)["partition"].nunique()
        for resolution in (1e-6, 0.5, 1, 4, 1e12)
    ]
    assert number == sorted(number)
    graph = host_graph(edges)
    assert number[0] == nx.number_connected_components(networkx_graph(graph))
    assert number[-1] == graph.number_of_vertices


def test_cpm_finds_what_modularity_does_not_see():
    ring = [(5 * i + u, 5 * i + v) for i in range(60) for u, v in graphs.clique(range(5))]
    ring += [(5 * i, 5 * ((i + 1) % 60) + 1) for i in range(60)]
    edges = graphs.edges(ring)
    cliques = [v // 5 for v in range(300)]
    assert multilevel_label_propagation(**edges)["partition"].tolist() != cliques
    found = multilevel_label_propagation(**edges, objective="cpm", resolution=0.5)
    assert found["partition"].tolist() == cliques
    assert found.attrs["glp"]["cpm"] == 60 * (10 - 0.5 * 10)


@given(
    graphs.edge_frames(),
    st.lists(st.integers(0, 3), min_size=30, max_size=30),
    st.floats(0, 8),
)
def test_constant_potts_model_is_that_of_all_pairs(edges, labels, resolution):
    graph = host_graph(edges)
    labels = labels[: graph.number_of_vertices]
    weights = [1] * graph.number_of_edges if graph.weights is None else graph.weights.tolist()
    expected = 0.0
    for u, v, weight in zip(graph.row_indices(), graph.indices, weights, strict=True):
        if labels[u] == labels[v]:
            expected += weight * (2 if u == v and not graph.directed else 1)
    for u, label in enumerate(labels):
        expected -= resolution * sum(label == one for v, one in enumerate(labels) if v != u)
    found = graph.frame({"partition": np.array(labels, np.int64)})
    known = expected if graph.directed else expected / 2
    assert cpm(graph, found, resolution=resolution) == pytest.approx(known, rel=1e-12, abs=1e-9)


def test_reported_value_of_the_constant_potts_model():
    for name in ("power law", "uneven weights", "integer weights"):
        graph = host_graph(graphs.GRAPHS[name]())
        found = multilevel_label_propagation(graph, objective="cpm", resolution=0.2)
        value = cpm(graph, found, resolution=0.2)
        assert found.attrs["glp"]["cpm"] == pytest.approx(value, rel=1e-12)


def test_report():
    told = []
    found = multilevel_label_propagation(**graphs.GRAPHS["power law"](), progress=told.append)
    about = found.attrs["glp"]
    assert about["device"] == "cpu"
    assert about["levels"] == told
    assert about["sweeps"] == sum(len(level["moved"]) for level in told)
    assert told[0]["vertices"] == len(found)
    assert told[0]["iteration"] == 1
    assert told[0]["level"] == 0
    assert about["seconds"] >= sum(level["seconds"] for level in told) > 0


def test_what_is_told_may_be_changed():
    def take(facts):
        facts["moved"].clear()
        facts.clear()

    graph = host_graph(graphs.GRAPHS["power law"]())
    expected, found = (
        multilevel_label_propagation(graph, progress=progress) for progress in (False, take)
    )
    pd.testing.assert_frame_equal(found, expected)
    one, other = (frame.attrs["glp"]["levels"] for frame in (found, expected))
    assert [level["moved"] for level in one] == [level["moved"] for level in other]


@pytest.mark.parametrize("options", [{}, {"refine": False}, {"resolution": 1e9}, {"max_level": 1}])
@pytest.mark.parametrize("name", ["two cliques", "only isolated", "empty"])
def test_communities_have_the_type_of_indices(name, options):
    graph = host_graph(graphs.GRAPHS[name]())
    for levels in (False, True):
        found = multilevel_label_propagation(graph, levels=levels, **options)
        assert found["partition"].dtype == graph.index_dtype


def test_compressed_graphs_and_ids_as_they_came():
    graph = host_graph(graphs.GRAPHS["strings"]())
    found = multilevel_label_propagation(graph)
    assert found["vertex"].tolist() == [f"acc{i:02d}" for i in range(10)]
    assert multilevel_label_propagation(compress(graph)).equals(found)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"resolution": 0}, ValueError, "at least 1e-06, not 0; at 0 the communities are"),
        ({"resolution": -1.0}, ValueError, "resolution must be finite and at least"),
        ({"resolution": np.inf}, ValueError, "resolution must be finite"),
        ({"resolution": "1"}, TypeError, "resolution must be a number, not '1'"),
        ({"objective": "louvain"}, ValueError, "objective must be one of 'modularity', 'cpm'"),
        ({"refine": 1}, TypeError, "refine must be True or False"),
        ({"levels": None}, TypeError, "levels must be True or False"),
        ({"max_level": 0}, ValueError, "max_level must be at least 1"),
        ({"iterations": 0}, ValueError, "iterations must be at least 1"),
        ({"iterations": 2.0}, TypeError, "iterations must be an integer or None"),
        ({"tol": -0.1}, ValueError, "tol must be a finite number of at least 0"),
        ({"tol": 10**400}, ValueError, "tol must be a finite number of at least 0"),
        ({"tol": "0"}, TypeError, "tol must be a number, not '0'"),
        ({"seed": -1}, ValueError, "seed must be in 0..4294967295"),
        ({"progress": 3}, TypeError, "progress must be a bool or a function"),
        ({"directed": True}, ValueError, "graph is directed.*read its edges with directed=False"),
        ({"weight": "w"}, ValueError, "negative"),
        ({"colour": 1}, TypeError, "colour"),
    ],
)
def test_bad_input(options, error, words):
    edges = pd.DataFrame({"src": [0, 1], "dst": [1, 2], "w": [1.0, -1.0]})
    with pytest.raises(error, match=words):
        multilevel_label_propagation(edges, **options)


def test_directed_graphs_are_refused_with_what_helps(tmp_path):
    one_way = nx.DiGraph([(0, 1), (1, 2)])
    graph = as_graph(one_way, device="cpu")
    compress(graph).save(tmp_path / "one way.glp")
    anew = "make it anew from its edges, with directed=False"
    for directed, words in (
        (one_way, r"pass graph\.to_undirected\(\)"),
        *((one, anew) for one in (graph, compress(graph), tmp_path / "one way.glp")),
    ):
        for find in (multilevel_label_propagation, louvain, leiden):
            with pytest.raises(ValueError, match=f"graph is directed, .*; {words}$"):
                find(directed)
    assert len(multilevel_label_propagation(one_way.to_undirected(), device="cpu")) == 3


@pytest.mark.parametrize("directed", [False, True])
def test_label_propagation_cut_into_connected_pieces(directed, monkeypatch):
    edges = graphs.edges(graphs.random_pairs(300, 420, 7), directed=directed)
    graph = host_graph(edges)
    options = {"explore": 0, "update": "sync", "max_iter": 3}
    before = label_propagation(graph, **options)
    after = label_propagation(graph, connected=True, **options)
    G = nx.Graph(zip(graph.row_indices().tolist(), graph.indices.tolist(), strict=True))
    G.add_nodes_from(range(graph.number_of_vertices))
    expected = [
        piece
        for community in communities_of(before)
        for piece in nx.connected_components(G.subgraph(community))
    ]
    assert len(expected) > before["partition"].nunique()
    assert sorted(map(sorted, communities_of(after))) == sorted(map(sorted, expected))
    named = label_propagation(graph, connected=True, renumber=False, **options)
    assert (named.groupby("partition")["vertex"].min() == sorted(set(named["partition"]))).all()
    assert named["partition"].nunique() == len(expected)
    monkeypatch.setattr(connected, "FEWEST_AT_ONCE", 10)
    monkeypatch.setattr(CompressedGraph, "to_graph", None)  # rows are read as they are needed
    for order in (None, "degree"):
        packed = label_propagation(compress(graph, order=order), connected=True, **options)
        assert packed.equals(after)
    with pytest.raises(TypeError, match="connected must be True or False"):
        label_propagation(graph, connected=1)
