"""Run the kernels without warp intrinsics in Numba's simulator; print how many results differ.

Run by test_cuda.py in a process of its own, with NUMBA_ENABLE_CUDASIM=1. The arguments name
strategies, if not all four.
"""

import sys
import warnings
from dataclasses import replace
from functools import partial

import numpy as np
import simulated_threads

import glp_rapids
from glp_rapids.propagation import engines
from glp_rapids.propagation.baselines import votes

votes.THREADS = 4  # every simulated thread is a thread of the host

from glp_rapids.propagation.baselines import engine as baselines  # noqa: E402
from glp_rapids.propagation.baselines import global_table, segmented_sort  # noqa: E402

global_table.LARGEST_BATCH, segmented_sort.LARGEST_BATCH = 16, 5  # several batches a class

STRATEGIES = {
    "shared": (baselines.BLOCK_A_VERTEX,),
    "hubs": (baselines.HUBS,),
    "global": baselines.STRATEGIES["global"][1:],  # the first is for warps
    "sort": (
        replace(baselines.STRATEGIES["sort"][0], largest_degree=2),
        baselines.STRATEGIES["sort"][1],
    ),
}


class Scaled(glp_rapids.Program):
    def load_neighbor(v, u, weight, state):
        return state.labels[u], weight * state.trust[u]

    def initial_state(self, graph):
        return {"trust": 1.0 + np.arange(graph.number_of_vertices) % 3}


def results(graph):
    yield glp_rapids.label_propagation(graph, max_iter=3, explore=1, classes=2)
    yield glp_rapids.layered_label_propagation(graph, gammas=[2], max_iter=1, classes=1)
    yield glp_rapids.speaker_listener(graph, max_iter=1, classes=1)
    yield glp_rapids.propagate(graph, Scaled(), max_iter=1, classes=1)


def main():
    simulated_threads.let_threads_sleep()
    warnings.simplefilter("ignore")  # NumPy warns of overflow where 64-bit hashing wraps around
    rng = np.random.default_rng(0)
    edges = rng.integers(0, 6, 14), rng.integers(0, 6, 14), rng.random(14)
    graph = glp_rapids.as_graph(edges, device="cpu", directed=True)
    expected = list(results(graph))
    differing = []
    for name in sys.argv[1:] or STRATEGIES:
        engine = partial(baselines.BaselineEngine, STRATEGIES[name]), baselines.gpu_target()
        engines.engine_of = lambda *_, engine=engine: engine
        for run, (frame, other) in enumerate(zip(expected, results(graph), strict=True)):
            if not frame.equals(other):
                differing.append(f"{name} {run}")
    print(*differing, len(differing), "differ")


if __name__ == "__main__":
    main()
