"""Multilevel label propagation: communities of high modularity, as of Louvain and Leiden."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Unpack

import numpy as np

from glp_rapids.common.calls import guarded
from glp_rapids.common.checks import (
    as_float,
    check_choice,
    check_integer,
    check_progress,
    check_truth,
    is_number,
    shown,
)
from glp_rapids.common.progress import Progress, reporting
from glp_rapids.common.reused_memory import reused_memory
from glp_rapids.common.sizes import as_bytes
from glp_rapids.common.types import Frame
from glp_rapids.device import memory_in_use, to_device
from glp_rapids.graph.call_memory import check_call, levels_on_gpu
from glp_rapids.ingest.options import EdgeOptions
from glp_rapids.ingest.within import graph_within, unless_memory_lacks

if TYPE_CHECKING:
    from glp_rapids.communities.levels import Found, Tell
    from glp_rapids.graph.graph import BaseGraph, Graph

LEAST_RESOLUTION = 1e-6
MAX_LEVEL, TOLERANCE = 100, 1e-5
NAME = "multilevel_label_propagation"
A_HIERARCHY = 190  # bytes a vertex that it and its frame take: of ten graphs at the most


@guarded
def multilevel_label_propagation(
    graph: Any,
    *,
    resolution: float = 1.0,
    objective: Literal["modularity", "cpm"] = "modularity",
    refine: bool = True,
    levels: bool = False,
    max_level: int = MAX_LEVEL,
    iterations: int | None = None,
    tol: float = TOLERANCE,
    seed: int = 0,
    memory_limit: int | str | None = None,
    progress: Progress = False,
    **edges: Unpack[EdgeOptions],
) -> Frame:
    """Find communities of high modularity, as Louvain and Leiden do, the same ones every time.

    Vertices move to the neighbouring community where modularity gains most, then communities become
    vertices and move, and so on; then back, level by level, where vertices move once more.

    Parameters
    ----------
    graph : frame, tuple of arrays, sparse matrix, networkx, cugraph or glp_rapids graph
        Whatever `as_graph` takes, undirected. Weights count; a self-loop adds twice its weight to
        the degree of its vertex. Negative weights are refused: modularity of signed graphs is
        another function, with a term for each sign.
    resolution : float
        From 1e-6 on, default 1: above, communities are smaller, below, larger. By "cpm" it is a
        density: at 1 nobody joins anybody unless weights are above 1.
    objective : {"modularity", "cpm"}
        What is made large. "modularity" compares the weight inside with what degrees let expect;
        it does not see communities that are small beside the graph. "cpm", the constant Potts
        model, compares it with the number of pairs inside times ``resolution``: a community is
        denser than that inside, and edges between two are thinner, however large the graph.
    refine : bool
        True (default): iterations after the first split communities into well-connected parts, as
        Leiden does, before these become vertices, and every community is connected in the end.
        False: as Louvain; faster, and a community may be disconnected.
    levels : bool
        True: return the hierarchy, too.
    max_level : int
        At most so many levels an iteration, at least 1.
    iterations : int, optional
        At most so many times up and down, each beginning with the communities that the one before
        found, at least 1. By default 2; of a small graph up to 6, if those after the second go
        through at most 2^20 vertices and entries in all. None follows one on whose way down fewer
        than one vertex in a thousand of the graph moved, unless lone vertices are still better.
        With 1 nothing is refined, but communities are cut into connected ones, unless ``refine``
        is False.
    tol : float
        No more iterations after one by which modularity gained at most so much (default 1e-5), or
        the constant Potts model at most this share of the weight of all edges, unless lone vertices
        are better.
    seed : int
        Of the classes and of the order of ties. Another seed gives other communities, as good.
    memory_limit : int or str, optional
        Bytes, or a text such as "8GB", that the run may take where the graph is, the graph
        included. What may take more on a GPU runs in host memory instead, with the same result; on
        a CPU it is refused before it begins. By default what is free.
    progress : bool or callable
        Show a bar, or call the function with a dict after every level.
    **edges
        How to read ``graph``; see `as_graph`.

    Returns
    -------
    frame
        ``vertex``: the ids as they came, every vertex once, sorted. ``partition``: its community,
        numbered from 0 by the smallest vertex in each.
        With ``levels=True``: ``vertex``, ``level``, ``partition``: every vertex once a level, from
        0, the finest, to the last, which is the result otherwise. Each level is made of
        communities of the one before: they are the well-connected parts of the last, and parts of
        these.
        ``.attrs["glp"]`` holds ``modularity`` (or ``cpm``), ``converged``, ``levels`` (of each:
        ``iteration``, ``level``, ``way`` ("up" or "down"), ``vertices``, ``moved`` in each sweep,
        none where they were refined, ``seconds``, and on the way up ``communities``, which become
        the vertices of the next level; vertices without an edge, which stay alone, are not
        counted), ``sweeps``, ``seconds``, ``device``, where it ran, ``memory_in_use``.

    Raises
    ------
    ValueError
        The graph is directed, ``resolution`` is below 1e-6 or infinite, or another argument is not
        as described.
    TypeError
        An argument is of another type than described.
    MemoryError
        On the CPU it may take more than ``memory_limit``, or is sure to take more than is free; it
        says by how much.

    Notes
    -----
    It runs on the device where the graph is, or if a GPU has too little memory, or less than
    ``memory_limit`` allows, on the CPU, and finds the same there; ``device`` says which it was.
    O(m) time a sweep, at most 5 sweeps a level each way, and as a rule a fifth of the vertices are
    left after each level.
    At most about 150 bytes a vertex and 34 an entry beside the graph, as a rule two thirds of that,
    8 an entry more with weights, and 190 a vertex more for ``levels``; on a GPU 160 a vertex and 20
    an entry, of at most 4 million 40, in the worst case 80, and 220 a vertex and 120 an entry of
    the first level that has no more than a million of both together, or of a million each where a
    graph of at most 8 million entries has more; where some vertices have no edge, an index an entry
    more. Many threads of a CPU take at most 32 bytes a vertex together, and each up to 68 for every
    entry of the longest row. `estimate_memory` adds that up, and ``memory_limit`` is held against
    it. A `CompressedGraph`, mapped or not, is decoded as a whole.

    Gains are compared without rounding: weights are integers in 64 bits, real ones multiplied by a
    power of two, and products have 128 bits. Real weights are rounded so that all add up to 2^61,
    times the resolution where that is below 1; so are integers that add up to more. Two classes of
    vertices, on the way up four of more than 2,048, eight on the first level, and four where they
    are refined, drawn anew on every level, are updated one after the other, each on the communities
    as they stand; by the constant Potts model eight wherever they move. A vertex that gains nothing
    stays; of two lone vertices that want each other, the one with the smaller id waits. A vertex
    that is better alone leaves, unless a community still bears its name: each bears that of the
    vertex it began with, and on a finer level that of this vertex' first one. A level of more than
    a million vertices and entries of which refining leaves more than three quarters of the entries
    below, as on Kronecker graphs, is moved, and so are those above.

    Communities that can hardly be told are missed: dense ones that have few more edges inside than
    chance has. On 20,000 vertices of 200 neighbours, where 12% of the edges keep to one of ten
    groups, this ends at .058 of modularity, NetworKit's PLM at .064, and two iterations of igraph's
    Leiden, in twenty times the time, at .098; with 16% Leiden ends at .127, this at .138 (a script,
    one graph each).

    Blondel et al., "Fast unfolding of communities in large networks", J. Stat. Mech. (2008); Traag,
    Waltman and van Eck, "From Louvain to Leiden", Scientific Reports 9 (2019), algorithm A.2; the
    way down: Rotta and Noack, "Multilevel local search algorithms for modularity clustering", ACM
    J. Exp. Algorithmics 16 (2011); the constant Potts model: Traag, Van Dooren and Nesterov,
    Phys. Rev. E 84 (2011), eq. 5.

    Examples
    --------
    >>> import pandas as pd
    >>> from glp_rapids import multilevel_label_propagation
    >>> edges = pd.DataFrame({"src": ["a", "a", "b", "d", "d", "e", "c"],
    ...                       "dst": ["b", "c", "c", "e", "f", "f", "d"]})
    >>> found = multilevel_label_propagation(edges)
    >>> found["partition"].tolist(), round(found.attrs["glp"]["modularity"], 4)
    ([0, 0, 0, 1, 1, 1], 0.3571)
    """
    from glp_rapids.communities import objective as objectives

    check_choice("objective", objective, objectives.OBJECTIVES)
    check_resolution(resolution)
    check_truth(refine=refine, levels=levels)
    check_integer("max_level", max_level, 1)
    if iterations is not None:
        check_integer("iterations", iterations, 1, or_none=" or None")
    check_seed("seed", seed)
    check_tolerance("tol", tol)
    check_progress(progress)
    more = A_HIERARCHY if levels else 0
    given, limit = graph_within(NAME, graph, edges, as_bytes("memory_limit", memory_limit), more)
    if given.directed:
        raise ValueError(
            "graph is directed, and multilevel label propagation is defined for undirected graphs; "
            f"{_undirected_by(graph, given)}"
        )
    found, report = _run(
        given, objective, float(resolution), progress, limit, more,
        refine=bool(refine), max_level=int(max_level), hierarchy=bool(levels),
        iterations=None if iterations is None else int(iterations),
        tol=float(tol), seed=int(seed),
    )  # fmt: skip
    return _frame(given, found, report, levels)


def check_resolution(resolution: Any) -> None:
    """Raise unless a resolution is one that 64 bits can work with."""
    if not is_number(resolution):
        raise TypeError(f"resolution must be a number, not {shown(resolution)}")
    if not LEAST_RESOLUTION <= as_float(resolution) < np.inf:
        raise ValueError(
            f"resolution must be finite and at least {LEAST_RESOLUTION:g}, not "
            f"{shown(resolution)}; at 0 the communities are the connected components"
        )


def check_seed(name: str, seed: Any) -> None:
    """Raise unless a seed is one."""
    check_integer(name, seed, 0, most=(1 << 32) - 1)


def check_tolerance(name: str, tolerance: Any) -> None:
    """Raise unless a tolerance is a finite number that is not negative."""
    if not is_number(tolerance):
        raise TypeError(f"{name} must be a number, not {shown(tolerance)}")
    if not 0 <= as_float(tolerance) < np.inf:
        raise ValueError(f"{name} must be a finite number of at least 0, not {shown(tolerance)}")


def _undirected_by(graph: Any, given: BaseGraph) -> str:
    """Say what a caller can do whose graph is directed; ``given``: what was read of it."""
    if hasattr(graph, "to_undirected"):  # one of networkx or cuGraph
        return "pass graph.to_undirected()"
    # one of this library, or a file of a compressed one, says itself whether it is directed
    if isinstance(graph, type(given)) or given.scheme:
        return "make it anew from its edges, with directed=False"
    return "read its edges with directed=False"


def _run(
    given: BaseGraph, objective: str, resolution: float, progress: Progress,
    limit: int | None = None, more: int = 0, **options: Any,
) -> tuple[Found, dict]:  # fmt: skip
    begin = time.perf_counter()
    if given.device == "cpu":
        check_call(NAME, given, limit, more)
    graph, device = given.to_graph(), given.device
    with reporting(progress, _show, desc="levels", unit="level") as tell:
        work = partial(_found, objective, resolution, options, tell)
        found = unless_memory_lacks(partial(work, graph)) if device == "gpu" else work(graph)
        if found is None:
            device = "cpu"
            check_call(NAME, graph.to(device), None, more)
            found = work(graph.to(device))
            found.labels = to_device(found.labels, graph.device)
            found.hierarchy = [to_device(labels, graph.device) for labels in found.hierarchy]
    report = {
        objective: found.quality,
        "converged": found.converged,
        "sweeps": sum(len(level["moved"]) for level in found.levels),
        "levels": found.levels,
        "seconds": time.perf_counter() - begin,
        "device": device,
        "memory_in_use": memory_in_use(device),
    }
    return found, report


def _found(
    objective: str, resolution: float, options: dict[str, Any], tell: Tell | None, graph: Graph
) -> Found:
    """Run where a graph is."""
    # Numba waits for a first run
    from glp_rapids.communities import levels
    from glp_rapids.communities.objective import OBJECTIVES, loops_of

    ids = graph.id_words()
    loops_of(graph)  # kept with the graph, as the words are, so not in memory of the call
    with reused_memory(graph.device, levels_on_gpu(graph)):
        words = ids.of_first(graph.number_of_vertices).view(np.uint64)
        wanted = OBJECTIVES[objective](graph, words, resolution)
        return levels.run(wanted, graph.device, levels.Options(**options), tell)


def _show(bar: Any, facts: dict) -> None:
    bar.set_postfix(vertices=facts["vertices"], way=facts["way"])
    bar.update()


def _frame(graph: BaseGraph, found: Found, report: dict, levels: bool) -> Frame:
    from glp_rapids.device import array_module
    from glp_rapids.frames.facts import set_attributes

    if not levels:
        labels = found.labels.astype(graph.index_dtype, copy=False)
        return set_attributes(graph.frame({"partition": labels}), report)
    xp = array_module(found.labels)
    hierarchy = found.hierarchy
    size, depth = graph.number_of_vertices, len(hierarchy)
    columns = {
        "level": xp.repeat(xp.arange(depth), size),
        "partition": xp.concatenate(hierarchy, dtype=graph.index_dtype),
    }
    vertex = xp.tile(xp.arange(size), depth)
    return set_attributes(graph.frame(columns, vertex=vertex), report)
