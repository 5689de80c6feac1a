"""The engines of traversal: the same methods on every device that has one.

An engine is made of a graph and a direction. It takes and returns arrays of vertex indices where
its device has them, and knows nothing of ids and frames. A device joins by a line in `ENGINES`; its
engine may lack some methods, and what needs these is done on the host.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from glp_rapids.common.types import Direction
from glp_rapids.device import array_module, to_host

if TYPE_CHECKING:
    from glp_rapids.device import DeviceName
    from glp_rapids.graph.graph import Graph

Array = Any
TOO_MANY_PATHS = (
    "graph: there are more than 1e308 shortest paths between two vertices, which float64 cannot "
    "count; take a part of the graph"
)
OPPOSITE: dict[Direction, Direction] = {"out": "in", "in": "out", "both": "both"}


class Found(NamedTuple):
    """What a search found, by vertex.

    ``distance`` is its type's largest value where a vertex was not reached, and ``predecessor``
    (None: not wanted) -1 there and at the starts. ``rounds``: levels, or steps of the limit.
    """

    distance: Array
    predecessor: Array | None
    rounds: int


def largest(dtype: np.dtype) -> Any:
    """Return the largest value of a type: the distance of what is not reached, as in cuGraph."""
    return (np.iinfo(dtype) if dtype.kind in "iu" else np.finfo(dtype)).max


class Lists(NamedTuple):
    """Edges by layers: the rows of vertices in ``order``, one after the other.

    They begin at ``offsets``, and layers at ``first_row`` in ``order``: one more each. Where a
    ``memory`` limit is given, in bytes, the lists lie in host memory and come in strips.
    """

    order: Array
    offsets: Array
    indices: Array
    weights: Array | None
    first_row: np.ndarray  # on the host
    memory: int | None = None


def order_by_level(level: Array, deepest: int) -> tuple[Array, np.ndarray]:
    """Return the reached vertices by level and index, and where each level begins there."""
    xp = array_module(level)
    # Short keys are sorted sooner; what was not reached has all bits but the sign's, hence the
    # largest key of any shorter type, and comes last.
    short = np.min_scalar_type(deepest + 2)
    keys = level.astype(short if short.itemsize < level.dtype.itemsize else level.dtype)
    order = xp.argsort(keys, kind="stable")
    layers = xp.arange(deepest + 2).astype(keys.dtype)
    first_row = to_host(xp.searchsorted(keys[order], layers)).astype(np.int64)
    return order[: first_row[-1]].astype(level.dtype), first_row


class Relaxed(NamedTuple):
    """What relaxing layer after layer found.

    ``sweeps``: how often all were gone through; ``moved``: bytes that were copied for that;
    ``streamed``: how many layers did not stay where they are worked on.
    """

    distance: Array
    sweeps: int
    moved: int = 0
    streamed: int = 0


class Engine(Protocol):
    """Searches in one graph in one direction."""

    def __init__(self, graph: Graph, direction: Direction) -> None: ...

    @staticmethod
    def serves(graph: Graph) -> bool:
        """Tell whether a graph can be searched; one that cannot is searched on the host."""

    def bfs(self, starts: Array, depth: int, predecessors: bool) -> Found:
        """Find distances in edges, at most ``depth``, from the nearest of different ``starts``."""

    def sssp(self, starts: Array, cutoff: int | float, targets: Array, predecessors: bool) -> Found:
        """Find distances in the type of the weights, at most ``cutoff``.

        With ``targets``, only of vertices that are no farther than the farthest of these.
        """

    def bfs_of_each(
        self, starts: Array, depth: int, distances: bool
    ) -> Iterator[tuple[Array | None, Array]]:
        """Search from each of different ``starts``, some at a time.

        Of each such batch: the distances, a row a start (None if they are not wanted), and a
        summary, a row a start: vertices reached, the sum of their distances, the largest of these.
        """

    def rows_in_order(self, order: Array) -> tuple[Array, Array, Array | None]:
        """Copy the rows of some vertices one after another: offsets, indices, weights."""

    def count_paths(self, lists: Lists, starts: Array, level: Array) -> Array:
        """Count the paths of fewest edges to every vertex, adding up in the order of the rows."""

    def relax(self, lists: Lists, starts: Array, cutoff: int | float) -> Relaxed:
        """Relax layer after layer until nothing changes."""

    def predecessors(self, starts: Array, distance: Array) -> Array:
        """Find the predecessors of `sssp` for distances that are known; -1 is none."""

    def components(self) -> Array:
        """Number the components of the graph without directions by their smallest vertices."""

    def dependencies(self, sources: Array, endpoints: bool) -> Array:
        """Add up Brandes's dependencies of each of different ``sources`` on every vertex.

        With ``endpoints`` a path counts at its ends, too. Sums go over rows in their order, and
        over sources in theirs.
        """


def _cpu() -> type[Engine]:
    # Numba takes longer to import than a small graph takes to read, so it waits for a call
    from glp_rapids.traversal.engines.cpu import CpuEngine

    return CpuEngine


def _gpu() -> type[Engine]:
    from glp_rapids.traversal.engines.gpu import GpuEngine

    return GpuEngine


ENGINES: dict[DeviceName, Callable[[], type[Engine]]] = {"cpu": _cpu, "gpu": _gpu}


def where_searched(graph: Graph, *methods: str) -> Graph:
    """Return the graph where an engine has some methods: as it is, or brought to the host."""
    if graph.device not in ENGINES:
        return graph.to("cpu")
    engine = ENGINES[graph.device]()
    here = engine.serves(graph) and all(hasattr(engine, method) for method in methods)
    return graph if here else graph.to("cpu")


def engine_for(graph: Graph, direction: Direction) -> Engine:
    """Return the engine of a graph that is where there is one; the graph keeps it."""
    return graph.keep(
        ("traversal engine", direction), partial(ENGINES[graph.device](), graph, direction)
    )
