"""Breadth-first search and shortest paths, in milliseconds, SciPy, NetworKit and cuGraph beside.

All sides have their graph already and take turns, start by start; medians over the starts after one
that warms up. Starts are drawn among the vertices that have an edge, the same for all. Ours is the
whole call, from graph to frame, with predecessors; SciPy's breadth-first search gives an order and
predecessors, no distances; NetworKit's give distances (``storePaths=False``). Weights of shortest
paths are integers from 1 to 255, a hash of the two ends. "many" is one `multi_source_bfs` from 64
vertices, with ``summary``: nobody beside us has that. "layers" makes the `layered_edges`. SciPy and
NetworKit run on the host; cuGraph, if it is installed, on the GPU of a graph that is there, and its
breadth-first search also from both sides, which its Python functions switch off ("both sides").

"fresh" is the first call on a graph of which nothing is kept. On a GPU with an engine of its own,
"here" is the engine's part of a call, without what becomes of its arrays: if the caller's frames
are pandas', most of a call is their way to the host. It is done ten times in a row from each
start, of which the first warms up: after such a copy it takes some 0.2 ms more. ``--wanted`` leaves
out what no time is wanted for; without ``--graphs``, that leaves a table of all that one is. With
cuDF, arrays come from RMM, whose default gives memory back at once: each array costs every side
0.1 ms. ``--pool`` has them from a pool, as RAPIDS advises those who call often.
"""

from __future__ import annotations

import argparse
import functools
import importlib.util
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from statistics import median
from typing import Any

import numpy as np

from glp_rapids.bench import subjects
from glp_rapids.bench.table import Tables
from glp_rapids.bench.timing import clocked, fresh, memory_pool
from glp_rapids.common.hashing import mix_array
from glp_rapids.device import array_module, choose, to_host
from glp_rapids.frames.kinds import on_host
from glp_rapids.graph.graph import Graph
from glp_rapids.traversal.engines import ENGINES, largest

GRAPHS = ("road", "kron-20-16")
MANY = 64  # sources of one call
REPEATS_HERE = 9  # of an engine's part
PEERS = ("SciPy", "NetworKit", "cuGraph", "both sides")
SEARCHES = ("bfs", "sssp", "many", "layers")
# On two cores, and on an H200.
WANTED_MS = {
    "cpu": {("road", "bfs"): 150, ("road", "sssp"): 400},
    "gpu": {
        ("road", "bfs"): 8, ("road", "sssp"): 15, ("kron-22-16", "bfs"): 0.8,
        ("kron-22-16", "sssp"): 8, ("kron-22-16", "many"): 12, ("kron-22-16", "layers"): 3,
        ("kron-24-16", "bfs"): 2.5, ("web", "bfs"): 0.6,
    },
}  # fmt: skip
LARGEST_WEIGHT, WEIGHT_SEED = 255, 3

Search = Callable[[int], Any]


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add this bench's options."""
    subjects.add_options(parser, (), repeats=5, threads="")
    parser.add_argument("--searches", nargs="+", choices=SEARCHES, default=SEARCHES)
    parser.add_argument("--wanted", action="store_true",
                        help="only what a time is wanted for; without --graphs, all of that")
    parser.add_argument("--peers", nargs="*", choices=PEERS, default=PEERS, metavar="NAME",
                        help=f"of {', '.join(PEERS)}; without a name none; all that are "
                        "installed, if it is not given")  # fmt: skip
    parser.add_argument("--pool", action="store_true", help="GPU memory from a pool of RMM")


def run(options: argparse.Namespace) -> Tables:
    """Return a table with a row a graph and search."""
    threads = subjects.processors(options.threads)
    makers: dict[str, Callable[[Graph], dict[str, Search]]] = {
        "SciPy": _scipy, "NetworKit": partial(_networkit, threads),
    }  # fmt: skip

    def measure(name: str, graph: Graph) -> Tables:
        weighted = with_whole_weights(graph)
        here = dict(makers)
        if graph.device == "gpu" and importlib.util.find_spec("cugraph"):
            theirs = partial(_cugraphs, weighted)
            plain, with_weights = (functools.cache(partial(theirs, one)) for one in (False, True))
            here["cuGraph"] = lambda _: _cugraph(plain, with_weights)
            here["both sides"] = partial(_pylibcugraph, plain)
        peers = {peer: make(weighted) for peer, make in here.items() if peer in options.peers}
        starts = draw_starts(graph, max(options.repeats, 1) + 1)
        where = f"graph on the {graph.device}{', in a pool of RMM' if options.pool else ''}"
        title = f"Traversal, {where}, {threads} threads, ms"
        searches = [
            what for what in options.searches
            if not options.wanted or (name, what) in WANTED_MS[graph.device]
        ]  # fmt: skip
        return {title: [_row(name, graph, what, weighted, peers, starts) for what in searches]}

    graphs = options.graphs or GRAPHS
    if options.wanted and not options.graphs:
        graphs = dict.fromkeys(name for name, _ in WANTED_MS[choose(options.device)])
    with memory_pool() if options.pool else nullcontext():
        return subjects.each(graphs, options.device, "traversal", measure)


def with_whole_weights(graph: Graph) -> Graph:
    """Return the graph with int64 weights from 1 to 255, a hash of the pair of ends."""
    xp = array_module(graph.indices)
    rows = graph.row_indices()
    pair = xp.minimum(rows, graph.indices).astype(np.int64) * graph.number_of_vertices
    words = mix_array(pair + xp.maximum(rows, graph.indices), WEIGHT_SEED)
    weights = (words % np.uint64(LARGEST_WEIGHT)).astype(np.int64) + 1
    return replace(graph, weights=weights, _derived={})


def draw_starts(graph: Graph, number: int) -> list[int]:
    """Draw vertices, as indices, among those that have an edge."""
    known = np.flatnonzero(to_host(graph.degree))
    return np.random.default_rng(0).choice(known, number).tolist()


def _ours(weighted: Graph) -> dict[str, Search]:
    from glp_rapids import bfs, layered_edges, multi_source_bfs, sssp

    graph = replace(weighted, weights=None, _derived={})
    known = np.flatnonzero(to_host(graph.degree))
    ids = on_host(graph.external(np.arange(graph.number_of_vertices)))

    def from_many(start: int) -> Any:
        chosen = np.random.default_rng(start).choice(known, min(MANY, known.size), replace=False)
        return multi_source_bfs(graph, graph.external(chosen), summary=True, device=graph.device)

    return {
        "bfs": lambda start: bfs(graph, ids[start], device=graph.device),
        "sssp": lambda start: sssp(weighted, ids[start], device=graph.device),
        "many": from_many,
        "layers": lambda start: layered_edges(graph, ids[start], device=graph.device),
    }


def _searches(weighted: Graph) -> dict[str, Search]:
    """Return the engine's parts of the calls, for a graph on a GPU."""
    from glp_rapids.traversal.engines import engine_for, order_by_level

    graph = replace(weighted, weights=None, _derived={})
    plain, with_weights = engine_for(graph, "out"), engine_for(weighted, "out")
    xp = array_module(graph.indices)
    known, most = np.flatnonzero(to_host(graph.degree)), largest(weighted.weights.dtype)

    def index(*starts: int) -> Any:
        return xp.asarray(np.array(starts, graph.index_dtype))

    def layers(start: int) -> Any:
        found = plain.bfs(index(start), 1 << 40, True)
        order, _ = order_by_level(found.distance, found.rounds)
        return plain.rows_in_order(order)

    def from_many(start: int) -> Any:
        chosen = np.random.default_rng(start).choice(known, min(MANY, known.size), replace=False)
        return list(plain.bfs_of_each(index(*np.sort(chosen)), 1 << 40, False))

    return {
        "bfs": lambda start: plain.bfs(index(start), 1 << 40, True),
        "layers": layers,
        "sssp": lambda start: with_weights.sssp(index(start), most, index(), True),
        "many": from_many,
    }


def _cugraph(plain: Callable[[], Any], weighted: Callable[[], Any]) -> dict[str, Search]:
    """Search by cuGraph; what makes its graphs is called by the first search, which warms up."""
    import cugraph

    return {
        "bfs": lambda start: cugraph.bfs(plain(), int(start)),
        "sssp": lambda start: cugraph.sssp(weighted(), int(start)),
    }


def _pylibcugraph(plain: Callable[[], Any], graph: Graph) -> dict[str, Search]:
    """Search by cuGraph's lower library, which can also go from both sides."""
    import cudf
    import pylibcugraph

    handle = pylibcugraph.ResourceHandle()

    def search(start: int) -> Any:
        sources = cudf.Series([start], dtype=graph.index_dtype)
        return pylibcugraph.bfs(
            handle, plain()._plc_graph, sources, direction_optimizing=True,
            depth_limit=graph.number_of_vertices, compute_predecessors=True,
            do_expensive_check=False,
        )  # fmt: skip

    return {"bfs": search}


def _cugraphs(graph: Graph, weighted: bool) -> Any:
    """Return the graph as cuGraph's, without weights or with them."""
    import cudf
    import cugraph

    rows = graph.row_indices()
    once = rows <= graph.indices
    ends = cudf.DataFrame({"src": rows[once], "dst": graph.indices[once]})
    options = {}
    if weighted:  # its shortest paths take floating point only
        ends["weight"], options = graph.weights[once].astype(np.float64), {"weight": "weight"}
    made = cugraph.Graph()
    made.from_cudf_edgelist(ends, source="src", destination="dst", **options)
    return made


def _scipy(graph: Graph) -> dict[str, Search]:
    from scipy.sparse import csgraph, csr_array

    host = graph.to("cpu")
    matrix = csr_array(
        (host.weights.astype(np.float64), host.indices, host.indptr),
        shape=(host.number_of_vertices,) * 2,
    )
    return {
        "bfs": lambda start: csgraph.breadth_first_order(matrix, start),
        "sssp": lambda start: csgraph.dijkstra(matrix, indices=start),
    }


def _networkit(threads: int, graph: Graph) -> dict[str, Search]:
    peer = subjects.networkit(threads)
    host = graph.to("cpu")
    rows, columns = host.row_indices().astype(np.int64), host.indices.astype(np.int64)
    once = rows <= columns
    ends = rows[once], columns[once]
    entries = host.weights[once].astype(np.float64), ends
    plain = peer.GraphFromCoo(ends, n=host.number_of_vertices)
    weighted = peer.GraphFromCoo(entries, n=host.number_of_vertices, weighted=True)
    return {
        "bfs": lambda start: peer.distance.BFS(plain, start, storePaths=False).run(),
        "sssp": lambda start: peer.distance.Dijkstra(weighted, start, storePaths=False).run(),
    }


def _row(
    name: str, graph: Graph, what: str, weighted: Graph, peers: dict[str, dict[str, Search]],
    starts: list[int],
) -> dict[str, Any]:  # fmt: skip
    sides = {"ours": _ours(weighted)[what]}
    if graph.device == "gpu" and "gpu" in ENGINES:
        sides["here"] = _searches(weighted)[what]
    sides |= {peer: calls[what] for peer, calls in peers.items() if what in calls}
    times: dict[str, list[float]] = {side: [] for side in sides}
    for start in starts:
        for side, call in sides.items():
            repeats = REPEATS_HERE if side == "here" else 0
            times[side].append(clocked(partial(call, start), repeats, graph.device)[0])
    row = {"graph": name, "vertices": graph.number_of_vertices,
           "entries": graph.number_of_edges, "search": what}  # fmt: skip
    found = {side: median(of_side[1:]) for side, of_side in times.items()}
    new = partial(replace, weighted, _derived={})
    first = fresh(
        lambda: _ours(new())[what], lambda call: call(starts[-1]), len(starts) - 1, graph.device
    )
    row |= {"fresh": first, **found}
    row |= {f"times {peer}": found[peer] / found["ours"] for peer in peers if peer in found}
    if wanted := WANTED_MS[graph.device].get((name, what)):
        row |= {"wanted below": wanted, "reached": found.get("here", found["ours"]) < wanted}
    return row
