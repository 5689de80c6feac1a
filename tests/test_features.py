"""No account's own label reaches its features, and they are those of the other folds."""

import numpy as np
import pandas as pd
import pytest
from cases import exhaustive

from glp_rapids.datasets import transactions
from glp_rapids.fraud import SlidingWindow, account_scores, features
from glp_rapids.traversal.bfs import bfs

MONEY = {"source": "source", "destination": "destination"}


@pytest.fixture(scope="module")
def world():
    frame, truth = transactions(10_000, accounts=1_000, merchants=100, rings=4, towns=5, seed=3)
    ids = pd.unique(pd.concat([frame["source"], frame["destination"]]))
    labels = pd.DataFrame({"vertex": np.sort(ids)})
    labels["fraud"] = labels["vertex"].isin(truth["vertex"])
    return frame, labels.sample(frac=0.5, random_state=0).reset_index(drop=True)


def test_a_flipped_label_changes_no_feature_in_its_fold(world):
    frame, labels = world
    expected = features(frame, labels, folds=3, device="cpu", **MONEY)
    for account in labels["vertex"][labels["fraud"]][:3].tolist() + labels["vertex"][:3].tolist():
        flipped = labels.assign(fraud=labels["fraud"] ^ (labels["vertex"] == account))
        found = features(frame, flipped, folds=3, device="cpu", **MONEY)
        fold = expected.loc[expected["vertex"] == account, "fold"].iloc[0]
        own = expected["fold"] == fold
        pd.testing.assert_frame_equal(found[own], expected[own])
        assert not found[~own].equals(expected[~own])


def test_features_of_a_fold_are_scores_from_the_others(world, device):
    frame, labels = world
    window = SlidingWindow(31, device=device)
    window.append(frame)
    found = features(window, labels.sample(frac=1, random_state=1), folds=4, seed=7)
    assert list(found.columns) == ["vertex", "fold", "score", "hop", "transfers", "partners",
                                   "amount"]  # fmt: skip
    fraud = labels["vertex"][labels["fraud"]]
    for fold, rows in found.groupby("fold"):
        seeds = fraud[~fraud.isin(rows["vertex"])]
        scores = account_scores(window, seeds).set_index("vertex")["score"]
        assert rows["score"].tolist() == scores[rows["vertex"]].tolist()
        hops = bfs(window.graph(None), seeds, unreachable="null").set_index("vertex")["distance"]
        pd.testing.assert_series_equal(
            rows["hop"].astype("Int64"), hops[rows["vertex"]].astype("Int64"),
            check_names=False, check_index=False,
        )  # fmt: skip
        assert found.attrs["glp"]["seeds"][fold] == len(seeds)
    trades = frame[frame["source"] != frame["destination"]]
    both = pd.concat([trades.rename(columns={"source": "v", "destination": "u"}),
                      trades.rename(columns={"source": "u", "destination": "v"})])  # fmt: skip
    by_account = both.groupby("v")
    for name, expected in (
        ("transfers", by_account.size()),
        ("partners", by_account["u"].nunique()),
        ("amount", by_account["amount"].sum()),
    ):
        known = expected.reindex(found["vertex"]).fillna(0).to_numpy()
        assert np.allclose(found[name], known)


def test_folds_follow_from_the_id_alone(world):
    frame, labels = world
    whole = features(frame, labels, device="cpu", **MONEY).set_index("vertex")["fold"]
    part = features(frame[:5_000], labels, absent="drop", device="cpu", **MONEY)
    assert part["fold"].tolist() == whole[part["vertex"]].tolist()
    assert set(whole) == set(range(5))
    other = features(frame, labels, seed=1, device="cpu", **MONEY)["fold"]
    assert (other.to_numpy() != whole.to_numpy()).mean() > 0.5
    shares = whole.value_counts(normalize=True)
    assert shares.min() > 0.15


def test_labels_come_in_many_forms(world):
    frame, labels = world
    expected = features(frame, labels, device="cpu", **MONEY)
    fraud = labels["vertex"][labels["fraud"]]
    for same in (fraud, set(fraud), dict(zip(labels["vertex"], labels["fraud"], strict=True)),
                 labels.assign(fraud=labels["fraud"].astype("int8"))):  # fmt: skip
        found = features(frame, same, device="cpu", **MONEY)
        pd.testing.assert_frame_equal(found, expected)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"labels": [1]}, ValueError, "labels name 1 account.*outside fold"),
        ({"labels": [1, 9]}, ValueError, "labels holds 1 id.*no vertex"),
        ({"labels": [1, 1]}, ValueError, "labels holds a vertex twice"),
        ({"labels": ["1"]}, TypeError, "labels holds string"),
        *exhaustive(
            ({"labels": {1: "yes"}}, TypeError, "labels: column 'fraud'"),
            ({"labels": 1}, TypeError, "labels must be"),
            ({"folds": 1}, ValueError, "folds must be"),
            ({"seed": -1}, ValueError, "seed must be"),
            ({"tol": 2}, ValueError, "tol must be"),
        ),
    ],
)
def test_bad_input_of_features_is_refused(arguments, error, message):
    edges = pd.DataFrame({"src": [1, 2], "dst": [2, 3]})
    with pytest.raises(error, match=message):
        features(**{"graph": edges, "labels": [1, 2, 3], "device": "cpu", **arguments})
