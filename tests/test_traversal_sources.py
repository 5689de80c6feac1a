"""Many sources, betweenness and components."""

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import reference
import reference_diversity as diversity
from graphs import GRAPHS, edge_frames, edges, path, power_law_pairs
from hypothesis import given
from hypothesis import strategies as st
from pandas.testing import assert_frame_equal

from glp_rapids import (
    as_graph,
    betweenness_centrality,
    bfs,
    multi_source_bfs,
    weakly_connected_components,
)
from glp_rapids.traversal import multi_source
from glp_rapids.traversal.engines import cpu

WITH_VERTICES = [name for name in GRAPHS if name != "empty"]


def networkx_of(graph):
    made = nx.DiGraph() if graph.directed else nx.Graph()
    made.add_nodes_from(range(graph.number_of_vertices))
    made.add_edges_from(zip(graph.row_indices().tolist(), graph.indices.tolist(), strict=True))
    return made


# ---------------------------------------------------------------- many sources


@pytest.mark.parametrize("unreachable", ["max", "null", "drop"])
@pytest.mark.parametrize("name", WITH_VERTICES)
def test_many_searches_are_as_each_alone(name, unreachable):
    graph = as_graph(**GRAPHS[name](), device="cpu")
    n = graph.number_of_vertices
    index = np.arange(0, n, 1 + n // 150)
    sources = graph.external(index)
    for direction, depth in (("out", None), ("in", 2)):
        options = {"direction": direction, "depth_limit": depth}
        found = multi_source_bfs(graph, sources, unreachable=unreachable, **options)
        rows = multi_source_bfs(graph, sources, summary=True, **options)
        alone, summary = [], []
        for place in index:
            own = bfs(graph, graph.external(np.array([place])), return_predecessors=False,
                      unreachable=unreachable, **options)  # fmt: skip
            ids = graph.external_columns(np.full(len(own), place), "source")
            alone.append(pd.DataFrame(ids | dict(own)))
            reached = own["distance"][own["distance"].notna() & (own["distance"] != 2**31 - 1)]
            summary.append([len(reached), int(reached.sum()), int(reached.max())])
        assert_frame_equal(found, pd.concat(alone, ignore_index=True))
        names = ["reached", "distance_sum", "eccentricity"]
        assert rows[names].to_numpy().tolist() == summary
        assert found.attrs["glp"]["sources"] == index.size


@given(edge_frames(), st.data())
def test_many_searches_of_any_graph(given, data):
    graph = as_graph(**given, device="cpu")
    if not graph.number_of_vertices:
        return
    sources = data.draw(st.sets(st.sampled_from(graph.external().tolist()), min_size=1))
    found = multi_source_bfs(graph, list(sources))
    for source in sources:
        own = bfs(graph, source, return_predecessors=False, unreachable="drop")
        rows = found[found["source"] == source].drop(columns="source")
        assert_frame_equal(rows.reset_index(drop=True), own)


@pytest.mark.parametrize("trial", [(1, 1000), (3, 1000), (1 << 40, 0)])
def test_searches_that_are_given_up_go_on_alone(trial, monkeypatch):
    monkeypatch.setattr(cpu, "TRIAL", trial)
    graph = as_graph(**edges([*path(200), *power_law_pairs(150, 90, 2)]), device="cpu")
    sources = list(range(0, 150, 2))
    found = multi_source_bfs(graph, sources, unreachable="max")
    alone = [bfs(graph, source)["distance"] for source in sources]
    assert found["distance"].tolist() == np.concatenate(alone).tolist()
    summary = multi_source_bfs(graph, sources, summary=True)
    assert summary["distance_sum"].tolist() == [int(one.sum()) for one in alone]
    assert summary["eccentricity"].tolist() == [int(one.max()) for one in alone]


# ---------------------------------------------------------------- betweenness, components


SCALES = [(normalized, endpoints) for normalized in (True, False) for endpoints in (True, False)]


@pytest.mark.parametrize("name", WITH_VERTICES)
def test_betweenness_is_that_of_networkx(name):
    graph = as_graph(**GRAPHS[name](), device="cpu")
    other = networkx_of(graph)
    # networkx takes seconds for a larger one: each scale with each end, not both with both
    for normalized, endpoints in SCALES if len(other) < 100 else SCALES[1:3]:
        options = {"normalized": normalized, "endpoints": endpoints}
        known = nx.betweenness_centrality(other, **options)
        found = betweenness_centrality(graph, **options)["betweenness_centrality"]
        assert np.allclose(found, [known[v] for v in other], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(("normalized", "endpoints"), SCALES)
@pytest.mark.parametrize("directed", [False, True])
def test_estimates_are_scaled_as_those_of_networkx(directed, normalized, endpoints):
    graph = as_graph(**edges(power_law_pairs(80, 300, 3), directed=directed), device="cpu")
    other = networkx_of(graph)
    for k in (1, 5, 20):
        options = {"normalized": normalized, "endpoints": endpoints}
        found = betweenness_centrality(graph, k, seed=k, **options)
        assert found.attrs["glp"]["sources"] == k
        sources = [v for v in other if drawn(graph, k, k)[v]]
        ids = graph.external(np.array(sources))
        assert_frame_equal(betweenness_centrality(graph, sources=ids, **options), found)
        known = networkx_from(other, sources, **options)
        assert np.allclose(
            found["betweenness_centrality"], known, rtol=1e-9, atol=1e-12, equal_nan=True
        )


def drawn(graph, k, seed):
    """Whether each vertex is among the k of the smallest hashes."""
    words = [reference.mix(reference.id_word(one), seed) for one in graph.external().tolist()]
    return [word in sorted(words)[:k] for word in words]


def networkx_from(graph, sources, **options):
    """NetworkX's estimate from given sources: it is made to draw these."""

    class Drawn:
        def sample(self, nodes, k):
            return sources

    undispatched = nx.betweenness_centrality.orig_func
    undecorated = getattr(undispatched, "__wrapped__", undispatched)
    known = undecorated(graph, k=len(sources), seed=Drawn(), **options)
    return [known[v] for v in graph]


def test_betweenness_does_not_depend_on_threads(monkeypatch):
    graph = as_graph(**edges(power_law_pairs(200, 900, 5), directed=True), device="cpu")
    found = []
    for threads in (1, 3):
        monkeypatch.setattr(cpu, "threads_available", lambda threads=threads: threads)
        found.append(betweenness_centrality(graph))
    assert_frame_equal(*found, check_exact=True)


def test_too_many_paths_are_refused():
    # 1100 diamonds in a row: 2 ** 1100 paths
    pairs = [pair for i in range(0, 3300, 3) for pair in
             ((i, i + 1), (i, i + 2), (i + 1, i + 3), (i + 2, i + 3))]  # fmt: skip
    with pytest.raises(ValueError, match="graph: there are more than 1e308 shortest paths"):
        betweenness_centrality(edges(pairs)["graph"], sources=[0], device="cpu")


@pytest.mark.parametrize("name", GRAPHS)
def test_components_are_those_of_the_twin(name):
    graph = as_graph(**GRAPHS[name](), device="cpu")
    neighbours = diversity.neighbour_sets(graph.indptr, graph.indices)
    known = diversity.connected_components(dict(enumerate(neighbours)))
    labels = [0] * graph.number_of_vertices
    for number, members in enumerate(known):
        for v in members:
            labels[v] = number
    found = weakly_connected_components(graph)
    assert_frame_equal(found, graph.frame({"labels": np.array(labels, graph.index_dtype)}))
    assert found.attrs["glp"]["components"] == len(known)


@given(edge_frames())
def test_components_of_any_graph(given):
    graph = as_graph(**given, device="cpu")
    found = weakly_connected_components(graph)["labels"]
    known = nx.weakly_connected_components(nx.DiGraph(networkx_of(graph)))
    groups = {frozenset(np.flatnonzero(found == label).tolist()) for label in set(found)}
    assert groups == {frozenset(one) for one in known}


def test_the_components_of_ldbc(data):
    frame = pd.read_csv(data / "graphalytics-p2p-31.e.gz", sep=" ", names=["src", "dst", "w"])
    known = pd.read_csv(data / "graphalytics-p2p-31.WCC.gz", sep=" ", names=["vertex", "known"])
    found = weakly_connected_components(frame, vertices=known["vertex"], directed=True)
    both = found.merge(known, on="vertex")
    assert len(both) == len(known)
    assert both.groupby("labels")["known"].nunique().max() == 1
    assert both.groupby("known")["labels"].nunique().max() == 1


def test_a_summary_has_no_rows_for_what_was_not_reached():
    edges = pd.DataFrame({"src": [1, 2], "dst": [2, 3]})
    with pytest.raises(ValueError, match="unreachable='max' says what rows of vertices hold"):
        multi_source_bfs(edges, [1], summary=True, unreachable="max")


def test_a_table_that_does_not_fit_is_refused_before_it_is_made(monkeypatch):
    edges = pd.DataFrame({"src": [1, 2], "dst": [2, 3]})
    assert len(multi_source_bfs(edges, [1, 2, 3])) == 9
    monkeypatch.setattr(multi_source, "BETWEEN_LOOKS", 1)
    monkeypatch.setattr(multi_source, "memory_free", lambda device: 9 * 36 - 1)
    with pytest.raises(MemoryError, match=r"reach 9 vertices.* about 324 bytes more.*summary=True"):
        multi_source_bfs(edges, [1, 2, 3])
    assert len(multi_source_bfs(edges, [1, 2, 3], summary=True)) == 3
