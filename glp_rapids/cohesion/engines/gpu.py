"""The GPU engine: kernels over all entries of a CSR, and one launch for a whole decomposition."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from glp_rapids.cohesion.kernels import (
    gpu_edges,
    gpu_intersect,
    gpu_orient,
    gpu_peel,
    gpu_triangles,
)
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


@dataclass(frozen=True)
class Rows:
    """Rows of a graph side by side; their entries are numbered through, and are called nodes.

    ``offsets`` says where the row of each of the ``vertices`` begins among the nodes (one more
    than vertices), ``nodes`` how many there are, ``heavy`` how many of them at most may take more
    lookups than a block of light ones should have.
    """

    vertices: Array
    offsets: Array
    nodes: int
    heavy: int


@dataclass(frozen=True)
class Oriented:
    """A graph with every edge once; ``entry_of``: its entry at the end of smaller number."""

    starts: Array
    ends: Array
    entry_of: Array


class GpuEngine:
    """Cores, trusses and triangles of one simple undirected graph on one GPU."""

    def __init__(self, indptr: Array, indices: Array, *, number: int | None = None) -> None:
        self.xp = array_module(indptr)
        self.indptr, self.indices = indptr, indices
        self.batches = 0
        self._number = number

    @on_its_gpu
    def common_neighbors(self) -> Array:
        """Count what the two ends of every entry have in common."""
        self.batches += 1
        _, edge = self.rows_and_edges()
        return self.support()[edge]

    @on_its_gpu
    def triangle_counts(self) -> Array:
        """Count the triangles that each vertex is a corner of."""
        self.batches += 1
        return self.count_triangles()

    @on_its_gpu
    def core_number(self, k: int | None = None) -> Array:
        """Find core numbers; with ``k`` only whether they reach it."""
        self.batches += 1
        return self.peel_cores(k)

    @on_its_gpu
    def trussness(self, k: int | None = None, *, once: bool = False) -> Array:
        """Find the trussness of every entry; with ``k`` only whether it reaches it.

        ``once``: only at the entry of an edge's smaller end, with less than any at the other.
        """
        self.batches += 1
        rows, edge = self.rows_and_edges()
        truss = self.peel_trusses(rows, edge, k)
        return truss if once else truss[edge]

    @on_its_gpu
    def edges(
        self, least: int = 0, *, entries: Array | None = None, ends: Array | None = None,
        place: bool = False,
    ) -> tuple[Array, Array, Array | None]:  # fmt: skip
        """List every edge once: its smaller end, its greater end and, if asked, its entry there.

        Only those of a value of at least ``least``: that of this entry, or those of both ends.
        """
        xp, size = self.xp, self.indices.size
        threads, steps = gpu_edges.THREADS, gpu_edges.STEPS
        blocks = -(-size // (threads * steps))
        wanted, values = gpu_edges.ALL, unused(xp)
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

    def rows_of(self, vertices: Array, offsets: Array, nodes: int) -> Rows:
        """Describe the rows of some vertices, which begin at ``offsets``, to `intersect`."""
        size = self.xp.diff(offsets)
        heavy = int((size * (size > gpu_intersect.LARGEST_LIGHT)).sum())
        return Rows(vertices, offsets, nodes, heavy)

    def intersect(
        self, rows: Rows, action: int, places: Array | None = None, result: Array | None = None,
    ) -> Array:  # fmt: skip
        """Intersect the row of every node with that of its vertex; see `gpu_intersect`."""
        xp, nodes = self.xp, rows.nodes
        result = xp.zeros(nodes, np.int32) if result is None else result
        places = xp.zeros(1, np.int64) if places is None else places
        heavy, number = xp.empty(max(rows.heavy, 1), index_type_for(nodes)), xp.zeros(1, np.int64)
        arguments = (
            self.indptr, self.indices, rows.vertices, rows.offsets, np.int64(action), places,
            result, heavy, number, np.int64(gpu_intersect.LARGEST_LIGHT),
        )  # fmt: skip
        threads, together = gpu_intersect.LIGHT
        launch(gpu_intersect.build(threads, together), -(-nodes // together), threads, *arguments)
        if rows.heavy:
            threads, together = gpu_intersect.HEAVY
            launch(gpu_intersect.build(threads, together), int(number[0]), threads, *arguments)
        return result

    # ------------------------------------------------------------ triangles

    def oriented(self, *, entries: bool = False) -> Oriented:
        """List every edge once, at its end of lower degree; with ``entries``, its entry, too."""
        xp, size = self.xp, self.indices.size
        threads, steps = gpu_orient.THREADS, gpu_orient.STEPS
        blocks = -(-size // (threads * steps))
        kept = xp.empty(-(-size // 32), np.uint32)
        begin = xp.zeros(blocks + 1, np.int64)
        mark, fill = gpu_orient.build_mark(threads, steps), gpu_orient.build_fill(threads, steps)
        launch(mark, blocks, threads, self.indptr, self.indices, kept, begin)
        begin = xp.cumsum(begin)
        index_type = index_type_for(size)
        starts = xp.empty(self.indptr.size, index_type_for(size // 2))
        ends = xp.empty(size // 2, self.indices.dtype)
        entry_of = xp.empty(size // 2 if entries else 0, index_type)
        launch(fill, blocks, threads, self.indptr, self.indices, kept, begin, ends, entry_of)
        find = gpu_orient.build_starts(threads, threads * steps)
        launch_each(find, threads, starts.size, self.indptr, kept, begin, starts)
        return Oriented(starts, ends, entry_of)

    def count_triangles(self) -> Array:
        """Count the triangles that each vertex is a corner of."""
        return self._count_triangles(gpu_triangles.CORNERS, self.oriented())

    def _count_triangles(self, action: int, oriented: Oriented) -> Array:
        xp, starts, ends = self.xp, oriented.starts, oriented.ends
        result = xp.zeros(
            starts.size - 1 if action == gpu_triangles.CORNERS else ends.size,
            gpu_triangles.COUNT_TYPES[action],
        )
        largest, chunk = gpu_triangles.LARGEST_LIGHT, gpu_triangles.CHUNK
        # a piece for each that has so many successors or neighbours, and one for each full piece
        most = ends.size // (largest + 1) + 2 * (self.indices.size // chunk) + 1
        arguments = (
            self.indptr, self.indices, starts, ends, result, xp.empty(most, ends.dtype),
            xp.empty(most, index_type_for(2 * ends.size)), xp.zeros(2, np.int64), np.int64(chunk),
        )  # fmt: skip
        light, heavy = gpu_triangles.LIGHT, gpu_triangles.HEAVY
        kernel = gpu_triangles.build_light(light, action, ends.dtype.type)
        blocks = -(-(starts.size - 1) // light[0])
        launch(kernel, blocks, light[0], *arguments, np.int64(largest))
        kernel = gpu_triangles.build_heavy(heavy, action, ends.dtype.type)
        blocks = min(most, multiprocessors() * gpu_triangles.HEAVY_BLOCKS)
        launch(kernel, blocks, heavy[0], *arguments)
        return result

    # ------------------------------------------------------------ peeling

    def support(self) -> Array:
        """Count the triangles over each edge, at the entry of its smaller end."""
        support = self.xp.zeros(self.indices.size, np.int32)
        oriented = self.oriented(entries=True)
        counts = self._count_triangles(gpu_triangles.EDGES, oriented)
        threads = gpu_orient.THREADS
        place = gpu_orient.build_place(threads)
        launch_each(place, threads, counts.size, oriented.entry_of, counts, support)
        return support

    def rows_and_edges(self) -> tuple[Array, Array]:
        """Find every entry's row, and the entry of its edge's smaller end."""
        size = self.indices.size
        rows = self.xp.empty(size, self.indices.dtype)
        edge = self.xp.empty(size, index_type_for(size))
        find = gpu_peel.build_edges(gpu_peel.THREADS)
        launch_each(find, gpu_peel.THREADS, size, self.indptr, self.indices, rows, edge)
        return rows, edge

    def peel_cores(self, k: int | None) -> Array:
        """Peel vertices to their core numbers; with ``k`` only those outside the k-core."""
        xp = self.xp
        left = xp.diff(self.indptr).astype(np.int32)
        core = xp.full(left.size, -1, np.int32)
        lowest, highest = (0, gpu_peel.NEVER - 1) if k is None else (k - 1, k - 1)
        if left.size:
            threads, lanes = gpu_peel.THREADS, gpu_peel.LANES
            launch_together(
                gpu_peel.build_core(threads, lanes), multiprocessors() * 8, threads,
                self.indptr, self.indices, left, core,
                xp.empty(left.size, index_type_for(left.size)), gpu_peel.new_control(xp),
                np.int64(lowest), np.int64(highest),
            )  # fmt: skip
        return core

    def peel_trusses(self, rows: Array, edge: Array, k: int | None) -> Array:
        """Peel edges to their trussness; with ``k`` only those outside the k-truss.

        ``rows`` and ``edge`` are those of `rows_and_edges`. The result is that of `trussness` with
        ``once``.
        """
        xp = self.xp
        support = self.support()
        size = edge.size
        truss = xp.where(rows < self.indices, np.int32(0), np.int32(-1))
        lowest, highest = (0, gpu_peel.NEVER - 4) if k is None else (k - 3, k - 3)
        edges = size // 2
        if size:
            threads, lanes = gpu_peel.THREADS, gpu_peel.LANES
            launch_together(
                gpu_peel.build_truss(threads, lanes), multiprocessors() * 8, threads,
                self.indptr, self.indices, rows, edge, support,
                xp.full(size, gpu_peel.NEVER, np.int32), truss, xp.empty(edges, edge.dtype),
                gpu_peel.new_control(xp), np.int64(edges), np.int64(lowest), np.int64(highest),
            )  # fmt: skip
        return truss


def launch_each(kernel: Any, threads: int, items: int, *arguments: Any) -> None:
    """Launch a kernel that has a thread for each of so many items."""
    launch(kernel, -(-items // threads), threads, *arguments)


def unused(xp: Any) -> Array:
    """Stand in for an array that a kernel will not look at."""
    return xp.zeros(1, np.int32)


def index_type_for(size: int) -> Any:
    """Choose the type of the places of so many items."""
    return np.int32 if size < 2**31 else np.int64
