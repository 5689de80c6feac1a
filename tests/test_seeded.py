"""Labels that spread from seeds: hops, labels of every type, seeds of every form."""

import graphs
import networkx as nx
import numpy as np
import pandas as pd
import pytest

from glp_rapids import (
    seeded_label_propagation,
)


def distances(edges, seeds, directed, direction):
    """Hops from the nearest seed, by networkx."""
    graph = (nx.DiGraph if directed else nx.Graph)(list(edges))
    if directed and direction == "out":
        graph = graph.reverse()
    if direction == "both":
        graph = graph.to_undirected()
    lengths = [nx.single_source_shortest_path_length(graph, seed) for seed in seeds]
    return {v: min(found[v] for found in lengths if v in found) for v in set().union(*lengths)}


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("direction", ["in", "out", "both"])
def test_hops_are_distances_from_the_seeds(directed, direction, device):
    pairs = [(u, v) for u, v in graphs.random_pairs(150, 170, 8) if u != v]
    vertices = sorted({end for pair in pairs for end in pair})
    seeds = vertices[:3]
    expected = distances(pairs, seeds, directed, direction)
    result = seeded_label_propagation(
        **graphs.edges(pairs, directed=directed), seeds=seeds, direction=direction, max_iter=40,
        device=device,
    ).set_index("vertex")  # fmt: skip
    assert result["hop"].dropna().to_dict() == expected
    assert result["label"].isna().tolist() == result["hop"].isna().tolist()
    assert 0 < len(expected) < len(vertices)
    near = seeded_label_propagation(
        **graphs.edges(pairs, directed=directed), seeds=seeds, direction=direction, max_iter=40,
        max_hops=2, device=device,
    ).set_index("vertex")  # fmt: skip
    assert near["hop"].dropna().to_dict() == {v: hop for v, hop in expected.items() if hop <= 2}


def test_hops_beyond_the_sweeps_are_warned_of():
    path = ([*range(20)], [*range(1, 21)])
    with pytest.warns(UserWarning, match=r"max_hops=15 is more than max_iter=10, .*max_iter=15"):
        found = seeded_label_propagation(path, [0], max_hops=15, device="cpu")
    assert found["hop"].max() == 10
    found = seeded_label_propagation(path, [0], max_hops=15, max_iter=15, device="cpu")
    assert found["hop"].max() == 15
    assert seeded_label_propagation(path, [0], max_hops=99, device="cpu")["hop"].max() == 10


PATH = graphs.edges([("a", "b"), ("b", "c"), ("c", "d"), ("x", "y")], vertices=["lonely"])


def labels_of(result):
    return {
        vertex: label
        for vertex, label in zip(result["vertex"], result["label"], strict=True)
        if not pd.isna(label)
    }


@pytest.mark.parametrize(
    "seeds",
    [
        {"a": "red", "d": "blue"},
        pd.DataFrame({"vertex": ["d", "a"], "label": ["blue", "red"], "more": [1, 2]}),
        pd.DataFrame({"label": ["blue", "red"], "vertex": ["d", "a"]}, index=[7, 7]),
        pd.DataFrame({"vertex": ["d", "a", "d"], "label": ["blue", "red", "blue"]}),
    ],
)
def test_seeds_with_labels(seeds, device):
    result = seeded_label_propagation(**PATH, seeds=seeds, device=device)
    assert labels_of(result) == {"a": "red", "b": "red", "c": "blue", "d": "blue"}
    scores = dict(zip(result["vertex"], result["score"], strict=True))
    assert scores["a"] == scores["d"] == 1
    assert 0 < scores["b"] == scores["c"] < 1
    assert scores["x"] == scores["y"] == scores["lonely"] == 0


@pytest.mark.parametrize(
    "seeds",
    [
        ["a"],
        ("a",),
        np.array(["a"]),
        np.array(["a"], dtype=object),
        pd.Series(["a"]),
        pd.Series(["a"], dtype="string"),
        pd.Series(["a"], dtype="category"),
        pd.Index(["a"]),
        ["a", "a"],
    ],
)
def test_seeds_without_labels(seeds, device):
    result = seeded_label_propagation(**PATH, seeds=seeds, device=device)
    assert labels_of(result) == {"a": 1, "b": 1, "c": 1, "d": 1}
    assert [-1 if pd.isna(hop) else hop for hop in result["hop"]] == [0, 1, 2, 3, -1, -1, -1]


@pytest.mark.parametrize(
    ("labels", "dtype"),
    [
        (["red", "blue"], "str"),
        ([3, 10**12], "Int64"),
        ([-1, 0], "Int64"),
        (np.array([1, 2], np.uint8), "UInt8"),
        (pd.to_datetime(["2026-01-01", "2025-01-01"]), "datetime64"),
        ([0.5, 0.25], "Float64"),
        ([True, False], "boolean"),
    ],
)
def test_labels_keep_their_type(labels, dtype, device):
    seeds = pd.DataFrame({"vertex": ["a", "d"], "label": labels})
    result = seeded_label_propagation(**PATH, seeds=seeds, device=device)
    found = labels_of(result)
    assert [found["b"], found["c"]] == seeds["label"].tolist()
    assert str(result["label"].dtype).startswith(dtype)
    assert result["label"].isna().sum() == 3


def test_seeds_of_several_columns(device):
    edges = graphs.GRAPHS["several columns"]()
    seeds = pd.DataFrame({"0_vertex": [0, 1], "1_vertex": ["acc0", "acc7"], "label": ["x", "y"]})
    result = seeded_label_propagation(**edges, seeds=seeds, device=device)
    assert list(result.columns) == ["0_vertex", "1_vertex", "label", "score", "hop"]
    by_name = dict(zip(result["1_vertex"], result["label"], strict=True))
    assert [by_name[f"acc{i}"] for i in range(10)] == ["x"] * 5 + ["y"] * 5
    listed = seeded_label_propagation(**edges, seeds=[(0, "acc0")], device=device)
    assert listed["label"].tolist() == [1] * 10


def test_seeds_of_an_int64_graph_given_as_other_integers(device):
    edges = graphs.GRAPHS["two cliques"]()
    results = [
        seeded_label_propagation(**edges, seeds=seeds, device=device)
        for seeds in ([3], np.array([3], np.int32), np.array([3], np.uint64), {3: 1})
    ]
    for result in results[1:]:
        pd.testing.assert_frame_equal(results[0], result)


@pytest.mark.parametrize("weights", [(1e300, 1e-300), (1.7e308, 5e-324), (5e-324, 5e-324)])
def test_weights_as_far_apart_as_floats_are(weights, device):
    edges = pd.DataFrame({"src": [0, 0], "dst": [1, 2], "w": weights})
    for directed in (False, True):
        found = seeded_label_propagation(
            edges, {0: "a"}, weight="w", directed=directed, device=device
        )
        assert found["label"][1] == "a"
        assert found["score"][1] == pytest.approx(0.85 * (weights[0] / sum(weights)) ** 0.5)
        assert 0 <= found["score"][2] <= 0.85


def test_seeds_in_a_set_are_to_be_a_list(device):
    for seeds in ({0}, frozenset([0, 1]), {0: 1}.keys()):
        with pytest.raises(TypeError, match=r"seeds must be one column of values.*make a list of"):
            seeded_label_propagation(**PATH, seeds=seeds, device=device)


def test_no_seeds_reach_nobody(device):
    for seeds in ([], {}, pd.DataFrame({"vertex": [], "label": []})):
        result = seeded_label_propagation(**PATH, seeds=seeds, device=device)
        assert result["label"].isna().all()
        assert result["hop"].isna().all()
        assert (result["score"] == 0).all()


def test_a_series_of_labels_by_id_is_told_from_one_of_ids():
    edges = ([0, 1], [1, 2])
    with pytest.raises(TypeError, match=r"of labels by id, pass dict\(series\)$"):
        seeded_label_propagation(edges, pd.Series({0: "a", 2: "b"}), device="cpu")
    with pytest.raises(TypeError, match=r"make all of them strings, or all numbers$"):
        seeded_label_propagation(edges, {0: "a", 2: 1}, device="cpu")


FORMS = {
    "frame": lambda labels: pd.DataFrame({"vertex": list(labels), "label": list(labels.values())}),
    "dict": dict,
    "Series": lambda labels: pd.Series(list(labels)),
    "array": lambda labels: np.array(list(labels)),
}


@pytest.mark.parametrize("form", FORMS)
def test_seeds_that_are_no_vertex_are_refused_or_left_out(form, device):
    edges = pd.DataFrame({"src": [1, 2, 3, 4], "dst": [2, 3, 4, 5]})
    seeds = FORMS[form]({1: "a", 77: "b", 5: "c", -3: "a"})
    with pytest.raises(ValueError, match=r"2 .*77, -3.*; drop them, or pass absent='drop'"):
        seeded_label_propagation(edges, seeds, device=device)
    found = seeded_label_propagation(edges, seeds, absent="drop", device=device)
    expected = seeded_label_propagation(edges, FORMS[form]({1: "a", 5: "c"}), device=device)
    assert found.equals(expected)
    assert {name: found.attrs["glp"][name] for name in ("seeds", "absent")} == {
        "seeds": 2, "absent": 2
    }  # fmt: skip
    assert expected.attrs["glp"]["absent"] == 0
    none = seeded_label_propagation(edges, FORMS[form]({77: "b"}), absent="drop", device=device)
    assert none["label"].isna().all()
    assert none.attrs["glp"]["absent"] == 1


def test_what_becomes_of_absent_seeds_has_two_names():
    edges = pd.DataFrame({"src": [1], "dst": [2]})
    with pytest.raises(ValueError, match="absent must be 'raise' or 'drop', not 'skip'"):
        seeded_label_propagation(edges, [1], absent="skip")


def test_hops_are_no_limit_where_a_sweep_has_several():
    path = pd.DataFrame({"src": range(9), "dst": range(1, 10)})
    with pytest.raises(ValueError, match=r"max_hops=1 counts sweeps, .* update='semi'; leave one"):
        seeded_label_propagation(path, [6], max_hops=1, update="semi")
    near = seeded_label_propagation(path, [6], max_hops=1, update="sync", device="cpu")
    assert near.loc[near["label"].notna(), "vertex"].tolist() == [5, 6, 7]
