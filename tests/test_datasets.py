import numpy as np
import pandas as pd
import pytest

from glp_rapids.datasets import NAMES, blacklist, data_folder, ground_truth, load, transactions

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


def test_blacklist_draws_a_share_of_the_members(small):
    _, truth = small
    drawn = blacklist(truth, 0.2, seed=1)
    assert len(drawn) == round(0.2 * len(truth))
    assert drawn.is_unique
    assert drawn.isin(truth["vertex"]).all()
    assert drawn.equals(blacklist(truth, 0.2, seed=1))
    assert not drawn.equals(blacklist(truth, 0.2, seed=2))
    assert len(blacklist(truth, 1e-9)) == 1
    with pytest.raises(ValueError, match="fraction"):
        blacklist(truth, 0)
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
