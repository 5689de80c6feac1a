"""Warm starts: who is left out would not have changed, and a result says who is pending."""

import copy
import json
import pickle
from contextlib import contextmanager
from itertools import product

import numpy as np
import pandas as pd
import pytest
from cases import exhaustive, some, turns
from graphs import GRAPHS, edges
from hypothesis import given
from hypothesis import strategies as st
from warm_graphs import few_edges_changed, neighbours_lost
from warm_runs import assert_same_report, assert_same_run

import glp_rapids
from glp_rapids import Program, as_graph, label_propagation, propagate
from glp_rapids.propagation import pending, warm_start
from glp_rapids.propagation.engines import cpu_arrays, cpu_frontier
from glp_rapids.propagation.pending import Pending


class Squared(Program):
    """Plain, but not the classic; the score is a real number."""

    skip_inactive = True
    largest_amount = 64.0

    def load_neighbor(v, u, weight, state):
        return state.labels[u], 0.1 * weight

    def label_score(v, label, freq, state):
        return freq * freq


class Fading(Program):
    """What it reads changes with the graph, also around vertices whose rows stay."""

    skip_inactive = True
    largest_amount = 64.0

    def load_neighbor(v, u, weight, state):
        return state.labels[u], weight / (1 + state.degree[u])

    def initial_state(self, graph):
        return {"degree": graph.degree}


FUNCTIONS = {
    "classic": label_propagation,
    "connected": lambda graph, **options: label_propagation(graph, connected=True, **options),
    "squared": lambda graph, **options: propagate(graph, Squared(), **options),
    "fading": lambda graph, **options: propagate(graph, Fading(), **options),
}


@contextmanager
def few_are_few(spread=0):
    """Let every graph be large enough for a frontier; ``spread``: when the other engine goes on."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pending, "OF_ALL", 1)
        patch.setattr(warm_start, "OF_ALL", 1)
        patch.setattr(warm_start, "MANY", 1)
        patch.setattr(cpu_frontier, "OF_ENTRIES", 0)
        patch.setattr(cpu_frontier, "OF_VERTICES", 0)
        patch.setattr(cpu_frontier, "SPREAD", spread)
        yield


# ---------------------------------------------------------------- who need not be evaluated


@pytest.mark.parametrize("way", ["plain", "streamed plain", "packed"])
def test_who_lost_all_neighbours_is_not_pending(way, monkeypatch):
    monkeypatch.setattr(cpu_arrays, "SMALL", 0)
    before, after, around = neighbours_lost()
    found = label_propagation(before, tol=0.0)
    given = glp_rapids.compress(after, "packed") if way == "packed" else after
    for sweeps in (1, 2):
        how = {"initial": found, "touched": around, "tol": 0.0, "max_iter": sweeps}
        run = label_propagation(given, way=way, **how)
        assert run.attrs["glp"]["way"] == way
        assert run.attrs["glp"]["pending"].words().size
        assert_same_report(run, label_propagation(after, **how))


@st.composite
def histories(draw):
    """Draw a graph and how it goes on: {(u, v): weight} after each edit, and what was touched."""
    n = draw(st.integers(2, 14))
    pairs = st.tuples(st.integers(0, n), st.integers(0, n))
    directed = draw(st.booleans())
    if not directed:
        pairs = pairs.map(lambda pair: tuple(sorted(pair)))
    weights = st.integers(0, 9)
    graph = draw(st.dictionaries(pairs, weights, min_size=3, max_size=40))
    ticks = [(graph, set())]
    for _ in range(draw(st.integers(1, 2))):
        edits = draw(st.dictionaries(pairs, st.none() | weights, max_size=6))
        gone = draw(st.lists(st.sampled_from(sorted(graph)), max_size=3) if graph else st.just([]))
        after = {**graph, **edits, **dict.fromkeys(gone)}
        after = {pair: weight for pair, weight in after.items() if weight is not None}
        changed = {pair for pair in {*graph, *after} if graph.get(pair) != after.get(pair)}
        ticks.append((after, {end for pair in changed for end in pair}))
        graph = after
    unit = draw(st.sampled_from([None, 1, 0.1]))
    return ticks, directed, unit, draw(st.sampled_from(["numbers", "names"]))


def graph_of(pairs, directed, unit, kind):
    weights = None if unit is None else [unit * weight for weight in pairs.values()]
    name = (lambda v: 5 * v - 9) if kind == "numbers" else "v{:x}".format
    named = [tuple(map(name, pair)) for pair in pairs]
    if not named:
        return None, name
    return as_graph(**edges(named, weights, directed=directed), device="cpu"), name


EARLIER = st.fixed_dictionaries({}, optional={
    "max_iter": st.integers(0, 4), "tol": st.sampled_from([0.0, 0.1, 0.4]),
    "explore": st.sampled_from([0, 2]), "retain": st.booleans(),
    "tie_break": st.sampled_from(["min", "max", "hash"]), "seed": st.integers(0, 3),
    "direction": st.sampled_from(["in", "out", "both"]), "update": st.sampled_from(["sync"]),
    "skip_inactive": st.just(False),
})  # fmt: skip
WARM = st.fixed_dictionaries({}, optional={
    "max_iter": st.integers(0, 4), "tol": st.sampled_from([0.0, 0.1, 0.4]),
    "classes": st.sampled_from([1, 3, 17]), "tie_break": st.sampled_from(["min", "max", "hash"]),
    "seed": st.integers(0, 3), "retain": st.sampled_from([True, True, False]),
    "direction": st.sampled_from(["in", "in", "both"]), "update": st.sampled_from(["sync"]),
})  # fmt: skip
WAYS = st.sampled_from(["auto", "auto", "packed", "streamed plain", "streamed packed"])


# The others, which take most of their time to compile, are drawn from where it is exhaustive.
@given(histories(), EARLIER, WARM, st.sampled_from(["classic", "squared"]), WAYS,
       st.sampled_from([0, 3]))  # fmt: skip
def test_who_is_left_out_would_not_have_changed(history, earlier, warm, which, way, spread):
    check_history(history, earlier, warm, which, way, spread)


@pytest.mark.parametrize("name", ["strings", "several columns", "beyond int63", "random"])
def test_pending_vertices_are_found_again_however_few(name):
    graph = as_graph(**GRAPHS[name](), device="cpu")
    vertices = np.arange(graph.number_of_vertices)
    for number in range(4):
        for few in (vertices[number : 2 * number], vertices[-number:]):
            words = np.sort(pending.words_of(graph.vertices, few).view(np.uint64))
            found = pending.vertices_of(graph.vertices, words, graph.id_words)
            assert found.tolist() == few.tolist()


@pytest.mark.exhaustive
@pytest.mark.parametrize("which", FUNCTIONS)
def test_who_is_left_out_would_not_have_changed_often(which):
    from hypothesis import settings

    strategies = histories(), EARLIER, WARM, st.just(which), WAYS, st.sampled_from([0, 3])
    settings(max_examples=50)(given(*strategies)(check_history))()


def check_history(history, earlier, warm, which, way, spread):
    ticks, directed, unit, kind = history
    if warm.get("direction") == "both" or earlier.get("direction") == "both":
        way = "auto"
    function, dropped = FUNCTIONS[which], []
    graph, _ = graph_of(ticks[0][0], directed, unit, kind)
    with few_are_few(spread):
        found = function(graph, **earlier)
        for pairs, touched in ticks[1:]:
            graph, name = graph_of(pairs, directed, unit, kind)
            if graph is None:
                return
            initial = found[~found["vertex"].isin(dropped)][::-1]
            options = {"initial": initial, "way": way, **warm}
            everybody = function(graph, **options)
            found = function(graph, touched=[name(v) for v in touched], **options)
            assert_same_run(found, everybody)
            assert everybody.attrs["glp"]["evaluated"] == graph.number_of_vertices
            dropped = found["vertex"].tolist()[1:3]


KINDS = [(False, False), (True, False), (True, True)]  # weighted, directed
EACH_WAY = ["auto", "packed", "streamed plain", "streamed packed"]


@pytest.mark.parametrize(
    ("of", "way"),
    [*product(product(["classic"], [KINDS[0], KINDS[2]]), EACH_WAY),
     *exhaustive((("classic", KINDS[1]), "auto"),
                 *turns(product(["connected", "squared"], KINDS), EACH_WAY))],
    ids=str,
)  # fmt: skip
def test_few_are_evaluated_where_few_changed(of, way, monkeypatch):
    """Also of vertices that were pending: the earlier run was stopped in the middle."""
    which, (weighted, directed) = of
    monkeypatch.setattr(pending, "OF_ALL", 2)
    before, after, touched = few_edges_changed(3, weighted, directed)
    function, options = FUNCTIONS[which], {"tol": 0.0, "tie_break": "hash", "max_iter": 9}
    found = function(before, max_iter=6, explore=3)
    warm = {"initial": found, "way": way, **options}
    first = function(after, touched=touched, **warm)
    assert_same_run(first, function(after, **warm))
    assert found.attrs["glp"]["pending"].words().size > 0
    assert len(touched) <= first.attrs["glp"]["evaluated"] < after.number_of_vertices // 9
    assert first.attrs["glp"]["changed"][0] > 0
    warm["initial"] = first
    again = function(after, touched=[], **warm)
    assert again.attrs["glp"]["evaluated"] == first.attrs["glp"]["pending"].words().size
    assert_same_run(again, function(after, **warm))


@pytest.mark.parametrize("spread", [1, 20, 300, 10**6])
def test_where_changes_spread_the_other_engine_goes_on(spread, monkeypatch):
    built = []
    make = cpu_frontier.CpuEngine
    monkeypatch.setattr(cpu_frontier, "CpuEngine", lambda *given: built.append(1) or make(*given))
    monkeypatch.setattr(cpu_frontier, "SPREAD", spread)
    before, after, touched = few_edges_changed(4)
    found = label_propagation(before, tol=0.01)
    options = {"initial": found, "tol": 0.0, "max_iter": 9}
    built.clear()
    some_evaluated = label_propagation(after, touched=touched, **options)
    assert built == ([1] if spread > 20 else [])
    assert_same_run(some_evaluated, label_propagation(after, **options))


EVERYBODY = {
    "ties that change with the names of labels": {"retain": False},
    "exploring": {"explore": 2},
    "a sweep of all": {"skip_inactive": False},
    "another direction": {"direction": "out"},
}


@pytest.mark.parametrize("why", EVERYBODY)
def test_everybody_is_evaluated_where_others_need_not_be_settled(why):
    before, after, touched = few_edges_changed(5, weighted=True, directed=True)
    found = label_propagation(before)
    options = {"initial": found, **EVERYBODY[why]}
    one = label_propagation(after, touched=touched, **options)
    assert one.attrs["glp"]["evaluated"] == after.number_of_vertices
    assert_same_run(one, label_propagation(after, **options))


def test_everybody_is_evaluated_where_nobody_noted_who_is_settled():
    before, after, touched = few_edges_changed(6, weighted=True)
    found = label_propagation(before, tol=0.01)
    n = after.number_of_vertices

    def evaluated(initial, graph=after, **options):
        run = label_propagation(graph, initial=initial, touched=touched, **options)
        assert run.attrs["glp"]["warm"]
        return run.attrs["glp"]["evaluated"]

    assert evaluated(found) < n
    assert evaluated(found.sort_values("partition")) < n
    assert evaluated(found[["partition", "vertex"]]) < n
    assert evaluated(pd.DataFrame({name: found[name].to_numpy() for name in found})) == n
    louder = (after.row_indices(), after.indices, after.weights * 64)
    louder = as_graph(louder, directed=True, device="cpu")
    assert evaluated(found, louder) == louder.number_of_vertices
    assert evaluated(glp_rapids.louvain(before)[0]) == n
    assert evaluated(propagate(before, Fading())) == n
    assert evaluated(propagate(before, Squared())) == n
    damaged = found.copy()
    damaged.attrs["glp"]["pending"] = "no such text"
    assert evaluated(damaged) == n
    fading = propagate(before, Fading())
    assert "pending" not in fading.attrs["glp"]
    again = propagate(after, Fading(), initial=fading, touched=touched)
    assert again.attrs["glp"]["evaluated"] == n


def test_who_comes_back_is_new_and_wakes_those_around():
    """Rows left out of a result: their vertices begin anew, which changes what others hear."""
    before, _, _ = few_edges_changed(7)
    found = label_propagation(before, tol=0.0)
    largest = found["partition"].mode()[0]
    some_rows = found[(found["partition"] != largest) | (found.index % 9 > 0)]
    options = {"initial": some_rows, "tol": 0.0}
    one = label_propagation(before, touched=[], **options)
    assert len(found) - len(some_rows) < one.attrs["glp"]["evaluated"] < len(found)
    assert_same_run(one, label_propagation(before, **options))


def with_ids(graph, kind):
    """The graph with ids of another kind: a function of them, and columns to name in as_graph."""
    ends = [graph.external().to_numpy()[end] for end in (graph.row_indices(), graph.indices)]
    if kind == "several columns":
        columns = [[end % 7, [f"a{v}" for v in end]] for end in ends]
        frame = pd.DataFrame({f"{i}{j}": columns[i][j] for i in (0, 1) for j in (0, 1)})
        return as_graph(frame, source=["00", "01"], destination=["10", "11"], device="cpu")
    frame = pd.DataFrame({"src": ends[0], "dst": ends[1]}) * 7 + 3
    return as_graph(frame.astype(str) if kind == "strings" else frame, device="cpu")


def named(vertices, kind):
    if kind == "several columns":
        return [(v % 7, f"a{v}") for v in vertices]
    return [f"{7 * v + 3}" if kind == "strings" else 7 * v + 3 for v in vertices]


@pytest.mark.parametrize("kind", ["numbers", "strings", "several columns"])
def test_who_was_pending_is_found_whatever_the_ids_and_the_lists(kind, tmp_path):
    before, after, touched = few_edges_changed(3)
    before, after = with_ids(before, kind), with_ids(after, kind)
    glp_rapids.compress(after).save(tmp_path / "after.glp")
    options = {"touched": named(touched.tolist(), kind), "tol": 0.0, "max_iter": 9}
    found = label_propagation(before, tol=0.01)
    n, pending_then = after.number_of_vertices, found.attrs["glp"]["pending"].words().size
    assert pending_then > 0
    everybody = label_propagation(after, initial=found, **{**options, "touched": None})
    for graph in (after, glp_rapids.CompressedGraph.open(tmp_path / "after.glp")):
        for initial in (found, found[::-1]):
            run = label_propagation(graph, initial=initial, **options)
            assert_same_run(run, everybody)
            assert len(touched) < run.attrs["glp"]["evaluated"] <= len(touched) + pending_then < n


# ---------------------------------------------------------------- what a result carries


def test_what_is_pending_is_a_text_that_frames_carry(tmp_path):
    before, after, touched = few_edges_changed(8)
    found = label_propagation(before, tol=0.01)
    text = found.attrs["glp"]["pending"]
    assert isinstance(text, Pending)
    assert text.words().size > 0
    assert repr(text) == f"<{text.words().size} vertices>"
    assert copy.deepcopy(text) is copy.copy(text) is text
    assert found.sort_values("partition").attrs["glp"]["pending"] is text
    joined = pd.concat([found[:100], found[100:]])
    assert joined.attrs["glp"]["pending"] == text
    path = tmp_path / "found.parquet"
    found.to_parquet(path)
    expected = label_propagation(after, initial=found, touched=touched)
    assert expected.attrs["glp"]["evaluated"] < after.number_of_vertices
    for carried in (pd.read_parquet(path), pickle.loads(pickle.dumps(found)), joined):
        run = label_propagation(after, initial=carried, touched=touched)
        assert_same_run(run, expected)
        assert run.attrs["glp"]["evaluated"] == expected.attrs["glp"]["evaluated"]
    assert json.loads(json.dumps(found.attrs))["glp"]["pending"] == text


@pytest.mark.parametrize("name", some(GRAPHS, "strings", "several columns", "beyond int63"))
def test_pending_vertices_are_found_again(name):
    graph = as_graph(**GRAPHS[name](), device="cpu")
    n = graph.number_of_vertices
    chosen = np.arange(0, n, 3)
    words = pending.words_of(graph.vertices, chosen) if n else np.empty(0, np.int64)
    text = Pending.of("rule", words)
    found = pending.vertices_of(graph.vertices, text.words(), graph.id_words)
    assert np.sort(found).tolist() == chosen.tolist()
    assert text.rule == "rule"
    assert Pending("rule:" + "A" * 5).words() is None
    assert Pending("rule:" + "AAAA").words() is None
    assert repr(Pending("?")) == "<0 vertices>"


def test_reports_say_how_a_run_began():
    before, after, _ = few_edges_changed(9)
    cold = label_propagation(before)
    assert cold.attrs["glp"]["warm"] is False
    assert cold.attrs["glp"]["evaluated"] == before.number_of_vertices
    warm = label_propagation(after, initial=cold)
    assert warm.attrs["glp"]["warm"] is True
    assert warm.attrs["glp"]["explored"] == 0
    assert warm.attrs["glp"]["evaluated"] == after.number_of_vertices
    assert label_propagation(after, initial=cold, explore=2).attrs["glp"]["explored"] > 0
