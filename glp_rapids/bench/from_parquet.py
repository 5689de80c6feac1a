"""From a Parquet folder to labels in one command, and how much host memory that takes.

``bench beyond-memory --parquet``: a graph's edges are written to a folder of files, and a process
of its own is ``glp-rapids label-propagation FOLDER --memory-limit ... --output ...``. Host memory
is the most that it has at any time, less what the same takes for a small folder: so compilers and
libraries do not count, but the graph, what Arrow holds and the summary do. Both have run once
before, so that nothing is compiled. On a CPU the limit is of all that a run holds, the graph
included; on a GPU of device memory. So it is 1.2 times the CSR there, and a fifth here.
"""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from glp_rapids import as_graph, label_propagation
from glp_rapids.bench.table import Rows
from glp_rapids.graph.graph import Graph

GRAPHS = ("kron-20-64",)
SHARES = {"cpu": 120, "gpu": 20}  # of the CSR, in percent
FILES = 8
SMALL = 100_000  # edges of the folder that comes before; so many use all that is compiled


def rows(name: str, graph: Graph, device: str) -> Rows:
    """Return the row of a graph."""
    edges = edges_of(graph)
    del graph
    expected = as_graph(edges, device="cpu")
    size = expected.indptr.nbytes + expected.indices.nbytes
    limit = size * SHARES[device] // 100
    with tempfile.TemporaryDirectory() as folder:
        places = []
        for place, part in (("small", edges.head(SMALL)), ("whole", edges)):
            places.append(Path(folder) / place)
            write(part, places[-1])
        del edges, part
        whole = expected.number_of_vertices, expected.number_of_edges
        labels = label_propagation(expected, device="cpu")
        del expected
        # what a process has counts for those that it starts: a new one has little
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            seconds, peak = pool.apply(measured, (*places, device, limit))
        found = pd.read_parquet(output_of(places[-1]))
    columns = ["vertex", "partition"]
    same = np.array_equal(found[columns].to_numpy(), labels[columns].to_numpy())
    vertices, entries = whole
    return [{
        "graph": name, "vertices": vertices, "entries": entries, "CSR MB": size / 1e6,
        "limit MB": limit / 1e6, "CSR / limit": size / limit, "seconds": seconds,
        "peak host MB": peak / 1e6, "peak / CSR": peak / size, "labels equal": same,
    }]  # fmt: skip


def edges_of(graph: Graph) -> pd.DataFrame:
    """List every edge once, by numbers of vertices."""
    graph = graph.to("cpu")
    source = graph.row_indices()
    once = source <= graph.indices
    return pd.DataFrame({"src": source[once], "dst": graph.indices[once]}, copy=False)


def write(edges: pd.DataFrame, folder: Path) -> None:
    """Write edges to the files of a folder."""
    folder.mkdir()
    cuts = np.linspace(0, len(edges), FILES + 1).astype(int).tolist()
    for number, (first, last) in enumerate(pairwise(cuts)):
        edges.iloc[first:last].to_parquet(folder / f"part-{number}.parquet", index=False)


def output_of(folder: Path) -> Path:
    """Name the file of a folder's labels."""
    return folder.with_suffix(".labels.parquet")


def measured(small: Path, whole: Path, device: str, limit: int) -> tuple[float, int]:
    """Return the seconds of the command, and the bytes of host memory that it takes."""
    limited = "--memory-limit", limit
    for folder, more in ((small, ()), (whole, limited)):  # compilers take memory, too: once before
        command(folder, device, *more)
    _, before = command(small, device)
    seconds, peak = command(whole, device, *limited)
    return seconds, peak - before


def command(folder: Path, device: str, *further: Any) -> tuple[float, int]:
    """Run it; return its seconds and its peak, which is at least that of who calls this."""
    words = "label-propagation", folder, "--device", device, "--output", output_of(folder), *further
    begin = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-m", "glp_rapids.cli", *map(str, words)])
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"glp-rapids label-propagation ended with {process.returncode}")
    return time.perf_counter() - begin, usage.ru_maxrss << 10
