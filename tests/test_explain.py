"""`explain` lists the paths that networkx's simple paths put first, by their products."""

import itertools

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from cases import exhaustive
from hypothesis import example, given, settings
from hypothesis import strategies as st

from glp_rapids.datasets import blacklist, transactions
from glp_rapids.fraud import SlidingWindow, account_scores, explain
from glp_rapids.ingest.read import as_graph

DAMPING = 0.85
weighted_pairs = st.lists(
    st.tuples(st.integers(0, 8), st.integers(0, 8), st.sampled_from([1, 1, 2, 7, 100])),
    min_size=1,
    max_size=24,
)


def by_networkx(graph, scores, start, k, least):
    """Products and paths by networkx's algorithm of Yen on -log of a step, seed after seed.

    The first k, and those that are as strong as the last of them: which of equals comes first is a
    matter of rounding.
    """
    total = graph.row_weights()
    known = nx.Graph()
    for u in range(graph.number_of_vertices):
        for p in range(graph.indptr[u], graph.indptr[u + 1]):
            v = int(graph.indices[p])
            if u < v and scores["score"][u] > 0 and scores["score"][v] > 0:
                step = DAMPING * float(graph.weights[p]) / np.sqrt(total[u]) / np.sqrt(total[v])
                known.add_edge(u, v, cost=-np.log(step))
    seeds = np.flatnonzero(scores["is_seed"]).tolist()
    known.add_node(start)
    found = []
    for seed in seeds:  # a path ends at the first seed
        inner = known.subgraph(set(known) - (set(seeds) - {seed}))
        if seed in inner and nx.has_path(inner, start, seed):
            paths = nx.shortest_simple_paths(inner, start, seed, weight="cost")
            last = np.inf
            for number, path in enumerate(paths):
                cost = sum(inner.edges[pair]["cost"] for pair in itertools.pairwise(path))
                if number >= k and cost > last + 1e-9:
                    break
                last = cost if number < k else last
                found.append((np.exp(-cost), tuple(path)))
    found.sort(key=lambda one: (-one[0], one[1]))
    return [one for one in found if one[0] >= least * scores["score"][start]]


@example(  # two equal paths, of which rounding lets networkx's sum put one behind the eleventh
    pairs=[(0, 1, 1), (0, 2, 1), (0, 3, 1), (0, 4, 1), (1, 2, 1), (1, 3, 100), (1, 4, 1),
           (2, 5, 1), (3, 5, 100), (4, 5, 1)],
    seeds={2}, start=0, k=11,
)  # fmt: skip
@settings(max_examples=150, deadline=None)
@given(
    pairs=weighted_pairs,
    seeds=st.sets(st.integers(0, 8), min_size=1, max_size=3),
    start=st.integers(0, 8),
    k=st.integers(1, 12),
)
def test_the_strongest_paths_are_those_of_networkx(pairs, seeds, start, k):
    graph = as_graph(tuple(np.array(pairs).T), vertices=range(9), device="cpu")
    scores = account_scores(graph, sorted(seeds), tol=1e-6)
    found = explain(graph, scores.sample(frac=1, random_state=k), start, k)
    expected = [] if start in seeds else by_networkx(graph, scores, start, k, 1e-6)
    products = found.groupby("path")["contribution"].first().tolist()
    assert products == pytest.approx([product for product, _ in expected[:k]])
    assert (np.diff(products) <= 0).all()
    total = graph.row_weights()
    for number, steps in found.groupby("path"):
        path = [*steps["source"], steps["destination"].iloc[-1]]
        assert steps["step"].tolist() == list(range(len(steps)))
        assert path[0] == start
        assert len(set(path)) == len(path)
        assert [vertex in seeds for vertex in path] == [False] * len(steps) + [True]
        shares = (
            DAMPING
            * steps["transfers"]
            / np.sqrt(total[steps["source"]] * total[steps["destination"]])
        )
        assert shares.prod() == pytest.approx(products[number])
        alike = [p for product, p in expected if product == pytest.approx(products[number])]
        assert tuple(path) in alike


def test_equal_paths_come_in_the_order_of_their_ids():
    diamonds = [("a", m) for m in "pqrs"] + [(m, "z") for m in "pqrs"]
    edges = pd.DataFrame(diamonds, columns=["src", "dst"])
    for rows in (edges, edges[::-1]):
        found = explain(rows, account_scores(rows, ["z"], device="cpu"), "a", 3, device="cpu")
        assert found["destination"].tolist() == ["p", "z", "q", "z", "r", "z"]
        told = found.attrs["glp"]
        assert (told["paths"], told["damping"]) == (3, 0.85)
        assert told["explained"] == pytest.approx(3 * 0.85**2 / 8)
        # besides the fourth there are walks that go back and forth
        assert told["explained"] * 4 / 3 < told["score"] < 1


def test_a_path_through_a_window_has_amounts_and_times(device):
    stamps = pd.to_datetime(["2026-01-01", "2026-01-03", "2026-01-02", "2026-01-04"])
    rows = pd.DataFrame({"source": ["a", "b", "b", "b"], "destination": ["b", "a", "c", "d"],
                         "amount": [1.0, 2.5, 4.0, 9.0], "time": stamps})  # fmt: skip
    window = SlidingWindow(10, device=device)
    window.append(rows)
    found = explain(window, account_scores(window, ["c"]), "a")
    assert list(found.columns) == ["path", "step", "source", "destination", "transfers", "amount",
                                   "contribution", "first", "last"]  # fmt: skip
    assert found["amount"].tolist() == [3.5, 4.0]
    assert found["transfers"].tolist() == [2, 1]
    assert found["first"].tolist() == [stamps[0], stamps[2]]
    assert found["last"].tolist() == [stamps[1], stamps[2]]
    numbered = SlidingWindow(10, device=device)
    numbered.append(rows.assign(time=[1.0, 3.0, 2.0, 4.0]))
    assert explain(numbered, account_scores(numbered, ["c"]), "a")["last"].tolist() == [3.0, 2.0]
    assert len(explain(window, account_scores(window, ["c"]), "c")) == 0
    nobody = explain(window, account_scores(window, ["c"]), "c")
    assert nobody["source"].dtype == found["source"].dtype


def test_ids_of_several_columns_and_a_search_among_thousands():
    frame, truth = transactions(20_000, accounts=2_000, merchants=200, rings=4, towns=10)
    seeds = blacklist(truth, 0.3)
    frame = frame.assign(bank="x")
    names = {"source": ["bank", "source"], "destination": ["bank", "destination"]}
    scores = account_scores(frame, [("x", seed) for seed in seeds], device="cpu", **names)
    account = truth["vertex"][~truth["vertex"].isin(seeds)].iloc[0]
    found = explain(frame, scores, ("x", account), k=10, device="cpu", **names)
    assert found["path"].nunique() == 10
    assert found["1_source"].iloc[0] == account
    score = scores.loc[scores["1_vertex"] == account, "score"].iloc[0]
    assert found.groupby("path")["contribution"].first().sum() <= score + 1e-4


EDGES = pd.DataFrame({"src": [1, 2], "dst": [2, 3]})


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"vertex": 9}, ValueError, "vertex holds 1 id"),
        ({"vertex": [1, 2]}, ValueError, "vertex must be one id, not 2"),
        ({"vertex": "1"}, TypeError, "vertex holds string"),
        ({"k": 0}, ValueError, "k must be"),
        *exhaustive(
            ({"least": 0}, ValueError, "least must be"),
            ({"damping": 2}, ValueError, "damping must be"),
            ({"scores": [1]}, TypeError, "scores must be a frame"),
            ({"scores": EDGES}, ValueError, "scores must have one column 'vertex'"),
            ({"directed": True}, ValueError, "directed"),
        ),
    ],
)
def test_bad_input_of_explain_is_refused(arguments, error, message):
    right = {"graph": EDGES, "scores": account_scores(EDGES, [1], device="cpu"), "vertex": 3}
    with pytest.raises(error, match=message):
        explain(**{"device": "cpu", **right, **arguments})


def test_scores_of_another_graph_are_refused():
    scores = account_scores(EDGES, [1], device="cpu")
    nulls = scores.assign(score=np.nan)
    for bad, message in ((scores[1:], "scores lack some"), (nulls, "scores hold some that are")):
        with pytest.raises(ValueError, match=message):
            explain(EDGES, bad, 3, device="cpu")


def test_scores_of_other_weights_are_refused():
    weighted = EDGES.assign(w=[3.0, *[1.0] * (len(EDGES) - 1)])
    scores = account_scores(weighted, [1], weight="w", device="cpu")
    assert len(explain(weighted, scores, 3, weight="w", device="cpu"))
    with pytest.raises(ValueError, match="scores are of another graph, or of other weights"):
        explain(weighted, scores, 3, device="cpu")
    # with good accounts it is not known what the others trade on average
    known = account_scores(weighted, [1], weight="w", good=[3], device="cpu")
    assert not len(explain(weighted, known, 3, device="cpu"))


def test_scores_without_their_damping_take_the_usual_one_with_a_warning():
    scores = account_scores(EDGES, [1], damping=0.8, device="cpu")
    bare = scores.copy()
    bare.attrs = {}
    with pytest.warns(UserWarning, match=r"0\.85 is taken.*pass damping="):
        usual = explain(EDGES, bare, 3, device="cpu")
    assert usual.attrs["glp"]["damping"] == 0.85
    given = explain(EDGES, bare, 3, damping=0.8, device="cpu")
    pd.testing.assert_frame_equal(given, explain(EDGES, scores, 3, device="cpu"))
