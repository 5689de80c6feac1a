"""Structural diversity: every vertex, the best with and without pruning, and several devices.

Whole calls are timed, from a graph that lies on the device to a frame; with several devices, from
there to the scores. Peak bytes are what CuPy's pool takes from the device for a call, the graph
included. Beside the cores, trusses and triangles of the whole graph stand cuGraph's, where it is to
be had. All are medians of the repeats after a call that warms up; what a graph keeps from then on
are its rows without loops and the schedule, no results.
"""

from __future__ import annotations

import argparse
import importlib.util
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

import glp_rapids
from glp_rapids.bench import memory, subjects
from glp_rapids.bench.ingest import edge_frame
from glp_rapids.bench.table import Rows, Tables
from glp_rapids.bench.timing import clocked
from glp_rapids.device import array_module, choose
from glp_rapids.diversity.models import MODELS
from glp_rapids.diversity.team import DiversityTeam
from glp_rapids.graph.graph import Graph
from glp_rapids.graph.simple import simple
from glp_rapids.ingest.read import as_graph

# milliseconds for all vertices, k = 4: on an H200, and on two cores of a CPU
WANTED = {
    ("gpu", "com-dblp"): {"component": 5, "core": 10, "truss": 40},
    ("gpu", "social"): {"component": 1_000, "core": 2_000, "truss": 20_000},
    ("cpu", "com-dblp"): {"truss": 10_000},
}
WANTED_OF_CUGRAPH = {"core_number": 5, "k_truss": 5, "triangle_count": 3}  # times as fast
WANTED_SPEED_UP, WANTED_BALANCE = 1.7, 1.1
K = 4  # of what is wanted, and of the truss of the whole graph


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add this bench's options."""
    subjects.add_options(parser, ("com-dblp",), repeats=5)
    parser.add_argument("--models", nargs="+", default=tuple(MODELS), choices=tuple(MODELS))
    parser.add_argument("--k", nargs="+", type=int, default=(4,), metavar="K")
    parser.add_argument("--top", type=int, default=100, metavar="T", help="0: leave the best out")
    parser.add_argument("--devices", nargs="+", type=int, default=(), metavar="N",
                        help="of several GPUs their numbers: the first alone, and all; on a CPU "
                        "as many threads")  # fmt: skip
    parser.add_argument("--no-steal", action="store_true",
                        help="with --devices: also with nothing stolen")  # fmt: skip
    parser.add_argument("--no-whole", action="store_true", help="leave out the whole graph")


def run(options: argparse.Namespace) -> Tables:
    """Return the tables: of each graph, model and k; of sets of devices; of whole graphs."""
    if options.repeats < 1 or options.top < 0:
        raise ValueError("--repeats must be at least 1, and --top at least 0")
    device = choose(options.device)
    tables: Tables = {}
    # cuGraph comes last: with it comes RMM, and then CuPy's pool is not what memory is from
    for measure in [_diversity] + ([] if options.no_whole else [_whole]):
        measured = partial(measure, options=options)
        tables |= subjects.each(options.graphs, device, measure.__name__[1:], measured)
    return {f"{title}, {device}": rows for title, rows in tables.items()}


def _diversity(name: str, graph: Graph, options: argparse.Namespace) -> Tables:
    """Measure ego-networks by every model and k."""
    scores: Rows = []
    shared: Rows = []
    for model in options.models:
        for k in options.k:
            row = {"graph": name, "model": model, "k": k}
            scores.append(row | _scores(name, graph, model, k, options))
            if len(options.devices) > 1:
                shared += [row | found for found in _shared(graph, model, k, options)]
    return {"Structural diversity": scores, "Several devices": shared}


def _scores(
    name: str, graph: Graph, model: str, k: int, options: argparse.Namespace
) -> dict[str, Any]:
    """Time one model: all vertices, then the best of them."""
    device = graph.device
    call = partial(glp_rapids.structural_diversity, graph, k, model)
    ms, found = clocked(call, options.repeats, device)
    peak = _peak(call) if device == "gpu" else None
    row = {"best": int(found["score"].max()) if len(found) else None, "ms": ms}
    wanted = WANTED.get((device, name), {}).get(model) if k == K else None
    row |= {"wanted at most": wanted, "reached": None if wanted is None else ms <= wanted}
    row |= {"peak bytes": peak, "batches": found.attrs["glp"]["batches"]}
    if options.top:
        top = min(options.top, graph.number_of_vertices)
        call = partial(glp_rapids.top_structural_diversity, graph, top, k, model, contexts=False)
        pruned_ms, best = clocked(call, options.repeats, device)
        whole_ms, same = clocked(partial(call, prune=False), options.repeats, device)
        row |= {f"top-{top} ms": pruned_ms, "all / top": ms / pruned_ms,
                "unpruned ms": whole_ms, "pruned": best.attrs["glp"]["pruned"],
                "same": _equal(best, same)}  # fmt: skip
    return row


def _peak(call: Callable[[], Any]) -> int:
    """Return the bytes that CuPy's pool holds after a call that began with an empty one."""
    import cupy

    memory.free_memory()
    call()
    return cupy.get_default_memory_pool().total_bytes()


def _shared(graph: Graph, model: str, k: int, options: argparse.Namespace) -> Rows:
    """Time the scores of all vertices with one device and with all."""
    csr = simple(graph, False)
    vertices = array_module(csr.indptr).arange(graph.number_of_vertices)

    def scores(devices: Sequence[int], steal: bool) -> dict[str, Any]:
        team = DiversityTeam(graph, csr, devices=devices, steal=steal)
        team.scores(vertices, k, model)
        return team.report()

    rows: Rows = []
    plans = [(options.devices[:1], True), (options.devices, True)]
    for devices, steal in plans + [(options.devices, False)] * options.no_steal:
        ms, report = clocked(partial(scores, devices, steal), options.repeats, graph.device)
        row = {"devices": len(devices), "stealing": steal, "seconds": ms / 1e3,
               "balance": report["balance"]}  # fmt: skip
        for what in ("units", "stolen"):
            row[what] = sum(worker[what] for worker in report["devices"])
        if rows:
            row["speed-up"] = rows[0]["seconds"] / row["seconds"]
        if rows and steal and graph.device == "gpu":
            row["reached"] = row["speed-up"] >= WANTED_SPEED_UP and row["balance"] <= WANTED_BALANCE
        rows.append(row)
    return rows


def _whole(name: str, graph: Graph, options: argparse.Namespace) -> Tables:
    """Time what is computed of a whole graph, cuGraph's beside it."""
    graph = _by_index(graph)
    calls = {
        "core_number": partial(glp_rapids.core_number, graph),
        "k_truss": partial(glp_rapids.k_truss, graph, K),
        "triangle_count": partial(glp_rapids.triangle_count, graph),
        "trussness": partial(glp_rapids.trussness, graph),
    }
    theirs = _cugraph_calls(graph)
    rows: Rows = []
    for what, call in calls.items():
        ms, found = clocked(call, options.repeats, graph.device)
        row = {"graph": name, "vertices": graph.number_of_vertices,
               "entries": graph.number_of_edges, "what": what, "ms": ms}  # fmt: skip
        if what in theirs:
            their_ms, their = clocked(theirs[what], options.repeats, graph.device)
            ratio, wanted = their_ms / ms, WANTED_OF_CUGRAPH[what]
            row |= {"cuGraph ms": their_ms, "cuGraph / ours": ratio, "wanted at least": wanted,
                    "reached": ratio >= wanted, "equal": same_facts(found, their)}  # fmt: skip
        rows.append(row)
    return {"Whole graphs": rows}


def _by_index(graph: Graph) -> Graph:
    """Return the graph with its vertex indices as ids, which is what cuGraph gets, too.

    If cuDF is there they are columns of cuDF, and so are our results, as cuGraph's are: to bring
    thirteen million edges to the host takes several times as long as to find a truss.
    """
    columns = [
        graph.row_indices(),
        graph.indices,
        array_module(graph.indices).arange(graph.number_of_vertices, dtype=graph.indices.dtype),
    ]
    if graph.device == "gpu" and importlib.util.find_spec("cudf"):
        import cudf

        columns = [cudf.Series(column) for column in columns]
    source, destination, known = columns
    return as_graph((source, destination), vertices=known, device=graph.device)


def _cugraph_calls(graph: Graph) -> dict[str, Callable[[], Any]]:
    """Return calls of cuGraph's functions on the same graph; none without cuGraph.

    cuGraph 26.10 ignores the ``degree_type`` of core_number: an undirected edge counts once.
    """
    if graph.device == "cpu" or not importlib.util.find_spec("cugraph"):
        return {}
    import cugraph

    other = cugraph.Graph()
    other.from_cudf_edgelist(edge_frame(graph), source="src", destination="dst")
    return {
        "core_number": lambda: cugraph.core_number(other),
        "k_truss": lambda: cugraph.k_truss(other, K),
        "triangle_count": lambda: cugraph.triangle_count(other),
    }


def same_facts(ours: Any, theirs: Any) -> bool:
    """Tell whether ours and cuGraph's (frames or graphs) agree on all vertices with an edge."""
    if hasattr(theirs, "view_edge_list"):
        return np.array_equal(_pairs(ours), _pairs(theirs.view_edge_list()))
    value = ours.columns[-1]
    ours, theirs = (_on_host(frame).set_index("vertex")[value] for frame in (ours, theirs))
    others = ours.drop(theirs.index)  # without an edge, they are in no edge list
    return not others.any() and np.array_equal(ours[theirs.index], theirs)


def _pairs(edges: Any) -> np.ndarray:
    """Return each undirected edge as one number, sorted."""
    edges = _on_host(edges)
    ends = np.sort([edges[end].to_numpy(np.int64) for end in ("src", "dst")], axis=0)
    return np.sort(ends[0] << 32 | ends[1])


def _equal(ours: Any, theirs: Any) -> bool:
    return _on_host(ours).equals(_on_host(theirs))


def _on_host(frame: Any) -> Any:
    return frame.to_pandas() if hasattr(frame, "to_pandas") else frame
