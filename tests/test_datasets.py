from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

from glp_rapids.datasets import (
    NAMES,
    blacklist,
    data_folder,
    drifting_transactions,
    ground_truth,
    load,
    rmat,
    road_grid,
    transactions,
)

SMALL = {"accounts": 2_000, "merchants": 200, "rings": 4, "towns": 10}


@pytest.fixture(scope="module")
def small():
    return transactions(20_000, **SMALL, seed=3)


def test_transactions_have_the_promised_form(small):
    frame, truth = small
    assert list(frame.columns) == ["source", "destination", "amount", "time"]
    assert len(frame) == 20_000
    assert frame["time"].is_monotonic_increasing
    assert frame["time"].min() >= pd.Timestamp("2026-01-01")
    assert frame["time"].max() < pd.Timestamp("2026-01-31")
    assert (frame["amount"] > 0).all()
    assert np.allclose(frame["amount"] * 100, (frame["amount"] * 100).round(), atol=1e-6)
    ids = frame[["source", "destination"]].to_numpy()
    assert ids.min() >= 0
    assert ids.max() < 2_200
    assert (frame["source"] != frame["destination"]).all()
    assert truth["vertex"].is_unique
    assert truth["ring"].nunique() == 4
    assert truth.groupby("ring").size().between(15, 36).all()


def test_the_same_seed_makes_the_same_table_and_another_another(small):
    frame, truth = transactions(20_000, **SMALL, seed=3)
    pd.testing.assert_frame_equal(frame, small[0])
    pd.testing.assert_frame_equal(truth, small[1])
    assert not transactions(20_000, **SMALL, seed=4)[0].equals(frame)


def test_rings_trade_inside_in_bursts_and_live_an_ordinary_life_too(small):
    frame, truth = small
    ring = truth.set_index("vertex")["ring"]
    payer, payee = ring.reindex(frame["source"]), ring.reindex(frame["destination"])
    inside = payer.to_numpy() == payee.to_numpy()
    of_members = payer.notna().to_numpy() | payee.notna().to_numpy()
    assert 0.2 < inside.sum() / of_members.sum() < 0.9
    # a few honest trades between members may lie outside the burst
    quantile = frame["time"][inside].groupby(payer[inside].to_numpy()).quantile([0.05, 0.95])
    width = quantile.unstack()
    assert (width[0.95] - width[0.05] <= pd.Timedelta(days=5)).all()
    assert len(width) == 4


def test_activity_and_popularity_are_heavy_tailed_and_honest_pairs_repeat():
    frame, _ = transactions(50_000, accounts=5_000, merchants=500, rings=0, towns=20)
    sales, purchases = frame["destination"].value_counts(), frame["source"].value_counts()
    assert sales.max() > 20 * sales.median()
    assert purchases.max() > 10 * purchases.median()
    assert frame.duplicated(["source", "destination"]).mean() > 0.2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rows": 0}, "rows must be at least 1"),
        ({"rings": -1}, "rings must be at least 0"),
        ({"ring_accounts": (3, 2)}, "ring_accounts must be"),
        ({"ring_accounts": 5}, r"ring_accounts must be \(smallest, largest\) .* not 5"),
        ({"seed": -1}, "seed must be at least 0"),
        ({"start": "foo"}, "start must be a date, as '2026-01-01', not 'foo'"),
        ({"start": "NaT"}, "start must be a date"),
        ({"days": 10**15}, "days must end before the year 10000"),
        ({"rows": 100, **SMALL}, "more than half of rows=100"),
        ({"accounts": 50, "rings": 4}, "of the 50 accounts"),
        ({"merchants": 5, "rings": 4}, "of the 5 merchants"),
    ],
)
def test_impossible_transactions_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        transactions(**options)


def test_a_number_that_is_none_is_a_type_error():
    with pytest.raises(TypeError, match="days must be an integer"):
        transactions(days=1.5)


def test_tiny_worlds_work():
    frame, truth = transactions(10, accounts=1, merchants=1, rings=0, towns=1, days=1)
    assert len(frame) == 10
    assert not len(truth)


@pytest.fixture(scope="module")
def drifting():
    return drifting_transactions(
        40_000, accounts=4_000, merchants=400, rings=8, towns=20, merging=0.5, seed=2
    )


def test_drifting_rings_sleep_change_merchants_and_merge(drifting):
    frame, truth = drifting
    assert list(frame.columns) == ["transaction", "source", "destination", "amount", "time"]
    assert len(frame) == 40_000
    assert frame["transaction"].is_unique
    assert frame["time"].is_monotonic_increasing
    assert frame["time"].max() < pd.Timestamp("2026-01-01") + pd.Timedelta(days=90)
    assert truth.equals(truth.sort_values(["ring", "opening", "vertex"], ignore_index=True))
    assert not truth.duplicated(["vertex", "ring", "opening"]).any()
    payees = set(frame["destination"]) - set(frame["source"])
    slept = changed = merged = 0
    for _, ring in truth.groupby("ring"):
        episodes = [part for _, part in ring.groupby("opening")]
        for before, after in pairwise(episodes):
            slept += after["opening"].iloc[0] - before["ending"].iloc[0] >= pd.Timedelta(days=4)
            members, later = set(before["vertex"]), set(after["vertex"])
            changed += bool((members - later) & payees)
            merged += len(later - payees) > len(members - payees)
    assert slept == changed == sum(
        ring["opening"].nunique() - 1 for _, ring in truth.groupby("ring")
    )
    assert 1 <= merged <= 4


def test_drifting_rings_trade_while_they_are_awake(drifting):
    frame, truth = drifting
    for _, part in list(truth.groupby(["ring", "opening"]))[::5]:
        members, opening, ending = set(part["vertex"]), part["opening"].iloc[0], part["ending"]
        inside = frame[frame["source"].isin(members) & frame["destination"].isin(members)]
        now = inside["time"].between(opening, ending.iloc[0])
        assert now.sum() > 3 * len(members)


def test_drifting_transactions_depend_on_the_seed_alone_and_refuse_nonsense(drifting):
    options = {"accounts": 4_000, "merchants": 400, "rings": 8, "towns": 20}
    again = drifting_transactions(40_000, **options, merging=0.5, seed=2)
    for one, other in zip(drifting, again, strict=True):
        pd.testing.assert_frame_equal(one, other)
    assert not drifting_transactions(40_000, **options, merging=0.5, seed=3)[0].equals(again[0])
    with pytest.raises(ValueError, match="merging must be in"):
        drifting_transactions(40_000, **options, merging=0.6)
    with pytest.raises(ValueError, match="sleep_days must be"):
        drifting_transactions(40_000, **options, sleep_days=(4, 3))
    with pytest.raises(ValueError, match="more than half of rows=500"):
        drifting_transactions(500, **options)
    frame, truth = drifting_transactions(30, accounts=9, merchants=9, rings=0, towns=1, days=1)
    assert len(frame) == 30
    assert truth.empty


def test_a_blacklist_has_each_member_once(drifting):
    _, truth = drifting
    drawn = blacklist(truth, 0.2)
    assert drawn.is_unique
    assert len(drawn) == round(0.2 * truth["vertex"].nunique()) < 0.2 * len(truth)


def test_blacklist_draws_a_share_of_the_members(small):
    _, truth = small
    drawn = blacklist(truth, 0.2, seed=1)
    assert len(drawn) == round(0.2 * len(truth))
    assert drawn.is_unique
    assert drawn.isin(truth["vertex"]).all()
    assert drawn.equals(blacklist(truth, 0.2, seed=1))
    assert not drawn.equals(blacklist(truth, 0.2, seed=2))
    assert len(blacklist(truth, 1e-9)) == 1
    for fraction in (0, "a", float("nan")):
        with pytest.raises(ValueError, match="fraction"):
            blacklist(truth, fraction)
    with pytest.raises(TypeError, match="truth must be a pandas frame"):
        blacklist([1, 2, 3])
    with pytest.raises(ValueError, match="truth has no column 'vertex'"):
        blacklist(truth[["ring"]])
    with pytest.raises(ValueError, match="empty"):
        blacklist(truth[:0])


def test_unknown_and_missing_data_say_what_to_do(monkeypatch, tmp_path):
    with pytest.raises(ValueError, match="com-dblp"):
        load("no-such-graph")
    with pytest.raises(ValueError, match="no ground truth"):
        ground_truth("email-Enron")
    monkeypatch.setenv("GLP_RAPIDS_DATA", str(tmp_path))
    with pytest.raises(FileNotFoundError, match="GLP_RAPIDS_DATA"):
        load("com-dblp")


@pytest.mark.skipif(not data_folder().is_dir(), reason="the data folder is not there")
@pytest.mark.parametrize(
    ("name", "edges", "vertices"),
    [
        ("graphalytics-p2p-31", 147_892, 62_586),
        ("lfr-10000-mu0.1", 20_688, 10_000),
        ("email-Eu-core", 16_706, 1_005),
        ("football", 613, 115),
        ("polblogs", 19_090, 1_490),
        ("amlsim-20K_cycle200", 117_805, 20_000),
    ],
)
def test_published_graphs_and_their_answers(name, edges, vertices):
    assert name in NAMES
    frame, truth = load(name), ground_truth(name)
    assert len(frame) == edges
    assert isinstance(frame.attrs["directed"], bool)
    ends = set(frame.iloc[:, 0]) | set(frame.iloc[:, 1])
    assert truth["vertex"].nunique() == vertices
    assert ends <= set(truth["vertex"])


@pytest.mark.skipif(not data_folder().is_dir(), reason="the data folder is not there")
def test_road_lengths_are_distances():
    frame = load("road-usa")
    assert len(frame) == 121_961
    assert frame.attrs["vertices"] == 87_575
    assert (frame["weight"] >= 0).all()


def test_names_and_numbers_that_are_none_are_refused():
    for function in (load, ground_truth):
        with pytest.raises(TypeError, match=r"name must be a text, one of .*, not 3"):
            function(3)
    for given in (float("nan"), "x", -0.1):
        with pytest.raises(ValueError, match="a, b and c must be >= 0 and sum to at most 1, not"):
            rmat(4, 1, a=given, device="cpu")
        with pytest.raises(ValueError, match=r"removed must be a share in \[0, 1\], not"):
            road_grid(3, 3, given, device="cpu")
    with pytest.raises(ValueError, match="start must be a date without a time zone"):
        transactions(100, start="2026-01-01T00:00+02:00")
    with pytest.raises(ValueError, match="start must be a date, as '2026-01-01', not 'x'"):
        transactions(100, start="x")
