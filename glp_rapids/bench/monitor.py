"""A monitor at work: what a tick costs by stage, how long names last, how soon a ring is seen.

`datasets.drifting_transactions` of 60 days, with a fifth of the ring members as seeds. A window of
30 days is filled by the rows up to half of that, and the rest comes in ticks of ``--every``.
"cluster id changed" is the share, of the accounts that are in some cluster in two ticks in a row,
of those whose cluster is called otherwise in the second. "hours to alert" is the median time from
the opening of a ring's first episode to the first tick with five of its members in one cluster;
"rings seen" counts the rings of which that was found, of those that were awake in the replay.
``--pool`` has GPU memory from a pool of RMM, as RAPIDS advises those who call often: a tick asks
for a thousand arrays. ``--soak`` makes 2,000 ticks of the second half, saves each to a folder, and
says how the memory of the process grew after the first 200, and how latencies compare.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from contextlib import nullcontext
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd

from glp_rapids.bench import subjects
from glp_rapids.bench.table import Tables
from glp_rapids.bench.timing import memory_pool, synchronise
from glp_rapids.datasets import drifting_transactions
from glp_rapids.device import choose
from glp_rapids.fraud import Monitor, SlidingWindow, Tick

DAYS, WINDOW = 60, 30
SEEN = 5  # members of a ring in one cluster
SOAK, SETTLED = 2000, 200  # ticks of a soak, and those after which its memory is looked at
STAGES = ("window", "graph", "scores", "clusters", "frames")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add this bench's options."""
    parser.add_argument("--rows", type=int, default=2_000_000, help="in all; half fill the window")
    parser.add_argument("--every", default="6h", metavar="SPAN", help="of a tick (default 6h)")
    parser.add_argument("--ticks", type=int, default=120, help="at the most (default 120)")
    parser.add_argument("--soak", action="store_true", help="2,000 ticks, memory and latencies")
    parser.add_argument("--device", choices=("cpu", "gpu"), default=None)
    parser.add_argument("--pool", action="store_true", help="GPU memory from a pool of RMM")


def run(options: argparse.Namespace) -> Tables:
    """Return a table of one row."""
    device = choose(options.device)
    with memory_pool() if options.pool else nullcontext():
        return _soak(options.rows, device) if options.soak else _ticks(options, device)


def _ticks(options: argparse.Namespace, device: str) -> Tables:
    """Make ticks of a length; a table of one row says what they cost and find."""
    watch, half, frame, truth = _filled(options.rows, device)
    stamp = frame["time"].dt.floor(options.every)
    parts = [part for _, part in frame[stamp >= half].groupby(stamp[stamp >= half])]
    ticks, seconds, ends = [], [], []
    for part in parts[: options.ticks]:
        batch = subjects.frame_of(part, device)
        synchronise(device)
        begin = time.perf_counter()
        ticks.append(watch.update(batch))
        synchronise(device)
        seconds.append(time.perf_counter() - begin)
        ends.append(part["time"].iloc[-1])
    delays, born = _delays(ticks, ends, truth[truth["opening"] >= half])
    stages = [tick.alerts.attrs["glp"]["seconds"] for tick in ticks]
    row = {
        "ticks": len(ticks), "rows a tick": len(frame[stamp >= half]) // len(parts),
        "median ms": 1e3 * np.median(seconds), "p99 ms": 1e3 * np.quantile(seconds, 0.99),
        **{f"{name} ms": 1e3 * np.median([one[name] for one in stages]) for name in STAGES},
        "alerts": sum(len(tick.alerts) for tick in ticks),
        "cluster id changed": _renamed(ticks),
        "rings seen": f"{len(delays)} of {born}",
        "hours to alert": float(np.median(delays)) if delays else None,
    }  # fmt: skip
    where = f"on the {device}{', in a pool of RMM' if options.pool else ''}"
    title = f"Monitor, a window of {WINDOW} days with {len(watch.window):,} rows, {where}"
    return {title: [row]}


def _filled(
    rows: int, device: str
) -> tuple[Monitor, pd.Timestamp, pd.DataFrame, pd.DataFrame]:
    """Return a monitor whose window the first half has filled, when that ends, all rows, truth."""
    frame, truth = drifting_transactions(
        rows, days=DAYS, accounts=max(rows // 10, 100), merchants=max(rows // 100, 100),
        rings=max(rows // 25_000, 2), towns=max(rows * 3 // 10_000, 2),
    )  # fmt: skip
    members = truth["vertex"].drop_duplicates().sort_values()
    watch = Monitor(
        SlidingWindow(days=WINDOW, id="transaction", device=device),
        members.iloc[np.random.default_rng(0).permutation(len(members))[: len(members) // 5]],
    )
    half = frame["time"].iloc[0].floor("D") + pd.Timedelta(days=WINDOW)
    watch.update(subjects.frame_of(frame[frame["time"] < half], device))
    return watch, half, frame, truth


def _soak(rows: int, device: str) -> Tables:
    """Make many ticks; a table of one row says what they did to memory, and how long they took."""
    watch, half, frame, _ = _filled(rows, device)
    later = frame[frame["time"] >= half]
    number = (later["time"] - half) // (pd.Timedelta(days=DAYS - WINDOW) / SOAK)
    seconds, saving, memory = [], [], []
    with tempfile.TemporaryDirectory() as folder:
        for _, part in later.groupby(number):
            batch = subjects.frame_of(part, device)
            begin = time.perf_counter()
            watch.update(batch)
            synchronise(device)
            middle = time.perf_counter()
            watch.save(folder)
            seconds.append(middle - begin)
            saving.append(time.perf_counter() - middle)
            memory.append(_resident())
        watch.close()
    watch.verify()
    seconds, settled = np.array(seconds), memory[min(SETTLED, len(memory) - 1) :]
    row = {
        "ticks": len(seconds), "median ms": 1e3 * np.median(seconds),
        "p99 ms": 1e3 * np.quantile(seconds, 0.99),
        "p99 / median": np.quantile(seconds, 0.99) / np.median(seconds),
        "longest ms": 1e3 * seconds.max(), "save ms": 1e3 * np.median(saving),
        "p99 save ms": 1e3 * np.quantile(saving, 0.99),
        f"MiB after {SETTLED}": settled[0] / 2**20, "MiB at the end": settled[-1] / 2**20,
        "largest growth": max(settled) / settled[0] - 1,
    }  # fmt: skip
    title = f"Soak, a window of {WINDOW} days with {len(watch.window):,} rows, on the {device}"
    return {title: [row]}


def _resident() -> int:
    """Return how many bytes of the host's memory this process has."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def _members(tick: Tick) -> pd.Series:
    members = tick.members
    members = members.to_pandas() if hasattr(members, "to_pandas") else members
    return members.set_index("vertex")["cluster_id"]


def _renamed(ticks: list[Tick]) -> float:
    """Return the share of members whose cluster has another name in the next tick."""
    changed = stayed = 0
    names = [_members(tick) for tick in ticks]
    for before, now in pairwise(names):
        both = before.index.intersection(now.index)
        stayed += len(both)
        changed += int((before[both] != now[both]).sum())
    return changed / max(stayed, 1)


def _delays(
    ticks: list[Tick], ends: list[pd.Timestamp], truth: pd.DataFrame
) -> tuple[list[float], int]:
    """Return the hours until each ring was seen, and how many rings there were."""
    names = [_members(tick) for tick in ticks]
    found, born = [], 0
    for _, ring in truth[truth["opening"] <= ends[-1]].groupby("ring"):
        born += 1
        first = ring[ring["opening"] == ring["opening"].min()]
        for end, clusters in zip(ends, names, strict=True):
            inside = clusters[clusters.index.intersection(first["vertex"])]
            if end >= first["opening"].iloc[0] and inside.value_counts().max() >= SEEN:
                found.append((end - first["opening"].iloc[0]) / pd.Timedelta(hours=1))
                break
    return found, born
