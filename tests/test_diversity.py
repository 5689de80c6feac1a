"""Structural diversity: the scores and contexts of the twin, however they are computed."""

import functools
import json

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import reference_diversity as reference
from graphs import GRAPHS, clique, edge_frames, edges, path, power_law_pairs, random_pairs
from hypothesis import given
from hypothesis import strategies as st
from pandas.testing import assert_frame_equal

from glp_rapids import as_graph, structural_diversity, top_structural_diversity

LEAST = {"component": 1, "core": 1, "truss": 2}
CASES = [(model, k) for model, least in LEAST.items() for k in range(least, 9)]
models = pytest.mark.parametrize("model", LEAST)

# two circles of one friend, beside a clump
EDGES = pd.DataFrame(
    [(0, i) for i in range(1, 8)] + clique([1, 2, 3]) + clique([4, 5, 6, 7]) + clique(range(8, 12)),
    columns=["src", "dst"],
)


def egos_of(graph):
    """The ego-network of every vertex, as the twin sees it."""
    graph = graph.to("cpu")
    neighbours = reference.neighbour_sets(graph.indptr, graph.indices)
    return [reference.ego_network(neighbours, v) for v in range(len(neighbours))]


def every_score(ego, model):
    """The scores for k = the least, and on while there is a context; [0] without any."""
    scores, k = [], LEAST[model]
    while contexts := reference.social_contexts(ego, k, model):
        scores.append(len(contexts))
        k += 1
    return scores or [0]


def scores_frame(graph, contexts):
    return graph.frame({"score": np.array([len(found) for found in contexts], dtype=np.int64)})


def every_score_frame(graph, every, model):
    rows = [
        (v, k, score)
        for v, scores in enumerate(every)
        for k, score in enumerate(scores, LEAST[model])
    ]
    vertex, k, score = np.array(rows, dtype=np.int64).reshape(-1, 3).T
    return graph.frame({"k": k, "score": score}, vertex)


def best_frames(graph, contexts, t):
    """The t best vertices, and the members of their contexts."""
    best = sorted(range(len(contexts)), key=lambda v: (-len(contexts[v]), v))[:t]
    rows = [(v, i, u) for v in best for i, found in enumerate(contexts[v]) for u in found]
    vertex, context, member = np.array(rows, dtype=np.int64).reshape(-1, 3).T
    return (
        graph.frame({"score": np.array([len(contexts[v]) for v in best])}, np.array(best)),
        graph.frame({"context": context, **graph.external_columns(member, "member")}, vertex),
    )


def assert_same(found, expected):
    for one, other in zip(found, expected, strict=True):
        assert_frame_equal(one, other, check_dtype=False)


def check(given, model, device, ks=range(1, 9)):
    """All that the two functions return, beside the twin."""
    graph = as_graph(**given, device=device)
    options = {**given, "model": model, "symmetrize": graph.directed, "device": device}
    egos = egos_of(graph)
    every = [every_score(ego, model) for ego in egos]
    found = structural_diversity(k=None, **options)
    assert_frame_equal(found, every_score_frame(graph, every, model), check_dtype=False)
    for k in range(max(ks[0], LEAST[model]), ks[-1] + 1):
        contexts = [reference.social_contexts(ego, k, model) for ego in egos]
        found = structural_diversity(k=k, **options)
        assert_frame_equal(found, scores_frame(graph, contexts), check_dtype=False)
        if egos:
            t = (1, max(len(egos) // 3, 1), len(egos))[k % 3]
            found = top_structural_diversity(t=t, k=k, **options)
            assert_same(found, best_frames(graph, contexts, t))


@models
@pytest.mark.parametrize("name", GRAPHS)
def test_scores_and_contexts_are_those_of_the_twin(name, model, device):
    check(GRAPHS[name](), model, device)


@models
@given(edge_frames() | edge_frames(8, 90), st.integers(1, 7))
def test_scores_and_contexts_are_those_of_the_twin_on_any_graph(device, model, given, k):
    check(given, model, device, [k, k + 1])


def test_a_friend_of_two_circles(device):
    for model, k, score in [
        ("component", 4, 1),
        ("component", 3, 2),
        ("core", 2, 2),
        ("core", 3, 1),
    ]:
        found = structural_diversity(EDGES, k, model, device=device)
        assert found["score"].tolist()[0] == score
    best, contexts = top_structural_diversity(EDGES, 2, 3, "truss", device=device)
    assert best.to_dict("list") == {"vertex": [0, 1], "score": [2, 1]}
    assert contexts["vertex"].tolist() == [0] * 7 + [1] * 3
    assert contexts["context"].tolist() == [0] * 3 + [1] * 4 + [0] * 3
    assert contexts["member"].tolist() == [1, 2, 3, 4, 5, 6, 7, 0, 2, 3]


# ---------------------------------------------------------------- computed in other ways


SHAPES = {
    "power law": edges(power_law_pairs(400, 2500, 2)),
    "random": edges(random_pairs(60, 400, 1)),
    "hub": edges([*[(0, i) for i in range(1, 700)], *path(300), *clique(range(400, 412))]),
    "clique": edges(clique(range(30))),
    "guests": edges(
        [*clique(range(60)), *((60 + i, member) for i in range(30) for member in (i % 15, 15 + i))]
    ),
    "none": edges([], vertices=range(9)),
}


@functools.cache
def contexts_of(shape, k, model):
    egos = egos_of(as_graph(**SHAPES[shape], device="cpu"))
    return [reference.social_contexts(ego, k, model) for ego in egos]


@pytest.mark.parametrize(("model", "k"), [case for case in CASES if case[1] < 6])
@pytest.mark.parametrize("shape", SHAPES)
def test_pruning_changes_nothing(shape, model, k, device):
    graph = as_graph(**SHAPES[shape], device=device)
    n = graph.number_of_vertices
    for t in ({1, 7, n}, {2, n // 2, n - 1})[k % 2]:
        expected = best_frames(graph, contexts_of(shape, k, model), t)
        for prune in (True, False):
            found = top_structural_diversity(graph, t, k, model, prune=prune, device=device)
            assert_same(found, expected)
            options = {"contexts": False, "prune": prune, "device": device}
            only = top_structural_diversity(graph, t, k, model, **options)
            assert_frame_equal(only, expected[0], check_dtype=False)
            for frame in (*found, only):
                facts = frame.attrs["glp"]
                assert facts["pruned"] + facts["evaluated"] == n
                assert facts["evaluated"] >= t
                assert prune or facts["pruned"] == 0


@models
def test_what_cannot_be_among_the_best_is_not_evaluated(model, device):
    graph = as_graph(**SHAPES["hub"], device=device)
    best, _ = top_structural_diversity(graph, 1, 3, model, device=device)
    assert best.attrs["glp"]["pruned"] > 300


def several(device):
    """Lists for devices=."""
    if device == "cpu":
        return [0], [0, 1], list("abc"), range(7)
    import cupy

    return [[0], [0, 1]][: cupy.cuda.runtime.getDeviceCount()]


@models
@pytest.mark.parametrize("shape", SHAPES)
def test_several_devices_are_as_one(shape, model, device):
    graph = as_graph(**SHAPES[shape], device=device)
    expected = (
        structural_diversity(graph, 3, model, device=device),
        structural_diversity(graph, None, model, device=device),
        *top_structural_diversity(graph, 9, 3, model, device=device),
    )
    for devices in several(device):
        options = {"devices": devices, "device": device}
        found = (
            structural_diversity(graph, 3, model, **options),
            structural_diversity(graph, None, model, **options),
            *top_structural_diversity(graph, 9, 3, model, **options),
        )
        assert_same(found, expected)
        for frame in found:
            facts = frame.attrs["glp"]
            assert len(facts["devices"]) == len(devices)
            assert facts["balance"] > 0.999
            for worker in facts["devices"]:
                assert {"name", "seconds", "units", "stolen"} <= set(worker)


def test_the_result_says_how_it_came(device):
    best, contexts = top_structural_diversity(EDGES, 1, 3, "core", device=device)
    every = structural_diversity(EDGES, None, "core", device=device)
    for frame in (structural_diversity(EDGES, 3, "core", device=device), best, contexts, every):
        facts = frame.attrs["glp"]
        assert json.loads(json.dumps(facts)) == facts
        assert facts["device"] == device
        assert facts["model"] == "core"
        assert facts["k"] == (None if frame is every else 3)
        assert facts["seconds"] >= 0
        assert facts["peak_memory"] > 0
        assert facts["evaluated"] + facts["pruned"] == 12


@models
def test_order_direction_loops_and_duplicates_of_rows_do_not_show(model, device):
    frame = SHAPES["power law"]["graph"]
    expected = top_structural_diversity(frame, 80, 3, model, device=device)
    for seed in range(3):
        rng = np.random.default_rng(seed)
        rows = pd.concat([frame, frame.sample(frac=0.5, random_state=seed)])
        loops = pd.DataFrame({"src": rng.integers(0, 200, 60)}).eval("dst = src")
        rows = pd.concat([rows, loops[loops["src"].isin(frame["src"])]])
        rows = rows.sample(frac=1, random_state=seed, ignore_index=True)
        turned = rng.random(len(rows)) < 0.5
        rows.loc[turned, ["src", "dst"]] = rows.loc[turned, ["dst", "src"]].to_numpy()
        before = rows.copy()
        assert_same(top_structural_diversity(rows, 80, 3, model, device=device), expected)
        assert_frame_equal(rows, before)


def test_graphs_of_others(device):
    graph = nx.from_pandas_edgelist(EDGES, "src", "dst")
    matrix = nx.to_scipy_sparse_array(graph, nodelist=range(12), format="csr")
    expected = structural_diversity(EDGES, 3, device=device)
    for form in (graph, matrix, as_graph(EDGES, device="cpu")):
        assert_same([structural_diversity(form, 3, device=device)], [expected])
    assert_same([structural_diversity(EDGES, np.int64(3), device=device)], [expected])


@models
def test_k_of_any_size(model, device):
    for k in (30, 31, 700, 2**16, 2**31 - 1, 2**31, 2**32 + 1, 2**63, 10**30):
        found = structural_diversity(**SHAPES["clique"], k=k, model=model, device=device)
        assert not found["score"].any()
        best, contexts = top_structural_diversity(
            **SHAPES["clique"], t=3, k=k, model=model, device=device
        )
        assert best["vertex"].tolist() == [0, 1, 2]
        assert not best["score"].any()
        assert contexts.columns.tolist() == ["vertex", "context", "member"]
        assert len(contexts) == 0


def test_progress_is_told(device, capsys):
    heard = []
    structural_diversity(**SHAPES["power law"], k=3, progress=heard.append, device=device)
    top_structural_diversity(**SHAPES["power law"], t=3, k=3, progress=heard.append, device=device)
    assert heard
    assert all(isinstance(fact, dict) for fact in heard)
    n = as_graph(**SHAPES["power law"], device="cpu").number_of_vertices
    assert {"evaluated": n, "vertices": n} in heard
    structural_diversity(**SHAPES["power law"], k=3, device=device)
    assert capsys.readouterr().err == ""
    structural_diversity(**SHAPES["power law"], k=3, progress=True, device=device)
    assert f"{n}/{n}" in capsys.readouterr().err


@pytest.mark.gpu
@models
def test_cudf_in_cudf_out(model):
    cudf = pytest.importorskip("cudf")
    for name in ("several columns", "strings", "beyond int32", "isolated"):
        given = GRAPHS[name]()
        expected = (
            structural_diversity(**given, k=3, model=model, device="cpu"),
            structural_diversity(**given, k=None, model=model, device="cpu"),
            *top_structural_diversity(**given, t=4, k=3, model=model, device="cpu"),
        )
        given["graph"] = cudf.from_pandas(given["graph"])
        found = (
            structural_diversity(**given, k=3, model=model),
            structural_diversity(**given, k=None, model=model),
            *top_structural_diversity(**given, t=4, k=3, model=model),
        )
        for frame in found:
            assert isinstance(frame, cudf.DataFrame)
        assert_same([frame.to_pandas() for frame in found], expected)


# ---------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("wrong", "error", "words"),
    [
        ({"k": 0}, ValueError, "k must.*1.*not 0"),
        ({"k": -3}, ValueError, "k must.*not -3"),
        ({"k": 0, "model": "core"}, ValueError, "k must.*1.*not 0"),
        ({"k": 1, "model": "truss"}, ValueError, "k must.*2.*not 1"),
        ({"k": 2.5}, (ValueError, TypeError), r"k must.*integer.*2\.5"),
        ({"k": 3.0}, (ValueError, TypeError), r"k must.*integer.*3\.0"),
        ({"k": "3"}, TypeError, "k must.*integer.*'3'"),
        ({"k": True}, (ValueError, TypeError), "k must.*integer.*True"),
        ({"model": "clique"}, ValueError, "model must.*component.*core.*truss.*'clique'"),
        ({"model": None}, (ValueError, TypeError), "model must.*None"),
        ({"model": ["core"]}, (ValueError, TypeError), "model must"),
        ({"memory_limit": 0}, ValueError, "memory_limit must.*not 0"),
        ({"memory_limit": -1}, ValueError, "memory_limit must.*-1"),
        ({"memory_limit": "1XB"}, ValueError, "memory_limit must.*'1XB'"),
        ({"devices": []}, ValueError, r"devices must.*\[\]"),
        ({"devices": 2}, TypeError, "devices must.*2"),
        ({"device": "tpu"}, ValueError, "device must.*'tpu'"),
        ({"progress": 3}, TypeError, "progress must.*3"),
        ({"graph": 5}, TypeError, "graph"),
        ({"directed": True}, ValueError, "directed.*symmetrize=True"),
    ],
    ids=str,
)
def test_bad_input_is_refused(wrong, error, words):
    good = {"graph": EDGES, "k": 3, "device": "cpu"}
    with pytest.raises(error, match=words):
        structural_diversity(**{**good, **wrong})
    with pytest.raises(error, match=words):
        top_structural_diversity(**{**good, "t": 2, **wrong})


@pytest.mark.parametrize(
    ("wrong", "error", "words"),
    [
        ({"t": 0}, ValueError, "t must.*1.*not 0"),
        ({"t": -2}, ValueError, "t must.*not -2"),
        ({"t": 1.5}, (ValueError, TypeError), r"t must.*integer.*1\.5"),
        ({"t": "2"}, TypeError, "t must.*integer.*'2'"),
        ({"t": None}, TypeError, "t must.*integer.*None"),
        ({"k": None}, (ValueError, TypeError), "k must.*integer.*None"),
    ],
    ids=str,
)
def test_a_wrong_t_is_refused(wrong, error, words):
    with pytest.raises(error, match=words):
        top_structural_diversity(**{"graph": EDGES, "t": 2, "k": 3, "device": "cpu", **wrong})


def test_no_vertices_have_no_best():
    with pytest.raises(ValueError, match="the graph has no vertices, of which some could"):
        top_structural_diversity(**GRAPHS["empty"](), t=1, k=1, device="cpu")


@pytest.mark.gpu
def test_gpus_that_are_not_there_are_refused():
    pytest.importorskip("cupy")
    for devices in ([99], [0, 99], [-1]):
        with pytest.raises(ValueError, match=r"devices.*(99|-1)"):
            structural_diversity(EDGES, 3, device="gpu", devices=devices)


@models
def test_directed_graphs_are_symmetrized_only_when_asked(model, device):
    frame = SHAPES["random"]["graph"]
    expected = top_structural_diversity(frame, 30, 3, model, device=device)
    options = {"directed": True, "device": device}
    found = top_structural_diversity(frame, 30, 3, model, symmetrize=True, **options)
    assert_same(found, expected)
    for form in (frame, nx.from_pandas_edgelist(frame, "src", "dst", create_using=nx.DiGraph)):
        with pytest.raises(ValueError, match="symmetrize=True"):
            top_structural_diversity(form, 30, 3, model, **options)


def test_the_best_are_some_of_those_that_there_are():
    everybody = top_structural_diversity(EDGES, 13, 2, device="cpu")
    assert len(everybody[0]) == 12
    assert_same(top_structural_diversity(EDGES, 12, 2, device="cpu"), everybody)
