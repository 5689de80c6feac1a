"""Edges by layers: none is lost, and what is made of them is what searches find."""

import signal
import threading
import time
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import reference
from graphs import GRAPHS, edge_frames, edges, path
from hypothesis import given
from hypothesis import strategies as st
from pandas.testing import assert_frame_equal

from glp_rapids import as_graph, bfs, layered_edges, sssp
from glp_rapids.jit.interrupts import Stopped, stopped_by
from glp_rapids.traversal import search
from glp_rapids.traversal.kernels import cpu_layers

WITH_VERTICES = [name for name in GRAPHS if name != "empty"]


def check(given, direction, starts):
    graph = as_graph(**given, device="cpu")
    rows = graph.rows(direction)
    level = reference.distances(rows.indptr, rows.indices, None, starts)
    ids = graph.external(np.array(starts))
    layers = layered_edges(graph, ids, direction=direction)

    # every entry of a row that is reached, by layer, source and place, and of which kind
    expected = []
    for u in sorted((v for v, of in enumerate(level) if of is not None), key=level.__getitem__):
        for p in range(rows.indptr[u], rows.indptr[u + 1]):
            v = int(rows.indices[p])
            kind = {1: "forward", 0: "same"}.get(level[v] - level[u], "back")
            expected.append(
                (u, v, level[u], kind, None if rows.weights is None else rows.weights[p])
            )
    u, v, layer, kind, weights = zip(*expected, strict=True) if expected else [()] * 5
    columns = graph.external_columns(np.array(u, np.int64), "src")
    columns |= graph.external_columns(np.array(v, np.int64), "dst")
    frame = pd.DataFrame(columns | {"layer": np.array(layer, graph.index_dtype)})
    frame["kind"] = pd.Categorical(kind, categories=["back", "same", "forward"])
    if rows.weights is not None:
        frame["weight"] = np.array(weights, rows.weights.dtype)
    found = layers.edges()
    assert_frame_equal(found, frame)
    assert layers.number_of_edges == len(expected) == layers.about["edges"]
    deepest = max(of for of in level if of is not None)
    assert layers.number_of_layers == deepest + 1 == layers.about["layers"]

    parts = list(layers.layers())
    assert [part.layer for part in parts] == list(range(deepest + 1))
    assert np.concatenate([part.source for part in parts]).tolist() == list(u)
    assert np.concatenate([part.destination for part in parts]).tolist() == list(v)
    for part in parts:
        assert part.kind.tolist() == [
            (level[b] > level[a]) - (level[b] < level[a])
            for a, b in zip(part.source.tolist(), part.destination.tolist(), strict=True)
        ]

    for unreachable in ("max", "null", "drop"):
        alone = bfs(graph, ids, direction=direction, unreachable=unreachable)
        assert_frame_equal(layers.bfs(unreachable=unreachable), alone)
        if rows.weights is not None:
            options = {"unreachable": unreachable, "cutoff": 3 if unreachable == "max" else None}
            alone = sssp(graph, ids, direction=direction, return_predecessors=False, **options)
            assert_frame_equal(layers.sssp(**options), alone)

    paths = [1.0 if w in starts else 0.0 for w in range(len(level))]
    for a, b, _, way, _ in expected:
        paths[b] += paths[a] if way == "forward" else 0
    assert layers.path_counts()["paths"].tolist() == paths


@pytest.mark.parametrize("direction", ["out", "in", "both"])
@pytest.mark.parametrize("name", WITH_VERTICES)
def test_no_edge_is_lost(name, direction):
    n = as_graph(**GRAPHS[name](), device="cpu").number_of_vertices
    for starts in ([0], sorted({0, n // 2})):
        check(GRAPHS[name](), direction, starts)


@given(edge_frames(), st.data())
def test_layers_of_any_graph(given, data):
    n = as_graph(**given, device="cpu").number_of_vertices
    if n:
        direction = data.draw(st.sampled_from(["out", "in", "both"]))
        check(given, direction, [data.draw(st.integers(0, n - 1))])


def test_shortest_paths_that_the_paper_would_miss():
    # the way over all layers but the first is shorter than the edge that leaps
    weights = np.array([1, 1, 1, 1, 10, 1])
    frame = edges([*path(5), (0, 3), (3, 5)], weights)["graph"]
    layers = layered_edges(frame, 0, weight="weight", multigraph="min")
    found = layers.sssp()
    assert found["distance"].tolist() == [0, 1, 2, 3, 4, 4]
    assert found.attrs["glp"]["sweeps"] >= 2


def test_of_duplicates_in_a_frame_the_shortest_counts():
    frame = pd.DataFrame({"src": [0, 0, 1], "dst": [1, 1, 2], "w": [5, 3, 1]})
    layers = layered_edges(frame, 0, weight="w")
    expected = sssp(frame, 0, weight="w", return_predecessors=False)
    assert_frame_equal(layers.sssp(), expected)
    assert expected["distance"].tolist() == [0, 3, 4]
    assert layers.edges()["weight"].tolist() == [3, 3, 1, 1]
    added = layered_edges(frame, 0, weight="w", multigraph="merge")
    assert added.sssp()["distance"].tolist() == [0, 8, 9]


def test_with_both_directions_a_pair_of_edges_is_two_ways():
    layers = layered_edges(([0, 1, 1], [1, 0, 2]), 0, directed=True, direction="both")
    assert layers.path_counts()["paths"].tolist() == [1.0, 2.0, 2.0]
    assert layers.edges()["dst"].tolist() == [1, 1, 0, 0, 2, 1]


def test_seconds_are_those_of_each_call(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(search, "time", SimpleNamespace(perf_counter=lambda: now[0]))
    frame = edges(path(3), np.ones(2))["graph"]
    layers = layered_edges(frame, 0, weight="weight", device="cpu")
    now[0] = 1000.0  # much later
    assert layers.bfs().attrs["glp"]["seconds"] == 0
    assert layers.sssp().attrs["glp"]["seconds"] == 0


def test_what_layers_cannot_do_is_refused():
    with pytest.raises(ValueError, match="start holds 1 id"):
        layered_edges(edges(path(3))["graph"], 9)
    layers = layered_edges(edges(path(3))["graph"], 0, device="cpu")
    assert repr(layers) == "LayeredEdges(3 layers, 4 edges)"
    with pytest.raises(ValueError, match="no weights"):
        layers.sssp()
    with pytest.raises(ValueError, match="unreachable must be"):
        layers.bfs(unreachable="no")


WORK = {
    "relax_all": lambda layers: layers.sssp(),
    "count_paths": lambda layers: layers.path_counts(),
}


@pytest.mark.parametrize("kernel", WORK)
def test_work_on_layers_can_be_interrupted(kernel, monkeypatch):
    layers = layered_edges(edges(path(3), np.ones(2))["graph"], 0, weight="weight", device="cpu")
    raised = []

    def stopped():
        with stopped_by(np.ones(1, np.uint8)):
            try:
                WORK[kernel](layers)
            except Stopped as error:
                raised.append(error)

    thread = threading.Thread(target=stopped)
    thread.start()
    thread.join()
    assert len(raised) == 1
    seen = []

    def endless(*arguments):
        time.sleep(0.5)  # until the main thread waits
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
        end = time.monotonic() + 10
        while not arguments[-1][0] and time.monotonic() < end:
            time.sleep(0.01)
        seen.append(int(arguments[-1][0]))

    monkeypatch.setattr(cpu_layers, kernel, endless)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # xdist's workers ignore it
    try:
        with pytest.raises(KeyboardInterrupt):
            WORK[kernel](layers)
    finally:
        signal.signal(signal.SIGINT, before)
    assert seen == [1]


def test_kernels_look_at_the_flag():
    order, offsets = np.arange(2, dtype=np.int32), np.array([0, 1, 2])
    indices, raised = np.array([1, 0], np.int32), np.ones(1, np.uint8)
    paths = np.array([1.0, 0.0])
    cpu_layers.count_paths(order, offsets, indices, order, paths, raised)
    assert paths.tolist() == [1.0, 0.0]
    distance = np.array([0.0, 9.0])
    cpu_layers.relax_all(order, offsets, indices, np.ones(2), distance, 9.0, 8.0, raised)
    assert distance.tolist() == [0.0, 9.0]
