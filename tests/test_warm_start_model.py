"""Warm starts of the persistent engine without a GPU: its host side, and a model of its kernel."""

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

from glp_rapids.propagation.engines import gpu


@pytest.fixture
def on_model(monkeypatch):
    """Runs of label propagation by the engine of a GPU, its kernel modelled."""
    engine_of = engines.engine_of

    def run(graph, **options):
        ids = graph.external().tolist()
        model = PersistentModel([reference.id_word(one) for one in ids])
        with monkeypatch.context() as patch, cuda_offline.compiling(patch, (9, 0)):
            patch.setattr(gpu, "launch_together", model.launch_together)
            found = gpu.PersistentEngine, engine_of("cpu", "plain")[1]
            patch.setattr(engines, "engine_of", lambda *_: found)
            return label_propagation(graph, **options)

    return run


@pytest.mark.parametrize("more", [{}, {"progress": True}], ids=["at once", "by sweep"])
def test_runs_and_reports_are_those_of_a_cpu(on_model, more):
    before, after, touched = few_edges_changed(3)
    n = after.number_of_vertices
    for earlier in ({"max_iter": 6, "explore": 3}, {"tol": 0.01}, {"tol": 0.0}, {"max_iter": 1}):
        expected = label_propagation(before, **earlier)
        assert_same_report(on_model(before, **earlier, **more), expected)
        begins_anew = earlier == {"max_iter": 1}
        for options in ({}, {"classes": 5, "tie_break": "hash"}, {"max_iter": 1}):
            warm = partial(label_propagation, after, initial=expected, tol=0.0, **options)
            how = {"initial": expected, "tol": 0.0, **options, **more}
            assert_same_report(on_model(after, **how), warm())
            found = on_model(after, touched=touched, **how)
            assert_same_report(found, warm(touched=touched))
            evaluated = found.attrs["glp"]["evaluated"]
            assert evaluated == n if begins_anew else evaluated < n // 8
