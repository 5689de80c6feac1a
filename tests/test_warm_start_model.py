"""Warm starts of a GPU's engines without one: their host side, and models of their kernels."""

from dataclasses import replace
from functools import partial

import pytest
import reference
from warm_graphs import few_edges_changed, neighbours_lost
from warm_runs import assert_same_report

from glp_rapids import label_propagation
from glp_rapids.propagation import engines

pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")
import cuda_offline
from frontier_model import FrontierModel
from streamed_model import PersistentModel

from glp_rapids.propagation.engines import gpu, gpu_frontier
from glp_rapids.propagation.kernels.gpu import frontier_lists


@pytest.fixture
def on_model(monkeypatch):
    """Runs of label propagation by an engine of a GPU, its kernel modelled; their models."""
    engine_of = engines.engine_of

    def run(graph, make=gpu.PersistentEngine, **options):
        ids = graph.external().tolist()
        words = [reference.id_word(one) for one in ids]
        run.models = {gpu: PersistentModel(words), gpu_frontier: FrontierModel(words)}
        with monkeypatch.context() as patch, cuda_offline.compiling(patch, (9, 0)):
            for engine, model in run.models.items():
                patch.setattr(engine, "launch_together", model.launch_together)
            found = make, engine_of("cpu", "plain")[1]
            patch.setattr(engines, "engine_of", lambda *_: found)
            return label_propagation(graph, **options)

    return run


RUNS = {
    "at once": (gpu.PersistentEngine, {}),
    "by sweep": (gpu.PersistentEngine, {"progress": True}),
    "few": (gpu_frontier.engine_for, {}),
}


@pytest.mark.parametrize("which", RUNS)
def test_runs_and_reports_are_those_of_a_cpu(on_model, which):
    before, after, touched = few_edges_changed(3)
    make, more = RUNS[which]
    fresh = partial(replace, after, _derived={})
    n, on_model = after.number_of_vertices, partial(on_model, make=make)
    for earlier in ({"max_iter": 6, "explore": 3}, {"tol": 0.01}, {"tol": 0.0}, {"max_iter": 1}):
        expected = label_propagation(before, **earlier)
        if which != "few":
            assert_same_report(on_model(before, **earlier, **more), expected)
        begins_anew = earlier == {"max_iter": 1}
        for options in ({}, {"classes": 5, "tie_break": "hash"}, {"max_iter": 1}):
            warm = partial(label_propagation, after, initial=expected, tol=0.0, **options)
            how = {"initial": expected, "tol": 0.0, **options, **more}
            if which != "few":
                assert_same_report(on_model(after, **how), warm())
            found = on_model(fresh(), touched=touched, **how)
            assert_same_report(found, warm(touched=touched))
            evaluated = found.attrs["glp"]["evaluated"]
            assert evaluated == n if begins_anew else evaluated < n // 8


# By which limit, and how many launches the kernels of few and of many active vertices then take.
HANDED_OVER = {
    "never": ({}, (1, 0)),
    "for its entries": ({"OF_ENTRIES": 10**6}, (0, 1)),
    "for its vertices": ({"OF_VERTICES": 10**6}, (0, 1)),
    "after a sweep": ({"SPREAD": 10**6}, (1, 1)),
    "for its classes": ({"MOST_CLASSES": 4}, (0, 1)),
    "for its longest row": ({"LONGEST": 3}, (0, 1)),
    "for its long rows": ({"MOST_LONG_ROWS": 3}, (0, 1)),
}


@pytest.mark.parametrize("why", HANDED_OVER)
def test_where_changes_spread_the_persistent_engine_goes_on(on_model, monkeypatch, why):
    limits, launches = HANDED_OVER[why]
    for name, value in limits.items():
        where = frontier_lists if hasattr(frontier_lists, name) else gpu_frontier
        monkeypatch.setattr(where, name, value)
    built, told, make = [], [], gpu.PersistentEngine
    monkeypatch.setattr(gpu_frontier, "PersistentEngine", lambda *a: built.append(1) or make(*a))
    before, after, touched = few_edges_changed(4)
    found = label_propagation(before, tol=0.01)
    for more in ({}, {"tie_break": "hash"}, {"max_iter": 2}):
        how = {"initial": found, "touched": touched, "tol": 0.0, "max_iter": 9, **more}
        expected = label_propagation(after, **how)
        for progress in (False, told.append):
            built.clear()
            told.clear()
            graph = replace(after, _derived={})
            run = on_model(graph, make=gpu_frontier.engine_for, progress=progress, **how)
            assert_same_report(run, expected)
            if progress:
                sweeps = [one["sweep"] for one in told]
                assert sweeps == list(range(1, len(expected.attrs["glp"]["changed"]) + 1))
            else:
                assert (on_model.models[gpu_frontier].launches, len(built)) == launches


@pytest.mark.parametrize("which", [*RUNS, "few, handed over"])
def test_who_lost_all_neighbours_is_not_pending(on_model, monkeypatch, which):
    make, more = RUNS.get(which, (gpu_frontier.engine_for, {}))
    if which not in RUNS:
        monkeypatch.setattr(gpu_frontier, "SPREAD", 10**6)
    before, after, around = neighbours_lost()
    found = label_propagation(before, tol=0.0)
    for sweeps in (1, 2):
        how = {"initial": found, "touched": around, "tol": 0.0, "max_iter": sweeps}
        expected = label_propagation(after, **how)
        assert expected.attrs["glp"]["pending"].words().size
        fresh = replace(after, _derived={})
        assert_same_report(on_model(fresh, make=make, **how, **more), expected)


def test_an_order_of_the_rows_that_is_there_is_used(on_model):
    before, after, touched = few_edges_changed(4)
    found = label_propagation(before, tol=0.01)
    how = {"initial": found, "touched": touched, "tol": 0.0, "make": gpu_frontier.engine_for}
    for launches, more in ((1, {}), (0, {"explore": 1, "touched": None}), (0, {})):
        on_model(after, **how | more)
        assert on_model.models[gpu_frontier].launches == launches


def test_a_run_of_very_many_sweeps_takes_several_launches(on_model, monkeypatch):
    from glp_rapids.propagation.engines import launched

    before, after, touched = few_edges_changed(3)
    found = label_propagation(before, tol=0.01)
    how = {"initial": found, "touched": touched, "tol": 0.0, "max_iter": 9}
    expected = label_propagation(after, **how)
    monkeypatch.setattr(launched, "LARGEST_LAUNCH", 2)
    run = on_model(after, make=gpu_frontier.engine_for, **how)
    assert_same_report(run, expected)
    assert on_model.models[gpu_frontier].launches > 1
