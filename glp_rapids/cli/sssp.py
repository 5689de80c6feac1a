"""``glp-rapids sssp``: a file of edges with lengths in, shortest paths out."""

from __future__ import annotations

import argparse

from glp_rapids.cli import bfs, edge_files
from glp_rapids.ingest.options import ByDefault

EPILOG = """\
examples:
  glp-rapids sssp roads.csv --weight km --start home           # columns src, dst and km
  glp-rapids sssp roads.csv --weight minutes --directed --start 17 --cutoff 30 \\
      --output within_half_an_hour.parquet
  glp-rapids sssp roads.csv --weight km --start home --path-to work   # the way, stop by stop

Of edges that are in a file several times the shortest counts; in a compressed graph, if it was made
with compress --multigraph min. Only vertices that are reached come out: vertex, distance,
predecessor; with --path-to target, step, vertex, distance. Without --output they go to stdout as
CSV, or, on a terminal, their first rows; the summary goes to stderr.
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add this command's options."""
    parser.epilog = EPILOG
    columns = edge_files.add_options(parser)
    edge_files.add_weight_and_direction(columns)
    run = bfs.add_search(parser)
    run.add_argument("--cutoff", type=float, metavar="LENGTH", help="leave out what is farther")
    bfs.add_memory_limit(run)
    edge_files.add_device_and_output(run)


def run(options: argparse.Namespace) -> None:
    """Read the graph, search, print a summary, write the result."""
    import numpy as np

    from glp_rapids import sssp
    from glp_rapids.traversal.search import cutoff_of

    edge_files.check_outputs(options)
    cutoff_of(options.cutoff, np.dtype(np.float64))  # before a long file is read
    graph, search = bfs.read_graph(
        options, weight=options.weight, directed=options.directed, multigraph=ByDefault("min")
    )
    source, ends = bfs.starts_and_ends(graph, options)
    found = sssp(graph, source, cutoff=options.cutoff, **search)
    bfs.put_out(found, options, ends)
