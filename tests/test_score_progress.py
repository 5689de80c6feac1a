"""How far scores, clusters, features and ticks have come is told, and telling changes nothing."""

import threading

import numpy as np
import pandas as pd
import pytest
from memory_limits import large
from monitors import assert_same_tick, batches, monitor

from glp_rapids.fraud import Monitor, account_scores, features, find_clusters, score_state
from glp_rapids.graph.call_memory import RUNS

SEEDS = range(0, 4_000, 40)
KINDS = {one: "ab"[one % 80 // 40] for one in SEEDS}


def assert_same(found, expected):
    pd.testing.assert_frame_equal(found, expected)
    one, other = ({**frame.attrs["glp"]} for frame in (found, expected))
    for report in (one, other):
        for name in ("seconds", "peak_memory"):
            del report[name]
    assert one == other


@pytest.mark.parametrize("every", [1, 3, 1000])
@pytest.mark.parametrize(
    "options", [{}, {"max_iter": 5}, {"max_iter": 0}, {"damping": 0.99}], ids=str
)
def test_rounds_are_told_and_are_the_same(every, options, device, monkeypatch):
    monkeypatch.setattr(score_state, "TOLD_EVERY", every)
    graph, told = large(weighted=True).to(device), []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("glp_rapids.fraud.scores.warn_caller", lambda message: None)
        expected = account_scores(graph, SEEDS, **options, device=device)
        found = account_scores(graph, SEEDS, **options, progress=told.append, device=device)
    assert_same(found, expected)
    about = found.attrs["glp"]
    rounds = [facts["round"] for facts in told]
    assert rounds == sorted(rounds)
    assert {facts["step"] for facts in told} <= {"scores"}
    if options.get("max_iter", 1):
        last = {"step": "scores", "round": about["sweeps"], "pushed": about["pushed"]}
        assert told[-1] == {**last, "error": about["error"]}
        assert np.diff(rounds).max(initial=0) <= max(every, 1)


def test_kinds_and_folds_are_told():
    graph, told = large(), []
    account_scores(graph, KINDS, progress=told.append)
    assert [*dict.fromkeys(facts["kind"] for facts in told)] == ["a", "b"]
    told.clear()
    expected = features(graph, SEEDS, folds=3)
    assert_same(features(graph, SEEDS, folds=3, progress=told.append), expected)
    assert [*dict.fromkeys(facts["fold"] for facts in told)] == [0, 1, 2]


@pytest.mark.filterwarnings("ignore:one community holds")
def test_runs_of_clusters_are_told():
    graph, told = large(), []
    expected = find_clusters(graph, SEEDS)
    found = find_clusters(graph, SEEDS, progress=told.append)
    for one, other in zip(found, expected, strict=True):
        assert_same(one, other)
    steps = [facts["step"] for facts in told]
    assert steps == sorted(steps, reverse=True)
    assert told[-1] == {"step": "clusters", "run": RUNS, "of": RUNS}


def test_a_bar_is_shown_from_the_file_on(tmp_path, capsys):
    edges = pd.DataFrame({"src": range(5_000), "dst": range(1, 5_001)})
    for name, some in (("one", edges[:3_000]), ("other", edges[3_000:])):
        some.to_parquet(tmp_path / f"{name}.parquet")
    told = []
    account_scores(tmp_path, [0, 7], progress=told.append)
    assert {facts["step"] for facts in told} == {"ids", "degrees", "rows", "scores"}
    for call, name in ((account_scores, "account_scores"), (find_clusters, "find_clusters")):
        call(tmp_path, [0, 7], progress=True)
        assert name in capsys.readouterr().err
        call(tmp_path, [0, 7])
        assert capsys.readouterr().err == ""


def test_who_is_told_is_called_in_the_thread_of_the_caller_and_may_end_it():
    def end(facts):
        assert threading.current_thread() is threading.main_thread()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        account_scores(large(), SEEDS, progress=end)


@pytest.mark.parametrize("call", [account_scores, find_clusters, features])
def test_what_is_no_function_is_refused(call):
    with pytest.raises(TypeError, match="progress must be a bool or a function, not 'yes'"):
        call(large(), SEEDS, progress="yes")


def test_ticks_are_told_and_are_the_same(tmp_path, capsys):
    parts, seeds = batches()
    kinds = {one: "ab"[place % 2] for place, one in enumerate(seeds.tolist())}
    one, other = monitor(kinds), monitor(kinds)
    for part in parts[:3]:
        told = []
        found = one.update(part, progress=told.append)
        assert_same_tick(found, other.update(part))
        assert told[0] == {"step": "window", "rows": len(one.window)}
        assert {facts["step"] for facts in told} >= {"window", "scores"}
        assert {facts["kind"] for facts in told if facts["step"] == "scores"} == {"a", "b"}
        one.save(tmp_path / "watch")
    one.close()
    told = []
    again = Monitor.open(tmp_path / "watch", device="cpu", progress=told.append)
    assert {facts["tick"] for facts in told} <= {2, 3}
    assert_same_tick(again.update(parts[3], progress=True), other.update(parts[3]))
    assert "update" in capsys.readouterr().err
    with pytest.raises(TypeError, match="progress must be a bool or a function"):
        again.update(parts[4], progress=1.5)
    again.close()
    with pytest.raises(TypeError, match="progress must be a bool or a function"):
        Monitor.open(tmp_path / "watch", progress="yes")
