"""Bench diversity: scores, the best, several devices, whole graphs."""

import numpy as np
import pandas as pd
from bench_tables import tables_of

from glp_rapids.bench import diversity


def test_diversity_times_all_the_best_devices_and_the_whole_graph():
    options = ("--k", "2", "4", "--top", "5", "--repeats", "1", "--devices", "0", "1", "--no-steal")
    scores, shared, whole = tables_of(
        "diversity", "--graphs", "social-1000", "--device", "cpu", *options
    ).items()
    assert [title for title, _ in (scores, shared, whole)] == [
        "Structural diversity, cpu", "Several devices, cpu", "Whole graphs, cpu"
    ]  # fmt: skip
    models = [(model, k) for model in ("component", "core", "truss") for k in (2, 4)]
    assert [(row["model"], row["k"]) for row in scores[1]] == models
    for row in scores[1]:
        assert row["same"]
        assert row["best"] > 0
        assert 0 <= row["pruned"] < 1000
        assert min(row["ms"], row["top-5 ms"], row["unpruned ms"]) > 0
    assert [(row["devices"], row["stealing"]) for row in shared[1][:3]] == [
        (1, True), (2, True), (2, False)
    ]  # fmt: skip
    assert len(shared[1]) == 3 * len(models)
    assert all(row["balance"] >= 1 for row in shared[1])
    assert not any(row["stolen"] for row in shared[1] if not row["stealing"])
    whats = ["core_number", "k_truss", "triangle_count", "trussness"]
    assert [row["what"] for row in whole[1]] == whats


def test_diversity_leaves_out_what_is_not_asked_for():
    options = ("--models", "core", "--top", "0", "--no-whole", "--repeats", "1")
    found = tables_of("diversity", "--graphs", "social-200", "--device", "cpu", *options)
    [rows] = found.values()
    assert [row["model"] for row in rows] == ["core"]
    assert "same" not in rows[0]


class Truss:
    """A result as cuGraph gives it."""

    def __init__(self, edges):
        self.edges = edges

    def view_edge_list(self):
        return self.edges


def test_results_are_compared_with_those_of_cugraph():
    ours = pd.DataFrame({"vertex": [1, 2, 3], "core_number": [2, 2, 0]})
    theirs = pd.DataFrame({"core_number": [2, 2], "vertex": np.array([2, 1], np.int32)})
    assert diversity.same_facts(ours, theirs)
    assert not diversity.same_facts(ours, theirs.replace({"core_number": 2}, 1))
    assert not diversity.same_facts(ours, theirs[:1])
    edges = pd.DataFrame({"src": [1, 1], "dst": [2, 3]})
    assert diversity.same_facts(
        edges, Truss(edges.rename(columns={"src": "dst", "dst": "src"})[::-1])
    )
    assert not diversity.same_facts(edges, Truss(edges[:1]))
