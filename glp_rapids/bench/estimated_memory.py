"""`estimate_memory` held against what runs take, way by way: ``bench beyond-memory --estimates``.

On a GPU a graph comes from host memory, and its peak is what CuPy's pool gives from there to the
labels, the graph included; "plain" and "packed" are upper figures there. On a CPU see
`beyond_memory`: each way has a process of its own. What is streamed may take a quarter of its lists
beside its least, on a CPU of the plain ones: under no more than the least a strip is one row, and
road-luxembourg, streamed packed, was not done after 150 s (a run before that was so).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from tqdm import tqdm

from glp_rapids import compress, estimate_memory, label_propagation
from glp_rapids.bench import memory
from glp_rapids.bench.table import Rows
from glp_rapids.graph.graph import Graph
from glp_rapids.propagation.ways import ON_CPU, STREAMED_TO_GPU

GRAPHS = (
    "lfr-10000-mu0.1", "email-Enron", "ca-CondMat", "com-dblp", "lfr-100000-mu0.3", "cnr-2000",
    "web-NotreDame", "road-luxembourg", "social-200000", "kron-18-16",
)  # fmt: skip
SHARE = 4  # of the lists that may stay on a GPU, one in so many
MEGABYTE = 1e6


def of_gpu(name: str, graph: Graph, update: str) -> Rows:
    """Return a row for each way that a graph can go on a GPU."""
    host = replace(graph.to("cpu"), _derived={})
    del graph
    rows = []
    for way, given, limit in _ways(host, update):
        estimated = _bytes_of(given, "gpu", way, limit, update)
        memory.free_memory()
        with memory.peak_memory() as water:
            before = water.live
            label_propagation(given, device="gpu", way=way, memory_limit=limit, update=update)
        rows.append(row(name, host, way, estimated, water.peak - before))
    return rows


def _ways(host: Graph, update: str) -> Iterator[tuple[str, Any, int | None]]:
    """Yield each way, a graph that has not run, and the limit."""
    yield "plain", replace(host, _derived={}), None
    packed = compress(host, "packed", segment=128, device="cpu")
    yield "packed", packed, None
    for form, way in STREAMED_TO_GPU.items():
        given = packed if form == "compressed" else host
        lists = packed.nbytes if form == "compressed" else host.indices.nbytes
        least = _bytes_of(given, "gpu", way, 1, update)
        yield way, replace(given, _derived={}), least + lists // SHARE


def _bytes_of(graph: Any, device: str, way: str, limit: int | None, update: str) -> int:
    found = estimate_memory(graph, device=device, memory_limit=limit, update=update)
    column = "device_bytes" if device == "gpu" else "host_bytes"
    return int(found.set_index("way")[column][way])


def row(name: str, graph: Any, way: str, estimated: int, peak: int) -> dict[str, Any]:
    """Return a row of the table, and tell it (on stderr) at once."""
    made = {
        "graph": name, "vertices": graph.number_of_vertices, "entries": graph.number_of_edges,
        "way": way, "estimated MB": estimated / MEGABYTE, "peak MB": peak / MEGABYTE,
        "estimated / peak": estimated / max(peak, 1),
    }  # fmt: skip
    tqdm.write(", ".join(f"{key} {value}" for key, value in made.items()), file=sys.stderr)
    return made


def on_cpu(name: str, estimates: dict[str, int], graph: Graph, measure: Any) -> Rows:
    """Return a row for each way on a CPU; ``measure`` runs one under a limit, in a process."""
    rows = []
    for way in ON_CPU:
        limit = estimates[way]
        for _ in range(3):  # what a run says is lacking is exact; the estimate is of a sample
            found = measure(way, limit)
            if not found.lacking:
                break
            limit += found.lacking
        rows.append(row(name, graph, way, estimates[way], found.peak))
    return rows
