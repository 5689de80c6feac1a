"""The choice of the defaults: quality against time over a grid of classes, explore and tol.

One row a setting; for each graph its modularity (median over seeds), and its seconds. The last
columns are means over the graphs: of the modularity (or NMI) relative to the best setting's, of
the seconds relative to the fastest, and of the sweeps. The row of the present defaults is marked.
"""

from __future__ import annotations

import argparse
from itertools import product
from statistics import fmean, median

import numpy as np
from tqdm import tqdm

from glp_rapids.bench import subjects
from glp_rapids.bench.table import Tables
from glp_rapids.metrics import modularity, nmi

GRAPHS = ("com-dblp", "cnr-2000", "web-NotreDame", "email-Enron", "lfr-100000-mu0.3")
CLASSES, EXPLORE, TOL = (4, 8, 16, 32), (0, 3, 5, 10, 15), (0.0, 1e-4, 1e-3)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add this bench's options."""
    subjects.add_options(parser, GRAPHS, threads="")
    parser.add_argument("--classes", nargs="+", type=int, default=CLASSES)
    parser.add_argument("--explore", nargs="+", type=int, default=EXPLORE)
    parser.add_argument("--tol", nargs="+", type=float, default=TOL)
    parser.add_argument("--seeds", type=int, default=1, help="runs of each setting (default 1)")
    parser.add_argument("--max-iter", type=int, default=100)


def run(options: argparse.Namespace) -> Tables:
    """Return a table with a row a setting."""
    subjects.processors(options.threads)
    settings = [
        {"classes": classes, "explore": explore, "tol": tol}
        for classes, explore, tol in product(options.classes, options.explore, options.tol)
    ]
    defaults = _defaults()
    rows = [
        {**setting, "default": "<--" if setting.items() <= defaults.items() else None}
        for setting in settings
    ]
    quality = np.zeros((len(settings), len(options.graphs)))
    seconds, sweeps = quality.copy(), quality.copy()
    progress = tqdm(
        total=quality.size * options.seeds, desc="parameters", leave=False, disable=None
    )
    for column, name in enumerate(options.graphs):
        graph = subjects.load(name, options.device)
        truth = subjects.truth(name, graph)
        subjects.run_ours(graph, max_iter=1)
        for line, setting in enumerate(settings):
            outcomes = []
            for seed in range(options.seeds):
                outcomes.append(
                    subjects.run_ours(graph, seed=seed, max_iter=options.max_iter, **setting)
                )
                progress.update()
            of_each = [
                modularity(graph, graph.frame({"partition": outcome.labels}))
                if truth is None
                else nmi(outcome.labels, truth)
                for outcome in outcomes
            ]
            quality[line, column] = median(of_each)
            seconds[line, column] = median(outcome.seconds for outcome in outcomes)
            sweeps[line, column] = max(outcome.sweeps for outcome in outcomes)
            measure = "modularity" if truth is None else "NMI"
            rows[line][f"{name} {measure}"] = float(quality[line, column])
            rows[line][f"{name} s"] = float(seconds[line, column])
    progress.close()
    best, fastest = quality.max(axis=0), seconds.min(axis=0)
    for line, row in enumerate(rows):
        row["of the best"] = fmean(quality[line] / np.where(best > 0, best, 1))
        row["times the fastest"] = fmean(seconds[line] / fastest)
        row["sweeps"] = fmean(sweeps[line])
    return {"Quality and time over the parameters": rows}


def _defaults() -> dict:
    from glp_rapids.propagation.options import Options

    return {name: getattr(Options(), name) for name in ("classes", "explore", "tol")}
