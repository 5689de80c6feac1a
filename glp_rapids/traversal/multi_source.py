"""Breadth-first searches from many vertices, each on its own: 64 of them in one word a vertex."""

from __future__ import annotations

from typing import Any, Unpack

from glp_rapids.common.calls import guarded
from glp_rapids.common.checks import check_truth
from glp_rapids.common.types import Direction, Frame, Unreachable
from glp_rapids.device import LackOfMemory, array_module, memory_free
from glp_rapids.frames.kinds import null_where, to_frame
from glp_rapids.ingest.options import EdgeOptions
from glp_rapids.traversal.engines import largest
from glp_rapids.traversal.search import Search, check_unreachable, depth_of

Array = Any
BYTES_A_ROW = 36  # that the table takes while it is made, beside what was found
BETWEEN_LOOKS = 1 << 20  # rows; to look what is free takes 0.2 ms


@guarded
def multi_source_bfs(
    graph: Any,
    sources: Any,
    *,
    depth_limit: int | None = None,
    summary: bool = False,
    direction: Direction = "out",
    unreachable: Unreachable = "drop",
    **edges: Unpack[EdgeOptions],
) -> Frame:
    """Find the distances in edges from each of many vertices, or what they add up to.

    Parameters
    ----------
    graph : graph-like
        Anything that `as_graph` takes. Weights and duplicates don't matter.
    sources : list, array, Series or frame of ids
        Where the searches begin. One that is named twice counts once.
    depth_limit : int, optional
        Vertices farther than this from a source count as unreached by it. None: no limit.
    summary : bool, default False
        Return one row a source instead of one a source and vertex, which needs no room for these.
    direction : {"out", "in", "both"}
        Follow the edges of a directed graph, go against them, or do not mind their direction.
    unreachable : {"drop", "max", "null"}
        Whether vertices that a source did not reach have no row, or one as in `bfs`; a summary has
        none for any vertex, and takes "drop" alone.
    **edges
        How to read ``graph``; see `as_graph`.

    Returns
    -------
    frame
        ``source, vertex, distance``, in the order of the ids of the sources and then of the
        vertices. With ``summary``: ``source, reached, distance_sum, eccentricity``: how many
        vertices a source reached, itself included, the sum of their distances, and the largest
        (int64). Ids of several columns: ``0_source, ...``.
        ``.attrs["glp"]`` holds ``sources`` (how many), ``device``, ``seconds``, ``peak_memory``.

    Raises
    ------
    ValueError
        If ``sources`` is empty or has an id that is no vertex, or ``depth_limit`` is negative.
    TypeError
        If an argument is of another type than described.

    Notes
    -----
    64 sources at a time read an edge once for all whose searches are there (Then et al., VLDB
    2014); where few ever meet, as on a road network, each searches alone. 32 bytes a vertex,
    and unless ``summary`` is set about 36 bytes a vertex and source beside the result, so ask for
    few sources at a time, or for the summary, where the graph is large. On a GPU all
    levels of 64 sources are one launch.

    Examples
    --------
    >>> import pandas as pd
    >>> from glp_rapids import multi_source_bfs
    >>> edges = pd.DataFrame({"src": [0, 1, 2, 5], "dst": [1, 2, 3, 6]})
    >>> multi_source_bfs(edges, [1, 5])
       source  vertex  distance
    0       1       0         1
    1       1       1         0
    2       1       2         1
    3       1       3         2
    4       5       5         0
    5       5       6         1
    >>> multi_source_bfs(edges, [0, 5], summary=True)
       source  reached  distance_sum  eccentricity
    0       0        4             6             3
    1       5        2             1             1
    """
    depth = depth_of(depth_limit)
    check_truth(summary=summary)
    check_unreachable(unreachable)
    if summary and unreachable != "drop":
        raise ValueError(
            f"unreachable={unreachable!r} says what rows of vertices hold, and with summary=True "
            "there are none; leave it out"
        )
    search = Search(graph, direction, edges, "bfs_of_each")
    starts = search.vertices(sources, "sources")
    batches = search.engine.bfs_of_each(starts, depth, not summary)
    make = _summary if summary else _distances
    return search.reported(make(search, starts, batches, unreachable), sources=starts.size)


def _summary(search: Search, starts: Array, batches: Any, unreachable: Unreachable) -> Frame:
    xp = array_module(starts)
    rows = xp.concatenate([row for _, row in batches])
    names = ("reached", "distance_sum", "eccentricity")
    columns = {name: rows[:, i].copy() for i, name in enumerate(names)}
    ids = search.graph.external_columns(starts, "source")
    return to_frame({**ids, **columns}, search.graph.vertices.kind)


def _distances(search: Search, starts: Array, batches: Any, unreachable: Unreachable) -> Frame:
    xp, graph, done, number, looked = array_module(starts), search.graph, 0, 0, 0
    parts: tuple[list, ...] = ([], [], [])
    for distance, _ in batches:
        rows, n = distance.shape
        far = largest(distance.dtype)
        places = xp.flatnonzero(distance != far) if unreachable == "drop" else xp.arange(rows * n)
        row, vertex = xp.divmod(places, n)
        found = starts[done + row], vertex.astype(starts.dtype), distance.ravel()[places]
        for part, values in zip(parts, found, strict=True):
            part.append(values)
        done += rows
        number += places.size
        if number - looked < BETWEEN_LOOKS:
            continue
        looked = number
        if (needed := number * BYTES_A_ROW) > (free := memory_free(graph.device)):
            raise LackOfMemory(
                f"sources: the searches from {done:,} of them reach {number:,} vertices, of which "
                f"to make a table takes about {needed:,} bytes more, and {free:,} are free; ask "
                "for fewer sources at a time, or give summary=True"
            )
    source, vertex, distance = (xp.concatenate(part) for part in parts)
    if unreachable == "null":
        distance = null_where(distance == largest(distance.dtype), distance, graph.vertices.kind)
    ids = graph.external_columns(source, "source") | graph.external_columns(vertex, "vertex")
    return to_frame({**ids, "distance": distance}, graph.vertices.kind, copy=False)
