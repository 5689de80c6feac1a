"""Run the kernels of searches in Numba's simulator; print how many results differ from a CPU's.

Run by test_traversal_cuda.py in a process of its own, with NUMBA_ENABLE_CUDASIM=1. The
argument says how many graphs.
"""

import sys
import warnings
from dataclasses import replace

import numpy as np
import simulated_threads
from graphs import edges, path, random_pairs
from numba.core import config

from glp_rapids import as_graph
from glp_rapids.traversal.engines import Lists, gpu, gpu_layers, gpu_pace, order_by_level
from glp_rapids.traversal.engines.cpu import CpuEngine
from glp_rapids.traversal.kernels import (
    gpu_components,
    gpu_frontier,
    gpu_levels,
    gpu_path_sums,
    gpu_piles,
    gpu_plateaus,
    gpu_predecessors,
    gpu_relax,
    gpu_rows,
    gpu_together,
)

# Every simulated thread is a thread of the host.
gpu_frontier.THREADS = gpu_predecessors.THREADS = gpu_components.THREADS = 4
gpu_rows.THREADS = gpu_path_sums.THREADS = gpu_relax.THREADS = 4
gpu_rows.WARP, gpu_rows.ROW_COST = 2, 3
gpu_path_sums.WARP, gpu_path_sums.SHORT, gpu_path_sums.MEDIUM = 2, 1, 3
gpu_layers.COMBINED = 6
gpu_frontier.LANES = gpu_levels.WARP = gpu_predecessors.WARP = gpu_together.WARP = 2
gpu_frontier.STAGED, gpu_frontier.LONGEST_STAGED = 8, 4
gpu_levels.LONG, gpu_levels.LONG_QUEUED, gpu_levels.LONGEST, gpu_levels.QUEUED = 3, 2, 5, 4
gpu_piles.LONG, gpu_piles.LONG_QUEUED, gpu_piles.LONGEST, gpu_piles.QUEUED = 3, 2, 5, 4
gpu_plateaus.THREADS, gpu_plateaus.LANES = 4, 2
gpu_predecessors.LONG = 4
gpu_pace.CHUNK = gpu_pace.NEAR_CHUNK = 4
gpu_levels.SCANNED = gpu_predecessors.SCANNED = gpu_together.SCANNED = gpu_together.LOOK = 2

# Levels by one block, in equal parts, from the other side, and in turns.
WAYS = {"queue": (4, (0, 0)), "parts": (0, (0, 0)), "pull": (4, (99, 99)), "turns": (4, (3, 16))}
# Small piles, wide ones, and steps of every size.
NEAR = {"queue": (4, 8.0), "wide": (0, 8.0), "one step": (4, 1e9), "small steps": (2, 0.1)}
TYPES = (np.int64, np.float32, np.float64)


def weighted(graph, number):
    """The graph with weights of some type, many of which are 0 or add nothing to others."""
    dtype = TYPES[number % 3]
    choice = np.array([0, 1, 3] if dtype == np.int64 else [0, 1, 3, 1e-30], dtype)
    ends = graph.row_indices() + graph.indices
    return replace(graph, weights=choice[ends % choice.size], _derived={})


def graphs(number):
    rng = np.random.default_rng(0)
    yield edges([*path(9), *random_pairs(12, 18, 1)], vertices=range(14))
    for seed in range(1, number):
        pairs = rng.integers(0, 12, (rng.integers(5, 30), 2)).tolist()
        yield edges(pairs, directed=seed % 2 == 1)


def results(engine, graph, starts):
    """Every search in every way; a CPU has one."""
    for way, (gpu_pace.MOST_CHUNK, gpu_pace.PULL) in WAYS.items():
        for depth in (1 << 40, 2):
            yield f"bfs {way} {depth}", engine(graph, "out").bfs(starts, depth, True)
    for gpu_pace.PULL_TOGETHER in (0, 4, 99):
        for distance, summary in engine(graph, "out").bfs_of_each(starts, 1 << 40, True):
            yield f"together {gpu_pace.PULL_TOGETHER}", (distance, summary)
    for way, (gpu_pace.MOST_CHUNK, gpu_pace.STEP) in NEAR.items():
        limits = (100, starts[:0]), (3, starts[:0]), (100, starts[:1] + 5)
        for cutoff, ends in limits if way == "queue" else limits[:1]:
            found = engine(graph, "out").sssp(starts, cutoff, ends, True)
            yield f"sssp {way} {cutoff} {ends}", found[:2]
    yield from of_layers(engine(graph, "out"), graph, starts)
    yield "components", (engine(graph, "out").components(),)
    yield "rows", engine(graph, "out").rows_in_order(starts)


def of_layers(engine, graph, starts):
    """Work on layers: all there, or streamed in strips of two sizes."""
    level, deepest = engine.bfs(starts, 1 << 40, False)[::2]
    order, first_row = order_by_level(level, deepest)
    rows = engine.rows_in_order(order)
    longest, n = max(np.diff(rows[0]).max(), 1), graph.number_of_vertices
    for room in (0, 2 * longest, 5 * longest):
        limit = (4 + rows[2].itemsize) * room + gpu_layers.OF_RELAXING * n if room else None
        lists = Lists(order, *rows, first_row, None if limit is None else int(limit))
        if not room:
            yield "paths", (engine.count_paths(lists, starts, level),)
        for cutoff in (100, 3):
            distance = engine.relax(lists, starts, cutoff).distance
            yield f"relaxed {room} {cutoff}", (distance, engine.predecessors(starts, distance))
    yield "dependencies", (engine.dependencies(starts, len(starts) > 1),)


def main():
    assert config.ENABLE_CUDASIM, "run this with NUMBA_ENABLE_CUDASIM=1"
    simulated_threads.let_threads_sleep()
    warnings.simplefilter("ignore")
    differing, compared = [], 0
    for number, given in enumerate(graphs(int(sys.argv[1]))):
        graph = weighted(as_graph(**given, device="cpu"), number)
        starts = np.arange(1 + number % 3, dtype=np.int32)
        if number % 4 == 3:
            graph.transpose()
        gpu_pace.LEVELS_A_LAUNCH = 2 if number % 2 else 1 << 16
        both = results(CpuEngine, graph, starts), results(gpu.GpuEngine, graph, starts)
        for (name, expected), (_, found) in zip(*both, strict=True):
            compared += 1
            if not all(map(np.array_equal, expected, found)):
                differing.append(f"graph {number} {name};")
    print(*differing, f"{len(differing)} of {compared} differ")


if __name__ == "__main__":
    main()
