"""The CPU engine of ego-networks: a call of compiled code for many of them, on one thread."""

from __future__ import annotations

import numpy as np

from glp_rapids.cohesion.engines.cpu import CpuEngine, Oriented
from glp_rapids.device import LackOfMemory, memory_free
from glp_rapids.diversity.engines import ego_offsets
from glp_rapids.diversity.kernels import cpu_ego
from glp_rapids.jit.interrupts import call, interruptible

_MODELS = {"component": cpu_ego.COMPONENT, "core": cpu_ego.CORE, "truss": cpu_ego.TRUSS}


class CpuEgoEngine(CpuEngine):
    """Ego-networks of one simple undirected graph; and its own cores, trusses and triangles."""

    def __init__(
        self,
        indptr: np.ndarray,
        indices: np.ndarray,
        *,
        number: int | None = None,
        memory_limit: int | None = None,
        oriented: Oriented | None = None,
    ) -> None:
        super().__init__(indptr, indices, number=number, oriented=oriented)
        self._memory_limit = memory_limit

    def most_alone(self, model: str) -> None:
        """Return the members of the largest ego-network that is not worked on with others: none."""

    @interruptible
    def scores(self, vertices: np.ndarray, k: int, model: str) -> np.ndarray:
        """Count the contexts of every vertex."""
        vertices, graph = self._prepared(vertices)
        result = np.empty(vertices.size, np.int32)
        what = self._mark(), self._level(k), _MODELS[model]
        call(cpu_ego.scores, vertices, graph, *what, result)
        return result

    @interruptible
    def every_score(self, vertices: np.ndarray, model: str) -> tuple[np.ndarray, np.ndarray]:
        """Count the contexts for every k from 1 to the degree: offsets and scores."""
        vertices, graph = self._prepared(vertices)
        offsets = ego_offsets(self.indptr, vertices)
        result = np.empty(offsets[-1], np.int32)
        what = self._mark(), _MODELS[model]
        call(cpu_ego.every_score, vertices, graph, *what, offsets, result)
        return offsets, result

    @interruptible
    def members(self, vertices: np.ndarray, k: int, model: str) -> np.ndarray:
        """Name the context of every neighbour by the place of its first member; -1: it has none."""
        vertices, graph = self._prepared(vertices)
        result = np.empty(ego_offsets(self.indptr, vertices)[-1], np.int32)
        what = self._mark(), self._level(k), _MODELS[model]
        call(cpu_ego.members, vertices, graph, *what, result)
        return result

    @interruptible
    def ego_rows(self, vertices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Build indptr and indices of the ego-networks, a node for each of the rows' entries."""
        vertices, graph = self._prepared(vertices)
        nodes = ego_offsets(self.indptr, vertices)[-1]
        if nodes > np.iinfo(np.int32).max:
            raise LackOfMemory(
                f"{vertices.size} ego-networks have {nodes} nodes, more than int32 can number; "
                "ask for fewer vertices at once"
            )
        indptr = np.zeros(nodes + 1, np.int64)
        call(cpu_ego.ego_degrees, vertices, graph, self._mark(), indptr)
        np.cumsum(indptr, out=indptr)
        indices = np.empty(indptr[-1], np.int32)
        call(cpu_ego.ego_entries, vertices, graph, self._mark(), indptr, indices)
        return indptr, indices

    def _prepared(self, vertices: np.ndarray) -> tuple[np.ndarray, tuple[np.ndarray, ...]]:
        """Return vertices and graph as the kernels take them, once the memory is known to do."""
        self.batches += 1
        vertices = np.ascontiguousarray(vertices, np.int64)
        graph = *self._symmetric, *self._oriented()
        limit = min(self._memory_limit or memory_free("cpu"), np.iinfo(np.int64).max)
        place = cpu_ego.first_above(limit, vertices, graph)
        if place >= 0:
            vertex = vertices[place]
            degree = self.indptr[vertex + 1] - self.indptr[vertex]
            raise LackOfMemory(
                f"the ego-network of a vertex with {degree:,} neighbours may need "
                f"{cpu_ego.bytes_needed(vertex, graph):,} bytes, and there are {limit:,}; "
                "raise memory_limit"
            )
        return vertices, graph

    def _mark(self) -> np.ndarray:
        return np.zeros(self.indptr.size - 1, np.int32)
