"""Paths, many sources, betweenness and components; what is refused; how results come out."""

import io

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import reference
from graphs import GRAPHS, edge_frames, edges, path, power_law_pairs
from hypothesis import given
from hypothesis import strategies as st
from pandas.testing import assert_frame_equal

from glp_rapids import (
    as_graph,
    betweenness_centrality,
    bfs,
    compress,
    multi_source_bfs,
    shortest_paths,
    sssp,
    weakly_connected_components,
)
from glp_rapids.device import LackOfMemory
from glp_rapids.graph.graph import Graph
from glp_rapids.traversal import engines, paths
from glp_rapids.traversal.engines import cpu, largest
from glp_rapids.traversal.kernels import cpu_paths

ROADS = pd.DataFrame(
    {"src": [1, 1, 2, 3, 7], "dst": [2, 3, 3, 4, 8], "km": [7, 2, 4, 1, 1], "w": [7, 2, 4, 1, 1.0]}
)
FAR = 2**31 - 1
WITH_VERTICES = [name for name in GRAPHS if name != "empty"]


def networkx_of(graph):
    made = nx.DiGraph() if graph.directed else nx.Graph()
    made.add_nodes_from(range(graph.number_of_vertices))
    made.add_edges_from(zip(graph.row_indices().tolist(), graph.indices.tolist(), strict=True))
    return made


# ---------------------------------------------------------------- how results come out


def test_unreached_vertices_in_three_ways():
    most = bfs(ROADS, 1)
    assert most["distance"].tolist() == [0, 1, 1, 2, FAR, FAR]
    assert most["predecessor"].tolist() == [-1, 1, 1, 3, -1, -1]
    null = bfs(ROADS, 1, unreachable="null")
    assert null["distance"].isna().tolist() == [False] * 4 + [True] * 2
    assert null["predecessor"].isna().tolist() == [True] + [False] * 3 + [True] * 2
    assert null["distance"].dtype == "Int32"
    some = bfs(ROADS, 1, unreachable="drop")
    assert_frame_equal(some, most[:4])
    lengths = sssp(ROADS, 1, weight="w", unreachable="null")["distance"]
    assert lengths.dtype == np.float64
    assert lengths.isna().tolist() == [False] * 4 + [True] * 2
    for weight in ("km", "w"):
        assert sssp(ROADS, 1, weight=weight)["distance"][5] == largest(ROADS[weight].dtype)


@pytest.mark.parametrize(
    ("ids", "null"),
    [
        (np.array([3, -1, 5]), True),  # -1 is a vertex
        (np.array([3, -2, 5]), False),
        (np.array([3, 2, 5], np.uint32), True),
        (np.array([3, 2, 5], np.int8), False),
        (pd.array([3, 2, 5], "Int32"), False),
        (["a", "b", "c"], True),
        (pd.to_datetime(["2024-01-01", "2024-01-02", "2024-01-03"]), True),
        (pd.Categorical([3, 2, 5]), True),
    ],
)
def test_what_stands_for_no_predecessor(ids, null):
    frame = pd.DataFrame({"src": ids[:2], "dst": ids[1:]})
    found = bfs(frame, list(ids)[1], device="cpu")
    start = found["distance"] == 0
    assert found["predecessor"][start].isna().all() == null
    if not null:
        assert (found["predecessor"][start] == -1).all()
        assert found["predecessor"].dtype == found["vertex"].dtype
    assert (found["predecessor"][~start] == list(ids)[1]).all()


def test_several_starts_and_one_named_twice():
    frame = edges(path(10))["graph"]
    found = bfs(frame, [9, 0, 0])
    assert found["distance"].tolist() == [0, 1, 2, 3, 4, 4, 3, 2, 1, 0]
    assert found["predecessor"].tolist() == [-1, 0, 1, 2, 3, 6, 7, 8, 9, -1]
    assert_frame_equal(found, bfs(frame, pd.Series([0, 9])))
    assert_frame_equal(sssp(frame, [0, 9]), found)


def test_ids_of_several_columns_and_of_tuples():
    given = GRAPHS["several columns"]()
    found = bfs(**given, start=(0, "acc0"))
    assert_frame_equal(found, bfs(**given, start=[(0, "acc0")]))
    frame = found[["0_vertex", "1_vertex"]]
    assert_frame_equal(found, bfs(**given, start=frame[found["distance"] == 0]))
    assert found["1_predecessor"].isna().sum() == 1
    several = bfs(**given, start=((0, "acc0"), (0, "acc9")))
    assert (several["distance"] == 0).sum() == 2
    tuples = pd.DataFrame({"src": [("a", 1), ("b", 2)], "dst": [("b", 2), ("c", 3)]})
    assert bfs(tuples, ("a", 1))["distance"].tolist() == [0, 1, 2]


def test_targets_end_a_search():
    frame = edges(path(50), np.ones(49))["graph"]
    for weight in ("weight", None):
        found = sssp(frame, 0, weight=weight, targets=[7, 3])
        distance = found["distance"]
        assert distance[:8].tolist() == list(range(8))
        assert (distance[8:] == largest(distance.dtype)).all()
        assert (found["predecessor"][8:] == -1).all()
        cut = sssp(frame, 0, weight=weight, cutoff=7)
        assert_frame_equal(found, cut)
    apart = sssp(ROADS, 1, weight="km", targets=[2, 8])
    assert_frame_equal(apart, sssp(ROADS, 1, weight="km"))


def test_a_cutoff_is_inclusive_and_of_the_type_of_the_weights():
    frame = edges(path(4), np.array([0.1, 0.1, 0.1], np.float32))["graph"]
    assert sssp(frame, 0, weight="weight", cutoff=0.1)["distance"].lt(1).sum() == 2
    whole = edges(path(4), np.array([2, 2, 2]))["graph"]
    assert sssp(whole, 0, weight="weight", cutoff=4.9, unreachable="drop").shape[0] == 3
    assert sssp(whole, 0, weight="weight", cutoff=2**70).attrs["glp"]["reached"] == 4
    assert sssp(whole, 0, weight="weight", cutoff=0).attrs["glp"]["reached"] == 1


def test_duplicates_of_data_count_by_the_shortest():
    twice = pd.DataFrame({"src": [1, 2, 1], "dst": [2, 1, 2], "km": [7, 5, 9]})
    assert sssp(twice, 1, weight="km")["distance"].tolist() == [0, 5]
    added = as_graph(twice, weight="km")
    assert sssp(added, 1)["distance"].tolist() == [0, 21]
    least = as_graph(twice, weight="km", multigraph="min")
    assert sssp(least, 1)["distance"].tolist() == [0, 5]
    directed = as_graph(twice, weight="km", multigraph="min", directed=True)
    assert directed.weights.tolist() == [7, 5]


@pytest.mark.parametrize("dtype", [np.int64, np.float32, np.float64])
@given(st.data())
def test_the_least_weight_of_duplicates(dtype, data):
    pairs = data.draw(st.lists(st.tuples(*[st.integers(0, 4)] * 2), min_size=1, max_size=40))
    drawn = st.lists(st.integers(0, 9), min_size=len(pairs), max_size=len(pairs))
    weights = (np.array(data.draw(drawn)) / (1 if dtype == np.int64 else 8)).astype(dtype)
    options = {"directed": data.draw(st.booleans()), "multigraph": "min"}
    graph = as_graph(**edges(pairs, weights, **options), device="cpu")
    _, rows = reference.adjacency(pairs, weights.tolist(), **options)
    assert graph.indices.tolist() == [v for row in rows for v in row]
    assert graph.weights.tolist() == [weight for row in rows for weight in row.values()]
    assert graph.weights.dtype == dtype
    order = data.draw(st.permutations(range(len(pairs))))
    shuffled = edges([pairs[i] for i in order], -weights[list(order)] * 0 + weights[list(order)])
    again = as_graph(shuffled["graph"], weight="weight", device="cpu", **options)
    assert again.weights.tobytes() == graph.weights.tobytes()


def test_zero_and_minus_zero_are_one_weight():
    for weights in ([0.0, -0.0], [-0.0, 0.0]):
        graph = as_graph(([1, 1], [2, 2], weights), multigraph="min", device="cpu")
        assert not np.signbit(graph.weights).any()


@pytest.mark.parametrize("scheme", ["packed", "cgr"])
def test_compressed_graphs_are_searched_as_plain_ones(scheme):
    graph = as_graph(**GRAPHS["power law"](), device="cpu")
    assert_frame_equal(bfs(compress(graph, scheme), 0), bfs(graph, 0))


class SomeEngine:
    """An engine of a device that can search, but not along weights."""

    @staticmethod
    def serves(graph):
        return True

    def bfs(self, starts, depth, predecessors):
        raise AssertionError("not called here")


class SmallEngine(SomeEngine):
    """One that cannot take this graph."""

    @staticmethod
    def serves(graph):
        return graph.number_of_vertices < 2


@pytest.mark.parametrize(
    ("engine", "methods", "moves"),
    [
        (SomeEngine, ("bfs",), False),
        (SomeEngine, ("bfs", "sssp"), True),
        (SmallEngine, ("bfs",), True),
    ],
)
def test_what_a_device_has_no_engine_for_is_done_on_the_host(engine, methods, moves, monkeypatch):
    graph = as_graph(ROADS, device="cpu")
    host = as_graph(ROADS, device="cpu")
    with monkeypatch.context() as patch:
        patch.setattr(Graph, "device", "gpu")
        patch.setattr(Graph, "to", lambda self, device: host if device == "cpu" else None)
        patch.setattr(engines, "ENGINES", {**engines.ENGINES, "gpu": lambda: engine})
        found = engines.where_searched(graph, *methods)
    assert found is (host if moves else graph)


# ---------------------------------------------------------------- what is refused

ZERO = {"graph": ROADS, "start": 1}
BAD = {
    "unknown start": (bfs, {**ZERO, "start": 99}, ValueError, "start holds 1 id.* 99"),
    "no start": (bfs, {**ZERO, "start": []}, ValueError, "start is empty"),
    "null start": (bfs, {**ZERO, "start": [None]}, (ValueError, TypeError), "start holds"),
    "text start": (bfs, {**ZERO, "start": "ann"}, TypeError, "start holds string ids"),
    "float start": (bfs, {**ZERO, "start": 1.5}, TypeError, "start holds float64 ids"),
    "empty graph": (bfs, {"graph": edges([])["graph"], "start": 0}, ValueError, "start holds"),
    "negative depth": (bfs, {**ZERO, "depth_limit": -1}, ValueError, "depth_limit must be at"),
    "half a depth": (bfs, {**ZERO, "depth_limit": 1.5}, TypeError, "depth_limit must be an int"),
    "unreachable": (bfs, {**ZERO, "unreachable": "nan"}, ValueError, "unreachable must be 'max'"),
    "direction": (bfs, {**ZERO, "direction": "up"}, ValueError, "direction must be 'out'"),
    "predecessors": (bfs, {**ZERO, "return_predecessors": 1}, TypeError, "return_predecessors"),
    "negative cutoff": (
        sssp, {"graph": ROADS, "source": 1, "cutoff": -0.5}, ValueError, "cutoff must be at least",
    ),
    "cutoff nan": (
        sssp, {"graph": ROADS, "source": 1, "cutoff": np.nan}, ValueError, "cutoff must be at",
    ),
    "no target": (sssp, {"graph": ROADS, "source": 1, "targets": []}, ValueError, "targets is em"),
    "unknown target": (
        sssp, {"graph": ROADS, "source": 1, "targets": 9}, ValueError, "targets holds 1 id",
    ),
    "negative weight": (
        sssp, {"graph": ROADS.assign(km=-1), "source": 1, "weight": "km"}, ValueError,
        "holds 5 negative weight.*Dijkstra's need non-negative lengths",
    ),
    "nan weight": (
        sssp, {"graph": ROADS.assign(w=np.nan), "source": 1, "weight": "w"}, ValueError, "NaN",
    ),
    "strategy": (
        sssp, {"graph": ROADS, "source": 1, "strategy": "wolf"}, ValueError, "strategy must be",
    ),
    "memory limit": (
        bfs, {**ZERO, "memory_limit": 10}, LackOfMemory, "is .* too little to sea",
    ),
    "long integers": (
        sssp, {"graph": ROADS.assign(km=2**62), "source": 1, "weight": "km"}, ValueError,
        "weight: .*add up to more than int64",
    ),
    "long floats": (
        sssp, {"graph": ROADS.assign(w=1e308), "source": 1, "weight": "w"}, ValueError,
        "weight: .*add up to more than float64",
    ),
    "no sources": (multi_source_bfs, {"graph": ROADS, "sources": []}, ValueError, "sources is em"),
    "k": (betweenness_centrality, {"graph": ROADS, "k": 7}, ValueError, "k must be at most.*6"),
    "k 0": (betweenness_centrality, {"graph": ROADS, "k": 0}, ValueError, "k must be at least 1"),
    "k and sources": (
        betweenness_centrality, {"graph": ROADS, "k": 1, "sources": [1]}, ValueError, "leave one",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_input_gets_one_clear_error(name):
    call, options, error, words = BAD[name]
    with pytest.raises(error, match=words):
        call(**options, device="cpu")


def test_integers_up_to_the_largest_sum_are_exact():
    large = 2**61 - 1
    frame = edges(path(4), np.array([large, large, large]), directed=True)["graph"]
    found = sssp(frame, 0, weight="weight", directed=True)
    assert found["distance"].tolist() == [0, large, 2 * large, 3 * large]


# ---------------------------------------------------------------- paths as rows


def walk(found, target):
    """The path to a target, by the columns of a result."""
    before = dict(zip(found["vertex"], found["predecessor"], strict=True))
    vertices = [target]
    while before.get(vertices[-1]) in before:
        vertices.append(before[vertices[-1]])
    return vertices[::-1]


@pytest.mark.parametrize("unreachable", ["max", "null", "drop"])
@pytest.mark.parametrize("name", ["strings", "negative", "random", "beyond int63", "disconnected"])
def test_paths_are_those_of_the_predecessors(name, unreachable):
    graph = as_graph(**GRAPHS[name](), device="cpu")
    ids = graph.external().tolist()
    found = bfs(graph, ids[0], unreachable=unreachable)
    reached = bfs(graph, ids[0], unreachable="drop")
    there = found["vertex"].tolist()
    targets = there[::3]
    rows = shortest_paths(found.sample(frac=1, random_state=1), targets[::-1])
    ends = [target for target in targets if target in set(reached["vertex"])]
    assert rows.attrs["glp"]["unreached"] == len(targets) - len(ends)
    assert rows["target"].drop_duplicates().tolist() == ends
    for target, path_ in rows.groupby("target"):
        assert path_["vertex"].tolist() == walk(reached, target)
        assert path_["distance"].tolist() == list(range(len(path_)))
        assert path_["step"].tolist() == list(range(len(path_)))


def test_paths_of_ids_of_several_columns():
    found = bfs(**GRAPHS["several columns"](), start=(0, "acc0"))
    rows = shortest_paths(found, (0, "acc9"))
    assert rows["1_vertex"].tolist() == ["acc0", "acc4", "acc5", "acc9"]
    assert rows["1_target"].unique().tolist() == ["acc9"]


@given(st.lists(st.integers(-1, 11), min_size=12, max_size=12), st.permutations(range(12)))
def test_sizes_of_paths_and_circles(before, ends):
    expected = []
    for place in ends:
        size = 0
        while place >= 0 and size <= len(before):
            place, size = before[place], size + 1
        expected.append(size if place < 0 else -1)
    assert cpu_paths.path_sizes(np.array(before), np.array(ends)).tolist() == expected


def test_paths_that_do_not_fit_are_refused_before_they_are_made(monkeypatch):
    found = bfs(edges(path(300))["graph"], 0)
    monkeypatch.setattr(paths, "memory_free", lambda device: 300 * 301 // 2 * 40 - 1)
    with pytest.raises(LackOfMemory, match=r"300 targets have 45,150 vertices.*fewer targets"):
        shortest_paths(found, range(300))
    assert len(shortest_paths(found, range(299))) == 299 * 300 // 2


@pytest.mark.parametrize("unreachable", ["max", "drop"])  # nulls would turn ids into floats
@pytest.mark.parametrize("weight", [None, "km", "w"])
def test_paths_of_a_result_that_was_a_file(weight, unreachable):
    found = sssp(ROADS, 1, weight=weight, unreachable=unreachable)
    read = pd.read_csv(io.StringIO(found.to_csv(index=False)))
    targets = found["vertex"].tolist()
    rows = shortest_paths(read, targets)
    expected = shortest_paths(found, targets)
    assert_frame_equal(rows, expected, check_dtype=False)
    assert rows["vertex"].tolist() == [1, 1, 3, 2, 1, 3, 1, 3, 4] or weight is None
    assert rows.attrs["glp"]["unreached"] == (0 if unreachable == "drop" else 2)


def test_results_that_are_none_are_refused():
    found = bfs(ROADS, 1)
    for wrong, words in (
        (found.drop(columns="predecessor"), "return_predecessors=True"),
        (found.drop(columns="distance"), "vertex, distance and predecessor"),
        (found[found["vertex"] != 3], "the predecessor .*3.* is none of its vertices"),
        (found.assign(predecessor=[2, 1, 1, 3, 1, 1]), "in a circle"),
        (pd.concat([found, found]), "twice"),
    ):
        with pytest.raises(ValueError, match=words):
            shortest_paths(wrong, 2)
    with pytest.raises(TypeError, match="result must be a frame"):
        shortest_paths([1, 2], 2)
    with pytest.raises(ValueError, match="targets is empty"):
        shortest_paths(found, [])
    with pytest.raises(ValueError, match="targets holds 1 id"):
        shortest_paths(found, 77)


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
            reached = own["distance"][own["distance"].notna() & (own["distance"] != FAR)]
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
    for normalized, endpoints in SCALES:
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
    neighbours = reference.neighbour_sets(graph.indptr, graph.indices)
    known = reference.connected_components(dict(enumerate(neighbours)))
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
