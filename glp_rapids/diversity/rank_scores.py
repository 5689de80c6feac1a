"""Structural diversity on ranks of which each has the rows of its range, and gets all others.

An ego-network has edges between any neighbours of a vertex, so every rank needs the lists of
nearly all: as in the search of Huang et al. on several GPUs, each holds all of them, without ids.
Who evaluates which vertex follows what they cost, not whose range they are in; the scores go to
the rank whose they are.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from glp_rapids.common.segments import integer_sums, segment_ids, segment_offsets
from glp_rapids.device import array_module, to_device, to_host
from glp_rapids.diversity.costs import costs
from glp_rapids.diversity.models import model_of
from glp_rapids.diversity.search import every_k, level_of
from glp_rapids.diversity.team import DiversityTeam
from glp_rapids.frames.kinds import set_attributes
from glp_rapids.graph.graph import Graph
from glp_rapids.graph.rows import CSR
from glp_rapids.graph.vertex_ids import VertexIds
from glp_rapids.multigpu.work_stealing import packed, units_of

if TYPE_CHECKING:
    from glp_rapids.frames.kinds import Frame
    from glp_rapids.propagation.rank_graph import RankGraph

Array = Any
UNITS_A_RANK = 64  # that vertices are dealt in; the more, the better they even out


def scores_of_rank(graph: RankGraph, options: Any, run: Any, *, k: int | None, model: str) -> Frame:
    """Return the scores of this rank's vertices, as `structural_diversity` has them.

    ``graph`` has the rows of both directions. ``options`` and ``run``, which other functions on
    ranks need, are of no use here.
    """
    begin, exchange, part = time.perf_counter(), graph.exchange, graph.part
    about, number = model_of(model), graph.number_of_vertices
    rows = _all_rows(graph)
    whole = Graph(rows.indptr, rows.indices, None, False, VertexIds.numbers(number, graph.device))
    dealt = _dealt(whole, model, exchange.ranks) if not exchange.rank else np.empty(0, np.int32)
    (dealt,) = exchange.allgather([to_device(dealt, graph.device)])
    xp = array_module(dealt)
    mine = xp.flatnonzero(dealt == exchange.rank).astype(graph.index_dtype)
    team = DiversityTeam(
        whole, rows, devices=None, memory_limit=None,
        tell=lambda vertices: exchange.refuse_failed(),  # which ends this rank, too
    )  # fmt: skip
    if k is None:
        found = every_k(*team.every_score(mine, model), about.least_k)
        vertex, columns = _sent_home(mine[found.pop("vertex")], found, exchange, part.bounds)
    else:
        scores = team.scores(mine, level_of(k, number, about), model)
        vertex, score = None, xp.zeros(number, np.int32)
        places, told = exchange.allgather([mine, scores])
        score[places] = told
        columns = {"score": score}
    facts = {
        "model": model, "k": k, "evaluated": int(mine.size), "pruned": 0, **team.report(),
        "device": graph.device, "rank": exchange.rank, "vertices": part.last - part.first,
        "entries": part.rows.number_of_edges, "bytes_sent": exchange.bytes,
        "seconds_waiting": exchange.waiting, "seconds": time.perf_counter() - begin,
    }  # fmt: skip
    return set_attributes(graph.frame(columns, vertex), facts)


def _all_rows(graph: RankGraph) -> CSR:
    """Return the lists of all vertices without self-loops, each neighbour once."""
    rows, first, last = graph.part.rows, graph.part.first, graph.part.last
    xp, indices = array_module(rows.indptr), rows.indices
    row = segment_ids(rows.indptr, indices.dtype, indices.size)
    kept = row != indices
    # neighbours ascend; of reciprocal edges there are two
    kept[1:] &= (row[1:] != row[:-1]) | (indices[1:] != indices[:-1])
    degree = integer_sums(kept, rows.indptr)[first:last]
    (degree,) = graph.exchange.allgather([xp.ascontiguousarray(degree)])
    (indices,) = graph.exchange.allgather([indices[kept]])
    return CSR(segment_offsets(degree), indices, None)


def _dealt(graph: Graph, model: str, ranks: int) -> np.ndarray:
    """Deal all vertices to ranks, so that each has as much to do."""
    dealt = np.zeros(graph.number_of_vertices, np.int32)
    if not dealt.size:
        return dealt
    everyone = array_module(graph.indptr).arange(dealt.size)
    cost = to_host(costs(graph, graph, everyone, model).each)
    units, totals = units_of(cost, ranks * UNITS_A_RANK)
    for rank, share in enumerate(packed(totals, ranks)):
        for unit in share:
            dealt[units[unit]] = rank
    return dealt


def _sent_home(
    vertex: Array, columns: dict[str, Array], exchange: Any, bounds: Sequence[int]
) -> tuple[Array, dict[str, Array]]:
    """Send rows to the ranks in whose ranges their vertices are, where they come in order.

    The rows of a vertex come from one rank, which has them in order.
    """
    xp = array_module(vertex)
    owner = xp.searchsorted(xp.asarray(bounds[1:]), vertex, side="right")
    places = [xp.flatnonzero(owner == rank) for rank in range(exchange.ranks)]

    def sent(values: Array) -> Array:
        return xp.concatenate(exchange.alltoall([values[some] for some in places]))

    vertex, columns = sent(vertex), {name: sent(values) for name, values in columns.items()}
    order = xp.argsort(vertex, kind="stable")
    return vertex[order], {name: values[order] for name, values in columns.items()}
