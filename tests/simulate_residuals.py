"""Run kernels of scores and cores in Numba's simulator; print how many results differ from a CPU's.

Run by test_account_scores.py in a process of its own, with NUMBA_ENABLE_CUDASIM=1.
"""

import numpy as np
import simulated_threads

from glp_rapids import as_graph
from glp_rapids.fraud import cores, residual_engines, totals
from glp_rapids.fraud.kernels import gpu_cores, gpu_pushes, gpu_residuals, gpu_traded
from glp_rapids.fraud.residual_engines import ArrayEngine, GpuEngine
from glp_rapids.fraud.system import Fixed, System
from glp_rapids.graph import subgraph

gpu_residuals.THREADS = 4  # every simulated thread is a thread of the host
gpu_pushes.THREADS, gpu_pushes.LANES, gpu_pushes.LONG = 4, 2, 8
gpu_cores.THREADS, gpu_cores.LANES = 4, 2


def graphs():
    """Give graphs with a hub, rows without entries, self-loops, and weights of every kind."""
    rng = np.random.default_rng(0)
    hub = np.zeros(90, np.int64), np.arange(90)
    some = rng.integers(0, 40, (2, 60)) * 2
    source, destination = np.hstack([hub, some])
    for dtype in (None, np.int64, np.float32):
        weights = () if dtype is None else (rng.integers(1, 9, source.size).astype(dtype),)
        yield as_graph((source, destination, *weights), vertices=range(99), device="cpu")
    yield as_graph((source[:0], destination[:0]), vertices=range(3), device="cpu")


def pushed(engine, numbers, residual):
    """Push a round, then two; return what that took, numbers, residuals."""
    numbers, residual = numbers.copy(), residual.copy()
    made = [
        engine.push(numbers, residual, allowed, residual.size, rounds)
        for allowed, rounds in ((0, 1), (1 << 44, 2))
    ]
    return np.array(made), numbers, residual


def cores_differ(random):
    """Count which differ of a largest core and cores of communities, on a graph drawn at random."""
    ends = random.integers(0, 20, (2, 45))
    graph = as_graph((*ends, random.integers(1, 9, 45)), vertices=range(22), device="cpu")
    total, group = graph.row_weights(), random.integers(0, 2, 22)
    agreed, limits = group[graph.row_indices()] == group[graph.indices], (0.25, 2)
    cores.KERNELS["cpu"] = cores._cut_on_gpu  # what is not simulated is in test_cores
    results = []
    for way in (subgraph, cores):
        left = way.largest_core(graph, total, *limits)[1]
        found = way.connected_core(graph, agreed, total, *limits)
        results.append((left, getattr(found, "community", found)))
    return sum(not np.array_equal(*pair) for pair in zip(*results, strict=True))


def main():
    simulated_threads.let_threads_sleep()
    different = compared = 0
    for graph in graphs():
        seeds = np.array([0, 2])
        system = System(graph, Fixed(seeds, np.array([], np.int64)), 0.8, 1e-6)
        numbers = system.clamped(np.random.default_rng(1).integers(0, 1 << 50, len(system.total)))
        found = GpuEngine(system).residuals(numbers)
        compared += 1
        different += not np.array_equal(found, ArrayEngine(system).residuals(numbers))
        if graph.weights is None or graph.weights.dtype.kind == "i":
            compared += 1
            different += not np.array_equal(totals._by_a_gpu(graph), graph.row_weights())
        if graph.weights is not None and graph.weights.dtype.kind == "i":
            rows = np.arange(0, graph.number_of_vertices, 2)
            given, compared = (graph, rows, rows % 3), compared + 1
            one, other = totals.traded_inside(*given), gpu_traded.traded_inside(*given)
            different += not np.array_equal(one, other)
        for residual_engines.PUSH_GPU in (1, 16) if graph.weights is None else ():
            compared += 1
            both = [pushed(engine(system), numbers, found) for engine in (GpuEngine, ArrayEngine)]
            different += not all(map(np.array_equal, *both))
    for seed in range(3):
        compared += 2
        different += cores_differ(np.random.default_rng(seed))
    print(f"{different} of {compared} differ")


if __name__ == "__main__":
    main()
