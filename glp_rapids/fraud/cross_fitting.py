"""Features of accounts for a model downstream, none of which an account's own label has reached.

Scores that are computed from all known fraud tell a model the answer: known fraud has the score 1
and the distance 0, and fraud that nobody knows of does not. So they are cross-fitted: accounts fall
into folds, and the features of a fold come from the labels of all other folds (Wolpert, Stacked
generalization, Neural Networks 5, 1992).
"""

from __future__ import annotations

import math
import time
from typing import Any, Unpack

import numpy as np

from glp_rapids.common.calls import guarded
from glp_rapids.common.checks import check_choice, check_integer
from glp_rapids.common.hashing import mix_array
from glp_rapids.common.progress import Progress, Report
from glp_rapids.common.scans import number_where
from glp_rapids.common.segments import integer_sums
from glp_rapids.common.sizes import as_bytes
from glp_rapids.device import array_module, memory_in_use, to_device, to_host
from glp_rapids.frames import kinds
from glp_rapids.frames.facts import set_attributes
from glp_rapids.frames.kinds import Frame
from glp_rapids.fraud.placing import Transfers, prepared, telling, told_of, where_it_fits
from glp_rapids.fraud.scores import Rule, checked, solved
from glp_rapids.fraud.system import Fixed
from glp_rapids.fraud.tables import labelled, places
from glp_rapids.fraud.totals import row_weights
from glp_rapids.graph.graph import Graph
from glp_rapids.ingest.options import EdgeOptions
from glp_rapids.traversal.engines import engine_for, largest, where_searched

Array = Any


@guarded
def features(
    graph: Any,
    labels: Any,
    folds: int = 5,
    seed: int = 0,
    *,
    damping: float = 0.85,
    tol: float = 1e-4,
    max_iter: int = 1000,
    absent: str = "raise",
    memory_limit: int | str | None = None,
    progress: Progress = False,
    **edges: Unpack[EdgeOptions],
) -> Frame:
    """Compute features of every account for a model downstream, without a leak of its own label.

    Parameters
    ----------
    graph : SlidingWindow, or whatever `as_graph` takes, with its keywords
        As in `account_scores`.
    labels : frame, dict, or list, array, set or Series of ids
        What is known for training: a frame ``vertex, fraud`` of truth values; a dict of id to truth
        value; or the ids that are fraud alone.
    folds
        Into how many parts accounts fall, 2 to 1000.
    seed
        Another seed makes other folds.
    damping, tol, max_iter
        As in `account_scores`.
    absent : {"raise", "drop"}
        What becomes of labels of ids that are no vertex.
    memory_limit : int or str, optional
        As in `account_scores`.
    progress : bool or callable
        As in `account_scores`; a dict also tells the ``fold``.

    Returns
    -------
    frame
        ``vertex``; ``fold``; ``score`` and ``hop``, how strongly and over how many edges the
        accounts reach it that are fraud and in *other* folds (``hop`` is null where none does);
        ``transfers``, what its edges weigh, and ``partners``, with how many others it traded, both
        without itself; of a window ``amount``, too. Every vertex once, sorted by id.
        ``.attrs["glp"]``: ``seeds``, how many accounts each fold's features come from, ``error``
        and ``mean_weight``, as in `account_scores`, ``folds``, ``absent``, ``device``, ``seconds``,
        ``peak_memory``.

    Raises
    ------
    ValueError
        An option is out of range, a label is of no vertex, there are two of one, or none is fraud
        outside some fold; or as `account_scores`.
    TypeError
        A type is not as described.
    MemoryError
        On the CPU it may take more than ``memory_limit``, or than is free; it says by how much.

    Notes
    -----
    The fold of an account is a hash of its id and ``seed``, whether or not it has a label: so no
    label changes a fold, and accounts without one are treated as those with one are, which is what
    a model must learn from. Split by ``fold`` where you cross-validate. Labels other than fraud are
    not used, beyond being checked. Costs ``folds`` times `account_scores`, and as many
    breadth-first searches; at most 178 bytes a vertex or, if that is more, 30 a vertex and 18 an
    entry; counted on a GPU 220, or 60 and 26.

    Examples
    --------
    >>> import pandas as pd
    >>> from glp_rapids.fraud import features
    >>> transfers = pd.DataFrame({"src": [1, 2, 3, 4, 5, 6], "dst": [2, 3, 4, 5, 6, 1]})
    >>> known = pd.DataFrame({"vertex": [1, 2, 4], "fraud": [True, True, False]})
    >>> list(features(transfers, known, folds=3).columns)
    ['vertex', 'fold', 'score', 'hop', 'transfers', 'partners']
    """
    rule, limit = checked(damping, tol, max_iter), as_bytes("memory_limit", memory_limit)
    with telling(progress, "features") as tell:
        transfers = prepared(graph, edges, "features", limit, tell=tell)
        return features_of(transfers, labels, folds, seed, rule, absent, tell)


def features_of(
    transfers: Transfers, labels: Any, folds: int, seed: int, rule: Rule, absent: str,
    tell: Report | None = None,
) -> Frame:  # fmt: skip
    """Compute features in a graph, beside the amounts of its entries."""
    check_integer("folds", folds, 2, most=1000)
    check_integer("seed", seed, 0)
    check_choice("absent", absent, ("raise", "drop"), "'raise' or 'drop'")
    how = labels, int(folds), int(seed), rule, absent, tell
    return where_it_fits(transfers, lambda there: _features(there.graph, there.amounts, *how))


def _features(
    transfers: Graph, amounts: Graph | None, labels: Any, folds: int, seed: int, rule: Rule,
    absent: str, tell: Report | None,
) -> Frame:  # fmt: skip
    begin = time.perf_counter()
    ids, fraud = labelled(labels, "labels", transfers.vertices.names())
    index = places(ids, "labels", transfers.vertices, absent == "drop")
    known = index[(index >= 0) & fraud]
    fold = _folds(transfers, folds, seed)
    used, score, hop, off = _cross_fitted(transfers, known, fold, folds, rule, tell)

    loops = integer_sums(transfers.indices == transfers.row_indices(), transfers.indptr)
    unreached = hop == largest(hop.dtype)
    columns = {
        "fold": fold,
        "score": score,
        "hop": kinds.null_where(unreached, hop, transfers.vertices.kind),
        "transfers": row_weights(transfers).copy(),
        "partners": transfers.degree - loops,
    }
    if amounts is not None:
        columns["amount"] = amounts.keep("row weights", amounts.row_weights).copy()
    facts = {
        "folds": folds,
        "seeds": used,
        **off,
        "absent": number_where(index < 0),
        "device": transfers.device,
        "seconds": time.perf_counter() - begin,
        "peak_memory": memory_in_use(transfers.device),
    }
    return set_attributes(transfers.frame(columns), facts)


def _folds(graph: Graph, folds: int, seed: int) -> Array:
    """Return the fold of every vertex, by its id."""
    vertices = array_module(graph.indptr).arange(graph.number_of_vertices)
    words = mix_array(graph.id_words().of(vertices), seed)
    return (words % np.uint64(folds)).astype(np.int32)


def _cross_fitted(
    graph: Graph, known: np.ndarray, fold: Array, folds: int, rule: Rule, tell: Report | None
) -> tuple[list[int], Array, Array, dict[str, float]]:
    """Return each fold's number of seeds; scores and hops of all; how far scores may be off."""
    xp = array_module(graph.indptr)
    search = engine_for(where_searched(graph, "bfs"), "out")
    nobody = xp.zeros(0, np.int64)
    score = xp.zeros(graph.number_of_vertices)
    hop = xp.zeros(graph.number_of_vertices, graph.index_dtype)
    used, error, mean = [], 0.0, math.inf
    fold_of_known = to_host(fold)[known]
    for number in range(folds):
        seeds = np.sort(known[fold_of_known != number])
        if not seeds.size:
            raise ValueError(
                f"labels name {known.size} account(s) as fraud, none of which is outside fold "
                f"{number}; name more, or take another seed"
            )
        fixed = Fixed(to_device(seeds, graph.device), nobody)
        state = solved(graph, fixed, rule, tell=told_of(tell, fold=number))
        inside = fold == number
        score[inside] = state.scores[inside]
        found = search.bfs(seeds.astype(graph.index_dtype), 1 << 40, False)
        hop[inside] = to_device(found.distance, graph.device)[inside]
        used.append(int(seeds.size))
        if state.system.mean:  # else none is off
            error, mean = max(error, state.error), min(mean, state.system.mean)
    off = {"error": error, "mean_weight": mean if mean < math.inf else 0.0}
    return used, score, hop, off
