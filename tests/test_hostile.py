"""Whatever is passed: a result, or one TypeError, ValueError or OSError that names the argument.

The tables: single values for every argument of every public function in `hostile`, columns of
every type and form for every place where a column goes in `hostile_columns`.
"""

import contextlib
import warnings
from functools import partial

import hostile
import hostile_columns
import numpy as np
import pandas as pd
import pytest
from hostile import EDGES
from hostile_columns import Stated, graph_of

import glp_rapids
from glp_rapids import label_propagation, metrics, propagate, seeded_label_propagation
from glp_rapids.fraud import account_scores

# A caller's own function, whose errors are his own; and arguments with an error of their own name.
OWN = {("progress", "type"), ("order", "generator")}
ALSO = {
    "graph": ("source",),
    "graph_or_sizes": ("graph", "sizes", "vertices", "source"),
    "ids": ("vertices",),
    **dict.fromkeys(("path", "mmap", "verify"), ("no such file", "is no file")),
}


def report(defects):
    return "\n".join(f"{where}: {what!a}" for where, what in defects.items())


def test_every_public_function_is_in_the_table():
    classes = {"Graph", "CompressedGraph", "Program", "SlidingWindow", "random_below"}
    assert set(glp_rapids.__all__) - classes <= set(hostile.CALLS)


@pytest.mark.parametrize("name", hostile.CALLS)
def test_every_argument_of_every_public_function(name):
    function, right = hostile.CALLS[name]
    arguments = hostile.arguments(function)
    right = {"device": "cpu", **right} if "device" in arguments else dict(right)
    if name.startswith("Graph."):
        right["self"] = graph_of(EDGES)
    also = ("no such file",) if "path" in right else ()
    defects = {}
    for argument in arguments:
        for shown, value in hostile.VALUES.items():
            if (argument, shown) in OWN:
                continue
            given = {**right, argument: value}
            words = (argument, *ALSO.get(argument, also))
            if what := hostile.defect(partial(function, **given), *words):
                defects[f"{argument}={shown}"] = what
    assert not defects, report(defects)


@pytest.mark.parametrize("role", hostile_columns.ROLES)
def test_every_column_in_every_place(role):
    call, *words = hostile_columns.ROLES[role]
    defects = {}
    for shown, column in hostile_columns.COLUMNS.items():
        if role in hostile_columns.FRAMED and not _pandas_takes(column):
            continue
        if role == "labels of seeds" and not _three(column):
            continue
        if what := hostile.defect(partial(call, column), *words):
            defects[shown] = what
    assert not defects, report(defects)


def _pandas_takes(column):
    """Tell what pandas can make a column of a frame."""
    try:
        hostile_columns.as_table(column)
        return len(pd.DataFrame({"src": EDGES["src"], "a": column})) == 3
    except (TypeError, ValueError, NotImplementedError):
        return False


def _three(column):
    try:
        return len(list(column)) == 3
    except TypeError:
        return False


# ---------------------------------------------------------------- what works, and how


@pytest.mark.parametrize("name", hostile_columns.SAME_AS)
def test_columns_that_are_taken_for_their_values(name):
    column, values = hostile_columns.COLUMNS[name], hostile_columns.SAME_AS[name]
    graph = graph_of((column, column))
    assert graph.external().tolist() == sorted(values)
    assert graph.vertex_index(column).tolist() == [sorted(values).index(value) for value in values]
    if isinstance(values[0], int) and "dictionary" not in name:
        weighted = graph_of(([1, 2, 3], [1, 2, 3], column))
        assert weighted.weights.tolist() == values
        assert weighted.weights.dtype.isnative
        assert glp_rapids.nmi(column, values) == 1
    if name not in ("pa.dictionary of views",):  # which pandas makes no column of
        assert graph_of(hostile_columns.as_table(column)).external().tolist() == sorted(values)


@pytest.mark.parametrize("kind", ["f4", "f8", "i4", "u8"])
def test_big_endian_weights_run_as_others(kind):
    weights = np.array([3, 1, 2], dtype=f"<{kind}")
    ends = [1, 2, 3], [2, 3, 1]
    graph, other = graph_of((*ends, weights)), graph_of((*ends, weights.astype(f">{kind}")))
    assert other.weights.tobytes() == graph.weights.tobytes()
    assert other.weights.dtype == graph.weights.dtype
    frame = pd.DataFrame({"src": ends[0], "dst": ends[1], "w": weights.astype(f">{kind}")})
    assert graph_of(frame, weight="w").weights.tobytes() == graph.weights.tobytes()
    label_propagation(other, device="cpu")


def test_big_endian_state_and_labels():
    program = Stated(mine=np.array([1, 2, 3], dtype=">f8"), labels=np.array([2, 2, 2], dtype=">i8"))
    program.result_columns = ("mine",)
    found = propagate(EDGES, program, device="cpu", max_iter=0, renumber=False)
    assert found["mine"].tolist() == [1, 2, 3]
    assert found["mine"].dtype == np.float64
    assert found["partition"].tolist() == [3, 3, 3]


BAD_STATE = {
    "2**70": (2**70, ValueError, r"'mine' is 1180591620717411303424, which is no 64-bit integer"),
    "-2**63 - 1": (-(2**63) - 1, ValueError, "no 64-bit integer"),
    "masked": (np.ma.masked_array([1, 2, 3], [0, 1, 0]), ValueError, "'mine' has masked values"),
    **{
        kind: (np.zeros(3, dtype=kind), TypeError, "'mine' is an array of ")
        for kind in ("f2", "g", "G", "U1", "S1", "O", "M8[s]", "m8[s]", "V2", "i8,i8")
    },
    "strings": (np.array(["a", "b", "c"], dtype=np.dtypes.StringDType()), TypeError, "'mine' is"),
    "views": (hostile_columns.COLUMNS["arrow string_view"], TypeError, "'mine'"),
    "text": ("text", TypeError, "gives 'mine' as str"),
    "None": (None, TypeError, "gives 'mine' as NoneType"),
}


@pytest.mark.parametrize("name", BAD_STATE)
def test_state_that_no_kernel_can_hold(name):
    value, error, words = BAD_STATE[name]
    with pytest.raises(error, match=f"Stated.initial_state.*{words}"):
        propagate(EDGES, Stated(mine=value), device="cpu")


@pytest.mark.parametrize(
    ("attribute", "value", "error"),
    [
        ("largest_amount", "much", ValueError),
        ("largest_amount", 10**400, ValueError),
        ("largest_amount", np.nan, ValueError),
        ("largest_amount", True, ValueError),
        ("skip_inactive", None, TypeError),
        ("skip_inactive", np.ones(2), TypeError),
        ("count_volumes", "yes", TypeError),
        ("result_columns", "mine", TypeError),
        ("result_columns", None, TypeError),
        ("result_columns", [1], TypeError),
    ],
)
def test_attributes_of_a_program(attribute, value, error):
    class Doubled(glp_rapids.Program):
        def load_neighbor(v, u, weight, state):
            return state.labels[u], weight * 2

    setattr(Doubled, attribute, value)
    with pytest.raises(error, match=f"{attribute} must be"):
        propagate(EDGES, Doubled(), device="cpu")


MASKED = np.ma.masked_array([1, 2, 3], [False, True, False])


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: graph_of((MASKED, [1, 2, 3])), r"source .* holds 1 null\(s\), the first at row 1"),
        (lambda: graph_of(EDGES, vertices=MASKED), r"vertices holds 1 null\(s\)"),
        (lambda: graph_of(([1, 2, 3], [2, 3, 1], MASKED)), r"weight .* holds 1 null\(s\) or NaN"),
        (lambda: graph_of(([1, 2, 3], [2, 3, 1], MASKED * 0.5)), r"weight .* holds 1 null\(s\)"),
        (lambda: seeded_label_propagation(EDGES, MASKED, device="cpu"), r"seeds holds 1 null\(s\)"),
        (lambda: account_scores(EDGES, MASKED, device="cpu"), r"seeds holds 1 null\(s\)"),
        (lambda: glp_rapids.nmi(MASKED, [0, 0, 1]), "a holds a null label"),
        (lambda: glp_rapids.compress(EDGES, order=MASKED - 1, device="cpu"), "order holds nulls"),
    ],
)
def test_a_mask_hides_a_null(call, words):
    with pytest.raises(ValueError, match=words):
        call()


@pytest.mark.parametrize("labels", [[("x", 1), ("y", 2)], [(1,), (1, 2)], [(), ("x",)]])
def test_labels_of_seeds_may_be_tuples(labels):
    edges = pd.DataFrame({"src": [0, 1, 5, 9], "dst": [1, 2, 6, 9]})
    found = seeded_label_propagation(edges, dict(zip([0, 5], labels, strict=True)), device="cpu")
    shown = found["label"].tolist()
    assert shown[:5] == [labels[0]] * 3 + [labels[1]] * 2
    assert pd.isna(shown[5])


def test_hops_beyond_all_sweeps_are_no_limit():
    found = [
        seeded_label_propagation(EDGES, [1], max_hops=hops, device="cpu")
        for hops in (None, 10**30, 2**64, np.uint64(2**64 - 1))
    ]
    assert all(one.equals(found[0]) for one in found)


def test_ids_of_lone_surrogates_are_looked_up():
    ids = hostile_columns.COLUMNS["object surrogates"]
    for given in (ids, ids.tolist()):
        graph = graph_of((given, given))
        assert graph.external().tolist() == sorted(ids)
        assert graph.vertex_index(given).tolist() == [1, 2, 0]


@pytest.mark.parametrize("weights", [[1e308] * 3, [5e-324] * 3, [1e308, 5e-324, 1.0], [2**62] * 3])
def test_weights_at_the_ends_of_their_range(weights):
    edges = [1, 2, 3], [2, 3, 1], weights
    for call in (
        lambda: label_propagation(edges, device="cpu"),
        lambda: label_propagation(edges, device="cpu", directed=True, direction="both"),
        lambda: glp_rapids.layered_label_propagation(edges, gammas=[1], device="cpu"),
        lambda: glp_rapids.speaker_listener(edges, device="cpu"),
        lambda: label_propagation(glp_rapids.compress(edges, device="cpu")),
        lambda: glp_rapids.modularity(edges, hostile.PARTITION, device="cpu"),
        lambda: glp_rapids.k_core(edges, 1, directed=True, symmetrize=True, device="cpu"),
        lambda: graph_of(([1] * 3, [2] * 3, weights)),
    ):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            assert hostile.defect(call, "weight") is None
        apart = max(weights) > 1e300 * min(weights)
        assert all(apart and "counts as 0 beside" in str(one.message) for one in told)


# ---------------------------------------------------------------- columns of one name


TWICE = pd.DataFrame([[1, 2, 2]], columns=["vertex", "label", "label"])


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: graph_of(TWICE, source="vertex", destination="label"), "destination: the frame"),
        (lambda: graph_of(TWICE, source="vertex", destination="vertex", weight="label"), "weight:"),
        (lambda: seeded_label_propagation(EDGES, TWICE, device="cpu"), "seeds have several"),
        *(
            (partial(call, TWICE.set_axis(names, axis=1)), "have several|has several")
            for names in (["vertex", "partition", "partition"], ["partition", "vertex", "vertex"])
            for call in (
                lambda frame: glp_rapids.nmi(frame, frame),
                lambda frame: metrics.cover_f1(frame, frame),
                lambda frame: glp_rapids.coverage(EDGES, frame, device="cpu"),
            )
        ),
    ],
)  # fmt: skip
def test_several_columns_of_one_name(call, words):
    with pytest.raises(ValueError, match=words):
        call()


@pytest.mark.parametrize("odd", [pd.NA, np.nan, None, ("a", "b"), 0, "\ud800"])
def test_other_columns_may_be_called_anything(odd):
    frame = pd.DataFrame([[9, 1, 2], [9, 2, 3]])
    frame.columns = pd.Index([odd, "src", "dst"], dtype=object, tupleize_cols=False)
    assert graph_of(frame).external().tolist() == [1, 2, 3]


# ---------------------------------------------------------------- other libraries' graphs


def test_values_and_nodes_of_networkx():
    networkx = pytest.importorskip("networkx")
    path, calls = networkx.path_graph(3), {}
    for shown, value in hostile.VALUES.items():
        calls[f"weight={shown}"] = "weight", partial(graph_of, path, weight=value)
    for shown, column in hostile_columns.COLUMNS.items():
        if not _three(column):
            continue
        values, graph = list(column), networkx.Graph()
        graph.add_weighted_edges_from(((i, i + 1, value) for i, value in enumerate(values)), "w")
        calls[f"values {shown}"] = "weight", partial(graph_of, graph, weight="w")
        with contextlib.suppress(TypeError, networkx.NetworkXError):
            nodes = networkx.Graph((value, value) for value in values)
            calls[f"nodes {shown}"] = "nodes", partial(graph_of, nodes)
    defects = {shown: hostile.defect(call, word) for shown, (word, call) in calls.items()}
    defects = {shown: what for shown, what in defects.items() if what}
    assert not defects, report(defects)


def test_columns_of_polars():
    polars = pytest.importorskip("polars")
    columns = {
        "Object": polars.Series([object(), object()], dtype=polars.Object),
        "Decimal": polars.Series([1, 2], dtype=polars.Decimal(10, 2)),
        "List": polars.Series([[1], [2]]),
        "Array": polars.Series([[1], [2]], dtype=polars.Array(polars.Int64, 1)),
        "Struct": polars.Series([{"a": 1}, {"a": 2}]),
        "Null": polars.Series([None, None]),
        "Time": polars.Series([1, 2], dtype=polars.Time),
        "Int128": polars.Series([1, 2], dtype=polars.Int128),
        "Boolean": polars.Series([True, False]),
        "Categorical": polars.Series(["a", None], dtype=polars.Categorical),
    }
    defects = {}
    for shown, column in columns.items():
        frame = polars.DataFrame({"src": column, "dst": column, "vertex": [1, 2], "other": [3, 4]})
        labelled = frame.select("vertex", label="src", partition="src")
        ends = {"source": "vertex", "destination": "other"}
        for words, call in (
            (("source", "src"), partial(graph_of, frame)),
            (("source",), partial(graph_of, (column, column))),
            (("weight", "src"), partial(graph_of, frame, weight="src", **ends)),
            (("seeds",), partial(seeded_label_propagation, EDGES, labelled, device="cpu")),
            (("a",), partial(glp_rapids.nmi, labelled, labelled)),
        ):
            if what := hostile.defect(call, *words):
                defects[f"{shown} as {words[0]}"] = what
    assert not defects, report(defects)
