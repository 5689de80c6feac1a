"""Compressed graphs: bits an entry, encoding, and label propagation on them beside the plain graph.

Entries are those of the CSR, two per undirected edge, loops left out. Sweeps are synchronous and
leave nothing out; runs to convergence take the defaults. "of plain" is the plain graph's time over
the compressed one's. "decode" is the two-kernel way (CGLP): all is decoded, then labels propagate.
Memory is what CuPy holds at the most from the compressed graph to its result; its bound is the
compressed size and a tenth, and 60 bytes a vertex. Medians of the repeats after a warm-up.
"""

from __future__ import annotations

import argparse
from functools import partial
from typing import Any, NamedTuple

from glp_rapids.bench import memory, subjects, timing
from glp_rapids.bench.table import Rows, Tables
from glp_rapids.compressed.graph import CompressedGraph
from glp_rapids.compression import compress
from glp_rapids.graph.graph import Graph
from glp_rapids.propagation.engines import ENGINES

GRAPHS = ("web", "cnr-2000", "uk-2007-100k")
SCHEMES = ("cgr", "packed", "entropy")
STRATEGIES = tuple(ENGINES["gpu", "packed"])
WANTED_SHARE = {"packed": 0.6, "cgr": 0.25}  # of the plain sweep's rate
WANTED_OVER_DECODE = 1.4
WANTED_ENCODING = 1.0  # G entries a second
RAW = 32  # lists of up to so many are left raw by the paper: a row of its own in the sizes


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add this bench's options."""
    about = "as for bench gpu, or WebGraph's .graph files"
    subjects.add_options(parser, GRAPHS, repeats=5, about=about)
    parser.add_argument("--schemes", nargs="+", default=SCHEMES, choices=SCHEMES, metavar="NAME",
                        help=f"of {', '.join(SCHEMES)}")  # fmt: skip
    parser.add_argument("--order", choices=("llp", "degree", "bfs"), help="before compression")
    parser.add_argument("--sweeps", type=int, default=20)


def run(options: argparse.Namespace) -> Tables:
    """Return the tables, with a row a graph and scheme."""
    measured = partial(measure, options=options)
    return subjects.each(options.graphs, options.device, "compressed", measured)


def measure(name: str, graph: Graph, options: argparse.Namespace) -> Tables:
    """Measure one graph, where it lives."""
    device, repeats = graph.device, options.repeats
    sizes: Rows = []
    sweeps: Rows = []
    runs: Rows = []
    memories: Rows = []
    plain = Times(
        timing.timed_sweeps(_sync(graph, options), repeats, device),
        timing.timed(subjects.propagation(graph), repeats, device),
    )
    for scheme in options.schemes:
        compressed, rows = encoded(graph, scheme, options)
        sizes += [{"graph": name} | row for row in rows]
        memories += [{"graph": name, "scheme": scheme} | row for row in _memory(compressed)]
        found = propagated(compressed, plain, options)
        for table, rows in zip((sweeps, runs), found, strict=True):
            table += [{"graph": name, "scheme": scheme} | row for row in rows]
        del compressed
    return {
        f"Size and encoding, {device}": sizes,
        f"Synchronous sweeps, nothing skipped, {device}": sweeps,
        f"To convergence, {device}": runs,
        f"Memory of a run, {device}": memories,
    }


class Times(NamedTuple):
    """How long a graph takes."""

    sweeps: timing.Sweeps
    run: timing.Timing


def encoded(graph: Graph, scheme: str, options: argparse.Namespace) -> tuple[CompressedGraph, Rows]:
    """Compress a graph; return it, and rows of its size: without raw lists, and with short ones."""
    rows = []
    for raw_below in (RAW, 0):
        make = partial(compress, graph, scheme, raw_below=raw_below, order=options.order)
        milliseconds, compressed = timing.clocked(make, options.repeats, graph.device)
        decode_ms, back = timing.clocked(compressed.to_graph, 1, graph.device)
        exact = _same(back.indptr, graph.indptr) and _same(back.indices, graph.indices)
        del back
        rows.append(size_row(compressed, milliseconds) | {"decode ms": decode_ms, "exact": exact})
    return compressed, rows[::-1]


def propagated(
    compressed: CompressedGraph, plain: Times, options: argparse.Namespace
) -> tuple[Rows, Rows]:
    """Return the rows of sweeps and those of runs to convergence, a row a strategy."""
    device, scheme = compressed.device, compressed.layout.scheme
    sweeps: Rows = []
    runs: Rows = []
    for strategy in STRATEGIES if device == "gpu" else STRATEGIES[:1]:
        ours = timing.timed_sweeps(_sync(compressed, options, strategy), options.repeats, device)
        call = subjects.propagation(compressed, strategy)
        run = timing.timed(call, options.repeats, device)
        share = plain.sweeps.median_ms / ours.median_ms
        wanted = WANTED_SHARE.get(scheme) if (device, strategy) == ("gpu", "auto") else None
        same = subjects.same_labels(ours.timing.found, plain.sweeps.timing.found)
        sweeps.append({"strategy": strategy, "plain ms": plain.sweeps.median_ms,
                       "ms": ours.median_ms,
                       "G entries/s": compressed.number_of_edges / ours.median_ms / 1e6,
                       "of plain": share, "wanted": wanted,
                       "reached": None if wanted is None else share >= wanted,
                       "same labels": same})  # fmt: skip
        runs.append({"strategy": strategy, "sweeps": run.sweeps, "plain ms": plain.run.run_ms,
                     "ms": run.run_ms, "of plain": plain.run.run_ms / run.run_ms,
                     "same labels": subjects.same_labels(run.found, plain.run.found)})  # fmt: skip
    for rows in (sweeps, runs):
        if len(rows) > 1:
            over = rows[1]["ms"] / rows[0]["ms"]
            rows[0] |= {"over decode": over, "enough": over >= WANTED_OVER_DECODE}
    return sweeps, runs


def size_row(compressed: CompressedGraph, milliseconds: float) -> dict:
    """Return the row of a size and of how fast it was encoded."""
    stats, entries = compressed.stats(), compressed.number_of_edges
    rate = entries / milliseconds / 1e6
    return {"scheme": compressed.layout.scheme, "raw up to": compressed.layout.raw_below,
            "entries": entries, "bits an entry": stats["bits_of_lists"],
            "CSR over it": stats["ratio"], "MB": compressed.nbytes / 1e6, "encode ms": milliseconds,
            "G entries/s": rate,
            "reached": rate >= WANTED_ENCODING if compressed.device == "gpu" else None}  # fmt: skip


def _memory(compressed: CompressedGraph) -> Rows:
    if compressed.device == "cpu":
        return []
    rows = []
    for what, settings in (("defaults", {}), ("synchronous", {"update": "sync", "explore": 0})):

        def call(subject: CompressedGraph, settings: dict[str, Any] = settings) -> Any:
            return subjects.propagation(subject, **settings)()

        rows.append({"run": what} | memory.of_run(compressed, call)[1])
    return rows


def _sync(graph: Any, options: argparse.Namespace, strategy: str = "auto") -> Any:
    settings = subjects.synchronous(options.sweeps, skip_inactive=False)
    return subjects.propagation(graph, strategy, **settings)


def _same(one: Any, other: Any) -> bool:
    return bool((one == other).all())
