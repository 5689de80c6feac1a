"""Lists streamed from host memory to a GPU: limits side by side, and what a sweep costs.

A limit is what labels and state take with two strips, and a share of the lists: so many may stay on
the device. Seconds are those of the report, medians after a run that pins the lists; the peak is
what CuPy's pool says, so no other allocator may be set. A row is told (on stderr) as soon as it is
there. The first call of each way waits for its kernel to be compiled, some 20 seconds.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from statistics import median
from typing import Any

from tqdm import tqdm

from glp_rapids import estimate_memory, label_propagation
from glp_rapids.bench import memory, subjects
from glp_rapids.bench.table import Tables
from glp_rapids.device import LackOfMemory
from glp_rapids.graph.graph import Graph
from glp_rapids.propagation.gpu_memory import GPU_STREAMED, gpu_bytes_of

BUS = 55e9  # bytes a second of one H200, measured for copies of 16 MB and more
SWEEPS = 6  # one less is timed


def tables(name: str, graph: Graph, options: argparse.Namespace) -> Tables:
    """Return the tables of a graph that lies on the GPU."""
    how = {"update": options.update}
    in_memory = _timed(graph, options.repeats, **how)
    sweep = _sweep(graph, options.repeats)
    host = graph.to("cpu")
    del graph
    expected = in_memory[0]
    host = replace(host, _derived={})
    rows = [
        _told(_row(name, host, share, expected, in_memory[1], options.repeats, how))
        for share in sorted(options.limits)
    ]
    of_sweeps = {
        "graph": name,
        "in memory, ms": 1e3 * sweep,
        "streamed, ms": 1e3 * _sweep(host, options.repeats, way="streamed plain"),
        "the bus alone, ms": 1e3 * _list_bytes(host) / BUS,
    }
    _told(of_sweeps)
    return {
        "Lists streamed to a GPU under a limit": rows,
        "A synchronous sweep over all lists": [of_sweeps],
    }


def _told(row: dict[str, Any]) -> dict[str, Any]:
    tqdm.write(", ".join(f"{name} {value}" for name, value in row.items()), file=sys.stderr)
    return row


def _row(
    name: str, host: Graph, share: int, expected: Any, in_memory: float, repeats: int,
    how: dict[str, Any],
) -> dict[str, Any]:  # fmt: skip
    limit = _limit(host, share)
    estimates = estimate_memory(
        host, device="gpu", memory_limit=limit, bits_per_entry=8, **how
    ).set_index("way")["device_bytes"]
    row = {"graph": name, "lists %": share, "limit MB": limit / 1e6}
    try:
        found, seconds = _timed(host, repeats, memory_limit=limit, **how)
    except LackOfMemory:
        return row | {"way": "refused"}
    report = found.attrs["glp"]
    row |= {"way": report["way"], "ms": 1e3 * seconds, "times in memory": seconds / in_memory,
            "labels equal": found.equals(expected)}  # fmt: skip
    if report["way"] == "plain":
        return row
    peak, moved = report["peak"], report["bytes_over_bus"]
    estimated = int(estimates["streamed plain"])
    return row | {
        "share cached": report["share_cached"],
        "bus MB": moved / 1e6,
        "times the lists": moved / _list_bytes(host),
        "share of the bus": moved / seconds / BUS,
        "estimated MB": estimated / 1e6,
        "predicted MB": report["predicted"] / 1e6,
        "peak MB": peak and peak / 1e6,
        "below the limit": peak and peak <= limit,
        "estimated within 10%": peak and abs(estimated - peak) <= 0.1 * peak,
        "predicted within 10%": peak and abs(report["predicted"] - peak) <= 0.1 * peak,
    }


def _list_bytes(graph: Graph) -> int:
    weights = 0 if graph.weights is None else graph.weights.nbytes
    return graph.indices.nbytes + weights


def _limit(host: Graph, share: int) -> int:
    """Return what a run takes whose buffer has two strips of a class, and a share of the lists."""
    vertices, lists = host.number_of_vertices, _list_bytes(host)
    state = vertices * (host.index_dtype.itemsize + GPU_STREAMED)
    limit = state + lists // 12 + lists * share // 100
    return min(limit, gpu_bytes_of(host) - 1) if share < 100 else gpu_bytes_of(host)


def _timed(graph: Graph, repeats: int, **options: Any) -> tuple[Any, float]:
    """Return the last result of a call, and the median seconds of its runs."""
    seconds, found = [], None
    for _ in range(max(repeats, 1) + 1):
        found = None
        memory.free_memory()
        found = label_propagation(graph, device="gpu", **options)
        seconds.append(found.attrs["glp"]["seconds"])
    return found, median(seconds[1:])


def _sweep(graph: Graph, repeats: int, **options: Any) -> float:
    """Return the seconds of one more synchronous sweep over everything."""
    taken = []
    for sweeps in (1, SWEEPS):
        how = subjects.synchronous(sweeps, skip_inactive=False, **options)
        taken.append(_timed(graph, repeats, **how)[1])
    return (taken[1] - taken[0]) / (SWEEPS - 1)
