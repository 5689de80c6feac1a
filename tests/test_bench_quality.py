"""Benches of partitions: quality, multilevel, overlap and parameters, beside peers."""

import numpy as np
import pandas as pd
import pytest
from bench_tables import tables_of

from glp_rapids import as_graph, label_propagation
from glp_rapids.bench import multilevel, overlap, quality, subjects
from glp_rapids.metrics import cover_f1, modularity


def test_quality_compares_with_networkit(data):
    found = tables_of("quality", "--graphs", "football", "rmat-6-4", "--seeds", "2")
    [rows] = found.values()
    assert [row["graph"] for row in rows] == ["football", "rmat-6-4"]
    assert rows[0]["vertices"] == 115
    assert rows[0]["entries"] == 2 * 613
    for row in rows:
        assert {"modularity", "NMI", "sweeps", "NetworKit modularity", "verdict"} <= row.keys()
    assert rows[0]["modularity"] > 0.4


def test_a_peers_partition_by_index_is_told_by_ids():
    graph = as_graph(([30, 10, 70], [10, 30, 70]), device="cpu")  # 70 has a loop only
    others = pd.DataFrame({"vertex": [1, 0], "partition": [4, 4]})
    found = multilevel._by_index(graph, others).set_index("vertex")["partition"]
    assert found[10] == found[30] != found[70]
    assert modularity(graph, multilevel._by_index(graph, others)) > 0


def test_multilevel_compares_with_networkit_and_igraph(data):
    [rows] = tables_of("multilevel", "--graphs", "football", "--repeats", "2").values()
    found = {row["which"]: row["modularity"] for row in rows}
    assert list(found)[1] == "default"
    assert {"label_propagation", "refine=False", "NetworKit PLM", "igraph Leiden"} < found.keys()
    assert found["default"] > found["NetworKit PLM"] - 0.002


def test_multilevel_compares_the_constant_potts_model(data):
    [rows] = tables_of("multilevel", "--graphs", "football", "--repeats", "2",
                       "--cpm", "0.1", "0.4").values()  # fmt: skip
    found = {(row["resolution"], row["which"]): row["cpm"] for row in rows}
    assert len(found) == 8
    for resolution in (0.1, 0.4):
        assert found[resolution, "default"] > 0.97 * found[resolution, "igraph Leiden"] > 0
    with pytest.raises(ValueError, match="--cpm compares on a CPU"):
        tables_of("multilevel", "--device", "gpu", "--cpm", "1")


def test_quality_draws_classes():
    [[row]] = tables_of("quality", "--graphs", "web-900", "--seeds", "1", "--draws", "3",
                        "--alone").values()  # fmt: skip
    graph = subjects.load("web-900")
    found = []
    for seed in range(3):
        shuffled, number = subjects.with_shuffled_ids(graph, seed)
        labels = label_propagation(shuffled, seed=seed)["partition"].to_numpy()
        found.append(modularity(graph, graph.frame({"partition": labels[number]})))
    assert len(set(found)) == 3
    assert row["drawn median"] == sorted(found)[1]
    assert row["drawn mean"] == pytest.approx(np.mean(found))
    assert row["deviation"] == pytest.approx(np.std(found))


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
