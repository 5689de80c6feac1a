"""Conversion of edge frames and cuGraph's graphs on a GPU, compared with cuGraph's own.

Each undirected edge is one row of two int32 columns, in the order of the rows of the CSR. Medians
of the repeats after a call that warms up, the device waited for. Without cuGraph the rows that need
it are left out; without a GPU the frame is pandas.

Then label propagation from a ``cugraph.Graph`` to a cuDF frame, beside the conversion alone and
beside the same call on a graph that was converted and used before; memory comes from whatever RMM
gives out, which is plain ``cudaMalloc`` unless a pool was asked for.

Then the same edges from a folder of Parquet files to a graph on the host, read in chunks and read
whole, each in a process of its own: its seconds after a warm-up on a small folder, and the most
memory it held beyond what it held before.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from glp_rapids.bench import subjects
from glp_rapids.bench.table import Rows, Tables
from glp_rapids.bench.timing import clocked
from glp_rapids.device import array_module
from glp_rapids.frames import files, kinds
from glp_rapids.graph.graph import Graph
from glp_rapids.ingest.read import as_graph
from glp_rapids.propagation.variants.classic import label_propagation

WANTED_OF_CUGRAPH = 0.5  # of the time of from_cudf_edgelist
WANTED_MS_PER_G_ENTRIES = 25 / 0.128  # from a cugraph.Graph
WANTED_OF_USED = 1.5  # of a call on a graph that was used: a first call, without its conversion
WANTED_OF_CSR = 1.3  # of its bytes, beside ids and a chunk: the most memory from Parquet files
ROOM_OF_CHUNK = 128 << 20  # bytes: of a chunk, and of what Arrow keeps to decode it
FILES = 8


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add this bench's options."""
    subjects.add_options(parser, ("kron-22-16",), repeats=5)


def run(options: argparse.Namespace) -> Tables:
    """Return a table with a row a graph and what it is made from."""

    def measure(name: str, graph: Graph) -> Tables:
        return {
            f"Ingest, {graph.device}": _measure(name, graph, options.repeats),
            "Label propagation of a cugraph.Graph": _from_cugraph(name, graph, options.repeats),
            "Ingest of Parquet files, on the host": _from_files(name, graph.to("cpu")),
        }

    return subjects.each(options.graphs, options.device, "ingest", measure)


def _measure(name: str, graph: Graph, repeats: int) -> Rows:
    device, entries, frame = graph.device, graph.number_of_edges, edge_frame(graph)
    ours, found = clocked(lambda: as_graph(frame, device=device), repeats, device)
    row = {"graph": name, "from": type(frame).__module__.split(".")[0], "rows": len(frame),
           "vertices": found.number_of_vertices, "entries": entries, "ms": ours}  # fmt: skip
    del found
    if not _has_cugraph(device):
        return [row]
    their_ms, other = clocked(lambda: _cugraph_of(frame), repeats, device)
    row |= {"cuGraph ms": their_ms, "of cuGraph": ours / their_ms, "wanted at most":
            WANTED_OF_CUGRAPH, "reached": ours <= WANTED_OF_CUGRAPH * their_ms}  # fmt: skip
    ours, _ = clocked(lambda: as_graph(other, device=device), repeats, device)
    limit = WANTED_MS_PER_G_ENTRIES * entries / 1e9
    chained = {**row, "from": "cugraph.Graph", "ms": ours, "cuGraph ms": None, "of cuGraph": None,
               "wanted at most": limit, "reached": ours <= limit}  # fmt: skip
    return [row, chained]


def _from_cugraph(name: str, graph: Graph, repeats: int) -> Rows:
    """Time whole calls, as the step of a pipeline that has a graph of cuGraph's."""
    device = graph.device
    if not _has_cugraph(device):
        return []
    other = _cugraph_of(edge_frame(graph))
    conversion, used = clocked(lambda: as_graph(other, device=device), repeats, device)
    rows = []
    for mode, settings in subjects.MODES.items():
        call = partial(label_propagation, **settings)
        whole, _ = clocked(lambda call=call: call(other), repeats, device)
        again, _ = clocked(lambda call=call: call(used), repeats, device)
        rows.append(
            {"graph": name, "mode": mode, "conversion ms": conversion, "whole call ms": whole,
             "on a used graph ms": again, "fresh / used": (whole - conversion) / again,
             "wanted at most": WANTED_OF_USED,
             "reached": whole - conversion <= WANTED_OF_USED * again}
        )  # fmt: skip
    return rows


def _has_cugraph(device: str) -> bool:
    return device == "gpu" and bool(importlib.util.find_spec("cugraph"))


def _cugraph_of(frame: Any) -> Any:
    import cugraph

    other = cugraph.Graph()
    other.from_cudf_edgelist(frame, source="src", destination="dst")
    return other


def _from_files(name: str, graph: Graph) -> Rows:
    if not files.has_pyarrow() or sys.platform != "linux":  # which says what a process holds
        return []
    frame = edge_frame(graph)
    csr, ids = graph.indptr.nbytes + graph.indices.nbytes, 8 * graph.number_of_vertices
    rows = []
    with TemporaryDirectory() as folder:
        for number, part in enumerate(np.array_split(np.arange(len(frame)), FILES)):
            frame.iloc[part].to_parquet(Path(folder, f"{number}.parquet"), index=False)
        for read in READERS:
            call = f"from {__name__} import child; child({folder!r}, {read!r})"
            done = subprocess.run(
                [sys.executable, "-c", call], capture_output=True, text=True, check=True
            )
            seconds, peak = json.loads(done.stdout)
            limit = (WANTED_OF_CSR * csr + ids + ROOM_OF_CHUNK) if read == "in chunks" else None
            rows.append(
                {"graph": name, "read": read, "rows": len(frame), "entries": graph.number_of_edges,
                 "seconds": seconds, "CSR MB": csr / 1e6, "peak MB": peak / 1e6,
                 "wanted at most": limit and limit / 1e6, "reached": limit and peak <= limit}
            )  # fmt: skip
    return rows


READERS: dict[str, Callable[[str], Any]] = {
    "in chunks": lambda folder: as_graph(folder, device="cpu"),
    "whole": lambda folder: as_graph(_pandas_of(folder), device="cpu"),
}


def _pandas_of(folder: str) -> Any:
    import pandas as pd

    return pd.read_parquet(folder)


def child(folder: str, read: str) -> None:
    """Read a folder, and print the seconds it took and the bytes that were held at most for it."""
    with TemporaryDirectory() as small:
        few = np.arange(1 << 14, dtype=np.int32)  # enough for the kernels of many entries
        for number in range(2):
            path = Path(small, f"{number}.parquet")
            kinds.to_frame({"src": few, "dst": few // 2}, "pandas").to_parquet(path)
        READERS[read](small)
    before = _held("VmRSS")
    begin = time.perf_counter()
    READERS[read](folder)
    print(json.dumps([time.perf_counter() - begin, _held("VmHWM") - before]))


def _held(field: str) -> int:
    """Return a size of this process in bytes: VmRSS, what it holds, or VmHWM, the most it held."""
    status = Path("/proc/self/status").read_text()
    return 1024 * int(status.split(f"{field}:")[1].split()[0])


def edge_frame(graph: Graph) -> Any:
    """Return the edges of an undirected graph, once each, as a frame where the graph lives."""
    xp = array_module(graph.indices)
    source = graph.row_indices()
    once = source <= graph.indices
    columns = {"src": source[once], "dst": graph.indices[once]}
    columns = {column: ends.astype(np.int32) for column, ends in columns.items()}
    if xp is np:
        import pandas as pd

        return pd.DataFrame(columns)
    import cudf

    return cudf.DataFrame(columns)
