"""Warm starts: the labels they begin with, and what is no start."""

import numpy as np
import pandas as pd
import pytest
import reference
import reference_variants as variants
from cases import some
from graphs import GRAPHS, edge_frames
from hypothesis import given
from hypothesis import strategies as st
from warm_runs import assert_same_run

import glp_rapids
from glp_rapids import (
    Program,
    as_graph,
    label_propagation,
    layered_label_propagation,
    propagate,
    seeded_label_propagation,
    speaker_listener,
)


class Counting(Program):
    """Writes beside the labels, so everybody has to be evaluated; who hears no label is silent."""

    result_columns = ("won",)

    def update_vertex(v, label, score, state):
        state.labels[v] = label if score > 1 else -1
        state.won[v] = score

    def initial_state(self, graph):
        return {"won": np.zeros(graph.number_of_vertices)}


# ---------------------------------------------------------------- the first labels


def ids_of(graph):
    ids = graph.external()
    return list(map(tuple, ids.to_numpy().tolist())) if ids.ndim == 2 else ids.tolist()


def assert_is_the_twin(graph, found, earlier, options):
    rows = graph.rows(options.get("direction", "in"))
    ids = ids_of(graph)
    options = {name: value for name, value in options.items() if name != "direction"}
    before = None if options.get("explore") else sum(one not in earlier for one in ids)
    expected, changed = reference.label_propagation(
        rows.indptr, rows.indices, rows.weights, initial=reference.initial_labels(ids, earlier),
        words=list(map(reference.id_word, ids)), before=before,
        **{"explore": 0, "max_iter": 100, **options},
    )  # fmt: skip
    assert found["partition"].tolist() == reference.renumbered(expected)
    assert found.attrs["glp"]["changed"] == (changed if ids else [])


OPTIONS = [
    {"tol": 0.0},
    {"tol": 0.1, "classes": 3, "tie_break": "hash", "seed": 5},
    {"tol": 0.0, "retain": False, "tie_break": "max", "direction": "both", "max_iter": 5},
    {"tol": 0.1, "explore": 3, "direction": "out"},
    {"tol": 0.0, "update": "sync", "max_iter": 4},
    {"max_iter": 0},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize(
    "name",
    some(GRAPHS, "empty", "float32 weights", "several columns"),
)
def test_a_warm_run_is_the_twins(name, options):
    """From a partition of most vertices, in any order of rows, and of some that are no vertices."""
    graph = as_graph(**GRAPHS[name](), device="cpu")
    random = np.random.default_rng(1)
    n = graph.number_of_vertices
    earlier = graph.frame({"partition": random.integers(0, max(n // 3, 1), n) * 7 - 3})
    earlier = earlier.sample(frac=0.8, random_state=1)
    keys = [column for column in earlier if column != "partition"]
    named = earlier[keys].itertuples(index=False, name=None)
    known = dict(zip(named, earlier["partition"], strict=True))
    known = {key if len(key) > 1 else key[0]: value for key, value in known.items()}
    found = label_propagation(graph, initial=earlier, **options)
    assert_is_the_twin(graph, found, known, {"tol": 0.001, **options})


@given(edge_frames(), st.lists(st.integers(0, 4), min_size=12, max_size=12), st.integers(0, 2**9))
def test_any_partition_of_any_graph(frame, partition, dropped):
    graph = as_graph(**frame, device="cpu")
    partition = dict(zip(range(-2, 10), partition, strict=True))
    earlier = {v: partition[v] for v in partition if not dropped >> (v + 2) & 1}
    rows = pd.DataFrame({"vertex": list(earlier), "partition": list(earlier.values())}, dtype="i8")
    found = label_propagation(graph, initial=rows, tol=0.0)
    assert_is_the_twin(graph, found, earlier, {"tol": 0.0})
    shuffled = rows.sample(frac=1, random_state=0).astype({"vertex": "int16"})
    assert_same_run(label_propagation(graph, initial=shuffled, tol=0.0), found)


@pytest.mark.parametrize("name", ["two cliques", "strings", "several columns", "beyond int63"])
def test_ids_as_partition_are_a_start_as_well(name):
    graph = as_graph(**GRAPHS[name](), device="cpu")
    options = {"max_iter": 2, "explore": 0, "classes": 2}
    earlier = label_propagation(graph, **options)
    found = label_propagation(graph, initial=earlier)
    named = label_propagation(graph, renumber=False, **options)
    assert_same_run(label_propagation(graph, initial=named), found)
    assert_same_run(label_propagation(graph, initial=named[::-1]), found)
    assert_same_run(label_propagation(glp_rapids.compress(graph), initial=named), found)


def test_layers_go_on_each_from_its_own():
    graph = as_graph(**GRAPHS["power law"](), device="cpu")
    rows = graph.rows()
    earlier = layered_label_propagation(graph, gammas=[0, 0.5], explore=0, max_iter=2, tol=0.0)
    found = layered_label_propagation(
        graph, gammas=[0.5, 0], initial=earlier.sample(frac=1, random_state=0), touched=[1], tol=0.0
    )
    for place, gamma in enumerate([0.5, 0]):
        known = earlier[earlier["gamma"] == gamma].set_index("vertex")["partition"].to_dict()
        twin = variants.layered_label_propagation(
            rows.indptr, rows.indices, gammas=[gamma], explore=0, max_iter=100,
            initial=reference.initial_labels(ids_of(graph), known), before=0, words=ids_of(graph),
        )[gamma]  # fmt: skip
        part = found[found["gamma"] == gamma]
        assert part["partition"].tolist() == reference.renumbered(twin[0])
        assert found.attrs["glp"]["layers"][place]["changed"] == twin[1]
    alike = label_propagation(graph, explore=0, max_iter=2)
    one = layered_label_propagation(graph, gammas=[0.5], initial=alike)
    assert one.attrs["glp"]["layers"][0]["warm"]
    with pytest.raises(ValueError, match=r"initial has no rows of gamma=3; there are 0, 0\.5"):
        layered_label_propagation(graph, gammas=[3], initial=earlier)


def test_silence_is_a_start_for_programs():
    star = {**GRAPHS["star"](), "device": "cpu", "update": "sync"}
    silent = propagate(program=Counting(), max_iter=1, **star)
    assert silent["partition"].tolist() == [-1] * 40
    named = propagate(program=Counting(), max_iter=1, renumber=False, **star)
    assert named["partition"].isna().all()
    for initial in (silent, named):
        found = propagate(program=Counting(), initial=initial, max_iter=3, **star)
        assert found["partition"].tolist() == [-1] * 40
        assert found.attrs["glp"]["changed"] == [0]
    wide = silent.assign(partition=[10**6, *[-1] * 38, 10**6])
    for dtype in ("int64", "int32", "float64", "Int64"):
        found = propagate(
            program=Counting(), initial=wide.astype({"partition": dtype}), max_iter=0, **star
        )
        assert found["partition"].tolist() == [0, *[-1] * 38, 0]
    below = pd.DataFrame({"src": [-1, 0], "dst": [0, 1]})
    with pytest.raises(ValueError, match="initial: the partition -1 may stand for silent vertices"):
        propagate(below, Counting(), initial=silent)


# ---------------------------------------------------------------- bad input


EDGES = {"graph": pd.DataFrame({"src": [0, 1, 2], "dst": [1, 2, 3]}), "device": "cpu"}


@pytest.mark.parametrize(
    "given", [lambda: {0: 7, 1: 7, 2: 3, 3: 3}, lambda: [{0, 1}, {2, 3}],
              lambda: iter([{1, 0}, {3, 2}])], ids=["dict", "sets", "iterator"]
)  # fmt: skip
def test_a_partition_as_networkx_has_it(given):
    initial = given()
    expected = label_propagation(**EDGES, initial=frame_of([0, 1, 2, 3], [0, 0, 1, 1]))
    pd.testing.assert_frame_equal(label_propagation(**EDGES, initial=initial), expected)


def test_a_partition_of_tuples_where_ids_have_several_columns():
    ends = {"source": ["a", "b"], "destination": ["c", "d"]}
    edges = pd.DataFrame({"a": [0, 0, 1, 3], "b": [0, 0, 1, 3], "c": [1, 2, 2, 4],
                          "d": [1, 2, 2, 4]})  # fmt: skip
    sets = [{(0, 0), (1, 1), (2, 2)}, {(3, 3), (4, 4)}]
    frame = pd.DataFrame({"0_vertex": range(5), "1_vertex": range(5), "partition": [0, 0, 0, 1, 1]})
    expected = label_propagation(edges, initial=frame, device="cpu", **ends)
    for initial in (sets, {one: place for place, part in enumerate(sets) for one in part}):
        found = label_propagation(edges, initial=initial, device="cpu", **ends)
        pd.testing.assert_frame_equal(found, expected)


@pytest.mark.parametrize("kind", ["dict", "sets"])
def test_a_partition_of_other_vertices_is_told_of(kind):
    graph = as_graph(pd.DataFrame({"src": np.arange(200), "dst": np.arange(1, 201)}), device="cpu")
    others = {one + 1000: one // 2 for one in range(200)}
    initial = others if kind == "dict" else [{one} for one in others]
    with pytest.warns(UserWarning, match="initial names no vertex of the graph"):
        label_propagation(graph, initial=initial)


def frame_of(vertices, partition):
    return pd.DataFrame({"vertex": vertices, "partition": partition})


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"initial": [0, 0]}, TypeError, "initial must be a frame with the columns"),
        ({"initial": pd.DataFrame({"vertex": [0]})}, ValueError, "initial has no column 'part"),
        ({"initial": pd.DataFrame({"id": [0], "partition": 0})}, ValueError, "has no column 'ver"),
        ({"initial": frame_of([0, 1, 0], [1, 1, 2])}, ValueError, "names the vertex 0 twice"),
        ({"initial": frame_of([0, 1], [1, None])}, ValueError, "null"),
        ({"initial": frame_of([0, None], [1, 1])}, ValueError, "null"),
        ({"initial": frame_of([0, 1], ["a", None])}, ValueError, "null"),
        ({"initial": frame_of(["0", "1"], [1, 1])}, TypeError, "initial holds string ids but"),
        ({"initial": frame_of([0.0, 1.0], [1, 1])}, TypeError, "float64"),
        ({"initial": pd.DataFrame({"0_vertex": [0], "1_vertex": [0], "partition": 0})},
         ValueError, "an id of this graph has 1"),
        ({"touched": [0]}, ValueError, "touched is for initial="),
        ({"initial": frame_of([0], [0]), "touched": ["a"]}, TypeError, "touched holds string ids"),
        ({"initial": frame_of([0], [0]), "touched": 3}, TypeError, "touched must be a list"),
        ({"initial": frame_of([0], [0]), "touched": [0, None]}, ValueError, "null"),
    ],
)  # fmt: skip
def test_bad_starts(options, error, words):
    for function in (label_propagation, layered_label_propagation):
        with pytest.raises(error, match=words):
            function(**EDGES, **options)


def test_harmless_rows_and_ids():
    found = label_propagation(**EDGES)
    twice = pd.concat([found, found, frame_of([9, 10, 9], [0, 7, 1])], ignore_index=True)
    expected = label_propagation(**EDGES, initial=found)
    assert_same_run(label_propagation(**EDGES, initial=twice), expected)
    touched = label_propagation(**EDGES, initial=found, touched=pd.Series([2, 77]))
    assert_same_run(touched, expected)
    nothing = label_propagation(**EDGES, initial=found.head(0))
    assert_same_run(nothing, label_propagation(**EDGES, explore=0))
    wide = found.astype({"vertex": "Int64", "partition": "string"})
    assert label_propagation(**EDGES, initial=wide).equals(expected)


def test_where_a_warm_start_has_no_meaning_it_is_refused():
    found = label_propagation(**EDGES)
    with pytest.raises(TypeError, match="no option 'initial': a label that came over edges"):
        seeded_label_propagation(**EDGES, seeds=[0], initial=found)
    with pytest.raises(TypeError, match="no option 'touched': its communities are counted in mem"):
        speaker_listener(**EDGES, touched=[0])
    with pytest.raises(ValueError, match="no meaning with order=True"):
        layered_label_propagation(**EDGES, order=True, initial=found)

    class Named(Program):
        def initial_state(self, graph):
            return {"labels": np.zeros(graph.number_of_vertices, np.int32)}

    with pytest.raises(ValueError, match=r"Named\.initial_state gives labels"):
        propagate(**EDGES, program=Named(), initial=found)


def test_a_result_of_other_ids_is_told_of():
    ring = np.arange(150)
    edges = pd.DataFrame({"src": ring, "dst": np.roll(ring, 1)})
    found = label_propagation(edges, device="cpu")
    with pytest.warns(UserWarning, match="initial names no vertex of the graph"):
        label_propagation(edges, initial=found.assign(vertex=ring + 150), device="cpu")
    again = label_propagation(edges, initial=found.assign(vertex=ring + 149), device="cpu")
    assert again["partition"].nunique() > 1
    label_propagation(edges[:50], initial=found[100:], device="cpu")  # of few it may well be so


def test_labels_that_swing_have_not_converged():
    ends = np.array([(u, v + 5) for u in range(5) for v in range(5)]).T
    found = label_propagation(tuple(ends), update="sync", explore=0, device="cpu")
    report = found.attrs["glp"]
    assert report["sweeps"] < 100
    assert set(report["changed"]) == {10}
    assert not report["converged"]
    assert label_propagation(tuple(ends), device="cpu").attrs["glp"]["converged"]
