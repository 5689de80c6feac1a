"""Warm starts of the persistent engine without a GPU: its host side, and a model of its kernel."""

from dataclasses import replace
from functools import partial

import pytest
import reference
from warm_graphs import few_edges_changed
from warm_runs import assert_same_report

from glp_rapids import label_propagation
from glp_rapids.propagation import engines

pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")
import cuda_offline
from streamed_model import PersistentModel

from glp_rapids.propagation.engines import gpu, gpu_frontier


@pytest.fixture
def on_model(monkeypatch):
    """Runs of label propagation by the engine of a GPU; each returns the model, too."""
    engine_of = engines.engine_of

    def run(graph, **options):
        ids = graph.external().tolist()
        model = PersistentModel([reference.id_word(one) for one in ids])
        with monkeypatch.context() as patch, cuda_offline.compiling(patch, (9, 0)):
            for module in (gpu, gpu_frontier):
                patch.setattr(module, "launch_together", model.launch_together)
            found = gpu_frontier.engine_for, engine_of("cpu", "plain")[1]
            patch.setattr(engines, "engine_of", lambda *_: found)
            return label_propagation(graph, **options), model

    return run


NEVER, SOON = 1 << 30, {"OF_VERTICES": 8, "OF_LIST": 58, "SPREAD": 1000}
ENGINES = {
    "persistent": ({"OF_VERTICES": NEVER}, {"propagate"}),
    "frontier": ({"OF_VERTICES": 8}, {"propagate_frontier"}),
    "listed anew": ({**SOON, "SPREAD": 8}, {"propagate_frontier"}),
    "one after the other": (SOON, {"propagate_frontier", "propagate"}),
}


@pytest.mark.parametrize("more", [{}, {"progress": True}], ids=["at once", "by sweep"])
@pytest.mark.parametrize("engine", ENGINES)
def test_runs_and_reports_are_those_of_a_cpu(on_model, engine, more, monkeypatch):
    constants, kernels = ENGINES[engine]
    for name, value in constants.items():
        monkeypatch.setattr(gpu_frontier, name, value)
    before, after, touched = few_edges_changed(3)
    n, launched = after.number_of_vertices, set()
    for earlier in ({"max_iter": 6, "explore": 3}, {"tol": 0.01}, {"tol": 0.0}, {"max_iter": 1}):
        expected = label_propagation(before, **earlier)
        assert_same_report(on_model(before, **earlier, **more)[0], expected)
        other = replace(after, _derived={})  # with no plan of a run that evaluates everybody
        begins_anew = earlier == {"max_iter": 1}
        for options in ({}, {"classes": 5, "tie_break": "hash"}, {"max_iter": 1}):
            warm = partial(label_propagation, after, initial=expected, tol=0.0, **options)
            how = {"initial": expected, "tol": 0.0, **options, **more}
            found, _ = on_model(after, **how)
            assert_same_report(found, warm())
            found, model = on_model(other, touched=touched, **how)
            assert_same_report(found, warm(touched=touched))
            evaluated = found.attrs["glp"]["evaluated"]
            assert evaluated == n if begins_anew else evaluated < n // 8
            launched |= set() if begins_anew else set(model.launched)
    assert launched == kernels
