"""Lists streamed from host memory to a GPU: limits side by side, and what a sweep costs.

A limit is the least that a run can do with, what two strips take, and a share of the lists as they
are in memory: as many bytes may stay on the device, in which more lists are, as entries take fewer
bits there. Packed lists are those of the graph compressed for speed. Seconds are those of the
report, medians after a run that pins the lists; the peak is what CuPy's pool says, so no other
allocator may be set. A row is told (on stderr) as soon as it is there. The first call of each way
waits for its kernel to be compiled, some 20 seconds.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from statistics import median
from typing import Any

from tqdm import tqdm

from glp_rapids import compress, estimate_memory, label_propagation
from glp_rapids.bench import memory, subjects
from glp_rapids.bench.table import Tables
from glp_rapids.device import LackOfMemory
from glp_rapids.graph.graph import Graph
from glp_rapids.outofcore.double_buffer import BUS
from glp_rapids.propagation.gpu_memory import bytes_streamed, gpu_bytes_of
from glp_rapids.propagation.ways import STREAMED_TO_GPU, WAYS

SWEEPS = 6  # one less is timed


def tables(name: str, graph: Graph, options: argparse.Namespace) -> Tables:
    """Return the tables of a graph that lies on the GPU."""
    how = {"update": options.update}
    in_memory = _timed(graph, options.repeats, **how)
    of_sweeps = {
        "graph": name,
        "in memory, ms": 1e3 * _sweep(graph, options.repeats),
    }
    host = replace(graph.to("cpu"), _derived={})
    rows = []
    for way in STREAMED_TO_GPU.values():
        if way not in options.ways:
            continue
        given = host
        if WAYS[way].form == "compressed":
            packed = compress(graph, "packed", segment=128)
            of_sweeps["packed in memory, ms"] = 1e3 * _sweep(packed, options.repeats)
            given = packed.to("cpu")
            given = replace(given, _derived={})
            of_sweeps["bits an entry"] = 8 * packed.nbytes / packed.number_of_edges
            del packed
        for share in sorted(options.limits):
            measured = way, share, *in_memory, options.repeats, how
            rows.append(_told(_row(name, given, *measured)))
        streamed = _sweep(given, options.repeats, way=way)
        of_sweeps[f"{way}, ms"] = 1e3 * streamed
        of_sweeps[f"the bus alone, {WAYS[way].form}, ms"] = 1e3 * _bus_bytes(given) / BUS
    _told(of_sweeps)
    return {
        "Lists streamed to a GPU under a limit": rows,
        "A synchronous sweep over all lists": [of_sweeps],
    }


def _told(row: dict[str, Any]) -> dict[str, Any]:
    tqdm.write(", ".join(f"{name} {value}" for name, value in row.items()), file=sys.stderr)
    return row


def _row(
    name: str, host: Any, way: str, share: int, expected: Any, in_memory: float, repeats: int,
    how: dict[str, Any],
) -> dict[str, Any]:  # fmt: skip
    limit = _limit(host, way, share)
    estimates = _estimates(host, way, limit, **how)
    row = {"graph": name, "lists %": share, "limit MB": limit / 1e6}
    try:
        found, seconds = _timed(host, repeats, memory_limit=limit, **how)
    except LackOfMemory:
        return row | {"way": "refused"}
    report = found.attrs["glp"]
    row |= {"way": report["way"], "ms": 1e3 * seconds, "times in memory": seconds / in_memory,
            "labels equal": found.equals(expected)}  # fmt: skip
    if report["way"] != way:
        return row
    peak, moved = report["peak"], report["bytes_over_bus"]
    estimated = int(estimates)
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


def _estimates(host: Any, way: str, limit: int, **how: Any) -> int:
    bits = {} if host.scheme else {"bits_per_entry": 8}
    found = estimate_memory(host, device="gpu", memory_limit=limit, **bits, **how)
    return int(found.set_index("way")["device_bytes"][way])


def _list_bytes(graph: Any) -> int:
    if graph.scheme:
        return graph.nbytes
    weights = 0 if graph.weights is None else graph.weights.nbytes
    return graph.indices.nbytes + weights


def _bus_bytes(graph: Any) -> int:
    """Return what the lists take on the bus: plain ones, too, come in fewer bits."""
    if graph.scheme:
        return graph.nbytes
    return int(graph.number_of_edges * bytes_streamed(graph))


def _limit(host: Any, way: str, share: int) -> int:
    """Return what a run takes whose buffer has two strips of a class, and a share of the lists."""
    lists, least = _list_bytes(host), _estimates(host, way, 1)
    limit = least + lists // 12 + lists * share // 100
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
