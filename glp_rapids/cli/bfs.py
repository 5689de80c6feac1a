"""``glp-rapids bfs``: a file of edges in, how many edges everything is from a start out."""

from __future__ import annotations

import argparse
import re
from typing import Any

from glp_rapids.cli import edge_files
from glp_rapids.common.sizes import as_bytes
from glp_rapids.device import choose, to_host
from glp_rapids.frames import files

EPILOG = """\
examples:
  glp-rapids bfs edges.csv --start ann                         # columns src and dst
  glp-rapids bfs payments.parquet --source from --destination to --directed \\
      --start 17 42 --depth-limit 3 --output within_three.csv  # from the nearest of several
  glp-rapids bfs edges.csv --start ann --path-to dan eve       # the vertices on the way
  glp-rapids bfs follows.csv --directed --direction in --start ann  # who gets to ann

Only vertices that are reached come out: vertex, distance, predecessor; with --path-to target, step,
vertex, distance. Without --output they go to stdout as CSV, or, on a terminal, their first rows;
the summary goes to stderr.
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add this command's options."""
    parser.epilog = EPILOG
    columns = edge_files.add_options(parser)
    columns.add_argument("--directed", action="store_true", help="an edge goes one way only")
    edge_files.add_no_header(columns, "source and destination")
    run = add_search(parser)
    run.add_argument("--depth-limit", type=int, metavar="N", help="leave out what is farther")
    add_memory_limit(run)
    edge_files.add_device_and_output(run)


def run(options: argparse.Namespace) -> None:
    """Read the graph, search, print a summary, write the result."""
    from glp_rapids import bfs
    from glp_rapids.traversal.search import depth_of

    edge_files.check_outputs(options)
    depth_of(options.depth_limit)  # before a long file is read
    graph, search = read_graph(options, directed=options.directed)
    start, ends = starts_and_ends(graph, options)
    found = bfs(graph, start, depth_limit=options.depth_limit, **search)
    put_out(found, options, ends)


def add_search(parser: argparse.ArgumentParser) -> Any:
    """Add the start, the direction and the ends of paths; return their group."""
    run = parser.add_argument_group("the run")
    run.add_argument("--start", nargs="+", required=True, metavar="ID",
                     help="where to begin; behind EDGES")  # fmt: skip
    run.add_argument("--path-to", nargs="+", metavar="ID",
                     help="list the paths to these instead; behind EDGES")  # fmt: skip
    run.add_argument("--direction", choices=("out", "in", "both"), default="out",
                     help="follow directed edges (default), go against them, or both")  # fmt: skip
    return run


def add_memory_limit(run: Any) -> None:
    """Add the limit of memory, under which a GPU may leave the search to the host."""
    edge_files.add_memory_limit(
        run, "a graph that does not fit the GPU is searched on the host, and one that does not "
        "fit there is refused", "no limit",
    )  # fmt: skip


def read_graph(options: argparse.Namespace, **how: Any) -> tuple[Any, dict[str, Any]]:
    """Read the graph; return it and the options that all searches have in common."""
    device, limit = choose(options.device), options.memory_limit
    as_bytes("memory_limit", limit)  # before a long file is read
    if limit is not None:
        options.device = "cpu"  # from where it is moved if it fits
    graph = edge_files.read_graph(options, **how)
    # where paths are asked for, vertices that were not reached are told from unknown ones
    unreachable = "drop" if options.path_to is None else "max"
    return graph, {
        "direction": options.direction, "unreachable": unreachable, "memory_limit": limit,
        "device": graph.device if limit is None else device,
    }  # fmt: skip


def starts_and_ends(graph: Any, options: argparse.Namespace) -> tuple[list, list | None]:
    """Return the ids to begin at, and those to list paths to: both are looked up before the search.

    None: no paths are asked for.
    """
    start = ids_of(graph, options.start, "--start")
    return start, options.path_to and ids_of(graph, options.path_to, "--path-to")


def ids_of(graph: Any, texts: list[str], option: str) -> list:
    """Read ids as the file's were read, and raise if one is no vertex."""
    ids = _read_ids(graph, texts, option)
    places = to_host(graph.vertices.lookup(ids, option, absent=True))
    if none := [text for text, place in zip(texts, places, strict=True) if place < 0]:
        raise ValueError(f"{option}: {none[0]!r} is no vertex of the graph")
    return ids


def _read_ids(graph: Any, texts: list[str], option: str) -> list:
    """Read ids as integers if all of the file were, or as dates."""
    family = graph.vertices.columns[0].family
    if family in ("date", "datetime"):
        return [_moment(text, option, family == "date") for text in texts]
    if family in ("string", "empty"):
        return texts
    if family != "integer":
        raise ValueError(f"{option}: the ids of the file are {family} ids; name them in Python")
    if none := [text for text in texts if not re.fullmatch(files.INTEGER, text)]:
        raise ValueError(f"{option}: the ids of the file are integers, but {none[0]!r} is none")
    return [int(text) for text in texts]


def _moment(text: str, option: str, whole_day: bool) -> Any:
    """Read a point in time, or a date, without a zone."""
    import pandas as pd

    try:
        moment = pd.Timestamp(text)
    except ValueError:
        moment = None
    if moment is None or moment is pd.NaT or moment.tzinfo is not None:
        raise ValueError(f"{option}: the ids of the file are dates, but {text!r} is none")
    if not whole_day:
        return moment
    if moment != moment.normalize():
        raise ValueError(f"{option}: the ids of the file are dates, but {text!r} is within one")
    return moment.date()


def put_out(found: Any, options: argparse.Namespace, ends: list | None) -> None:
    """Print a summary and write the result, or the paths that are asked for."""
    report = found.attrs["glp"]
    edge_files.say(f"found       {report['reached']:,} vertices are reached")
    edge_files.say(f"run         {report['seconds']:.3f} s on the {report['device']}")
    if ends is not None:
        from glp_rapids import shortest_paths

        found = shortest_paths(found, ends)
        if unreached := found.attrs["glp"]["unreached"]:
            edge_files.say(f"paths       none to {unreached} of --path-to")
    edge_files.put_out(found, options.output)
