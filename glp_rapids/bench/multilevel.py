"""Multilevel label propagation beside NetworKit's PLM and igraph's Leiden: seconds and modularity.

All sides have their graph already; ours is the whole call, from graph to frame. They take turns,
seed after seed, so that what disturbs one disturbs the others; medians. Partitions of all are
judged by our modularity, and by NMI where communities were planted; with ``--cpm`` the constant
Potts model at some resolutions is made large, on a CPU, and judged.

With ``--device gpu``: our methods and `contract` on a graph that lies there, whole calls, one that
nobody has used before and one that was, and cuGraph's Louvain and Leiden where it is installed.
"""

from __future__ import annotations

import argparse
import importlib.util
import random
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from statistics import median
from typing import Any

import numpy as np

from glp_rapids.bench import subjects, timing
from glp_rapids.bench.ingest import edge_frame
from glp_rapids.bench.table import Rows, Tables
from glp_rapids.device import array_module, to_host
from glp_rapids.graph.graph import Graph
from glp_rapids.metrics import cpm, modularity, nmi

GRAPHS = ("com-dblp", "cnr-2000", "web-NotreDame", "email-Enron", "lfr-100000-mu0.1")
GPU_GRAPHS = ("web", "kron-22-16", "com-dblp")
WANTED_MS = {"web": 35.0, "kron-22-16": 120.0, "com-dblp": 12.0}  # on an H200, by default
# How our runs go that are compared.
MODES: dict[str, dict[str, Any]] = {
    "default": {},
    "iterations=1": {"iterations": 1},
    "refine=False": {"refine": False},
}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add this bench's options."""
    subjects.add_options(parser, None, repeats=5, threads="")
    parser.add_argument("--alone", action="store_true", help="without NetworKit and igraph")
    parser.add_argument("--cpm", nargs="+", type=float, metavar="RESOLUTION",
                        help="by the constant Potts model, beside igraph's")  # fmt: skip


def run(options: argparse.Namespace) -> Tables:
    """Return a table with a row a graph and contestant."""
    if options.device == "gpu":
        if options.cpm:
            raise ValueError("--cpm compares on a CPU; leave --device away")
        names = options.graphs or GPU_GRAPHS
        return subjects.each(names, "gpu", "multilevel", partial(_on_gpu, options.repeats))
    threads = subjects.processors(options.threads)

    def measure(name: str, graph: Graph) -> Tables:
        if options.cpm:
            return {f"The constant Potts model on {threads} threads": [
                row for resolution in options.cpm
                for row in _potts_rows(name, graph, resolution, options.repeats, options.alone)
            ]}  # fmt: skip
        contestants = _ours(graph)
        if not options.alone:
            contestants |= _peers(threads, graph)
        return {f"Multilevel methods on {threads} threads": _rows(
            name, graph, contestants, options.repeats, "modularity", modularity
        )}  # fmt: skip

    return subjects.each(options.graphs or GRAPHS, "cpu", "multilevel", measure)


def _ours(graph: Graph) -> dict[str, Callable[[int], np.ndarray]]:
    from glp_rapids import label_propagation, multilevel_label_propagation

    return {
        "label_propagation": partial(_labels, label_propagation, graph),
        **{mode: partial(_labels, multilevel_label_propagation, graph, **options)
           for mode, options in MODES.items()},
    }  # fmt: skip


def _labels(function: Callable, graph: Graph, seed: int, **options: Any) -> np.ndarray:
    return to_host(function(graph, seed=seed, device="cpu", **options)["partition"].values)


def _potts_rows(name: str, graph: Graph, resolution: float, repeats: int, alone: bool) -> Rows:
    from glp_rapids import multilevel_label_propagation

    options = {"objective": "cpm", "resolution": resolution}
    contestants = {
        mode: partial(_labels, multilevel_label_propagation, graph, **options, **more)
        for mode, more in MODES.items()
    }
    if not alone:
        contestants["igraph Leiden"] = _igraph_leiden(graph, "CPM", resolution)
    judge = partial(cpm, resolution=resolution)
    rows = _rows(name, graph, contestants, repeats, "cpm", judge)
    return [{"graph": name, "resolution": resolution, **row} for row in rows]


def _on_gpu(repeats: int, name: str, graph: Graph) -> Tables:
    from glp_rapids import contract, multilevel_label_propagation

    rows = []
    for mode, options in MODES.items():
        call = partial(multilevel_label_propagation, **options)
        repeated, found = timing.clocked(partial(call, graph), repeats, "gpu")
        first = timing.fresh(lambda: replace(graph, _derived={}), call, repeats, "gpu")
        wanted = WANTED_MS.get(name) if mode == "default" else None
        report = found.attrs["glp"]
        rows.append(
            {"graph": name, "which": mode, "ran on": report["device"],
             "fresh ms": first, "repeated ms": repeated,
             "wanted at most": wanted, "levels": len(report["levels"]),
             "sweeps": report["sweeps"], "modularity": report["modularity"]}
        )  # fmt: skip
        if mode == "default":
            milliseconds, small = timing.clocked(partial(contract, graph, found), repeats, "gpu")
            rows.append({"graph": name, "which": "contract", "repeated ms": milliseconds,
                         "entries": graph.number_of_edges,
                         "entries left": small.number_of_edges})  # fmt: skip
    for which, call in _cugraph_calls(graph).items():
        milliseconds, (parts, _) = timing.clocked(call, repeats, "gpu")
        rows.append({"graph": name, "which": which, "repeated ms": milliseconds,
                     "modularity": modularity(graph, _by_index(graph, parts))})  # fmt: skip
    return {"Multilevel methods on a GPU": rows}


def _by_index(graph: Graph, parts: Any) -> Any:
    """Name the vertices of a peer's partition, who knows indices and nobody without an edge."""
    size = graph.number_of_vertices
    labels = array_module(graph.indices).arange(size, 2 * size)
    labels[parts["vertex"].values] = parts["partition"].values
    return graph.frame({"partition": labels})


def _cugraph_calls(graph: Graph) -> dict[str, Callable[[], Any]]:
    """Return calls of cuGraph by name; none where it is not installed."""
    if not importlib.util.find_spec("cugraph"):
        return {}
    import cugraph

    other = cugraph.Graph()
    other.from_cudf_edgelist(edge_frame(graph), source="src", destination="dst")
    return {
        "cuGraph louvain": partial(cugraph.louvain, other),
        "cuGraph leiden": partial(cugraph.leiden, other, random_state=0),
    }


def _peers(threads: int, graph: Graph) -> dict[str, Callable[[int], np.ndarray]]:
    networkit = subjects.networkit(threads)
    other = subjects.networkit_graph(networkit, graph)

    def plm(seed: int) -> np.ndarray:
        networkit.setSeed(seed, True)
        return np.asarray(networkit.community.PLM(other).run().getPartition().getVector())

    return {"NetworKit PLM": plm, "igraph Leiden": _igraph_leiden(graph, "modularity", 1.0)}


def _igraph_leiden(graph: Graph, objective: str, resolution: float) -> Callable[[int], np.ndarray]:
    try:
        import igraph
    except ImportError as error:
        raise ImportError(
            f"this bench runs igraph beside glp_rapids, and it does not import ({error}); install "
            "it (pip install igraph) or add --alone"
        ) from error
    rows = graph.row_indices()
    once = rows < graph.indices
    other = igraph.Graph(graph.number_of_vertices, np.stack([rows[once], graph.indices[once]], 1))

    def leiden(seed: int) -> np.ndarray:
        random.seed(seed)  # igraph draws from it
        found = other.community_leiden(objective, resolution=resolution, n_iterations=2)
        return np.asarray(found.membership)

    return leiden


def _rows(
    name: str, graph: Graph, contestants: dict[str, Callable[[int], np.ndarray]], repeats: int,
    quality: str, judge: Callable[..., float],
) -> Rows:  # fmt: skip
    truth = subjects.truth(name, graph)
    seconds: dict[str, list[float]] = {which: [] for which in contestants}
    found: dict[str, list[np.ndarray]] = {which: [] for which in contestants}
    for seed in range(-1, repeats):  # the first, -1, warms up
        for which, function in contestants.items():
            start = time.perf_counter()
            labels = function(max(seed, 0))
            if seed >= 0:
                seconds[which].append(time.perf_counter() - start)
                found[which].append(labels)
    return [
        {"graph": name, "which": which, "seconds": median(seconds[which]),
         "fastest": min(seconds[which]),
         quality: median(
             judge(graph, graph.frame({"partition": labels})) for labels in found[which]
         ),
         "NMI": None if truth is None else median(nmi(labels, truth) for labels in found[which]),
         "communities": int(median(np.unique(labels).size for labels in found[which]))}
        for which in contestants
    ]  # fmt: skip
