"""``glp-rapids communities``: a file of edges in, communities of high modularity out."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from glp_rapids.cli import edge_files
from glp_rapids.common.sizes import as_bytes
from glp_rapids.device import choose

EPILOG = """\
examples:
  glp-rapids communities edges.csv                             # columns src and dst
  glp-rapids communities calls.parquet --source caller --destination callee --weight minutes \\
      --output communities.parquet
  glp-rapids communities edges.csv --resolution 2              # smaller ones
  glp-rapids communities edges.csv --objective cpm --resolution 0.1
  glp-rapids communities edges.csv --levels tree.csv           # and what they are made of

As good as Leiden's; label-propagation is faster. The same file and --seed give the same
communities, on a GPU and on a CPU. Without --output the communities go to stdout as CSV, or, on a
terminal, their first rows; the summary goes to stderr.
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add this command's options."""
    parser.epilog = EPILOG
    columns = edge_files.add_options(parser)
    columns.add_argument("--weight", metavar="COLUMN", help="default: every edge weighs one")
    edge_files.add_no_header(columns, "source, destination and, with --weight, the weight")
    run = parser.add_argument_group("the run")
    run.add_argument("--resolution", type=float, default=1.0, metavar="R",
                     help="default 1; above, communities are smaller, below larger")  # fmt: skip
    run.add_argument("--objective", choices=("modularity", "cpm"), default="modularity",
                     help="cpm: the constant Potts model, for which R is a density")  # fmt: skip
    run.add_argument("--no-refine", dest="refine", action="store_false",
                     help="as Louvain: faster, and a community may be disconnected")  # fmt: skip
    run.add_argument("--levels", type=Path, metavar="FILE",
                     help="a file for the hierarchy: vertex, level, partition")  # fmt: skip
    run.add_argument("--seed", type=int, default=0, help="of the random orders (default 0)")
    edge_files.add_memory_limit(
        run, "a graph that takes more on a GPU is worked on in host memory, and one that takes "
        "more there is refused", "what is free",
    )  # fmt: skip
    edge_files.add_device_and_output(run)


def run(options: argparse.Namespace) -> None:
    """Read the graph, find communities, print a summary, write the result."""
    from glp_rapids import multilevel_label_propagation
    from glp_rapids.communities.multilevel import check_resolution, check_seed

    edge_files.check_outputs(options, **{"--levels": options.levels})
    # before a long file is read
    as_bytes("memory_limit", options.memory_limit)
    check_resolution(options.resolution)
    check_seed("seed", options.seed)
    device = choose(options.device)
    if options.memory_limit is not None:
        options.device = "cpu"  # from where it is moved if it fits
    graph = edge_files.read_graph(options, weight=options.weight)
    found = multilevel_label_propagation(
        graph, resolution=options.resolution, objective=options.objective, refine=options.refine,
        levels=options.levels is not None, seed=options.seed, memory_limit=options.memory_limit,
        device=device, progress=sys.stderr.isatty(),
    )  # fmt: skip
    tree, report = found, found.attrs["glp"]
    if options.levels is not None:
        last = found[found["level"] == found["level"].max()]
        found = last.drop(columns="level").reset_index(drop=True)
    _summarise(found, report, options.objective)
    edge_files.put_out(found, options.output)
    if options.levels is not None:
        edge_files.put_out(tree, options.levels)


def _summarise(found: Any, report: dict[str, Any], objective: str) -> None:
    sizes = found["partition"].value_counts().to_numpy()
    line = f"{len(sizes):,} communities"
    if len(sizes):
        line += f", the largest of {', '.join(f'{size:,}' for size in sizes[:5])} vertices"
    if report[objective] == report[objective]:  # not a number where there is no edge
        line += f"; {objective} {report[objective]:.4f}"
    edge_files.say(f"found       {line}")
    edge_files.say(
        f"run         {report['sweeps']} sweeps in {report['seconds']:.3f} s on the "
        f"{report['device']}"
    )
