"""What benches share: options, the graphs by name, calls to time, NetworKit beside us."""

from __future__ import annotations

import argparse
import importlib.util
import re
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from tqdm import tqdm

from glp_rapids import datasets
from glp_rapids.bench import memory
from glp_rapids.bench.table import Tables
from glp_rapids.device import DeviceName, array_module, choose, to_device, to_host
from glp_rapids.frames.kinds import Frame, Kind, to_frame
from glp_rapids.graph.graph import Graph
from glp_rapids.ingest.read import as_graph
from glp_rapids.ingest.webgraph.read import read_webgraph
from glp_rapids.propagation.options import MAX_ITER


@dataclass(frozen=True)
class Outcome:
    """One run: its labels by vertex index, how long it took, how many sweeps, did it end itself."""

    labels: np.ndarray
    seconds: float
    sweeps: int
    settled: bool


# How runs go that are compared: as by default, and without sweeps that settle ties at random.
MODES: dict[str, dict[str, Any]] = {"defaults": {}, "explore=0": {"explore": 0}}


def frame_kind(device: DeviceName) -> Kind:
    """Tell of which kind the frames are that a user of a device has."""
    return "cudf" if device == "gpu" and importlib.util.find_spec("cudf") else "pandas"


def frame_of(columns: Any, device: DeviceName) -> Frame:
    """Make a frame of columns, or of a frame of pandas, as a user of a device has it.

    Results are of the kind of what a graph was made of: those of pandas go from a GPU to the host.
    """
    return to_frame(dict(columns.items()), frame_kind(device))


def add_options(
    parser: argparse.ArgumentParser, graphs: Iterable[str], repeats: int | None = None,
    threads: str | None = None, device: bool = True, about: str = "as for bench gpu",
) -> None:  # fmt: skip
    """Add the options that benches share: --graphs, --repeats, --threads and --device."""
    parser.add_argument("--graphs", nargs="+", default=graphs, metavar="NAME", help=about)
    if repeats is not None:
        parser.add_argument("--repeats", type=int, default=repeats)
    if threads is not None:
        parser.add_argument("--threads", type=int, default=2, help=threads or None)
    if device:
        parser.add_argument("--device", choices=("cpu", "gpu"), default=None)


def each(
    names: Iterable[str], device: DeviceName | None, title: str,
    measure: Callable[[str, Graph], Tables],
) -> Tables:  # fmt: skip
    """Measure one graph after the other, each loaded when it is its turn; join their tables."""
    tables: Tables = {}
    for name in tqdm(names, desc=title, leave=False, disable=None):
        if choose(device) == "gpu":
            memory.free_memory()
        for heading, rows in measure(name, load(name, device)).items():
            tables.setdefault(heading, []).extend(rows)
    return {heading: rows for heading, rows in tables.items() if rows}


def propagation(graph: Any, strategy: str = "auto", **settings: Any) -> Callable[..., Any]:
    """Return a call of `label_propagation` where the graph lives, for further options."""
    from glp_rapids import label_propagation

    if strategy != "auto":
        settings["strategy"] = strategy
    return partial(label_propagation, graph, device=graph.device, **settings)


def synchronous(sweeps: int, **further: Any) -> dict[str, Any]:
    """Return the options of a run of so many synchronous sweeps, if labels change for as long."""
    return {"update": "sync", "explore": 0, "tol": 0.0, "max_iter": sweeps, **further}


def same_labels(one: Any, other: Any) -> bool:
    """Tell whether two results hold the same partition, number by number."""
    return np.array_equal(*(to_host(frame["partition"].values) for frame in (one, other)))


def load(name: str, device: DeviceName | None = None) -> Graph:
    """Load or make a graph, symmetric and without loops, by its name or the path of a file.

    Names are those of `datasets`; ``rmat-S-F`` or ``kron-S-F`` (scale S, factor F), ``web[-N]`` (N
    pages), ``road[-R]`` (R by R), ``social[-N]`` (N people), which are made on the device.
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
    return as_graph(frame_of(edges, device), vertices=known, device=device)


def with_shuffled_ids(graph: Graph, seed: int) -> tuple[Graph, np.ndarray]:
    """Return the graph with its vertices numbered anew at random, and every vertex's new number."""
    number = np.random.default_rng(seed).permutation(graph.number_of_vertices)
    there = to_device(number.astype(graph.index_dtype), graph.device)
    rows = graph.row_indices()
    once = slice(None) if graph.directed else rows <= graph.indices
    parts = (there[rows], there[graph.indices], graph.weights)
    edges = tuple(part[once] for part in parts if part is not None)
    known = np.arange(number.size)
    shuffled = as_graph(edges, directed=graph.directed, vertices=known, device=graph.device)
    return shuffled, number


# By a pattern of names: a function of the device and the numbers, for two arrays of ends and the
# number of vertices.
_MADE: dict[str, Callable[..., tuple[Any, Any, int]]] = {
    r"rmat-(\d+)-(\d+)": lambda device, scale, factor:
        (*datasets.rmat(scale, factor, device=device), 1 << scale),
    r"kron-(\d+)-(\d+)": lambda device, scale, factor:
        (*datasets.kronecker(scale, factor, device=device), 1 << scale),
    r"web(?:-(\d+))?": lambda device, pages=1_380_000:
        (*datasets.web_like(pages, device=device), pages),
    r"road(?:-(\d+))?": lambda device, side=2000:
        (*datasets.road_grid(side, side, device=device), side * side),
    r"social(?:-(\d+))?": lambda device, people=4_000_000:
        (*datasets.social(people, device=device), people),
}  # fmt: skip


def _without_loops(source: Any, destination: Any, vertices: int, device: DeviceName) -> Graph:
    proper = source != destination
    known = array_module(source).arange(vertices, dtype=source.dtype)
    ends = source[proper], destination[proper]
    return as_graph(ends, vertices=known, device=device)


def _read(path: Path, device: DeviceName) -> Graph:
    """Read a table with columns src and dst, or without names; a CSR; or a WebGraph."""
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
    proper = edges[edges["src"] != edges["dst"]]
    return as_graph(frame_of(proper, device), device=device)


def truth(name: str, graph: Graph) -> np.ndarray | None:
    """Return the planted community of each vertex, by index; None unless each has exactly one."""
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
            "install it (pip install networkit) or add --alone, to bench traversal --peers"
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
    start = time.perf_counter()
    found = propagation(graph, **options)()
    labels = to_host(found["partition"].values)
    seconds = time.perf_counter() - start
    about = found.attrs["glp"]
    ended = about["converged"] or about["sweeps"] < options.get("max_iter", MAX_ITER)
    return Outcome(labels, seconds, about["sweeps"], ended)


def processors(wanted: int) -> int:
    """Let Numba use so many threads, at most those there are; return their number."""
    import numba

    threads = min(wanted, numba.config.NUMBA_NUM_THREADS)
    numba.set_num_threads(threads)
    return threads
