"""Shortest paths from one vertex, or from the nearest of several, over weighted edges."""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Unpack

import numpy as np

from glp_rapids.common.calls import guarded
from glp_rapids.common.checks import check_choice, check_truth
from glp_rapids.common.scans import places_where
from glp_rapids.common.segments import exact_sum
from glp_rapids.common.types import Direction, Frame, Unreachable
from glp_rapids.device import array_module
from glp_rapids.ingest.columns import UnknownColumns
from glp_rapids.ingest.options import ByDefault, PathEdgeOptions
from glp_rapids.traversal.engines import Found, largest
from glp_rapids.traversal.search import (
    Search,
    check_unreachable,
    cutoff_of,
    lists_of,
    refuse_multigraph,
)

if TYPE_CHECKING:
    from glp_rapids.graph.graph import Graph
    from glp_rapids.graph.rows import Rows

Array = Any
Strategy = Literal["near-far", "wolfpath"]
STRATEGIES = ("near-far", "wolfpath")
SOURCE = (
    "source= of sssp is where it begins, so name both in as_graph(frame, source=..., "
    "destination=..., weight=..., multigraph='min')"
)


@guarded
def sssp(
    graph: Any,
    source: Any,
    *,
    weight: str | None = None,
    cutoff: float | None = None,
    targets: Any = None,
    return_predecessors: bool = True,
    direction: Direction = "out",
    unreachable: Unreachable = "max",
    strategy: Strategy = "near-far",
    memory_limit: int | str | None = None,
    **edges: Unpack[PathEdgeOptions],
) -> Frame:
    """Find the length of the shortest path to every vertex, and the vertex before it on that path.

    Parameters
    ----------
    graph : graph-like
        Anything that `as_graph` takes. Weights are lengths: finite and not negative. Edges without
        weights have length one, and the result is that of `bfs`. **Duplicates**: of a frame or
        other data given here the shortest counts; a `Graph` is taken as it was built, and
        `as_graph` *adds* the weights of duplicates, (a, b) and (b, a) of undirected graphs among
        them, unless it is told ``multigraph="min"``. What a sparse matrix stores of one entry is
        added first, as SciPy has it.
    source : id, or list, array, Series or frame of ids
        The vertex from which paths start; with several, a path starts at the nearest. (A frame
        whose column of sources has another name than ``src`` goes through `as_graph`.)
    weight : str, optional
        The column with the weights, as in `as_graph`.
    cutoff : float, optional
        Vertices farther than this count as unreached; at exactly this distance they are reached.
        It is rounded to the type of the distances. None: no limit.
    targets : id, or list, array, Series or frame of ids, optional
        End the search when these are reached: vertices farther than the farthest of them count as
        unreached. If one cannot be reached the search goes on to its own end.
    return_predecessors : bool, default True
        Whether there is a column ``predecessor``.
    direction : {"out", "in", "both"}
        Follow the edges of a directed graph, go against them, or do not mind their direction.
    unreachable : {"max", "null", "drop"}
        How vertices come out that were not reached; as in `bfs`.
    strategy : {"near-far", "wolfpath"}
        The order of work; the result is the same. "wolfpath" relaxes the edges layer by layer, of
        all kinds, until nothing changes: see `LayeredEdges.sssp`.
    memory_limit : int or str, optional
        Bytes, or a text such as "40GB", that the graph and the search may take where they are. One
        from host memory that does not fit the GPU stays there and is searched there; with
        ``strategy="wolfpath"`` its layers are streamed to the GPU. None: no limit.
    **edges
        ``destination``, ``directed``, ``vertices``, ``device`` and ``multigraph`` (here "min" by
        default) as in `as_graph`.

    Returns
    -------
    frame
        ``vertex, distance, predecessor``, in the order of the ids. ``distance`` has the type of the
        weights: exact for int64, and for float32 and float64 the least, over all paths, of the sum
        from the source on, rounded to that type at every edge. ``predecessor`` is, of the
        neighbours on a shortest path that are nearer than the vertex, the one with the smallest id;
        where none is nearer (edges of weight 0, or so light that the sum does not change) the
        smallest of those that are reached over the fewest such edges. It never leads in a circle.
        What stands for none is as in `bfs`; so are ``.attrs["glp"]``, but for ``rounds`` in the
        place of ``levels``.

    Raises
    ------
    ValueError
        If ``source`` or ``targets`` is empty or has an id that is no vertex, ``cutoff`` is negative
        or NaN, a weight is negative or NaN, or paths may be longer than the type of the weights can
        hold, with one edge more.
    TypeError
        If an argument is of another type than described.
    LackOfMemory
        If the graph does not fit ``memory_limit`` where it is.

    Notes
    -----
    Two piles of vertices, near and far (Davidson, Baxter, Garland and Owens, IPDPS 2014), whose
    border begins at some median weights, fewer where vertices have many edges, and adapts itself.
    O(n + m) times how often a vertex is worked on, which was 1.1 on a road network and 1 to 3 on
    other graphs that were measured; weights can be made for which it is more, as often as a path
    has edges. 17 bytes a vertex beside the graph and the result, 56 on a GPU, where all rounds are
    one launch. On a CPU integers whose largest times the number of vertices is below 2**32 take up
    to a third less time than float64.

    Examples
    --------
    >>> import pandas as pd
    >>> from glp_rapids import sssp
    >>> roads = pd.DataFrame({"src": [1, 1, 2, 3], "dst": [2, 3, 3, 4], "km": [7, 2, 4, 1]})
    >>> sssp(roads, 1, weight="km")
       vertex  distance  predecessor
    0       1         0           -1
    1       2         6            3
    2       3         2            1
    3       4         3            3
    """
    check_truth(return_predecessors=return_predecessors)
    check_unreachable(unreachable)
    check_choice("strategy", strategy, STRATEGIES, "'near-far' or 'wolfpath'")
    cutoff_of(cutoff, np.dtype(np.float64))
    refuse_multigraph(graph, edges)
    reading = {"multigraph": ByDefault("min"), **edges, "weight": weight}
    methods = ("bfs", "sssp") if strategy == "near-far" else ("bfs", "sssp", "rows_in_order")
    try:
        search = Search(graph, direction, reading, *methods, memory_limit=memory_limit)
    except UnknownColumns as error:
        raise ValueError(f"{error}; {SOURCE}") from error
    starts = search.vertices(source, "source")
    ends = starts[:0] if targets is None else search.vertices(targets, "targets")
    rows = search.graph.rows(direction)
    if rows.weights is None:
        depth = cutoff_of(cutoff, np.dtype(np.int64))
        found = search.engine.bfs(starts, depth, bool(return_predecessors))
        found = _up_to(found, ends)
    else:
        refuse_long_paths(search.graph, direction)
        limit = cutoff_of(cutoff, rows.weights.dtype)
        how = _near_far if strategy == "near-far" else _by_layers
        found = how(search, starts, limit, ends, bool(return_predecessors))
    return search.result(found, unreachable, rounds=found.rounds)


def _near_far(
    search: Search, starts: Array, cutoff: Any, targets: Array, predecessors: bool
) -> Found:
    return search.engine.sssp(starts, cutoff, targets, predecessors)


def _by_layers(
    search: Search, starts: Array, cutoff: Any, targets: Array, predecessors: bool
) -> Found:
    """Find distances in WolfPath's order of work."""
    engine = search.engine
    level = engine.bfs(starts, 1 << 40, False)
    done = engine.relax(lists_of(search, level), starts, cutoff)
    found = _up_to(Found(done.distance, None, done.sweeps), targets)
    before = engine.predecessors(starts, found.distance) if predecessors else None
    return found._replace(predecessor=before)


def _up_to(found: Found, targets: Array) -> Found:
    """Forget vertices that are farther than the farthest target, if there are targets."""
    if targets.size:
        targets = array_module(found.distance).asarray(targets)
        beyond = found.distance > found.distance[targets].max()
        found.distance[beyond] = largest(found.distance.dtype)
        if found.predecessor is not None:
            found.predecessor[beyond] = -1
    return found


def refuse_long_paths(graph: Graph, direction: Direction) -> None:
    """Raise unless all sums of a search are below the value that stands for unreached."""
    rows = graph.rows(direction)
    both_ways = not graph.directed or direction == "both"
    if graph.keep(("paths too long", direction), partial(_too_long, rows, both_ways)):
        raise ValueError(
            f"weight: the weights add up to more than {rows.weights.dtype} can hold as the length "
            "of a path and of one edge more; divide them, or cast integers to float64"
        )


def _too_long(rows: Rows, both_ways: bool) -> bool:
    """Tell whether sums may be too large; ``both_ways``: rows hold every edge from either end.

    What is added up is a path, which takes no edge twice, and one edge more: that by which the
    search looks back, or a self-loop.
    """
    most, heaviest = largest(rows.weights.dtype), Fraction(rows.largest_weight())
    if rows.weights.dtype.kind == "f":
        most = Fraction(float(most)) / 2  # each addition may round up
    if heaviest * rows.number_of_vertices < most:
        return False
    total = exact_sum(rows.weights)  # of one way: a path does not look back, a loop is in it
    if both_ways:
        total = (total - _sum_of_loops(rows)) / 2 + heaviest
    return total >= most


def _sum_of_loops(rows: Rows) -> Fraction:
    total = Fraction(0)
    for first, _, some in rows.chunks(rows.few_at_once()):
        loops = places_where(some.row_indices() + first == some.indices)
        total += exact_sum(some.weights[loops])
    return total
