"""The first call of a process on a CPU: compiled, with what the package brings, from a cache.

Each is the median of processes of their own, whose caches are empty but for the last column's:
seconds from the call to its result, on a frame of 60,000 edges. Imports of NumPy, pandas and this
package come before, that of Numba is a part of the call.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from typing import Any

_FRAME = """
import time
import numpy as np, pandas as pd
import glp_rapids as lp
ends = np.random.default_rng(0).integers(0, 5_000, (2, 60_000))
edges = pd.DataFrame({"src": ends[0], "dst": ends[1]})
begin = time.perf_counter()
"""

# Numba's default, in other words: nothing is shipped for these, and the same is compiled.
SPELLED = "per_bb,diamond,fanout,fanout_raise"
# What a first call does, by title.
CALLS = {
    "label propagation": 'lp.label_propagation(edges, device="cpu")',
    "speaker-listener": 'lp.speaker_listener(edges, device="cpu")',
    "structural diversity, truss":
        'lp.structural_diversity(edges, k=3, model="truss", device="cpu")',
    "compress": 'lp.compress(lp.as_graph(edges, device="cpu"))',
    "compress, label propagation on it":
        'lp.label_propagation(lp.compress(lp.as_graph(edges, device="cpu")))',
    "breadth-first search": 'lp.bfs(edges, 0, device="cpu")',
}  # fmt: skip


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add this bench's options."""
    parser.add_argument("--repeats", type=int, default=3, help="processes for each number")


def run(options: argparse.Namespace) -> dict[str, list[dict[str, Any]]]:
    """Time each call."""
    rows = []
    for title, call in CALLS.items():
        times: dict[str, list[float]] = {"compiled": [], "shipped": [], "cached": []}
        for _ in range(options.repeats):
            with tempfile.TemporaryDirectory() as cache:
                times["compiled"].append(_seconds(call, cache, NUMBA_LLVM_REFPRUNE_FLAGS=SPELLED))
            with tempfile.TemporaryDirectory() as cache:
                times["shipped"].append(_seconds(call, cache))
                times["cached"].append(_seconds(call, cache))
        rows.append({"call": title} | {one: statistics.median(times[one]) for one in times})
    return {"first call of a process on a CPU, seconds": rows}


def _seconds(call: str, cache: str, **switches: str) -> float:
    script = f"{_FRAME}\n{call}\nprint(time.perf_counter() - begin)"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True,
        env={**os.environ, "NUMBA_CACHE_DIR": cache, **switches},
    )  # fmt: skip
    return float(done.stdout.split()[-1])
