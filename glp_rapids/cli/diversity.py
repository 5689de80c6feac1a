"""``glp-rapids diversity``: a file of edges in, who has friends in many circles out."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from glp_rapids.cli import edge_files, scheduler
from glp_rapids.common.checks import check_integer
from glp_rapids.common.sizes import as_bytes

EPILOG = """\
examples:
  glp-rapids diversity friends.csv --k 4                       # columns src and dst; every vertex
  glp-rapids diversity friends.csv --model truss               # for every k
  glp-rapids diversity com-dblp.edges.tsv.gz --no-header --k 4 --model truss --top 100 \\
      --output best.csv --contexts circles.csv                 # and who is in which circle
  glp-rapids diversity friends.parquet --k 3 --model core --top 10
  glp-rapids diversity friends/ --k 4 --scheduler tcp://10.0.0.1:8786 --output found.parquet

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
    # `dest`: what the library calls it, by which an error of it names the option
    run.add_argument("--top", dest="t", type=int, metavar="T",
                     help="only the T best, the best first")  # fmt: skip
    run.add_argument("--contexts", type=Path, metavar="FILE",
                     help="with --top: a file for the members of their circles")  # fmt: skip
    run.add_argument(
        "--devices", type=int, nargs="+", metavar="N",
        help="numbers of the GPUs to share the work; default: the current one",
    )  # fmt: skip
    run.add_argument(
        "--memory-limit", metavar="SIZE",
        help="bytes, or such as 8GB or 512MiB, to work in besides the graph and the result; what "
        "takes more is worked on in batches (default: what is free)",
    )  # fmt: skip
    scheduler.add_option(run)
    edge_files.add_device_and_output(run)


def run(options: argparse.Namespace) -> None:
    """Read the graph, search, print a summary, write the result."""
    if options.contexts is not None and options.t is None:
        raise ValueError("--contexts is for the circles of the best: say how many with --top")
    if options.t is not None and options.k is None:
        raise ValueError("--top ranks by the number of circles for one k: say which with --k")
    _check_numbers(options)
    if options.scheduler is not None:
        outputs = {"--contexts": options.contexts}
        scheduler.run(options, partial(_on_cluster, options), partial(_tell, options), **outputs)
        return
    edge_files.check_outputs(options, **{"--contexts": options.contexts})
    graph = edge_files.read_graph(options)
    found, contexts = _search(graph, options)
    _summarise(found, options)
    edge_files.put_out(found, options.output)
    if contexts is not None:
        edge_files.put_out(contexts, options.contexts)


def _check_numbers(options: argparse.Namespace) -> None:
    """Check before a long file is read what the library checks once it has a graph."""
    from glp_rapids.diversity.models import model_of

    if options.k is not None:
        least = model_of(options.model).least_k
        check_integer("k", options.k, least, f" for --model {options.model}")
    if options.t is not None:
        check_integer("t", options.t, 1)
    as_bytes("memory_limit", options.memory_limit)


def _search(graph: Any, options: argparse.Namespace) -> tuple[Any, Any]:
    import glp_rapids

    how = {"devices": options.devices, "device": graph.device, "progress": sys.stderr.isatty()}
    found = _asked(glp_rapids, graph, options, **how)
    return found if isinstance(found, tuple) else (found, None)


def _on_cluster(options: argparse.Namespace, frame: Any) -> Sequence[Any]:
    import glp_rapids.dask

    ends = {"source": options.source, "destination": options.destination}
    found = _asked(glp_rapids.dask, frame, options, **ends)
    return found if isinstance(found, tuple) else [found]


def _asked(where: Any, graph: Any, options: argparse.Namespace, **how: Any) -> Any:
    """Ask the functions of one process, or those of the workers of a cluster."""
    how |= {"memory_limit": options.memory_limit, "symmetrize": True}  # as the help says
    if options.t is None:
        return where.structural_diversity(graph, options.k, options.model, **how)
    wanted = options.contexts is not None
    return where.top_structural_diversity(
        graph, options.t, options.k, options.model, contexts=wanted, **how
    )


def _summarise(found: Any, options: argparse.Namespace) -> None:
    report = found.attrs["glp"]
    if len(found):
        having = found.loc[found["score"] > 0, "vertex"].nunique()
        _say_found(options, having, found["vertex"].nunique(), found["score"].max())
    _say_run(report, report["seconds"])


def _tell(options: argparse.Namespace, frames: Sequence[Any]) -> None:
    """Say what was found on a cluster; only counts come from the workers."""
    import dask

    found, reports = frames[0], frames[0].attrs["glp"]["ranks"]
    ids = found.columns[:-1].drop("k", errors="ignore").tolist()  # of one column or several
    parts = [dask.delayed(_counted)(part, ids) for part in found.to_delayed()]
    having, vertices, best = zip(*dask.compute(*parts), strict=True)
    if sum(vertices):
        _say_found(options, sum(having), sum(vertices), max(best))
    evaluated = sum(report["evaluated"] for report in reports)
    seconds = max(report["seconds"] for report in reports)
    _say_run({**reports[0], "evaluated": evaluated}, seconds, f" on {len(reports)} workers")


def _counted(part: Any, ids: list[str]) -> tuple[int, int, int]:
    """Count vertices with a circle, and all; and the most circles that one has."""
    best = part.groupby(ids)["score"].max()
    return int((best > 0).sum()), len(best), int(best.max()) if len(best) else 0


def _say_found(options: argparse.Namespace, having: int, vertices: int, best: int) -> None:
    circle = options.model if options.k is None else f"{options.k}-{options.model}"
    edge_files.say(
        f"found       {having:,} of {vertices:,} vertices have friends in a {circle}, one in "
        f"{best:,}"
    )


def _say_run(report: dict[str, Any], seconds: float, where: str = "") -> None:
    edge_files.say(
        f"run         {report['evaluated']:,} vertices evaluated, {report['pruned']:,} pruned, "
        f"in {seconds:.3f} s{where}"
    )
