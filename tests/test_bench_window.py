"""Benches of what changes by the minute: windows, monitors, warm starts."""

import numpy as np
import pytest
from bench_tables import tables_of

from glp_rapids.bench import subjects, warm, window


def test_warm_runs_stand_beside_cold_ones():
    options = "--shares", "0.01", "--repeats", "1", "--device", "cpu"
    [rows] = tables_of("warm", "--graphs", "rmat-12-8", *options).values()
    assert [row["begins"] for row in rows] == ["cold", "initial=", "initial=, touched="]
    cold, everybody, few = rows
    assert few["evaluated"] < everybody["evaluated"] == 1 << 12
    assert few["modularity"] == everybody["modularity"]
    assert few["churn"] == everybody["churn"]
    assert cold["times (run)"] == cold["times (call)"] == 1


def test_warm_scores_stand_beside_cold_ones():
    options = "--rows", "3000", "--shares", "0", "0.1", "--repeats", "1", "--device", "cpu"
    [rows] = tables_of("scores", *options).values()
    same, changed = rows
    assert same["warm pushed"] < same["cold pushed"]
    assert 0 < changed["apart"] <= 2  # each within tol of the exact ones
    assert all(row["entries"] > 1_000 and row["times"] > 0 for row in rows)


def test_edges_go_at_random():
    graph = subjects.load("rmat-8-4", "cpu")
    after, touched = warm.without_some(graph, 0.2)
    assert after.external().equals(graph.external())
    assert 0.7 < after.number_of_edges / graph.number_of_edges < 0.9
    changed = np.flatnonzero(graph.degree != after.degree)
    assert graph.external()[changed].tolist() == touched.tolist()


@pytest.mark.parametrize(
    ("after", "share"),
    [([0, 0, 0, 1, 1, 1], 0), ([2, 2, 2, 0, 0, 0], 0), ([0, 0, 1, 1, 1, 1], 1 / 6),
     ([0] * 6, 1 / 2), ([0, 1, 2, 3, 4, 5], 2 / 3)],
)  # fmt: skip
def test_churn_is_who_left_or_came(after, share):
    assert warm.churn(np.array([0, 0, 0, 1, 1, 1]), np.array(after)) == pytest.approx(share)


@pytest.mark.parametrize("flags", [[], ["--strings", "--ids"]])
def test_a_window_stays_full(flags, device):
    options = ["--rows", "2000", "--repeats", "1", "--device", device]
    [(title, rows)] = tables_of("window", *options, *flags).items()
    assert "2,000 rows" in title
    assert [row["batch"] for row in rows] == ["1", "3500", "100000", "a day", "all of it"]
    assert all(row["append ms"] > 0 for row in rows)
    assert not any("wanted below" in row for row in rows)
    stream = window.Stream(1000, False, True, device)
    held = stream.window()
    assert held.append(stream.batch(1000)).added == 1000
    assert held.append(stream.batch(30)) == (30, 30, 0, 0)


def test_a_monitor_sees_rings(device):
    options = ["--rows", "60000", "--every", "2D", "--ticks", "6", "--device", device]
    [(title, [row])] = tables_of("monitor", *options).items()
    assert "a window of 30 days" in title
    assert row["ticks"] == 6
    assert 1800 < row["rows a tick"] < 2200
    assert row["p99 ms"] >= row["median ms"] > row["scores ms"] > 0
    assert 0 <= row["cluster id changed"] <= 0.2
    assert row["alerts"] > 0


def test_a_soak_tells_of_memory_and_latencies(monkeypatch):
    monkeypatch.setattr("glp_rapids.bench.monitor.SOAK", 12)
    monkeypatch.setattr("glp_rapids.bench.monitor.SETTLED", 4)
    tables = tables_of("monitor", "--rows", "30000", "--soak", "--device", "cpu")
    [(title, [row])] = tables.items()
    assert title.startswith("Soak, a window of 30 days with")
    assert row["ticks"] == 12
    assert 0 < row["median ms"] <= row["p99 ms"] <= row["longest ms"]
    assert row["MiB after 4"] > 0
    assert row["largest growth"] >= 0
