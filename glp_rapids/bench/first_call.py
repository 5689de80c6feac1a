"""The first call of a process: compiled, with what the package brings, from a cache.

Each is the median of processes of their own, whose caches are empty but for the last two columns:
seconds from the call to its result, on a frame of 60,000 edges, 300 of them at one vertex. Imports
of NumPy, pandas and this package come before. Those of Numba, on a GPU also of CuPy and the start
of CUDA, are a part of the call but in the last column, "imported": there they have been done, as by
``import cudf``. Python's own bytecode is there, as pip leaves it: an untimed process has written
it, which takes a third of a second where it is not kept. On a GPU it is a frame of the host, and
there is no column of what nothing was shipped for: CuPy's kernels are compiled in any case.
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
ends[0, :300] = 0
edges = pd.DataFrame({"src": ends[0], "dst": ends[1]})
"""

# Numba's default, in other words: nothing is shipped for these, and the same is compiled.
SPELLED = "per_bb,diamond,fanout,fanout_raise"
# What a first call does, by title.
CALLS = {
    "label propagation": "lp.label_propagation(edges, device=device)",
    "speaker-listener": "lp.speaker_listener(edges, device=device)",
    "multilevel": "lp.multilevel_label_propagation(edges, device=device)",
    "structural diversity, truss":
        'lp.structural_diversity(edges, k=3, model="truss", device=device)',
    "compress": "lp.compress(lp.as_graph(edges, device=device))",
    "compress, label propagation on it":
        "lp.label_propagation(lp.compress(lp.as_graph(edges, device=device)))",
    "breadth-first search": "lp.bfs(edges, 0, device=device)",
    "suspicious clusters":
        "lp.fraud.find_clusters(edges, edges['src'][:50].unique(), minimum_size=1, device=device)",
}  # fmt: skip


# What others have imported before a first call, by device.
IMPORTED = {"cpu": "import numba", "gpu": "import cupy, numba.cuda\ncupy.zeros(1)"}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add this bench's options."""
    parser.add_argument("--repeats", type=int, default=3, help="processes for each number")
    parser.add_argument("--device", choices=("cpu", "gpu"), default="cpu")


def run(options: argparse.Namespace) -> dict[str, list[dict[str, Any]]]:
    """Time each call."""
    rows = []
    with tempfile.TemporaryDirectory() as bytecode:
        for title, call in CALLS.items():
            times = _times(call, bytecode, options)
            rows.append({"call": title} | {one: statistics.median(times[one]) for one in times})
    where = options.device.upper()
    return {f"first call of a process on a {where}, seconds": rows}


def _times(call: str, bytecode: str, options: argparse.Namespace) -> dict[str, list[float]]:
    """Time a call, by column."""
    device = options.device
    times: dict[str, list[float]] = {}
    timed = f"begin = time.perf_counter()\n{call}"
    script = f"{_FRAME}\ndevice = {device!r}\n{timed}"
    imported = f"{_FRAME}\ndevice = {device!r}\n{IMPORTED[device]}\n{timed}"
    for switches in ({}, {"NUMBA_LLVM_REFPRUNE_FLAGS": SPELLED})[: 1 + (device == "cpu")]:
        with tempfile.TemporaryDirectory() as cache:
            _seconds(script, cache, bytecode, **switches)
    for _ in range(options.repeats):
        if device == "cpu":
            with tempfile.TemporaryDirectory() as cache:
                switches = {"NUMBA_LLVM_REFPRUNE_FLAGS": SPELLED}
                seconds = _seconds(script, cache, bytecode, **switches)
            times.setdefault("compiled", []).append(seconds)
        with tempfile.TemporaryDirectory() as cache:
            for column, run in {"shipped": script, "cached": script, "imported": imported}.items():
                times.setdefault(column, []).append(_seconds(run, cache, bytecode))
    return times


def _seconds(script: str, cache: str, bytecode: str, **switches: str) -> float:
    places = {"NUMBA_CACHE_DIR": cache, "CUPY_CACHE_DIR": cache, "PYTHONPYCACHEPREFIX": bytecode}
    done = subprocess.run(
        [sys.executable, "-c", f"{script}\nprint(time.perf_counter() - begin)"],
        capture_output=True, text=True, check=True,
        env={**os.environ, **places, "PYTHONDONTWRITEBYTECODE": "", **switches},
    )  # fmt: skip
    return float(done.stdout.split()[-1])
