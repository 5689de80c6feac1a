"""Speed on a CPU, in seconds: ours and NetworKit's PLP in turns, each to its own convergence.

Both sides have their graph already; ours is the whole call, from graph to frame, after one call
that warms up. Medians over seeds, the two sides alternating so that what disturbs one disturbs the
other. Then the ingest of a pandas edge frame, and classic label propagation written by a user
against the built-in one: once word for word, once reworded so that nothing recognises it.
"""

from __future__ import annotations

import argparse
import time
from statistics import median
from typing import Any

import numpy as np
import pandas as pd

from glp_rapids import datasets
from glp_rapids.bench import subjects
from glp_rapids.bench.table import Rows, Tables
from glp_rapids.graph.graph import Graph
from glp_rapids.ingest.read import as_graph
from glp_rapids.metrics import modularity

GRAPHS = ("com-dblp", "cnr-2000", "rmat-20-10")
REQUIRED = {"defaults": 1.5, "explore=0": 3.0}
INGEST_SECONDS, INGEST_ROWS = 3.0, 10_000_000
PROGRAM_RATIO = 1.1


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add this bench's options."""
    subjects.add_options(parser, GRAPHS, repeats=5, threads="", device=False)
    parser.add_argument("--rows", type=int, default=INGEST_ROWS, help="to ingest; 0: none")
    parser.add_argument("--alone", action="store_true", help="without NetworKit")


def run(options: argparse.Namespace) -> Tables:
    """Return a table of label propagation, one of programs and one of ingest."""
    threads = subjects.processors(options.threads)
    peer = None if options.alone else subjects.networkit(threads)

    def measure(name: str, graph: Graph) -> Tables:
        return {
            f"Label propagation on {threads} threads":
                _propagation(peer, name, graph, options.repeats),
            f"User-defined classic label propagation, {threads} threads":
                _programs(name, graph, options.repeats),
        }  # fmt: skip

    tables = subjects.each(options.graphs, "cpu", "cpu", measure)
    if options.rows:
        tables[f"Ingest on {threads} threads"] = _ingest(options.rows, min(options.repeats, 3))
    return tables


def _propagation(peer: Any, name: str, graph: Graph, repeats: int) -> Rows:
    ours: dict[str, list[subjects.Outcome]] = {mode: [] for mode in subjects.MODES}
    theirs = []
    other = None if peer is None else subjects.networkit_graph(peer, graph)
    for seed in range(-1, repeats):  # the first, -1, warms up
        if other is not None:
            theirs.append(subjects.run_networkit(peer, other, max(seed, 0)))
        for mode, settings in subjects.MODES.items():
            ours[mode].append(subjects.run_ours(graph, seed=max(seed, 0), **settings))
    rows = []
    for mode, outcomes in ours.items():
        row = {"graph": name, "entries": graph.number_of_edges, "mode": mode,
               "seconds": median(outcome.seconds for outcome in outcomes[1:]),
               "sweeps": max(outcome.sweeps for outcome in outcomes[1:]),
               "modularity": _modularity(graph, outcomes[-1])}  # fmt: skip
        if theirs:
            row["NetworKit seconds"] = median(outcome.seconds for outcome in theirs[1:])
            row["NetworKit modularity"] = _modularity(graph, theirs[-1])
            row["times as fast"] = row["NetworKit seconds"] / row["seconds"]
            row["wanted"] = REQUIRED[mode]
            row["reached"] = row["times as fast"] >= REQUIRED[mode]
        rows.append(row)
    return rows


def _modularity(graph: Graph, outcome: subjects.Outcome) -> float:
    return modularity(graph, graph.frame({"partition": outcome.labels}))


def _ingest(rows: int, repeats: int) -> Rows:
    scale = max(1, (rows // 10).bit_length())
    source, destination = datasets.rmat(scale, -(-rows // (1 << scale)), device="cpu")
    # ids that are no indices: any int64, in no order
    ids = np.random.default_rng(0).integers(-(2**62), 2**62, 1 << scale)
    frame = pd.DataFrame({"src": ids[source[:rows]], "dst": ids[destination[:rows]]})
    as_graph(frame[:1000], device="cpu")
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        graph = as_graph(frame, device="cpu")
        seconds.append(time.perf_counter() - start)
    found, limit = median(seconds), INGEST_SECONDS * rows / INGEST_ROWS
    row = {"rows": rows, "ids": "int64", "vertices": graph.number_of_vertices,
           "entries": graph.number_of_edges, "seconds": found, "wanted below": limit,
           "reached": found < limit}  # fmt: skip
    return [row]


def _programs(name: str, graph: Graph, repeats: int) -> Rows:
    from glp_rapids import label_propagation, propagate
    from glp_rapids.bench.programs import Reworded, WordForWord

    contestants = {
        "built-in": lambda: label_propagation(graph, device="cpu"),
        "word for word": lambda: propagate(graph, WordForWord(), device="cpu"),
        "reworded": lambda: propagate(graph, Reworded(), device="cpu"),
    }
    seconds: dict[str, list[float]] = {kind: [] for kind in contestants}
    for _ in range(repeats + 1):
        for kind, run_once in contestants.items():
            start = time.perf_counter()
            run_once()
            seconds[kind].append(time.perf_counter() - start)
    built_in = median(seconds.pop("built-in")[1:])
    return [
        {"graph": name, "program": kind, "seconds": median(times[1:]), "built-in seconds": built_in,
         "ratio": median(times[1:]) / built_in, "wanted at most": PROGRAM_RATIO,
         "reached": median(times[1:]) <= PROGRAM_RATIO * built_in}
        for kind, times in seconds.items()
    ]  # fmt: skip
