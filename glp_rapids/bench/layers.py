"""Layers: shortest paths in WolfPath's order of work, in memory and under a limit of memory.

What tables 5 and 6 of the paper report (Zhu, He, Fu and Li, WolfPath, 2019), for this library's
layers, which hold all edges: how many layers there are, and how often they are gone through until
nothing changes ("passes"). Weights are integers from 1 to 255, a hash of the two ends; medians over
starts that have an edge. "make" is `layered_edges`, "near-far" is `sssp` as it is.

A second table has the same under a ``memory_limit`` of a part of the graph's bytes: layers that do
not stay in memory, bytes that were copied, and the share of the time that the copies of so many
bytes take alone. On a GPU they come from pinned host memory over the bus; on a CPU the graph and
its layers lie in mapped files in a temporary folder, which the system's cache holds if it can.
"""

from __future__ import annotations

import argparse
import tempfile
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from glp_rapids import layered_edges, sssp
from glp_rapids.bench import memory, subjects
from glp_rapids.bench.table import Tables
from glp_rapids.bench.timing import clocked
from glp_rapids.bench.traversal import draw_starts, with_whole_weights
from glp_rapids.common.mapping import for_kernels
from glp_rapids.device import DeviceName, LackOfMemory, module_on
from glp_rapids.graph.graph import Graph
from glp_rapids.outofcore import pinned

GRAPHS = ("com-dblp", "web-NotreDame", "cnr-2000", "kron-18-16", "road-300")
PART = 4  # of the graph: so many times the limit
COPIES = 8  # in a row, of the largest strips' size


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add this bench's options."""
    subjects.add_options(parser, GRAPHS, repeats=3)
    parser.add_argument("--part", type=float, default=PART, help="graph by limit, default 4")


def run(options: argparse.Namespace) -> Tables:
    """Return a table in memory and one under a limit, with a row a graph."""

    def measure(name: str, graph: Graph) -> Tables:
        weighted = with_whole_weights(graph)
        starts = draw_starts(weighted, max(options.repeats, 1) + 1)
        tables = {"Layers in memory, ms": [_in_memory(name, weighted, starts)]}
        title = f"Layers under a limit of a {options.part:g}th of the graph, ms"
        if weighted.device == "gpu":
            host = weighted.to("cpu")
            host._derived.clear()
            del weighted, graph
            memory.free_memory()
            tables[title] = [_limited(name, host, starts, options.part, "gpu", {})]
        else:
            with tempfile.TemporaryDirectory() as folder:
                mapped = _mapped(weighted, Path(folder))
                files = {"folder": folder}
                tables[title] = [_limited(name, mapped, starts, options.part, "cpu", files)]
        return tables

    return subjects.each(options.graphs, options.device, "layers", measure)


def _in_memory(name: str, graph: Graph, starts: list[int]) -> dict[str, Any]:
    found: dict[str, list[float]] = {}
    for start in starts:
        source = graph.external(np.array([start]))
        make = partial(layered_edges, graph, source, device=graph.device)
        taken, layers = clocked(make, 0, graph.device)
        row = {"layers": layers.number_of_layers, "make": taken}
        row["by layers"], result = clocked(layers.sssp, 0, graph.device)
        row["passes"] = result.attrs["glp"]["sweeps"]
        near_far = partial(
            sssp, graph, source, return_predecessors=False, device=graph.device
        )
        row["near-far"], expected = clocked(near_far, 0, graph.device)
        row["equal"] = bool(expected.equals(result))
        row["path counts"] = clocked(layers.path_counts, 0, graph.device)[0]
        for what, value in row.items():
            found.setdefault(what, []).append(value)
    return _about(name, graph) | _medians(found)


def _mapped(graph: Graph, folder: Path) -> Graph:
    """Write the arrays of a graph to files, and map these."""
    arrays = {}
    for name in ("indptr", "indices", "weights"):
        np.save(folder / f"{name}.npy", getattr(graph, name))
        arrays[name] = for_kernels(np.load(folder / f"{name}.npy", mmap_mode="r"))
    return replace(graph, **arrays, _derived={})


def _limited(
    name: str, host: Graph, starts: list[int], part: float, device: DeviceName,
    files: dict[str, str],
) -> dict[str, Any]:  # fmt: skip
    size = sum(one.nbytes for one in (host.indptr, host.indices, host.weights))
    limit = int(size / part)
    row = _about(name, host) | {"limit MB": limit / 1e6}
    found: dict[str, list[float]] = {}
    for start in starts:
        source = host.external(np.array([start]))
        try:
            layers = layered_edges(host, source, device=device, memory_limit=limit, **files)
            taken, result = clocked(layers.sssp, 0, device)
        except LackOfMemory:
            return row | {"way": "refused"}
        report = result.attrs["glp"]
        moved = report["bytes_read" if files else "bytes_over_bus"]
        speed = _read_speed(host.weights, limit // PART) if files else _bandwidth(limit // PART)
        copies = 1e3 * moved / speed
        of_start = {
            "layers": layers.number_of_layers, "not in memory": report["layers_streamed"],
            "passes": report["sweeps"], "copied MB": moved / 1e6, "ms": taken,
            "copies alone": copies, "share of copies": copies / taken,
        }  # fmt: skip
        expected = sssp(host, source, return_predecessors=False, device="cpu")
        of_start["equal"] = bool(expected.equals(result))
        for what, value in of_start.items():
            found.setdefault(what, []).append(value)
        layers = result = None
    return row | {"way": "streamed"} | _medians(found)


def _about(name: str, graph: Graph) -> dict[str, Any]:
    return {
        "graph": name, "vertices": graph.number_of_vertices, "entries": graph.number_of_edges,
    }  # fmt: skip


def _medians(found: dict[str, list[Any]]) -> dict[str, Any]:
    """Return medians of what was found for all starts but the first, which warms up."""
    return {
        what: all(values) if isinstance(values[0], bool) else median(values[1:])
        for what, values in found.items()
    }


def _bandwidth(size: int) -> float:
    """Return the bytes a second of copies of about so many bytes from pinned memory."""
    xp = module_on("gpu")
    host, there = pinned.empty(size, np.uint8), xp.empty(max(size, 1), np.uint8)

    def copy() -> None:
        for _ in range(COPIES):
            xp.cuda.runtime.memcpyAsync(
                there.data.ptr, host.array.ctypes.data, there.nbytes,
                xp.cuda.runtime.memcpyHostToDevice, xp.cuda.get_current_stream().ptr,
            )  # fmt: skip

    copy()
    return COPIES * there.nbytes / (clocked(copy, 0, "gpu")[0] / 1e3)


def _read_speed(mapped: np.ndarray, size: int) -> float:
    """Return the bytes a second of copies of about so many bytes from a mapped file."""
    there = np.empty(max(min(size, mapped.nbytes) // mapped.itemsize, 1), mapped.dtype)
    parts = np.array_split(mapped, max(mapped.size // there.size, 1))[:COPIES]

    def copy() -> None:
        for part in parts:
            there[: part.size] = part[: there.size]

    copied = sum(min(part.size, there.size) for part in parts) * mapped.itemsize
    return copied / (clocked(copy, 1, "cpu")[0] / 1e3)
