"""``glp-rapids compress``: a file of edges in, a compressed graph out, and where its bits go."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

from glp_rapids.cli import edge_files, unused
from glp_rapids.frames import files, outputs, streams

EPILOG = """\
examples:
  glp-rapids compress edges.csv graph.glp                      # columns src and dst
  glp-rapids compress cnr-2000.graph web.glp --directed --for size
  glp-rapids compress friends.tsv.gz friends.glp --no-header --order llp
  glp-rapids compress graph.glp small.glp --for size           # compress it anew
  glp-rapids compress --info graph.glp                         # is it whole, and what is in it
  glp-rapids label-propagation graph.glp --output communities.csv

Vertices in the order of their ids is best where ids say what belongs together, as for pages of the
web sorted by address; where they say nothing, --order llp looks for a better one. Results are the
same in any order, and the same as from the file of edges; but what sssp takes for the length of an
edge that is in the file several times is decided here, by --multigraph. The table goes to stdout,
the rest to stderr; bits are counted an entry, of which an undirected edge has two.
"""
# Endings of tables: a graph under such a name may be written over the only copy of its edges.
OF_TABLES = (*files.SEPARATORS, *files.PARQUET, ".npz", ".gz")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add this command's options."""
    parser.epilog = EPILOG
    columns = edge_files.add_options(parser)
    parser.add_argument("output", type=Path, nargs="?", metavar="OUT",
                        help="the file to write, such as graph.glp; no table's name")  # fmt: skip
    edge_files.add_weight_and_direction(columns)
    columns.add_argument(
        "--multigraph", choices=("merge", "min", "keep"), default=None,
        help="of edges that are several times in the file: add weights (merge, the default), take "
        "the least, as for sssp (min), or keep all",
    )  # fmt: skip
    how = parser.add_argument_group("how")
    how.add_argument("--for", dest="goal", choices=("speed", "size"), default="speed",
                     help="what the scheme is chosen for (default speed)")  # fmt: skip
    how.add_argument(
        "--scheme", choices=("auto", "cgr", "packed", "entropy"), default="auto",
        help="packed is the fastest to read, entropy the smallest and slowest (default: by --for)",
    )  # fmt: skip
    how.add_argument("--order", choices=("llp", "degree", "bfs"),
                     help="in which lists are stored; default: by id")  # fmt: skip
    how.add_argument(
        "--min-interval", type=int, metavar="N",
        help="the shortest run of ids that is kept as a run (default: 4; 0: none)",
    )  # fmt: skip
    how.add_argument("--raw-below", type=int, default=0, metavar="N",
                     help="lists of up to N ids are left as they are (default 0)")  # fmt: skip
    how.add_argument(
        "--segment", type=int, metavar="N",
        help="entries of the parts of longer lists, a power of two (default 128)",
    )  # fmt: skip
    how.add_argument("--device", choices=("cpu", "gpu"), help="default: the GPU if there is one")
    how.add_argument(
        "--info", action="store_true",
        help="write nothing: check EDGES, a compressed graph, and show its table",
    )  # fmt: skip


def run(options: argparse.Namespace) -> None:
    """Compress a graph, write it, print its table; or, with --info, check and print one."""
    if options.info:
        _show(options)
        return
    if options.output is None:
        raise ValueError("OUT is missing: the file to write, such as graph.glp (or use --info)")
    from glp_rapids import compress
    from glp_rapids.compressed.options import layout_of

    numbers = options.min_interval, options.raw_below, options.segment
    layout_of(options.scheme, options.goal, *numbers)  # before a long file is read
    outputs.check_outputs({"OUT": options.output}, edge_files.inputs(options))
    if options.output.suffix.lower() in OF_TABLES:
        raise ValueError(
            f"{options.output}: OUT is named as a table, and would be a compressed graph; name it "
            "otherwise, as graph.glp. To get edges back: CompressedGraph.open(path).to_graph()"
            ".edges() in Python"
        )
    begin = time.perf_counter()
    graph = edge_files.read_graph(
        options, weight=options.weight, directed=options.directed,
        multigraph=options.multigraph or "merge",
    )  # fmt: skip
    read = time.perf_counter()
    compressed = compress(
        graph, options.scheme, for_=options.goal, min_interval=options.min_interval,
        raw_below=options.raw_below, segment=options.segment, order=options.order,
        device=graph.device, progress=sys.stderr.isatty(),
    )  # fmt: skip
    done = time.perf_counter()
    edge_files.say(f"run         read in {read - begin:.3f} s, compressed in {done - read:.3f} s")
    options.output.parent.mkdir(parents=True, exist_ok=True)
    with streams.cleaning_up():
        compressed.save(options.output)
    size = options.output.stat().st_size
    edge_files.say(f"written     {options.output} ({size:,} bytes, ids included)")
    _put_table(compressed)


def _show(options: argparse.Namespace) -> None:
    from glp_rapids import CompressedGraph

    if options.output is not None:
        raise ValueError(f"--info writes nothing: leave {options.output} out")
    others = vars(options).keys() - {"edges", "info", "device"}
    unused.refuse(options, others, "changes nothing with --info, which shows what there is")
    files.check_input(options.edges)
    graph = CompressedGraph.open(options.edges, device=options.device)
    size = options.edges.stat().st_size
    edge_files.say(f"file        {options.edges} ({size:,} bytes), whole and in order")
    edge_files.say(f"graph       {graph}")
    layout = graph.layout
    line = f"scheme {layout.scheme}, intervals from {layout.min_interval}, raw up to "
    line += f"{layout.raw_below}, parts of {layout.segment}"
    if layout.scheme == "cgr":  # the others have tables instead
        codes = [f"{kind} {code}" for kind, code in layout.codes._asdict().items()]
        line += f"; codes {', '.join(codes)}"
    edge_files.say(f"layout      {line}")
    edge_files.say(f"order       {'by id' if graph.order is None else 'its own'}")
    _put_table(graph)


def _put_table(graph: Any) -> None:
    from glp_rapids.compressed.stats import table

    print(table(graph.stats()))
