"""Small runs of the kernels that encode, walk and decode lists, for compute-sanitizer; by hand.

    compute-sanitizer --tool memcheck --report-api-errors no \\
        --kernel-name kernel_substring=locals python tests/sanitize_compressed.py

and the same with ``--tool racecheck``. What comes out is compared with a CPU. A scheme, or several,
may be named.
"""

import sys

import numpy as np

from glp_rapids import as_graph, compress
from glp_rapids.compressed.decode import decode, decode_rows, skim
from glp_rapids.compressed.file import verify
from glp_rapids.compressed.format.layout import SCHEMES
from glp_rapids.compressed.packed_ids import packed
from glp_rapids.compressed.symmetry import is_symmetric
from glp_rapids.device import array_module, to_host

# Parts of many lists; lists left as they are; no runs; what users get.
LAYOUTS = (
    {"segment": 8},
    {"segment": 16, "raw_below": 12, "min_interval": 2},
    {"segment": 64, "min_interval": 0},
    {},
)


def graph(device):
    """Give a graph with rows of every length, neighbours side by side and far apart."""
    rng = np.random.default_rng(3)
    degrees = np.r_[[600, 400, 300, 200, 150], rng.integers(0, 40, 695)]
    source = np.repeat(np.arange(degrees.size), degrees)
    runs = (source * 5 + np.arange(source.size)) % degrees.size
    far = rng.integers(0, degrees.size, source.size)
    return as_graph((source, np.where(source % 2 == 0, runs, far)), device=device)


def results(graph, scheme, layout):
    """Give what every function makes of a graph, by name."""
    compressed = compress(graph, scheme, **layout, device=graph.device)
    lists = compressed.lists
    assert lists.device == graph.device
    for name in ("words", "block_bytes", "tables"):
        yield name, getattr(lists, name)
    yield "offsets", skim(lists)[0]
    yield "degrees", skim(lists)[1]
    indptr, indices = decode(lists)
    yield "indptr", indptr
    yield "indices", indices
    xp = array_module(indices)
    vertices = xp.arange(graph.number_of_vertices)[::-3].astype(indices.dtype)
    starts = xp.cumsum(lists.degrees[vertices], dtype=np.int64)
    for in_order in (True, False):
        out = xp.full(int(starts[-1]) + int(lists.degrees.max()), -1, indices.dtype)
        decode_rows(lists, vertices, out, starts - lists.degrees[vertices], in_order=in_order)
        # in no order a list has its entries still, and nothing else is touched
        rows = np.split(to_host(out), to_host(starts))
        yield (
            f"some lists, in order: {in_order}",
            np.concatenate(rows if in_order else [np.sort(row) for row in rows]),
        )
    verify.check(lists)
    yield "statistics", np.array(repr(compressed.stats()))
    yield "symmetric", np.array(is_symmetric(compressed.rows("in")))
    ids = xp.cumsum(1 + xp.arange(700, dtype=np.int64) % 13)
    held = packed(ids)
    yield "ids", held.decoded()
    yield "some ids", held.at(xp.arange(0, 700, 9))
    yield "places of ids", held.find(xp.arange(0, 5000, 7))
    order = np.random.default_rng(1).permutation(graph.number_of_vertices)
    yield (
        "in an order",
        compress(graph, scheme, order=order, **layout, device=graph.device).to_graph().indices,
    )


def main(*schemes):
    """Compare what all schemes give."""
    on_cpu, on_gpu = graph("cpu"), graph("gpu")
    for scheme in schemes or SCHEMES:
        for layout in LAYOUTS:
            expected = dict(results(on_cpu, scheme, layout))
            for name, found in results(on_gpu, scheme, layout):
                same = np.array_equal(expected[name], to_host(found))
                verdict = "same as on a CPU" if same else "DIFFERENT"
                print(f"{scheme} {layout}: {name}: {verdict}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
