"""Structural diversity on ranks that each have a part of a graph: they share out its vertices.

Every rank gets the rows of all, as the GPUs of Huang et al. do, since the neighbours of some
thousand vertices are most of a social graph. Then each deals the vertices of its range to all
ranks by what their ego-networks cost, and is sent their scores.
"""

from __future__ import annotations

import time
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from glp_rapids.cohesion.memory import check_memory
from glp_rapids.common.segments import segment_offsets
from glp_rapids.device import array_module, to_host
from glp_rapids.diversity.costs import ENTRIES_READ, costs, entries_read_of_rows
from glp_rapids.diversity.models import model_of
from glp_rapids.diversity.search import every_k, level_of, number_of_best
from glp_rapids.diversity.team import DiversityTeam
from glp_rapids.diversity.top_t import best_vertices, contexts_of
from glp_rapids.frames.facts import set_attributes
from glp_rapids.frames.kinds import to_frame
from glp_rapids.graph.graph import Graph
from glp_rapids.graph.simple import simple
from glp_rapids.graph.vertex_ids import VertexIds
from glp_rapids.multigpu.dealing import dealt
from glp_rapids.multigpu.partition import rows_of_all

if TYPE_CHECKING:
    from glp_rapids.frames.kinds import Frame
    from glp_rapids.multigpu.exchange import Exchange
    from glp_rapids.propagation.rank_graph import RankGraph

Array = Any


class RankTeam:
    """A rank's workers, asked together with those of all other ranks.

    Parameters
    ----------
    ranks : RankGraph
        What this rank has of an undirected graph.
    model : str
        What is counted.
    memory_limit : int, optional
        Of each rank.
    """

    def __init__(self, ranks: RankGraph, model: str, memory_limit: int | None) -> None:
        begin = time.perf_counter()
        self.exchange, self._part, self._model = ranks.exchange, ranks.part, model
        rows, number = ranks.part.rows, ranks.number_of_vertices
        ids = VertexIds.numbers(number, ranks.device)
        own = simple(Graph(rows.indptr, rows.indices, None, False, ids), False)
        self._xp = array_module(rows.indptr)
        self.csr = rows_of_all(self.exchange, own, ranks.part.bounds)
        self.graph = Graph(self.csr.indptr, self.csr.indices, None, False, ids)
        check_memory("structural_diversity", self.graph, None)
        read = entries_read_of_rows(own, self.csr.degree)[self._part.first : self._part.last]
        (read,) = self.exchange.allgather([self._xp.ascontiguousarray(read)])
        self.graph.keep(ENTRIES_READ, lambda: read)
        # threads look after each unit whether other ranks are there; a GPU is asked once for all
        tell = partial(_look, self.exchange) if ranks.device == "cpu" else None
        self.team = DiversityTeam(self.graph, self.csr, memory_limit=memory_limit, tell=tell)
        self._begin, self._gathering, self._evaluated = begin, time.perf_counter() - begin, 0

    @property
    def everyone(self) -> Array:
        """The vertices of this rank's range."""
        return self._xp.arange(self._part.first, self._part.last, dtype=self.csr.indices.dtype)

    def scores(self, vertices: Array, k: int) -> Array:
        """Count the contexts of some of this rank's vertices; each rank asks for its own."""
        places, asked = self._dealt(vertices)
        found = self.team.scores(self._xp.concatenate(asked), k, self._model)
        scores = self._xp.empty(vertices.size, np.int32)
        cuts = np.cumsum([0, *(one.size for one in asked)]).tolist()
        told = self.exchange.alltoall([found[first:last] for first, last in pairwise(cuts)])
        for place, of_rank in zip(places, told, strict=True):
            scores[place] = of_rank
        return scores

    def every_k(self, vertices: Array, least_k: int) -> dict[str, Array]:
        """List every k with a context of this rank's vertices: ``vertex, k, score``."""
        xp = self._xp
        _, asked = self._dealt(vertices)
        whose = xp.concatenate(asked)
        found = every_k(*self.team.every_score(whose, self._model), least_k)
        of_ranks = segment_offsets(np.array([one.size for one in asked]))
        cuts = to_host(xp.searchsorted(found["vertex"], xp.asarray(of_ranks))).tolist()
        found["vertex"] = whose[found["vertex"]]
        for name, values in found.items():
            told = self.exchange.alltoall([values[first:last] for first, last in pairwise(cuts)])
            found[name] = xp.concatenate(told)
        order = xp.argsort(found["vertex"], kind="stable")  # one rank has all rows of a vertex
        return {name: values[order] for name, values in found.items()}

    def scores_on_all(self, vertices: Array, k: int) -> Array:
        """Count the contexts of vertices, which all ranks name alike, for all ranks."""
        xp, part = self._xp, self._part
        order = xp.argsort(vertices)
        own = vertices[order]
        own = own[(own >= part.first) & (own < part.last)]
        (told,) = self.exchange.allgather([self.scores(own, k)])
        scores = xp.empty_like(told)
        scores[order] = told
        return scores

    def report(self, k: int | None, evaluated: int) -> dict[str, Any]:
        """Sum up how it went, for ``attrs``; all ranks together have ``evaluated`` so many."""
        part = self._part
        return {
            "model": self._model,
            "k": k,
            "evaluated": self._evaluated,
            "pruned": self.graph.number_of_vertices - evaluated,
            **self.team.report(),
            "seconds": time.perf_counter() - self._begin,
            "seconds_gathering": self._gathering,
            "rank": self.exchange.rank,
            "vertices": part.last - part.first,
            "entries": part.rows.number_of_edges,
            "bytes_sent": self.exchange.bytes,
            "seconds_waiting": self.exchange.waiting,
        }

    def _dealt(self, vertices: Array) -> tuple[list[Array], list[Array]]:
        """Deal this rank's vertices to all; return the places of each rank's, and who came here."""
        most_alone = self.team.workers[0].engine.most_alone(self._model)
        about = costs(self.graph, self.csr, vertices, self._model, most_alone)
        together = self._xp.zeros(vertices.size, bool)
        if about.together is not None:
            together = about.together()
        each = self._xp.where(together, about.times * about.each, about.each)
        places = dealt(self.exchange, each, together)
        vertices = vertices.astype(self.csr.indices.dtype, copy=False)
        asked = self.exchange.alltoall([vertices[place] for place in places])
        self._evaluated += sum(one.size for one in asked)
        return places, asked


def _look(exchange: Exchange, _: int) -> None:
    exchange.refuse_failed()


def scores_of_all(
    graph: RankGraph, *, k: int | None, model: str, memory_limit: int | None
) -> list[Frame]:
    """Return a frame of this rank's vertices, as `structural_diversity` does of all."""
    team, about = RankTeam(graph, model, memory_limit), model_of(model)
    if k is None:
        columns = team.every_k(team.everyone, about.least_k)
        frame = graph.frame(columns, columns.pop("vertex"))
    else:
        level = level_of(k, graph.number_of_vertices, about)
        frame = graph.frame({"score": team.scores(team.everyone, level)})
    return [set_attributes(frame, team.report(k, graph.number_of_vertices))]


def best_of_all(
    graph: RankGraph, *, t: int, k: int, model: str, contexts: bool, prune: bool,
    memory_limit: int | None,
) -> list[Frame]:  # fmt: skip
    """Return frames of this rank's part of the best, as `top_structural_diversity` does of all.

    All ranks search alike, and evaluate each batch together; of the best each rank then has some
    that follow one another.
    """
    number, kind = graph.number_of_vertices, graph.vertices.kind
    t = number_of_best(t, number)
    team, about = RankTeam(graph, model, memory_limit), model_of(model)
    level = level_of(k, number, about)
    upper_bound = team.csr.degree // about.fewest_members(level)
    best, scores, evaluated = best_vertices(
        upper_bound, t, lambda vertices: team.scores_on_all(vertices, level), prune=prune
    )
    rank, ranks = team.exchange.rank, team.exchange.ranks
    own = slice(t * rank // ranks, t * (rank + 1) // ranks)
    best, scores = best[own].astype(team.csr.indices.dtype), scores[own]
    frames = [to_frame({**graph.external_columns(best, "vertex"), "score": scores}, kind)]
    if contexts:
        named = team.team.members(best, level, model)
        vertex, context, member = contexts_of(team.csr, best, named)
        columns = {**graph.external_columns(vertex, "vertex"), "context": context}
        frames.append(to_frame({**columns, **graph.external_columns(member, "member")}, kind))
    facts = team.report(k, evaluated)
    return [set_attributes(frame, dict(facts)) for frame in frames]
