"""What commands on a file of edges have in common: its options, the graph, where results go."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from glp_rapids.cli import unused
from glp_rapids.frames import files, outputs
from glp_rapids.ingest import paths
from glp_rapids.ingest.columns import PAIRS

if TYPE_CHECKING:
    from glp_rapids.graph.graph import BaseGraph

HEAD = 10


def add_options(parser: argparse.ArgumentParser, optional: bool = False) -> Any:
    """Add the file and its columns; return their group, for what only one command has."""
    parser.add_argument("edges", type=Path, metavar="EDGES", nargs="?" if optional else None,
                        help="; ".join(format.words for format in paths.FORMATS))  # fmt: skip
    columns = parser.add_argument_group("the file")
    usual = "; ".join(" and ".join(pair) for pair in PAIRS[1:])
    columns.add_argument("--source", metavar="COLUMN", help=f"default: {PAIRS[0][0]}")
    columns.add_argument(
        "--destination", metavar="COLUMN",
        help=f"default: {PAIRS[0][1]}; a file that has neither may have one of the pairs {usual}",
    )  # fmt: skip
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
        help=f"the file has no line of column names: its columns are {names}, in this order"
        f"{', or in that which a number names, as --weight 4' * ('weight' in names)}; lines "
        "that begin with # are left out, before the first row those with %% and a blank, too; "
        "goes without --source and --destination",
    )  # fmt: skip


def add_memory_limit(
    parser: Any, of_less: str = "with less it is slower, and the result the same",
    default: str = "what is free",
) -> None:  # fmt: skip
    """Add how much memory the run may take; ``of_less``: what happens if it is little."""
    parser.add_argument(
        "--memory-limit", metavar="SIZE",
        help="bytes, or such as 8GB or 512MiB, that the run may take, the graph included; "
        f"{of_less} (default: {default})",
    )  # fmt: skip


def add_device_and_output(parser: Any, default: str = "the GPU if there is one") -> None:
    """Add where to run, and the file of the result."""
    parser.add_argument("--device", choices=("cpu", "gpu"), help=f"default: {default}")
    parser.add_argument(
        "--output", type=Path, metavar="FILE", help="*.csv, *.tsv or *.parquet, or - for stdout"
    )


def check_outputs(options: argparse.Namespace, **more: Path | None) -> None:
    """Check before any work that the results can be written, and over no input."""
    results = dict(more)
    if options.output is None or str(options.output) not in files.STDOUT:
        results["--output"] = options.output
    for path in results.values():
        if path is not None:
            files.checked_ending(path)
    outputs.check_outputs(results, inputs(options))


def inputs(options: argparse.Namespace) -> dict[str, Path]:
    """Return the files that a graph is read from, by what a message calls them."""
    return {} if options.edges is None else paths.inputs(options.edges)


def read_graph(
    options: argparse.Namespace, *, weight: str | None = None, directed: bool = False,
    multigraph: Literal["merge", "min", "keep"] = "merge",
) -> BaseGraph:  # fmt: skip
    """Read the file as the options say, and print what is in it."""
    from glp_rapids.graph.graph import BaseGraph
    from glp_rapids.ingest.read import as_any_graph

    path, ends = options.edges, (options.source, options.destination)
    if not path.is_dir():
        files.check_input(path)
    named = {"source": options.source, "destination": options.destination, "weight": weight}
    header = None
    if getattr(options, "no_header", False):
        unused.refuse(
            options, ("source", "destination"),
            "is for a file with a line of column names; with --no-header the first column is the "
            "source and the second the destination",
        )  # fmt: skip
        _refuse_no_header(path)
        header = _columns_without_header(weight)
    subject = paths.opened(path, paths.Asked(*ends, directed, options.device, header, named))
    if isinstance(subject, BaseGraph):
        if weight is not None:
            raise ValueError(f"{path} has its own weights, if any; leave --weight out")
        if directed and not subject.directed:
            raise ValueError(f"{path} holds an undirected graph; leave --directed out")
        if getattr(options, "multigraph", None) is not None:
            raise ValueError(f"{path} holds a graph that is made already; leave --multigraph out")
    with files.naming(path):
        graph = as_any_graph(
            subject, **named, directed=directed, multigraph=multigraph, device=options.device,
            progress=sys.stderr.isatty(),
        )  # fmt: skip
    say(
        f"graph       {graph.number_of_vertices:,} vertices, {_edges(graph)}, on the {graph.device}"
    )
    return graph


def _columns_without_header(weight: str | None) -> list[str]:
    """Name the columns of a file without names: a weight that is a number is in that column."""
    if weight is None:
        return [*PAIRS[0]]
    column = int(weight) if weight.isdecimal() else 3
    if column < 3:
        raise ValueError(
            f"--weight {weight}: with --no-header columns 1 and 2 are the source and the "
            "destination; the weight is in the third, or in that which a number names"
        )
    return [*PAIRS[0], *(f"column {number}" for number in range(3, column)), weight]


def _refuse_no_header(path: Path) -> None:
    """Raise unless the file is a text: in other formats no line could be missing."""
    if any(format.is_of(path) for format in paths.FORMATS[:-1]):  # the last one takes what is left
        parquet = path.is_dir() or path.suffix.lower() in files.PARQUET
        what = "is Parquet, whose columns have names" if parquet else "is no table"
        raise ValueError(f"{path} {what}; leave --no-header out")


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
    rows, loops = graph.rows("out"), 0
    for first, _, some in rows.chunks(rows.few_at_once()):
        loops += int((some.row_indices() + first == some.indices).sum())
    return f"{(graph.number_of_edges + loops) // 2:,} edges"


def say(line: str) -> None:
    """Print to stderr: the result may go through stdout into a pipe."""
    print(line, file=sys.stderr)
