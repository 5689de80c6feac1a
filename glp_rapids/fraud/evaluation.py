"""How well scores tell fraud: what an analyst finds who works a list off from its top."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from glp_rapids.common.calls import guarded
from glp_rapids.common.checks import check_integer, check_truth, errors_named, is_sequence
from glp_rapids.frames import kinds
from glp_rapids.frames.kinds import Frame
from glp_rapids.fraud.tables import Table, labelled
from glp_rapids.graph import id_types
from glp_rapids.graph.vertex_ids import VertexIds
from glp_rapids.ingest.rank import rank_ids

Array = Any


class Evaluation(NamedTuple):
    """The answer of `evaluate`.

    Parameters
    ----------
    at : frame
        By ``k``: ``precision, recall, lift``, and ``amount`` if amounts were given.
    average_precision, auc : float
        Over all accounts; equal scores count as one step, as in scikit-learn.
    vertices, frauds : int
        Accounts that were ranked, and how many of them are fraud.
    """

    at: Frame
    average_precision: float
    auc: float
    vertices: int
    frauds: int


@guarded
def evaluate(
    scores: Frame,
    truth: Any,
    k: Any = (100, 1000),
    *,
    amounts: Frame | None = None,
    keep_seeds: bool = False,
) -> Evaluation:
    """Compare scores with what is known to be fraud: precision and recall at the top, and overall.

    Parameters
    ----------
    scores : frame
        ``vertex, score`` (``0_vertex``, ... for ids of several columns), such as `account_scores`
        returns.
    truth : frame, or list, array, set or Series of ids
        The accounts that are fraud; a frame ``vertex, fraud`` of truth values, or one with the
        columns of the vertex alone. Those that have no score count nowhere.
    k : int or list of int
        How many accounts from the top are looked at; where there are fewer, all are.
    amounts : frame, optional
        ``vertex, amount``: what is lost to an account if it is fraud; 0 where there is no row.
    keep_seeds
        Whether accounts of which ``scores`` says ``is_seed`` are ranked, too. By default they are
        left out: they were known before.

    Returns
    -------
    Evaluation
        ``at``, a frame ``k, precision, recall, lift`` (precision over that of a list in random
        order), and ``amount``, the share of the amounts of all fraud that the top holds (NaN where
        no fraud has an amount);
        ``average_precision``, ``auc`` (NaN where all are fraud), ``vertices``, ``frauds``.

    Raises
    ------
    ValueError
        No account that is ranked is fraud, a vertex occurs twice (in ``truth``: as fraud and as
        none), a score is null, an amount null, infinite or negative, a column is missing, or a k
        below 1.
    TypeError
        A type is not as described, or ids are of other types than those of ``scores``.

    Notes
    -----
    Of equal scores the account with the smaller id comes first in the top k, whatever the order of
    the rows; ``average_precision`` and ``auc`` are scikit-learn's and know no order among them.
    O(n log n), on the host.

    Examples
    --------
    >>> import pandas as pd
    >>> from glp_rapids.fraud import evaluate
    >>> scores = pd.DataFrame({"vertex": ["a", "b", "c", "d"], "score": [0.9, 0.5, 0.5, 0.1]})
    >>> found = evaluate(scores, ["a", "c"], k=[1, 2])
    >>> found.at
       k  precision  recall  lift
    0  1        1.0     0.5   2.0
    1  2        0.5     0.5   1.0
    >>> found.auc
    0.875
    """
    check_truth(keep_seeds=keep_seeds)
    tops = _tops(k)
    scored = Table(scores, "scores", "score")
    score = scored.numbers("score")
    if bool(np.isnan(score).any()):
        raise ValueError("scores hold a score that is null; drop those rows")
    with errors_named("truth"):
        _refuse_marks(truth, score.size)
    fraud_ids, is_fraud = labelled(truth, "truth", scored.keys)
    parts = [scored.ids, fraud_ids]
    if amounts is not None:
        lost = Table(amounts, "amounts", "amount", keys=scored.keys)
        parts.append(lost.ids)
    codes, _ = _ranked(parts, ("scores", "truth", "amounts"))
    size = 1 + max((int(code.max()) for code in codes if code.size), default=-1)
    for code, name in zip(codes, ("scores", "truth", "amounts"), strict=False):
        # an id that is listed twice as fraud says nothing else than once
        if name != "truth" and code.size and int(np.bincount(code).max()) > 1:
            raise ValueError(f"{name}: a vertex occurs twice; keep one row a vertex")
    fraud = np.zeros(size, dtype=bool)
    fraud[codes[1][is_fraud]] = True
    if fraud[codes[1][~is_fraud]].any():
        raise ValueError("truth: a vertex is fraud in one row and not in another; keep one of them")
    amount = np.zeros(size)
    if amounts is not None:
        amount[codes[2]] = lost.amounts()

    kept = np.ones(score.size, dtype=bool)
    if not keep_seeds and "is_seed" in scored.frame.columns:
        kept = ~scored.truths("is_seed")
    vertex, score = codes[0][kept], score[kept]
    order = np.lexsort((vertex, -score))
    score, hit = score[order], fraud[vertex[order]]
    loss = np.where(hit, amount[vertex[order]], 0.0)
    frauds = int(hit.sum())
    if not frauds:
        raise ValueError(
            f"truth: none of the {score.size} accounts that are ranked is fraud; name others"
        )
    caught, lost_in_all = np.cumsum(hit), np.cumsum(loss)
    top = np.minimum(tops, score.size)
    precision = caught[top - 1] / top
    columns = {
        "k": tops,
        "precision": precision,
        "recall": caught[top - 1] / frauds,
        "lift": precision / (frauds / score.size),
    }
    if amounts is not None:
        columns["amount"] = lost_in_all[top - 1] / (lost_in_all[-1] or np.nan)
    average, auc = _overall(score, caught)
    return Evaluation(kinds.to_frame(columns, scored.kind), average, auc, score.size, frauds)


def _overall(score: np.ndarray, caught: np.ndarray) -> tuple[float, float]:
    """Compute average precision and the area under the ROC curve; scores fall."""
    ends = np.flatnonzero(np.append(score[1:] != score[:-1], True))
    true, listed = caught[ends], ends + 1
    frauds, others = int(true[-1]), int(listed[-1] - true[-1])
    found = np.diff(true, prepend=0)
    average = float(np.sum(found * (true / listed)) / frauds)
    if not others:
        return average, float("nan")
    # pairs in the right order, twice, of integers: whoever shares a score counts half
    before = np.concatenate([[0], (listed - true)[:-1]])
    wrong = found * (before + (listed - true))
    return average, float(1 - int(wrong.sum()) / (2 * frauds * others))


def _ranked(parts: list[list[Any]], names: tuple[str, ...]) -> tuple[list[np.ndarray], VertexIds]:
    labels = [[name] * len(part) for name, part in zip(names, parts, strict=False)]
    families = {}
    for part, label in zip(parts, labels, strict=True):
        for place, column in enumerate(part):
            if (family := id_types.id_family(column, label[place])) is None:
                continue
            other = families.setdefault(place, (family, label[place]))
            if other[0] != family:
                raise TypeError(
                    f"{label[place]} holds {family} ids but {other[1]} {other[0]} ids; cast one"
                )
    return rank_ids(parts, labels, "pandas", "cpu")


def _refuse_marks(truth: Any, rows: int) -> None:
    """Raise if ``truth`` marks the rows of the scores, as scikit-learn has it, and names nobody."""
    if not isinstance(truth, list | tuple | np.ndarray | pd.Series) or np.ndim(truth) != 1:
        return
    values = pd.Series(truth)
    marks = pd.api.types.is_bool_dtype(values) or pd.api.types.is_integer_dtype(values)
    if marks and values.size == rows > 2 and values.isin((0, 1)).all():
        raise TypeError(
            "truth marks rows by 0 and 1, but is a list of the accounts that are fraud: pass "
            "scores['vertex'][truth == 1], or a frame with the columns vertex and fraud"
        )


def _tops(k: Any) -> np.ndarray:
    tops = list(k) if is_sequence(k) else [k]
    for one in tops:
        check_integer("k", one, 1)
    if not tops:
        raise ValueError("k is empty: name at least one number")
    return np.array([min(int(one), 1 << 62) for one in tops], dtype=np.int64)
