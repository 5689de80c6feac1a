"""Scores of accounts from nothing and from earlier ones, after a share of the rows was replaced.

Rows are made-up transactions in order of time; those in a graph are the first three quarters, then
as many that begin later by a share of them. Each call is the first on its graph; cold and warm
calls take turns, and the best of the repeats counts. "pushed" is in multiples of all entries,
"apart" how far the scores of the two are from one another at the most, in multiples of what they
may be off.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from tqdm import tqdm

from glp_rapids import as_graph
from glp_rapids.bench import subjects, timing
from glp_rapids.bench.table import Rows, Tables
from glp_rapids.datasets import blacklist, transactions
from glp_rapids.device import choose, to_host
from glp_rapids.fraud import account_scores
from glp_rapids.fraud.system import times_as_far
from glp_rapids.fraud.totals import row_weights
from glp_rapids.graph.graph import Graph

SHARES = 0.00035, 0.01, 0.1
TOLERANCE = 1e-4


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add this bench's options."""
    parser.add_argument("--rows", type=int, default=4_000_000, help="in a graph (default 4 M)")
    parser.add_argument("--shares", nargs="+", type=float, default=SHARES, metavar="SHARE",
                        help="of them that go (default 0.00035, 0.01 and 0.1)")  # fmt: skip
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--device", choices=("cpu", "gpu"), default=None)


def run(options: argparse.Namespace) -> Tables:
    """Return a table with a row for each share."""
    device, number = choose(options.device), options.rows
    made = number * 4 // 3
    rows, rings = transactions(
        made, accounts=max(made // 10, 2_000), merchants=max(made // 400, 200),
        rings=max(made // 50_000, 2), towns=max(made // 10_000, 2),
    )  # fmt: skip
    rows, seeds = rows.sort_values("time", kind="stable", ignore_index=True), blacklist(rings)
    scored = partial(account_scores, seeds=seeds, absent="drop", tol=TOLERANCE)

    def graph_from(first: int) -> Graph:
        some = rows.iloc[first : first + number]
        pairs = some.groupby(["source", "destination"], sort=False).size()
        edges = subjects.frame_of(pairs.reset_index(name="weight"), device)
        names = {"source": "source", "destination": "destination", "weight": "weight"}
        return as_graph(edges, **names, device=device)

    earlier = scored(graph_from(0))
    found: Rows = []
    for share in tqdm(options.shares, desc="scores", leave=False, disable=None):
        graph = graph_from(round(number * share))
        found.append({"share": share, "entries": graph.number_of_edges,
                      **_row(graph, scored, earlier, max(options.repeats, 1))})  # fmt: skip
    return {f"Scores of accounts, {number:,} rows, on the {device}": found}


def _row(graph: Graph, scored: Any, earlier: Any, repeats: int) -> dict[str, Any]:
    ways = {"cold": scored, "warm": partial(scored, previous=earlier)}
    seconds: dict[str, list[float]] = {way: [] for way in ways}
    results = {}
    for number in range(-1, repeats):  # the first, -1, warms up
        for way, function in ways.items():
            fresh = replace(graph, _derived={})
            timing.synchronise(graph.device)
            begin = time.perf_counter()
            results[way] = function(fresh)
            timing.synchronise(graph.device)
            if number >= 0:
                seconds[way].append(1e3 * (time.perf_counter() - begin))
    pushed = {way: found.attrs["glp"]["pushed"] for way, found in results.items()}
    cold, warm = (to_host(found["score"].values) for found in results.values())
    mean = results["cold"].attrs["glp"]["mean_weight"]
    allowed = to_host(times_as_far(row_weights(graph) ** 0.5, mean))
    best = {way: min(times) for way, times in seconds.items()}
    return {
        "cold ms": best["cold"], "warm ms": best["warm"], "times": best["cold"] / best["warm"],
        "cold pushed": pushed["cold"] / graph.number_of_edges,
        "warm pushed": pushed["warm"] / graph.number_of_edges,
        "apart": float((np.abs(cold - warm) / allowed).max()) / TOLERANCE,
    }  # fmt: skip
