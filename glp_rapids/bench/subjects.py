"""The graphs that are measured, the peers beside us, and one timed run of each."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from glp_rapids import datasets
from glp_rapids.device import DeviceName, array_module, choose, to_host
from glp_rapids.graph.graph import Graph
from glp_rapids.ingest.read import as_graph
from glp_rapids.ingest.webgraph.read import read_webgraph


@dataclass(frozen=True)
class Outcome:
    """One run: its labels by vertex index, how long it took, how many sweeps, did it settle."""

    labels: np.ndarray
    seconds: float
    sweeps: int
    settled: bool


def load(name: str, device: DeviceName | None = None) -> Graph:
    """Give a graph symmetrised and without loops.

    By a name of `datasets`; ``rmat-S-F`` or ``kron-S-F`` (scale S, factor F), ``web`` or ``web-N``
    (N pages), ``road`` or ``road-R`` (R by R), ``social`` or ``social-N`` (N people), which are
    made where they shall live; or by the path of a file.
    """
    device = choose(device)
    for pattern, make in _MADE.items():
        if found := re.fullmatch(pattern, name):
            numbers = [int(number) for number in found.groups() if number is not None]
            return _without_loops(*make(device, *numbers), device)
    if name not in datasets.NAMES and Path(name).suffix:
        return _read(Path(name), device)
    edges = datasets.load(name)
    edges = edges[edges["src"] != edges["dst"]]
    vertices = edges.attrs.get("vertices")
    if name.startswith("lfr-"):  # some of whose vertices have no edge
        known = datasets.ground_truth(name)["vertex"]
    else:
        known = None if vertices is None else np.arange(vertices)
    return as_graph(edges, vertices=known, device=device)


def _made_road(device: DeviceName, side: int = 2000) -> tuple[Any, Any, int]:
    return *datasets.road_grid(side, side, device=device), side * side


def _made_web(device: DeviceName, pages: int = 1_380_000) -> tuple[Any, Any, int]:
    return *datasets.web_like(pages, device=device), pages


def _made_social(device: DeviceName, people: int = 4_000_000) -> tuple[Any, Any, int]:
    return *datasets.social(people, device=device), people


_MADE: dict[str, Callable[..., tuple[Any, Any, int]]] = {
    r"rmat-(\d+)-(\d+)": lambda device, scale, factor: (
        *datasets.rmat(scale, factor, device=device),
        1 << scale,
    ),
    r"kron-(\d+)-(\d+)": lambda device, scale, factor: (
        *datasets.kronecker(scale, factor, device=device),
        1 << scale,
    ),
    r"web(?:-(\d+))?": _made_web,
    r"road(?:-(\d+))?": _made_road,
    r"social(?:-(\d+))?": _made_social,
}


def _without_loops(source: Any, destination: Any, vertices: int, device: DeviceName) -> Graph:
    proper = source != destination
    known = array_module(source).arange(vertices, dtype=source.dtype)
    ends = source[proper], destination[proper]
    return as_graph(ends, vertices=known, device=device)


def _read(path: Path, device: DeviceName) -> Graph:
    """Read edges: a table with columns src and dst, or without names; a CSR; a WebGraph."""
    from glp_rapids.frames import files

    if path.suffix == ".graph":
        graph = read_webgraph(path, device="cpu")
        return _without_loops(graph.row_indices(), graph.indices, graph.number_of_vertices, device)
    if path.suffix == ".npz":
        with np.load(path) as arrays:
            if missing := {"indptr", "indices"} - set(arrays):
                raise ValueError(f"{path} has no array {missing.pop()!r}; it must hold a CSR")
            indptr, destination = arrays["indptr"].astype(np.int64), arrays["indices"]
        source = np.repeat(np.arange(len(indptr) - 1, dtype=destination.dtype), np.diff(indptr))
        return _without_loops(source, destination, len(indptr) - 1, device)
    ends = ["src", "dst"]
    edges = files.read_table(path, ends)
    if files.checked_ending(path) not in files.PARQUET and not {*ends} <= {*edges.columns}:
        edges = files.read_table(path, ends, header=ends)
    files.check_columns(list(edges.columns), path, {"source": "src", "destination": "dst"})
    return as_graph(edges[edges["src"] != edges["dst"]], device=device)


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
