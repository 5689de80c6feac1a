"""Quality of the defaults: modularity, and NMI where communities were planted.

NetworKit's PLP runs beside on the same graphs (symmetrised, without loops). Both run once per seed;
the table holds medians, and for us the lowest modularity too. The last column says what the
library promises of its defaults and a graph breaks: modularity and NMI at least NetworKit's
(cnr-2000: modularity at least 0.86), more than one community, an end of its own within 60 sweeps.

A seed leaves the classes of the vertices as they are, for these follow the ids. With ``--draws``
the ids are shuffled as often, each time with another seed, which draws the classes too; of these
runs the median, the mean and the standard deviation of the modularity are told.
"""

from __future__ import annotations

import argparse
from statistics import mean, median, pstdev

import numpy as np

from glp_rapids.bench import subjects
from glp_rapids.bench.table import Tables
from glp_rapids.graph.graph import Graph
from glp_rapids.metrics import modularity, nmi

GRAPHS = (
    "com-dblp",
    "cnr-2000",
    "web-NotreDame",
    "email-Enron",
    *(f"lfr-{n}-mu{mu}" for n in (10000, 100000) for mu in (0.1, 0.3, 0.5)),
)
FLOORS = {"cnr-2000": 0.86}
MOST_SWEEPS = 60


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add this bench's options."""
    subjects.add_options(parser, GRAPHS, threads="")
    parser.add_argument("--seeds", type=int, default=5, help="runs of each side (default 5)")
    parser.add_argument("--draws", type=int, default=0, help="runs on shuffled ids (default 0)")
    parser.add_argument("--alone", action="store_true", help="without NetworKit")


def run(options: argparse.Namespace) -> Tables:
    """Return a table with a row a graph."""
    threads = subjects.processors(options.threads)
    peer = None if options.alone else subjects.networkit(threads)

    def measure(name: str, graph: Graph) -> Tables:
        truth = subjects.truth(name, graph)
        subjects.run_ours(graph, max_iter=1)  # compiles
        ours = [subjects.run_ours(graph, seed=seed) for seed in range(options.seeds)]
        row = {
            "graph": name,
            "vertices": graph.number_of_vertices,
            "entries": graph.number_of_edges,
            **measured(graph, ours, truth),
        }
        if peer is not None:
            other = subjects.networkit_graph(peer, graph)
            theirs = [subjects.run_networkit(peer, other, seed) for seed in range(options.seeds)]
            row |= {f"NetworKit {key}": value for key, value in
                    measured(graph, theirs, truth).items() if key in COMPARED}  # fmt: skip
        if options.draws:
            row |= drawn(graph, options.draws)
        row["verdict"] = verdict(row, name)
        return {"Quality of the defaults": [row]}

    return subjects.each(options.graphs, options.device, "quality", measure)


COMPARED = ("modularity", "NMI", "communities", "seconds")


def measured(graph: Graph, outcomes: list[subjects.Outcome], truth: np.ndarray | None) -> dict:
    """Return the columns of a row: medians, and extremes, of runs that differ in their seeds."""
    found = [modularity(graph, graph.frame({"partition": run.labels})) for run in outcomes]
    sizes = [np.unique(run.labels, return_counts=True)[1] for run in outcomes]
    return {"modularity": median(found), "lowest": min(found),
            "NMI": None if truth is None else median(nmi(run.labels, truth) for run in outcomes),
            "communities": int(median(len(size) for size in sizes)),
            "largest share": max(float(size.max() / size.sum()) for size in sizes),
            "sweeps": max(run.sweeps for run in outcomes),
            "settled": all(run.settled for run in outcomes),
            "seconds": median(run.seconds for run in outcomes)}  # fmt: skip


def drawn(graph: Graph, draws: int) -> dict[str, float]:
    """Return what the modularity is if classes are drawn anew for every run."""
    found = []
    for seed in range(draws):
        shuffled, number = subjects.with_shuffled_ids(graph, seed)
        labels = subjects.run_ours(shuffled, seed=seed).labels
        found.append(modularity(graph, graph.frame({"partition": labels[number]})))
    return {"drawn median": median(found), "drawn mean": mean(found), "deviation": pstdev(found)}


def verdict(row: dict, name: str) -> str:
    """Name the promises that a graph breaks; "ok" if none."""
    floor = FLOORS.get(name, row.get("NetworKit modularity"))
    broken = []
    if floor is not None and row["modularity"] < floor:
        broken.append(f"modularity below {floor:.3f}")
    if row["NMI"] is not None and row["NMI"] < (row.get("NetworKit NMI") or 0):
        broken.append(f"NMI below {row['NetworKit NMI']:.3f}")
    if row["communities"] < 2 < row["vertices"] or row["largest share"] > 0.9:
        broken.append("collapsed")
    if not row["settled"] or row["sweeps"] > MOST_SWEEPS:
        broken.append(f"no end within {MOST_SWEEPS} sweeps")
    return "; ".join(broken) or "ok"
