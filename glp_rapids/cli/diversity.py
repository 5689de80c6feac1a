"""``glp-rapids diversity``: a file of edges in, who has friends in many circles out."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from glp_rapids.cli import edge_files

EPILOG = """\
examples:
  glp-rapids diversity friends.csv --k 4                       # columns src and dst; every vertex
  glp-rapids diversity friends.csv --model truss               # for every k
  glp-rapids diversity com-dblp.edges.tsv.gz --no-header --k 4 --model truss --top 100 \\
      --output best.csv --contexts circles.csv                 # and who is in which circle
  glp-rapids diversity friends.parquet --k 3 --model core --top 10

The circles of a vertex are groups of its neighbours:
  component  at least k of them, connected with one another
  core       connected, and each with at least k others of the circle as neighbours
  truss      connected, each edge in at least k-2 triangles within the circle
Edges have no direction; loops and duplicates do not count. A tie goes to the smaller id. Without
--output the scores go to stdout as CSV, or, on a terminal, their first rows; the summary goes to
stderr.
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add this command's options."""
    parser.epilog = EPILOG
    columns = edge_files.add_options(parser)
    edge_files.add_no_header(columns, "source and destination")
    run = parser.add_argument_group("the run")
    run.add_argument("--k", type=int, metavar="K", help="default: every k, a row each")
    run.add_argument("--model", choices=("component", "core", "truss"), default="component",
                     help="what a circle is (default component)")  # fmt: skip
    run.add_argument("--top", type=int, metavar="T", help="only the T best, the best first")
    run.add_argument("--contexts", type=Path, metavar="FILE",
                     help="with --top: a file for the members of their circles")  # fmt: skip
    run.add_argument(
        "--devices", type=int, nargs="+", metavar="N",
        help="numbers of the GPUs to share the work; default: the current one",
    )  # fmt: skip
    run.add_argument(
        "--memory-limit",
        metavar="BYTES",
        help="such as 8GB; default: what is free; more is batched",
    )
    edge_files.add_device_and_output(run)


def run(options: argparse.Namespace) -> None:
    """Read the graph, search, print a summary, write the result."""
    if options.contexts is not None and options.top is None:
        raise ValueError("--contexts is for the circles of the best: say how many with --top")
    if options.top is not None and options.k is None:
        raise ValueError("--top ranks by the number of circles for one k: say which with --k")
    edge_files.check_outputs(options, **{"--contexts": options.contexts})
    graph = edge_files.read_graph(options)
    found, contexts = _search(graph, options)
    _summarise(found, options)
    edge_files.put_out(found, options.output)
    if contexts is not None:
        edge_files.put_out(contexts, options.contexts)


def _search(graph: Any, options: argparse.Namespace) -> tuple[Any, Any]:
    from glp_rapids import structural_diversity, top_structural_diversity

    how = {"memory_limit": options.memory_limit, "devices": options.devices,
           "device": graph.device, "progress": sys.stderr.isatty()}  # fmt: skip
    if options.top is None:
        return structural_diversity(graph, options.k, options.model, **how), None
    wanted = options.contexts is not None
    found = top_structural_diversity(
        graph, options.top, options.k, options.model, contexts=wanted, **how
    )
    return found if wanted else (found, None)


def _summarise(found: Any, options: argparse.Namespace) -> None:
    report = found.attrs["glp"]
    if len(found):
        circle = options.model if options.k is None else f"{options.k}-{options.model}"
        having = found.loc[found["score"] > 0, "vertex"].nunique()
        edge_files.say(
            f"found       {having:,} of {found['vertex'].nunique():,} vertices have friends in a "
            f"{circle}, one in {found['score'].max():,}"
        )
    edge_files.say(
        f"run         {report['evaluated']:,} vertices evaluated, {report['pruned']:,} pruned, "
        f"in {report['seconds']:.3f} s"
    )
