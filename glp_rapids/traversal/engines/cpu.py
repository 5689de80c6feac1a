"""The CPU engine: what the kernels need of a graph, made once, and who calls them in what order."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from glp_rapids.common.cached_property import cached_property
from glp_rapids.common.segments import segment_offsets
from glp_rapids.common.types import Direction
from glp_rapids.jit.interrupts import Stopped, call, flag, interruptible, parts_of_rows
from glp_rapids.jit.parallel import threads_available
from glp_rapids.outofcore import in_files
from glp_rapids.traversal.engines import (
    OPPOSITE,
    TOO_MANY_PATHS,
    Found,
    Lists,
    Relaxed,
    largest,
)
from glp_rapids.traversal.engines.cpu_pace import Pace, pace_of
from glp_rapids.traversal.engines.cpu_strips import relax_in_strips
from glp_rapids.traversal.kernels import (
    cpu_bfs,
    cpu_brandes,
    cpu_components,
    cpu_layers,
    cpu_sssp,
    cpu_together,
)

if TYPE_CHECKING:
    from glp_rapids.graph.graph import Graph

PULL = 15, 16  # see `cpu_bfs.top_down`; by measurement on Kronecker graphs and road networks
PARALLEL_FROM = 1 << 16  # vertices
NOBODY = -1
AT_ONCE = 64  # searches, a bit each
TRIAL = 64, 4  # see `cpu_together.search_together`


class CpuEngine:
    """Searches in one graph in one direction; several threads may call one engine at once."""

    @staticmethod
    def serves(graph: Graph) -> bool:
        """Tell that any graph can be searched; one that is too large is an error."""
        return True

    def __init__(self, graph: Graph, direction: Direction) -> None:
        rows = graph.rows(direction)
        if rows.number_of_vertices > cpu_bfs.MOST_VERTICES:
            raise ValueError(
                f"graph has {rows.number_of_vertices} vertices, and a search can tell "
                f"{cpu_bfs.MOST_VERTICES} apart; take a part of it"
            )
        self._graph, self._direction = graph, direction
        self._index_dtype = rows.index_dtype
        self._indptr = np.ascontiguousarray(rows.indptr, np.int64)
        self._indices, self._weights = _unsigned(rows.indices), rows.weights
        self._threads = 1 if self._indptr.size < PARALLEL_FROM else 0  # 0: as many as there are
        self._without_entries: np.ndarray | None = None

    @interruptible
    def bfs(self, starts: np.ndarray, depth: int, predecessors: bool) -> Found:
        """Find distances in edges, by queue and bitmaps in turns."""
        label, level = self._labels(starts, depth)
        distance, predecessor = self._unpacked(label, predecessors)
        if predecessors:
            predecessor[starts] = -1
        return Found(distance, predecessor if predecessors else None, level)

    def _distances(self, starts: np.ndarray, depth: int) -> np.ndarray:
        return self._unpacked(self._labels(starts, depth)[0], False)[0]

    def _unpacked(
        self, label: np.ndarray, predecessors: bool, dtype: np.dtype | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        distance = np.empty(label.size, dtype or self._index_dtype)
        predecessor = np.empty(label.size if predecessors else 0, self._index_dtype)
        cpu_bfs.unpack(self._team(), label, largest(distance.dtype), distance, predecessor)
        return distance, predecessor

    def _labels(self, starts: np.ndarray, depth: int) -> tuple[np.ndarray, int]:
        """Label all vertices up to a depth; return the largest distance, too."""
        vertices = self._indptr.size - 1
        label = np.full(vertices, cpu_bfs.FAR, np.uint64)
        label[starts] = starts
        queue = np.empty(vertices, np.uint32)
        queue[: starts.size] = starts
        search = np.array([0, starts.size, 0, self._indices.size, 0], np.int64)
        return label, self._search(label, queue, search, depth)

    def _search(self, label: np.ndarray, queue: np.ndarray, search: np.ndarray, depth: int) -> int:
        reverse = self._reverse()
        pull = np.zeros(3, np.int64)
        if reverse is not None:
            pull[:] = *PULL, label.size // max(PULL[1] * self._longest, 1)
        bitmaps = None
        while True:
            call(cpu_bfs.top_down, self._indptr, self._indices, label, queue, search, depth, pull)
            head, tail, level, left, entries = search.tolist()
            if head == tail:
                return level - 1
            if level == depth:
                return level
            bitmaps = bitmaps or _Bitmaps(self._nothing_to_pull(reverse))
            bitmaps.take(queue, head, tail)
            while entries * pull[0] > left and entries * pull[1] > label.size and level < depth:
                if flag()[0]:
                    raise Stopped
                left -= entries
                level += 1
                found, entries = bitmaps.pull(self._team(), *reverse, self._indptr, label, level)
                if not found:
                    return level - 1
            search[:] = tail, bitmaps.list_frontier(queue, tail), level, left, 0

    def _reverse(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Return the rows of the edges into each vertex, if nothing must be made for that."""
        graph, opposite = self._graph, OPPOSITE[self._direction]
        if not graph.directed or opposite == "both":
            return self._indptr, self._indices
        if opposite == "in" and not graph.has("transpose"):
            return None
        rows = graph.rows(opposite)
        return np.ascontiguousarray(rows.indptr, np.int64), _unsigned(rows.indices)

    def _nothing_to_pull(self, reverse: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
        if self._without_entries is None:
            self._without_entries = cpu_bfs.without_entries(reverse[0])
        return self._without_entries

    def _team(self) -> int:
        return self._threads or threads_available()

    @interruptible
    def sssp(
        self, starts: np.ndarray, cutoff: int | float, targets: np.ndarray, predecessors: bool
    ) -> Found:
        """Find distances in the type of the weights, on one thread."""
        search = self._in_words if self._pace.words else self._in_arrays
        distance, predecessor, rounds = search(starts, cutoff, targets, predecessors)
        if targets.size:
            beyond = distance > distance[targets].max()
            distance[beyond] = largest(distance.dtype)
            if predecessors:
                predecessor[beyond] = NOBODY
        if not predecessors:
            return Found(distance, None, rounds)
        if self._pace.plateaus:
            self._join(starts, distance, predecessor)
        return Found(distance, predecessor, rounds)

    def _in_words(
        self, starts: np.ndarray, cutoff: int, targets: np.ndarray, predecessors: bool
    ) -> tuple[np.ndarray, np.ndarray, int]:
        """Search where distance and predecessor fit one word."""
        label = np.full(self._indptr.size - 1, cpu_sssp.FAR)
        most = (min(cutoff, cpu_sssp.MOST) << 32) + int(cpu_sssp.LOW)
        steps = (np.uint64(min(int(step) << 32, most)) for step in self._pace[:2])
        rounds = call(
            cpu_sssp.near_far, self._indptr, self._indices, self._weights, starts, *steps,
            np.uint64(most), targets, label, None, cpu_sssp.LOW,
        )  # fmt: skip
        return *self._unpacked(label, predecessors, self._weights.dtype), rounds

    def _in_arrays(
        self, starts: np.ndarray, cutoff: int | float, targets: np.ndarray, predecessors: bool
    ) -> tuple[np.ndarray, np.ndarray, int]:
        """Search with distances of any type, and predecessors beside them."""
        weights, vertices = self._weights, self._indptr.size - 1
        of_type = weights.dtype.type
        distance = np.full(vertices, largest(weights.dtype), weights.dtype)
        predecessor = np.full(vertices if predecessors else 0, NOBODY, self._index_dtype)
        rounds = call(
            cpu_sssp.near_far, self._indptr, self._indices, weights, starts,
            *map(of_type, self._pace[:2]), of_type(cutoff), targets, distance,
            _unsigned(predecessor), None,
        )  # fmt: skip
        return distance, predecessor, rounds

    @interruptible
    def predecessors(self, starts: np.ndarray, distance: np.ndarray) -> np.ndarray:
        """Find the predecessors of `sssp` for distances that are known, on one thread."""
        predecessor = np.full(distance.size, NOBODY, self._index_dtype)
        call(
            cpu_sssp.find_nearer, self._indptr, self._indices, self._weights, distance,
            largest(distance.dtype), _unsigned(predecessor),
        )  # fmt: skip
        self._join(starts, distance, predecessor)
        return predecessor

    def _join(self, starts: np.ndarray, distance: np.ndarray, predecessor: np.ndarray) -> None:
        """Add the predecessors on plateaus."""
        nobody = self._indices.dtype.type(np.iinfo(self._indices.dtype).max)
        unreached = distance.dtype.type(largest(distance.dtype))
        call(
            cpu_sssp.join_plateaus, self._indptr, self._indices, self._weights, distance,
            unreached, _unsigned(predecessor), nobody, starts,
        )  # fmt: skip

    def bfs_of_each(
        self, starts: np.ndarray, depth: int, distances: bool
    ) -> Iterator[tuple[np.ndarray | None, np.ndarray]]:
        """Search from each of ``starts``, up to 64 at a time, on one thread."""
        return map(
            partial(self._together, depth=depth, distances=distances),
            np.split(starts, range(AT_ONCE, starts.size, AT_ONCE)),
        )

    @interruptible
    def _together(
        self, starts: np.ndarray, depth: int, distances: bool
    ) -> tuple[np.ndarray | None, np.ndarray]:
        rows = starts.size if distances else 0
        unreached = largest(self._index_dtype)
        distance = np.full((rows, self._indptr.size - 1), unreached, self._index_dtype)
        summary = np.zeros((starts.size, 3), np.int64)
        done = starts.size > 1 and call(
            cpu_together.search_together, self._indptr, self._indices, starts, depth, TRIAL,
            distance, summary,
        )  # fmt: skip
        for search in () if done else range(starts.size):
            alone = self._distances(starts[search : search + 1], depth)
            reached = alone[alone != unreached]
            summary[search] = reached.size, reached.sum(dtype=np.int64), reached.max()
            if distances:
                distance[search] = alone
        return distance if distances else None, summary

    def rows_in_order(
        self, order: np.ndarray, folder: str | None = None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """Copy the rows of some vertices one after another: offsets, indices, weights.

        With a ``folder`` into mapped files there.
        """
        rows = self._graph.rows(self._direction)
        offsets = segment_offsets(self._indptr[order + 1] - self._indptr[order])

        def copied(values: np.ndarray | None) -> np.ndarray | None:
            if values is None:
                return None
            if folder is None:
                copy = np.empty(int(offsets[-1]), values.dtype)
            else:
                copy = in_files.empty(int(offsets[-1]), values.dtype, folder)
            for first, last in parts_of_rows(offsets):
                cpu_layers.copy_rows(
                    self._indptr, order, first, last, _unsigned(values),
                    _unsigned(copy[offsets[first] : offsets[last]]),
                )  # fmt: skip
            return copy

        return offsets, copied(rows.indices), copied(rows.weights)

    @interruptible
    def count_paths(self, lists: Lists, starts: np.ndarray, level: np.ndarray) -> np.ndarray:
        """Count the paths of fewest edges to every vertex, on one thread."""
        paths = np.zeros(level.size)
        paths[starts] = 1.0
        call(cpu_layers.count_paths, lists.order, lists.offsets, lists.indices, level, paths)
        return paths

    @interruptible
    def relax(self, lists: Lists, starts: np.ndarray, cutoff: int | float) -> Relaxed:
        """Relax layer after layer until nothing changes, on one thread."""
        weights = lists.weights
        of_type = weights.dtype.type
        unreached = of_type(largest(weights.dtype))
        distance = np.full(self._indptr.size - 1, unreached)
        distance[starts] = 0
        if lists.memory is not None:
            return relax_in_strips(lists, starts, distance, of_type(cutoff))
        sweeps = call(
            cpu_layers.relax_all, lists.order, lists.offsets, lists.indices, weights, distance,
            unreached, of_type(cutoff),
        )  # fmt: skip
        return Relaxed(distance, sweeps)

    @interruptible
    def components(self) -> np.ndarray:
        """Number the components of the graph without directions by their smallest vertices."""
        vertices = self._indptr.size - 1
        label = np.empty(vertices, self._index_dtype)
        parent = np.empty(vertices, self._indices.dtype)
        call(cpu_components.components, self._indptr, self._indices, parent, label)
        return label

    @interruptible
    def dependencies(self, sources: np.ndarray, endpoints: bool) -> np.ndarray:
        """Add up the dependencies of each source on every vertex, as many at a time as threads."""
        vertices = self._indptr.size - 1
        rows = self._graph.rows(OPPOSITE[self._direction])
        graph = (
            self._indptr, self._indices,
            np.ascontiguousarray(rows.indptr, np.int64), _unsigned(rows.indices),
        )  # fmt: skip
        threads = max(min(threads_available(), sources.size), 1)
        rooms = [
            (np.full(vertices, -1, np.int64), np.empty(vertices, np.uint32), np.empty(vertices),
             np.empty(vertices))
            for _ in range(threads)
        ]  # fmt: skip
        total, raised = np.zeros(vertices), flag()
        with ThreadPoolExecutor(threads) as pool:
            for first in range(0, sources.size, threads):
                batch = sources[first : first + threads]
                kernel = partial(_dependencies, graph, raised)
                sizes = list(pool.map(kernel, batch, rooms))
                if raised[0]:
                    raise Stopped
                # in the order of the sources, however many threads there are
                for source, size, room in zip(batch, sizes, rooms, strict=False):
                    _, queue, _, dependency = room
                    if size < 0:
                        raise ValueError(TOO_MANY_PATHS)
                    reached = queue[1:size]
                    total[reached] += dependency[reached] + endpoints
                    total[source] += endpoints * (size - 1)
        return total

    @cached_property
    def _longest(self) -> int:
        """How many entries the longest row has."""
        return self._graph.rows(self._direction).largest_degree()

    @cached_property
    def _pace(self) -> Pace:
        return pace_of(self._graph.rows(self._direction))


def _dependencies(graph: tuple, raised: np.ndarray, source: int, room: tuple) -> int:
    return cpu_brandes.dependencies(*graph, source, *room, raised)


def _unsigned(indices: np.ndarray) -> np.ndarray:
    """Look at numbers as unsigned; of indices that spares a test of each for being negative."""
    return np.ascontiguousarray(indices).view(np.dtype(f"u{indices.dtype.itemsize}"))


class _Bitmaps:
    """The vertices that are seen, the frontier, and room for the next one, a bit a vertex."""

    def __init__(self, nothing_to_pull: np.ndarray) -> None:
        self._seen = nothing_to_pull.copy()
        self._frontier, self._following = np.zeros((2, self._seen.size), np.uint64)
        self._marked = 0  # of the queue

    def take(self, queue: np.ndarray, head: int, tail: int) -> None:
        """Take what the queue holds as seen, and its end as the frontier."""
        cpu_bfs.mark(queue, self._marked, tail, self._seen)
        self._frontier[:] = 0
        cpu_bfs.mark(queue, head, tail, self._frontier)

    def pull(
        self, threads: int, indptr: np.ndarray, indices: np.ndarray, out_indptr: np.ndarray,
        label: np.ndarray, distance: int,
    ) -> tuple[int, int]:  # fmt: skip
        """Find the next frontier; return how many vertices it has, and entries in their rows."""
        counts = np.zeros((threads, 2), np.int64)
        found = cpu_bfs.bottom_up(
            threads, indptr, indices, out_indptr, label, self._seen, self._frontier,
            self._following, distance, counts,
        )  # fmt: skip
        self._frontier, self._following = self._following, self._frontier
        return found

    def list_frontier(self, queue: np.ndarray, tail: int) -> int:
        """Append the frontier to the queue; return where it ends."""
        self._marked = cpu_bfs.listed(self._frontier, queue, tail)
        return self._marked
