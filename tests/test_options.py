"""Every option of the variants, wrongly used; what an empty graph gives; who owns the data."""

import copy
import functools
import math
import operator
import re

import graphs
import numpy as np
import pandas as pd
import pytest

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

seeded = functools.partial(seeded_label_propagation, seeds=[0])
VARIANTS = {
    "classic": label_propagation,
    "program": functools.partial(propagate, program=Program()),
    "layered": layered_label_propagation,
    "listener": speaker_listener,
    "seeded": seeded,
}
EDGES = graphs.edges([(0, 1), (1, 2), (0, 2), (2, 3)])


def assert_refused(function, error, words, **options):
    with pytest.raises(error, match=re.escape(words)) as caught:
        function(**{**EDGES, "device": "cpu", **options})
    message = str(caught.value)
    assert "\n" not in message
    assert len(message) < 300
    return message


ANY = (None, "text", 1.5, [1], True)
LOOP = [
    ("update", "async", ValueError, "update must be one of 'semi', 'sync', not 'async'"),
    ("update", None, ValueError, "update must be one of"),
    ("update", ["semi"], ValueError, "update must be one of"),
    ("direction", "inwards", ValueError, "direction must be one of 'in', 'out', 'both'"),
    ("direction", 1, ValueError, "direction must be one of"),
    *(("classes", value, TypeError, "classes must be an integer") for value in ANY),
    *(("seed", value, TypeError, "seed must be an integer") for value in ANY),
    *(("max_iter", value, TypeError, "max_iter must be an integer") for value in ANY),
    ("classes", 0, ValueError, "classes must be in 1..65536, not 0"),
    ("classes", 65537, ValueError, "classes must be in 1..65536, not 65537"),
    ("seed", -1, ValueError, "seed must be in 0..4294967295, not -1"),
    ("seed", 2**32, ValueError, "seed must be in 0..4294967295, not 4294967296"),
    ("max_iter", -1, ValueError, "max_iter must be in 0..2147483647, not -1"),
    ("max_iter", 2**31, ValueError, "max_iter must be in 0..2147483647"),
    ("progress", "yes", TypeError, "progress must be a bool or a function, not 'yes'"),
    ("progress", None, TypeError, "progress must be a bool or a function"),
    ("device", "tpu", ValueError, "device must be 'cpu', 'gpu' or None, not 'tpu'"),
    ("directed", "yes", TypeError, "directed must be True or False"),
    ("multigraph", "sum", ValueError, "multigraph must be 'merge', 'keep' or 'min', not 'sum'"),
    ("weight", "amount", ValueError, "no column 'amount'"),
    ("source", "payer", ValueError, "no column 'payer'"),
]


@pytest.mark.parametrize(("option", "value", "error", "words"), LOOP)
@pytest.mark.parametrize("variant", VARIANTS)
def test_options_of_all_variants(variant, option, value, error, words):
    assert_refused(VARIANTS[variant], error, words, **{option: value})


SETTLING = [
    *(("explore", value, TypeError, "explore must be an integer") for value in ANY),
    ("explore", -1, ValueError, "explore must be at least 0, not -1"),
    ("tie_break", "random", ValueError, "tie_break must be one of 'min', 'max', 'hash'"),
    ("tie_break", 0, ValueError, "tie_break must be one of"),
    *(("retain", value, TypeError, "retain must be True or False") for value in (None, 1, "yes")),
    *(("skip_inactive", value, TypeError, "skip_inactive must be True or") for value in (None, 0)),
    *(("tol", value, ValueError, "tol must be a share") for value in (-0.1, 1.1, math.nan, 2)),
    *(("tol", value, TypeError, "tol must be a number") for value in ("small", [0], True)),
]


@pytest.mark.parametrize(("option", "value", "error", "words"), SETTLING)
@pytest.mark.parametrize("variant", ["classic", "program", "layered"])
def test_options_of_runs_that_settle(variant, option, value, error, words):
    assert_refused(VARIANTS[variant], error, words, **{option: value})


@pytest.mark.parametrize("variant", VARIANTS)
def test_unknown_options_are_named_with_what_there_is(variant):
    message = assert_refused(
        VARIANTS[variant], TypeError, "unknown option 'iterations'", iterations=3
    )
    assert "max_iter" in message
    assert_refused(VARIANTS[variant], TypeError, "unknown option 'stop_when", stop_when_settled=1)
    named = message.split("there are ")[1].split(", ")
    assert ("tol" in named) == (variant not in ("seeded", "listener"))


@pytest.mark.parametrize(
    ("function", "option", "words"),
    [
        ("fraud.find_clusters", "min_size", "did you mean minimum_size?"),
        ("label_propagation", "conected", "did you mean connected?"),
        ("label_propagation", "initail", "did you mean initial?"),
        ("structural_diversity", "modle", "did you mean model?"),
        ("multilevel_label_propagation", "gamma", "there are destination, device, .*resolution"),
        ("as_graph", "sources", "did you mean source?"),
        ("sssp", "depth_limit", "there are cutoff, destination"),
        ("ego_networks", "k", "there are arrays"),
        ("label_propagation", "resolution", "multilevel_label_propagation has it"),
        ("modularity", "res", "there are .*resolution"),
    ],
)
def test_misspelt_options_of_any_function_are_told_from_its_own(function, option, words):
    name = function.split(".")[-1]
    message = rf"unknown option '{option}' of {name}; {words.replace('?', '[?]')}"
    with pytest.raises(TypeError, match=message):
        operator.attrgetter(function)(glp_rapids)(**{option: 1})


def test_what_is_given_by_place_and_by_name_is_said_to_be():
    edges = pd.DataFrame({"caller": [1, 2], "callee": [2, 3]})
    with pytest.raises(TypeError, match=r"source of sssp is given twice, .* name a column"):
        glp_rapids.sssp(edges, 1, source="caller", destination="callee")
    with pytest.raises(TypeError, match=r"graph of core_number is given .* by name$"):
        glp_rapids.core_number(edges, graph=edges)


@pytest.mark.parametrize("option", ["explore", "tol", "skip_inactive"])
def test_options_without_a_meaning_are_refused(option):
    values = {"explore": 3, "tol": 0.1, "skip_inactive": True, "tie_break": "min", "retain": True}
    words = f"no option {option!r}: it makes max_iter sweeps"
    assert_refused(speaker_listener, TypeError, words, **{option: values[option]})
    assert_refused(seeded, TypeError, words, **{option: values[option]})


@pytest.mark.parametrize(("option", "value"), [("tie_break", "min"), ("retain", True)])
def test_a_listener_settles_no_ties(option, value):
    assert_refused(speaker_listener, TypeError, f"no option {option!r}", **{option: value})


@pytest.mark.parametrize(
    ("gammas", "error", "words"),
    [
        (1, TypeError, "gammas must be a sequence of numbers, not 1"),
        ("12", TypeError, "gammas must be a sequence of numbers, not '12'"),
        (None, TypeError, "gammas must be a sequence of numbers, not None"),
        (["1"], TypeError, "gammas must be numbers, not '1'"),
        ([True], TypeError, "gammas must be numbers, not True"),
        ([None], TypeError, "gammas must be numbers, not None"),
        ([1, -0.5], ValueError, "gammas must be finite and at least 0, not -0.5"),
        ([1, 2, 1.0], ValueError, "gammas holds 1.0 twice"),
        ([math.nan], ValueError, "gammas must be finite and at least 0, not nan"),
        ([math.inf], ValueError, "gammas must be finite and at least 0, not inf"),
    ],
)
def test_gammas(gammas, error, words):
    assert_refused(layered_label_propagation, error, words, gammas=gammas)


@pytest.mark.parametrize("gammas", [[2, 0.5], (2, 0.5), np.array([2, 0.5]), pd.Series([2, 0.5])])
def test_gammas_of_any_sequence(gammas):
    result = layered_label_propagation(**EDGES, gammas=gammas, device="cpu")
    assert result["gamma"].unique().tolist() == [2, 0.5]


@pytest.mark.parametrize(
    ("option", "value", "error", "words"),
    [
        ("max_labels", 0, ValueError, "max_labels must be at least 1, not 0"),
        ("max_labels", 2.0, TypeError, "max_labels must be an integer, not 2.0"),
        ("max_labels", True, TypeError, "max_labels must be an integer"),
        ("max_labels", None, TypeError, "max_labels must be an integer"),
        ("threshold", -0.1, ValueError, "threshold must be a share in [0, 1], not -0.1"),
        ("threshold", 1.5, ValueError, "threshold must be a share in [0, 1], not 1.5"),
        ("threshold", math.nan, ValueError, "threshold must be a share in [0, 1], not nan"),
        ("threshold", "low", ValueError, "threshold must be a share in [0, 1], not 'low'"),
        ("threshold", None, ValueError, "threshold must be a share in [0, 1], not None"),
    ],
)
def test_options_of_the_listener(option, value, error, words):
    assert_refused(speaker_listener, error, words, **{option: value})


def frame_of(vertices, labels):
    return pd.DataFrame({"vertex": vertices, "label": labels})


@pytest.mark.parametrize(
    ("option", "value", "error", "words"),
    [
        ("max_hops", -1, ValueError, "max_hops must be at least 0, not -1"),
        ("max_hops", 1.5, TypeError, "max_hops must be an integer or None, not 1.5"),
        ("max_hops", True, TypeError, "max_hops must be an integer or None"),
        ("damping", 0, ValueError, "damping must be above 0 and at most 1, not 0"),
        ("damping", 1.1, ValueError, "damping must be above 0 and at most 1, not 1.1"),
        ("damping", math.nan, ValueError, "damping must be above 0 and at most 1, not nan"),
        ("damping", "half", ValueError, "damping must be above 0 and at most 1, not 'half'"),
        ("seeds", [7], ValueError, "seeds holds 1 id(s) that are no vertex of the graph: 7"),
        ("seeds", {0: "a", 9: "b", 8: "a"}, ValueError, "no vertex of the graph: 9, 8"),
        ("seeds", frame_of([0, 5], ["a", "b"]), ValueError, "no vertex of the graph: 5"),
        ("seeds", ["0"], TypeError, "seeds holds string ids but the vertices are int64"),
        ("seeds", [0.0], TypeError, "seeds holds float64 ids"),
        ("seeds", [True], TypeError, "seeds holds booleans"),
        ("seeds", [0, None], ValueError, "null"),
        ("seeds", [0, "a"], TypeError, "seeds mixes types"),
        ("seeds", None, TypeError, "seeds must be"),
        ("seeds", 3, TypeError, "seeds must be"),
        ("seeds", "all", TypeError, "seeds must be"),
        ("seeds", frame_of([0, 1], ["a", None]), ValueError, "seeds hold 1 null label(s)"),
        ("seeds", frame_of([0, 1], [1.0, math.nan]), ValueError, "seeds hold 1 null label(s)"),
        ("seeds", {0: None}, ValueError, "seeds hold 1 null label(s)"),
        ("seeds", frame_of([0, 1, 0], ["a", "a", "b"]), ValueError, "seeds give two labels to 0"),
        ("seeds", {0: "a", 1: 2}, TypeError, "labels of seeds must be of one type"),
        ("seeds", pd.DataFrame({"vertex": [0]}), ValueError, "seeds have no column 'label'"),
        ("seeds", pd.DataFrame({"id": [0], "label": 1}), ValueError, "have no column 'vertex'"),
        ("seeds", frame_of([None, 1], ["a", "b"]), ValueError, "null"),
    ],
)  # fmt: skip
def test_options_of_the_seeded(option, value, error, words):
    assert_refused(seeded_label_propagation, error, words, **{"seeds": [0], option: value})


@pytest.mark.parametrize("variant", VARIANTS)
def test_options_are_checked_before_the_graph_is_looked_at(variant):
    with pytest.raises(ValueError, match="classes must be in"):
        VARIANTS[variant](object(), classes=0)
    with pytest.raises(TypeError, match="graph must be a pandas"):
        VARIANTS[variant](object())


def test_numbers_of_numpy_are_numbers():
    options = dict(
        max_iter=np.int64(9), classes=np.int32(4), explore=np.uint8(2), seed=np.int64(3),
        tol=np.float32(0.25), retain=np.bool_(True),
    )  # fmt: skip
    plain = {name: value.item() for name, value in options.items()}
    pd.testing.assert_frame_equal(
        label_propagation(**EDGES, **options), label_propagation(**EDGES, **plain)
    )


# ---------------------------------------------------------------- empty graphs


def dtypes(frame):
    return {name: str(dtype) for name, dtype in frame.dtypes.items()}


COLUMNS = {
    "classic": {"vertex": "int64", "partition": "int32"},
    "program": {"vertex": "int64", "partition": "int32"},
    "layered": {"vertex": "int64", "gamma": "int64", "partition": "int32"},
    "listener": {"vertex": "int64", "partition": "int32", "frequency": "float64"},
    "seeded": {"vertex": "int64", "label": "Int64", "score": "float64", "hop": "Int32"},
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_columns_and_dtypes_do_not_depend_on_the_content(variant, device):
    function = VARIANTS[variant]
    full = function(**EDGES, device=device)
    assert dtypes(full) == COLUMNS[variant]
    none = {"seeds": []} if variant == "seeded" else {}
    empty = function(**graphs.GRAPHS["empty"](), device=device, **none)
    assert len(empty) == 0
    assert dtypes(empty) == COLUMNS[variant]
    assert "glp" in empty.attrs
    lonely = function(**graphs.GRAPHS["only isolated"](), device=device, **none)
    assert dtypes(lonely) == COLUMNS[variant]
    unmoved = function(**EDGES, device=device, max_iter=0)
    assert dtypes(unmoved) == COLUMNS[variant]


@pytest.mark.parametrize("variant", ["classic", "layered"])
def test_origins_of_labels_have_the_type_of_the_ids(variant, device):
    ids = pd.Series(["a", "b", "c"])
    edges = {"graph": pd.DataFrame({"src": ids[:2], "dst": ids[1:].to_list()})}
    result = VARIANTS[variant](**edges, renumber=False, device=device)
    assert result["partition"].dtype == result["vertex"].dtype == ids.dtype
    empty = VARIANTS[variant]({"graph": edges["graph"].head(0)}["graph"], renumber=False)
    assert len(empty) == 0
    assert empty["partition"].dtype == empty["vertex"].dtype


def test_no_gammas_no_rows(device):
    result = layered_label_propagation(**EDGES, gammas=[], device=device)
    assert len(result) == 0
    assert dtypes(result) == COLUMNS["layered"]


def test_a_run_of_an_empty_graph_has_converged(device):
    report = label_propagation(**graphs.GRAPHS["empty"](), device=device).attrs["glp"]
    assert report["sweeps"] == 0
    assert report["changed"] == []
    assert report["converged"] is True


# ---------------------------------------------------------------- the caller's data


@pytest.mark.parametrize("variant", VARIANTS)
def test_nothing_of_the_callers_is_modified(variant):
    frame = pd.DataFrame(
        {"src": [2, 0, 1, 2], "dst": [0, 1, 2, 3], "weight": [1.0, 2.0, 0.5, 4.0]},
        index=[3, 1, 1, 0],
    )
    frame.attrs["mine"] = {"x": 1}
    arrays = tuple(frame[name].to_numpy().copy() for name in frame)
    for array in arrays:
        array.flags.writeable = False
    graph = as_graph(frame, weight="weight", device="cpu")
    buffers = [np.copy(array) for array in (graph.indptr, graph.indices, graph.weights)]
    kept = frame.copy(deep=True)
    vertices = [9, 8]
    extra = {}
    if variant == "seeded":
        extra["seeds"] = frame_of([3, 0], ["b", "a"])
    extra_kept = copy.deepcopy(extra)
    results = [
        VARIANTS[variant](frame, weight="weight", vertices=vertices, device="cpu", **extra),
        VARIANTS[variant](arrays, device="cpu", **extra),
        VARIANTS[variant](graph, device="cpu", **extra),
    ]
    for result in results:
        for name in result:
            if pd.api.types.is_numeric_dtype(result[name].dtype):
                result[name] += 1
                result.loc[:, name] = 0
    pd.testing.assert_frame_equal(frame, kept)
    assert frame.attrs == {"mine": {"x": 1}}
    assert vertices == [9, 8]
    for name, value in extra.items():
        pd.testing.assert_frame_equal(value, extra_kept[name])
    now = (graph.indptr, graph.indices, graph.weights)
    assert all(np.array_equal(one, other) for one, other in zip(now, buffers, strict=True))
    again = VARIANTS[variant](graph, device="cpu", **extra)
    pd.testing.assert_frame_equal(again, VARIANTS[variant](graph, device="cpu", **extra))
    assert sorted(again["vertex"].unique()) == [0, 1, 2, 3]


def test_seeds_of_plain_python_are_left_alone():
    for seeds in ([0, 1], {0: "a", 3: "b"}, (1,)):
        kept = copy.deepcopy(seeds)
        seeded_label_propagation(**EDGES, seeds=seeds, device="cpu")
        assert seeds == kept


def test_options_given_as_a_dict_are_left_alone():
    options = {"max_iter": 3, "device": "cpu"}
    speaker_listener(**EDGES, **options)
    assert options == {"max_iter": 3, "device": "cpu"}
