"""Conversion of edge frames and cuGraph's graphs on a GPU, compared with cuGraph's own.

Each undirected edge is one row of two int32 columns, in the order of the rows of the CSR. Medians
of the repeats after a call that warms up, the device waited for. Without cuGraph the rows that need
it are left out; without a GPU the frame is pandas.
"""

from __future__ import annotations

import argparse
import importlib.util
from typing import Any

import numpy as np

from glp_rapids.bench import subjects
from glp_rapids.bench.table import Rows, Tables
from glp_rapids.bench.timing import clocked
from glp_rapids.device import array_module
from glp_rapids.graph.graph import Graph
from glp_rapids.ingest.read import as_graph

WANTED_OF_CUGRAPH = 0.5  # of the time of from_cudf_edgelist
WANTED_MS_PER_G_ENTRIES = 25 / 0.128  # from a cugraph.Graph


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add this bench's options."""
    subjects.add_options(parser, ("kron-22-16",), repeats=5)


def run(options: argparse.Namespace) -> Tables:
    """Return a table with a row a graph and what it is made from."""

    def measure(name: str, graph: Graph) -> Tables:
        return {f"Ingest, {graph.device}": _measure(name, graph, options.repeats)}

    return subjects.each(options.graphs, options.device, "ingest", measure)


def _measure(name: str, graph: Graph, repeats: int) -> Rows:
    device, entries, frame = graph.device, graph.number_of_edges, edge_frame(graph)
    ours, found = clocked(lambda: as_graph(frame, device=device), repeats, device)
    row = {"graph": name, "from": type(frame).__module__.split(".")[0], "rows": len(frame),
           "vertices": found.number_of_vertices, "entries": entries, "ms": ours}  # fmt: skip
    del found
    if device == "cpu" or not importlib.util.find_spec("cugraph"):
        return [row]
    import cugraph

    def theirs() -> Any:
        other = cugraph.Graph()
        other.from_cudf_edgelist(frame, source="src", destination="dst")
        return other

    their_ms, other = clocked(theirs, repeats, device)
    row |= {"cuGraph ms": their_ms, "of cuGraph": ours / their_ms, "wanted at most":
            WANTED_OF_CUGRAPH, "reached": ours <= WANTED_OF_CUGRAPH * their_ms}  # fmt: skip
    ours, _ = clocked(lambda: as_graph(other, device=device), repeats, device)
    limit = WANTED_MS_PER_G_ENTRIES * entries / 1e9
    chained = {**row, "from": "cugraph.Graph", "ms": ours, "cuGraph ms": None, "of cuGraph": None,
               "wanted at most": limit, "reached": ours <= limit}  # fmt: skip
    return [row, chained]


def edge_frame(graph: Graph) -> Any:
    """Return the edges of an undirected graph, once each, as a frame where the graph lives."""
    xp = array_module(graph.indices)
    source = graph.row_indices()
    once = source <= graph.indices
    columns = {"src": source[once], "dst": graph.indices[once]}
    columns = {column: ends.astype(np.int32) for column, ends in columns.items()}
    if xp is np:
        import pandas as pd

        return pd.DataFrame(columns)
    import cudf

    return cudf.DataFrame(columns)
