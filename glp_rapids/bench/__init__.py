"""Measure speed, quality and memory, with other libraries beside this one where they are there.

A module a bench: each has ``add_options(parser)`` and ``run(options)``, which returns tables:
``{title: [row, ...]}``, a row as a dict by column. The peers that a bench runs beside this library
(NetworKit) are imported when it runs, not before.
"""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Sequence
from types import ModuleType

from glp_rapids.bench.table import as_json, as_markdown

BENCHES = {
    "agreement": "the same labels on CPU and GPU, plain and compressed, in any order: digests",
    "quality": "modularity and NMI of the defaults, NetworKit's PLP beside them",
    "multilevel": "multilevel label propagation beside NetworKit's PLM and igraph's Leiden",
    "warm": "runs that go on from an earlier result beside cold ones, after edges have gone",
    "parameters": "quality and time over a grid of classes, explore and tol",
    "overlap": "planted overlapping communities found by SLPA; LLP's partitions gamma by gamma",
    "first-call": "the first call of a process: compiled, with what the package brings, cached",
    "cpu": "speed on a CPU, NetworKit's PLP beside it; ingest; user-defined programs",
    "gpu": "speed on a GPU beside the ceiling of its memory; strategies; variants",
    "steps": "where a run on a GPU spends its time: every step of every sweep, and its barriers",
    "ingest": "edge frames and cuGraph's graphs into ours, cuGraph's own conversion beside it",
    "diversity": "ego-networks: all, the best, several devices; cores and trusses beside cuGraph's",
    "monitor": "fraud alerts tick by tick: seconds by stage, names that last, time to an alert",
    "scores": "scores of accounts from nothing and from earlier ones, after some rows have changed",
    "window": "a sliding window of transactions: batches, the graph after them, all anew",
    "traversal": "breadth-first search and shortest paths, SciPy and NetworKit beside them",
    "layers": "WolfPath's layers: passes, in memory and streamed under a limit of memory",
    "compressed": "bits an entry, encoding, and propagation on compressed graphs beside plain ones",
    "large": "a graph of billions of edges, compressed and run on one GPU; what fits there",
    "several": "one device beside several that share a graph: time, bytes sent, time waiting",
    "cluster": "variants on the workers of a Dask cluster beside one process: seconds and memory",
    "beyond-memory": "runs under a limit of memory: ways, seconds, predicted and measured peaks",
    "tradeoff": "time against modularity over classes and explore, also as a picture",
}


def add_benches(parser: argparse.ArgumentParser) -> None:
    """Add a subcommand for each bench to a parser; its ``bench`` holds the name chosen."""
    subparsers = parser.add_subparsers(dest="bench", required=True, metavar="BENCH")
    for name, summary in BENCHES.items():
        module = _module_of(name)
        sub = subparsers.add_parser(name, help=summary, description=module.__doc__)
        sub.formatter_class = argparse.RawDescriptionHelpFormatter
        module.add_options(sub)
        sub.add_argument("--json", action="store_true", help="print JSON, not Markdown")


def _module_of(name: str) -> ModuleType:
    return importlib.import_module(f"glp_rapids.bench.{name.replace('-', '_')}")


def run(options: argparse.Namespace) -> str:
    """Run the bench named by the options and return its tables as text."""
    tables = _module_of(options.bench).run(options)
    return as_json(tables) if options.json else as_markdown(tables)


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the command line and print the tables."""
    parser = argparse.ArgumentParser(prog="glp-rapids bench", description=__doc__.split("\n")[0])
    add_benches(parser)
    print(run(parser.parse_args(arguments)))
