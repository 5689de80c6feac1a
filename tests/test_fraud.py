import networkx as nx
import numpy as np
import pandas as pd
import pytest
from cases import exhaustive
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from scipy import sparse

from glp_rapids.datasets import blacklist, data_folder, ground_truth, load, transactions
from glp_rapids.device import to_host
from glp_rapids.fraud import (
    Change,
    SlidingWindow,
    account_scores,
    cluster_members,
    evaluate,
    find_clusters,
    suspicious_clusters,
)
from glp_rapids.fraud.ids import joined, places_in
from glp_rapids.graph.subgraph import components, copies, core, largest_core
from glp_rapids.graph.vertex_ids import IdColumn, VertexIds
from glp_rapids.ingest.rank import rank_ids
from glp_rapids.ingest.read import as_graph

COLUMNS = {"source": "source", "destination": "destination"}
HYPOTHESIS = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def table(rows):
    frame = pd.DataFrame(rows, columns=["source", "destination", "amount", "time"])
    return frame.astype({"amount": "float64", "time": "float64"})


def assert_same_graph(graph, other):
    assert graph.directed == other.directed
    for name in ("indptr", "indices", "weights"):
        one, two = to_host(getattr(graph, name)), to_host(getattr(other, name))
        assert one.dtype == two.dtype
        assert np.array_equal(one, two)
    pd.testing.assert_series_equal(pd.Series(graph.external()), pd.Series(other.external()))


def rows_of_ids(ids):
    cents = st.integers(0, 10**7).map(lambda value: value / 100)
    return st.lists(st.tuples(ids, ids, cents, st.integers(0, 12)), max_size=12)


# Of a handful of rows some batches are alike by chance, and most come late.
CHANCE = pytest.mark.filterwarnings(
    "ignore:each of the .* in the window already", "ignore:.* rows have come too late"
)


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


@CHANCE
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize(
    "ids",
    [st.sampled_from("abcdefg"), *exhaustive(st.integers(-3, 5), st.integers(-(2**62), 2**62))],
)
def test_the_window_equals_the_graph_from_scratch(device, directed, ids):
    @HYPOTHESIS
    @given(batches=st.lists(rows_of_ids(ids), max_size=6), days=st.sampled_from([0.5, 1, 3, 20]))
    def check(batches, days):
        window = SlidingWindow(days, directed=directed, device=device)
        seen = table([])
        for batch in batches:
            frame = table(batch)
            before = frame.copy()
            try:
                change = window.append(frame)
            except ValueError as error:
                assert "append them on their own" in str(error)  # noqa: PT017
                return
            pd.testing.assert_frame_equal(frame, before)
            old = len(window) - change.added + change.expired
            seen = pd.concat([part for part in (seen, frame) if len(part)] or [frame])
            inside = seen[seen["time"] > seen["time"].max() - days]
            assert len(window) == len(inside) == old + change.added - change.expired
            assert change.added + change.late == len(frame)
            if not len(inside):
                continue
            for weight, factor in (("transfers", None), ("amount", 10_000)):
                exact = 1 if factor is None else (inside["amount"] * factor).round().astype("int64")
                other = as_graph(
                    inside.assign(w=exact), **COLUMNS, weight="w", directed=directed, device=device
                )
                graph = window.graph(weight)
                if factor is not None:
                    scaled = to_host(other.weights) / np.float64(factor)
                    assert np.array_equal(to_host(graph.weights), scaled)
                else:
                    assert_same_graph(graph, other)
            assert window.graph(None).weights is None

    check()


@CHANCE
@HYPOTHESIS
@given(rows=rows_of_ids(st.integers(0, 6)), shuffle=st.randoms(use_true_random=False))
def test_neither_the_order_of_rows_nor_the_batches_matter(rows, shuffle):
    window, other = (SlidingWindow(4, device="cpu") for _ in range(2))
    times = sorted(row[3] for row in rows)
    assume(len(rows) < 10 or times[-1] - times[0] < 4)  # else some may be taken for outliers
    window.append(table(rows))
    shuffled = list(rows)
    shuffle.shuffle(shuffled)
    for row in shuffled:
        other.append(table([row]))
    assert len(window) == len(other)
    if len(window):
        assert_same_graph(window.graph("amount"), other.graph("amount"))


def test_edges_add_up_transfers_and_amounts(device):
    window = SlidingWindow(10, device=device)
    change = window.append(table([(2, 1, 0.1, 0), (1, 2, 0.2, 1), (3, 3, 5, 2)]))
    assert change == Change(added=3, expired=0, late=0, duplicates=0)
    edges = window.edges()
    assert edges["source"].tolist() == [1, 3]
    assert edges["destination"].tolist() == [2, 3]
    assert edges["transfers"].tolist() == [2, 1]
    assert edges["amount"].tolist() == [0.3, 5.0]  # 0.1 + 0.2 is not 0.3 in floats
    assert SlidingWindow(10, directed=True, device=device).append(table([(2, 1, 1, 0)])).added == 1


def test_rows_leave_late_rows_stay_out_and_both_are_counted(device):
    window = SlidingWindow(2, device=device)
    window.append(table([("a", "b", 1, 0), ("b", "c", 1, 1)]))
    assert window.append(table([("c", "d", 1, 3), ("x", "y", 1, 1)])) == Change(1, 2, 1, 0)
    assert window.edges()["source"].tolist() == ["c"]
    assert (window.newest, window.oldest) == (3.0, 1.0)
    assert window.number_of_vertices == 2
    assert window.append(table([])) == Change(0, 0, 0, 0)
    assert len(window) == 1


def test_dates_are_windows_too_with_and_without_zone(device):
    stamps = pd.to_datetime(["2026-01-01 12:00:00", "2026-01-02 12:00:00", "2026-01-03 11:59:59"])
    frame = table([(0, 1, 1, 0), (1, 2, 1, 0), (2, 3, 1, 0)]).assign(time=stamps)
    for column in (frame["time"], frame["time"].dt.tz_localize("Europe/Berlin"),
                   frame["time"].astype("datetime64[ns]")):  # fmt: skip
        window = SlidingWindow(1, device=device)
        assert window.append(frame.assign(time=column)) == Change(2, 0, 1, 0)
    assert window.newest == np.datetime64("2026-01-03T11:59:59")


def test_numeric_times_count_their_unit(device):
    window = SlidingWindow(1, time_unit="h", amount=None, device=device)
    frame = table([(0, 1, 1, 0), (1, 2, 1, 1), (2, 3, 1, 24)]).drop(columns="amount")
    assert window.append(frame) == Change(2, 0, 1, 0)
    assert window.edges()["amount"].tolist() == [0.0, 0.0]


def test_ids_of_several_columns_and_categories_pass_through(device):
    frame = table([(0, 1, 1, 0), (1, 2, 1, 0)]).assign(bank=["x", "y"], other_bank=["y", "x"])
    window = SlidingWindow(
        1, source=["bank", "source"], destination=["other_bank", "destination"], device=device
    )
    window.append(frame)
    window.append(frame.assign(source=[5, 6]))
    edges = window.edges()
    names = ["0_source", "1_source", "0_destination", "1_destination", "transfers", "amount"]
    assert list(edges.columns) == names
    assert len(edges) == 4
    window = SlidingWindow(1, device=device)
    for letters in ("ab", "cd"):
        ids = pd.Categorical(list(letters))
        window.append(table([(0, 0, 1, 0)] * 2).assign(source=ids, destination=ids[::-1]))
    assert window.edges()["source"].astype(str).tolist() == ["a", "c"]


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (lambda f: f.drop(columns="amount"), ValueError, "amount='amount'.*no column"),
        (lambda f: f.drop(columns="time"), ValueError, "time='time'.*no column"),
        (lambda f: f.drop(columns="source"), ValueError, "source='source'.*no column"),
        (lambda f: f.assign(amount=[1.0, np.nan]), ValueError, "amount column.*null"),
        (lambda f: f.assign(amount=[1.0, -1.0]), ValueError, "negative.*-1.0 at row 1"),
        (lambda f: f.assign(amount=[1.0, np.inf]), ValueError, "inf at row 1"),
        (lambda f: f.assign(amount=["1", "2"]), TypeError, "amount column.*not numbers"),
        (lambda f: f.assign(amount=[True, False]), TypeError, "amount column.*not numbers"),
        (lambda f: f.assign(time=["today", "now"]), TypeError, "time column.*datetime64"),
        (lambda f: f.assign(time=[1.0, np.nan]), ValueError, "time column.*null"),
        (lambda f: f.assign(time=[1.0, np.inf]), ValueError, "infinite times"),
        (lambda f: f.assign(time=pd.to_datetime(["2026", "2027"])), TypeError, "numbers so far"),
        (lambda f: f.assign(source=[1.5, 2.5]), TypeError, "floats are no ids"),
        (lambda f: f.assign(source=["a", None]), ValueError, "null"),
        (lambda f: f.assign(source=["a", "b"]), TypeError, "one type"),
        (lambda f: f.assign(source=["a", "b"], destination=["b", "a"]), TypeError, "one type"),
        (lambda f: f.to_numpy(), TypeError, "frame must be"),
        (lambda f: f.assign(amount=8e11), ValueError, None),
    ],
)
def test_a_bad_batch_is_refused_and_leaves_the_window_as_it_was(change, error, message):
    window = SlidingWindow(5, device="cpu")
    frame = table([(1, 2, 3, 4), (2, 3, 4, 5)])
    window.append(frame)
    if message is None:
        window.append(change(frame))  # large, but it fits
        frame = pd.concat([frame] * 4000)
        message = "add up to"
    before, length = window.graph("amount"), len(window)
    with pytest.raises(error, match=message):
        window.append(change(frame))
    assert len(window) == length
    assert window.graph("amount") is before


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"days": 0}, ValueError, "days must be positive"),
        ({"days": float("nan")}, ValueError, "days must be positive"),
        ({"days": "7"}, TypeError, "days must be a number"),
        ({"days": 7, "time_unit": "w"}, ValueError, "time_unit"),
        ({"days": 7, "decimals": 12}, ValueError, "decimals"),
        ({"days": 7, "time": None}, TypeError, "time"),
        ({"days": 7, "device": "tpu"}, ValueError, "device"),
    ],
)
def test_bad_options_of_a_window_are_refused(options, error, message):
    with pytest.raises(error, match=message):
        SlidingWindow(**options)


def test_an_empty_window_says_so():
    window = SlidingWindow(7, device="cpu")
    window.append(table([]))
    for ask in (window.graph, window.edges, lambda: suspicious_clusters(window, [1])):
        with pytest.raises(ValueError, match="window is empty"):
            ask()
    assert (window.newest, window.oldest, len(window)) == (None, None, 0)
    with pytest.raises(ValueError, match="weight must be"):
        window.graph("value")


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


@HYPOTHESIS
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


@HYPOTHESIS
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


@HYPOTHESIS
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


def test_clusters_with_more_trade_than_floats_hold_are_refused():
    edges = ([1, 2, 3], [2, 3, 1], [1e308, 5e-324, 1.0])
    with pytest.raises(ValueError, match=r"weight: .* more than float64 can hold; divide them"):
        find_clusters(edges, [1], minimum_size=1, minimum_partners=1)
