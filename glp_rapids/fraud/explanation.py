"""Why an account has its score: the strongest paths from it to the blacklist.

A score is a sum over walks to the seeds, each the product of damping * w / sqrt(d d') over its
edges (`system` has the equation). The k simple paths of the largest products are found by Yen's
algorithm (Finding the K shortest loopless paths in a network, Management Science 17, 1971, with
Lawler's rule), whose searches go best-first and leave out what cannot matter: from a vertex on, no
path is worth more than its score.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Mapping
from itertools import pairwise
from typing import Any, NamedTuple, Unpack

import numpy as np

from glp_rapids.common.calls import guarded, warn_caller
from glp_rapids.common.checks import check_integer, check_share
from glp_rapids.common.scans import places_where
from glp_rapids.device import all_true, device_of, to_device, to_host
from glp_rapids.frames import kinds
from glp_rapids.frames.facts import set_attributes
from glp_rapids.frames.kinds import Frame
from glp_rapids.fraud.clock import NUMBERS
from glp_rapids.fraud.placing import prepared
from glp_rapids.fraud.system import times_as_far
from glp_rapids.fraud.tables import Table
from glp_rapids.fraud.totals import mean_traded, row_weights
from glp_rapids.fraud.window import SlidingWindow
from glp_rapids.graph.graph import Graph
from glp_rapids.ingest.options import EdgeOptions

Array = Any
Path = tuple[int, ...]
DAMPING = 0.85  # of `account_scores`, by default


class Found(NamedTuple):
    """A path from the account to a seed, and the product along it."""

    product: float
    path: Path


@guarded
def explain(
    graph: Any,
    scores: Frame,
    vertex: Any,
    k: int = 3,
    *,
    damping: float | None = None,
    least: float = 1e-6,
    **edges: Unpack[EdgeOptions],
) -> Frame:
    """List the strongest paths from an account to the blacklist: the reasons for its score.

    Parameters
    ----------
    graph : SlidingWindow, or whatever `as_graph` takes, with its keywords
        As it was given to `account_scores`.
    scores : frame
        ``vertex, score, is_seed``, as `account_scores` returned it for this graph.
    vertex : id
        The account; a tuple for ids of several columns.
    k
        How many paths, at the most.
    damping : float, optional
        As it was given to `account_scores`. None: as ``scores.attrs`` says; else 0.85, with a
        warning, for pandas and cuDF leave it out where frames are merged.
    least
        Paths that add less than this part of the account's score are not looked for.

    Returns
    -------
    frame
        A row for every step of every path, the strongest path first: ``path`` (0, 1, ...), ``step``
        (0, 1, ...), ``source, destination`` (``0_source``, ... for ids of several columns; the
        first source is the account, the last destination a seed), ``transfers`` between the two
        (without a window, the weight of the edge), ``amount`` (of a window, else the weight, too),
        ``contribution``: what the path adds to the score, the product over its steps of damping
        times weight over the root of what the edges of both ends weigh. Of a window also ``first``
        and ``last``, when the two traded at first and at last. No rows if the account is a seed
        itself, or its score is 0. ``.attrs["glp"]``: ``score`` of the account, ``explained``, what
        the paths add up to of it, ``paths``, how many there are, and ``damping``.

    Raises
    ------
    ValueError
        ``vertex`` is no vertex, the window is empty, the graph directed, an option out of range,
        or ``scores`` is no frame of scores of this graph's vertices, or says that it is of one
        whose edges weigh otherwise.
    TypeError
        A type is not as described.

    Notes
    -----
    Paths visit no vertex twice, end at the first seed, and do not pass where the score is 0; of
    those, these k are the strongest; of equal ones the first by the order of the ids. A graph on a
    GPU is searched on the host. Yen's algorithm makes k times as many searches as a path has
    steps, and each reads only the rows around the account; times are looked up in all rows
    of the window.

    Examples
    --------
    >>> import pandas as pd
    >>> from glp_rapids.fraud import account_scores, explain
    >>> transfers = pd.DataFrame({"src": ["a", "a", "b"], "dst": ["b", "b", "c"]})
    >>> scores = account_scores(transfers, ["a"])
    >>> explain(transfers, scores, "c")[["path", "source", "destination", "contribution"]].round(3)
       path source destination  contribution
    0     0      c           b         0.341
    1     0      b           a         0.341
    """
    window = graph if isinstance(graph, SlidingWindow) else None
    transfers = prepared(graph, edges)
    return explained(transfers.graph, transfers.amounts, window, scores, vertex, k, damping, least)


def explained(
    transfers: Graph, amounts: Graph | None, window: SlidingWindow | None, scores: Frame,
    vertex: Any, k: int, damping: float | None, least: float,
    known: Mapping[str, Any] | None = None,
) -> Frame:  # fmt: skip
    """List the strongest paths in a graph; ``known``: of the scores, if they do not say so."""
    check_integer("k", k, 1)
    check_share("least", least, "above 0 and at most 1", zero=False)
    kind, ids = transfers.vertices.kind, transfers.vertices
    table = Table(scores, "scores", "score", "is_seed", keys=ids.names())
    facts = getattr(table.frame, "attrs", {}).get("glp", {})
    if damping is None and "damping" not in facts:
        warn_caller(
            f"scores do not say by which damping they were computed: {DAMPING} is taken, which "
            "find_clusters and Monitor do not use; pass damping="
        )
    if damping is None:
        damping = facts.get("damping", DAMPING)
    check_share("damping", damping, "above 0 and at most 1", zero=False)
    host = transfers.to("cpu")
    single = [vertex] if not isinstance(vertex, list) else vertex
    start = to_host(ids.lookup(single, "vertex"))
    if start.size != 1:
        raise ValueError(f"vertex must be one id, not {start.size}")
    search = _Search(host, table, float(damping), facts if known is None else known)
    if known is None:
        search.refuse_other_weights(facts)
    paths = search.strongest(int(start[0]), int(min(k, 1 << 40)), float(least))
    told = {
        "score": float(search.score[start[0]]),
        "explained": math.fsum(path.product for path in paths), "paths": len(paths),
        "damping": float(damping),
    }  # fmt: skip
    return set_attributes(_frame(paths, transfers, host, amounts, window, kind), told)


class _Search:
    """Best-first search for simple paths to seeds, in one graph with one set of scores."""

    def __init__(
        self, graph: Graph, table: Table, damping: float, known: Mapping[str, Any]
    ) -> None:  # fmt: skip
        place, score = table.places(graph.vertices), table.numbers("score")
        if not all_true(np.isfinite(score) & (score >= 0)):
            raise ValueError("scores hold some that are null, infinite or negative; drop the rows")
        here = place >= 0
        if np.count_nonzero(here) < graph.number_of_vertices:  # each is there once at the most
            raise ValueError(
                "scores lack some vertices of the graph; pass those that account_scores returned "
                "for this graph"
            )
        self.score = np.zeros(graph.number_of_vertices)
        self.score[place[here]] = score[here]
        self.is_seed = np.zeros(graph.number_of_vertices, dtype=bool)
        self.is_seed[place[here]] = table.truths("is_seed")[here]
        self.graph, self.damping = graph, damping
        self.root = np.sqrt(row_weights(graph))
        slack = math.inf  # where it is not known how exact scores are, they bound nothing
        if damping < 1 and known.keys() >= {"error", "mean_weight"}:
            slack = known["error"] * times_as_far(self.root, known["mean_weight"])
        bound = np.minimum(self.score + slack, damping)
        self.bound = np.where(self.is_seed, 1.0, np.where(self.score > 0, bound, 0.0))

    def refuse_other_weights(self, facts: Mapping[str, Any]) -> None:
        """Raise if scores say that accounts trade something else on average than in this graph."""
        if facts.get("good") != 0 or "mean_weight" not in facts:  # good accounts do not count
            return
        own, of_scores = mean_traded(row_weights(self.graph), self.is_seed), facts["mean_weight"]
        if not math.isclose(own, of_scores, rel_tol=1e-9):
            raise ValueError(
                f"scores are of another graph, or of other weights: accounts trade {of_scores:.6g} "
                f"there on average, and {own:.6g} in this one; compute them anew, or pass the "
                "graph as account_scores had it"
            )

    def strongest(self, start: int, k: int, least: float) -> list[Found]:
        """Find the k simple paths with the largest products, by Yen's algorithm."""
        if self.is_seed[start] or not self.score[start] > 0:
            return []
        floor = least * self.score[start]
        first = self._best((start,), 1.0, frozenset(), floor)
        found: list[Found] = []
        waiting = [] if first is None else [(-first.product, first.path, 0)]
        while waiting and len(found) < k:
            product, path, deviates = heapq.heappop(waiting)
            found.append(Found(-product, path))
            for place in range(deviates, len(path) - 1):
                root = path[: place + 1]
                # steps out of this root that lead to paths that are found already
                taken = frozenset(
                    other.path[place + 1] for other in found if other.path[: place + 1] == root
                )
                other = self._best(root, self._product(root), taken, floor)
                if other is not None:
                    heapq.heappush(waiting, (-other.product, other.path, place))
        return found

    def _product(self, path: Path) -> float:
        product = 1.0
        for source, destination in pairwise(path):
            neighbours, factors = self._steps(source)
            product *= float(factors[np.searchsorted(neighbours, destination)])
        return product

    def _steps(self, vertex: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the neighbours of a vertex, ascending, and what a step to each is worth."""
        row = slice(self.graph.indptr[vertex], self.graph.indptr[vertex + 1])
        neighbours = self.graph.indices[row]
        weights = 1.0 if self.graph.weights is None else self.graph.weights[row].astype(np.float64)
        with np.errstate(divide="ignore", invalid="ignore"):
            # one by one: the product of two roots may be beyond all floats
            factors = self.damping * (weights / self.root[vertex] / self.root[neighbours])
        return neighbours, factors

    def _best(self, root: Path, product: float, taken: frozenset[int], floor: float) -> Any:
        """Find the strongest path that begins with ``root`` and goes on elsewhere than ``taken``.

        A path waits under a bound of all that it may become; a finished one waits behind those
        that may still become as strong, and of equals the first by its vertices is taken.
        """
        avoided = set(root)
        best = {root[-1]: (product, root)}
        heap = [(-product, False, root, product)]
        while heap:
            _, finished, path, product = heapq.heappop(heap)
            if finished:
                return Found(product, path)
            last = path[-1]
            if best[last] != (product, path):
                continue
            neighbours, factors = self._steps(last)
            further = product * factors
            hope = further * self.bound[neighbours]
            for i in np.flatnonzero((hope >= floor) & (hope > 0) & (neighbours != last)).tolist():
                vertex, there = int(neighbours[i]), float(further[i])
                if vertex in avoided or (last == root[-1] and vertex in taken):
                    continue
                longer = (*path, vertex)
                known = best.get(vertex)
                if known and (known[0] > there or (known[0] == there and known[1] < longer)):
                    continue
                best[vertex] = there, longer
                heapq.heappush(heap, (-float(hope[i]), bool(self.is_seed[vertex]), longer, there))
        return None


def _frame(
    found: list[Found], given: Graph, host: Graph, amounts: Graph | None,
    window: SlidingWindow | None, kind: str,
) -> Frame:  # fmt: skip
    """Make the frame of the paths."""
    steps = [
        (number, step, *ends, one.product)
        for number, one in enumerate(found)
        for step, ends in enumerate(pairwise(one.path))
    ]
    columns = list(zip(*steps, strict=True)) or [(), (), (), (), ()]
    source, destination = (np.array(column, dtype=np.int64) for column in columns[2:4])
    entry = np.array(
        [
            host.indptr[u] + np.searchsorted(host.indices[host.indptr[u] : host.indptr[u + 1]], v)
            for u, v in zip(source, destination, strict=True)
        ],
        dtype=np.int64,
    )
    weights = np.ones(host.indices.size, np.int64) if host.weights is None else host.weights
    worth = weights if amounts is None else amounts.to("cpu").weights
    ends = (to_device(index, given.device) for index in (source, destination))
    result = {
        "path": np.array(columns[0], dtype=np.int64),
        "step": np.array(columns[1], dtype=np.int64),
        **given.vertices.take(next(ends), "source"),
        **given.vertices.take(next(ends), "destination"),
        "transfers": weights[entry],
        "amount": worth[entry],
        "contribution": np.array(columns[4], dtype=np.float64),
    }
    if window is not None:
        result |= _times(window, source, destination)
    return kinds.to_frame(result, kind)


def _times(window: SlidingWindow, source: np.ndarray, destination: np.ndarray) -> dict[str, Any]:
    """Find when some pairs traded at first and at last, by one look at the rows of the window."""
    known = np.zeros(window.number_of_vertices, dtype=bool)
    known[source], known[destination] = True, True
    pairs, times = [], []
    for rows in window._state.engine.runs():
        there = to_device(known, device_of(rows.time))
        some = rows[places_where(there[rows.source] & there[rows.destination])]
        ends = (to_host(end).astype(np.int64) for end in (some.source, some.destination))
        pairs.append(_unordered(*ends, known.size))
        times.append(to_host(some.time))
    asked, pair, time = (
        _unordered(source, destination, known.size), np.concatenate(pairs), np.concatenate(times)
    )  # fmt: skip
    order = np.lexsort((time, pair))
    pair, time = pair[order], time[order]
    first = time[np.searchsorted(pair, asked)]
    last = time[np.searchsorted(pair, asked, side="right") - 1]
    if window._state.times != NUMBERS:
        first, last = first.astype("M8[us]"), last.astype("M8[us]")
    return {"first": first, "last": last}


def _unordered(one: np.ndarray, other: np.ndarray, vertices: int) -> np.ndarray:
    return np.minimum(one, other) * vertices + np.maximum(one, other)
