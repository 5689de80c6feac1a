"""Edges by layers: none is lost, and what is made of them is what searches find."""

import errno
import os
import signal
import threading
import time
import tracemalloc
from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import reference_traversal as reference
from graphs import GRAPHS, edge_frames, edges, path, power_law_pairs, random_pairs
from hypothesis import given
from hypothesis import strategies as st
from pandas.testing import assert_frame_equal

from glp_rapids import as_graph, bfs, layered_edges, sssp
from glp_rapids.device import LackOfMemory
from glp_rapids.jit.interrupts import Stopped, stopped_by
from glp_rapids.outofcore.double_buffer import SLOTS
from glp_rapids.traversal import search
from glp_rapids.traversal.engines.cpu_strips import OF_RELAXING
from glp_rapids.traversal.kernels import cpu_layers
from glp_rapids.traversal.limits import OF_FILES

WITH_VERTICES = [name for name in GRAPHS if name != "empty"]


@contextmanager
def as_short_of_memory_as_can_be(layers):
    """Strips of a row or so: two of the longest rows have room beside what there is by vertex."""
    lists = layers._lists
    longest = SLOTS * int(np.diff(lists.offsets).max(initial=0))
    entry = lists.indices.itemsize + lists.weights.itemsize
    memory = OF_RELAXING * layers._search.graph.number_of_vertices + longest * entry
    layers._lists = lists._replace(memory=memory)
    yield
    layers._lists = lists


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
            with as_short_of_memory_as_can_be(layers):
                assert_frame_equal(layers.sssp(**options), alone)

    paths = [1.0 if w in starts else 0.0 for w in range(len(level))]
    for a, b, _, way, _ in expected:
        paths[b] += paths[a] if way == "forward" else 0
    assert layers.path_counts()["paths"].tolist() == paths
    shares = [0.0] * len(level)
    for a in reversed(dict.fromkeys(u)):
        ahead = (b for c, b, _, way, _ in expected if c == a and way == "forward")
        for b in ahead:
            shares[a] += paths[a] / paths[b] * (1.0 + shares[b])
    shares = [0.0 if w in starts else share for w, share in enumerate(shares)]
    assert layers.dependencies()["dependency"].tolist() == shares
    if len(starts) == 1:
        engine = layers._search.engine
        assert engine.dependencies(layers._starts, False).tolist() == shares


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


def mapped(graph, folder):
    """The graph with its neighbour lists in mapped files."""
    arrays = {}
    for name in ("indices", "weights"):
        np.save(folder / f"{name}.npy", getattr(graph, name))
        arrays[name] = np.load(folder / f"{name}.npy", mmap_mode="r")
    return replace(graph, **arrays, _derived={})


def test_layers_in_files_are_those_in_memory(tmp_path):
    pairs = power_law_pairs(3000, 60000, 5)
    weights = np.random.default_rng(2).integers(1, 100, len(pairs))
    given = edges(pairs, weights, directed=True, multigraph="min")
    graph = mapped(as_graph(**given, device="cpu"), tmp_path)
    rows = graph.rows("out")
    entry = 4 + weights.itemsize
    limit = 3000 * OF_FILES + SLOTS * rows.largest_degree() * entry
    files = sorted(tmp_path.iterdir())
    here = layered_edges(graph, 5)
    for traced in (False, True):  # first all code is loaded
        if traced:
            tracemalloc.start()
        there = layered_edges(graph, 5, memory_limit=limit, folder=tmp_path)
        found, paths = there.sssp(), there.path_counts()
    assert tracemalloc.get_traced_memory()[1] < limit
    tracemalloc.stop()
    assert sorted(tmp_path.iterdir()) == files
    assert there.about["in_files"] == there.number_of_edges * entry > limit - 3000 * OF_RELAXING
    assert here.about["in_files"] == 0
    assert_frame_equal(found, here.sssp())
    assert_frame_equal(found, sssp(graph, 5, return_predecessors=False))
    assert_frame_equal(paths, here.path_counts())
    assert_frame_equal(there.dependencies(), here.dependencies())
    assert_frame_equal(there.edges(), here.edges())
    report = found.attrs["glp"]
    assert 0 < report["layers_streamed"] < there.number_of_layers
    assert there.about["in_files"] < report["bytes_read"]
    assert report["bytes_read"] <= report["sweeps"] * there.about["in_files"]
    assert report["device"] == "cpu"
    roomy = layered_edges(graph, 5, memory_limit="1GB", folder=tmp_path)
    assert roomy.about["in_files"] == 0


def test_files_for_layers_need_a_folder_with_room(tmp_path, monkeypatch):
    graph = as_graph(**edges(random_pairs(500, 9000, 3)), device="cpu")
    lists = graph.indices.nbytes
    vertices, longest = graph.number_of_vertices, graph.rows().largest_degree()
    limit = vertices * OF_FILES + lists + SLOTS * longest * 4
    with pytest.raises(LackOfMemory, match="pass folder= to layered_edges"):
        layered_edges(graph, 0, memory_limit=limit)
    with pytest.raises(ValueError, match="folder must be a folder that there is, not '/"):
        layered_edges(graph, 0, memory_limit=limit, folder=tmp_path / "nowhere")
    with pytest.raises(TypeError, match="folder must be a str, a path or None, not 7"):
        layered_edges(graph, 0, folder=7)
    with pytest.raises(LackOfMemory, match="lists lie in mapped files"):
        layered_edges(graph, 0, memory_limit=lists, folder=tmp_path)
    assert layered_edges(graph, 0, memory_limit=limit, folder=tmp_path).about["in_files"] == lists

    def full(*arguments):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full, raising=False)
    with pytest.raises(OSError, match="No space left"):
        layered_edges(graph, 0, memory_limit=limit, folder=tmp_path)


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


def test_more_paths_than_a_float_counts_have_no_shares():
    rungs = np.arange(1100)  # each doubles the paths
    pairs = [(3 * r + a, 3 * r + b) for r in rungs for a, b in ((0, 1), (0, 2), (1, 3), (2, 3))]
    layers = layered_edges(edges(pairs)["graph"], 0)
    assert np.isinf(layers.path_counts()["paths"].iloc[-1])
    with pytest.raises(ValueError, match="more than 1e308 shortest paths"):
        layers.dependencies()


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
    "sum_dependencies": lambda layers: layers.dependencies(),
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


def test_frames_are_not_of_the_memory_of_layers():
    layers = layered_edges(pd.DataFrame({"src": [0, 1, 2], "dst": [1, 2, 3]}), 0, device="cpu")
    frame, found = layers.bfs(), layers._found
    for name in ("distance", "predecessor"):
        column = frame[name].to_numpy()
        assert not np.shares_memory(column, getattr(found, name))
        assert column.tolist() == getattr(found, name).tolist()


def test_what_layers_are_read_from_cannot_be_written():
    edges = pd.DataFrame({"src": [0, 0, 1], "dst": [1, 2, 2], "w": [1.0, 2.0, 3.0]})
    layers = layered_edges(edges, 0, weight="w", device="cpu")
    before = layers.edges()
    for layer in layers.layers():
        for array in (layer.destination, layer.weights):
            with pytest.raises(ValueError, match="read-only"):
                array[:] = 0
    assert layers.edges().equals(before)
