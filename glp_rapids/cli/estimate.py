"""``glp-rapids estimate``: how much memory a run on a file of edges, or on so many, would take."""

from __future__ import annotations

import argparse
from typing import Any

from glp_rapids.cli import edge_files, unused

EPILOG = """\
examples:
  glp-rapids estimate edges.csv                             # what is free on this machine decides
  glp-rapids estimate graph.glp --memory-limit 8GB          # what `glp-rapids compress` wrote
  glp-rapids estimate follows.csv --directed --algorithm speaker-listener
  glp-rapids estimate edges.csv --algorithm multilevel-label-propagation
  glp-rapids estimate --sizes 1010000000 23200000000 --memory-limit 150GB --bits 8

A row says what the run would take that way: plain lists, packed ones (`glp-rapids compress`), or
either of them streamed through a small buffer. "fits" is of a graph that is given in that form: of
a table of edges, packed rows count once it is compressed. --sizes takes vertices and entries, of
which an undirected edge is two, and asks for no file.
"""
LAYERED = "layered_label_propagation"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add this command's options."""
    parser.epilog = EPILOG
    columns = edge_files.add_options(parser, optional=True)
    edge_files.add_weight_and_direction(columns)
    run = parser.add_argument_group("the run")
    run.add_argument("--sizes", type=int, nargs=2, metavar=("VERTICES", "ENTRIES"),
                     help="of a graph that is not there, instead of EDGES")  # fmt: skip
    run.add_argument("--algorithm", type=_function, default="label_propagation", metavar="NAME",
                     help="the function to be called (default label-propagation)")  # fmt: skip
    run.add_argument("--gamma", dest="gammas", type=float, nargs="+", metavar="GAMMA",
                     help="of layered-label-propagation: its resolutions (default 1)")  # fmt: skip
    run.add_argument("--mapped", action="store_true",
                     help="with --sizes: the lists lie in a mapped file")  # fmt: skip
    run.add_argument("--bits", type=float, metavar="BITS",
                     help="an entry if packed; default: measured, with --sizes 10")  # fmt: skip
    edge_files.add_memory_limit(run)
    edge_files.add_device_and_output(run, default="rows for both")


def _function(name: str) -> str:
    """Name a function as Python does, where it is written as commands are."""
    return name.replace("-", "_")


def run(options: argparse.Namespace) -> None:
    """Read the graph if there is one, and put out the table."""
    edge_files.check_outputs(options)
    if (options.edges is None) == (options.sizes is None):
        raise ValueError("name a file of edges, or give --sizes VERTICES ENTRIES, not both")
    edge_files.put_out(_estimate(options), options.output)


def _estimate(options: argparse.Namespace) -> Any:
    from glp_rapids import estimate_memory
    from glp_rapids.propagation import estimate

    how = {"device": options.device, "memory_limit": options.memory_limit,
           "bits_per_entry": options.bits}  # fmt: skip
    if options.algorithm == LAYERED:
        how["gammas"] = options.gammas or [1.0]  # as --variant layered
    elif options.gammas is not None:
        raise ValueError(f"--gamma is for --algorithm {LAYERED}, not {options.algorithm}")
    if options.sizes is not None:
        unused.refuse(
            options, ("source", "destination", "no_header"), "is for a file, not for --sizes"
        )
        weight = {} if options.weight is None else {"weight": options.weight}
        return estimate_memory(
            tuple(options.sizes), options.algorithm, **how, **weight, mapped=options.mapped,
            directed=options.directed,
        )  # fmt: skip
    if options.mapped:
        raise ValueError("--mapped is for --sizes; of a file it is known")
    estimate.asked(options.algorithm, **how)  # before a long file is read
    options.device = "cpu"  # where the file is read; the estimate is of where the run would be
    graph = edge_files.read_graph(options, weight=options.weight, directed=options.directed)
    if options.algorithm in estimate.FUNCTIONS:  # which decode what is packed
        return estimate_memory(graph, options.algorithm, **how)
    other = "plain ways are of a table of edges"
    if not graph.scheme:
        other = "packed ways are of what `glp-rapids compress` makes of it"
    edge_files.say(f"note        {other}, not of the file as it is")
    return estimate_memory(graph, options.algorithm, **how)
