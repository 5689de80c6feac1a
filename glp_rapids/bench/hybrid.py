"""Where the host's cores are worth their while beside a GPU that lists are streamed to.

The hybrid way beside streams alone, with all lists in host memory (none stays on the GPU), on the
bus as it is and on slower ones: each strip is copied so many times. PCIe 5 has 55 GB/s, so twice is
PCIe 4, four times PCIe 3, eight times half its lanes. Seconds are those of the report, medians in
turns, after a run of each way that pins the lists and compiles. Labels are compared with those of a
run in the GPU's memory.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from statistics import median
from typing import Any

from tqdm import tqdm

from glp_rapids import label_propagation
from glp_rapids.bench import subjects
from glp_rapids.bench.table import Rows, Tables
from glp_rapids.graph.graph import Graph
from glp_rapids.jit.parallel import threads_available
from glp_rapids.outofcore import double_buffer

TIMES = (1, 2, 4, 8)  # that a strip is copied
WAYS = ("streamed plain", "hybrid")
# Runs by name: with the defaults, and synchronous ones in which everything is evaluated.
RUNS = {"defaults": {}, "6 synchronous sweeps": subjects.synchronous(6, skip_inactive=False)}


def tables(name: str, graph: Graph, options: argparse.Namespace) -> Tables:
    """Return the table of a graph that lies on the GPU."""
    expected = {run: label_propagation(graph, **how) for run, how in RUNS.items()}
    host = replace(graph.to("cpu"), _derived={})
    rows: Rows = []
    for times in TIMES:
        double_buffer.TIMES = times
        try:
            for run in RUNS:
                row = _row(host, run, times, expected[run], options.repeats)
                rows.append({"graph": name, **row})
                told = ", ".join(f"{key} {value}" for key, value in rows[-1].items())
                tqdm.write(told, file=sys.stderr)
        finally:
            double_buffer.TIMES = 1
    return {f"Streams to a GPU, alone and beside {threads_available()} threads": rows}


def _row(host: Graph, run: str, times: int, expected: Any, repeats: int) -> dict[str, Any]:
    """Time both ways in turns."""
    seconds: dict[str, list[float]] = {way: [] for way in WAYS}
    share, equal = 0.0, True
    for turn in range(repeats + 1):
        for way in WAYS:
            found = label_propagation(host, device="gpu", way=way, **RUNS[run])
            report = found.attrs["glp"]
            equal &= subjects.same_labels(found, expected)
            share = report.get("share_of_host", share)
            if turn:
                seconds[way].append(report["seconds"])
    streamed, hybrid = (1e3 * median(seconds[way]) for way in WAYS)
    return {
        "run": run, "bus GB/s": double_buffer.BUS / times / 1e9, "streamed ms": streamed,
        "hybrid ms": hybrid, "times as fast": streamed / hybrid, "the host's share": share,
        "labels equal": equal,
    }  # fmt: skip
