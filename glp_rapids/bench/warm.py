"""Warm starts: a share of the edges goes, and a run goes on from the result before that.

Three runs of each graph after the change: cold, from the earlier result with everybody evaluated,
and with ``touched=``, which is checked to give the same labels. Each is the first on its graph, so
nothing is left from another; they take turns, and the best of the repeats counts: "run" is the loop
with what it sets up, "call" goes from the graph to the frame. Churn is the share of vertices that
are not where most of their earlier community is, or came to where most come from another.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from glp_rapids.bench import subjects, timing
from glp_rapids.bench.table import Rows, Tables
from glp_rapids.device import to_host
from glp_rapids.graph.graph import Graph
from glp_rapids.ingest.read import as_graph
from glp_rapids.metrics import modularity

GRAPHS, SHARES = ("com-dblp",), (0.001, 0.01)
COLD = "cold"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add this bench's options."""
    subjects.add_options(parser, GRAPHS, repeats=5, threads="on a CPU")
    parser.add_argument("--shares", nargs="+", type=float, default=SHARES, metavar="SHARE",
                        help="of the edges that go (default 0.001 and 0.01)")  # fmt: skip


def run(options: argparse.Namespace) -> Tables:
    """Return a table with a row a graph, share and way to begin."""
    threads = subjects.processors(options.threads)

    def measure(name: str, graph: Graph) -> Tables:
        rows = [
            row for share in options.shares
            for row in _rows(name, graph, share, max(options.repeats, 1))
        ]  # fmt: skip
        return {f"Warm starts, {threads} threads": rows}

    return subjects.each(options.graphs, options.device, "warm", measure)


def without_some(graph: Graph, share: float, seed: int = 0) -> tuple[Graph, Any]:
    """Return an undirected graph less a share of its edges, drawn at random; and their ends."""
    device = graph.device
    ends = {"src": to_host(graph.row_indices()), "dst": to_host(graph.indices)}
    once = ends["src"] <= ends["dst"]
    gone = np.random.default_rng(seed).random(int(once.sum())) < share
    ids = graph.external()
    host = np.asarray(ids.to_pandas() if hasattr(ids, "to_pandas") else ids)
    columns = {name: host[end[once][~gone]] for name, end in ends.items()}
    if graph.weights is not None:
        columns["weight"] = to_host(graph.weights)[once][~gone]
    touched = host[np.unique(np.concatenate([end[once][gone] for end in ends.values()]))]
    known, there = (
        subjects.frame_of({"vertex": ids}, device)["vertex"] for ids in (host, touched)
    )
    weight = "weight" if "weight" in columns else None
    edges = subjects.frame_of(columns, device)
    return as_graph(edges, weight=weight, vertices=known, device=device), there


def churn(before: Any, after: Any) -> float:
    """Return the share of vertices that left most of their community, or came to others'.

    ``before`` and ``after`` are labels of the same vertices, from 0 on.
    """
    pairs, counts = np.unique(np.stack([before, after]), axis=1, return_counts=True)
    stayed = []
    for labels in pairs:
        most = np.zeros(int(labels.max(initial=-1)) + 1, np.int64)
        np.maximum.at(most, labels, counts)
        stayed.append(int(most.sum()))
    return 1 - min(stayed) / max(len(before), 1)


def _rows(name: str, graph: Graph, share: float, repeats: int) -> Rows:
    from glp_rapids import label_propagation

    device = graph.device
    earlier = label_propagation(graph, device=device)
    after, touched = without_some(graph, share)
    begin = partial(label_propagation, device=device)
    contestants: dict[str, Callable[[Any], Any]] = {
        COLD: begin,
        "initial=": partial(begin, initial=earlier),
        "initial=, touched=": partial(begin, initial=earlier, touched=touched),
    }
    calls: dict[str, list[float]] = {which: [] for which in contestants}
    runs: dict[str, list[float]] = {which: [] for which in contestants}
    found = {}
    for number in range(-1, repeats):  # the first, -1, warms up
        for which, function in contestants.items():
            fresh = replace(after, _derived={})
            timing.synchronise(device)
            start = time.perf_counter()
            found[which] = function(fresh)
            timing.synchronise(device)
            if number >= 0:
                calls[which].append(1e3 * (time.perf_counter() - start))
                runs[which].append(1e3 * found[which].attrs["glp"]["seconds"])
    everybody, few = list(found.values())[1:]
    if not subjects.same_labels(everybody, few):
        raise AssertionError(f"{name}: touched= changed the result")
    labels = to_host(earlier["partition"].values)
    return [
        {"graph": name, "share": share, "begins": which,
         "evaluated": found[which].attrs["glp"]["evaluated"],
         "sweeps": found[which].attrs["glp"]["sweeps"],
         "run ms": min(runs[which]), "call ms": min(calls[which]),
         "times (run)": min(runs[COLD]) / min(runs[which]),
         "times (call)": min(calls[COLD]) / min(calls[which]),
         "churn": churn(labels, to_host(found[which]["partition"].values)),
         "modularity": modularity(after, found[which])}
        for which in contestants
    ]  # fmt: skip
