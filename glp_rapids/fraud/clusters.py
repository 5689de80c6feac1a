"""From a blacklist to suspicious clusters: who trades with the known ones, and with one another.

Three steps. Seeded label propagation scores every account by how strongly the blacklist reaches
it. Of those above a threshold only the core is looked at: accounts that have enough partners in it,
and enough of their trade, since who has not cannot be in a cluster whatever the communities are.
In the core weighted label propagation finds communities: it runs several times, and what most of
the runs put together belongs together (Lancichinetti and Fortunato, Consensus clustering in complex
networks, 2012), since a single run now and then breaks a ring up. Of every community again only the
core stays. Scores and communities are the pipeline of C. Ye et al., GPU-Accelerated Graph Label
Propagation for Real-Time Fraud Detection (SIGMOD 2021); cores keep honest customers of a guilty
merchant out.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, Unpack

import numpy as np

from glp_rapids.common.calls import guarded, warn_caller
from glp_rapids.common.checks import check_share, is_integer, shown
from glp_rapids.common.progress import Progress, Report
from glp_rapids.common.scans import integer_sum, places_where
from glp_rapids.common.sizes import as_bytes
from glp_rapids.device import to_device, to_host
from glp_rapids.frames import kinds
from glp_rapids.frames.facts import set_attributes
from glp_rapids.frames.kinds import Frame
from glp_rapids.fraud.agreement import agreed
from glp_rapids.fraud.cores import connected_core, largest_core
from glp_rapids.fraud.known import Known, known_accounts, marked
from glp_rapids.fraud.placing import Transfers, prepared, telling, where_it_fits
from glp_rapids.fraud.scores import Rule, checked, column, more_of, score_frame
from glp_rapids.fraud.totals import row_weights, traded_inside
from glp_rapids.graph.call_memory import Part, check_clusters
from glp_rapids.graph.graph import Graph
from glp_rapids.graph.subgraph import Groups, induced
from glp_rapids.ingest.options import EdgeOptions

Array = Any
ROUNDING = 2.0**-51  # of a product of two floats, and of a share that is one
GIANT_FROM = 100  # accounts: of fewer, one ring may well be half


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
    tol: float
    max_iter: int
    good: Any
    hubs: int | None
    merchants: Any
    absent: str
    memory_limit: int | str | None
    progress: Progress
    device: str | None


@guarded
def find_clusters(
    graph: Any,
    seeds: Any,
    *,
    minimum_size: int = 6,
    minimum_score: float = 0.025,
    minimum_share: float = 0.2,
    minimum_partners: int = 5,
    damping: float = 0.8,
    tol: float = 1e-4,
    max_iter: int = 1000,
    good: Any = None,
    hubs: int | None = None,
    merchants: Any = None,
    absent: str = "raise",
    memory_limit: int | str | None = None,
    progress: Progress = False,
    **edges: Unpack[EdgeOptions],
) -> Findings:
    """Find the groups of accounts around a blacklist that trade mostly with one another.

    Parameters
    ----------
    graph, seeds, damping, tol, max_iter, good, hubs, absent
        As in `account_scores`. Kinds of seeds are told apart in ``scores`` only.
    merchants : list, array or Series of ids, optional
        A second kind of vertex: they carry suspicion and hold clusters together, but are no
        suspects. They are no members, and do not count in ``size``, ``seeds`` and ``score``. Those
        that are no vertex have no say.
    minimum_size
        Accounts in a cluster, seeds included, at the least.
    minimum_score
        Accounts that `account_scores` scores lower are not looked at.
    minimum_share
        Share of an account's trade that must stay inside the cluster, in [0, 1].
    minimum_partners
        Accounts of the cluster that a member must have traded with.
    memory_limit : int or str, optional
        As in `account_scores`; what clusters take is known, and held against it, once there are
        scores.
    progress : bool or callable
        As in `account_scores`; of clusters the ``step`` is "clusters", and after some runs of label
        propagation is told which ``run`` that was, and how many there are (``of``).

    Returns
    -------
    Findings
        ``clusters``, the most suspicious first: ``cluster`` (0, 1, ...), ``size``, ``seeds``
        (how many of them are on the blacklist), ``score`` (mean of the members' scores), ``value``
        (amounts of a window, else weights, traded inside), ``density`` (share of the pairs of
        members that traded), ``share`` (of all the trade of the members, what stays inside); with
        ``merchants`` also ``merchants``, how many hold it together, who then count in the last
        three. ``members``: ``vertex, cluster, score, is_seed``, by cluster and falling score.
        ``scores``: as `account_scores` returns them; its ``.attrs["glp"]`` is that of all three.

    Raises
    ------
    ValueError
        The window is empty, the graph directed, an option out of range, or a seed is no vertex.
    TypeError
        A type is not as described.
    MemoryError
        On the CPU it may take more than ``memory_limit``, or is sure to take more than is free; it
        says by how much.

    Notes
    -----
    O(edges) a sweep for the scores; what follows is confined to the accounts above
    ``minimum_score``, which was chosen for a ``damping`` of 0.8. That takes at most 60 bytes of
    every account, and of those that are looked at 95 a vertex and 41 an entry, 60 of one with an
    integer weight, 70 with another, or of a window; of fewer than a million entries more, since
    labels propagate on up to nine copies that have two million together. On a GPU it is a third
    more, counted. A cluster has at least one seed, which may be a merchant: a ring without any
    known member is not found. What an account pays to itself counts nowhere. Measured on
    `glp_rapids.datasets.transactions`
    (a million rows, a fifth of the members as seeds, generator seeds 0 to 11): of the accounts
    reported beside the seeds 100% are ring members, and 97% (at the least 94%) of the members that
    are no seeds are reported. With a tenth as seeds 82%; of rings that trade half as much, 67%.

    Examples
    --------
    >>> from glp_rapids.datasets import blacklist, transactions
    >>> from glp_rapids.fraud import find_clusters
    >>> frame, truth = transactions(20_000, accounts=2_000, merchants=200, rings=4, towns=10)
    >>> found = find_clusters(frame, blacklist(truth), source="source", destination="destination")
    >>> list(found.clusters.columns)
    ['cluster', 'size', 'seeds', 'score', 'value', 'density', 'share']
    """
    limits = Limits(minimum_size, minimum_score, minimum_share, minimum_partners)
    rule, most = checked(damping, tol, max_iter), as_bytes("memory_limit", memory_limit)
    with telling(progress, "find_clusters") as tell:
        transfers = prepared(graph, edges, "find_clusters", most, more_of(seeds), tell, True)
        sellers = marked(transfers.graph, merchants, "merchants")
        known = known_accounts(transfers.graph, seeds, good, absent, hubs)
        work = partial(_findings, known, sellers, rule, limits, tell)
        return where_it_fits(transfers, work)


def _findings(
    known: Known, sellers: Array | None, rule: Rule, limits: Limits, tell: Report | None,
    transfers: Transfers,
) -> Findings:  # fmt: skip
    """Score accounts, and find the clusters among them."""
    graph, units = transfers.graph, transfers.amounts
    if sellers is not None:
        sellers = to_device(sellers, graph.device)
    scores = score_frame(graph, known.to(graph), rule, tell=tell)
    score, is_seed = (column(scores, name, graph) for name in ("score", "is_seed"))
    close = _close(score, limits)
    part = Part(
        close.size, min(integer_sum(graph.degree[close]), close.size**2), graph.index_dtype,
        graph.weights if units is None else units.weights,
    )  # fmt: skip
    check_clusters(graph, part, transfers.limit)
    found = grouped(graph, units, score, is_seed, limits, sellers, transfers.scale, tell)
    frames = frames_of(found, graph, dict(scores.attrs["glp"]))
    return Findings(*frames, scores)


@dataclass(frozen=True)
class Limits:
    """What a cluster is, as `find_clusters` describes it."""

    minimum_size: int
    minimum_score: float
    minimum_share: float
    minimum_partners: int

    def __post_init__(self) -> None:
        for name in ("minimum_size", "minimum_partners"):
            number = getattr(self, name)
            if not is_integer(number) or number < 1:
                raise ValueError(f"{name} must be an integer of at least 1, not {shown(number)}")
            object.__setattr__(self, name, int(number))
        for name in ("minimum_score", "minimum_share"):
            check_share(name, getattr(self, name))
            object.__setattr__(self, name, float(getattr(self, name)))


class Clusters(NamedTuple):
    """Clusters, the most suspicious first, and who is in them, by ascending vertex; on the host.

    Of a member there are its vertex, its cluster, its score, and whether it is a seed.
    """

    member: np.ndarray
    cluster: np.ndarray
    score: np.ndarray
    is_seed: np.ndarray
    columns: dict[str, np.ndarray]


def grouped(
    transfers: Graph, units: Graph | None, score: Array, is_seed: Array, limits: Limits,
    merchants: Array | None = None, scale: int | None = None, tell: Report | None = None,
) -> Clusters:  # fmt: skip
    """Find the clusters among accounts that are scored.

    ``units``: amounts in whole numbers, of which ``scale`` are an amount of one. ``merchants``:
    marks of those.
    """
    close = _close(score, limits)
    total = row_weights(transfers)[close]
    # as many as .55 of 100 are 55, though floats have a product that is above it
    least = limits.minimum_share * (1 - ROUNDING), limits.minimum_partners
    inner, left = largest_core(induced(transfers, close), total, *least)
    close, total = close[left], total[left]
    pieces = connected_core(inner, agreed(inner, tell), total, *least)

    # What follows are dozens of operations on little, which a host has done by then.
    inside = places_where(pieces.community >= 0)
    member = close[inside]
    of = {
        "group": pieces.community[inside],
        "partners": pieces.partners[inside],
        "staying": pieces.trade[inside],
        "trade": total[inside],
        "score": score[member],
        "is_seed": is_seed[member],
    }
    if units is not None:
        of["units"] = traded_inside(units, member, of["group"])
    if merchants is not None:
        of["merchant"] = merchants[member]
    of = {name: to_host(values) for name, values in {"member": member, **of}.items()}
    return _ranked(of, close.size, transfers.number_of_vertices, limits, scale)


def _ranked(
    of: dict[str, np.ndarray], groups: int, vertices: int, limits: Limits, scale: int | None
) -> Clusters:
    """Say what clusters there are, given what is known of the members of so many groups."""
    group = Groups(of["group"], groups)
    _warn_of_giants(group.size, vertices)
    merchant = of.get("merchant")
    suspect = np.ones(of["group"].size, bool) if merchant is None else ~merchant
    size, seeds = group.sums(suspect), group.sums(of["is_seed"])
    score_sum, staying, trade = group.totals(
        np.where(suspect, of["score"], 0.0), of["staying"].astype(np.float64), of["trade"]
    )
    twice = staying if scale is None else group.sums(of["units"]) / np.float64(scale)
    mean = score_sum / np.maximum(size, 1)
    pairs = np.maximum(group.size * (group.size - 1), 1)
    # by falling score, then by the smallest vertex, which is the order the groups are in
    enough = np.flatnonzero((size >= limits.minimum_size) & (seeds > 0))
    order = enough[np.argsort(-mean[enough], kind="stable")]
    columns = {
        "cluster": np.arange(order.size),
        "size": size[order],
        "seeds": (seeds if merchant is None else group.sums(of["is_seed"] & suspect))[order],
        "score": mean[order],
        "value": (twice / 2)[order],
        "density": (group.sums(of["partners"]) / pairs)[order],
        "share": (staying / np.where(trade > 0, trade, 1.0))[order],
    }
    if merchant is not None:
        columns["merchants"] = (group.size - size)[order]
    place = np.full(group.size.size, -1)
    place[order] = columns["cluster"]
    cluster = place[group.of]
    named = suspect & (cluster >= 0)
    about = {name: of[name][named] for name in ("member", "score", "is_seed")}
    return Clusters(cluster=cluster[named], columns=columns, **about)


def _close(score: Array, limits: Limits) -> Array:
    """List the accounts that are looked at."""
    return places_where((score >= limits.minimum_score) & (score > 0))


def _warn_of_giants(sizes: Array, vertices: int) -> None:
    largest = int(sizes.max()) if sizes.size else 0
    if largest * 2 > vertices and vertices >= GIANT_FROM:
        warn_caller(
            f"one community holds {largest} of {vertices} accounts: hubs tie it together; name a "
            "limit, as hubs=1000, to which an account may have partners and pass suspicion on"
        )


def frames_of(found: Clusters, graph: Graph, report: dict[str, Any]) -> tuple[Frame, Frame]:
    """Make the frames of clusters and of their members."""
    by_cluster = np.lexsort((-found.score, found.cluster))
    columns = {"cluster": found.cluster, "score": found.score, "is_seed": found.is_seed}
    columns = {name: values[by_cluster] for name, values in columns.items()}
    members = graph.frame(columns, vertex=to_device(found.member[by_cluster], graph.device))
    clusters = kinds.to_frame(found.columns, graph.vertices.kind)
    for frame in (clusters, members):
        set_attributes(frame, dict(report))
    return clusters, members


@guarded
def suspicious_clusters(graph: Any, seeds: Any, **options: Unpack[ClusterOptions]) -> Frame:
    """List the suspicious clusters, the most suspicious first: `find_clusters`'s ``clusters``.

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
    The cost is that of `find_clusters`, which returns the members as well.

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
    """List the accounts of the suspicious clusters: `find_clusters`'s ``members``.

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
