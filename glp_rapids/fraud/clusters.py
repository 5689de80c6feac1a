"""From a blacklist to suspicious clusters: who trades with the known ones, and with one another.

Three steps. Seeded label propagation scores every account by how strongly the blacklist reaches
it. Among those above a threshold, weighted label propagation finds communities: it runs several
times, and what most of the runs put together belongs together (Lancichinetti and Fortunato,
Consensus clustering in complex networks, 2012), since a single run now and then breaks a ring up.
Of every community only the core stays: accounts that have enough partners in it and enough of
their trade. Steps one and two are the pipeline of C. Ye et al., GPU-Accelerated Graph Label
Propagation for Real-Time Fraud Detection (SIGMOD 2021); the core keeps honest customers of a guilty
merchant out.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple, Unpack

import numpy as np

from glp_rapids.common.calls import guarded
from glp_rapids.common.checks import check_choice, check_share, is_integer, is_sequence, shown
from glp_rapids.common.segments import integer_sums
from glp_rapids.device import array_module, module_on, to_device
from glp_rapids.frames import kinds
from glp_rapids.frames.kinds import Frame
from glp_rapids.fraud.window import SlidingWindow
from glp_rapids.graph.graph import BaseGraph, Graph
from glp_rapids.graph.subgraph import Groups, connected_core, induced, inside, masked
from glp_rapids.ingest.options import EdgeOptions
from glp_rapids.ingest.read import as_any_graph, as_graph
from glp_rapids.propagation.variants.classic import label_propagation
from glp_rapids.propagation.variants.seeded import seeded_label_propagation

Array = Any
RUNS = 9  # odd, so that a majority is one


class Findings(NamedTuple):
    """The answers of `find_clusters`, three frames of the caller's kind."""

    clusters: Frame
    members: Frame
    scores: Frame


class ClusterOptions(EdgeOptions, total=False):
    """The keywords of `find_clusters`, `suspicious_clusters` and `cluster_members`."""

    minimum_size: int
    minimum_score: float
    minimum_share: float
    minimum_partners: int
    damping: float
    absent: str
    device: str | None


@guarded
def account_scores(
    graph: Any,
    seeds: Any,
    *,
    damping: float = 0.85,
    max_iter: int = 10,
    absent: str = "raise",
    **edges: Unpack[EdgeOptions],
) -> Frame:
    """Score every account by how strongly a blacklist reaches it through transactions.

    Parameters
    ----------
    graph : SlidingWindow, or whatever `as_graph` takes, with its keywords
        An edge weighs the number of its transactions, unless ``weight=`` names a column. The
        graph must be undirected.
    seeds : list, array or Series of ids
        The blacklist; a frame of the id columns if ids have several.
    damping
        What is left of a score at each step away from the seeds, above 0 and at most 1.
    max_iter
        How many steps the score travels.
    absent : {"raise", "drop"}
        What becomes of seeds that are no vertex: an error, or nothing, with a warning if no seed is
        left. Seeds of another type than the vertices are an error in any case.

    Returns
    -------
    frame
        ``vertex``; ``score``: 1 for seeds, 0 where they do not reach, in between for all others;
        ``is_seed``. Every vertex once, sorted by id. ``.attrs["glp"]`` is that of
        `seeded_label_propagation`, with ``seeds``, how many vertices are on the blacklist, and
        ``absent``, how many of its ids are no vertex.

    Raises
    ------
    ValueError
        The window is empty, the graph directed, or a seed is no vertex.
    TypeError
        A type is not as described.

    Notes
    -----
    O(edges) a sweep. With a fifth of the fraudsters as seeds, 81% and 94% of the 200 highest
    scored other accounts are fraud in the AMLSim sets cycle200 and fanin200cycle200, of whose
    accounts 4.7% and 9% are (personalised PageRank on the same weights: 76% and 85%). Rule: Zhou
    et al., Learning with Local and Global Consistency, NIPS 2003, section 2, with clamped seeds.

    Examples
    --------
    >>> import pandas as pd
    >>> from glp_rapids.fraud import account_scores
    >>> transfers = pd.DataFrame({"src": ["a", "a", "b"], "dst": ["b", "b", "c"]})
    >>> account_scores(transfers, ["a"])["score"].round(2).tolist()
    [1.0, 0.91, 0.45]
    """
    prepared, _ = _prepared(graph, edges, as_any_graph)
    index, missing = _seed_index(prepared, seeds, absent)
    return _score_frame(prepared, index, missing, damping, max_iter)


@guarded
def find_clusters(
    graph: Any,
    seeds: Any,
    *,
    minimum_size: int = 6,
    minimum_score: float = 0.03,
    minimum_share: float = 0.2,
    minimum_partners: int = 5,
    damping: float = 0.85,
    max_iter: int = 10,
    absent: str = "raise",
    **edges: Unpack[EdgeOptions],
) -> Findings:
    """Find the groups of accounts around a blacklist that trade mostly with one another.

    Parameters
    ----------
    graph : SlidingWindow, or whatever `as_graph` takes, with its keywords
        An edge weighs the number of its transactions, unless ``weight=`` names a column. The
        graph must be undirected.
    seeds : list, array or Series of ids
        The blacklist; a frame of the id columns if ids have several.
    minimum_size
        Accounts in a cluster, seeds included, at the least.
    minimum_score
        Accounts that `account_scores` scores lower are not looked at.
    minimum_share
        Share of an account's trade that must stay inside the cluster, in [0, 1].
    minimum_partners
        Accounts of the cluster that a member must have traded with.
    damping, max_iter, absent
        As in `account_scores`.

    Returns
    -------
    Findings
        ``clusters``, the most suspicious first: ``cluster`` (0, 1, ...), ``size``, ``seeds``
        (how many of them are on the blacklist), ``score`` (mean of the members' scores), ``value``
        (amounts of a window, else weights, traded inside), ``density`` (share of the pairs of
        members that traded), ``share`` (of all the trade of the members, what stays inside).
        ``members``: ``vertex, cluster, score, is_seed``, by cluster and falling score.
        ``scores``: as `account_scores` gives them; its ``.attrs["glp"]`` is that of all three.

    Raises
    ------
    ValueError
        The window is empty, the graph directed, an option out of range, or a seed is no vertex.
    TypeError
        A type is not as described.

    Notes
    -----
    O(edges) a sweep for the scores; what follows is confined to the accounts above
    ``minimum_score``. A cluster has at least one seed: a ring without any known member is not
    found. Measured on `glp_rapids.datasets.transactions`
    (a million rows, a fifth of the members as seeds, generator seeds 0 to 11): of the accounts
    reported beside the seeds 100% are ring members, and 96% (at the least 93%) of the members that
    are no seeds are reported. With a tenth as seeds 82%; of rings that trade half as much, 51%.

    Examples
    --------
    >>> from glp_rapids.datasets import blacklist, transactions
    >>> from glp_rapids.fraud import find_clusters
    >>> frame, truth = transactions(20_000, accounts=2_000, merchants=200, rings=4, towns=10)
    >>> found = find_clusters(frame, blacklist(truth), source="source", destination="destination")
    >>> list(found.clusters.columns)
    ['cluster', 'size', 'seeds', 'score', 'value', 'density', 'share']
    """
    limits = {"minimum_size": minimum_size, "minimum_partners": minimum_partners}
    for name, number in limits.items():
        if not is_integer(number) or number < 1:
            raise ValueError(f"{name} must be an integer of at least 1, not {shown(number)}")
    for name, share in {"minimum_score": minimum_score, "minimum_share": minimum_share}.items():
        check_share(name, share)
    prepared, values = _prepared(graph, edges, as_graph)
    seed_index, missing = _seed_index(prepared, seeds, absent)
    scores = _score_frame(prepared, seed_index, missing, damping, max_iter)
    xp = array_module(prepared.indptr)
    score = _column(scores, "score", prepared)
    is_seed = xp.zeros(prepared.number_of_vertices, dtype=bool)
    is_seed[seed_index] = True

    close = xp.flatnonzero((score >= minimum_score) & (score > 0))
    total = prepared.row_weights()[close]
    inner = induced(prepared, close)
    worth = inner if values is None else induced(values, close)
    agreed = _agreed(inner)
    community = connected_core(inner, agreed, total, minimum_share, minimum_partners)
    score, is_seed = score[close], is_seed[close]

    member = xp.flatnonzero(community >= 0)
    groups = Groups(community[member], community.size)
    enough = (groups.size >= minimum_size) & (groups.sums(is_seed[member]) > 0)
    member = member[enough[groups.of]]
    groups = Groups(community[member], community.size)
    mean = groups.totals(score[member]) / xp.maximum(groups.size, 1)
    # by falling score, then by the smallest vertex, which is the order the groups are in
    order = xp.argsort(-mean, kind="stable")
    place = xp.empty_like(order)
    place[order] = xp.arange(order.size)

    group_of = xp.full(community.size, -1, dtype=np.int64)
    group_of[member] = groups.of
    same = inside(inner, group_of)
    partners = groups.sums(integer_sums(same, inner.indptr)[member])
    pairs = xp.maximum(groups.size * (groups.size - 1), 1)
    staying = groups.totals(masked(inner, same).row_weights()[member])
    trade = groups.totals(total[member])
    value = groups.totals(masked(worth, same).row_weights()[member]) / 2
    columns = {
        "cluster": xp.arange(order.size),
        "size": groups.size[order],
        "seeds": groups.sums(is_seed[member])[order],
        "score": mean[order],
        "value": xp.around(value, 6)[order],
        "density": (partners / pairs)[order],
        "share": (staying / xp.where(trade > 0, trade, 1.0))[order],
    }
    cluster = place[groups.of]
    by_cluster = xp.lexsort(xp.stack([-score[member], cluster]))
    member, cluster = member[by_cluster], cluster[by_cluster]
    members = prepared.frame(
        {"cluster": cluster, "score": score[member], "is_seed": is_seed[member]},
        vertex=close[member],
    )
    clusters = kinds.to_frame(columns, prepared.vertices.kind)
    for frame in (clusters, members):
        kinds.set_attributes(frame, dict(scores.attrs["glp"]))
    return Findings(clusters, members, scores)


@guarded
def suspicious_clusters(graph: Any, seeds: Any, **options: Unpack[ClusterOptions]) -> Frame:
    """Give the suspicious clusters, the most suspicious first: `find_clusters`'s ``clusters``.

    Parameters
    ----------
    graph, seeds, **options
        As in `find_clusters`.

    Returns
    -------
    frame
        ``cluster, size, seeds, score, value, density, share``, one row a cluster.

    Raises
    ------
    ValueError, TypeError
        As `find_clusters`.

    Notes
    -----
    The cost is that of `find_clusters`, which gives the members as well.

    Examples
    --------
    >>> from glp_rapids.datasets import blacklist, transactions
    >>> from glp_rapids.fraud import SlidingWindow, suspicious_clusters
    >>> frame, truth = transactions(20_000, accounts=2_000, merchants=200, rings=4, towns=10)
    >>> window = SlidingWindow(days=30)
    >>> window.append(frame).added
    20000
    >>> bool(suspicious_clusters(window, blacklist(truth), absent="drop")["seeds"].min() > 0)
    True
    """
    return find_clusters(graph, seeds, **options).clusters


@guarded
def cluster_members(graph: Any, seeds: Any, **options: Unpack[ClusterOptions]) -> Frame:
    """Give the accounts of the suspicious clusters: `find_clusters`'s ``members``.

    Parameters
    ----------
    graph, seeds, **options
        As in `find_clusters`.

    Returns
    -------
    frame
        ``vertex, cluster, score, is_seed``, by cluster and falling score; no vertex is in two.

    Raises
    ------
    ValueError, TypeError
        As `find_clusters`.

    Notes
    -----
    The cost is that of `find_clusters`.

    Examples
    --------
    >>> from glp_rapids.datasets import blacklist, transactions
    >>> from glp_rapids.fraud import cluster_members
    >>> frame, truth = transactions(20_000, accounts=2_000, merchants=200, rings=4, towns=10)
    >>> members = cluster_members(frame, blacklist(truth), source="source",
    ...                           destination="destination")
    >>> list(members.columns)
    ['vertex', 'cluster', 'score', 'is_seed']
    """
    return find_clusters(graph, seeds, **options).members


def _prepared(
    graph: Any, edges: dict[str, Any], convert: Callable[..., BaseGraph]
) -> tuple[BaseGraph, Graph | None]:
    """Give the graph of transfers and, of a window, that of amounts."""
    values = None
    if isinstance(graph, SlidingWindow):
        if edges:
            raise TypeError(f"a SlidingWindow takes no {next(iter(edges))}=: it has its own")
        prepared, values = graph.graph("transfers"), graph.graph("amount")
    else:
        if not isinstance(graph, BaseGraph) and edges.get("weight") is None:
            edges = {"multigraph": "keep", **edges}
        prepared = convert(graph, **edges)
    if prepared.directed:
        raise ValueError("the graph is directed; clusters and scores need directed=False")
    return prepared, values


def _seed_index(graph: BaseGraph, seeds: Any, absent: str) -> tuple[Array, int]:
    """Give the vertices on the blacklist, once each, and how many of its ids are no vertex."""
    check_choice("absent", absent, ("raise", "drop"), "'raise' or 'drop'")
    if isinstance(seeds, set | frozenset | dict):
        seeds = list(seeds)
    if not is_sequence(seeds) or not hasattr(seeds, "__len__"):
        raise TypeError(f"seeds must be a list, array or Series of ids, not {shown(seeds)}")
    if absent == "raise" and not len(seeds):
        raise ValueError("seeds are empty: name at least one account")
    found = graph.vertices.lookup(seeds, "seeds", absent=absent == "drop")
    index = array_module(found).unique(found[found >= 0])
    if not index.size:
        asked = f"none of the {len(seeds)} seeds is a vertex" if len(seeds) else "seeds are empty"
        warnings.warn(f"{asked}: every score is 0", UserWarning, stacklevel=3)
    return to_device(index.astype(graph.index_dtype), graph.device), int((found < 0).sum())


def _score_frame(
    graph: BaseGraph, seed_index: Array, absent: int, damping: float, max_iter: int
) -> Frame:
    xp = module_on(graph.device)
    is_seed = xp.zeros(graph.number_of_vertices, dtype=bool)
    is_seed[seed_index] = True
    reached = seeded_label_propagation(
        graph,
        graph.frame({"label": xp.ones(seed_index.size, dtype=np.int64)}, vertex=seed_index),
        damping=damping,
        max_iter=max_iter,
        device=graph.device,
    )
    scores = graph.frame({"score": reached["score"], "is_seed": is_seed})
    return kinds.set_attributes(scores, {**reached.attrs["glp"], "absent": absent})


def _agreed(graph: Graph) -> Array:
    """Mark the entries whose ends most of several runs of label propagation put together."""
    row, column = graph.row_indices(), graph.indices
    votes = array_module(column).zeros(column.size, dtype=np.int64)
    for seed in range(RUNS):
        found = label_propagation(graph, seed=seed, device=graph.device)
        partition = _column(found, "partition", graph)
        votes += partition[row] == partition[column]
    return 2 * votes > RUNS


def _column(frame: Frame, name: str, graph: Graph) -> Array:
    """Give a column of a result as an array where the graph lives."""
    column = kinds.without_proxy(frame)[0][name]
    return to_device(kinds.to_array(column), graph.device)
