"""Small runs of programs down every path of the kernels, for compute-sanitizer; run by hand.

    compute-sanitizer --tool memcheck --report-api-errors no \\
        --kernel-name kernel_substring=locals python tests/sanitize.py auto classic weighted

and the same with ``--tool racecheck``. The first argument is a strategy, then the programs;
``auto compressed compressed-weighted`` runs on compressed graphs; ``compressed-packed`` and
``compressed-cgr`` are parts of that, since racecheck takes minutes. ``streamed``,
``streamed-weighted`` and ``streamed-packed`` read lists in host memory; in ``hybrid`` the host's
cores evaluate some; ``warm`` and ``warm-weighted`` begin with few active vertices.
"""

import sys
from dataclasses import replace

import numpy as np
from head_start import giving

import glp_rapids
from glp_rapids import as_graph, compress
from glp_rapids.bench.programs import Reworded
from glp_rapids.outofcore import both_ends
from glp_rapids.propagation import pending, warm_start
from glp_rapids.propagation.engines import (
    fetched_rows,
    gpu_compressed,
    gpu_frontier,
    gpu_streamed,
    hybrid,
    launched,
)
from glp_rapids.propagation.kernels.gpu import hub_pieces, plan, update

FEW = {"max_iter": 3, "classes": 2, "explore": 1}


# Schemes and the entries of a part; packed ones of 128 are decoded where they are counted.
LISTS = (("packed", 128), ("packed", 32), ("cgr", 32))


def on_compressed(graph, lists, **options):
    """Run on compressed lists: as they are, and with little room and nothing decoded early."""
    for scheme, segment in lists:
        for least, early in ((1 << 23, 1 << 22), (1 << 11, 0)):
            gpu_compressed.LEAST_BYTES, gpu_compressed.BYTES_A_VERTEX = least, 0
            launched.EARLY = early
            compressed = compress(graph, scheme, segment=segment, device="cpu").to("gpu")
            found = glp_rapids.label_propagation(compressed, **FEW, **options)
            expected = glp_rapids.label_propagation(graph, **FEW, device="cpu")
            same = np.array_equal(on_host(found), on_host(expected))
            print(f"{scheme} {segment}: {'same as on a CPU' if same else 'DIFFERENT'}", flush=True)


def on_streams(graph, way="streamed plain", **options):
    """Stream lists, copied strip by strip and fetched row by row, in strips of a row or classes.

    Every strip is a launch, and racecheck takes long for every block of one.
    """
    host, gpu_streamed.multiprocessors = graph.to("cpu"), lambda: 4
    given = host
    if way == "streamed packed":
        given = compress(host, "packed", segment=128, device="cpu")
    for most in (1, gpu_streamed.MOST_OF_CLASS):
        gpu_streamed.MOST = gpu_streamed.MOST_OF_CLASS = most
        for fetched_rows.SPARSE in (0.0, np.inf):
            # all in one launch, if nothing is copied in any case
            gpu_streamed.StreamedGpuEngine._a_launch = fetched_rows.SPARSE
            for direction in ("in", "both") if graph.directed else ("in",):
                how = {**FEW, "direction": direction}
                found = glp_rapids.label_propagation(given, device="gpu", way=way, **how, **options)
                expected = glp_rapids.label_propagation(host, **how, device="cpu")
                same = found.equals(expected)
                print(f"streamed: {'same as on a CPU' if same else 'DIFFERENT'}", flush=True)


def on_both(graph, **options):
    """Let the host's cores take their share, in pieces of a row."""
    both_ends.UNIT, hybrid.COPY, hybrid.PIECES = 1, 0.0, 1 << 20
    hybrid.multiprocessors = lambda: 4
    for share in (0.3, 1.0):
        hybrid.HybridEngine._tell_host = giving(share)
        on_streams(graph, "hybrid", **options)


def on_marks(graph, **options):
    """Go on from a result that says who is settled, and from one of which nobody noted it.

    And from those less some rows, whose vertices are new; by the engine of few active vertices, and
    by the other one.
    """
    host = graph.to("cpu")
    pending.OF_ALL = warm_start.OF_ALL = warm_start.MANY = 1
    gpu_frontier.OF_ENTRIES = gpu_frontier.SPREAD = 1
    for begun in ({"max_iter": 4, "explore": 1}, {"max_iter": 1, "explore": 0}):
        found = glp_rapids.label_propagation(host, classes=2, **begun)
        for rows in (found, found[found.index % 29 > 0]):
            how = {"initial": rows, "touched": [3, -1], "max_iter": 3, "classes": 2, "tol": 0.0}
            expected = glp_rapids.label_propagation(host, **how)
            for gpu_frontier.OF_VERTICES in (1, 1 << 40):
                run = glp_rapids.label_propagation(graph, **how, **options)
                same = np.array_equal(on_host(run), on_host(expected))
                print(f"warm: {'same as on a CPU' if same else 'DIFFERENT'}", flush=True)


def as_directed(graph):
    """Return the graph with the same entries, of which each is an edge of its own."""
    return replace(graph, directed=True, _derived={})


def on_host(frame):
    """Give a frame's values on the host."""
    return (frame.to_pandas() if hasattr(frame, "to_pandas") else frame).to_numpy()


class Fails(glp_rapids.Program):
    """A program whose vertices say a label that is none, or hear one, in sweep 2."""

    def __init__(self, heard):
        self.heard = heard

    def pick_label(v, sweep, state):
        return state.labels[v] + state.far * (sweep == 2) * (1 - state.heard)

    def load_neighbor(v, u, weight, state):
        return state.labels[u] + state.far * (state.sweep == 2) * state.heard, weight

    def initial_state(self, graph):
        return {"far": np.int64(1 << 20), "heard": np.int64(self.heard)}


def rounded(graph):
    """Give a graph whole weights, of which votes have 32 bits."""
    return replace(graph, weights=(8 * graph.weights).round(), _derived={})


def failing(graph, weighted, **options):
    """Let runs fail, and compare what is said with a CPU."""
    for heard in (0, 1):
        said = []
        for place in ("gpu", "cpu"):
            try:
                glp_rapids.propagate(weighted, Fails(heard), **FEW, **options, device=place)
            except ValueError as error:
                said.append(str(error))
        same = len(said) == 2 and said[0] == said[1]
        print(f"failing: {'same as on a CPU' if same else f'DIFFERENT {said}'}", flush=True)


PROGRAMS = {
    "failing": failing,
    "classic": lambda graph, weighted, **o: glp_rapids.label_propagation(graph, **FEW, **o),
    "weighted": lambda graph, weighted, **o: glp_rapids.label_propagation(weighted, **FEW, **o),
    "whole": lambda graph, weighted, **o: glp_rapids.label_propagation(
        rounded(weighted), **FEW, **o
    ),
    "layered": lambda graph, weighted, **o: glp_rapids.layered_label_propagation(
        graph, gammas=[1], **FEW, **o
    ),
    "reworded": lambda graph, weighted, **o: glp_rapids.propagate(weighted, Reworded(), **FEW, **o),
    "speaker": lambda graph, weighted, **o: glp_rapids.speaker_listener(
        graph, max_iter=2, classes=2, **o
    ),
    "streamed": lambda graph, weighted, **o: on_streams(graph, **o),
    "streamed-weighted": lambda graph, weighted, **o: on_streams(as_directed(weighted), **o),
    "hybrid": lambda graph, weighted, **o: on_both(graph, **o),
    "streamed-packed": lambda graph, weighted, **o: on_streams(graph, "streamed packed", **o),
    "warm": lambda graph, weighted, **o: on_marks(graph, **o),
    "warm-weighted": lambda graph, weighted, **o: on_marks(weighted, **o),
    "compressed": lambda graph, weighted, **o: on_compressed(graph, LISTS, **o),
    "compressed-packed": lambda graph, weighted, **o: on_compressed(graph, LISTS[:1], **o),
    "compressed-cgr": lambda graph, weighted, **o: on_compressed(graph, LISTS[2:], **o),
    "compressed-weighted": lambda graph, weighted, **o: on_compressed(weighted, LISTS[1:2], **o),
}
# The largest degrees of the bins that warps serve, and from what degree on blocks share a row.
PATHS = {
    "as they are": None,
    "many blocks": ((0, 0, 0, 0, 0), 16),
    "warps": ((4096, 0, 0, 0, 0), 4096),
    "a block": ((0, 0, 0, 0, 0), 4096),
}


def graphs(share=1):
    """Give a graph with rows of every length, or a share of them, and the same with weights."""
    rng = np.random.default_rng(3)
    degrees = np.r_[[600, 400, 300, 200, 150], rng.integers(1, 40, 695)]
    degrees = degrees[::share]
    source = np.repeat(np.arange(degrees.size), degrees)
    destination = rng.integers(0, degrees.size, source.size)
    weights = rng.random(source.size).astype(np.float32) + 0.5
    return (
        as_graph((source, destination), device="gpu"),
        as_graph((source, destination, weights), device="gpu"),
    )


def take(path):
    """Send every row down one path of the persistent kernel."""
    degrees, hub = path
    bins = zip(degrees, plan.WARP_BINS, strict=True)
    plan.WARP_BINS = tuple(bin._replace(largest_degree=degree) for degree, bin in bins)
    plan.HUB, plan.SHARE_OF_WARP, hub_pieces.SMALL_PIECE = hub, 1, 1
    hub_pieces.PIECE = 1 if hub < 4096 else 8
    update.OF_BLOCK = hub


def main(strategy, *programs):
    """Run programs by one strategy."""
    for name, path in PATHS.items() if strategy == "auto" else [("its own", None)]:
        if path:
            take(path)
        for program in programs:
            share = 1
            # rows are evaluated as they are in memory
            if program.startswith(("streamed", "hybrid")):
                share = 6
                if name not in ("as they are", "many blocks"):
                    continue
            # new graphs: plans stay on old ones
            PROGRAMS[program](*graphs(share), strategy=strategy)
            print(f"{name}: {program} ran", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
