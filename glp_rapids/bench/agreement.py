"""The same labels everywhere: on CPU and GPU, on plain and compressed lists, in any row order.

Every variant runs in every place that there is on this machine. A row of the table is a graph and a
run: how many places gave the same frame to the bit and needed as many changes in every sweep, which
ones did not, and a digest of it. Digests are the same on every machine, and in every version with
the same semantics: ``--against`` compares them with those of a table that ``--json`` printed.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import glp_rapids
from glp_rapids.bench import subjects
from glp_rapids.bench.gpu import weighted
from glp_rapids.bench.programs import Reworded
from glp_rapids.bench.table import Tables
from glp_rapids.device import DeviceName, gpu_available
from glp_rapids.graph.graph import BaseGraph, Graph

GRAPHS = ("web-100000", "social-50000", "road-300", "kron-16-16")  # which everybody can make
TITLE = "Labels of every place"
FEW = {"max_iter": 6}
SYNCHRONOUS = subjects.synchronous(4)


def seeded(graph: BaseGraph, **options: Any) -> Any:
    """Run seeded label propagation from some fifty vertices."""
    ids = np.asarray(graph.external())[:: max(graph.number_of_vertices // 50, 1)]
    return glp_rapids.seeded_label_propagation(
        graph, dict.fromkeys(ids, "a"), max_iter=4, **options
    )


# What runs, and whether on weights of the bench's own.
RUNS: dict[str, tuple[Callable[..., Any], bool]] = {
    "defaults": (glp_rapids.label_propagation, False),
    "explore=0": (partial(glp_rapids.label_propagation, explore=0), False),
    "synchronous": (partial(glp_rapids.label_propagation, **SYNCHRONOUS), False),
    "weighted": (partial(glp_rapids.label_propagation, **FEW), True),
    "weighted, synchronous": (partial(glp_rapids.label_propagation, **SYNCHRONOUS), True),
    "layered": (partial(glp_rapids.layered_label_propagation, gammas=[1], **FEW), False),
    "speaker-listener": (partial(glp_rapids.speaker_listener, max_iter=4), False),
    "seeded": (seeded, False),
    "reworded": (partial(glp_rapids.propagate, program=Reworded(), **FEW), False),
    "reworded, weighted": (partial(glp_rapids.propagate, program=Reworded(), **FEW), True),
}


def _shuffled(device: DeviceName, graph: Graph) -> Graph:
    """Build the graph anew from its edges: these in another order, and either end first."""
    random = np.random.default_rng(0)
    ids, rows = np.asarray(graph.external()), graph.row_indices()
    edges = np.flatnonzero(graph.directed | (rows <= graph.indices))
    edges = random.permutation(edges)
    one, other = ids[rows[edges]], ids[graph.indices[edges]]
    turned = np.zeros(edges.size, bool) if graph.directed else random.random(edges.size) < 0.5
    ends = np.where(turned, other, one), np.where(turned, one, other)
    weights = () if graph.weights is None else (graph.weights[edges],)
    given = *ends, *weights
    return glp_rapids.as_graph(given, directed=graph.directed, vertices=ids, device=device)


# By device and what else is different there: how a graph comes there from the CPU.
PLACES: dict[str, tuple[str, Callable[[Graph], BaseGraph]]] = {
    "cpu": ("cpu", lambda graph: graph),
    "cpu, compressed": ("cpu", lambda graph: glp_rapids.compress(graph, device="cpu")),
    "cpu, rows shuffled": ("cpu", partial(_shuffled, "cpu")),
    "gpu": ("gpu", lambda graph: graph.to("gpu")),
    "gpu, compressed": ("gpu", lambda graph: glp_rapids.compress(graph, device="cpu").to("gpu")),
    "gpu, rows shuffled": ("gpu", partial(_shuffled, "gpu")),
}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add this bench's options."""
    subjects.add_options(parser, GRAPHS, device=False)
    parser.add_argument("--runs", nargs="+", default=list(RUNS), choices=RUNS, metavar="RUN",
                        help=f"of {', '.join(RUNS)}; default: all")  # fmt: skip
    parser.add_argument("--against", type=Path, metavar="FILE",
                        help="compare the digests with a table that --json printed")  # fmt: skip


def run(options: argparse.Namespace) -> Tables:
    """Return a table with a row a graph and run."""
    known = {} if options.against is None else _digests(options.against)

    def measure(name: str, graph: Graph) -> Tables:
        rows = [row_of(name, run, graph) for run in options.runs]
        for row in rows:
            if (before := known.get((name, row["run"]))) is not None:
                row["as before"] = "yes" if before == row["digest"] else f"no, {before}"
        return {TITLE: rows}

    return subjects.each(options.graphs, "cpu", "agreement", measure)


def row_of(name: str, run: str, graph: Graph) -> dict[str, Any]:
    """Run one variant in every place and compare what comes out with the first."""
    call, with_weights = RUNS[run]
    given = graph.keep("bench weights", partial(weighted, graph)) if with_weights else graph
    first, others, different = None, [], []
    for place, (device, there) in PLACES.items():
        if device == "gpu" and not gpu_available():
            continue
        found = call(given.keep(("bench", place), partial(there, given)), device=device)
        said = _plain(found), found.attrs["glp"].get("changed")
        if first is None:
            first = said
        else:
            others.append(place)
            if not (said[0].equals(first[0]) and said[1] == first[1]):
                different.append(place)
    return {"graph": name, "run": run, "places": 1 + len(others),
            "same": "no: " + "; ".join(different) if different else "yes",
            "digest": digest(first[0])}  # fmt: skip


def digest(frame: Any) -> str:
    """Digest the rows of a result in their order: numbers by their bits, all else by its text."""
    hashed = hashlib.sha256()
    for name in frame.columns:
        values = frame[name].to_numpy()
        wide = {"i": "<i8", "u": "<u8", "f": "<f8"}.get(values.dtype.kind)
        text = "\0".join(map(str, values)).encode() if wide is None else values.astype(wide)
        hashed.update(name.encode())
        hashed.update(text)
    return hashed.hexdigest()[:12]


def _plain(frame: Any) -> Any:
    return frame.to_pandas() if hasattr(frame, "to_pandas") else frame


def _digests(path: Path) -> dict[tuple[str, str], str]:
    """Read what an earlier run said, by graph and run."""
    try:
        tables = json.loads(path.read_text())
        return {(row["graph"], row["run"]): row["digest"] for row in tables[TITLE]}
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path}: is not what `bench agreement --json` prints ({error})") from None
