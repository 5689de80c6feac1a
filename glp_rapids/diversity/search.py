"""How many social contexts a vertex's neighbours form, for all vertices or for the best alone.

The definitions are those of Ugander et al., "Structural diversity in social contagion" (PNAS 2012;
components), of Huang, Cheng, Li, Qin and Yu, "Top-K structural diversity search in large networks"
(PVLDB 6, 2013, and VLDB Journal 24, 2015; cores), and of Huang, Huang and Xu, "Truss-based
structural diversity search in large graphs" (TKDE 2020).
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from glp_rapids.cohesion.memory import check_memory
from glp_rapids.common.calls import guarded
from glp_rapids.common.checks import check_integer, check_progress, check_truth
from glp_rapids.common.progress import Progress, reporting
from glp_rapids.common.segments import integer_sums, segment_ids, segment_offsets
from glp_rapids.common.sizes import as_bytes
from glp_rapids.common.types import Frame
from glp_rapids.device import array_module
from glp_rapids.diversity.models import Model, model_of
from glp_rapids.diversity.team import DiversityTeam
from glp_rapids.diversity.top_t import best_vertices, contexts_of
from glp_rapids.frames.facts import set_attributes
from glp_rapids.graph.simple import simple
from glp_rapids.ingest.options import EdgeOptions
from glp_rapids.ingest.read import as_graph
from glp_rapids.multigpu.workers import check_devices

if TYPE_CHECKING:
    from glp_rapids.graph.graph import Graph

Array = Any


@guarded
def structural_diversity(
    graph: Any,
    k: int | None,
    model: str = "component",
    *,
    symmetrize: bool = False,
    memory_limit: int | str | None = None,
    devices: list | None = None,
    progress: Progress = False,
    **edges: Unpack[EdgeOptions],
) -> Frame:
    """Count the social contexts of every vertex: the circles that its neighbours fall into.

    The ego-network of a vertex is what its neighbours and the edges among them form, without the
    vertex itself; its contexts are the dense parts of that.

    Parameters
    ----------
    graph : graph-like
        Anything that `as_graph` takes. Self-loops, duplicates and weights don't matter.
    k : int or None
        How large or dense a context is at the least. None: every k there is something for.
    model : {"component", "core", "truss"}
        What a context is. "component": a connected component of at least ``k`` (1 or more)
        vertices. "core": a connected ``k``-core (1 or more), in which everybody knows at least
        ``k`` others. "truss": a connected ``k``-truss (2 or more), every edge of which is in at
        least ``k - 2`` triangles of it; a vertex without an edge is none.
    symmetrize : bool, default False
        Take the edges of a directed graph as undirected ones. Without it such a graph is refused.
    memory_limit : int or str, optional
        Bytes to work in, or a text such as "8GB", on each GPU, besides the graph and the result;
        None: what is free, of a
        GPU half of it. The less there is, the more batches; on a GPU of large ego-networks, since
        small ones need no memory but the multiprocessors' own.
    devices : list, optional
        Numbers of the GPUs to work on; None: the current one. On a CPU a list of anything, an item
        for each thread; None: as many threads as Numba uses.
    progress : bool or callable, default False
        Show a bar, or call the function with a dict (``evaluated`` of ``vertices``) now and then.
    **edges
        How to read ``graph``; see `as_graph`.

    Returns
    -------
    frame
        ``vertex``: every vertex, sorted. ``score``: how many contexts it has. With ``k=None``
        ``vertex, k, score``: a row for each k, from the least up to the largest for which the
        vertex has a context; one row of score 0 if it has none. ``.attrs["glp"]`` holds
        ``model``, ``k``, ``seconds``, ``device``, ``evaluated``, ``pruned``, ``batches``,
        ``devices`` (for each its name, busy seconds, units of work done and stolen), ``balance``
        (the longest of these times over the mean) and ``peak_memory``.

    Raises
    ------
    ValueError
        If ``k`` is below the least of the model, the model is unknown, ``devices`` is empty or
        names a GPU that is not there, ``memory_limit`` is not positive, or the graph is directed
        and ``symmetrize`` is not set.
    TypeError
        If an argument is of another type than described.
    MemoryError
        If a single ego-network is too large for ``memory_limit``, or what the whole graph takes
        besides does not fit; it says by how much.

    Notes
    -----
    All ego-networks together have three edges for every triangle of the graph: O(m ** 1.5) time to
    find them, which is all that components take; cores more, in dense ones many times as much; a
    truss O(s ** 1.5) for an ego-network of s edges. Several GPUs share the vertices out by this
    cost, the largest first, and steal from one another (Huang et al.).

    Ugander et al., "Structural diversity in social contagion", PNAS 109 (2012); Huang et al.,
    "Top-k structural diversity search in large networks", VLDB Journal 24 (2015); Huang, Huang,
    Xu, "Truss-based structural diversity search in large graphs", TKDE (2020).

    Examples
    --------
    >>> import pandas as pd
    >>> from glp_rapids import structural_diversity
    >>> friends = pd.DataFrame({"src": ["me", "me", "me", "me", "ann", "cy"],
    ...                         "dst": ["ann", "bob", "cy", "dan", "bob", "dan"]})
    >>> structural_diversity(friends, 2)  # in my case ann and bob, cy and dan
      vertex  score
    0    ann      1
    1    bob      1
    2     cy      1
    3    dan      1
    4     me      2
    """
    about = model_of(model)
    if k is not None:
        check_integer("k", k, about.least_k, f" for model={model!r}")
        k = int(k)
    memory_limit = as_bytes("memory_limit", memory_limit)
    check_progress(progress)
    graph = as_graph(graph, **edges)
    begin = time.perf_counter()
    devices = check_devices(devices, graph)
    check_memory("structural_diversity", graph, None)
    csr = simple(graph, symmetrize)
    everyone = _everyone(graph)
    with _counting(progress, everyone.size) as tell:
        team = DiversityTeam(graph, csr, devices=devices, memory_limit=memory_limit, tell=tell)
        if k is None:
            found = every_k(*team.every_score(everyone, model), about.least_k)
            vertex, columns = found.pop("vertex"), found
        else:
            scores = team.scores(everyone, level_of(k, everyone.size, about), model)
            vertex, columns = None, {"score": scores}
    facts = {
        "model": model,
        "k": k if k is None else int(k),
        "evaluated": everyone.size,
        "pruned": 0,
        **team.report(),
    }
    frame = graph.frame(columns, vertex)
    return set_attributes(frame, {**facts, "seconds": time.perf_counter() - begin})


@guarded
def top_structural_diversity(
    graph: Any,
    t: int,
    k: int,
    model: str = "component",
    *,
    contexts: bool = True,
    prune: bool = True,
    symmetrize: bool = False,
    memory_limit: int | str | None = None,
    devices: list | None = None,
    progress: Progress = False,
    **edges: Unpack[EdgeOptions],
) -> Frame | tuple[Frame, Frame]:
    """Find the vertices with the most social contexts, and who is in these.

    Parameters
    ----------
    graph : graph-like
        Anything that `as_graph` takes. Self-loops, duplicates and weights don't matter.
    t : int
        How many vertices, at least 1; of fewer vertices all.
    k : int
        How large or dense a context is at the least.
    model : {"component", "core", "truss"}
        What a context is; see `structural_diversity`.
    contexts : bool, default True
        Also return the members of the contexts.
    prune : bool, default True
        Evaluate no vertex that its degree keeps from being among the best. The result is the same.
    symmetrize, memory_limit, devices, progress
        As in `structural_diversity`.
    **edges
        How to read ``graph``; see `as_graph`.

    Returns
    -------
    best : frame
        ``vertex, score`` of the ``t`` best, the highest score first; of equals the vertex that
        comes first.
    members : frame
        Only with ``contexts``: ``vertex, context, member``, a row for each member of a context of
        those vertices, in the same order. The contexts of a vertex are numbered from 0 by their
        smallest members, and have no member in common.

        Both carry ``.attrs["glp"]`` as in `structural_diversity`; ``evaluated`` and ``pruned`` say
        how many vertices had to be looked at and how many had not.

    Raises
    ------
    ValueError
        As `structural_diversity`; if ``t`` is below 1, or there are no vertices.
    TypeError, MemoryError
        As `structural_diversity`.

    Notes
    -----
    Contexts have no member in common. So a vertex of degree d has at most ``d // s``, where s is
    the fewest members of a context: ``k``, for cores ``k + 1``. Vertices are evaluated in growing
    batches, those that may have most first, until no other can be among the best. Huang et al.,
    "Top-k structural diversity search in large networks", VLDB Journal 24 (2015), search with such
    bounds vertex by vertex.

    Examples
    --------
    >>> import pandas as pd
    >>> from glp_rapids import top_structural_diversity
    >>> friends = pd.DataFrame({"src": ["me", "me", "me", "me", "ann", "cy"],
    ...                         "dst": ["ann", "bob", "cy", "dan", "bob", "dan"]})
    >>> best, members = top_structural_diversity(friends, t=1, k=2)
    >>> best
      vertex  score
    0     me      2
    >>> members
      vertex  context member
    0     me        0    ann
    1     me        0    bob
    2     me        1     cy
    3     me        1    dan
    """
    about = model_of(model)
    check_integer("k", k, about.least_k, f" for model={model!r}")
    check_integer("t", t, 1)
    k, t = int(k), int(t)
    check_truth(contexts=contexts, prune=prune)
    memory_limit = as_bytes("memory_limit", memory_limit)
    check_progress(progress)
    graph = as_graph(graph, **edges)
    begin = time.perf_counter()
    devices = check_devices(devices, graph)
    check_memory("structural_diversity", graph, None)
    number_of_vertices = graph.number_of_vertices
    t = number_of_best(t, number_of_vertices)
    csr = simple(graph, symmetrize)
    level = level_of(k, number_of_vertices, about)
    with _counting(progress, number_of_vertices) as tell:
        team = DiversityTeam(graph, csr, devices=devices, memory_limit=memory_limit, tell=tell)
        upper_bound = csr.degree // about.fewest_members(level)
        best, scores, evaluated = best_vertices(
            upper_bound, t, lambda vertices: team.scores(vertices, level, model), prune=prune
        )
    frames = [graph.frame({"score": scores}, best)]
    if contexts:
        vertex, context, member = contexts_of(csr, best, team.members(best, level, model))
        columns = {"context": context, **graph.external_columns(member, "member")}
        frames.append(graph.frame(columns, vertex))
    pruned = number_of_vertices - evaluated
    facts = {"model": model, "k": int(k), "evaluated": evaluated, "pruned": pruned, **team.report()}
    for frame in frames:
        set_attributes(frame, {**facts, "seconds": time.perf_counter() - begin})
    return tuple(frames) if contexts else frames[0]


@contextlib.contextmanager
def _counting(progress: Progress, vertices: int) -> Iterator[Callable[[int], None] | None]:
    """What is to be called with the number of further vertices done; None: nobody counts."""
    bar = {"desc": "ego-networks", "unit": "vertex", "total": vertices}
    with reporting(progress, _move, **bar) as report:
        if report is None:
            yield None
            return
        done = 0

        def count(further: int) -> None:
            nonlocal done
            done += further
            report({"evaluated": done, "vertices": vertices})

        yield count


def _move(bar: Any, facts: dict) -> None:
    bar.update(facts["evaluated"] - bar.n)


def _everyone(graph: Graph) -> Array:
    xp = array_module(graph.indptr)
    number_of_vertices = graph.number_of_vertices
    return graph.keep("everyone", lambda: xp.arange(number_of_vertices, dtype=graph.indices.dtype))


def number_of_best(t: int, number_of_vertices: int) -> int:
    """Return how many are the best: all of fewer vertices, as pandas' `nlargest` has it."""
    if not number_of_vertices:
        raise ValueError("the graph has no vertices, of which some could be the best")
    return min(t, number_of_vertices)


def level_of(k: int, number_of_vertices: int, about: Model) -> int:
    """Clamp k to what a graph of so many vertices can have, or just beyond."""
    return max(min(k, number_of_vertices), about.least_k)


def every_k(offsets: Array, scores: Array, least_k: int) -> dict[str, Array]:
    """List every k with a context, at least one a vertex: ``vertex, k, score``."""
    xp = array_module(offsets)
    # What has a context for some k has one for any smaller k.
    levels = integer_sums(scores > 0, offsets)
    begin = segment_offsets(xp.maximum(levels, 1))
    vertex = segment_ids(begin, np.int64)
    place = xp.arange(vertex.size) - begin[vertex]
    score = xp.zeros(vertex.size, dtype=np.int32)
    there = xp.flatnonzero(place < levels[vertex])
    score[there] = scores[offsets[vertex[there]] + place[there] + least_k - 1]
    return {"vertex": vertex, "k": (place + least_k).astype(np.int32), "score": score}
