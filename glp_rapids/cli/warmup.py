"""``glp-rapids warmup``: compile before the first call, into the cache, as for a container's image.

`WORK` names the kinds of work; each is done once on small graphs, with and without weights where
that is compiled apart. What is cached belongs to this kind of processor and to these versions. Some
of it may have come with the package (see `glp_rapids.cli.ship_cpu` and `ship`); it is cached, too.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any, Literal

Device = Literal["cpu", "gpu"]

EPILOG = """\
examples:
  glp-rapids warmup                                    # all of it, for the CPU
  glp-rapids warmup --gpu label-propagation diversity  # some of it, for the GPU
  NUMBA_CACHE_DIR=/opt/kernels glp-rapids warmup       # there, where the same variable finds it

In a Dockerfile:
  ENV NUMBA_CACHE_DIR=/opt/kernels
  RUN glp-rapids warmup && chmod -R a+rX /opt/kernels

The image must be built on the kind of processor that it runs on; elsewhere it compiles anew. Where
images are built without the GPU that they are for, this compiles what first calls of label
propagation need, into the package, in some minutes:
  RUN python -m glp_rapids.cli.ship
"""
VERTICES, EDGES = 5_000, 60_000  # enough for the kernels of many entries
OF_HUB = 300  # of these at vertex 0: more than a compressed list has in one part


def _graph(device: Device, weights: str | None = None, scale: float = 1) -> Any:
    import numpy as np

    from glp_rapids import as_graph

    random = np.random.default_rng(0)
    edges = [random.integers(0, VERTICES, EDGES) for _ in range(2)]
    edges[0][:OF_HUB] = 0
    column = [] if weights is None else [(random.integers(1, 9, EDGES) * scale).astype(weights)]
    return as_graph((*edges, *column), device=device)


def _graphs(device: Device, *weights: str) -> Iterator[Any]:
    """Make graphs without weights, and with such: whole ones, and others where a GPU minds."""
    from glp_rapids.cli.ship import FRACTION, LARGE

    yield _graph(device)
    for one in weights:
        for scale in (1, FRACTION if one.startswith("float") else LARGE)[: 1 + (device == "gpu")]:
            yield _graph(device, one, scale)


def _sparse_matrices(device: Device) -> None:
    import scipy.sparse

    from glp_rapids import as_graph

    for weights in (None, "int64", "float64"):
        graph = _graph("cpu", weights)
        n = graph.number_of_vertices
        data = graph.indices > -1 if graph.weights is None else graph.weights
        starts = graph.indptr.astype("int32")  # SciPy gives indices the type of these
        matrix = scipy.sparse.csr_array((data, graph.indices, starts), shape=(n, n))
        for given in (matrix, scipy.sparse.triu(matrix, format="csr")):
            as_graph(given, device=device)


def _label_propagation(device: Device) -> None:
    from glp_rapids import label_propagation

    for graph in _graphs(device, "int64", "float64"):
        found = label_propagation(graph, tol=0)
        label_propagation(graph, initial=found, touched=range(9))


def _streamed(device: Device) -> None:
    from glp_rapids import label_propagation

    for weights in (None, "float64"):
        graph = _graph("cpu", weights, 0.5)
        label_propagation(graph, way="streamed plain", device=device, max_iter=3)


def _layered(device: Device) -> None:
    from glp_rapids import layered_label_propagation

    for graph in _graphs(device, "float64"):
        layered_label_propagation(graph, gammas=[0, 1], max_iter=3)


def _speaker_listener(device: Device) -> None:
    from glp_rapids import speaker_listener

    for weights in (None, "float64"):
        speaker_listener(_graph(device, weights), max_iter=3)


def _seeded(device: Device) -> None:
    from glp_rapids import seeded_label_propagation

    for weights in (None, "float64"):
        seeded_label_propagation(_graph(device, weights), {0: "a", 1: "b"}, max_iter=3)


def _multilevel(device: Device) -> None:
    from glp_rapids import multilevel_label_propagation

    for weights in (None, "int64", "float64"):
        multilevel_label_propagation(_graph(device, weights))


def _several(device: Device) -> None:
    from glp_rapids import label_propagation

    devices: list = ["cpu", "cpu"]
    if device == "gpu":
        import cupy

        devices = list(range(cupy.cuda.runtime.getDeviceCount()))
    if len(devices) > 1:
        for graph in _graphs(device, "int64", "float64"):
            label_propagation(graph, devices=devices, max_iter=3)


def _compress(device: Device) -> None:
    from glp_rapids import compress

    for goal in ("speed", "size"):
        compress(_graph(device), for_=goal).to_graph()


def _compressed(device: Device) -> None:
    from pathlib import Path
    from tempfile import TemporaryDirectory

    from glp_rapids import CompressedGraph, compress, label_propagation

    for goal in ("speed", "size"):
        label_propagation(compress(_graph(device, "float64"), for_=goal), max_iter=3)
        graph = compress(_graph(device), for_=goal)
        label_propagation(graph, max_iter=3)
        with TemporaryDirectory() as folder:
            path = Path(folder, "graph.glp")
            graph.save(path)
            label_propagation(CompressedGraph.open(path, device=device), max_iter=3)


def _diversity(device: Device) -> None:
    from glp_rapids import ego_networks, structural_diversity, top_structural_diversity

    graph = _graph(device)
    ego_networks(graph, [0, 1])
    for model in ("component", "core", "truss"):
        for k in (2, None):
            structural_diversity(graph, k, model)
        top_structural_diversity(graph, 5, k=2, model=model)


def _cohesion(device: Device) -> None:
    from glp_rapids import core_number, triangle_count, trussness

    graph = _graph(device)
    for measure in (core_number, triangle_count, trussness):
        measure(graph)


def _parquet(device: Device) -> None:
    from pathlib import Path
    from tempfile import TemporaryDirectory

    import numpy as np
    import pandas as pd

    from glp_rapids import as_graph
    from glp_rapids.frames.files import has_pyarrow

    if not has_pyarrow():
        return
    ends = np.random.default_rng(0).integers(0, VERTICES, (2, EDGES))
    frame = pd.DataFrame({"src": ends[0], "dst": ends[1], "w": 1.0})
    for ids in (frame, frame.astype({"src": str, "dst": str})):
        with TemporaryDirectory() as folder:
            for number in range(2):  # of one, nothing is read in chunks
                ids.to_parquet(Path(folder, f"{number}.parquet"))
            for weight in (None, "w"):
                as_graph(folder, weight=weight, device=device)


def _traversal(device: Device) -> None:
    from glp_rapids import (
        betweenness_centrality,
        bfs,
        layered_edges,
        multi_source_bfs,
        shortest_paths,
        sssp,
        weakly_connected_components,
    )

    graph = _graph(device)
    shortest_paths(bfs(graph, 0), 1)
    for weights in ("int64", "float32", "float64"):
        sssp(_graph(device, weights), 0)
    for summary in (False, True):
        multi_source_bfs(graph, [0, 1], summary=summary)
    layers = layered_edges(graph, 0)
    layers.path_counts()
    layers.dependencies()
    layered_edges(_graph(device, "float64"), 0).sssp()
    betweenness_centrality(graph, 2)
    weakly_connected_components(graph)


def _batches() -> list[Any]:
    """Make transactions of three days: many, then few by some who are new, then few others."""
    import numpy as np
    import pandas as pd

    random = np.random.default_rng(0)
    batches = []
    for day, (rows, vertices) in enumerate([(EDGES, VERTICES), (500, VERTICES + 9), (500, 90)]):
        ends = random.integers(0, vertices, (2, rows))
        if not day:
            ends[:, :50] += VERTICES  # who leave with these rows
        hours = np.sort(random.random(rows)) * 24 + 24 * day
        time = pd.Timestamp("2026-01-01") + pd.to_timedelta(hours, unit="h")
        frame = {"source": ends[0], "destination": ends[1], "amount": 1.0, "time": time}
        batches.append(pd.DataFrame(frame))
    return batches


def _window(device: Device) -> None:
    from glp_rapids import SlidingWindow

    for directed in (False, True):
        window = SlidingWindow(2.75, directed=directed, device=device)
        for batch in _batches():  # as the last comes, some rows of the first leave
            window.append(batch)
            window.graph()


def _fraud(device: Device) -> None:
    from glp_rapids import suspicious_clusters
    from glp_rapids.fraud import Monitor, SlidingWindow, account_scores, explain

    seeds = list(range(20))
    watch = Monitor(SlidingWindow(2.75, device=device), seeds)
    for batch in _batches():
        watch.update(batch)
    scores = account_scores(watch.window, seeds, absent="drop")
    account_scores(watch.window, seeds, absent="drop", previous=scores)
    explain(watch.window, scores, scores["vertex"].iloc[-1])
    for weights in (None, "float64"):
        account_scores(_graph(device, weights), seeds)
    suspicious_clusters(watch.window, seeds, absent="drop")


def _metrics(device: Device) -> None:
    from glp_rapids import ari, coverage, label_propagation, modularity, nmi

    graph = _graph(device)
    found = label_propagation(graph, max_iter=3)
    for measure in (modularity, coverage):
        measure(graph, found)
    for measure in (nmi, ari):
        measure(found, found)


WORK: dict[str, Callable[[Device], None]] = {
    "sparse-matrices": _sparse_matrices,
    "label-propagation": _label_propagation,
    "streamed": _streamed,
    "layered": _layered,
    "speaker-listener": _speaker_listener,
    "seeded": _seeded,
    "multilevel": _multilevel,
    "several": _several,
    "compress": _compress,
    "compressed": _compressed,
    "diversity": _diversity,
    "cohesion": _cohesion,
    "traversal": _traversal,
    "metrics": _metrics,
    "window": _window,
    "fraud": _fraud,
    "parquet": _parquet,
}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add this command's options."""
    parser.epilog = EPILOG
    parser.add_argument("what", nargs="*", metavar="WHAT",
                        help=f"of {', '.join(WORK)} (default: all)")  # fmt: skip
    parser.add_argument("--gpu", action="store_true", help="for the GPU instead of the CPU")


def run(options: argparse.Namespace) -> None:
    """Compile what is asked for, and say how long each took and where the cache is."""
    for name in options.what:
        if name not in WORK:
            raise ValueError(f"WHAT must be some of {', '.join(WORK)}, not {name!r}")
    device: Device = "gpu" if options.gpu else "cpu"
    with warnings.catch_warnings():
        # Without a place to keep it, compiling is in vain.
        # What was damaged is made anew.
        unkept = "compiled code cannot be kept(?!.*(is damaged|cannot be loaded))"
        warnings.filterwarnings("error", unkept, RuntimeWarning)
        try:
            for name in dict.fromkeys(options.what or WORK):
                begin = time.perf_counter()
                WORK[name](device)
                print(f"{name:<20}{time.perf_counter() - begin:7.1f} s", flush=True)
        except RuntimeWarning as problem:
            raise OSError(str(problem)) from None
    place = os.environ.get("NUMBA_CACHE_DIR") or "__pycache__ folders of the package"
    print(f"for the {device.upper()}, kept in {place}")
