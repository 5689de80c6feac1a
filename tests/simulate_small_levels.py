"""Do small levels of multilevel label propagation together in Numba's simulator; run by hand.

With NUMBA_ENABLE_CUDASIM=1; the arguments say how many graphs, and how many blocks run at once.
However many levels a launch does, and however soon it runs out of room, what comes out is what a
CPU finds, its report included. With one graph and two blocks it takes two minutes.
"""

import sys
import warnings

import numpy as np
import simulate_blocks
import simulate_multilevel  # sizes for few threads
from numba.core import config

from glp_rapids import as_graph
from glp_rapids.communities import levels, objective
from glp_rapids.communities.engines import gpu, merging, small_levels
from glp_rapids.communities.kernels import gpu_small_levels

# Which levels are done together, of at most so many vertices and entries; how many in a launch;
# and how many times the room of the first there is.
WAYS = {
    "together": (1 << 20, 32, 3),
    "one at a time": (1 << 20, 2, 3),
    "small ones": (50, 32, 3),
    "small ones, two at a time": (90, 3, 3),
    "little room": (1 << 20, 32, 2),
    "none": (0, 32, 3),
}
RUNS = (
    ("modularity", 1.0, True, 100, 2), ("modularity", 3.0, False, 100, 2),
    ("cpm", 0.3, True, 2, 2), ("modularity", 1.0, True, 1, 1), ("modularity", 0.4, False, 2, 2),
    ("modularity", 0.3, True, 2, 2),
)  # fmt: skip


def graphs(number):
    rng = np.random.default_rng(number)
    for count in range(number):
        size = 6 + 5 * count
        ring = np.arange(size)
        pairs = np.vstack([
            np.c_[ring, (ring + 1) % size], rng.integers(0, size, (size, 2)),
            np.c_[np.zeros(size // 2, int), ring[: size // 2]], [(size + 2, size + 2)],
        ])  # fmt: skip
        weights = rng.integers(0, 2 ** rng.integers(1, 41), len(pairs))
        yield as_graph(tuple(pairs.T), device="cpu")
        yield as_graph((*pairs.T, weights), device="cpu")


def result(graph, device, name, resolution, refine, most, iterations):
    words = graph.id_words().of(np.arange(graph.number_of_vertices)).view(np.uint64)
    aim = objective.OBJECTIVES[name](graph, words, resolution)
    options = levels.Options(refine, most, iterations, 0.0, 3, hierarchy=True)
    found = levels.run(aim, device, options, None)
    told = [{key: value for key, value in level.items() if key != "seconds"}
            for level in found.levels]  # fmt: skip
    return found.value, found.quality, told, [part.tolist() for part in found.hierarchy]


def let_run(blocks):
    """Let launches have so many blocks, where there is room for what each counts."""

    def launch_together(kernel, wanted, threads, *arguments):
        kernel[min(blocks, int(wanted)), threads](*arguments)

    simulate_blocks.let_blocks_run_together()
    for engine in (gpu, merging, small_levels):
        engine.launch_together = launch_together
    gpu.ITEMS_A_BLOCK = merging.ITEMS_A_BLOCK = 4
    gpu.AHEAD = 40
    small_levels.ITEMS_A_BLOCK = 8
    assert simulate_multilevel.gpu_classes.THREADS == 2


def main():
    assert config.ENABLE_CUDASIM, "run this with NUMBA_ENABLE_CUDASIM=1"
    blocks = int(sys.argv[2])
    let_run(blocks)
    warnings.simplefilter("ignore")  # NumPy warns where 32-bit words wrap around
    differing, compared = [], 0
    for which, graph in enumerate(graphs(int(sys.argv[1]))):
        for run in RUNS:
            expected = result(graph, "cpu", *run)
            for way, choice in WAYS.items():
                small_levels.LARGEST, gpu_small_levels.MOST_LEVELS, small_levels.ROOM = choice
                records = choice[1] * gpu_small_levels.A_RECORD
                gpu_small_levels.SCRATCH = gpu_small_levels.RECORDS + records
                compared += 1
                if result(graph, "gpu", *run) != expected:
                    differing.append((which, run, way))
    print(f"{len(differing)} of {compared} differ", *differing[:20], sep="\n")


if __name__ == "__main__":
    main()
