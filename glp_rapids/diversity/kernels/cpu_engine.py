"""The CPU engine: what the kernels need, made once per graph, and a call of compiled code each.

A call runs on one thread and releases the GIL; several threads may call one engine at once. In
the main thread it can be interrupted.
"""

from __future__ import annotations

import numpy as np

from glp_rapids.cohesion.kernels import cpu
from glp_rapids.device import LackOfMemory, memory_free
from glp_rapids.diversity.kernels import cpu_ego
from glp_rapids.graph.simple import row_sums
from glp_rapids.graph.sort_cpu import rows_of
from glp_rapids.jit import forks
from glp_rapids.jit.interrupts import call, interruptible

_orienting = forks.Lock()
_MODELS = {"component": cpu_ego.COMPONENT, "core": cpu_ego.CORE, "truss": cpu_ego.TRUSS}


class CpuEngine:
    """Ego-networks, cores and trusses of one simple undirected graph (rows ascend, no loops)."""

    xp = np
    most_alone = None  # members of the largest ego-network not worked on with others: there is none

    def __init__(
        self,
        indptr: np.ndarray,
        indices: np.ndarray,
        *,
        number: int | None = None,
        memory_limit: int | None = None,
    ) -> None:
        self.indptr, self.indices = indptr, indices
        self.batches = 0
        self._memory_limit = memory_limit
        self._orientation: tuple[np.ndarray, np.ndarray] | None = None
        if indptr.size <= 1 << 31:
            indices = indices.astype(np.int32, copy=False).view(np.uint32)
        self._symmetric = np.ascontiguousarray(indptr, np.int64), np.ascontiguousarray(indices)

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
        offsets = self._offsets(vertices)
        result = np.empty(offsets[-1], np.int32)
        what = self._mark(), _MODELS[model]
        call(cpu_ego.every_score, vertices, graph, *what, offsets, result)
        return offsets, result

    @interruptible
    def members(self, vertices: np.ndarray, k: int, model: str) -> np.ndarray:
        """Give for every neighbour the place of the first member of its context, or -1."""
        vertices, graph = self._prepared(vertices)
        result = np.empty(self._offsets(vertices)[-1], np.int32)
        what = self._mark(), self._level(k), _MODELS[model]
        call(cpu_ego.members, vertices, graph, *what, result)
        return result

    @interruptible
    def ego_rows(self, vertices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Give indptr and indices of the ego-networks, a node for each of the rows' entries."""
        vertices, graph = self._prepared(vertices)
        nodes = self._offsets(vertices)[-1]
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

    @interruptible
    def common_neighbors(self) -> np.ndarray:
        """Count the common neighbours of the ends of every entry."""
        self.batches += 1
        return call(cpu.triangles_of_edges, *self._oriented())[self._edge()]

    def triangle_counts(self) -> np.ndarray:
        """Count the triangles that each vertex is a corner of."""
        # each is counted over both edges at this corner
        return row_sums(self.indptr, self.common_neighbors()) // 2

    @interruptible
    def core_number(self, k: int | None = None) -> np.ndarray:
        """Give the core number of every vertex; with k, k inside the k-core and less elsewhere."""
        self.batches += 1
        return call(cpu.core, *self._symmetric, self._level(k))[0]

    @interruptible
    def trussness(self, k: int | None = None, *, once: bool = False) -> np.ndarray:
        """Give the trussness of every entry; with k, k inside the k-truss and less elsewhere.

        ``once``: whoever asks reads it only at the entry of an edge's smaller end.
        """
        self.batches += 1
        edge = self._edge()
        no_matrix = np.empty((0, 0), np.uint64), np.empty((0, 0), np.uint32)
        rows = *self._symmetric, edge
        number, _ = call(cpu.truss, *self._oriented(), rows, no_matrix, self._level(k))
        return number[edge]

    def edges(
        self,
        least: int = 0,
        *,
        entries: np.ndarray | None = None,
        ends: np.ndarray | None = None,
        place: bool = False,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Give every edge once: its smaller end, its greater end and its entry there.

        Only those of a value of at least ``least``: that of this entry, or those of both ends.
        """
        rows = rows_of(self.indptr, self.indices)
        wanted = rows < self.indices
        if entries is not None:
            wanted &= entries >= least
        elif ends is not None:
            inside = ends >= least
            wanted &= inside[rows] & inside[self.indices]
        entry = np.flatnonzero(wanted)
        return rows[entry], self.indices[entry], entry

    def _oriented(self) -> tuple[np.ndarray, np.ndarray]:
        with _orienting:  # one lock for all graphs: an engine that held one could not be copied
            if self._orientation is None:
                self._orientation = call(cpu.orient, *self._symmetric)
            return self._orientation

    def _edge(self) -> np.ndarray:
        entries = self._symmetric[1].size
        edge = np.empty(entries, np.uint32 if entries < 1 << 33 else np.int64)
        call(cpu.number_entries, *self._symmetric, edge)
        return edge

    def _prepared(self, vertices: np.ndarray) -> tuple[np.ndarray, tuple[np.ndarray, ...]]:
        """Give vertices and graph as the kernels take them, once the memory is known to do."""
        self.batches += 1
        vertices = np.ascontiguousarray(vertices, np.int64)
        graph = *self._symmetric, *self._oriented()
        limit = min(self._memory_limit or memory_free("cpu"), np.iinfo(np.int64).max)
        place = cpu_ego.first_above(limit, vertices, graph)
        if place >= 0:
            vertex = vertices[place]
            raise LackOfMemory(
                f"the ego-network of a vertex with {self._degrees(vertex):,} neighbours may need "
                f"{cpu_ego.bytes_needed(vertex, graph):,} bytes, and there are {limit:,}; "
                "raise memory_limit"
            )
        return vertices, graph

    def _degrees(self, vertices: np.ndarray) -> np.ndarray:
        return self.indptr[vertices + 1] - self.indptr[vertices]

    def _offsets(self, vertices: np.ndarray) -> np.ndarray:
        offsets = np.zeros(vertices.size + 1, np.int64)
        np.cumsum(self._degrees(vertices), out=offsets[1:])
        return offsets

    def _mark(self) -> np.ndarray:
        return np.zeros(self.indptr.size - 1, np.int32)

    def _level(self, k: int | None) -> int:
        """Clamp k to beyond what a graph this large can have, where it fits into the kernels."""
        return cpu.ALL if k is None else min(int(k), self.indptr.size + 1)
