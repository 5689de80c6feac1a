"""The graphs that are measured, the peers beside us, and one timed run of each."""

from __future__ import annotations

import time
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd

from glp_rapids import datasets
from glp_rapids.device import to_host
from glp_rapids.graph import Graph
from glp_rapids.ingest import as_graph


@dataclass(frozen=True)
class Outcome:
    """One run: its labels by vertex index, how long it took, how many sweeps, did it settle."""

    labels: np.ndarray
    seconds: float
    sweeps: int
    settled: bool


def load(name: str, device: str | None = None) -> Graph:
    """Give a named graph symmetrised and without loops; ``rmat-S-F`` is made: scale S, factor F."""
    if name.startswith("rmat-"):
        scale, factor = map(int, name.split("-")[1:])
        source, destination = datasets.rmat(scale, factor)
        edges, vertices = pd.DataFrame({"src": source, "dst": destination}), 1 << scale
    else:
        edges = datasets.load(name)
        vertices = edges.attrs.get("vertices")
    edges = edges[edges["src"] != edges["dst"]]
    if name.startswith("lfr-"):  # some of whose vertices have no edge
        known = datasets.ground_truth(name)["vertex"]
    else:
        known = None if vertices is None else np.arange(vertices)
    return as_graph(edges, vertices=known, device=device)


def truth(name: str, graph: Graph) -> np.ndarray | None:
    """Give the planted community of each vertex, by index, where there is exactly one each."""
    if not name.startswith("lfr-"):
        return None
    known = datasets.ground_truth(name)
    labels = np.empty(graph.number_of_vertices, np.int64)
    labels[to_host(graph.vertex_index(known["vertex"], "truth"))] = known["partition"]
    return labels


def networkit(threads: int) -> ModuleType:
    """Import NetworKit, or say how to get on without it."""
    try:
        import networkit
    except ImportError as error:
        raise ImportError(
            f"this bench runs NetworKit beside glp_rapids, and it does not import ({error}); "
            "install it (pip install networkit) or add --alone"
        ) from error
    networkit.setNumberOfThreads(threads)
    return networkit


def networkit_graph(peer: ModuleType, graph: Graph) -> Any:
    """Make NetworKit's graph of ours, on the same vertex indices."""
    degree = to_host(graph.degree)
    source = np.repeat(np.arange(degree.size), degree)
    destination = to_host(graph.indices).astype(np.int64)
    once = source < destination
    return peer.GraphFromCoo((source[once], destination[once]), n=degree.size)


def run_networkit(peer: ModuleType, graph: Any, seed: int) -> Outcome:
    """Run NetworKit's PLP to its own end; only the run itself is timed."""
    peer.setSeed(seed, False)
    algorithm = peer.community.PLP(graph)
    start = time.perf_counter()
    algorithm.run()
    seconds = time.perf_counter() - start
    labels = np.asarray(algorithm.getPartition().getVector())
    return Outcome(labels, seconds, algorithm.numberOfIterations(), True)


def run_ours(graph: Graph, **options: Any) -> Outcome:
    """Run label propagation; the whole call is timed, from graph to frame."""
    from glp_rapids import label_propagation

    start = time.perf_counter()
    found = label_propagation(graph, device=graph.device, **options)
    labels = to_host(found["partition"].values)
    seconds = time.perf_counter() - start
    about = found.attrs["glp"]
    return Outcome(labels, seconds, about["sweeps"], about["converged"])


def processors(wanted: int) -> int:
    """Give the number of threads to use on both sides, at most those there are."""
    import numba

    threads = min(wanted, numba.config.NUMBA_NUM_THREADS)
    numba.set_num_threads(threads)
    return threads
