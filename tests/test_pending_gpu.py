"""Warm starts on a GPU: who is left out, and who is pending."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial

import graphs
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_pending import EARLIER, FUNCTIONS, WARM, Fading, few_are_few, graph_of, histories
from warm_graphs import few_edges_changed, neighbours_lost
from warm_runs import assert_same_report, assert_same_run, on_host

import glp_rapids
from glp_rapids import as_graph, label_propagation, propagate
from glp_rapids.propagation import pending

pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")
from glp_rapids.propagation.engines import gpu_frontier

pytestmark = [
    pytest.mark.gpu,
    # the RAPIDS libraries warn about each other's deprecations
    pytest.mark.filterwarnings("default"),
]


@contextmanager
def few_are_few_there(spread=1):
    """The same for the GPU's engine of few active vertices."""
    with few_are_few(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(gpu_frontier, "OF_ENTRIES", 1)
        patch.setattr(gpu_frontier, "OF_VERTICES", 1)
        patch.setattr(gpu_frontier, "SPREAD", spread)
        yield


def check_history(history, earlier, warm, which, spread=1):
    """Each run goes on from a result of the other device, and all say the same."""
    ticks, directed, unit, kind = history
    function = FUNCTIONS[which]
    graph, _ = graph_of(ticks[0][0], directed, unit, kind)
    with few_are_few_there(spread):
        found = function(graph, **earlier)
        of_gpu = function(graph.to("gpu"), **earlier)
        for pairs, touched in ticks[1:]:
            graph, name = graph_of(pairs, directed, unit, kind)
            if graph is None:
                return
            named = [name(v) for v in touched]
            expected = function(graph, initial=found, touched=named, **warm)
            on_gpu = graph.to("gpu")
            for initial in (found, on_host(of_gpu), of_gpu):
                run = on_host(function(on_gpu, initial=initial, touched=named, **warm))
                assert_same_run(run.astype(expected.dtypes), expected)
            everybody = on_host(function(on_gpu, initial=found, **warm))
            assert_same_run(everybody.astype(expected.dtypes), expected)
            of_gpu = function(on_gpu, initial=found, touched=named, **warm)
            # ... and a CPU goes on from what a GPU says of who is pending
            again = function(graph, initial=on_host(of_gpu), touched=[], **warm)
            assert_same_run(again, function(graph, initial=expected, **warm))
            found = expected


SPREADS = st.sampled_from([1, 1, 3, 10**6])


@settings(max_examples=60)
@given(histories(), EARLIER, WARM, SPREADS)
def test_who_is_left_out_would_not_have_changed(history, earlier, warm, spread):
    check_history(history, earlier, warm, "classic", spread)


@settings(max_examples=20)
@given(histories(), EARLIER, WARM, SPREADS)
def test_nor_of_another_program(history, earlier, warm, spread):
    check_history(history, earlier, warm, "squared", spread)


def hubs_of_many_sizes(weighted):
    """Rows of every length, as each kernel has paths of its own, and many labels in them."""
    random = np.random.default_rng(5)
    degrees = [*np.geomspace(3, 5900, 50).astype(int), *random.integers(1, 30, 2000)]
    source = np.repeat(np.arange(len(degrees)), degrees)
    target = np.concatenate([random.choice(6000, degree, replace=False) for degree in degrees])
    weights = (random.integers(1, 9, source.size) / 8,) if weighted else ()
    return as_graph((source, target, *weights), device="cpu")


ALL_ACTIVE = {
    **graphs.GRAPHS,
    "hubs": lambda: {"graph": hubs_of_many_sizes(False)},
    "weighted hubs": lambda: {"graph": hubs_of_many_sizes(True)},
}


# By the engine of few active vertices; by the other one; and by that one after a sweep.
LIMITS = {
    "few": {"OF_ENTRIES": 1, "OF_VERTICES": 1, "SPREAD": 1},
    "many": {"OF_ENTRIES": 10**9, "OF_VERTICES": 1},
    "after a sweep": {"OF_ENTRIES": 1, "OF_VERTICES": 1, "SPREAD": 10**9},
    # lists of more members than there are threads
    "one block": {
        "OF_ENTRIES": 1, "OF_VERTICES": 1, "SPREAD": 1, "AT_ONCE": 1 << 40,
        "multiprocessors": lambda: 1,
    },
}  # fmt: skip


@pytest.mark.parametrize("limits", LIMITS)
@pytest.mark.parametrize("name", ALL_ACTIVE)
def test_all_are_evaluated_if_all_are_listed(name, limits, monkeypatch):
    """After a sweep of which nobody noted who is settled: every vertex is pending."""
    for limit, value in LIMITS[limits].items():
        monkeypatch.setattr(gpu_frontier, limit, value)
    graph = as_graph(**ALL_ACTIVE[name](), device="cpu")
    on_gpu = graph.to("gpu")
    for direction in ("in", "both") if graph.directed else ("in",):
        with few_are_few():
            for classes in (1, 32):
                how = {"direction": direction, "classes": classes}
                found = label_propagation(graph, explore=0, max_iter=1, **how)
                for more in ({"tol": 0.0, "max_iter": 12}, {"tie_break": "hash", "max_iter": 3}):
                    how = {"initial": found, "touched": [], **how, **more}
                    expected = label_propagation(graph, **how)
                    assert_same_report(label_propagation(on_gpu, **how), expected)


@pytest.mark.parametrize("progress", [False, True])
def test_runs_by_sweep_are_those_at_once(progress):
    before, after, touched = few_edges_changed(3)
    on_gpu = after.to("gpu")
    for earlier in ({"max_iter": 6, "explore": 3}, {"tol": 0.01}, {"tol": 0.0}):
        found = label_propagation(before, **earlier)
        for options in ({}, {"classes": 5, "tie_break": "hash"}, {"max_iter": 1}):
            how = {"initial": found, "touched": touched, "tol": 0.0, **options}
            run = label_propagation(on_gpu, progress=progress, **how)
            assert_same_report(run, label_propagation(after, **how))


@pytest.mark.parametrize("scheme", [None, "packed"])
@pytest.mark.parametrize("limits", ["few", "many"])
def test_who_lost_all_neighbours_is_not_pending(limits, scheme, monkeypatch):
    for limit, value in LIMITS[limits].items():
        monkeypatch.setattr(gpu_frontier, limit, value)
    before, after, around = neighbours_lost()
    after = after if scheme is None else glp_rapids.compress(after, scheme, device="cpu")
    found = label_propagation(before, tol=0.0)
    for sweeps in (1, 2):
        how = {"initial": found, "touched": around, "tol": 0.0, "max_iter": sweeps}
        expected = label_propagation(after, device="cpu", **how)
        run = label_propagation(after.to("gpu"), device="gpu", **how)
        assert_same_report(run, expected)


def test_runs_in_several_threads():
    before, after, touched = few_edges_changed(3)
    found, on_gpu = label_propagation(before, tol=0.01), after.to("gpu")
    how = {"initial": found, "touched": touched, "tol": 0.0, "max_iter": 20}
    expected = label_propagation(after, **how)
    with ThreadPoolExecutor(4) as pool:
        for run in pool.map(lambda _: label_propagation(on_gpu, **how), range(16)):
            assert_same_report(run, expected)


def test_a_failure_is_said_as_on_a_cpu():
    class Loud(glp_rapids.Program):
        skip_inactive = True
        largest_amount = 4.0

        def load_neighbor(v, u, weight, state):
            return state.labels[u], 2 * weight

    _, graph, touched = few_edges_changed(3, weighted=True)
    found = propagate(graph, Loud(), tol=0.01)
    ends = [graph.external().to_numpy()[end] for end in (graph.row_indices(), graph.indices)]
    once = ends[0] <= ends[1]
    ends = [end[once] for end in ends]
    loud = np.where(np.isin(ends[0], touched[:3]), 3.0, graph.weights[once])
    loud, said = as_graph((*ends, loud), device="cpu"), []
    for device in ("cpu", "gpu"):
        with pytest.raises(ValueError) as caught:
            propagate(loud.to(device), Loud(), initial=found, touched=touched)
        said.append(str(caught.value))
    assert said[0] == said[1]


@pytest.mark.parametrize("which", ["classic", "squared", "connected"])
@pytest.mark.parametrize(
    ("weighted", "directed"), [(False, False), (True, False), (False, True), (True, True)]
)
def test_few_are_evaluated_where_few_changed(which, weighted, directed):
    before, after, touched = few_edges_changed(3, weighted, directed)
    function, n = FUNCTIONS[which], after.number_of_vertices
    on_gpu = before.to("gpu"), after.to("gpu")
    for earlier in ({"max_iter": 9, "explore": 3}, {"tol": 0.01}, {"tol": 0.0}, {"max_iter": 1}):
        found = function(before, **earlier)
        assert_same_report(function(on_gpu[0], **earlier), found)
        for options in ({}, {"classes": 5, "tie_break": "hash"}, {"max_iter": 1}):
            how = {"initial": found, "tol": 0.0, **options}
            expected = function(after, touched=touched, **how)
            for _ in range(2):  # the second time with what the first has left
                some = function(on_gpu[1], touched=touched, **how)
                assert_same_report(some, expected)
                assert_same_report(function(on_gpu[1], **how), function(after, **how))
            if earlier == {"tol": 0.01}:
                assert some.attrs["glp"]["evaluated"] < n // 8
            assert_same_report(function(on_gpu[1]), function(after))


@pytest.mark.parametrize("order", [None, "degree"])
@pytest.mark.parametrize("scheme", ["packed", "cgr"])
def test_few_are_evaluated_of_compressed_lists(scheme, order):
    before, after, touched = few_edges_changed(4)
    found = label_propagation(after, tol=0.01)
    packed = glp_rapids.compress(after, scheme, order=order, device="cpu")
    how = {"initial": found, "touched": touched, "tol": 0.0}
    expected = label_propagation(packed, device="cpu", **how)
    run = label_propagation(packed.to("gpu"), device="gpu", **how)
    assert_same_report(run, expected)
    assert run.attrs["glp"]["evaluated"] < after.number_of_vertices // 8
    # around who is new lists are decoded
    how = {**how, "initial": label_propagation(before, tol=0.01)}
    expected = label_propagation(packed, device="cpu", **how)
    run = label_propagation(packed.to("gpu"), device="gpu", **how)
    assert_same_report(run, expected)
    assert run.attrs["glp"]["evaluated"] < after.number_of_vertices // 8


def with_text_ids(graph):
    ends = [[f"v{v:04x}" for v in graph.external().to_numpy()[end]]
            for end in (graph.row_indices(), graph.indices)]  # fmt: skip
    return as_graph(pd.DataFrame({"src": ends[0], "dst": ends[1]}), device="cpu")


def test_texts_as_ids():
    before, after, touched = few_edges_changed(3)
    named = [f"v{v:04x}" for v in touched.tolist()]
    before, after = with_text_ids(before), with_text_ids(after)
    found = label_propagation(before, tol=0.01)
    for renumber in (True, False):
        how = {"initial": found, "touched": named, "tol": 0.0, "renumber": renumber}
        assert_same_report(label_propagation(after.to("gpu"), **how),
                           label_propagation(after, **how))  # fmt: skip
        found = label_propagation(before, tol=0.01, renumber=False)


def test_who_comes_back_is_new_and_wakes_those_around():
    before, _, _ = few_edges_changed(7)
    found = label_propagation(before, tol=0.0)
    some_rows = found[found.index % 29 > 0]
    options = {"initial": some_rows, "touched": [], "tol": 0.0}
    expected = label_propagation(before, **options)
    assert expected.attrs["glp"]["evaluated"] < len(found)
    assert_same_report(label_propagation(before.to("gpu"), **options), expected)


@pytest.mark.parametrize(
    "options",
    [{"retain": False}, {"explore": 2}, {"skip_inactive": False}, {"direction": "out"},
     {"strategy": "sort"}],
    ids=str,
)  # fmt: skip
def test_everybody_is_evaluated_where_others_need_not_be_settled(options):
    before, after, touched = few_edges_changed(5, weighted=True, directed=True)
    how = {"initial": label_propagation(before), "touched": touched, **options}
    found = label_propagation(after.to("gpu"), **how)
    assert found.attrs["glp"]["evaluated"] == after.number_of_vertices
    expected = label_propagation(after, **how)
    assert_same_run(on_host(found).astype(expected.dtypes), expected)


def test_programs_that_keep_arrays_say_nothing_of_who_is_pending():
    before, after, touched = few_edges_changed(6, weighted=True)
    found = propagate(before.to("gpu"), Fading())
    assert "pending" not in found.attrs["glp"]
    how = {"initial": found, "touched": touched}
    again = propagate(after.to("gpu"), Fading(), **how)
    assert again.attrs["glp"]["evaluated"] == after.number_of_vertices


def test_very_many_pending_vertices_are_not_named(monkeypatch):
    before, _, _ = few_edges_changed(8)
    run = partial(label_propagation, before.to("gpu"), max_iter=3, explore=3)
    expected = label_propagation(before, max_iter=3, explore=3).attrs["glp"]["pending"]
    assert run().attrs["glp"]["pending"] == expected
    monkeypatch.setattr(pending, "MOST", 3)
    assert run().attrs["glp"]["pending"] is None
