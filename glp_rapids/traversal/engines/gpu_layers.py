"""What a GPU does level by level: path counts, Brandes's dependencies, relaxations of layers."""

from __future__ import annotations

import weakref
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from glp_rapids.common.types import Direction
from glp_rapids.device import to_host
from glp_rapids.jit.cuda import multiprocessors
from glp_rapids.jit.launch import launch_together
from glp_rapids.traversal.engines import OPPOSITE, Lists, Relaxed, gpu_pace, largest, order_by_level
from glp_rapids.traversal.engines.strips import Strips
from glp_rapids.traversal.kernels import gpu_path_sums, gpu_relax

if TYPE_CHECKING:
    from collections.abc import Callable

    from glp_rapids.graph.graph import Graph
    from glp_rapids.graph.rows import CSR

Array = Any
COMBINED = 1 << 17  # entries of layers that are relaxed together
BLOCKS_A_MULTIPROCESSOR = 4
# Bytes a vertex beside the lists: order, offsets, distance, when it fell last, and what is made to
# tell which strips are to come.
OF_RELAXING = 40


class LayerWork:
    """The part of an engine that works on levels and layers; see `GpuEngine`."""

    _graph: weakref.ref[Graph]
    _direction: Direction
    _symmetric: bool
    _rows: CSR
    _xp: Any
    bfs: Callable[..., Any]

    def count_paths(self, lists: Lists, starts: Array, level: Array) -> Array:
        """Count the paths of fewest edges to every vertex.

        Undirected, the edges back in a vertex's own row are those that lead to it.
        """
        xp = self._xp
        paths, unused = xp.zeros(level.size), xp.zeros(1)
        paths[starts] = 1.0
        levels = lists.first_row[1:]
        rows = self._rows if self._symmetric else self._graph().rows(OPPOSITE[self._direction])
        by_vertex = not self._symmetric
        of_rows = (rows.indptr, rows.indices) if by_vertex else (lists.offsets, lists.indices)
        self._sum(
            True, by_vertex, of_rows[0], 0, of_rows[1], lists.order, xp.asarray(levels),
            (0, levels.size - 1), level, paths, unused,
        )  # fmt: skip
        return paths

    def _sum(
        self, counts: bool, by_vertex: bool, offsets: Array, base: int, indices: Array,
        order: Array, bounds: Array, levels: Any, level: Array, paths: Array, dependency: Array,
    ) -> None:  # fmt: skip
        """Go through levels, forward where it ``counts``, else backward."""
        threads = gpu_path_sums.THREADS
        if indices.size == 0:
            return
        kernel = gpu_path_sums.build(threads, counts, by_vertex)
        parts = list(pairwise([*range(levels[0], levels[1], gpu_pace.LEVELS_A_LAUNCH), levels[1]]))
        for first, last in parts if counts else reversed(parts):
            _launch_together(
                kernel, threads, offsets, np.int64(base), indices, order, bounds,
                np.int64(first), np.int64(last), level, paths, dependency,
                self._xp.zeros(1, np.int64),
            )  # fmt: skip

    def dependencies(self, sources: Array, endpoints: bool) -> Array:
        """Add up the dependencies of each source on every vertex, one source after the other."""
        xp, rows = self._xp, self._rows
        into = rows if self._symmetric else self._graph().rows(OPPOSITE[self._direction])
        sources = xp.asarray(sources)
        total = xp.zeros(rows.number_of_vertices)
        dependency = xp.zeros(rows.number_of_vertices)
        for place in range(sources.size):
            start = sources[place : place + 1]
            found = self.bfs(start, 1 << 40, False)
            order, first_row = order_by_level(found.distance, found.rounds)
            paths = xp.zeros(total.size)
            paths[start] = 1.0
            bounds = xp.asarray(first_row)
            self._sum(
                True, True, into.indptr, 0, into.indices, order, bounds, (1, found.rounds + 1),
                found.distance, paths, dependency,
            )  # fmt: skip
            if not bool(xp.isfinite(paths.max())):
                raise ValueError(
                    "graph: there are more than 1e308 shortest paths between two vertices, which "
                    "float64 cannot count; take a part of the graph"
                )
            self._sum(
                False, True, rows.indptr, 0, rows.indices, order, bounds, (0, found.rounds + 1),
                found.distance, paths, dependency,
            )  # fmt: skip
            others = order[1:]
            total[others] += dependency[others] + endpoints
            total[start] += endpoints * (order.size - 1)
        return total

    def relax(self, lists: Lists, starts: Array, cutoff: int | float) -> Relaxed:
        """Relax layer after layer until nothing changes."""
        return relax(self._xp, lists, self._rows.number_of_vertices, starts, cutoff)


def _launch_together(kernel: Any, threads: int, *arguments: Any) -> None:
    launch_together(kernel, multiprocessors() * BLOCKS_A_MULTIPROCESSOR, threads, *arguments)


def relax(xp: Any, lists: Lists, vertices: int, starts: Array, cutoff: int | float) -> Relaxed:
    """Relax layer after layer until nothing changes; strips that nothing fell in stay away."""
    dtype, threads = lists.weights.dtype, gpu_relax.THREADS
    unreached = dtype.type(largest(dtype))
    distance = xp.full(vertices, unreached, dtype)
    fallen = xp.full(vertices, -1, np.int32)
    starts = xp.asarray(starts)
    distance[starts], fallen[starts] = 0, 0
    order, offsets = xp.asarray(lists.order), xp.asarray(lists.offsets)
    kernel, sweeps = gpu_relax.build(threads, dtype.type), 0
    with Strips(lists, xp, OF_RELAXING * vertices) as strips:
        bounds = strips.combined(COMBINED)
        parts, on_device = np.searchsorted(bounds, strips.first_row), xp.asarray(bounds)
        of_strips, wanted = xp.asarray(strips.first_row), list(range(strips.number))
        while wanted:
            sweeps += 1
            for strip, base in strips.each(wanted):
                first, last = parts[strip : strip + 2].tolist()
                for begin in range(first, last, gpu_pace.LEVELS_A_LAUNCH):
                    _launch_together(
                        kernel, threads, offsets, np.int64(base), strips.indices,
                        strips.weights, order, on_device, np.int64(begin),
                        np.int64(min(begin + gpu_pace.LEVELS_A_LAUNCH, last)), distance, unreached,
                        dtype.type(cutoff), fallen, np.int32(sweeps), xp.zeros(1, np.int64),
                    )  # fmt: skip
            waits = xp.zeros(order.size + 1, np.int32)
            xp.cumsum(fallen[order] >= sweeps, dtype=np.int32, out=waits[1:])
            wanted = np.flatnonzero(np.diff(to_host(waits[of_strips]))).tolist()
        return Relaxed(distance, max(sweeps, 1), strips.moved, strips.layers_streamed)
