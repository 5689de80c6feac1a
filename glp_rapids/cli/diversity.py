"""``glp-rapids diversity``: a file of edges in, who has friends in many circles out."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from glp_rapids.cli import edge_files, scheduler

EPILOG = """\
examples:
  glp-rapids diversity friends.csv --k 4                       # columns src and dst; every vertex
  glp-rapids diversity friends.csv --model truss               # for every k
  glp-rapids diversity com-dblp.edges.tsv.gz --no-header --k 4 --model truss --top 100 \\
      --output best.csv --contexts circles.csv                 # and who is in which circle
  glp-rapids diversity friends.parquet --k 3 --model core --top 10
  glp-rapids diversity friends/ --k 4 --scheduler tcp://10.0.0.1:8786 --output scores.parquet

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
    scheduler.add_option(run)
    edge_files.add_device_and_output(run)


def run(options: argparse.Namespace) -> None:
    """Read the graph, search, print a summary, write the result."""
    if options.contexts is not None and options.top is None:
        raise ValueError("--contexts is for the circles of the best: say how many with --top")
    if options.top is not None and options.k is None:
        raise ValueError("--top ranks by the number of circles for one k: say which with --k")
    if options.scheduler is not None:
        scheduler.run(options, _found_by_workers, _summarise_of_workers)
        return
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


def _found_by_workers(frame: Any, options: argparse.Namespace) -> Any:
    import glp_rapids.dask as on_workers

    return on_workers.structural_diversity(
        frame, options.k, options.model, source=options.source, destination=options.destination
    )


def _summarise_of_workers(found: Any, options: argparse.Namespace) -> int:
    """Say what was found, and count its rows; only counts come from the workers."""
    import dask

    vertex, score = found["vertex"], found["score"]
    rows, vertices, having, most = dask.compute(
        score.size, vertex.nunique(), vertex[score > 0].nunique(), score.max()
    )
    _say(having, vertices, most, options)
    reports = found.attrs["glp"]["ranks"]
    seconds = max(report["seconds"] for report in reports)
    edge_files.say(
        f"run         {vertices:,} vertices evaluated in {seconds:.3f} s on {len(reports)} workers"
    )
    return int(rows)


def _say(having: int, vertices: int, most: int, options: argparse.Namespace) -> None:
    circle = options.model if options.k is None else f"{options.k}-{options.model}"
    edge_files.say(
        f"found       {having:,} of {vertices:,} vertices have friends in a {circle}, one in "
        f"{most:,}"
    )


def _summarise(found: Any, options: argparse.Namespace) -> None:
    report = found.attrs["glp"]
    if len(found):
        having = found.loc[found["score"] > 0, "vertex"].nunique()
        _say(having, found["vertex"].nunique(), found["score"].max(), options)
    edge_files.say(
        f"run         {report['evaluated']:,} vertices evaluated, {report['pruned']:,} pruned, "
        f"in {report['seconds']:.3f} s"
    )
