"""Run the kernels of multilevel label propagation in Numba's simulator; print how many differ.

Run by test_multilevel_cuda.py in a process of its own, with NUMBA_ENABLE_CUDASIM=1. The argument
says how many graphs.
"""

import sys
import warnings

import numpy as np
import simulated_threads
from numba.core import config

from glp_rapids import as_graph
from glp_rapids.communities import contraction, levels, objective
from glp_rapids.communities.engines import gpu, merging, small_levels
from glp_rapids.communities.kernels import (
    gpu_best,
    gpu_classes,
    gpu_merging,
    gpu_moving,
    gpu_numbering,
    gpu_pair_cache,
    gpu_refining,
    gpu_uniting,
    gpu_writing,
)
from glp_rapids.graph.build import csr_of_pairs
from glp_rapids.jit import warps

# Every simulated thread is a thread of the host.
gpu_classes.THREADS, gpu_classes.SLOTS, gpu_best.PROBES = 2, 8, 2
gpu_classes.WARP = warps.SIMULATED_WARP
gpu_classes.LARGEST, gpu_classes.LANES = (1, 2), (1, 1, 2)
gpu.LENGTHS = small_levels.LENGTHS = gpu_classes.Lengths(np.int64(3), np.int64(4), np.int64(3))
gpu_moving.WAKING_LANES = gpu_refining.LANES = 2
gpu_merging.THREADS, gpu_writing.EACH = 4, 2
gpu_pair_cache.SLOTS = 4
gpu_numbering.THREADS, gpu_uniting.THREADS, gpu_uniting.EACH = 4, 4, 2

# Levels that are done together, by vertices and entries: all, those above a first one, which is
# contracted ahead, or none.
WAYS = 1 << 20, 50, 0
RUNS = (
    ("modularity", 1.0, True, 2), ("cpm", 0.3, False, 1), ("modularity", 2.5, True, 1)
)  # fmt: skip


def graphs(number):
    rng = np.random.default_rng(number)
    clique = [(i, j) for i in range(6) for j in range(i)]
    for size in range(number):
        pairs = np.vstack([clique, rng.integers(0, 9 + size, (10 + size, 2))])
        weights = rng.integers(0, 2**40, len(pairs))
        yield as_graph(tuple(pairs.T), device="cpu")
        yield as_graph((*pairs.T, weights), device="cpu")


def results(graph, device, runs):
    words = graph.id_words().of(np.arange(graph.number_of_vertices)).view(np.uint64)
    for name, resolution, refine, most in runs:
        aim = objective.OBJECTIVES[name](graph, words, resolution)
        options = levels.Options(refine, 3, most, 1e-5, 3, hierarchy=True)
        found = levels.run(aim, device, options, None)
        yield found.value, found.quality, *(part.tolist() for part in found.hierarchy)


def quotients(graph, pairs):
    labels = (np.arange(graph.number_of_vertices) * 7 % 3).astype(graph.index_dtype)
    triples = pairs(graph.rows("out"), labels, 3, graph.directed)
    arrays = csr_of_pairs(*triples, 3, symmetric=False, multigraph="keep")
    return [array.tolist() for array in arrays]


def main():
    assert config.ENABLE_CUDASIM, "run this with NUMBA_ENABLE_CUDASIM=1"
    simulated_threads.let_threads_sleep()
    warnings.simplefilter("ignore")  # NumPy warns where 32-bit words wrap around
    differing = compared = 0
    number = int(sys.argv[1])
    for graph in graphs(number):
        runs, ways = RUNS, WAYS
        if number == 1:  # by default each kernel runs, and each kind of weights, but not with each
            runs, ways = RUNS[-1:], WAYS[:1] if graph.weights is None else WAYS[1:]
        expected = list(results(graph, "cpu", runs))
        for small_levels.LARGEST in ways:
            gpu.AHEAD = 1 << 20 if small_levels.LARGEST else -1
            found = list(results(graph, "gpu", runs))
            compared += len(expected)
            differing += sum(one != other for one, other in zip(found, expected, strict=True))
        compared += 1
        of_host, of_device = contraction.PAIRS["cpu"], merging.quotient
        differing += quotients(graph, of_host) != quotients(graph, of_device)
    print(f"{differing} of {compared} differ")


if __name__ == "__main__":
    main()
