"""A sliding window that is full: what a batch costs, and what the next graph costs then.

A window of ten days holds ``--rows`` transactions, a tenth of them a day, between a tenth as many
accounts drawn at random. Batches of 1, of 3,500 (five minutes at a million a day), of 100,000
and of a day follow in time, and each pushes out as many. "append" is the call alone, "graph after
it" the first `graph` then, which merges what came; medians of the repeats after one that warms up.
Beside them the whole anew: a window filled at once with as many rows, and its graph. ``--strings``
makes the accounts texts; ``--ids`` gives every transaction an id to find duplicates by.
Limits are for ten million rows, on two cores or a GPU.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial
from statistics import median
from typing import Any

import numpy as np
import pandas as pd

from glp_rapids.bench import subjects
from glp_rapids.bench.table import Tables
from glp_rapids.bench.timing import synchronise
from glp_rapids.device import choose
from glp_rapids.frames.kinds import Frame
from glp_rapids.fraud import SlidingWindow

DAYS = 10
BATCHES = (1, 3_500, 100_000)
FULL = 10_000_000  # rows, of the window that the limits are for
WANTED_MS = {"cpu": {3_500: 60, "a day": 1000}, "gpu": {3_500: 5, "a day": 30}}
FIRST_DAY = np.datetime64("2026-01-01", "us")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add this bench's options."""
    parser.add_argument("--rows", type=int, default=FULL)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--strings", action="store_true", help="accounts are texts")
    parser.add_argument("--ids", action="store_true", help="transactions have ids")
    parser.add_argument("--device", choices=("cpu", "gpu"), default=None)


def run(options: argparse.Namespace) -> Tables:
    """Return a table with a row for each size of a batch, and for all at once."""
    device = choose(options.device)
    stream = Stream(options.rows, options.strings, options.ids, device)
    window = stream.window()
    window.append(stream.batch(options.rows))
    window.graph()
    a_day = max(options.rows // DAYS, 1)
    rows = []
    for size in (*BATCHES, a_day):
        name = "a day" if size == a_day else size
        appended, merged = [], []
        for _ in range(options.repeats + 1):
            batch = stream.batch(size)
            appended.append(_ms(partial(window.append, batch), device))
            merged.append(_ms(window.graph, device))
        row = {"batch": str(name), "rows": size, "append ms": _middle(appended),
               "graph after it ms": _middle(merged)}  # fmt: skip
        wanted = WANTED_MS[device].get(name)
        if wanted and options.rows == FULL:
            row |= {"wanted below": wanted, "reached": row["append ms"] < wanted}
        rows.append(row)
    del window, batch
    whole = stream.window()
    batch = stream.batch(options.rows)
    filled = _ms(partial(whole.append, batch), device)
    rows.append({"batch": "all of it", "rows": options.rows, "append ms": filled,
                 "graph after it ms": _ms(whole.graph, device)})  # fmt: skip
    title = f"Window of {DAYS} days, {options.rows:,} rows, on the {device}"
    return {title: rows}


class Stream:
    """Transactions one after the other in time, so many a window."""

    def __init__(self, rows: int, strings: bool, ids: bool, device: str) -> None:
        self.rows, self.ids, self.device = rows, ids, device
        self.accounts = max(rows // DAYS, 2)
        self.names = None
        if strings:
            self.names = pd.Series(np.arange(self.accounts)).map("account {:09d}".format)
        self.random = np.random.default_rng(0)
        self.sent = 0

    def window(self) -> SlidingWindow:
        """Return an empty window for these rows."""
        return SlidingWindow(DAYS, id="id" if self.ids else None, device=self.device)

    def batch(self, size: int) -> Frame:
        """Return the next rows, where the window lives."""
        ends = {
            name: self.random.integers(0, self.accounts, size) for name in ("source", "destination")
        }
        if self.names is not None:
            ends = {name: self.names.take(end) for name, end in ends.items()}
        sent = np.arange(self.sent, self.sent + size)
        self.sent += size
        apart = np.timedelta64(DAYS * 86_400_000_000, "us") / self.rows
        columns: dict[str, Any] = {
            **ends,
            "amount": self.random.integers(1, 10**6, size) / 100,
            "time": pd.Series(FIRST_DAY + sent * apart),
        }
        if self.ids:
            columns["id"] = sent
        return subjects.frame_of(columns, self.device)


def _ms(call: Callable[[], Any], device: str) -> float:
    synchronise(device)
    start = time.perf_counter()
    call()
    synchronise(device)
    return 1e3 * (time.perf_counter() - start)


def _middle(times: list[float]) -> float:
    return median(times[1:] or times)
