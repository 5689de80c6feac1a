"""Breadth-first search and shortest paths, beside the twins and other libraries."""

import gzip
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle, product

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import reference_traversal as reference
from graphs import GRAPHS, edge_frames, edges, path, power_law_pairs, random_pairs
from hypothesis import given
from hypothesis import strategies as st
from pandas.testing import assert_frame_equal
from scipy import sparse
from scipy.sparse import csgraph

from glp_rapids import (
    as_graph,
    betweenness_centrality,
    bfs,
    compress,
    layered_edges,
    multi_source_bfs,
    sssp,
    weakly_connected_components,
)
from glp_rapids.jit.interrupts import Stopped, stopped_by
from glp_rapids.traversal.engines import cpu, cpu_pace, largest
from glp_rapids.traversal.kernels import cpu_sssp

DIRECTIONS = ("out", "in", "both")
WITH_VERTICES = [name for name in GRAPHS if name != "empty"]


def check_predecessors(graph, found, before):
    """The column of a result says what the twin says, by ids, with the marks that are promised."""
    names = graph.vertices.names("predecessor")
    ids = graph.external()
    ids = ids if isinstance(ids, pd.DataFrame) else ids.to_frame()
    for name, values in zip(names, (ids[column] for column in ids), strict=True):
        values, column = values.tolist(), found[name]
        marks = len(names) == 1 and isinstance(values[0], int) and -1 not in values
        marks &= graph.vertices.columns[0].id_dtype.kind == "i"
        for place, u in enumerate(before.tolist()):
            if u >= 0:
                assert column[place] == values[u]
            elif marks:
                assert column[place] == -1
            else:
                assert pd.isna(column[place])


def check(given, direction, starts, *, weighted, cutoff=None):
    graph = as_graph(**given, device="cpu")
    rows = graph.rows(direction)
    weights = rows.weights if weighted else None
    found = reference.distances(rows.indptr, rows.indices, weights, starts, cutoff)
    before = reference.predecessors(rows.indptr, rows.indices, weights, starts, found)
    dtype = graph.index_dtype if weights is None else weights.dtype
    distance = np.array([largest(dtype) if one is None else one for one in found], dtype=dtype)
    ids = graph.external(np.array(starts))
    limit = {"cutoff": cutoff} if weighted else {"depth_limit": cutoff}
    call = sssp if weighted else bfs
    result = call(graph, ids, direction=direction, device="cpu", **limit)
    assert result["distance"].dtype == dtype
    assert result["distance"].tolist() == distance.tolist()
    vertices = graph.frame({})
    assert_frame_equal(result[list(vertices)], vertices)
    check_predecessors(graph, result, np.array(before))
    reached = [one is not None for one in found]
    assert result.attrs["glp"]["reached"] == sum(reached)
    assert result.attrs["glp"]["device"] == "cpu"
    if not weighted:
        far = max(one for one in found if one is not None)
        assert result.attrs["glp"]["levels"] == far
    without = call(graph, ids, direction=direction, return_predecessors=False, **limit)
    assert_frame_equal(without, result[list(without)])
    if weighted:
        ways = {"strategy": "wolfpath", "memory_limit": "1GB"}
        assert_frame_equal(sssp(graph, ids, direction=direction, **ways, **limit), result)
    return result


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("name", WITH_VERTICES)
def test_searches_are_as_the_twins_say(name, direction):
    n = as_graph(**GRAPHS[name](), device="cpu").number_of_vertices
    starts = [0], [n - 1], sorted({0, n // 2, n - 1})
    cutoffs = cycle([None, 0, 2])  # each with each over directions and graphs
    for _ in range(WITH_VERTICES.index(name) + DIRECTIONS.index(direction)):
        next(cutoffs)
    for some, weighted in product(starts, (False, True)):
        check(GRAPHS[name](), direction, some, weighted=weighted, cutoff=next(cutoffs))


@given(edge_frames(), st.data())
def test_searches_of_any_graph_are_as_the_twins_say(given, data):
    n = as_graph(**given, device="cpu").number_of_vertices
    if n == 0:
        return
    starts = sorted(data.draw(st.sets(st.integers(0, n - 1), min_size=1, max_size=3)))
    direction, weighted = data.draw(st.sampled_from(DIRECTIONS)), data.draw(st.booleans())
    cutoff = data.draw(st.none() | st.integers(0, 12))
    check(given, direction, starts, weighted=weighted, cutoff=cutoff)


WEIGHTS = {
    "zero or one": np.array([0, 1], np.int64),
    "all zero": np.array([0.0]),
    "huge": np.array([0.0, 1e300, 3e299, 1.0]),
    "tiny": np.array([5e-324, 1e-310, 0.0, 1e-300]),
    "absorbed": np.array([1.0, 1e-17, 2e-16, 1e-30, 0.0]),
    "absorbed in float32": np.array([1, 1e-9, 6e-8, 16777216, 0], np.float32),
    "large integers": np.array([2**40, 2**40 + 1, 1, 0]),
    "of all sizes": 10.0 ** np.arange(-12, 13, 3),
}


@pytest.mark.parametrize("kind", WEIGHTS)
@given(st.data())
def test_zero_and_absorbed_and_huge_weights(kind, data):
    pairs = data.draw(st.lists(st.tuples(*[st.integers(0, 9)] * 2), min_size=1, max_size=50))
    of_kind = st.lists(st.sampled_from(range(WEIGHTS[kind].size)), min_size=len(pairs))
    weights = WEIGHTS[kind][np.array(data.draw(of_kind))[: len(pairs)]]
    given = edges(pairs, weights, directed=data.draw(st.booleans()), multigraph="min")
    check(given, "out", [0], weighted=True)


def pull_always(monkeypatch):
    monkeypatch.setattr(cpu, "PULL", (1 << 30, 1 << 30))


def pull_never(monkeypatch):
    monkeypatch.setattr(cpu, "PULL", (0, 0))


def two_threads(monkeypatch):
    pull_always(monkeypatch)
    monkeypatch.setattr(cpu, "PARALLEL_FROM", 0)


WAYS = {"pull": pull_always, "push": pull_never, "threads": two_threads, "in turns": None}
LARGER = {
    "power law": edges(power_law_pairs(5000, 30000, 7), vertices=range(5300)),
    "random": edges(random_pairs(3000, 9000, 5)),
    "long": edges([*path(2000), *random_pairs(300, 900, 6)]),
    "directed": edges(power_law_pairs(4000, 20000, 8), directed=True),
}


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("name", LARGER)
def test_every_way_of_a_search_finds_the_same(name, direction, monkeypatch):
    results = []
    for change in WAYS.values():
        for transposed in (False, True):
            graph = as_graph(**LARGER[name], device="cpu")
            if transposed:
                graph.transpose()
            with monkeypatch.context() as patch:
                if change:
                    change(patch)
                results.append(bfs(graph, 3, direction=direction))
    rows = graph.rows(direction)
    n = graph.number_of_vertices
    matrix = sparse.csr_array((np.ones(rows.indices.size), rows.indices, rows.indptr), (n, n))
    start = int(graph.vertex_index([3])[0])
    known = csgraph.dijkstra(matrix, indices=start, unweighted=True)
    known[np.isinf(known)] = largest(results[0]["distance"].dtype)
    assert results[0]["distance"].tolist() == known.tolist()
    for other in results[1:]:
        assert_frame_equal(other, results[0])
        assert other.attrs["glp"]["levels"] == results[0].attrs["glp"]["levels"]


@pytest.mark.parametrize("step", [1e-9, 0.01, 1.0, 1e6])
@pytest.mark.parametrize("dtype", [np.int64, np.float32, np.float64])
@pytest.mark.parametrize("name", LARGER)
def test_the_step_of_the_limit_does_not_show(name, dtype, step, monkeypatch):
    pairs = LARGER[name]["graph"]
    weights = np.random.default_rng(1).integers(0, 1000, len(pairs)).astype(dtype)
    frame = pairs.assign(weight=weights if dtype == np.int64 else weights / dtype(7))
    graph = as_graph(
        frame, weight="weight", directed=name == "directed", multigraph="min", device="cpu"
    )
    monkeypatch.setattr(cpu_pace, "STEP", step)
    found = sssp(graph, 3)
    start = int(graph.vertex_index([3])[0])
    if dtype != np.float32:
        matrix = sparse.csr_array(
            (np.maximum(graph.weights.astype(float), 1e-200), graph.indices, graph.indptr),
            (graph.number_of_vertices,) * 2,
        )
        known = csgraph.dijkstra(matrix, indices=start)
        reached = np.isfinite(known)
        assert (found["distance"][reached] == np.where(known < 1e-100, 0, known)[reached]).all()
        assert (found["distance"][~reached] == largest(graph.weights.dtype)).all()
    certificate(graph, [start], found)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_weights_from_one_to_two_to_the_hundred_and_ten(dtype):
    leaves = np.arange(3 * cpu_pace.SAMPLE)
    weights = np.where(leaves % 3, 2.0 ** (leaves / leaves.size * 110), 1.0).astype(dtype)
    star = pd.DataFrame({"src": 0, "dst": leaves + 1, "w": weights})
    found = sssp(star, 0, weight="w", directed=True)
    np.testing.assert_array_equal(found["distance"].to_numpy()[1:], weights)
    assert found["distance"].dtype == dtype


def test_the_step_is_one_of_most_weights():
    # a mean would be that of the largest, or no number at all
    i, j = np.triu_indices(30, 1)
    found = sssp((i, j, np.full(i.size, 8e305)), 0)
    assert found["distance"].tolist() == [0.0] + [8e305] * 29
    weights = np.full(1000, 512, np.int64)
    weights[::10], weights[5] = 0, 1 << 50
    graph = as_graph((np.arange(1000), np.arange(1, 1001), weights), device="cpu", directed=True)
    pace = cpu.CpuEngine(graph, "out")._pace
    assert pace == (512 * cpu_pace.STEP, 512 * cpu_pace.STEP / cpu_pace.FINEST, False, True)
    nothing = as_graph((i, j, np.zeros(i.size)), device="cpu")
    assert cpu.CpuEngine(nothing, "out")._pace.step == np.finfo(np.float64).tiny


@pytest.mark.parametrize("options", [{}, {"cutoff": 1 << 32}, {"targets": [3]}])
@pytest.mark.parametrize("beyond", [0, 1])
def test_sums_up_to_half_a_word_and_beyond(beyond, options):
    most = cpu_sssp.MOST // 6
    graph = as_graph(
        ([0, 1, 2, 5], [1, 2, 3, 6], [most + beyond, most, 0, 1]), device="cpu", directed=True
    )
    assert cpu.CpuEngine(graph, "out")._pace.words == (not beyond)
    found = sssp(graph, 0, **options)
    sums, none = [0, most + beyond, *[2 * most + beyond] * 2], largest(np.dtype(np.int64))
    assert found["distance"].tolist() == [*sums, none, none]
    assert found["predecessor"].tolist() == [-1, 0, 1, 2, -1, -1]


def certificate(graph, starts, found):
    """Predecessors are on shortest paths, never in a circle, and the smallest that are nearer."""
    distance = found["distance"].to_numpy()
    before = pd.Index(found["vertex"]).get_indexer(found["predecessor"])
    rows, n = graph.row_indices(), graph.number_of_vertices
    far = largest(distance.dtype)
    tight = distance[rows] != far
    tight[tight] = distance[rows[tight]] + graph.weights[tight] == distance[graph.indices[tight]]
    nearer = tight & (distance[rows] < distance[graph.indices])
    smallest = np.full(n, n)
    np.minimum.at(smallest, graph.indices[nearer], rows[nearer])
    has = smallest < n
    assert (before[has] == smallest[has]).all()
    pairs = set(zip(rows[tight].tolist(), graph.indices[tight].tolist(), strict=True))
    others = np.flatnonzero((distance != far) & ~has)
    assert set(others[before[others] < 0].tolist()) == set(starts)
    assert all((int(before[v]), v) in pairs for v in others.tolist() if v not in starts)
    reached = set(starts)
    left = set(np.flatnonzero(distance != far).tolist()) - reached
    while left:
        ends = {v for v in left if int(before[v]) in reached}
        assert ends
        reached |= ends
        left -= ends


@pytest.mark.parametrize("directed", [False, True])
def test_the_references_of_ldbc(directed, data):
    names = ["src", "dst", "weight"]
    frame = pd.read_csv(data / "graphalytics-p2p-31.e.gz", sep=" ", names=names)
    vertices = pd.read_csv(data / "graphalytics-p2p-31.v.gz", sep=" ", header=None)[0]
    options = {"weight": "weight", "directed": directed, "vertices": vertices, "device": "cpu"}
    graph = as_graph(frame, multigraph="min", **options)
    for call, name in ((bfs, "BFS"), (sssp, "SSSP")):
        file = data / f"graphalytics-p2p-31.{name}{'-directed' if directed else ''}.gz"
        with gzip.open(file, "rt") as lines:
            known = dict(line.split() for line in lines)
        found = call(graph, 6, unreachable="drop").set_index("vertex")["distance"]
        far = ("9223372036854775807", "infinity")
        reached = {int(v): float(d) for v, d in known.items() if d.lower() not in far}
        assert set(found.index) == set(reached)
        assert np.allclose(found, [reached[v] for v in found.index], rtol=1e-12, atol=0)


@pytest.mark.parametrize("directed", [False, True])
def test_distances_are_those_of_networkx(directed):
    pairs = power_law_pairs(300, 900, 11)
    weights = np.random.default_rng(2).random(len(pairs))
    frame = edges(pairs, weights)["graph"]
    multi = nx.MultiDiGraph() if directed else nx.MultiGraph()
    multi.add_weighted_edges_from(frame.itertuples(index=False))
    for cutoff in (None, 0.75):
        known = nx.single_source_dijkstra_path_length(multi, 0, cutoff=cutoff)
        options = {"weight": "weight", "directed": directed, "unreachable": "drop"}
        found = sssp(frame, 0, cutoff=cutoff, **options)
        assert dict(zip(found["vertex"], found["distance"], strict=True)) == known
    known = nx.single_source_shortest_path_length(multi, 0, cutoff=3)
    found = bfs(frame, 0, depth_limit=3, directed=directed, unreachable="drop")
    assert dict(zip(found["vertex"], found["distance"], strict=True)) == known


def test_distances_are_those_of_networkit():
    networkit = pytest.importorskip("networkit")
    graph = as_graph(**LARGER["random"], device="cpu")
    n = graph.number_of_vertices
    theirs = networkit.GraphFromCoo(
        (graph.row_indices().astype(np.int64), graph.indices.astype(np.int64)), n=n, directed=True
    )
    known = networkit.distance.BFS(theirs, 0, storePaths=False).run().getDistances()
    found = bfs(graph, graph.external(np.array([0])))["distance"].to_numpy().astype(float)
    found[found == 2**31 - 1] = np.finfo(float).max
    assert found.tolist() == known


def test_real_graphs_are_as_scipy_says(data):
    from glp_rapids import datasets

    for name in ("wiki-Vote", "road-luxembourg", "ca-CondMat"):
        frame = datasets.load(name)[["src", "dst"]]
        graph = as_graph(frame, directed=name == "wiki-Vote", device="cpu")
        start = int(np.argmax(graph.degree))
        matrix = sparse.csr_array((np.ones(graph.indices.size), graph.indices, graph.indptr))
        known = csgraph.dijkstra(matrix, indices=start, unweighted=True)
        found = bfs(graph, graph.external(np.array([start])), unreachable="drop")
        assert found["distance"].tolist() == known[np.isfinite(known)].astype(int).tolist()


STOPPED = {
    "bfs": lambda graph: bfs(graph, 0),
    "sssp": lambda graph: sssp(graph, 0),
    "multi_source_bfs": lambda graph: multi_source_bfs(graph, [0, 1]),
    "weakly_connected_components": weakly_connected_components,
    "betweenness_centrality": lambda graph: betweenness_centrality(graph, sources=[0]),
}


@pytest.mark.parametrize("name", STOPPED)
def test_a_raised_flag_stops_a_search(name):
    graph = as_graph(**edges(path(20_000), np.ones(19_999)), device="cpu")

    def search():
        with stopped_by(np.ones(1, np.uint8)):
            STOPPED[name](graph)

    # in a thread of its own, as what can be interrupted runs
    with ThreadPoolExecutor(1) as pool, pytest.raises(Stopped):
        pool.submit(search).result()
    STOPPED[name](graph)


def test_what_sssp_cannot_be_told_is_told_to_as_graph():
    roads = pd.DataFrame({"a": [0], "b": [1]})
    for ends in ({"source": 0}, {"source": "a", "destination": "b"}):
        with pytest.raises(ValueError, match=r"source= of sssp is where it begins, .*as_graph"):
            sssp(roads, **ends, device="cpu")
    graph = as_graph(roads, source="a", destination="b", device="cpu")
    for search in (sssp, layered_edges):
        with pytest.raises(ValueError, match=r"multigraph= does not apply to .*; tell as_graph"):
            search(graph, 0, multigraph="min")
    assert sssp(graph, 0)["distance"].tolist() == [0, 1]


def test_files_of_graphs_that_are_built(tmp_path):
    twice = pd.DataFrame({"src": [0, 0], "dst": [1, 1], "km": [5, 7]})
    path = tmp_path / "roads.glp"
    compress(twice, weight="km", device="cpu").save(path)
    assert sssp(path, 0, device="cpu")["distance"].tolist() == [0, 12]
    assert layered_edges(path, 0, device="cpu").edges()["weight"].tolist() == [12, 12]
    for search in (sssp, layered_edges):
        with pytest.raises(ValueError, match=r"multigraph= does not apply to .*; tell as_graph"):
            search(path, 0, multigraph="min", device="cpu")
