"""The engines of one call of structural diversity, asked as if they were one."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from glp_rapids.common.segments import segment_ids
from glp_rapids.diversity.costs import costs
from glp_rapids.diversity.engines import ego_offsets, engine_for
from glp_rapids.graph.graph import Graph
from glp_rapids.graph.rows import CSR
from glp_rapids.multigpu.workers import Costs, Team

Array = Any


class DiversityTeam(Team):
    """Workers that count contexts; asked like an engine.

    Parameters
    ----------
    graph, csr
        The graph, which keeps engines, and its simple CSR.
    **options
        Those of `Team`.
    """

    def __init__(self, graph: Graph, csr: CSR, **options: Any) -> None:
        super().__init__(graph, csr, partial(engine_for, graph), **options)

    def scores(self, vertices: Array, k: int, model: str) -> Array:
        """Count the contexts of every vertex."""
        order, found = self._ask("scores", vertices, k, model)
        if order is None:
            return found
        scores = self._xp.empty_like(found)
        scores[order] = found
        return scores

    def members(self, vertices: Array, k: int, model: str) -> Array:
        """Name the context of every neighbour by the place of its first member; -1: it has none."""
        return self._rows(vertices, *self._ask("members", vertices, k, model))

    def every_score(self, vertices: Array, model: str) -> tuple[Array, Array]:
        """Count the contexts for every k from 1 to the degree: offsets and scores."""
        scores = self._rows(vertices, *self._ask("every_score", vertices, model))
        return ego_offsets(self._csr.indptr, vertices), scores

    def _ask(self, method: str, vertices: Array, *arguments: Any) -> tuple[Array | None, Array]:
        """Ask for all vertices; return their places in the order of the answer (None: as asked)."""
        if not vertices.size:
            return None, self._xp.empty(0, dtype=np.int32)
        model = arguments[-1]

        def call(engine: Any, unit: Array) -> Array:
            found = getattr(engine, method)(unit, *arguments)
            return found[1] if isinstance(found, tuple) else found

        return self.map(call, vertices, self._costs_by(model), model)

    def _costs_by(self, model: str) -> Callable[[Array], Costs]:
        most_alone = self.workers[0].engine.most_alone(model)
        return lambda vertices: costs(self._graph, self._csr, vertices, model, most_alone)

    def _rows(self, vertices: Array, order: Array | None, found: Array) -> Array:
        """Put rows that came in some order into that of the vertices."""
        if order is None:
            return found
        xp, indptr = self._xp, self._csr.indptr
        offsets, moved = ego_offsets(indptr, vertices), ego_offsets(indptr, vertices[order])
        row = segment_ids(moved, self._csr.indices.dtype, found.size)
        rows = xp.empty_like(found)
        rows[(offsets[order] - moved[:-1])[row] + xp.arange(row.size)] = found
        return rows
