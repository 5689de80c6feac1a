"""Benches: their tables, the graphs they are given, and those of the CPU and of ingest."""

import numpy as np
import pytest
from bench_tables import tables_of
from scipy import sparse

from glp_rapids import as_graph
from glp_rapids.bench import first_call, subjects, table


def test_markdown_pads_and_aligns():
    rows = [{"graph": "a", "seconds": 1.25, "ok": True}, {"graph": "long", "seconds": 0.001}]
    assert table.as_markdown({"Speed": rows}) == (
        "### Speed\n\n"
        "| graph | seconds | ok  |\n"
        "| ----- | ------: | --- |\n"
        "| a     |   1.250 | yes |\n"
        "| long  |   0.001 |     |"
    )


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_shuffled_ids_leave_the_graph_as_it_is(directed, weighted):
    random = np.random.default_rng(0)
    edges = (*random.integers(0, 30, (2, 99)), *([random.integers(1, 9, 99)] if weighted else []))
    graph = as_graph(edges, directed=directed, vertices=range(33), device="cpu")
    shuffled, number = subjects.with_shuffled_ids(graph, 1)
    assert shuffled.directed == directed
    assert sorted(number) == list(range(33)) != list(number)
    matrix, other = (
        sparse.csr_array(
            (np.ones(one.indices.size) if one.weights is None else one.weights, one.indices,
             one.indptr),
            shape=(33, 33),
        ).toarray()
        for one in (graph, shuffled)
    )  # fmt: skip
    np.testing.assert_array_equal(other[np.ix_(number, number)], matrix)


@pytest.mark.exhaustive
def test_cpu_times_everything():
    speed, programs, ingest = tables_of(
        "cpu", "--graphs", "rmat-6-4", "--rows", "1000", "--repeats", "1"
    ).values()
    assert [row["mode"] for row in speed] == ["defaults", "explore=0"]
    assert all(row["NetworKit seconds"] > 0 for row in speed)
    assert [row["program"] for row in programs] == ["word for word", "reworded"]
    assert ingest[0]["rows"] == 1000


def test_networkit_gets_the_same_graph():
    graph = subjects.load("rmat-7-4", "cpu")
    peer = subjects.networkit(1)
    other = subjects.networkit_graph(peer, graph)
    assert other.numberOfNodes() == graph.number_of_vertices == 128
    assert 2 * other.numberOfEdges() == graph.number_of_edges
    degrees = [other.degree(v) for v in range(128)]
    np.testing.assert_array_equal(degrees, graph.degree)


def test_without_networkit_the_mend_is_named(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "networkit", None)
    with pytest.raises(ImportError, match=r"pip install networkit.*--alone"):
        tables_of("quality", "--graphs", "rmat-6-4")


@pytest.mark.exhaustive
def test_ingest_reads_the_edges_it_made():
    found = tables_of("ingest", "--graphs", "rmat-6-4", "--repeats", "1", "--device", "cpu")
    rows, from_files = found.values()
    graph = subjects.load("rmat-6-4", "cpu")
    assert [row["read"] for row in from_files] == ["in chunks", "whole"]
    assert from_files[0]["reached"]
    assert all(row["seconds"] > 0 and row["entries"] == rows[0]["entries"] for row in from_files)
    assert [row["from"] for row in rows] == ["pandas"]
    assert rows[0]["entries"] == graph.number_of_edges == 2 * rows[0]["rows"]
    # who has no edge is in no row of a frame
    assert rows[0]["vertices"] == np.count_nonzero(graph.degree)


def test_first_calls_are_timed_in_processes_of_their_own(monkeypatch):
    monkeypatch.setattr(first_call, "CALLS", {"summing": 'edges["src"].sum()'})
    ((title, (row,)),) = tables_of("first-call", "--repeats", "1").items()
    assert title == "first call of a process on a CPU, seconds"
    assert row.pop("call") == "summing"
    assert set(row) == {"compiled", "shipped", "cached", "imported"}
    assert all(0 < seconds < 60 for seconds in row.values())
