"""The GPU engine: one persistent launch a search, and one for the predecessors.

Graphs of fewer than 2**29 vertices and 2**33 entries; larger ones are searched on the host.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from glp_rapids.common.cached_property import cached_property
from glp_rapids.common.scans import number_where
from glp_rapids.common.segments import segment_offsets
from glp_rapids.common.types import Direction
from glp_rapids.device import array_module, to_host
from glp_rapids.graph.rows import CSR
from glp_rapids.jit.cuda import multiprocessors
from glp_rapids.jit.launch import launch, launch_together
from glp_rapids.traversal.engines import OPPOSITE, Found, gpu_pace, largest
from glp_rapids.traversal.engines.gpu_breadth_first import BreadthFirst
from glp_rapids.traversal.engines.gpu_layers import LayerWork
from glp_rapids.traversal.kernels import (
    gpu_components,
    gpu_frontier,
    gpu_plateaus,
    gpu_predecessors,
    gpu_rows,
    gpu_sssp,
    gpu_together,
)
from glp_rapids.traversal.kernels.gpu_bfs import WORDS

if TYPE_CHECKING:
    from glp_rapids.graph.graph import Graph

Array = Any


class GpuEngine(BreadthFirst, LayerWork):
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
        # The graph keeps the engine: were it held here, both would stay until garbage is collected,
        # and the GPU's memory with them.
        self._graph, self._direction = weakref.ref(graph), direction
        self._opposite = OPPOSITE[direction]
        self._symmetric = not graph.directed or direction == "both"
        self._rows = self._placed(graph.rows(direction))
        self._xp = array_module(self._rows.indptr)
        self._indices, self._none = self._some(self._rows.indices), self._xp.zeros(1, np.int32)
        self._make_ready()

    def _placed(self, rows: CSR) -> CSR:
        """Return rows as kernels read them."""
        return CSR(rows.indptr, rows.indices, rows.weights)

    def _reverse(self) -> CSR | None:
        """Return the rows of the edges into each vertex, if nothing must be made for that."""
        if self._symmetric:
            return self._rows
        graph = self._graph()
        if graph is None or (self._opposite == "in" and not graph.has("transpose")):
            return None
        return graph.rows(self._opposite)

    def bfs(self, starts: Array, depth: int, predecessors: bool) -> Found:
        """Find distances in edges, all levels in one launch."""
        # asked once: another thread may make the transpose in between
        reverse = self._reverse()
        starts = self._xp.asarray(starts)
        distance, before, words = self._distances(starts, depth, predecessors, reverse)
        if predecessors and reverse is None:
            before = self._predecessors(starts, distance, None, None)
        return Found(distance, before if predecessors else None, int(words[WORDS.most]))

    def _pull(
        self, into: CSR, weights: Array | None, distance: Array, before: Array,
        missing: Array | None, alone: Array,
    ) -> None:  # fmt: skip
        """Look for predecessors in the rows of edges into vertices.

        All of them, unless it is told where to look how many are ``missing``.
        """
        threads, none = gpu_predecessors.THREADS, self._none
        edges = gpu_predecessors.UNWEIGHTED if weights is None else gpu_predecessors.WEIGHTED
        launch(
            gpu_predecessors.build_pull(threads, edges), -(-distance.size // threads), threads,
            into.indptr, self._some(into.indices), none if weights is None else weights, distance,
            none, distance.dtype.type(largest(distance.dtype)), before, missing is not None,
            alone if missing is None else missing, alone,
        )  # fmt: skip

    def predecessors(self, starts: Array, distance: Array) -> Array:
        """Find the predecessors of `sssp` for distances that are known."""
        weights = self._some(self._rows.weights)
        return self._predecessors(self._xp.asarray(starts), distance, weights, self._reverse())

    def _predecessors(
        self, starts: Array, distance: Array, weights: Array | None, reverse: CSR | None
    ) -> Array:
        """Find all nearer neighbours on shortest paths; on plateaus those over the fewest edges."""
        xp = self._xp
        if reverse is None:
            edges = gpu_predecessors.UNWEIGHTED if weights is None else gpu_predecessors.WEIGHTED
            before = self._pushed(distance, weights, self._none, edges)
            before[before == gpu_predecessors.NOBODY] = -1
            far = distance.dtype.type(largest(distance.dtype))
            alone = 0 if weights is None else number_where((before < 0) & (distance != far))
        else:
            before, number = xp.empty(distance.size, np.int32), xp.zeros(1, np.int64)
            given = None if weights is None else self._some(reverse.weights)
            self._pull(reverse, given, distance, before, None, number)
            alone = 0 if weights is None else int(number[0])
        if alone > starts.size:
            self._join_plateaus(starts, distance, weights, before)
        return before

    def _pushed(self, distance: Array, weights: Array | None, hop: Array, edges: int) -> Array:
        """Find predecessors along the edges out of all vertices."""
        xp, rows, threads = self._xp, self._rows, gpu_predecessors.THREADS
        before = xp.full(distance.size, gpu_predecessors.NOBODY, np.int32)
        far = distance.dtype.type(largest(distance.dtype))
        if rows.indices.size:
            launch(
                gpu_predecessors.build_push(threads, edges), multiprocessors() * 4, threads,
                rows.indptr, rows.indices, hop if weights is None else weights, distance, hop, far,
                before,
            )  # fmt: skip
        return before

    def _join_plateaus(self, starts: Array, distance: Array, weights: Array, before: Array) -> None:
        xp, rows = self._xp, self._rows
        far = distance.dtype.type(largest(distance.dtype))
        hop = xp.where((before < 0) & (distance != far), np.int32(-1), np.int32(0))
        hop[starts] = 0
        threads, queue = gpu_plateaus.THREADS, xp.empty(distance.size, np.int32)
        words = xp.zeros(gpu_plateaus.NUMBER_OF_WORDS, np.int64)
        head, tail = -1, 0
        while head < tail:
            words[0] = 0
            launch_together(
                gpu_plateaus.build(threads, gpu_plateaus.LANES), multiprocessors() * 4, threads,
                rows.indptr, rows.indices, weights, distance, far, hop, queue, words,
                np.int64(gpu_pace.LEVELS_A_LAUNCH),
            )  # fmt: skip
            head, tail = to_host(words)[[gpu_plateaus.HEAD, gpu_plateaus.TAIL]].tolist()
        found = self._pushed(distance, weights, hop, gpu_predecessors.PLATEAU)
        on_plateau = found != gpu_predecessors.NOBODY
        before[on_plateau] = found[on_plateau]

    def sssp(self, starts: Array, cutoff: int | float, targets: Array, predecessors: bool) -> Found:
        """Find distances in the type of the weights, all rounds in one launch."""
        starts, targets = self._xp.asarray(starts), self._xp.asarray(targets)
        distance, words = self._near_far(starts, cutoff, targets)
        if targets.size:
            distance[distance > distance[targets].max()] = largest(distance.dtype)
        weights, before = self._some(self._rows.weights), None
        if predecessors:
            before = self._predecessors(starts, distance, weights, self._reverse())
        return Found(distance, before, int(words[gpu_sssp.WORDS.pile]))

    def _near_far(
        self, starts: Array, cutoff: int | float, targets: Array
    ) -> tuple[Array, np.ndarray]:
        xp, rows, vertices = self._xp, self._rows, self._rows.number_of_vertices
        weights, where = self._some(rows.weights), gpu_sssp.WORDS
        dtype = weights.dtype.type
        unreached = dtype(largest(weights.dtype))
        distance = xp.empty(vertices, weights.dtype)
        words = np.zeros(gpu_sssp.NUMBER_OF_WORDS, np.int64)
        words[where.turn] = -1
        step, cutoff = self._step(), dtype(cutoff)
        first = min(step, cutoff)
        limits = np.array([first, unreached, unreached, unreached, step], weights.dtype)
        limits = xp.asarray(limits)
        words, barrier = xp.asarray(words), xp.zeros(1, np.int64)
        memory = xp.empty(4 * vertices, np.int32)
        marks = gpu_sssp.Marks(memory[:vertices], memory[vertices : 2 * vertices])
        pile = memory[2 * vertices :]
        pace = gpu_sssp.Pace(
            cutoff=cutoff, unreached=unreached, steps=np.int64(gpu_pace.LEVELS_A_LAUNCH),
            hops=np.int64(gpu_pace.NEAR_HOPS), chunk=np.int64(gpu_pace.NEAR_CHUNK),
            most=np.int64(gpu_pace.MOST_CHUNK), light=np.int64(gpu_pace.LIGHT),
        )  # fmt: skip
        ends = targets if targets.size <= gpu_pace.MOST_TARGETS else targets[:0]
        search = gpu_sssp.build(
            gpu_frontier.THREADS, gpu_frontier.LANES, dtype, gpu_frontier.ASKS_AHEAD
        )
        with self._room() as room:
            over = False
            while not over:
                launch_together(
                    search, multiprocessors() * gpu_sssp.BLOCKS_A_MULTIPROCESSOR,
                    gpu_frontier.THREADS, rows.indptr, self._indices, weights, starts, ends,
                    distance, room.frontier, pile, marks, words, limits, barrier, pace,
                )  # fmt: skip
                found = to_host(words)
                over = bool(found[where.over])
                barrier.fill(0)
        return distance, found

    def bfs_of_each(
        self, starts: Array, depth: int, distances: bool
    ) -> Iterator[tuple[Array | None, Array]]:
        """Search from each of ``starts``, up to 64 at a time."""
        starts = self._xp.asarray(starts)
        for first in range(0, starts.size, gpu_together.SEARCHES):
            yield self._together(starts[first : first + gpu_together.SEARCHES], depth, distances)

    def _together(self, starts: Array, depth: int, distances: bool) -> tuple[Array | None, Array]:
        xp, rows, reverse = self._xp, self._rows, self._reverse()
        vertices, where = rows.number_of_vertices, gpu_together.WORDS
        unreached = largest(np.dtype(np.int32))
        distance = xp.full((starts.size if distances else 0, vertices), unreached, np.int32)
        summary = xp.zeros((starts.size, 3), np.int64)
        seen, ahead = (xp.empty(vertices, np.uint64) for _ in range(2))
        words = np.zeros(gpu_together.NUMBER_OF_WORDS, np.int64)
        words[where.level] = -1
        words, barrier = xp.asarray(words), xp.zeros(1, np.int64)
        into = rows if reverse is None else reverse
        pace = gpu_together.Pace(
            depth=np.int64(depth), levels=np.int64(gpu_pace.LEVELS_A_LAUNCH),
            pulls=reverse is not None, alpha=np.int64(gpu_pace.PULL_TOGETHER), wanted=distances,
        )  # fmt: skip
        search = gpu_together.build(gpu_frontier.THREADS)
        with self._room() as room:
            while True:
                launch_together(
                    search, multiprocessors() * gpu_frontier.BLOCKS_A_MULTIPROCESSOR,
                    gpu_frontier.THREADS, rows.indptr, self._indices, into.indptr,
                    self._some(into.indices), starts, seen, ahead, distance.ravel(),
                    summary.ravel(), room.frontier, words, barrier, pace,
                )  # fmt: skip
                if to_host(words)[where.over]:
                    return distance if distances else None, summary
                barrier.fill(0)

    def rows_in_order(self, order: Array) -> tuple[Array, Array, Array | None]:
        """Copy the rows of some vertices one after another: offsets, indices, weights."""
        xp, rows = self._xp, self._rows
        sizes = rows.indptr[1:][order]
        sizes -= rows.indptr[order]
        offsets = segment_offsets(sizes)
        del sizes
        entries, threads = int(offsets[-1]), gpu_rows.THREADS

        def copied(values: Array | None) -> Array | None:
            if values is None:
                return None
            result = xp.empty(entries, values.dtype)
            if entries:
                launch(
                    gpu_rows.build(threads), multiprocessors() * gpu_rows.BLOCKS_A_MULTIPROCESSOR,
                    threads, rows.indptr, values, order, offsets, result,
                )  # fmt: skip
            return result

        return offsets, copied(rows.indices), copied(rows.weights)

    def components(self) -> Array:
        """Number the components of the graph without directions by their smallest vertices."""
        xp, rows, threads = self._xp, self._rows, gpu_components.THREADS
        vertices = rows.number_of_vertices
        parent = xp.arange(vertices, dtype=np.int32)
        blocks = -(-vertices // threads)
        first, roots = gpu_components.build_first(threads), gpu_components.build_roots(threads)
        if rows.indices.size:
            launch(first, blocks, threads, rows.indptr, rows.indices, parent)
            launch(roots, blocks, threads, parent, parent)
            launch(
                gpu_components.build_all(threads), multiprocessors() * 4, threads, rows.indptr,
                rows.indices, parent,
            )  # fmt: skip
            found = parent.copy()
            launch(roots, blocks, threads, parent, found)
            parent = found
        number = xp.cumsum(parent == xp.arange(vertices, dtype=np.int32), dtype=np.int32) - 1
        return number[parent]

    def _step(self) -> Any:
        """Return how far the limit of near vertices goes up: the longer, the fewer edges."""
        weights = self._rows.weights
        of_type = weights.dtype.type
        least = 1 if weights.dtype.kind == "i" else float(np.finfo(weights.dtype).tiny)
        most = float(largest(weights.dtype)) / 4
        return of_type(min(max(gpu_pace.STEP * self._scale, least), most))

    @cached_property
    def _scale(self) -> float:
        """The median weight, divided by the square of the entries of a vertex that has some."""
        rows = self._rows
        sample = to_host(rows.weights[:: max(1, rows.weights.size // gpu_pace.SAMPLE)])
        positive = sample[sample > 0].astype(np.float64)
        median = float(np.median(positive)) if positive.size else 0.0
        with_entries = number_where(rows.indptr[1:] != rows.indptr[:-1])
        return median * (with_entries / max(rows.weights.size, 1)) ** 2
