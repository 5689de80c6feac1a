"""Bench gpu and what it measures with: all that runs without a GPU."""

import argparse
import json
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from glp_rapids import as_graph, bench
from glp_rapids.bench import gpu, memory, subjects, timing
from glp_rapids.device import gpu_available

RUN = timing.Timing(run_ms=40.0, call_ms=50.0, sweeps=20, found=None)
CEILING = SimpleNamespace(stream_ms=0.5, gather_ms=1.5)


def options_of(*arguments):
    parser = argparse.ArgumentParser()
    bench.add_benches(parser)
    return parser.parse_args(arguments)


@pytest.fixture(scope="module")
def graph():
    return subjects.load("web-600", "cpu")


@pytest.mark.parametrize(
    ("name", "vertices"),
    [("kron-6-4", 64), ("rmat-6-4", 64), ("road-9", 81), ("web-300", 300), ("football", 115)],
)
def test_names_make_graphs(name, vertices, request):
    if name == "football":
        request.getfixturevalue("data")
    graph = subjects.load(name, "cpu")
    assert graph.number_of_vertices == vertices
    assert not graph.directed
    row = np.repeat(np.arange(vertices), graph.degree)
    assert (row != graph.indices).all()


@pytest.mark.parametrize("name", ["kron-6", "web-x", "roads", "kron"])
def test_a_name_that_is_none_is_refused(name):
    with pytest.raises(ValueError, match="no data set is called"):
        subjects.load(name, "cpu")


def test_files_of_edges(tmp_path):
    edges = pd.DataFrame({"src": [5, 5, 7, 7], "dst": [6, 7, 7, 5]})
    named, bare, table = (tmp_path / name for name in ("a.csv", "b.tsv", "c.parquet"))
    edges.to_csv(named, index=False)
    edges.to_csv(bare, sep="\t", index=False, header=False)
    edges.to_parquet(table)
    np.savez(tmp_path / "d.npz", indptr=[0, 2, 2, 4], indices=np.array([1, 2, 2, 0], np.int32))
    for path in (named, bare, table, tmp_path / "d.npz"):
        graph = subjects.load(str(path), "cpu")
        assert (graph.number_of_vertices, graph.number_of_edges) == (3, 4)


def test_files_that_do_not_serve(tmp_path):
    np.savez(tmp_path / "a.npz", indices=[0])
    with pytest.raises(ValueError, match="no array 'indptr'"):
        subjects.load(str(tmp_path / "a.npz"), "cpu")
    pd.DataFrame({"from": [1], "to": [2]}).to_parquet(tmp_path / "b.parquet")
    with pytest.raises(ValueError, match="no column 'src'"):
        subjects.load(str(tmp_path / "b.parquet"), "cpu")
    with pytest.raises(FileNotFoundError, match="no such file"):
        subjects.load(str(tmp_path / "c.csv"), "cpu")


@pytest.mark.skipif(gpu_available(), reason="there is a GPU")
def test_without_a_gpu_the_doctor_is_named():
    with pytest.raises(ValueError, match="glp-rapids doctor"):
        bench.run(options_of("gpu"))


def test_choices_are_named():
    options = options_of("gpu", "--strategies", "sort", "global", "--variants", "all")
    assert gpu._chosen(options.strategies, gpu.STRATEGIES) == ["auto", "global", "sort"]
    assert gpu._chosen(options.variants, gpu.VARIANTS) == list(gpu.VARIANTS)
    assert gpu._chosen(options_of("gpu").strategies, gpu.STRATEGIES) == ["auto"]
    assert tuple(options_of("gpu").graphs) == ("kron-22-16", "kron-24-16", "web", "road")


def test_a_full_sweep_is_compared_with_the_ceiling():
    sweeps = timing.Sweeps(first_ms=3.0, median_ms=2.0, timing=RUN)
    row = gpu.classic_row("g", 100_000_000, False, sweeps, CEILING)
    assert row["of ceiling"] == 0.75
    assert row["first / median"] == 1.5
    assert row["G edges/s, median sweep"] == 50
    assert row["G traversed edges/s"] == 50
    assert row["reached"] is True
    slow = timing.Sweeps(first_ms=5.0, median_ms=2.0, timing=RUN)
    assert gpu.classic_row("g", 1, False, slow, CEILING)["reached"] is False
    skipping = gpu.classic_row("g", 1, True, sweeps, CEILING)
    assert skipping["of ceiling"] is skipping["reached"] is None
    unknown = timing.Sweeps(first_ms=None, median_ms=2.0, timing=RUN)
    assert gpu.classic_row("g", 1, False, unknown, None)["first / median"] is None
    assert gpu.classic_row("g", 1, False, unknown, CEILING)["reached"] is False


def test_convergence_counts_each_edge_once_and_each_sweep():
    row = gpu.convergence_row("g", 400_000_000, "defaults", RUN, (9.5, 8.5), 0.9)
    assert row["G graph edges/s"] == 10
    assert row["G graph edges/s, call"] == 8
    assert row["G traversed edges/s"] == 200


def test_memory_is_held_against_the_bound(graph):
    vertices, entries = graph.number_of_vertices, graph.number_of_edges
    bound = 4 * entries + 56 * vertices
    row = gpu.memory_row("g", graph, "classic", bound)
    assert row["reached"] is True
    assert row["of bound"] == 1
    assert row["a vertex beyond the edges'"] == 56
    assert gpu.memory_row("g", graph, "classic", bound + 1)["reached"] is False
    weighted = gpu.memory_row("g", gpu.weighted(graph), "classic", None)
    assert weighted["bound"] == bound + 4 * entries
    assert "of bound" not in weighted


def test_high_water():
    water = memory.HighWater(10)
    water.taken(5)
    water.given_back(8)
    water.taken(4)
    assert (water.live, water.peak) == (11, 15)


def test_strategies_stand_beside_global_tables():
    found = {
        name: timing.Sweeps(2.0, median, timing.Timing(1.0, 1.0, 1, labels))
        for name, median, labels in (("auto", 1.0, "x"), ("global", 4.0, "x"), ("sort", 8.0, "y"))
    }
    rows = gpu.strategy_rows("g", found, lambda one, other: one == other)
    assert [row["times over global"] for row in rows] == [4, 1, 0.5]
    assert [row["same labels"] for row in rows] == [True, True, False]
    del found["global"]
    assert gpu.strategy_rows("g", found, lambda *_: True)[0]["times over global"] is None


def test_variants_stand_beside_the_classic():
    found = {
        name: timing.Sweeps(2.0, median, RUN)
        for name, median in (("classic", 2.0), ("layered", 2.5), ("weighted", 4.0))
    }
    rows = {row["variant"]: row for row in gpu.variant_rows("g", found)}
    assert rows["layered"]["times classic"] == 1.25
    assert rows["layered"]["reached"] is True
    assert rows["weighted"]["reached"] is False
    assert rows["classic"]["reached"] is None


def test_weights_are_alike_both_ways(graph, monkeypatch):
    heavy = gpu.weighted(graph)
    assert heavy.weights.dtype == np.float32
    assert 0.5 <= heavy.weights.min() < 0.52
    assert 1.48 < heavy.weights.max() < 1.5
    row = np.repeat(np.arange(graph.number_of_vertices), graph.degree)
    forth = as_graph((row, graph.indices, heavy.weights), directed=True, device="cpu")
    np.testing.assert_array_equal(forth.weights, forth.transpose().weights)
    monkeypatch.setattr(gpu, "ENTRIES_AT_ONCE", 100)
    np.testing.assert_array_equal(gpu.weighted(graph).weights, heavy.weights)


def test_sweeps_are_timed_from_the_first_to_the_last(graph):
    call = subjects.propagation(graph, update="sync", explore=0, tol=0.0, max_iter=3)
    sweeps = timing.timed_sweeps(call, 2, "cpu")
    assert sweeps.timing.sweeps == 3
    assert 0 < sweeps.first_ms < 1000
    assert 0 < sweeps.median_ms < 1000
    assert sweeps.timing.call_ms >= sweeps.timing.run_ms > 0
    alone = timing.timed_sweeps(subjects.propagation(graph, max_iter=1), 1, "cpu")
    assert alone.median_ms == alone.first_ms


def test_everything_but_the_ceiling_can_be_measured_on_a_cpu(graph):
    options = options_of("gpu", "--variants", "all", "--repeats", "1", "--sweeps", "3")
    tables = gpu.measure("web-600", graph, options)
    ceiling, classic, convergence, memory_rows, variants = (
        tables[next(title for title in tables if title.startswith(start))]
        for start in ("Ceiling", "Classic", "To conv", "Peak", "Variants")
    )
    assert ceiling[0]["indices ms"] is None
    assert [row["skipping"] for row in classic] == ["no", "yes"]
    assert [row["sweeps"] for row in classic] == [3, 3]
    assert [row["mode"] for row in convergence] == ["defaults", "explore=0"]
    assert all(row["modularity"] > 0.3 for row in convergence)
    assert memory_rows[0]["bytes"] is None
    assert [row["variant"] for row in variants] == [
        "classic", "weighted", "whole weights", "layered", "word for word", "reworded",
        "speaker-listener",
    ]  # fmt: skip
    assert all(row["sweeps"] == 3 for row in variants)
    json.dumps(tables)


@pytest.mark.parametrize("index", [np.uint32, np.uint64])
def test_ceiling_kernels_compile_without_a_gpu(monkeypatch, index):
    pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")
    pytest.importorskip("cuda.bindings.nvrtc", reason="NVIDIA's compilers are not installed")
    from numba import cuda, typeof
    from numba.cuda import dispatcher

    from glp_rapids.bench import ceiling

    device = SimpleNamespace(compute_capability=(9, 0))
    monkeypatch.setattr(dispatcher, "get_current_device", lambda: device)
    indices, sums = typeof(np.empty(1, index)), typeof(np.empty(1, np.uint64))
    for function, arrays in ((ceiling.index_stream, 1), (ceiling.label_gather, 2)):
        signature = *[indices] * arrays, sums
        code, _ = cuda.compile_ptx(function, signature, device=False, cc=(9, 0))
        # eight loads of each array stand side by side, and one more for the rest
        assert code.count("ld.global.u") >= 9 * arrays
