"""``glp-rapids measure``: a file of edges in, a number for every vertex or edge out."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any, NamedTuple

from glp_rapids.cli import edge_files, unused
from glp_rapids.common.checks import check_integer
from glp_rapids.common.sizes import as_bytes
from glp_rapids.device import choose

EPILOG = """\
examples:
  glp-rapids measure edges.csv --of core-number                # columns src and dst
  glp-rapids measure friends.parquet --of triangles --output triangles.csv
  glp-rapids measure friends.csv --of trussness --output edges.parquet
  glp-rapids measure roads.csv --of betweenness --k 100        # from 100 starts, for an estimate

What is measured:
  core-number  the largest k of a k-core that has the vertex: vertex, core_number
  triangles    in how many triangles the vertex is: vertex, counts
  trussness    the largest k of a k-truss that has the edge: src, dst, trussness
  betweenness  the share of shortest paths between others that the vertex is on:
               vertex, betweenness_centrality
Loops and duplicates do not count; edges have no direction, but of betweenness with --directed.
Without --output the numbers go to stdout as CSV, or, on a terminal, their first rows; the summary
goes to stderr.
"""


class Measure(NamedTuple):
    """What is measured: the function of the library, and its column of numbers."""

    function: str
    column: str


MEASURES = {
    "core-number": Measure("core_number", "core_number"),
    "triangles": Measure("triangle_count", "counts"),
    "trussness": Measure("trussness", "trussness"),
    "betweenness": Measure("betweenness_centrality", "betweenness_centrality"),
}
OF_BETWEENNESS = "k", "directed", "seed"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add this command's options."""
    parser.epilog = EPILOG
    columns = edge_files.add_options(parser)
    columns.add_argument("--directed", action="store_true",
                         help="an edge goes one way only: betweenness")  # fmt: skip
    edge_files.add_no_header(columns, "source and destination")
    run = parser.add_argument_group("the run")
    run.add_argument("--of", choices=MEASURES, required=True, help="what is measured")
    run.add_argument("--k", type=int, metavar="K",
                     help="betweenness: from so many starts, drawn at random")  # fmt: skip
    run.add_argument("--seed", type=int, default=0, help="of the starts of --k (default 0)")
    edge_files.add_memory_limit(
        run, "what does not fit a GPU is measured in host memory, and what does not fit there is "
        "refused; betweenness has no limit",
    )  # fmt: skip
    edge_files.add_device_and_output(run)


def run(options: argparse.Namespace) -> None:
    """Read the graph, measure, print a summary, write the result."""
    import glp_rapids

    measure = MEASURES[options.of]
    edge_files.check_outputs(options)
    as_bytes("memory_limit", options.memory_limit)  # before a long file is read
    device = choose(options.device)
    if options.of == "betweenness":
        unused.refuse(options, ["memory_limit"], "is not for --of betweenness; leave it out")
        if options.k is not None:
            check_integer("k", options.k, 1)
        how: dict[str, Any] = {"k": options.k, "seed": options.seed}
    else:
        unused.refuse(options, OF_BETWEENNESS, f"is for --of betweenness, not {options.of}")
        how = {"memory_limit": options.memory_limit, "device": device}
        if options.memory_limit is not None:
            options.device = "cpu"  # from where it is moved if it fits
    graph = edge_files.read_graph(options, directed=options.directed)
    function: Callable[..., Any] = getattr(glp_rapids, measure.function)
    found = function(graph, **how)
    numbers, report = found[measure.column], found.attrs["glp"]
    if len(numbers):
        edge_files.say(
            f"found       {measure.column}: at most {numbers.max():,.6g}, on average "
            f"{numbers.mean():,.6g}"
        )
    edge_files.say(f"run         {report['seconds']:.3f} s on the {report['device']}")
    edge_files.put_out(found, options.output)
