"""A graph of billions of edges on one GPU: which fit, and one that is made, compressed and run.

The first table is arithmetic: windows of TaoBao's stream as GLP (SIGMOD 2021) and CGLP+ (TKDE 2024)
ran them, the two ends as published, those between them interpolated. Raw: the entries, two per
undirected edge, 4 bytes each (8 where ids need more), and 56 bytes a vertex. Compressed: so many
bits an entry and a tenth, and 60 bytes a vertex. GB are 10**9 bytes.

The second is measured. The graph is made on its device, row by row, compressed, and its plain form
dropped; "peak GB" is all that CuPy held at once, ids (8 bytes a vertex) included. The third:
label propagation on the compressed graph, synchronous sweeps that leave nothing out and a run with
the defaults; "ms" is a median sweep but the first, "peak MB" without ids. Kernels are compiled
before, on a small graph. With ``--pieces`` plain rows are made, twice, and compressed piece by
piece, so that graphs fit whose plain form does not; ``--share 61`` gives 23 entries a vertex, as
TaoBao's largest window has.
"""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from statistics import median
from typing import Any

import numpy as np

from glp_rapids.bench import memory, subjects, timing
from glp_rapids.bench.large_graph import SHARE, large_graph, rows_of_large_graph
from glp_rapids.bench.table import Rows, Tables
from glp_rapids.compressed.format.layout import BLOCK
from glp_rapids.compressed.graph import CompressedGraph
from glp_rapids.compressed.options import layout_of
from glp_rapids.compressed.pieces import Piece, encode_pieces
from glp_rapids.compression import compress
from glp_rapids.device import DeviceName, array_module, choose
from glp_rapids.graph.vertex_ids import VertexIds
from glp_rapids.propagation.options import MAX_ITER, Options
from glp_rapids.propagation.run import Outcome
from glp_rapids.propagation.run import run as propagate
from glp_rapids.propagation.variants.classic import Classic

# Vertices and undirected edges of the smallest and the largest window.
SMALLEST, LARGEST = (460e6, 1.7e9), (1010e6, 11.6e9)
SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)  # of the way from one to the other
BITS = (4, 8, 12, 16, 20)  # an entry
SCHEMES = ("packed", "cgr", "entropy")
SMALL_BITS = 10  # of the graph on which kernels are compiled


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add this bench's options."""
    parser.add_argument("--bits", type=int, default=29,
                        help="2**BITS vertices, 16.6 entries each (default 29; 0: the first table "
                        "only)")  # fmt: skip
    parser.add_argument("--scheme", choices=SCHEMES, default=SCHEMES[0])
    parser.add_argument("--sweeps", type=int, default=3, help="synchronous ones (default 3)")
    parser.add_argument("--max-iter", type=int, default=MAX_ITER,
                        help="sweeps with the defaults; 0: none")  # fmt: skip
    parser.add_argument("--memory", type=float, default=139.0, metavar="GB",
                        help="of the GPU in the first table (default 139)")  # fmt: skip
    parser.add_argument("--pieces", type=int, default=1,
                        help="in which the graph is made and compressed (default 1)")  # fmt: skip
    parser.add_argument("--share", type=int, default=SHARE,
                        help="of 256 pairs of most blocks, those that are neighbours, with "
                        f"--pieces (default {SHARE})")  # fmt: skip
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", choices=("cpu", "gpu"), default=None)


def run(options: argparse.Namespace) -> Tables:
    """Return the tables."""
    tables: Tables = {f"What fits into {options.memory:g} GB": what_fits(options.memory)}
    if options.bits == 0:
        return tables
    device = choose(options.device)
    for bits in dict.fromkeys((min(SMALL_BITS, options.bits), options.bits)):
        make = made if options.pieces == 1 else made_in_pieces
        compressed, row = make(bits, options, device)
        rows = propagated(compressed, options)
        del compressed
    name = f"2**{options.bits} vertices, {options.scheme}, {device}"
    return tables | {f"Made and compressed, {name}": [row], f"Label propagation, {name}": rows}


def what_fits(gigabytes: float) -> Rows:
    """Return a row for every window: its size raw and compressed, and what fits."""
    rows = []
    for share in SHARES:
        vertices, edges = (
            round(low + share * (high - low)) for low, high in zip(SMALLEST, LARGEST, strict=True)
        )
        entries = 2 * edges
        plain = memory.bound(vertices, entries, weighted=False)
        if vertices > np.iinfo(np.int32).max:
            plain += 4 * entries
        sizes = {bits: memory.compressed_bound(bits / 8 * entries, vertices) for bits in BITS}
        left = gigabytes * 1e9 - memory.compressed_bound(0, vertices)
        fits = [str(bits) for bits, size in sizes.items() if size <= gigabytes * 1e9]
        row = {"window": "as published" if share in (0, 1) else "interpolated",
               "M vertices": vertices / 1e6, "G edges": edges / 1e9, "raw GB": plain / 1e9,
               "raw fits": plain <= gigabytes * 1e9}  # fmt: skip
        row |= {f"{bits} bits: GB": size / 1e9 for bits, size in sizes.items()}
        row["fits with"] = ", ".join(fits) or "none of them"
        rows.append(row | {"fits up to, bits": max(8 * left / memory.SLACK / entries, 0.0)})
    return rows


def made(
    bits: int, options: argparse.Namespace, device: DeviceName
) -> tuple[CompressedGraph, dict[str, Any]]:
    """Make a graph and compress it; nothing of its plain form is left afterwards."""
    with _peak(device) as water:
        make = partial(large_graph, bits, options.seed, device)
        making_ms, graph = timing.clocked(make, 0, device)
        plain = graph.indptr.nbytes + graph.indices.nbytes
        encode = partial(compress, graph, options.scheme)
        encoding_ms, compressed = timing.clocked(encode, 0, device)
        del graph, encode
    _free(device)
    return compressed, _making(compressed, making_ms, plain, encoding_ms, water)


def made_in_pieces(
    bits: int, options: argparse.Namespace, device: DeviceName
) -> tuple[CompressedGraph, dict[str, Any]]:
    """Make and compress a graph piece by piece; its plain form is never there."""
    vertices, making = 1 << bits, []
    cuts = np.linspace(0, vertices // BLOCK, options.pieces + 1).astype(int) * BLOCK

    def pieces() -> Iterator[Piece]:
        for first, last in pairwise(cuts.tolist()):
            make = partial(
                rows_of_large_graph, bits, options.seed, device, first, last, options.share
            )
            ms, rows = timing.clocked(make, 0, device)
            making.append((ms, rows.indptr.nbytes + rows.indices.nbytes))
            yield Piece(first, rows)
            del rows
            _free(device)

    layout = layout_of(options.scheme, "speed", None, 0, None)
    with _peak(device) as water:
        both_ms, lists = timing.clocked(
            partial(encode_pieces, pieces, vertices, layout), 0, device
        )  # fmt: skip
    ids = VertexIds.numbers(vertices, device)
    compressed = CompressedGraph(lists, None, False, ids, None)
    making_ms, plain = (sum(of_all) for of_all in zip(*making, strict=True))
    # made twice
    return compressed, _making(compressed, making_ms, plain / 2, both_ms - making_ms, water)


def _making(
    compressed: CompressedGraph, making_ms: float, plain: float, encoding_ms: float,
    water: memory.HighWater | None,
) -> dict[str, Any]:  # fmt: skip
    """Return the row of a graph that was made and compressed; ``plain``: bytes before."""
    entries = compressed.number_of_edges
    row = {"vertices": compressed.number_of_vertices, "edges": entries // 2, "entries": entries,
           "make s": making_ms / 1e3, "plain GB": plain / 1e9, "encode s": encoding_ms / 1e3,
           "G entries/s": entries / encoding_ms / 1e6,
           "bits an entry": 8 * compressed.lists.nbytes / entries,
           "compressed GB": compressed.nbytes / 1e9}  # fmt: skip
    return row | ({} if water is None else {"peak GB": water.peak / 1e9})


def propagated(compressed: CompressedGraph, options: argparse.Namespace) -> Rows:
    """Return a row for synchronous sweeps, and one for the defaults if there is room for them."""
    runs = {
        "synchronous, nothing skipped": subjects.synchronous(options.sweeps, skip_inactive=False),
        "defaults": {"max_iter": options.max_iter},
    }
    rows = []
    for name, settings in runs.items():
        if settings["max_iter"] == 0:
            continue
        try:
            rows.append({"run": name} | _propagation(compressed, settings))
        except MemoryError as error:  # CuPy's is one
            rows.append({"run": f"{name}: does not fit ({error})"})
    return rows


def _propagation(compressed: CompressedGraph, settings: dict[str, Any]) -> dict[str, Any]:
    """Run once, watched; labels stay where they are, and are counted there."""
    watch = timing.Watch(compressed.device)

    def call(graph: CompressedGraph) -> Outcome:
        return propagate(graph, Classic(), Options(**settings, progress=watch))

    if compressed.device == "gpu":
        outcome, used = memory.of_run(compressed, call)
    else:
        outcome, used = call(memory.bare(compressed)), {}
    labels, report = outcome.labels, outcome.report
    del outcome  # with it all else that the run made
    later = watch.milliseconds()[1:]
    milliseconds = median(later) if later else 1e3 * report["seconds"]
    return {"sweeps": report["sweeps"], "converged": report["converged"], "ms": milliseconds,
            "G entries/s": compressed.number_of_edges / milliseconds / 1e6,
            "run s": report["seconds"],
            "communities": int(array_module(labels).unique(labels).size)} | used  # fmt: skip


def _peak(device: DeviceName) -> contextlib.AbstractContextManager[memory.HighWater | None]:
    _free(device)
    return contextlib.nullcontext() if device == "cpu" else memory.peak_memory()


def _free(device: DeviceName) -> None:
    if device == "gpu":
        memory.free_memory()
