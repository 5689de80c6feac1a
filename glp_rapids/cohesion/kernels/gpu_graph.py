"""A graph on one GPU: its triangles, cores, trusses and edges.

Large ego-networks are worked on as a graph, too: all of a batch side by side are one of these.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np

from glp_rapids.cohesion.kernels import gpu_edges, gpu_intersect, gpu_peel
from glp_rapids.device import array_module
from glp_rapids.jit.cuda import current_gpu, multiprocessors
from glp_rapids.jit.launch import launch, launch_together

Array = Any


def on_its_gpu(method: Callable) -> Callable:
    """Let a method run with the GPU of its object as the current one."""

    @functools.wraps(method)
    def run(self, *arguments, **options):
        with current_gpu(self._number):
            return method(self, *arguments, **options)

    return run


class GpuGraph:
    """A simple undirected graph on one GPU."""

    def __init__(
        self, indptr: Array, indices: Array, *,
        number: int | None = None, memory_limit: int | None = None,
    ):  # fmt: skip
        self.xp = array_module(indptr)
        self.indptr, self.indices = indptr, indices
        self.batches = 0
        self._number, self._memory_limit = number, memory_limit
        self._whole_batch = None

    @on_its_gpu
    def common_neighbors(self) -> Array:
        """Count what the two ends of every entry have in common."""
        self.batches += 1
        whole = self._whole()
        _, edge = self._edges(whole)
        return self._common(whole)[edge]

    @on_its_gpu
    def triangle_counts(self) -> Array:
        """Count the triangles that each vertex is a corner of."""
        self.batches += 1
        corners = self.xp.zeros(self.indptr.size - 1, np.int64)
        self._intersect(
            self._whole(), gpu_intersect.CORNERS, result=nothing(self.xp), corners=corners
        )
        corners //= 2  # each was counted over both edges at this corner
        return corners

    @on_its_gpu
    def core_number(self, k: int | None = None) -> Array:
        """Give core numbers; with ``k`` only whether they reach it."""
        self.batches += 1
        return self._cores(self.indptr, self.indices, k)

    @on_its_gpu
    def trussness(self, k: int | None = None, *, once: bool = False) -> Array:
        """Give the trussness of every entry; with ``k`` only whether it reaches it.

        ``once``: only at the entry of an edge's smaller end, with less than any at the other.
        """
        self.batches += 1
        whole = self._whole()
        rows, edge = self._edges(whole)
        truss = self._trusses(whole, rows, edge, self._common(whole), k)
        return truss if once else truss[edge]

    @on_its_gpu
    def edges(
        self, least: int = 0, *, entries: Array | None = None, ends: Array | None = None,
        place: bool = False,
    ) -> tuple[Array, Array, Array | None]:  # fmt: skip
        """Give every edge once: its smaller end, its greater end and, if asked, its entry there.

        Only those of a value of at least ``least``: that of this entry, or those of both ends.
        """
        xp, size = self.xp, self.indices.size
        threads, steps = gpu_edges.THREADS, gpu_edges.STEPS
        blocks = -(-size // (threads * steps))
        wanted, values = gpu_edges.ALL, nothing(xp)
        if entries is not None:
            wanted, values = gpu_edges.ENTRIES, entries
        elif ends is not None:
            wanted, values = gpu_edges.ENDS, ends
        none, no_entry = (xp.empty(0, t) for t in (self.indices.dtype, index_type_for(size)))
        begin = xp.zeros(blocks + 1, np.int64)
        pick = partial(
            launch, gpu_edges.build_pick(threads, steps), blocks, threads,
            self.indptr, self.indices, np.int64(wanted), values, np.int64(least),
        )  # fmt: skip
        pick(begin, none, none, no_entry)
        begin = xp.cumsum(begin)
        number = int(begin[-1])
        if not number:
            return none, none, no_entry
        source, destination = xp.empty(number, none.dtype), xp.empty(number, none.dtype)
        entry = xp.empty(number, no_entry.dtype) if place else no_entry
        pick(begin, source, destination, entry)
        return source, destination, entry

    # ------------------------------------------------------------ intersections

    def _whole(self):
        """Give the whole graph as a batch: its nodes are its entries, its egos all vertices.

        Kept: where nothing pools memory, making it took 0.6 of the 10 ms of all triangles (web).
        """
        if self._whole_batch is None:
            self._whole_batch = self._made_whole()
        return self._whole_batch

    def _made_whole(self):
        return SimpleNamespace(
            vertices=self.xp.arange(self.indptr.size - 1, dtype=self.indices.dtype),
            offsets=self.indptr,
            nodes=self.indices.size,
            long=self._long(self.indptr),
            indptr=self.indptr,
            indices=self.indices,
        )

    def _long(self, offsets):
        """Count the nodes that may be long ones: those whose ego has that many."""
        size = self.xp.diff(offsets)
        return int((size * (size > gpu_intersect.LARGEST_SHORT)).sum())

    def _intersect(self, batch, action, places=None, result=None, corners=None):
        xp, nodes, long = self.xp, batch.nodes, batch.long
        result = xp.zeros(nodes, np.int32) if result is None else result
        places = xp.zeros(1, np.int64) if places is None else places
        corners = xp.zeros(1, np.int64) if corners is None else corners
        listed, number = xp.empty(max(long, 1), index_type_for(nodes)), xp.zeros(1, np.int64)
        arguments = (
            self.indptr, self.indices, batch.vertices, batch.offsets, np.int64(action), places,
            result, corners, listed, number, np.int64(gpu_intersect.LARGEST_SHORT),
        )  # fmt: skip
        threads, together = gpu_intersect.SHORT
        launch(gpu_intersect.build_intersect(threads, together), -(-nodes // together), threads,
               *arguments)  # fmt: skip
        if long:
            threads, together = gpu_intersect.LONG
            launch(gpu_intersect.build_intersect(threads, together), int(number[0]), threads,
                   *arguments)  # fmt: skip
        return result

    # ------------------------------------------------------------ cores and trusses of any CSR

    def _common(self, batch):
        """Count the triangles over each edge, at the entry of its smaller end."""
        return self._intersect(batch, gpu_intersect.COUNT_UPPER)

    def _edges(self, csr):
        """Give every entry's row, and the entry of its edge's smaller end."""
        rows = self.xp.empty(csr.indices.size, csr.indices.dtype)
        edge = self.xp.empty(csr.indices.size, index_type_for(csr.indices.size))
        threads = gpu_peel.THREADS
        launch(
            gpu_peel.build_edges(threads), -(-edge.size // threads), threads,
            csr.indptr, csr.indices, rows, edge,
        )  # fmt: skip
        return rows, edge

    def _control(self):
        control = np.zeros(gpu_peel.WORDS, np.int64)
        control[gpu_peel.LEAST :] = gpu_peel.NEVER
        return self.xp.asarray(control)

    def _cores(self, indptr, indices, k):
        xp = self.xp
        left = xp.diff(indptr).astype(np.int32)
        core = xp.full(left.size, -1, np.int32)
        lowest, highest = (0, gpu_peel.NEVER - 1) if k is None else (k - 1, k - 1)
        if left.size:
            threads, lanes = gpu_peel.THREADS, gpu_peel.LANES
            launch_together(
                gpu_peel.build_core(threads, lanes), multiprocessors() * 8, threads,
                indptr, indices, left, core, xp.empty(left.size, index_type_for(left.size)),
                self._control(), np.int64(lowest), np.int64(highest),
            )  # fmt: skip
        return core

    def _trusses(self, csr, rows, edge, support, k):
        xp = self.xp
        size = edge.size
        truss = xp.where(rows < csr.indices, np.int32(0), np.int32(-1))
        lowest, highest = (0, gpu_peel.NEVER - 4) if k is None else (k - 3, k - 3)
        edges = size // 2
        if size:
            threads, lanes = gpu_peel.THREADS, gpu_peel.LANES
            launch_together(
                gpu_peel.build_truss(threads, lanes), multiprocessors() * 8, threads,
                csr.indptr, csr.indices, rows, edge, support,
                xp.full(size, gpu_peel.NEVER, np.int32), truss, xp.empty(edges, edge.dtype),
                self._control(), np.int64(edges), np.int64(lowest), np.int64(highest),
            )  # fmt: skip
        return truss

    # ------------------------------------------------------------ small things

    def _each(self, build, threads, number, *arguments):
        """Launch a kernel that has a thread for each of so many."""
        launch(build(threads), -(-number // threads), threads, *arguments)

    def _rows(self, offsets, number):
        """Give the row of every place of rows that begin at ``offsets``, ``number`` in all."""
        rows = self.xp.empty(number, np.int32)
        self._each(gpu_intersect.build_rows, gpu_intersect.PLACES, number, offsets, rows)
        return rows


def nothing(xp: Any) -> Array:
    """Give an array for a kernel that will not look at it."""
    return xp.zeros(1, np.int32)


def index_type_for(size: int) -> Any:
    """Give the type of the places of so many items."""
    return np.int32 if size < 2**31 else np.int64
