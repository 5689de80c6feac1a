"""Label propagation with less memory than it would take: every way side by side, limit by limit.

Need is what the fastest run takes, the graph in memory included ("plain"). Much of that may be
state, which every way takes: so a limit is the least that any way can do with, and a share of what
the need is above that. Graphs are taken as they lie in memory or, with --mapped, in a mapped file,
whose pages count for nobody; compressed ones are what `compress` makes by default.

Each way has a process of its own. Its peak is NumPy's and Python's memory, as `tracemalloc` counts
it during a call, and the arrays of the graph that are in memory; compiled code takes none of its
own. Seconds are the median of runs without that, after one that warms up, in turns with a run in
memory that nothing limits, so that what disturbs one disturbs the other; by that run's median they
are divided. Its labels are those to be found.

On a GPU (``--device gpu``) lists are streamed from host memory: `beyond_gpu_memory` says how that
is measured. With ``--estimates`` `estimate_memory` is held against what runs take, on ten graphs;
``--parquet`` is `from_parquet`.
"""

from __future__ import annotations

import argparse
import multiprocessing
import re
import tempfile
import tracemalloc
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from glp_rapids import compress, estimate_memory, label_propagation
from glp_rapids.bench import (
    beyond_gpu_memory,
    estimated_memory,
    from_parquet,
    hybrid,
    memory,
    subjects,
)
from glp_rapids.bench.table import Rows, Tables
from glp_rapids.compressed.graph import CompressedGraph
from glp_rapids.device import LackOfMemory, memory_taken
from glp_rapids.graph.graph import Graph
from glp_rapids.graph.vertex_ids import VertexIds
from glp_rapids.propagation.ways import ON_CPU, WAYS

GRAPHS = ("com-dblp", "cnr-2000")
SHARES = (5, 10, 25, 50, 100)
CLOSE = 0.1  # of the peak, a prediction


@dataclass(frozen=True)
class Saved:
    """A graph in files: its arrays plain, and a compressed graph."""

    folder: Path
    mapped: bool
    vertices: VertexIds

    @classmethod
    def of(cls, graph: Graph, folder: Path, mapped: bool) -> Saved:
        """Write a graph."""
        for name in ("indptr", "indices"):
            np.save(folder / f"{name}.npy", getattr(graph, name))
        compress(graph).save(folder / "graph.glp")
        return cls(folder, mapped, graph.vertices)

    def load(self, form: str) -> Graph | CompressedGraph:
        """Read it, or map it."""
        if form == "compressed":
            return CompressedGraph.open(
                self.folder / "graph.glp", mmap=self.mapped, device="cpu", verify=False
            )
        mode = "r" if self.mapped else None
        arrays = (
            np.load(self.folder / f"{name}.npy", mmap_mode=mode) for name in ("indptr", "indices")
        )
        return Graph(*arrays, None, directed=False, vertices=self.vertices)


@dataclass(frozen=True)
class Measured:
    """What came of a run; ``lacking``: it was refused, for the limit is so many bytes too low."""

    equal: bool = False
    report: dict[str, Any] | None = None
    seconds: float = 0.0
    in_memory: float = 0.0  # seconds
    peak: int = 0
    lacking: int = 0


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add this bench's options."""
    subjects.add_options(parser, GRAPHS, repeats=3, threads="", device=False)
    parser.add_argument("--device", choices=("cpu", "gpu"), default="cpu")
    parser.add_argument("--limits", type=int, nargs="+", default=SHARES, metavar="PERCENT",
                        help="of what a run in memory takes beyond the least")  # fmt: skip
    parser.add_argument("--ways", nargs="+", default=ON_CPU, choices=ON_CPU)
    parser.add_argument("--mapped", action="store_true", help="lists lie in mapped files")
    parser.add_argument("--update", choices=("semi", "sync"), default="semi")
    parser.add_argument("--estimates", action="store_true",
                        help="only what runs take beside what estimate_memory says, of ten graphs "
                        "unless --graphs names others")  # fmt: skip
    parser.add_argument("--hybrid", action="store_true",
                        help="only streams to a GPU with and without the host's cores")  # fmt: skip
    parser.add_argument("--parquet", action="store_true",
                        help="only from a Parquet folder to labels in one command")  # fmt: skip


def run(options: argparse.Namespace) -> Tables:
    """Return a table of all graphs, limits and ways."""
    if options.parquet:
        return _parquet(options)
    if options.estimates:
        return _estimates(options)
    if options.device == "gpu" or options.hybrid:
        measured = hybrid if options.hybrid else beyond_gpu_memory
        measure_gpu = partial(measured.tables, options=options)
        return subjects.each(options.graphs, "gpu", "beyond-memory", measure_gpu)
    threads = subjects.processors(options.threads)
    where = "in a mapped file" if options.mapped else "in memory"

    def measure(name: str, graph: Graph) -> Tables:
        title = f"Ways under a limit, lists {where}, {threads} threads"
        return {title: _of_graph(name, graph, options, threads)}

    return subjects.each(options.graphs, "cpu", "beyond-memory", measure)


def _parquet(options: argparse.Namespace) -> Tables:
    names = from_parquet.GRAPHS if options.graphs is GRAPHS else options.graphs
    title = f"From a Parquet folder to labels on a {options.device}"

    def measure(name: str, graph: Graph) -> Tables:
        return {title: from_parquet.rows(name, graph, options.device)}

    return subjects.each(names, options.device, title, measure)


def _estimates(options: argparse.Namespace) -> Tables:
    names = estimated_memory.GRAPHS if options.graphs is GRAPHS else options.graphs
    title = f"estimate_memory, and what runs take on a {options.device}"
    if options.device == "gpu":
        of_gpu = partial(estimated_memory.of_gpu, update=options.update)
        return subjects.each(names, "gpu", title, lambda *one: {title: of_gpu(*one)})
    threads, once = subjects.processors(options.threads), _with(options, repeats=1)

    def measure(name: str, graph: Graph) -> Tables:
        with tempfile.TemporaryDirectory() as folder:
            saved = Saved.of(graph, Path(folder), options.mapped)
            run_once = partial(_apart, saved, options=once, threads=threads)
            more = graph.indices.nbytes // estimated_memory.SHARE
            found = _estimated(saved, options, more)
            return {title: estimated_memory.on_cpu(name, found, graph, run_once)}

    return subjects.each(names, "cpu", title, measure)


def _with(options: argparse.Namespace, **others: Any) -> argparse.Namespace:
    """Give the same options but for some."""
    return argparse.Namespace(**{**vars(options), **others})


def _estimated(saved: Saved, options: argparse.Namespace, more: int = 0) -> dict[str, int]:
    """Return what each way takes on a CPU, by `estimate_memory`.

    What is streamed takes the least, and so many bytes ``more``, if they are of use.
    """
    found: dict[str, int] = {}
    for form in ("plain", "compressed"):
        estimate = partial(estimate_memory, saved.load(form), device="cpu", update=options.update)
        least = estimate(memory_limit=1).set_index("way")["host_bytes"]
        for way in (way for way in ON_CPU if WAYS[way].form == form):
            found[way] = int(least[way])
            if WAYS[way].streamed and more:
                with_more = estimate(memory_limit=found[way] + more).set_index("way")
                found[way] = int(with_more["host_bytes"][way])
    return found


def _of_graph(name: str, graph: Graph, options: argparse.Namespace, threads: int) -> Rows:
    with tempfile.TemporaryDirectory() as folder:
        saved = Saved.of(graph, Path(folder), options.mapped)
        estimates = _estimated(saved, options)
        need = estimates["plain"]
        least = min(estimates["streamed plain"], estimates["streamed packed"])
        rows = []
        for share in sorted(options.limits):
            limit = least + share * max(need - least, 0) // 100
            for way in options.ways:
                found = _apart(saved, way, limit, options, threads)
                row = {"graph": name, "limit %": share, "limit MB": limit / 1e6, "way": way}
                rows.append(row | _row(found, limit))
    return rows


def _row(found: Measured, limit: int) -> dict[str, Any]:
    if found.lacking:
        return {"seconds": None, "MB too little": found.lacking / 1e6}
    predicted = found.report["predicted"]
    return {
        "seconds": found.seconds,
        "times in memory": found.seconds / found.in_memory,
        "predicted MB": predicted / 1e6,
        "peak MB": found.peak / 1e6,
        "below the limit": found.peak <= limit,
        "predicted within 10%": abs(predicted - found.peak) <= CLOSE * found.peak,
        "labels equal": found.equal,
    }


def _apart(
    saved: Saved, way: str, limit: int, options: argparse.Namespace, threads: int
) -> Measured:
    """Run in a process of its own, which begins with nothing."""
    how = {"way": way, "memory_limit": limit, "update": options.update}
    # a process that was forked would do with one thread
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_measured, (saved, how, options.repeats, threads))


def _measured(saved: Saved, how: dict[str, Any], repeats: int, threads: int) -> Measured:
    subjects.processors(threads)
    graph, plain = saved.load(WAYS[how["way"]].form), replace(saved, mapped=False).load("plain")

    def call() -> Any:
        fresh = memory.bare(graph) if graph.scheme else replace(graph, _derived={})
        return label_propagation(fresh, **how)

    def in_memory() -> Any:
        return label_propagation(replace(plain, _derived={}), update=how["update"])

    try:
        found = call()
    except LackOfMemory as error:
        return Measured(lacking=_lacking(str(error)))
    equal = found.equals(in_memory())
    seconds = [
        [run().attrs["glp"]["seconds"] for run in (call, in_memory)]
        for _ in range(max(repeats, 1))
    ]  # fmt: skip
    tracemalloc.start()
    call()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    held = memory_taken(*graph.rows("out").arrays(made=False))
    return Measured(equal, found.attrs["glp"], *np.median(seconds, axis=0), peak + held)


def _lacking(text: str) -> int:
    """Return by how many bytes a limit is too low, as the error says."""
    found = re.search(r" bytes is (?:at least )?([\d,]+) too little", text)
    return int(found[1].replace(",", ""))
