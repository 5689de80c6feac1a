"""Warm runs on a GPU: the labels of a CPU, and few are evaluated where few changed."""

import numpy as np
import pandas as pd
import pytest
import test_warm_start as cpu
from hypothesis import given, settings

from glp_rapids import as_graph, compress, label_propagation
from glp_rapids.propagation import pending, run

pytestmark = pytest.mark.gpu


@pytest.fixture(autouse=True)
def a_gpu_leaves_out(monkeypatch):
    """What waits for these tests to agree on a GPU."""
    monkeypatch.setattr(run, "LEAVE_OUT", {"cpu", "gpu"})


def on_host(found):
    if isinstance(found, pd.DataFrame):
        return found
    frame = found.to_pandas()
    frame.attrs.update(found.attrs)
    return frame


@pytest.mark.parametrize("which", ["classic", "connected", "squared"])
@pytest.mark.parametrize(
    ("weighted", "directed"), [(False, False), (True, False), (False, True), (True, True)]
)
def test_few_are_evaluated_where_few_changed(which, weighted, directed, monkeypatch):
    monkeypatch.setattr(pending, "OF_ALL", 2)
    before, after, touched = cpu.few_edges_changed(3, weighted, directed)
    function, options = cpu.FUNCTIONS[which], {"tol": 0.0, "tie_break": "hash", "max_iter": 9}
    cold = function(before.to("gpu"), max_iter=3, explore=3)
    assert cold.attrs["glp"]["pending"] is None
    found = function(before.to("gpu"), initial=cold, max_iter=2, tol=0.0)
    assert found.attrs["glp"]["evaluated"] == before.number_of_vertices
    warm = {"initial": on_host(found), "touched": touched, **options}
    expected = function(after, **warm)
    there = after.to("gpu")
    first = function(there, **{**warm, "initial": found})
    cpu.assert_same_run(on_host(first), expected)
    cpu.assert_same_run(on_host(function(there, initial=found, **options)), expected)
    evaluated = first.attrs["glp"]["evaluated"]
    assert evaluated == expected.attrs["glp"]["evaluated"]
    assert len(touched) <= evaluated < after.number_of_vertices // 2
    assert on_host(first).attrs["glp"]["pending"] == expected.attrs["glp"]["pending"]


@pytest.mark.parametrize("kind", ["numbers", "names"])
def test_ids_of_any_kind(kind):
    before, _, _ = cpu.few_edges_changed(5)
    name = (lambda v: 5 * v - 9) if kind == "numbers" else "v{:x}".format
    edges = [
        [name(int(v)) for v in end] for end in (before.row_indices(), before.indices)
    ]  # fmt: skip
    edges = pd.DataFrame({"src": edges[0], "dst": edges[1]})
    graph, there = (as_graph(edges, device=device) for device in ("cpu", "gpu"))
    earlier = label_propagation(graph, max_iter=2, explore=0)
    some = earlier[earlier["partition"] % 5 != 1]
    found = label_propagation(there, initial=some, max_iter=2, tol=0.0)
    cpu.assert_same_run(on_host(found), label_propagation(graph, initial=some, max_iter=2, tol=0.0))
    warm = {"touched": [name(7)], "tol": 0.0}
    again = label_propagation(there, initial=found, **warm)
    expected = label_propagation(graph, initial=on_host(found), **warm)
    cpu.assert_same_run(on_host(again), expected)
    assert again.attrs["glp"]["evaluated"] == expected.attrs["glp"]["evaluated"]


@settings(max_examples=40)
@given(cpu.histories(), cpu.WARM)
def test_who_is_left_out_would_not_have_changed(history, warm):
    ticks, directed, unit, kind = history
    graph, _ = cpu.graph_of(ticks[0][0], directed, unit, kind)
    with cpu.few_are_few():
        found = label_propagation(graph.to("gpu"), initial=label_propagation(graph), max_iter=2)
        for pairs, touched in ticks[1:]:
            graph, name = cpu.graph_of(pairs, directed, unit, kind)
            if graph is None:
                return
            options = {"initial": on_host(found), **warm}
            expected = label_propagation(graph, **options)
            found = label_propagation(
                graph.to("gpu"), touched=[name(v) for v in touched], **options
            )
            cpu.assert_same_run(on_host(found), expected)


def test_on_compressed_lists_everybody_is_evaluated():
    before, after, touched = cpu.few_edges_changed(4)
    found = label_propagation(before)
    options = {"initial": found, "touched": touched, "tol": 0.0}
    packed = label_propagation(compress(after).to("gpu"), **options)
    cpu.assert_same_run(on_host(packed), label_propagation(after, **options))
    assert packed.attrs["glp"]["evaluated"] == after.number_of_vertices


def test_lists_that_are_streamed_note_nothing():
    before, _, touched = cpu.few_edges_changed(6)
    found = label_propagation(before)
    options = {"initial": found, "touched": touched, "tol": 0.0}
    expected = label_propagation(before, **options)
    streamed = label_propagation(before, device="gpu", way="streamed plain", **options)
    cpu.assert_same_run(on_host(streamed), expected)
    assert streamed.attrs["glp"]["pending"] is None or np.sum(expected.attrs["glp"]["changed"]) == 0
