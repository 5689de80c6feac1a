"""Breadth-first search and shortest paths, in milliseconds, SciPy and NetworKit beside them.

All sides have their graph already and take turns, start by start; medians over the starts after one
that warms up. Starts are drawn among the vertices that have an edge, the same for all. Ours is the
whole call, from graph to frame, with predecessors; SciPy's breadth-first search gives an order and
predecessors, no distances; NetworKit's give distances (``storePaths=False``). Weights of shortest
paths are integers from 1 to 255, a hash of the two ends. "many" is one `multi_source_bfs` from 64
vertices, with ``summary``: nobody beside us has that. SciPy and NetworKit run on the host.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from statistics import median
from typing import Any

import numpy as np

from glp_rapids.bench import subjects
from glp_rapids.bench.table import Tables
from glp_rapids.bench.timing import clocked
from glp_rapids.common.hashing import mix_array
from glp_rapids.device import array_module, to_host
from glp_rapids.graph.graph import Graph

GRAPHS = ("road", "kron-20-16")
MANY = 64  # sources of one call
SEARCHES = ("bfs", "sssp", "many")
WANTED_MS = {("road", "bfs"): 150, ("road", "sssp"): 400}  # on two cores
LARGEST_WEIGHT, WEIGHT_SEED = 255, 3

Search = Callable[[int], Any]


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add this bench's options."""
    subjects.add_options(parser, GRAPHS, repeats=5, threads="")
    parser.add_argument("--searches", nargs="+", choices=SEARCHES, default=SEARCHES)
    parser.add_argument("--alone", action="store_true", help="without SciPy and NetworKit")


def run(options: argparse.Namespace) -> Tables:
    """Return a table with a row a graph and search."""
    threads = subjects.processors(options.threads)
    makers = {} if options.alone else {"SciPy": _scipy, "NetworKit": partial(_networkit, threads)}

    def measure(name: str, graph: Graph) -> Tables:
        weighted = with_whole_weights(graph)
        peers = {peer: make(weighted) for peer, make in makers.items()}
        starts = draw_starts(graph, max(options.repeats, 1) + 1)
        title = f"Traversal, graph on the {graph.device}, {threads} threads, ms"
        ours = _ours(graph, weighted)
        searches = options.searches
        return {title: [_row(name, graph, what, ours[what], peers, starts) for what in searches]}

    return subjects.each(options.graphs, options.device, "traversal", measure)


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


def _ours(graph: Graph, weighted: Graph) -> dict[str, Search]:
    from glp_rapids import bfs, multi_source_bfs, sssp

    known = np.flatnonzero(to_host(graph.degree))

    def from_many(start: int) -> Any:
        chosen = np.random.default_rng(start).choice(known, min(MANY, known.size), replace=False)
        return multi_source_bfs(graph, graph.external(chosen), summary=True, device=graph.device)

    return {
        "bfs": lambda start: bfs(graph, graph.external(np.array([start])), device=graph.device),
        "sssp": lambda start: sssp(
            weighted, graph.external(np.array([start])), device=graph.device
        ),
        "many": from_many,
    }


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
    name: str, graph: Graph, what: str, ours: Search, peers: dict[str, dict[str, Search]],
    starts: list[int],
) -> dict[str, Any]:  # fmt: skip
    sides = {"ours": ours, **{peer: calls[what] for peer, calls in peers.items() if what in calls}}
    times: dict[str, list[float]] = {side: [] for side in sides}
    for start in starts:
        for side, call in sides.items():
            times[side].append(clocked(partial(call, start), 0, graph.device)[0])
    row = {"graph": name, "vertices": graph.number_of_vertices,
           "entries": graph.number_of_edges, "search": what}  # fmt: skip
    found = {side: median(of_side[1:]) for side, of_side in times.items()}
    row |= found
    row |= {f"times {peer}": found[peer] / found["ours"] for peer in peers if peer in found}
    if wanted := WANTED_MS.get((name, what)):
        row |= {"wanted below": wanted, "reached": found["ours"] < wanted}
    return row
