"""Betweenness centrality: how many shortest paths lead through a vertex."""

from __future__ import annotations

from typing import Any, Unpack

import numpy as np

from glp_rapids.common.calls import guarded
from glp_rapids.common.checks import check_integer, check_truth
from glp_rapids.common.hashing import mix_array
from glp_rapids.common.types import Frame
from glp_rapids.device import array_module
from glp_rapids.ingest.options import EdgeOptions
from glp_rapids.traversal.search import Search

Array = Any


@guarded
def betweenness_centrality(
    graph: Any,
    k: int | None = None,
    *,
    sources: Any = None,
    normalized: bool = True,
    endpoints: bool = False,
    seed: int = 0,
    **edges: Unpack[EdgeOptions],
) -> Frame:
    """Find the share of shortest paths between all pairs of vertices that lead through each vertex.

    Parameters
    ----------
    graph : graph-like
        Anything that `as_graph` takes. All edges have length one; directed ones are followed.
    k : int, optional
        Estimate it from the paths that begin at so many vertices, chosen by a hash of their ids
        and ``seed``. None, or as many as there are: all.
    sources : list, array, Series or frame of ids, optional
        Estimate it from the paths that begin at these; one that is named twice counts once.
    normalized : bool, default True
        Divide by the number of pairs. Otherwise numbers of paths (of pairs with several shortest
        paths, shares) are added up, those of an undirected graph once for both directions.
    endpoints : bool, default False
        Whether a path leads through its own ends, too.
    seed : int, default 0
        At least 0: another one chooses other ``k`` vertices.
    **edges
        How to read ``graph``; see `as_graph`.

    Returns
    -------
    frame
        ``vertex, betweenness_centrality``, every vertex once, in the order of the ids; float64.
        Scaled as by NetworkX 3.6; estimates too: with one source and ``endpoints=False`` nothing
        is known of that source, and its value is NaN.
        ``.attrs["glp"]`` holds ``sources`` (how many), ``device``, ``seconds``, ``peak_memory``.

    Raises
    ------
    ValueError
        If a ``weight`` is named, ``k`` is not in 1..n, both ``k`` and ``sources`` are given,
        ``sources`` is empty or has an id that is no vertex, or two vertices have more than 1e308
        shortest paths.
    TypeError
        If an argument is of another type than described.

    Notes
    -----
    Brandes, "A faster algorithm for betweenness centrality", Journal of Mathematical Sociology 25
    (2001): O(n + m) a source, and 28 bytes a vertex and thread. Sums are made in one order, so the
    result does not depend on threads. A directed graph needs its transpose, which it keeps. On
    a GPU one source is worked on after the other, in three launches.

    Examples
    --------
    >>> import pandas as pd
    >>> from glp_rapids import betweenness_centrality
    >>> star = pd.DataFrame({"src": [0, 0, 0], "dst": [1, 2, 3]})
    >>> betweenness_centrality(star)["betweenness_centrality"].tolist()
    [1.0, 0.0, 0.0, 0.0]
    """
    check_truth(normalized=normalized, endpoints=endpoints)
    check_integer("seed", seed, 0, most=2**63 - 1)
    if k is not None and sources is not None:
        raise ValueError("k and sources both say where paths begin; leave one of them out")
    if k is not None:
        check_integer("k", k, 1, or_none=" or None")
    if edges.get("weight") is not None:
        raise ValueError("weight has no say here, where every edge counts one step; leave it out")
    search = Search(graph, "out", edges, "dependencies")
    n = search.graph.number_of_vertices
    if k is not None and k > n:
        raise ValueError(f"k must be at most the number of vertices, {n}, not {k}")
    chosen = _sources(search, k, sources, int(seed))
    values = search.engine.dependencies(chosen, bool(endpoints))
    scale = _scale(search, chosen, chosen.size < n, bool(normalized), bool(endpoints))
    columns = {"betweenness_centrality": values * scale}
    return search.reported(search.graph.frame(columns), sources=chosen.size)


def _sources(search: Search, k: int | None, sources: Any, seed: int) -> Array:
    """Return the vertices where paths begin, in the order of their indices."""
    graph = search.graph
    if sources is not None:
        return search.vertices(sources, "sources")
    vertices = array_module(graph.indptr).arange(graph.number_of_vertices, dtype=graph.index_dtype)
    if k is None or k == vertices.size:
        return vertices
    words = mix_array(graph.id_words().of(vertices), seed)
    xp = array_module(vertices)
    return xp.sort(xp.lexsort(xp.stack([vertices.astype(np.uint64), words]))[:k]).astype(
        graph.index_dtype
    )


def _scale(
    search: Search, chosen: Array, sampled: bool, normalized: bool, endpoints: bool
) -> Array:
    """Return what NetworkX 3.6 multiplies the sums of each vertex by."""
    graph = search.graph
    n = graph.number_of_vertices
    xp = array_module(graph.indptr)
    others = n if endpoints else n - 1  # the ends that a path through a vertex may have
    if others < 2:
        return xp.ones(n)

    def factor(begins: int) -> float:
        if begins == 0:
            return np.nan
        if normalized:
            return 1 / (begins * (others - 1))
        return others / (begins * (1 if graph.directed else 2))

    if not sampled or endpoints:
        return xp.full(n, factor(chosen.size if sampled else others))
    scale = xp.full(n, factor(chosen.size))
    scale[chosen] = factor(chosen.size - 1)  # no path that begins at a vertex leads through it
    return scale
