import argparse
import json

import numpy as np
import pandas as pd
import pytest

from glp_rapids import bench
from glp_rapids.bench import overlap, quality, subjects, table
from glp_rapids.metrics import cover_f1


def tables_of(*arguments):
    parser = argparse.ArgumentParser()
    bench.add_benches(parser)
    return json.loads(bench.run(parser.parse_args([*arguments, "--json"])))


def test_markdown_pads_and_aligns():
    rows = [{"graph": "a", "seconds": 1.25, "ok": True}, {"graph": "long", "seconds": 0.001}]
    assert table.as_markdown({"Speed": rows}) == (
        "### Speed\n\n"
        "| graph | seconds | ok  |\n"
        "| ----- | ------: | --- |\n"
        "| a     |   1.250 | yes |\n"
        "| long  |   0.001 |     |"
    )


def test_quality_compares_with_networkit(data):
    found = tables_of("quality", "--graphs", "football", "rmat-6-4", "--seeds", "2")
    [rows] = found.values()
    assert [row["graph"] for row in rows] == ["football", "rmat-6-4"]
    assert rows[0]["vertices"] == 115
    assert rows[0]["entries"] == 2 * 613
    for row in rows:
        assert {"modularity", "NMI", "sweeps", "NetworKit modularity", "verdict"} <= row.keys()
    assert rows[0]["modularity"] > 0.4


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({}, "ok"),
        ({"modularity": 0.4}, "modularity below 0.500"),
        ({"NMI": 0.1}, "NMI below 0.200"),
        ({"largest share": 0.95}, "collapsed"),
        ({"communities": 1}, "collapsed"),
        ({"settled": False}, "no end within 60 sweeps"),
        ({"sweeps": 61}, "no end within 60 sweeps"),
    ],
)
def test_verdict_names_what_is_broken(change, words):
    row = {
        "vertices": 9, "modularity": 0.6, "NMI": 0.3, "communities": 3, "largest share": 0.2,
        "settled": True, "sweeps": 9, "NetworKit modularity": 0.5, "NetworKit NMI": 0.2,
    }  # fmt: skip
    assert quality.verdict(row | change, "football") == words
    assert (
        quality.verdict({**row, "modularity": 0.87, "NetworKit modularity": 0.89}, "cnr-2000")
        == "ok"
    )


def test_parameters_make_a_row_each():
    grid = ("--classes", "2", "4", "--explore", "0", "2", "--tol", "0", "0.1")
    [rows] = tables_of("parameters", "--graphs", "web-200", *grid).values()
    assert [(row["classes"], row["explore"]) for row in rows[::2]] == [
        (2, 0),
        (2, 2),
        (4, 0),
        (4, 2),
    ]
    assert max(row["of the best"] for row in rows) == 1


def test_cpu_times_everything():
    speed, programs, ingest = tables_of(
        "cpu", "--graphs", "rmat-6-4", "--rows", "1000", "--repeats", "1"
    ).values()
    assert [row["mode"] for row in speed] == ["defaults", "explore=0"]
    assert all(row["NetworKit seconds"] > 0 for row in speed)
    assert [row["program"] for row in programs] == ["word for word", "reworded"]
    assert ingest[0]["rows"] == 1000


def test_overlap_beats_a_random_cover():
    slpa, layered = tables_of(
        "overlap", "--vertices", "600", "--size", "30", "--overlap", "0.2", "--graph", "rmat-8-4"
    ).values()
    assert slpa[0]["SLPA"] > 2 * slpa[0]["random cover"]
    assert [row["gamma"] for row in layered] == [2.0**i for i in range(10)]
    assert all(row["communities"] >= 1 for row in layered)


def test_planted_cover_is_as_asked():
    edges, cover = overlap.planted_cover(200, 20, 0.25, seed=1)
    memberships = cover.groupby("vertex").size()
    assert memberships.index.tolist() == list(range(200))
    assert (memberships > 1).sum() <= 50
    assert len(cover) == 250
    assert edges.to_numpy().max() < 200
    again, _ = overlap.planted_cover(200, 20, 0.25, seed=1)
    pd.testing.assert_frame_equal(edges, again)
    shuffled = overlap.random_cover(cover)
    assert sorted(shuffled["partition"]) == sorted(cover["partition"])
    assert cover_f1(shuffled, cover) < 0.5


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


def test_ingest_reads_the_edges_it_made():
    found = tables_of("ingest", "--graphs", "rmat-6-4", "--repeats", "1", "--device", "cpu")
    [rows] = found.values()
    graph = subjects.load("rmat-6-4", "cpu")
    assert [row["from"] for row in rows] == ["pandas"]
    assert rows[0]["entries"] == graph.number_of_edges == 2 * rows[0]["rows"]
    # who has no edge is in no row of a frame
    assert rows[0]["vertices"] == np.count_nonzero(graph.degree)
