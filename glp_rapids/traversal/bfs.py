"""Breadth-first search from one vertex, or from the nearest of several."""

from __future__ import annotations

from typing import Any, Unpack

from glp_rapids.common.calls import guarded
from glp_rapids.common.checks import check_truth
from glp_rapids.common.types import Direction, Frame, Unreachable
from glp_rapids.ingest.options import EdgeOptions
from glp_rapids.traversal.search import Search, check_unreachable, depth_of


@guarded
def bfs(
    graph: Any,
    start: Any,
    *,
    depth_limit: int | None = None,
    return_predecessors: bool = True,
    direction: Direction = "out",
    unreachable: Unreachable = "max",
    memory_limit: int | str | None = None,
    **edges: Unpack[EdgeOptions],
) -> Frame:
    """Find how many edges every vertex is from a start, or from the nearest of several.

    Parameters
    ----------
    graph : graph-like
        Anything that `as_graph` takes. Weights and duplicates don't matter.
    start : id, or list, array, Series or frame of ids
        Where the search begins; with several, a distance is that from the nearest. One that is
        named twice counts once.
    depth_limit : int, optional
        Vertices farther than this count as unreached; 0: all but the starts. None: no limit.
    return_predecessors : bool, default True
        Whether there is a column ``predecessor``.
    direction : {"out", "in", "both"}
        Follow the edges of a directed graph, go against them, or do not mind their direction.
    unreachable : {"max", "null", "drop"}
        How vertices come out that were not reached: with the largest value that ``distance`` can
        hold, as in cuGraph, so that ``cugraph.filter_unreachable`` works; with a null; not at all.
    memory_limit : int or str, optional
        Bytes, or a text such as "40GB", that the graph and the search may take where they are. One
        from host memory that does not fit the GPU is searched where it is. None: no limit.
    **edges
        How to read ``graph``; see `as_graph`.

    Returns
    -------
    frame
        ``vertex, distance, predecessor``, in the order of the ids. ``distance`` is int32 (int64 in
        graphs beyond 2**31 vertices), 0 at the starts. ``predecessor`` is the neighbour before the
        vertex on a shortest path, of several the one whose id is the smallest
        (``0_predecessor, ...`` for ids of several columns). The starts, and vertices that were not
        reached, have -1 there if ids are signed integers of one column and none of them is -1; a
        null if they are anything else, or with ``unreachable="null"``.
        ``.attrs["glp"]`` holds ``levels`` (the largest distance), ``reached`` (how many vertices,
        the starts included), ``device``, ``seconds``, ``peak_memory``.

    Raises
    ------
    ValueError
        If ``start`` is empty or has an id that is no vertex, or ``depth_limit`` is negative.
    TypeError
        If an argument is of another type than described.
    LackOfMemory
        If the graph does not fit ``memory_limit`` where it is.

    Notes
    -----
    O(n + m) time; 28 bytes a vertex beside the graph, 40 on a GPU. Wide levels are searched from
    the other side (Beamer, Asanovic and Patterson, SC 2012); for ``direction="out"`` on a directed
    graph that needs its transpose, and is done only if the graph has it from an earlier call. On a
    GPU all levels are one launch; a graph there of 2**29 vertices or 2**33 entries or more is
    searched on the host.

    Examples
    --------
    >>> import pandas as pd
    >>> from glp_rapids import bfs
    >>> edges = pd.DataFrame({"src": [0, 0, 1, 2, 5], "dst": [1, 2, 3, 3, 6]})
    >>> bfs(edges, 0, unreachable="drop")
       vertex  distance  predecessor
    0       0         0           -1
    1       1         1            0
    2       2         1            0
    3       3         2            1
    >>> bfs(edges, [0, 6], depth_limit=1)["distance"].tolist()
    [0, 1, 1, 2147483647, 1, 0]
    """
    depth = depth_of(depth_limit)
    check_truth(return_predecessors=return_predecessors)
    check_unreachable(unreachable)
    search = Search(graph, direction, edges, "bfs", memory_limit=memory_limit)
    found = search.engine.bfs(search.vertices(start, "start"), depth, bool(return_predecessors))
    return search.result(found, unreachable, levels=found.rounds)
