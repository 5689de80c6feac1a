"""Searches in a converted graph, and what NetworkX makes of them: dicts in its order, and paths.

Searches by number of edges are NetworkX's own loops, compiled; Dijkstra's are in small graphs, and
around the starts. Other distances over weights come from `glp_rapids.sssp`; the order in which
Dijkstra's algorithm settles nodes, and through whom, is worked out from them. So all that depends
on who is found first is as NetworkX has it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Iterator
from itertools import pairwise
from typing import Any

import networkx as nx
import numpy as np

from glp_rapids.common.cached_property import cached_property
from glp_rapids.jit.interrupts import call, interruptible
from glp_rapids.networkx.graph import Graph
from glp_rapids.traversal.engines import largest
from glp_rapids.traversal.sssp import sssp

NO_LIMIT = 1 << 62
SHORT = 1 << 20  # entries that are read within milliseconds
AROUND = 1 << 14  # nodes of a large graph that a heap settles within milliseconds
AT_FIRST, AT_ONCE = 64, 1 << 16  # nodes that a generator finds before it is asked for them
EXACT = 2**53  # below it float64 holds every integer


def steps_below(limit: float | None) -> int:
    """Return how many levels a search has that goes on while its level is below a limit."""
    if limit is None or limit >= NO_LIMIT:
        return NO_LIMIT
    return math.ceil(limit) if limit > 0 else 0


def _kernels() -> Any:
    # Numba takes longer to import than a small graph takes to search
    from glp_rapids.networkx import kernels

    return kernels


class Tree:
    """What a search found: nodes in the order in which it found them, and who found each.

    Parameters
    ----------
    graph : Graph
        Where it searched.
    order : array
        The positions of the nodes that it reached, its starts first.
    parent : array
        The positions of who found each of them, in their order.
    distance : array
        How far each of them is.
    starts : int
        How many nodes it started from.
    """

    def __init__(
        self, graph: Graph, order: np.ndarray, parent: np.ndarray, distance: np.ndarray, starts: int
    ):
        self.graph, self.order, self.parent = graph, order, parent
        self._distance, self._starts = distance, starts

    @cached_property
    def nodes(self) -> list:
        """The nodes that were reached."""
        return self.graph.objects[self.order].tolist()

    def lengths(self) -> dict:
        """Return how far each node is."""
        lengths = self._distance.tolist()
        lengths[: self._starts] = [0] * self._starts  # an int, whatever the weights are
        return dict(zip(self.nodes, lengths, strict=True))

    def length(self, node: Hashable) -> int | float | None:
        """Return how far a node is that is no start, or None if it was not reached."""
        place = self._place(node)
        return None if place is None else self._distance[place].item()

    def _place(self, node: Hashable) -> int | None:
        if node not in self.graph:
            return None
        (found,) = np.nonzero(self.order == self.graph.position[node])
        return int(found[0]) if found.size else None

    def paths(self, *, reverse: bool = False) -> dict:
        """Return the path to each node; or, in reverse, from it."""
        paths = {node: [node] for node in self.nodes[: self._starts]}
        # who found a node was found before it
        for node, parent in zip(self.nodes[self._starts :], self.parents(), strict=True):
            paths[node] = [node, *paths[parent]] if reverse else [*paths[parent], node]
        return paths

    def parents(self) -> list:
        """Return who found each node but the starts."""
        return self.graph.objects[self.parent[self._starts :]].tolist()

    def path(self, node: Hashable) -> list:
        """Return the nodes on the path to one that was reached."""
        place, found = self._place(node), np.empty_like(self.order)
        size = _kernels().walk_back(self.order, self.parent, place, found)
        return self.graph.objects[found[:size][::-1]].tolist()


def _prepared(graph: Graph, starts: Iterable, reverse: bool) -> tuple:
    rows = graph.predecessors if reverse else graph.successors
    places = np.array([graph.position[node] for node in starts], rows.indices.dtype)
    size, kind = len(graph), rows.indices.dtype
    order, parent, ends = np.empty(size, kind), np.empty(size, kind), np.empty(size + 1, np.int64)
    return rows, places, order, parent, ends, np.zeros(5, np.int64)


def levels(
    graph: Graph, starts: Iterable, depth: int, *, reverse: bool = False
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Search by number of edges, from different nodes; ``reverse``: against directions.

    Returns
    -------
    order, parent : array
        As in `Tree`.
    ends : array
        Where in ``order`` the nodes of each distance end.
    """
    rows, places, order, parent, ends, state = _prepared(graph, starts, reverse)
    kernel = _kernels().breadth_first
    with graph.spare("seen", 0, np.uint8) as seen:
        _run(graph, kernel, *rows, places, depth, NO_LIMIT, True, seen, order, parent, ends, state)
    _, _, found, level, _ = state.tolist()
    return order[:found].copy(), parent[:found].copy(), ends[: level + 1].copy()


def found_by_and_by(
    graph: Graph, source: Hashable, depth: int, *, reverse: bool = False
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Iterate over the positions of who is found from a node, and by whom, some at a time.

    Who takes ten edges does not wait for a search of a million nodes.
    """
    rows, places, order, parent, ends, state = _prepared(graph, [source], reverse)
    kernel, before, most = _kernels().breadth_first, 1, AT_FIRST
    with graph.spare("seen", 0, np.uint8) as seen:
        while not state[4]:
            _run(graph, kernel, *rows, places, depth, most, False, seen, order, parent, ends, state)
            found = int(state[2])
            if found > before:
                yield order[before:found], parent[before:found]
            before, most = found, found + min(found, AT_ONCE)


def layers(graph: Graph, starts: Iterable, depth: int) -> Iterator[list]:
    """Iterate over the nodes at each distance from some, a level or some small ones ahead."""
    rows, places, order, parent, ends, state = _prepared(graph, starts, False)
    kernel, most, done = _kernels().breadth_first, AT_FIRST, 1
    yield graph.objects[places].tolist()
    with graph.spare("seen", 0, np.uint8) as seen:
        while not state[4]:
            _run(graph, kernel, *rows, places, depth, most, True, seen, order, parent, ends, state)
            begin, found, level = int(ends[done - 1]), int(state[2]), int(state[3])
            nodes = graph.objects[order[begin:found]].tolist()
            cuts = [begin, *ends[done : level + 1].tolist()]
            for first, last in pairwise(cuts):
                yield nodes[first - begin : last - begin]
            done, most = level + 1, found + min(found, AT_ONCE)


def parts(graph: Graph, most: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Iterate over the positions of all nodes, component after component, some at a time.

    Edges have no direction. With the positions come the places where each component ends; the
    first time there are as many as it takes to have ``most`` nodes.
    """
    kind = graph.successors.indices.dtype
    order, ends = np.empty(len(graph), kind), np.empty(len(graph), np.int64)
    state, directed, before, done = np.zeros(4, np.int64), graph.is_directed(), 0, 0
    with graph.spare("seen", 0, np.uint8) as seen:
        while before < len(graph):
            _run(
                graph, _kernels().components, *graph.successors, *graph.predecessors, directed,
                most, seen, order, ends, state,
            )  # fmt: skip
            _, found, number, _ = state.tolist()
            yield order[before:found], ends[done:number] - before
            before, done, most = found, number, found + min(found, AT_ONCE)


def _run(graph: Graph, kernel: Callable, *arguments: Any) -> Any:
    """Call a kernel; where that takes longer than a moment, so that Ctrl-C ends it."""
    short = graph.successors.indices.size < SHORT
    return (call if short else interruptible(call))(kernel, *arguments)


def breadth_first(graph: Graph, starts: Iterable, depth: int, *, reverse: bool = False) -> Tree:
    """Search by number of edges, from different nodes."""
    order, parent, ends = levels(graph, starts, depth, reverse=reverse)
    sizes = ends.copy()
    sizes[1:] -= ends[:-1]
    distance = np.arange(ends.size).repeat(sizes)
    return Tree(graph, order, parent, distance, int(ends[0]))


def between(graph: Graph, source: Hashable, target: Hashable) -> list:
    """Return a path of fewest edges between two nodes, searched from both ends."""
    for name, node in (("Source", source), ("Target", target)):
        if node not in graph:
            raise nx.NodeNotFound(f"{name} {node} is not in G")
    there, back = graph.successors, graph.predecessors
    kind, unseen = there.indices.dtype, _kernels().UNSEEN
    forward, backward, path = (np.empty(len(graph), kind) for _ in range(3))
    ends = graph.position[source], graph.position[target]
    with (
        graph.spare("predecessor", unseen, kind) as predecessor,
        graph.spare("predecessor", unseen, kind) as successor,
    ):
        size = _run(
            graph, _kernels().bidirectional, *there, *back, *ends, predecessor, successor, forward,
            backward, path,
        )  # fmt: skip
    if not size:
        raise nx.NetworkXNoPath(f"No path between {source} and {target}.")
    return graph.objects[path[:size]].tolist()


def lengths_can_be_added(graph: Graph, weight: Hashable) -> None:
    """Raise unless sums of an attribute along paths are those of NetworkX."""
    if weight not in graph.refused:
        graph.refused[weight] = _why_not_added(graph, weight)
    if why := graph.refused[weight]:
        raise NotImplementedError(f"edge attribute {weight!r}{why}")


def _why_not_added(graph: Graph, weight: Hashable) -> str:
    weights, types = graph.weights[weight], graph.types[weight]
    if weights.dtype.kind == "i" or not weights.size:
        return ""
    longest, least = float(weights.max()) * len(graph), np.finfo(np.float32)
    if types == {np.float32}:
        if longest > float(least.max) / 2:
            return ": paths may be longer than float32 can hold"
        small = (weights > 0) & (weights < least.tiny)
        return ": some are so small that a GPU takes them for 0" if small.any() else ""
    if longest > 1e307:
        return ": paths may be longer than float64 can hold"
    whole = [kind for kind in types if issubclass(kind, int | np.integer | np.bool_)]
    if not all(kind in whole or issubclass(kind, float) for kind in types):
        return " holds numbers that are added in another precision"
    if whole and not longest < EXACT:
        return " holds integers whose sums float64 cannot hold"
    return ""


def dijkstra(
    graph: Graph,
    sources: Iterable,
    weight: Hashable | None,
    cutoff: float | None = None,
    target: Hashable | None = None,
    *,
    reverse: bool = False,
) -> Tree:
    """Search by sums of weights, from the nearest of some nodes.

    With a target the search ends when that is reached, and reaches none that is farther.
    """
    sources = list(dict.fromkeys(sources))
    if cutoff is not None and cutoff != cutoff:
        cutoff = None  # nothing is above NaN
    if isinstance(cutoff, bool):
        cutoff = int(cutoff)
    if isinstance(cutoff, np.generic):
        cutoff = cutoff.item()
    if weight is not None:
        lengths_can_be_added(graph, weight)
    if weight is None or (cutoff is not None and cutoff < 0):
        depth = NO_LIMIT
        if cutoff is not None and cutoff < NO_LIMIT:
            depth = 0 if cutoff < 0 else math.floor(cutoff)
        return breadth_first(graph, sources, depth, reverse=reverse)
    places = np.array([graph.position[node] for node in sources], np.int64)
    goal = graph.position[target] if target in graph else None
    found = _nearest_first(graph, places, weight, cutoff, goal, reverse)
    if found is not None:
        return found
    csr = graph.csr(weight, shortest=True, device="cpu")
    direction = "in" if reverse else "out"
    distance = sssp(
        csr, places, cutoff=cutoff, direction=direction, return_predecessors=False, targets=goal
    )["distance"].to_numpy()
    rows = graph.predecessors if reverse else graph.successors
    order, parent = _settled(graph, rows, csr.rows(direction), distance, places)
    return Tree(graph, order, parent, distance[order], places.size)


def _nearest_first(
    graph: Graph, places: np.ndarray, weight: Hashable, cutoff: Any, goal: int | None, reverse: bool
) -> Tree | None:  # fmt: skip
    """Search a small graph, or around the starts: by a heap, as NetworkX; None if that is too far.

    `sssp` is sooner only where it reads much.
    """
    large = graph.successors.indices.size >= SHORT
    weights = graph.weights[weight].dtype
    if weights == np.float32 or (large and cutoff is None and goal is None):
        return None
    rows = graph.predecessors if reverse else graph.successors
    limit = weights.type(largest(weights)).item()  # Python compares it with any integer
    if cutoff is not None and cutoff < limit:
        limit = math.floor(cutoff) if weights.kind == "i" else float(cutoff)
    size, kind = len(graph), rows.indices.dtype
    order, parent, lengths = np.empty(size, kind), np.empty(size, kind), np.empty(size, weights)
    room = min(rows.indices.size, SHORT) + places.size
    heap = np.empty(room, weights), np.empty(room, np.int64), np.empty(room, kind)
    with (
        graph.spare("distance", largest(weights), weights) as distance,
        graph.spare("predecessor", _kernels().UNSEEN, kind) as predecessor,
    ):
        found = _run(
            graph, _kernels().nearest_first, *rows, graph.weights_along(weight, reverse=reverse),
            places, weights.type(limit), -1 if goal is None else goal, AROUND if large else size,
            distance, predecessor, *heap, np.empty(size, kind), order, parent, lengths,
        )  # fmt: skip
    if found < 0:
        return None
    order, parent, lengths = (array[:found].copy() for array in (order, parent, lengths))
    return Tree(graph, order, parent, lengths, places.size)


def _settled(
    graph: Graph, neighbours: Any, rows: Any, distance: np.ndarray, places: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the order in which nodes are settled, and through whom."""
    reached = np.flatnonzero(distance != largest(distance.dtype))
    _, ranks, sizes = np.unique(distance[reached], return_inverse=True, return_counts=True)
    rank = np.full(distance.size, -1, np.int64)
    rank[reached] = ranks
    place = np.concatenate([[0], np.cumsum(sizes)])[:-1]
    kind = neighbours.indices.dtype
    predecessor = np.full(distance.size, _kernels().UNSEEN, kind)
    order = np.empty(reached.size, kind)
    _run(
        graph, _kernels().settle, *neighbours, rows.indptr, rows.indices, rows.weights, distance,
        rank, place, places, predecessor, order,
    )  # fmt: skip
    return order, predecessor[order]
