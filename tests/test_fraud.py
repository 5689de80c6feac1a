"""Clusters and scores of accounts: cores, planted rings, blacklists, AMLSim."""

import tracemalloc

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from transfers import table

from glp_rapids.datasets import blacklist, data_folder, ground_truth, load, transactions
from glp_rapids.fraud import (
    SlidingWindow,
    account_scores,
    cluster_members,
    evaluate,
    find_clusters,
    suspicious_clusters,
)
from glp_rapids.fraud.ids import joined, places_in
from glp_rapids.fraud.totals import traded_inside
from glp_rapids.graph.subgraph import components, copies, core, largest_core
from glp_rapids.graph.vertex_ids import IdColumn, VertexIds
from glp_rapids.ingest.rank import rank_ids
from glp_rapids.ingest.read import as_graph

COLUMNS = {"source": "source", "destination": "destination"}



@pytest.mark.gpu
def test_clusters_are_the_same_on_a_gpu():
    sizes = {"accounts": 10_000, "merchants": 1_000, "rings": 12, "towns": 20}
    frame, truth = transactions(100_000, **sizes, seed=2)
    seeds = blacklist(truth, 0.3, seed=2)
    expected = find_clusters(frame, seeds, device="cpu", **COLUMNS)
    found = find_clusters(frame, seeds, device="gpu", **COLUMNS)
    assert len(expected.clusters) == 12
    for one, other in zip(found[:2], expected[:2], strict=True):
        pd.testing.assert_frame_equal(one, other)


def obvious_core(edges, community, share, partners):
    community = list(community)
    while True:
        weak = []
        for v, mine in enumerate(community):
            around = {u: w for a, b, w in edges for u, x in ((b, a), (a, b)) if x == v and a != b}
            near = {u: w for u, w in around.items() if community[u] == mine}
            if mine >= 0 and (
                len(near) < partners or sum(near.values()) < share * sum(around.values())
            ):
                weak.append(v)
        if not weak:
            return community
        for v in weak:
            community[v] = -1


@given(
    pairs=st.dictionaries(
        st.tuples(st.integers(0, 7), st.integers(0, 7)).map(lambda pair: tuple(sorted(pair))),
        st.integers(1, 5),
        min_size=1,
    ),
    community=st.lists(st.integers(-1, 2), min_size=8, max_size=8),
    share=st.sampled_from([0.0, 0.25, 0.5]),
    partners=st.integers(1, 3),
)
def test_the_core_is_what_peeling_by_hand_leaves(pairs, community, share, partners):
    edges = [(a, b, w) for (a, b), w in pairs.items()]
    graph = as_graph(tuple(np.array(edges).T), vertices=range(8), device="cpu")
    total = np.zeros(8)
    for a, b, w in edges:
        if a != b:
            total[[a, b]] += w
    found = core(graph, np.array(community), total, share, partners)
    assert found.tolist() == obvious_core(edges, community, share, partners)
    cut, left = largest_core(graph, total, share, partners)
    expected = np.flatnonzero(np.array(obvious_core(edges, [0] * 8, share, partners)) >= 0)
    assert left.tolist() == expected.tolist()
    assert set(np.flatnonzero(found >= 0)) <= set(left)
    inner = matrix_of(graph)[left][:, left]
    assert (matrix_of(cut) != inner).nnz == 0
    three = sparse.block_diag([inner] * 3, format="csr") if left.size else inner
    assert (matrix_of(copies(cut, 3)) != three).nnz == 0


@given(
    numbers=st.tuples(*[st.sets(st.integers(0, 30), min_size=1)] * 2),
    dtype=st.sampled_from([np.int32, np.int64, np.uint64]),
)
def test_ids_that_are_merged_are_those_that_are_ranked(numbers, dtype):
    one, other = (np.array(sorted(some), dtype) for some in numbers)
    old, new = (VertexIds((IdColumn(ids, "integer", None),), "pandas") for ids in (one, other))
    codes, ranked = rank_ids([[one], [other]], [["ids"]] * 2, "pandas", "cpu")
    together, of_old, of_new = joined(old, new, "cpu")
    assert together.columns[0].values.dtype == dtype
    assert np.array_equal(together.columns[0].values, ranked.columns[0].values)
    assert (of_old is None) == (len(together) == len(old))
    for found, expected in zip((of_old, of_new), codes, strict=True):
        if found is not None:
            assert found.dtype == expected.dtype
            assert np.array_equal(found, expected)
    there = np.isin(other, one)
    place = places_in(old, new, "cpu")
    assert np.array_equal(place >= 0, there)
    assert np.array_equal(one[place[there]], other[there])


def matrix_of(graph):
    size = graph.number_of_vertices
    return sparse.csr_matrix((graph.weights, graph.indices, graph.indptr), (size, size))


@given(pairs=st.sets(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1))
def test_components_are_those_of_networkx(pairs):
    graph = as_graph(tuple(np.array(sorted(pairs)).T), vertices=range(10), device="cpu")
    found = components(graph, np.ones(graph.number_of_edges, dtype=bool))
    known = nx.Graph(pairs)
    known.add_nodes_from(range(10))
    assert found.tolist() == [min(nx.node_connected_component(known, v)) for v in range(10)]


@pytest.fixture(scope="module")
def world():
    frame, truth = transactions(
        200_000, accounts=20_000, merchants=2_000, rings=15, towns=60, seed=1
    )
    return frame, truth, blacklist(truth, 0.2, seed=1)


@pytest.fixture(scope="module")
def found(world):
    frame, _, seeds = world
    window = SlidingWindow(31, device="cpu")
    window.append(frame)
    return find_clusters(window, seeds)


def test_planted_rings_are_found(world, found):
    _, truth, seeds = world
    new = found.members[~found.members["is_seed"]]["vertex"]
    unknown = truth["vertex"][~truth["vertex"].isin(seeds)]
    assert new.isin(unknown).mean() > 0.9
    assert unknown.isin(new).mean() > 0.9
    rings = found.members.merge(truth, on="vertex").groupby("cluster")["ring"].nunique()
    assert (rings == 1).all()


def test_clusters_add_up_from_their_members(world, found):
    frame, _, seeds = world
    clusters, members = found.clusters, found.members
    assert clusters["cluster"].tolist() == list(range(len(clusters)))
    assert clusters["score"].is_monotonic_decreasing
    assert members["vertex"].is_unique
    assert members["is_seed"].equals(members["vertex"].isin(seeds))
    grouped = members.groupby("cluster")
    assert grouped.size().tolist() == clusters["size"].tolist()
    assert grouped["is_seed"].sum().tolist() == clusters["seeds"].tolist()
    assert np.allclose(grouped["score"].mean(), clusters["score"])
    assert (clusters["seeds"] >= 1).all()
    assert (clusters["size"] >= 6).all()
    cluster = members.set_index("vertex")["cluster"]
    ends = [cluster.reindex(frame[name]).to_numpy() for name in ("source", "destination")]
    inside = frame[ends[0] == ends[1]].assign(cluster=ends[0][ends[0] == ends[1]])
    assert np.allclose(inside.groupby("cluster")["amount"].sum(), clusters["value"])
    low = inside[["source", "destination"]].min(axis=1)
    high = inside[["source", "destination"]].max(axis=1)
    pairs = inside.assign(low=low, high=high).drop_duplicates(["low", "high"])
    possible = clusters["size"] * (clusters["size"] - 1) / 2
    assert np.allclose(pairs.groupby("cluster").size() / possible, clusters["density"])
    trades = sum(
        pd.Series(end[~np.isnan(end)]).value_counts().sort_index().to_numpy() for end in ends
    )
    both = inside.groupby("cluster").size().to_numpy() * 2
    assert np.allclose(both / trades, clusters["share"])


def test_every_member_satisfies_what_was_asked(world):
    frame, _, seeds = world
    members = cluster_members(frame, seeds, minimum_partners=6, minimum_size=8, **COLUMNS)
    cluster = members.set_index("vertex")["cluster"]
    both = pd.concat([frame[["source", "destination"]].set_axis(["a", "b"], axis=1),
                      frame[["destination", "source"]].set_axis(["a", "b"], axis=1)])  # fmt: skip
    both = both[both["a"].isin(cluster.index)]
    inside = cluster.reindex(both["a"]).to_numpy() == cluster.reindex(both["b"]).to_numpy()
    assert (both[inside].groupby("a")["b"].nunique().reindex(cluster.index) >= 6).all()
    share = both[inside].groupby("a").size() / both.groupby("a").size()
    assert (share.reindex(cluster.index) >= 0.2).all()
    assert (members.groupby("cluster").size() >= 8).all()


def test_a_window_and_its_rows_give_the_same_members(world, found, device):
    frame, _, seeds = world
    members = cluster_members(frame.sample(frac=1, random_state=0), list(seeds), device=device,
                              **COLUMNS)  # fmt: skip
    pd.testing.assert_frame_equal(members, found.members)


def test_string_ids_come_back_as_they_went_in(device):
    friends = [(f"p{i}", f"p{j}", 10, 0) for i in range(6) for j in range(i)]
    rest = [(f"p{i}", "shop", 1, 0) for i in range(6)]
    rest += [("shop", f"q{i}", 1, 0) for i in range(40)]
    window = SlidingWindow(1, device=device)
    window.append(table(friends + rest))
    members = cluster_members(window, ["p0"])
    assert set(members["vertex"]) == {f"p{i}" for i in range(6)}
    assert members["vertex"].iloc[0] == "p0"
    assert suspicious_clusters(window, {"p0"})["value"].tolist() == [150.0]


def test_scores_are_one_for_seeds_zero_out_of_reach_and_cover_everyone(device):
    frame = table([(1, 2, 1, 0), (2, 3, 1, 0), (7, 8, 1, 0)])
    scores = account_scores(frame, [1], device=device, **COLUMNS)
    assert list(scores.columns) == ["vertex", "score", "is_seed"]
    assert scores["vertex"].tolist() == [1, 2, 3, 7, 8]
    assert scores["score"].iloc[0] == 1.0
    assert scores["score"].tolist()[3:] == [0.0, 0.0]
    assert scores["is_seed"].tolist() == [True, False, False, False, False]


def test_absent_seeds_are_an_error_unless_dropped(device):
    frame = table([(1, 2, 1, 0), (2, 3, 1, 0)])
    with pytest.raises(ValueError, match=r"seeds.*no vertex.*9"):
        account_scores(frame, [1, 9], device=device, **COLUMNS)
    scores = account_scores(frame, [1, 9, 1], absent="drop", device=device, **COLUMNS)
    assert scores["is_seed"].sum() == 1
    report = scores.attrs["glp"]
    assert (report["seeds"], report["absent"], report["converged"]) == (1, 1, True)
    with pytest.warns(UserWarning, match="none of the 1 seeds is a vertex: every score is 0"):
        found = find_clusters(frame, [9], absent="drop", device=device, **COLUMNS)
    assert len(found.clusters) == len(found.members) == 0
    assert found.scores["score"].tolist() == [0.0, 0.0, 0.0]
    assert found.clusters["cluster"].dtype == np.int64
    assert [part.attrs["glp"]["seeds"] for part in found] == [0, 0, 0]


@pytest.mark.parametrize("absent", ["raise", "drop"])
@pytest.mark.parametrize(
    ("ids", "seeds"),
    [
        ([1, 2, 3], ["1", "2"]),
        (["1", "2", "3"], [1, 2]),
        ([1, 2, 3], [1.0, 2.0]),
        (["a", "b", "c"], pd.Series(pd.to_datetime(["2026-01-01"]))),
        (pd.to_datetime(["2026-01-01", "2026-01-02", "2026-01-03"]), ["2026-01-01"]),
        ([1, 2, 3], pd.Series(["1"], dtype="category")),
        ([1, 2, 3], [True]),
    ],
)
def test_seeds_of_another_type_are_an_error_whatever_becomes_of_absent_ones(ids, seeds, absent):
    ids = pd.Series(ids)
    frame = pd.DataFrame({"source": ids[:2], "destination": ids[1:].reset_index(drop=True)})
    for function in (account_scores, find_clusters):
        with pytest.raises(TypeError, match=r"seeds holds"):
            function(frame, seeds, absent=absent, device="cpu", **COLUMNS)


def test_nulls_on_a_blacklist_are_an_error_whatever_becomes_of_absent_ones():
    with pytest.raises(ValueError, match=r"seeds holds 1 null"):
        account_scores(table([(1, 2, 1, 0)]), [1, None], absent="drop", device="cpu", **COLUMNS)


def test_an_empty_blacklist_warns_where_it_is_no_error(device):
    frame = table([(1, 2, 1, 0), (2, 3, 1, 0)])
    for empty in ([], set(), pd.Series([], dtype="int64"), pd.Series([], dtype="str")):
        with pytest.warns(UserWarning, match="seeds are empty: every score is 0"):
            scores = account_scores(frame, empty, absent="drop", device=device, **COLUMNS)
        assert (scores["score"] == 0).all()
        assert scores.attrs["glp"]["seeds"] == 0


def test_seeds_of_several_columns_may_be_absent_too(device):
    frame = table([(0, 1, 1, 0), (1, 2, 1, 0)]).assign(bank="x")
    names = {"source": ["bank", "source"], "destination": ["bank", "destination"]}
    scores = account_scores(frame, [("x", 0), ("y", 0)], absent="drop", device=device, **names)
    assert scores["is_seed"].tolist() == [True, False, False]
    assert scores.attrs["glp"]["absent"] == 1


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"seeds": []}, ValueError, "seeds are empty"),
        ({"seeds": "abc"}, TypeError, "seeds must be a list"),
        ({"seeds": 1}, TypeError, "seeds must be a list"),
        ({"seeds": ["a"]}, TypeError, "seeds holds string ids"),
        ({"seeds": [1], "absent": "ignore"}, ValueError, "absent must be"),
        ({"seeds": [1], "minimum_size": 0}, ValueError, "minimum_size"),
        ({"seeds": [1], "minimum_partners": 1.5}, ValueError, "minimum_partners"),
        ({"seeds": [1], "minimum_share": 2}, ValueError, "minimum_share"),
        ({"seeds": [1], "minimum_score": "0"}, ValueError, "minimum_score"),
        ({"seeds": [1], "damping": 0}, ValueError, "damping"),
        ({"seeds": [1], "directed": True}, ValueError, "directed"),
    ],
)
def test_bad_input_of_clusters_is_refused(options, error, message):
    with pytest.raises(error, match=message):
        suspicious_clusters(table([(1, 2, 1, 0)]), **{"device": "cpu", **COLUMNS, **options})


def test_a_window_refuses_edge_options():
    window = SlidingWindow(1, device="cpu")
    window.append(table([(1, 2, 1, 0)]))
    with pytest.raises(TypeError, match="weight"):
        suspicious_clusters(window, [1], weight="amount")


@pytest.mark.skipif(not data_folder().is_dir(), reason="the data folder is not there")
@pytest.mark.parametrize(
    ("name", "least"), [("amlsim-20K_cycle200", 0.75), ("amlsim-20K_fanin200cycle200", 0.9)]
)
def test_launderers_rank_above_what_pagerank_reaches(name, least):
    """By precision, average precision and AUC, as `account_scores` says; the default by two."""
    fraud = ground_truth(name).set_index("vertex")["fraud"]
    known = fraud.index[fraud].to_numpy()
    graph = as_graph(load(name), multigraph="keep", device="cpu", **COLUMNS)
    size = graph.number_of_vertices
    steps = sparse.csr_matrix((graph.weights, graph.indices, graph.indptr), (size, size))
    steps = steps.multiply(1 / np.maximum(steps.sum(axis=0), 1)).tocsr()
    found = []
    for draw in range(5):
        seeds = np.random.default_rng(draw).choice(known, round(0.2 * len(known)), replace=False)
        near, far = (account_scores(graph, seeds, damping=damping) for damping in (0.85, 0.94))
        order = near["score"].mask(near["is_seed"]).rank(ascending=False)
        both = np.where(order <= 600, 1 + near["score"], far["score"])
        page_rank = restart = near["is_seed"] / len(seeds)
        for _ in range(60):
            page_rank = 0.85 * (steps @ page_rank) + 0.15 * restart
        rankings = (near["score"], both, far["score"], page_rank)
        reached = [evaluate(near.assign(score=one), known, k=200) for one in rankings]
        found.append([
            (one.at["precision"].iloc[0], one.average_precision, one.auc) for one in reached
        ])  # fmt: skip
    of_near, of_both, of_far, of_page_rank = np.mean(found, axis=0)
    assert of_near[0] == of_both[0] > least
    assert (of_near[:2] > of_page_rank[:2]).all()
    assert (of_both > of_page_rank).all()
    assert (of_far > of_page_rank).all()


def test_who_has_the_least_share_is_in():
    """55 of 100 are .55, though the product of the two as floats is above 55."""
    ring = np.array([(i, j, 11) for i in range(6) for j in range(i)])
    outside = np.array([(i, i + 6, 45) for i in range(6)])
    for weights in (np.int64, np.float64):
        source, destination, weight = np.concatenate([ring, outside]).T
        edges = source, destination, weight.astype(weights)
        found = find_clusters(edges, [0], minimum_share=0.55, device="cpu").clusters
        assert found[["size", "value", "share"]].to_numpy().tolist() == [[6, 165, 0.55]]
        assert not len(find_clusters(edges, [0], minimum_share=0.56, device="cpu").clusters)


def test_what_a_cluster_is_worth_is_not_rounded(device):
    pairs = [(i, j, 3e-9, 0.01 * i) for i in range(6) for j in range(i)]
    window = SlidingWindow(1, decimals=9, device=device)
    window.append(table(pairs))
    assert find_clusters(window, [0]).clusters["value"].tolist() == [4.5e-08]
    whole = [(i, j, 10**14 + 1) for i in range(6) for j in range(i)]
    edges = tuple(np.array(column) for column in zip(*whole, strict=True))
    assert find_clusters(edges, [0], device=device).clusters["value"].tolist() == [15 * 10**14 + 15]


def test_what_members_trade_with_others_takes_no_memory():
    ring = np.array([(i, j) for i in range(30) for j in range(i)])
    outside = np.stack([np.repeat(np.arange(30), 10_000), np.tile(np.arange(10_000), 30) + 30])
    source, destination = np.concatenate([np.repeat(ring, 500, axis=0).T, outside], axis=1)
    rows = {"source": source, "destination": destination, "amount": 1.0}
    window = SlidingWindow(2, device="cpu")
    window.append(pd.DataFrame({**rows, "time": np.linspace(0, 1, source.size)}))
    units, transfers = window._graph("units"), window.graph()
    rows, group = np.arange(30), np.zeros(30, np.int64)
    traded_inside(units, rows, group)  # compiled
    tracemalloc.start()
    assert (traded_inside(units, rows, group) == 29 * 500 * window._scale).all()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * transfers.number_of_edges / 2


def test_clusters_with_more_trade_than_floats_hold_are_refused():
    edges = ([1, 2, 3], [2, 3, 1], [1e308, 5e-324, 1.0])
    with pytest.raises(ValueError, match=r"weight: .* more than float64 can hold; divide them"):
        find_clusters(edges, [1], minimum_size=1, minimum_partners=1)


def test_a_window_is_no_graph_but_has_one():
    with pytest.raises(TypeError, match=r"SlidingWindow; pass its graph\(\)"):
        as_graph(SlidingWindow(days=3))
