"""Benches of graphs that are compressed, large or beyond memory."""

import argparse
import weakref

import numpy as np
import pytest
from bench_tables import tables_of
from scipy import sparse

from glp_rapids import label_propagation
from glp_rapids.bench import hybrid, large, subjects
from glp_rapids.bench.large_graph import large_graph
from glp_rapids.outofcore import double_buffer
from glp_rapids.propagation.ways import ON_CPU


def test_compressed_compares_with_the_plain_graph():
    options = ("--schemes", "packed", "cgr", "--sweeps", "4", "--repeats", "1", "--device", "cpu")
    found = tables_of("compressed", "--graphs", "web-500", *options)
    sizes, sweeps, runs = found.values()
    assert [title.split(",")[0] for title in found] == [
        "Size and encoding", "Synchronous sweeps", "To convergence"
    ]  # fmt: skip
    cases = [("packed", 0), ("packed", 32), ("cgr", 0), ("cgr", 32)]
    assert [(row["scheme"], row["raw up to"]) for row in sizes] == cases
    assert all(row["exact"] and row["decode ms"] > 0 for row in sizes)
    assert sizes[0]["bits an entry"] < sizes[1]["bits an entry"] < 32
    for rows in (sweeps, runs):
        assert [row["scheme"] for row in rows] == ["packed", "cgr"]
        assert all(row["same labels"] and row["ms"] > 0 for row in rows)


def test_large_makes_compresses_and_runs(monkeypatch):
    alive = []

    def watched(*arguments):
        graph = large_graph(*arguments)
        alive.append(weakref.ref(graph.indices))
        return graph

    seen = []

    def propagated(*arguments):
        seen.append(alive[-1]())
        return rows_of(*arguments)

    rows_of = large.propagated
    monkeypatch.setattr(large, "large_graph", watched)
    monkeypatch.setattr(large, "propagated", propagated)
    fits, made, runs = tables_of("large", "--bits", "11", "--device", "cpu").values()
    assert seen == [None, None]  # the small one's and the large one's plain form
    assert [row["raw fits"] for row in fits] == [True, True, True, True, False]
    assert fits[-1]["raw GB"] == pytest.approx(4 * 23.2 + 56 * 1.01)
    assert fits[-1]["8 bits: GB"] == pytest.approx(1.1 * 23.2 + 60 * 1.01)
    assert fits[-1]["fits with"] == "4, 8, 12, 16, 20"
    most = fits[-1]["fits up to, bits"]
    assert 1.1 * 23.2 * most / 8 + 60 * 1.01 == pytest.approx(139)
    assert made[0]["vertices"] == 2048
    assert made[0]["entries"] == 2 * made[0]["edges"] > 12 * 2048
    assert 0 < made[0]["bits an entry"] < 16
    assert runs[0]["sweeps"] == 3
    assert runs[1]["converged"]
    assert all(1 < row["communities"] < 2048 and row["ms"] > 0 for row in runs)


@pytest.mark.exhaustive
def test_large_makes_and_compresses_in_pieces():
    options = "--bits", "11", "--device", "cpu", "--max-iter", "5", "--pieces"
    _, [whole], runs = tables_of("large", *options, "1").values()
    _, [made], found = tables_of("large", *options, "3").values()
    for name in ("vertices", "entries", "plain GB", "bits an entry", "compressed GB"):
        assert made[name] == pytest.approx(whole[name], rel=0.01), name
    assert [row["communities"] for row in found] == [row["communities"] for row in runs]
    _, [more], _ = tables_of("large", *options, "3", "--share", "61").values()
    assert more["entries"] == pytest.approx(1.4 * made["entries"], rel=0.15)


def test_what_is_too_large_fits_nowhere():
    assert large.what_fits(24)[-1]["fits with"] == "none of them"
    assert large.what_fits(24)[-1]["fits up to, bits"] == 0


def test_a_large_graph_is_a_graph_and_the_same_again():
    graph = large_graph(10, 3, "cpu")
    arrays = np.ones(graph.number_of_edges), graph.indices, graph.indptr
    matrix = sparse.csr_array(arrays, shape=(1024, 1024))
    assert matrix.has_canonical_format  # rows ascend, nothing twice
    assert (matrix != matrix.T).nnz == 0
    assert not matrix.diagonal().any()
    assert graph.indices.dtype == np.int32
    again, other = large_graph(10, 3, "cpu"), large_graph(10, 4, "cpu")
    np.testing.assert_array_equal(again.indices, graph.indices)
    np.testing.assert_array_equal(again.indptr, graph.indptr)
    assert not np.array_equal(other.indptr, graph.indptr)


@pytest.mark.exhaustive
def test_beyond_memory_runs_each_way_in_a_process_of_its_own():
    options = "--graphs", "rmat-9-16", "--repeats", "1", "--threads", "1", "--mapped"
    ways = "--limits", "0", "50", "--ways", "plain", "streamed plain"
    found = tables_of("beyond-memory", *options, *ways)
    [(title, rows)] = found.items()
    assert "in a mapped file, 1 threads" in title
    assert [(row["limit %"], row["way"]) for row in rows] == [
        (0, "plain"), (0, "streamed plain"), (50, "plain"), (50, "streamed plain"),
    ]  # fmt: skip
    for row in rows[::2]:
        assert row["seconds"] is None
        assert row["MB too little"] > 0
    for row in rows[1::2]:
        assert row["labels equal"]
        assert row["predicted MB"] <= row["limit MB"]
        assert row["times in memory"] > 0
    # of so small a graph Python's own objects are a good part
    assert rows[3]["peak MB"] < rows[3]["limit MB"] + 0.1


@pytest.mark.exhaustive
def test_what_runs_take_is_held_against_estimates():
    found = tables_of("beyond-memory", "--estimates", "--graphs", "rmat-14-16")
    [rows] = found.values()
    assert [row["way"] for row in rows] == list(ON_CPU)
    for row in rows:
        assert abs(row["estimated / peak"] - 1) < 0.1


@pytest.mark.exhaustive
def test_a_parquet_folder_becomes_labels_in_one_command():
    [[row]] = tables_of("beyond-memory", "--parquet", "--graphs", "rmat-16-64").values()
    assert row["labels equal"]
    # what tables are read by takes some 50 MB, of a graph of any size
    assert row["CSR MB"] < row["peak host MB"] < row["limit MB"] + 80


def test_hybrid_compares_ways_and_buses(monkeypatch):
    def stand_in(graph, device=None, way="plain", **how):
        found = label_propagation(graph, device="cpu", **how)
        if way == "hybrid":
            found.attrs["glp"]["share_of_host"] = 0.25
        return found

    monkeypatch.setattr(hybrid, "label_propagation", stand_in)
    buses = []
    monkeypatch.setattr(hybrid, "TIMES", (1, 4))
    of_row = hybrid._row
    monkeypatch.setattr(
        hybrid, "_row", lambda *given: buses.append(double_buffer.TIMES) or of_row(*given)
    )
    options = argparse.Namespace(repeats=1)
    [rows] = hybrid.tables("web-300", subjects.load("web-300", "cpu"), options).values()
    assert buses == [1, 1, 4, 4]
    assert double_buffer.TIMES == 1
    assert [row["bus GB/s"] for row in rows] == [55.0, 55.0, 13.75, 13.75]
    assert [row["run"] for row in rows] == [*hybrid.RUNS] * 2
    for row in rows:
        assert row["labels equal"]
        assert row["the host's share"] == 0.25
        assert row["times as fast"] == row["streamed ms"] / row["hybrid ms"]
