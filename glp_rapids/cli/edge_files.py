"""What commands on a file of edges have in common: its options, the graph, where results go."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from glp_rapids.frames import files

if TYPE_CHECKING:
    from glp_rapids.compressed.graph import CompressedGraph
    from glp_rapids.graph.graph import BaseGraph, Graph

HEAD = 10


def add_options(parser: argparse.ArgumentParser) -> Any:
    """Add the file and its columns; return their group, for what only one command has."""
    parser.add_argument("edges", type=Path, metavar="EDGES",
                        help=f"{files.FORMATS}; also *.gz; or *.graph, of WebGraph; or what "
                        "`glp-rapids compress` wrote")  # fmt: skip
    columns = parser.add_argument_group("the file")
    columns.add_argument("--source", default="src", metavar="COLUMN", help="default: src")
    columns.add_argument("--destination", default="dst", metavar="COLUMN", help="default: dst")
    return columns


def add_weight_and_direction(columns: Any) -> None:
    """Add the weights, the direction, and what a file without a header needs."""
    columns.add_argument("--weight", metavar="COLUMN", help="default: every edge weighs one")
    columns.add_argument("--directed", action="store_true", help="an edge goes one way only")
    add_no_header(columns, "source, destination and, with --weight, the weight")


def add_no_header(columns: Any, names: str) -> None:
    """Add the option for a file whose first line is an edge already."""
    columns.add_argument(
        "--no-header", action="store_true",
        help=f"the file has no line of column names: its columns are {names}; lines that begin "
        "with # are left out",
    )  # fmt: skip


def add_device_and_output(parser: Any) -> None:
    """Add where to run, and the file of the result."""
    parser.add_argument("--device", choices=("cpu", "gpu"), help="default: the GPU if there is one")
    parser.add_argument(
        "--output", type=Path, metavar="FILE", help="*.csv, *.tsv or *.parquet, or - for stdout"
    )


def check_outputs(options: argparse.Namespace, **more: Path | None) -> None:
    """Check before any work that the results can be written, and over no input."""
    outputs = dict(more)
    if options.output is None or str(options.output) not in files.STDOUT:
        outputs["--output"] = options.output
    for path in outputs.values():
        if path is not None:
            files.checked_ending(path)
    files.check_outputs(outputs, inputs(options))


def inputs(options: argparse.Namespace) -> dict[str, Path]:
    """Return the files that a graph is read from, by what a message calls them."""
    edges = options.edges
    if edges.suffix != ".graph":
        return {"EDGES": edges}
    return {"EDGES": edges, "the properties of EDGES": edges.with_suffix(".properties")}


def read_graph(
    options: argparse.Namespace, *, weight: str | None = None, directed: bool = False
) -> BaseGraph:
    """Read the file as the options say, and print what is in it."""
    from glp_rapids.compressed.file.container import is_container

    files.check_input(options.edges)
    if is_container(options.edges):
        graph = _read_compressed(options, weight, directed)
    elif options.edges.suffix == ".graph":
        graph = _read_webgraph(options, weight, directed)
    else:
        graph = _read_table(options, weight, directed)
    say(
        f"graph       {graph.number_of_vertices:,} vertices, {_edges(graph)}, on the {graph.device}"
    )
    return graph


def _read_compressed(
    options: argparse.Namespace, weight: str | None, directed: bool
) -> CompressedGraph:
    from glp_rapids import CompressedGraph

    graph = CompressedGraph.open(options.edges, device=options.device)
    if weight is not None:
        raise ValueError(f"{options.edges} has its own weights, if any; leave --weight out")
    if directed and not graph.directed:
        raise ValueError(f"{options.edges} holds an undirected graph; leave --directed out")
    return graph


def _read_webgraph(options: argparse.Namespace, weight: str | None, directed: bool) -> Graph:
    from glp_rapids import read_webgraph

    if weight is not None:
        raise ValueError(f"{options.edges} holds no weights; leave --weight out")
    return read_webgraph(options.edges, directed=directed, device=options.device)


def _read_table(options: argparse.Namespace, weight: str | None, directed: bool) -> Graph:
    from glp_rapids import as_graph

    ends, named = [options.source, options.destination], [weight] if weight else []
    header = ends + named if options.no_header else None
    named = {"source": options.source, "destination": options.destination, "weight": weight}
    frame = files.read_table(options.edges, ends, header=header, **named)
    with files.naming(options.edges):
        return as_graph(frame, **named, directed=directed, device=options.device)


def put_out(frame: Any, path: Path | None) -> None:
    """Write a result to its file; without one to stdout, on a terminal its first rows."""
    if path is not None and str(path) not in files.STDOUT:
        files.write_table(frame, path)
        say(f"written     {path} ({len(frame):,} rows: {', '.join(frame.columns)})")
    elif sys.stdout is None:
        raise OSError("stdout is closed; name a file with --output")
    elif path is None and sys.stdout.isatty():
        print(frame.head(HEAD).to_string(index=False))
        say(f"... {max(len(frame) - HEAD, 0):,} rows more; all of them: --output FILE")
    else:
        files.write_stdout(frame)


def _edges(graph: BaseGraph) -> str:
    """Write the number of edges; of a compressed undirected graph, that of its entries."""
    if graph.directed:
        return f"{graph.number_of_edges:,} edges"
    if graph.scheme:  # compressed: loops would have to be looked for
        return f"{graph.number_of_edges:,} entries"
    loops = int((graph.row_indices() == graph.indices).sum())
    return f"{(graph.number_of_edges + loops) // 2:,} edges"


def say(line: str) -> None:
    """Print to stderr: the result may go through stdout into a pipe."""
    print(line, file=sys.stderr)
