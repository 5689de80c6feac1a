"""Label propagation on a GPU beside the ceiling of its memory, measured in the same run.

The ceiling is one reading of every neighbour's index and label by a plain kernel; "of ceiling" is
that time over the time of a median sweep that leaves nothing out. Times of runs are the loop's, the
graph on the device; calls are timed from graph to frame, on the host where that is pandas. All are
medians of the repeats after a call that warms up; a fresh call is the first on a graph on which
nothing is kept, with the kernels compiled: with no memory in a pool, and, the next one, with what
the call before it on another graph has left there. Entries are those of the CSR, two per undirected
edge; graph edges a second are entries over time, traversed edges a second that times the sweeps.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from glp_rapids.bench import memory, subjects, timing
from glp_rapids.bench.table import Rows, Tables
from glp_rapids.device import array_module, gpu_available
from glp_rapids.graph.graph import Graph
from glp_rapids.metrics import modularity
from glp_rapids.propagation.engines import ENGINES

if TYPE_CHECKING:
    from glp_rapids.bench.ceiling import Ceiling

GRAPHS = ("kron-22-16", "kron-24-16", "web", "road")
STRATEGIES = tuple(ENGINES["gpu", "plain"])
VARIANTS = ("classic", "weighted", "layered", "user-defined", "speaker-listener")
WANTED_RATIO = {"weighted": 1.5, "whole weights": 1.5, "layered": 1.3, "word for word": 1.1,
                "reworded": 1.1, "speaker-listener": 2.0}  # fmt: skip
WANTED_OF_CEILING, WANTED_FIRST = 0.75, 2.0

ENTRIES_AT_ONCE = 1 << 26
WEIGHT_SEED = 0x3E16


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add this bench's options."""
    about = (
        "kron-SCALE-FACTOR, rmat-SCALE-FACTOR, web[-PAGES], road[-SIDE], social[-PEOPLE], "
        "a name of glp_rapids.datasets, or a file of edges"
    )
    subjects.add_options(parser, GRAPHS, repeats=5, device=False, about=about)
    for option, names in {"--strategies": STRATEGIES, "--variants": VARIANTS}.items():
        parser.add_argument(option, nargs="+", default=names[:1], choices=[*names, "all"],
                            metavar="NAME", help=f"compare {', '.join(names)}, or all")  # fmt: skip
    parser.add_argument("--sweeps", type=int, default=20, help="of classic runs (default 20)")


def run(options: argparse.Namespace) -> Tables:
    """Return the tables, with a row a graph and what was done with it."""
    if not gpu_available():
        raise ValueError(
            "bench gpu measures a GPU, and none can be used here: `glp-rapids doctor` says why; "
            "bench cpu measures a CPU"
        )
    if min(options.repeats, options.sweeps) < 1:
        raise ValueError("--repeats and --sweeps must be at least 1")
    return subjects.each(options.graphs, "gpu", "gpu", partial(measure, options=options))


def measure(name: str, graph: Graph, options: argparse.Namespace) -> Tables:
    """Measure one graph, where it lives; on a CPU there is no ceiling and no peak memory."""
    on_gpu = graph.device == "gpu"
    # a run leaves on the graph what it keeps, so memory comes first
    tables = {"Peak device memory, the graph included": _memory(name, graph, options)}
    ceiling = None
    if on_gpu:
        from glp_rapids.bench.ceiling import measure as measure_ceiling

        ceiling = measure_ceiling(graph, options.repeats)
    tables["Ceiling"] = [ceiling_row(name, graph, ceiling)]
    title = f"Classic synchronous label propagation, at most {options.sweeps} sweeps"
    tables[title] = _classic(name, graph, options, ceiling)
    tables["To convergence"] = _to_convergence(name, graph, options)
    strategies = _chosen(options.strategies, STRATEGIES)
    if strategies != ["auto"]:
        tables["Strategies, classic synchronous, nothing skipped"] = _strategies(
            name, graph, options, strategies
        )
    variants = _chosen(options.variants, VARIANTS)
    if variants != ["classic"]:
        tables["Variants, synchronous, nothing skipped"] = _variants(name, graph, options, variants)
    return tables


def ceiling_row(name: str, graph: Graph, ceiling: Ceiling | None) -> dict:
    """Return the row of what the memory allows."""
    entries = graph.number_of_edges
    row = {"graph": name, "vertices": graph.number_of_vertices, "entries": entries}
    stream, gather = (ceiling.stream_ms, ceiling.gather_ms) if ceiling else (None, None)
    return row | {"indices ms": stream, "indices G/s": _rate(entries, stream),
                  "indices and labels ms": gather,
                  "indices and labels G/s": _rate(entries, gather)}  # fmt: skip


def classic_row(
    name: str, entries: int, skipping: bool, sweeps: timing.Sweeps, ceiling: Ceiling | None
) -> dict:
    """Return the row of one way to run classic sweeps; full ones compare with the ceiling."""
    run = sweeps.timing
    row = {"graph": name, "skipping": "yes" if skipping else "no", "sweeps": run.sweeps,
           "first ms": sweeps.first_ms, "median ms": sweeps.median_ms, "total ms": run.run_ms,
           "call ms": run.call_ms, "G traversed edges/s": _rate(entries * run.sweeps, run.run_ms),
           "G edges/s, median sweep": None, "of ceiling": None, "first / median": None,
           "reached": None}  # fmt: skip
    if not skipping:
        row["G edges/s, median sweep"] = _rate(entries, sweeps.median_ms)
        row["first / median"] = sweeps.first_ms and sweeps.first_ms / sweeps.median_ms
    if not skipping and ceiling is not None:
        row["of ceiling"] = ceiling.gather_ms / sweeps.median_ms
        first = row["first / median"]
        # A first sweep that nobody timed reaches nothing.
        row["reached"] = (
            row["of ceiling"] >= WANTED_OF_CEILING and first is not None and first <= WANTED_FIRST
        )
    return row


def convergence_row(
    name: str, entries: int, mode: str, run: timing.Timing, fresh_ms: tuple[float, float],
    quality: float,
) -> dict:  # fmt: skip
    """Return the row of one run to its own end."""
    return {"graph": name, "mode": mode, "sweeps": run.sweeps, "run ms": run.run_ms,
            "call ms": run.call_ms, "fresh call ms": fresh_ms[0], "next fresh call ms": fresh_ms[1],
            "G graph edges/s": _rate(entries, run.run_ms),
            "G graph edges/s, call": _rate(entries, run.call_ms),
            "G traversed edges/s": _rate(entries * run.sweeps, run.run_ms),
            "modularity": quality}  # fmt: skip


def memory_row(name: str, graph: Graph, what: str, peak: int | None) -> dict:
    """Return the row of the most memory that a run took."""
    vertices, entries = graph.number_of_vertices, graph.number_of_edges
    allowed = memory.bound(vertices, entries, graph.weights is not None)
    row = {"graph": name, "run": what, "bytes": peak, "bound": allowed}
    if peak is None:
        return row
    an_edge = 4 if graph.weights is None else 8
    return row | {"bytes an edge": peak / max(entries, 1),
                  "bytes a vertex": peak / max(vertices, 1),
                  "a vertex beyond the edges'": (peak - an_edge * entries) / max(vertices, 1),
                  "of bound": peak / allowed, "reached": peak <= allowed}  # fmt: skip


def strategy_rows(
    name: str, found: dict[str, timing.Sweeps], same: Callable[[Any, Any], bool]
) -> Rows:
    """Return a row a strategy, beside the one that keeps its tables in global memory."""
    slowest = found.get("global")
    return [
        {"graph": name, "strategy": strategy, "first ms": sweeps.first_ms,
         "median ms": sweeps.median_ms, "total ms": sweeps.timing.run_ms,
         "times over global": slowest and slowest.median_ms / sweeps.median_ms,
         "same labels": same(sweeps.timing.found, found["auto"].timing.found)}
        for strategy, sweeps in found.items()
    ]  # fmt: skip


def variant_rows(name: str, found: dict[str, timing.Sweeps]) -> Rows:
    """Return a row a variant, beside the classic."""
    classic = found["classic"]
    rows = []
    for variant, sweeps in found.items():
        ratio, wanted = sweeps.median_ms / classic.median_ms, WANTED_RATIO.get(variant)
        rows.append({"graph": name, "variant": variant, "sweeps": sweeps.timing.sweeps,
                     "first ms": sweeps.first_ms, "median ms": sweeps.median_ms,
                     "total ms": sweeps.timing.run_ms, "times classic": ratio,
                     "wanted at most": wanted,
                     "reached": None if wanted is None else ratio <= wanted})  # fmt: skip
    return rows


def _rate(edges: float, milliseconds: float | None) -> float | None:
    return edges / milliseconds / 1e6 if milliseconds else None  # G edges a second


def _chosen(wanted: Iterable[str], every: tuple[str, ...]) -> list[str]:
    """List the names asked for, and the first of all, with which they are compared."""
    wanted = {every[0], *(every if "all" in wanted else wanted)}
    return [name for name in every if name in wanted]


def _memory(name: str, graph: Graph, options: argparse.Namespace) -> Rows:
    if graph.device == "cpu" or not memory.counts():
        return [memory_row(name, graph, "defaults", None)]
    synchronous = subjects.synchronous(options.sweeps)
    runs = [("classic", bare, synchronous), ("defaults", bare, {})]
    if "weighted" in _chosen(options.variants, VARIANTS):
        # shares all but the weights with the graph, so that nothing is counted twice
        runs.append(("weighted classic", weighted, synchronous))
    rows, subject = [], None
    for what, made, settings in runs:
        del subject  # and what the last run left on it
        subject = made(graph)
        memory.free_memory()
        with memory.peak_memory() as water:
            subjects.propagation(subject, **settings)()
        rows.append(memory_row(name, subject, what, water.peak))
    return rows


def _classic(name: str, graph: Graph, options: argparse.Namespace, ceiling: Ceiling | None) -> Rows:
    rows = []
    for skipping in (False, True):
        settings = subjects.synchronous(options.sweeps, skip_inactive=skipping)
        call = subjects.propagation(graph, **settings)
        sweeps = timing.timed_sweeps(call, options.repeats, graph.device)
        rows.append(classic_row(name, graph.number_of_edges, skipping, sweeps, ceiling))
    return rows


def _to_convergence(name: str, graph: Graph, options: argparse.Namespace) -> Rows:
    rows, on_gpu = [], graph.device == "gpu"
    for mode, settings in subjects.MODES.items():
        run = timing.timed(subjects.propagation(graph, **settings), options.repeats, graph.device)

        def begin(without_memory: bool) -> Graph:
            if without_memory and on_gpu:
                memory.free_memory()
            return bare(graph)

        def call(subject: Graph, settings: dict = settings) -> Any:
            return subjects.propagation(subject, **settings)()

        fresh = tuple(
            timing.fresh(partial(begin, first), call, options.repeats, graph.device)
            for first in (True, False)
        )
        quality = modularity(graph, run.found)
        rows.append(convergence_row(name, graph.number_of_edges, mode, run, fresh, quality))
    return rows


def _strategies(
    name: str, graph: Graph, options: argparse.Namespace, strategies: list[str]
) -> Rows:
    settings = subjects.synchronous(options.sweeps, skip_inactive=False)
    found = {}
    for strategy in strategies:
        call = subjects.propagation(graph, strategy, **settings)
        found[strategy] = timing.timed_sweeps(call, options.repeats, graph.device)
    return strategy_rows(name, found, subjects.same_labels)


def _variants(name: str, graph: Graph, options: argparse.Namespace, variants: list[str]) -> Rows:
    found = {}
    for variant in variants:
        for label, call in _calls(variant, graph, options):
            found[label] = timing.timed_sweeps(call, options.repeats, graph.device)
            found[label] = replace(found[label], timing=replace(found[label].timing, found=None))
    return variant_rows(name, found)


def _calls(
    variant: str, graph: Graph, options: argparse.Namespace
) -> Iterable[tuple[str, Callable[..., Any]]]:
    """Yield the calls that make the same number of sweeps of a variant, and their names."""
    from glp_rapids import layered_label_propagation, propagate, speaker_listener
    from glp_rapids.bench.programs import Reworded, WordForWord

    settings = subjects.synchronous(options.sweeps, skip_inactive=False)
    there = {"device": graph.device, **settings}
    if variant == "classic":
        yield variant, subjects.propagation(graph, **settings)
    elif variant == "weighted":
        yield variant, subjects.propagation(weighted(graph), **settings)
        yield "whole weights", subjects.propagation(weighted(graph, whole=True), **settings)
    elif variant == "layered":
        yield variant, partial(layered_label_propagation, graph, gammas=[1], **there)
    elif variant == "user-defined":
        yield "word for word", partial(propagate, graph, WordForWord(), **there)
        yield "reworded", partial(propagate, graph, Reworded(), **there)
    else:
        yield variant, partial(speaker_listener, graph, device=graph.device, update="sync",
                               max_iter=options.sweeps)  # fmt: skip


def bare(graph: Graph) -> Graph:
    """Return the graph without what runs left on it."""
    return replace(graph, _derived={})


def weighted(graph: Graph, whole: bool = False) -> Graph:
    """Return the graph with float32 weights, a hash of the pair of ends.

    They are in [0.5, 1.5), or whole numbers from 1 to 8.
    """
    from glp_rapids.common.hashing import mix_array

    xp = array_module(graph.indices)
    weights = xp.empty(graph.number_of_edges, np.float32)
    rows = graph.row_indices()
    for first in range(0, weights.size, ENTRIES_AT_ONCE):
        part = slice(first, first + ENTRIES_AT_ONCE)
        one, other = rows[part], graph.indices[part]
        pair = xp.minimum(one, other).astype(np.int64) * graph.number_of_vertices
        words = mix_array(pair + xp.maximum(one, other), WEIGHT_SEED)
        # 23 bits are what a float32 below 2 holds without rounding
        words >>= np.uint64(41)
        weights[part] = 1 + words % 8 if whole else 0.5 + words.astype(np.float64) / (1 << 23)
    return replace(graph, weights=weights, _derived={})
