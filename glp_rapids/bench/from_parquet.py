"""From a Parquet folder to labels in one command, and how much host memory that takes.

``bench beyond-memory --parquet``: a graph's edges are written to a folder of files, and a process
of its own calls ``glp-rapids label-propagation FOLDER --memory-limit ... --output ...`` twice: with
a small folder first, so that code is compiled and loaded, then with this one. Host memory is the
most that the process has in the second call beyond what it has before it (Linux says so), the
graph, what Arrow holds, and the summary included. On a CPU the limit is of all that a run holds,
the graph included; on a GPU of device memory. So it is 1.25 times the CSR there, and a fifth here.
"""

from __future__ import annotations

import gc
import multiprocessing
import re
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
SHARES = {"cpu": 125, "gpu": 20}  # of the CSR, in percent
FILES = 8
SMALL = 100_000  # edges of the folder that comes before; so many have everything compiled


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
        # a process that was forked would have what this one has
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
    from glp_rapids.cli import main

    def command(folder: Path, *further: Any) -> None:
        words = "label-propagation", folder, "--device", device, "--output", output_of(folder)
        if code := main([str(word) for word in (*words, *further)]):
            raise RuntimeError(f"glp-rapids label-propagation ended with {code}")

    command(small)
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5")  # the peak is as much as there is now
    before, begin = _status("VmRSS"), time.perf_counter()
    command(whole, "--memory-limit", limit)
    return time.perf_counter() - begin, _status("VmHWM") - before


def _status(name: str) -> int:
    text = Path("/proc/self/status").read_text()
    return int(re.search(rf"^{name}:\s+(\d+) kB", text, re.M)[1]) << 10
