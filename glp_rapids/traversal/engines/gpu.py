"""The GPU engine: one persistent launch a search, and one for the predecessors.

Graphs of up to 2**29 vertices and 2**34 entries; larger ones are searched on the host.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from glp_rapids.device import array_module, to_host
from glp_rapids.jit.cuda import multiprocessors
from glp_rapids.jit.launch import launch, launch_together
from glp_rapids.traversal.engines import OPPOSITE, Found, largest
from glp_rapids.traversal.kernels import gpu_bfs, gpu_frontier, gpu_predecessors

if TYPE_CHECKING:
    from glp_rapids.graph.graph import Direction, Graph
    from glp_rapids.graph.rows import CSR

Array = Any
LEVELS_A_LAUNCH = 1 << 16  # then Python has a look at signals
HOPS, CHUNK = 16, 64  # see `gpu_bfs.Pace`
PULL = 15, 16
PENALTY = 16  # levels


class GpuEngine:
    """Searches in one graph in one direction; several threads may call one engine at once."""

    @staticmethod
    def serves(graph: Graph) -> bool:
        """Tell whether a graph is small enough for the words of `gpu_frontier`."""
        return (
            graph.index_dtype == np.int32
            and graph.number_of_vertices < gpu_frontier.MOST_VERTICES
            and graph.number_of_edges < gpu_frontier.MOST_ENTRIES // 2
        )

    def __init__(self, graph: Graph, direction: Direction) -> None:
        self._graph, self._direction = graph, direction
        self._rows = graph.rows(direction)
        self._xp = array_module(self._rows.indptr)
        self._indices = self._some(self._rows.indices)
        self._rooms: list[gpu_frontier.Frontier] = []  # which nobody works in

    def _some(self, array: Array) -> Array:
        """Return an array, or one of a single element in the place of an empty one."""
        return array if array.size else self._xp.zeros(1, array.dtype)

    @contextmanager
    def _room(self) -> Iterator[gpu_frontier.Frontier]:
        """Lend arrays for frontiers; they are kept on the graph."""
        size = max(2 * self._rows.number_of_vertices, 1)
        try:
            room = self._rooms.pop()
        except IndexError:
            room = gpu_frontier.Frontier(
                self._xp.empty(size, np.int32), self._xp.empty(size, np.int64)
            )
        yield room
        self._rooms[:] = [room]

    def _reverse(self) -> CSR | None:
        """Return the rows of the edges into each vertex, if nothing must be made for that."""
        graph, opposite = self._graph, OPPOSITE[self._direction]
        if not graph.directed or opposite == "both":
            return self._rows
        if opposite == "in" and not graph.has("transpose"):
            return None
        return graph.rows(opposite)

    def bfs(self, starts: Array, depth: int, predecessors: bool) -> Found:
        """Find distances in edges, all levels in one launch."""
        distance, words = self._distances(starts, depth)
        before = None
        if predecessors:
            before, _ = self._predecessors(distance, None)
        return Found(distance, before, int(words[gpu_bfs.WORDS.most]))

    def _distances(self, starts: Array, depth: int) -> tuple[Array, np.ndarray]:
        xp, rows, reverse = self._xp, self._rows, self._reverse()
        where, vertices = gpu_bfs.WORDS, rows.number_of_vertices
        starts = xp.asarray(starts)
        distance = xp.empty(vertices, np.int32)
        words = np.zeros(gpu_bfs.NUMBER_OF_WORDS, np.int64)
        words[where.level], words[where.left], words[where.listed] = -1, rows.indices.size, 1
        words[where.penalty], words[where.lost : where.lost + 3] = PENALTY, gpu_bfs.NONE
        words, barrier = xp.asarray(words), xp.zeros(1, np.int64)
        into = rows if reverse is None else reverse
        search = gpu_bfs.build(gpu_frontier.THREADS, gpu_frontier.LANES)
        pace = gpu_bfs.Pace(
            depth=np.int64(depth), levels=np.int64(LEVELS_A_LAUNCH), hops=np.int64(HOPS),
            chunk=np.int64(CHUNK), pulls=reverse is not None, alpha=np.int64(PULL[0]),
            beta=np.int64(PULL[1]),
        )  # fmt: skip
        with self._room() as room:
            while True:
                launch_together(
                    search, multiprocessors() * gpu_frontier.BLOCKS_A_MULTIPROCESSOR,
                    gpu_frontier.THREADS, rows.indptr, self._indices, into.indptr,
                    self._some(into.indices), starts, distance, room, words, barrier, pace,
                )  # fmt: skip
                found = to_host(words)
                if found[where.over]:
                    return distance, found
                barrier.fill(0)

    def _predecessors(self, distance: Array, weights: Array | None) -> tuple[Array, int]:
        """Find all nearer neighbours on shortest paths; count who has none but was reached."""
        xp, reverse, threads = self._xp, self._reverse(), gpu_predecessors.THREADS
        weighted = weights is not None
        far = distance.dtype.type(largest(distance.dtype))
        none = xp.zeros(1, np.int32)
        if reverse is not None:
            before, alone = xp.empty(distance.size, np.int32), xp.zeros(1, np.int64)
            pull = gpu_predecessors.build_pull(threads, weighted)
            launch(
                pull, -(-distance.size // threads), threads, reverse.indptr,
                self._some(reverse.indices), reverse.weights if weighted else none, distance, far,
                before, alone,
            )  # fmt: skip
            return before, alone
        before = xp.full(distance.size, gpu_predecessors.NOBODY, np.int32)
        push = gpu_predecessors.build_push(threads, weighted)
        if self._rows.indices.size:
            launch(
                push, multiprocessors() * 4, threads, self._rows.indptr, self._indices,
                weights if weighted else none, distance, far, before,
            )  # fmt: skip
        nobody = before == gpu_predecessors.NOBODY
        before[nobody] = -1
        return before, (nobody & (distance != far)).sum()
