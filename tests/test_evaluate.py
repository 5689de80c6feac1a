"""What `evaluate` counts is what scikit-learn counts, and ties fall to the smaller id."""

import numpy as np
import pandas as pd
import pytest
from cases import exhaustive
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score, roc_auc_score

from glp_rapids.fraud import account_scores, evaluate

ranked = st.lists(
    st.tuples(st.sampled_from([0.0, 0.1, 0.5, 0.7, 1.0]), st.booleans(), st.integers(0, 99)),
    min_size=1,
    max_size=30,
).filter(lambda rows: any(fraud for _, fraud, _ in rows))


@settings(max_examples=100, deadline=None)
@given(rows=ranked, shuffle=st.integers(0, 5), k=st.integers(1, 40))
def test_as_scikit_learn_and_by_hand(rows, shuffle, k):
    score, fraud, amount = (np.array(column) for column in zip(*rows, strict=True))
    ids = np.arange(len(rows)) * 3 - 7
    frame = pd.DataFrame({"vertex": ids, "score": score}).sample(frac=1, random_state=shuffle)
    truth = pd.DataFrame({"vertex": ids, "fraud": fraud}).sample(frac=1, random_state=shuffle)
    amounts = pd.DataFrame({"vertex": ids[::-1], "amount": amount[::-1]})
    found = evaluate(frame, truth, k, amounts=amounts)
    assert found.average_precision == pytest.approx(average_precision_score(fraud, score))
    if fraud.all():
        assert np.isnan(found.auc)
    else:
        assert found.auc == pytest.approx(roc_auc_score(fraud, score))
    top = sorted(range(len(rows)), key=lambda i: (-score[i], ids[i]))[:k]
    caught = sum(fraud[i] for i in top)
    lost = sum(amount[i] for i in top if fraud[i])
    expected = [
        k, caught / len(top), caught / fraud.sum(), caught / len(top) / fraud.mean(),
        lost / (amount[fraud].sum() or np.nan),
    ]  # fmt: skip
    assert found.at.iloc[0].tolist() == pytest.approx(expected, nan_ok=True)
    assert (found.vertices, found.frauds) == (len(rows), fraud.sum())


def test_seeds_are_left_out_and_ids_may_have_several_columns():
    edges = pd.DataFrame({"bank": "x", "a": [1, 2, 3], "other": "x", "b": [2, 3, 4]})
    scores = account_scores(edges, [("x", 1)], source=["bank", "a"], destination=["other", "b"],
                            device="cpu")  # fmt: skip
    truth = [("x", 1), ("x", 2), ("y", 9)]
    found = evaluate(scores, truth, [1, 5])
    assert (found.vertices, found.frauds) == (3, 1)
    assert found.at["precision"].tolist() == [1.0, 1 / 3]
    assert evaluate(scores, truth, [1], keep_seeds=True).frauds == 2
    words = pd.DataFrame({"vertex": ["a", "b"], "score": [1, 2]})
    for known in ({"b"}, pd.Series(["b"]), pd.DataFrame({"vertex": ["b", "b"]})):
        assert evaluate(words, known, 1).auc == 1


def test_a_frame_of_ids_needs_no_names():
    words = pd.DataFrame({"vertex": ["a", "b"], "score": [1, 2]})
    assert evaluate(words, pd.DataFrame({"account": ["b"]}), 1).auc == 1
    pairs = pd.DataFrame({"0_vertex": ["x", "x"], "1_vertex": [1, 2], "score": [1, 2]})
    assert evaluate(pairs, pd.DataFrame({"bank": ["x"], "account": [2]}), 1).auc == 1
    for further in ("since", "fraud"):
        with pytest.raises(ValueError, match="truth must have one column 'vertex'"):
            evaluate(words, pd.DataFrame({"account": ["b"], further: [1]}))


SCORES = pd.DataFrame({"vertex": [1, 2], "score": [0.5, 0.2]})


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"k": 0}, ValueError, "k must be"),
        ({"k": []}, ValueError, "k is empty"),
        ({"k": [1.5]}, TypeError, "k must be"),
        ({"truth": [7]}, ValueError, "truth: none of the 2 accounts"),
        *exhaustive(
            ({"truth": ["1"]}, TypeError, "truth holds string ids but scores integer ids"),
            (
                {"truth": pd.DataFrame({"fraud": [True]})},
                ValueError,
                "truth must have one column 've",
            ),
            ({"truth": pd.DataFrame({"vertex": [1], "fraud": ["x"]})}, TypeError, "truth: column"),
            (
                {"truth": pd.DataFrame({"vertex": [1, 2], "is_fraud": [True, False]})}, ValueError,
                r"truth has no column 'fraud'; there are \['vertex', 'is_fraud'\]: rename",
            ),
            (
                {"scores": SCORES.drop(columns="score")},
                ValueError,
                "scores must have one column 'sc",
            ),
            ({"scores": SCORES.assign(score=[1, None])}, ValueError, "scores hold a score .* null"),
            ({"scores": SCORES.assign(score=["a", "b"])}, TypeError, "scores: column 'score'"),
            ({"scores": SCORES.assign(vertex=1)}, ValueError, "scores: a vertex occurs twice"),
            ({"truth": pd.DataFrame({"vertex": [1, 1], "fraud": [1, 0]})}, ValueError,
             "truth: a vertex is fraud in one row and not in another"),
            ({"scores": [1]}, TypeError, "scores must be a frame"),
            ({"amounts": SCORES}, ValueError, "amounts must have one column 'amount'"),
            (
                {"amounts": SCORES.assign(amount=-1)},
                ValueError,
                "amounts are null, infinite or neg",
            ),
            (
                {"amounts": SCORES.assign(vertex=1, amount=1)},
                ValueError,
                "amounts: a vertex occurs",
            ),
            ({"keep_seeds": 1}, TypeError, "keep_seeds"),
        ),
    ],
)
def test_bad_input_of_evaluate_is_refused(arguments, error, message):
    with pytest.raises(error, match=message):
        evaluate(**{"scores": SCORES, "truth": [1], **arguments})


@pytest.mark.parametrize("kind", [list, np.array, pd.Series])
@pytest.mark.parametrize("dtype", [bool, int])
def test_marks_of_rows_are_no_list_of_accounts(kind, dtype):
    scores = pd.DataFrame({"vertex": range(4), "score": [0.9, 0.5, 0.2, 0.1]})
    marks = kind([dtype(one) for one in (1, 0, 0, 1)])
    with pytest.raises(TypeError, match=r"truth marks rows by 0 and 1.*scores\['vertex'\]\[truth"):
        evaluate(scores, marks)
    assert evaluate(scores, [0, 1]).frauds == 2  # accounts
