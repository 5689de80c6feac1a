"""The CPU engine: what the kernels need, made once per graph, and a call of compiled code each.

A call runs on one thread and releases the GIL; several threads may call one engine at once. In
the main thread it can be interrupted.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from glp_rapids.cohesion.kernels import cpu, cpu_truss
from glp_rapids.common.segments import integer_sums, segment_ids
from glp_rapids.jit import forks
from glp_rapids.jit.interrupts import call, interruptible

if TYPE_CHECKING:
    from glp_rapids.graph.graph import Graph
    from glp_rapids.graph.rows import CSR

_orienting = forks.Lock()


class Oriented:
    """The rows of a simple CSR with every edge once, at one of its ends; made at the first call.

    An object of its own, so that a graph keeps one for all of its engines.
    """

    def __init__(self, indptr: np.ndarray, indices: np.ndarray) -> None:
        if indptr.size <= 1 << 31:
            indices = indices.astype(np.int32, copy=False).view(np.uint32)
        self.symmetric = np.ascontiguousarray(indptr, np.int64), np.ascontiguousarray(indices)
        self._rows: tuple[np.ndarray, np.ndarray] | None = None

    def __call__(self) -> tuple[np.ndarray, np.ndarray]:
        with _orienting:  # one lock for all graphs: what held one could not be copied
            if self._rows is None:
                self._rows = call(cpu.orient, *self.symmetric)
            return self._rows


def oriented_of(graph: Graph, csr: CSR) -> Oriented:
    """Return the oriented rows of a graph and its simple CSR, which the graph keeps."""
    return graph.keep("oriented", partial(Oriented, csr.indptr, csr.indices))


class CpuEngine:
    """Cores, trusses and triangles of one simple undirected graph (rows ascend, no loops)."""

    xp = np

    def __init__(
        self, indptr: np.ndarray, indices: np.ndarray, *,
        number: int | None = None, oriented: Oriented | None = None,
    ) -> None:  # fmt: skip
        self.indptr, self.indices = indptr, indices
        self.batches = 0
        self._oriented = oriented or Oriented(indptr, indices)
        self._symmetric = self._oriented.symmetric

    @interruptible
    def common_neighbors(self) -> np.ndarray:
        """Count the common neighbours of the ends of every entry."""
        self.batches += 1
        return call(cpu.triangles_of_edges, *self._oriented())[self._edge_of_entries()]

    def triangle_counts(self) -> np.ndarray:
        """Count the triangles that each vertex is a corner of."""
        # each is counted over both edges at this corner
        return integer_sums(self.common_neighbors(), self.indptr) // 2

    @interruptible
    def core_number(self, k: int | None = None) -> np.ndarray:
        """Find the core number of every vertex; with k, k inside the k-core and less elsewhere."""
        self.batches += 1
        return call(cpu.core, *self._symmetric, self._level(k))[0]

    @interruptible
    def trussness(self, k: int | None = None, *, once: bool = False) -> np.ndarray:
        """Find the trussness of every entry; with k, k inside the k-truss and less elsewhere.

        ``once``: whoever asks reads it only at the entry of an edge's smaller end.
        """
        self.batches += 1
        edge = self._edge_of_entries()
        indptr, indices = self._symmetric
        rows = indptr, indices.copy(), edge.copy()  # they are used up
        number, _ = call(cpu_truss.truss, *self._oriented(), rows, self._level(k))
        return number[edge]

    def edges(
        self,
        least: int = 0,
        *,
        entries: np.ndarray | None = None,
        ends: np.ndarray | None = None,
        place: bool = False,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """List every edge once: its smaller end, its greater end and its entry there.

        Only those of a value of at least ``least``: that of this entry, or those of both ends.
        """
        rows = segment_ids(self.indptr, self.indices.dtype)
        wanted = rows < self.indices
        if entries is not None:
            wanted &= entries >= least
        elif ends is not None:
            inside = ends >= least
            wanted &= inside[rows] & inside[self.indices]
        entry = np.flatnonzero(wanted)
        return rows[entry], self.indices[entry], entry

    def _edge_of_entries(self) -> np.ndarray:
        entries = self._symmetric[1].size
        edge = np.empty(entries, np.uint32 if entries < 1 << 33 else np.int64)
        call(cpu.number_entries, *self._symmetric, edge)
        return edge

    def _level(self, k: int | None) -> int:
        """Clamp k to beyond what a graph this large can have, where it fits into the kernels."""
        return cpu.ALL if k is None else min(int(k), self.indptr.size + 1)
