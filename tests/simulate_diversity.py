"""Run the kernels of ego-networks in Numba's simulator; print how many results differ.

Run by test_diversity_cuda.py in a process of its own, with NUMBA_ENABLE_CUDASIM=1. The
argument seeds the graph, if not 0.
"""

import sys
import warnings

import numpy as np
import simulated_threads
from numba.core import config

from glp_rapids import as_graph
from glp_rapids.cohesion.kernels import (
    gpu_edges,
    gpu_intersect,
    gpu_orient,
    gpu_peel,
    gpu_triangles,
)
from glp_rapids.diversity.engines import gpu as diversity
from glp_rapids.diversity.engines.cpu import CpuEgoEngine
from glp_rapids.diversity.engines.gpu import GpuEgoEngine
from glp_rapids.diversity.kernels import (
    gpu_bitmap,
    gpu_contexts,
    gpu_ego_rows,
    gpu_hubs,
    gpu_lazy,
    gpu_members,
)

# Every simulated thread is a thread of the host.
gpu_contexts.THREADS = gpu_bitmap.THREADS = gpu_ego_rows.THREADS = 4
gpu_intersect.LIGHT, gpu_intersect.HEAVY, gpu_intersect.LARGEST_LIGHT = (4, 4), (8, 1), 3
gpu_peel.THREADS, gpu_peel.LANES = 4, 2
gpu_lazy.THREADS = 4
gpu_hubs.THREADS, gpu_hubs.PARTS, gpu_hubs.WORDS, gpu_hubs.NUMBER = 4, 2, 2, 2
gpu_hubs.LEAST_KNOWN, diversity.MOST_WITHOUT_HUBS = 0, 2
gpu_lazy.LANES = gpu_members.LANES = 2
# That every way of looking at an item is taken: alone, together, and counted off by whole blocks.
gpu_lazy.LIMITS = gpu_lazy.Limits(1, 2, 3)
gpu_edges.THREADS, gpu_edges.STEPS = 4, 3
gpu_orient.THREADS, gpu_orient.STEPS = 4, 8
gpu_triangles.LIGHT, gpu_triangles.HEAVY = (4, 4, 8), (4, 4, 4)  # rows above 2 are cut
gpu_triangles.LARGEST_LIGHT, gpu_triangles.CHUNK = 2, 4
WITH_HUBS, NO_HUBS = ((2, 3, 1), (4, 5, 1)), ((4, 64, 1),)
MODELS = "component", "core", "truss"


def graphs():
    rng = np.random.default_rng(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
    pairs = [(i, j) for i in range(5) for j in range(i)] + [(5, 0), (5, 1), (6, 5), (6, 7)]
    pairs = np.vstack([pairs, rng.integers(0, 8, (3, 2))])
    yield as_graph(tuple(pairs.T), vertices=[9], device="cpu")


def simple(graph):
    rows = np.repeat(np.arange(graph.number_of_vertices), graph.degree)
    proper = rows != graph.indices
    indptr = np.r_[0, np.cumsum(np.bincount(rows[proper], minlength=graph.number_of_vertices))]
    return indptr.astype(np.int64), graph.indices[proper]


def results(engine, vertices, whole):
    for model in MODELS:
        if whole or model != "component":
            yield f"scores {model}", engine.scores(vertices, 3, model)
            yield f"members {model}", engine.members(vertices, 2, model)
        yield f"every {model}", np.concatenate(engine.every_score(vertices, model))
    if not whole:
        return
    yield "rows", np.concatenate(engine.ego_rows(vertices))
    yield "common", engine.common_neighbors()
    yield "triangles", engine.triangle_counts()
    yield "core", engine.core_number()
    yield "truss", engine.trussness()
    yield "3-core", engine.core_number(3) >= 3
    yield "4-truss", engine.trussness(4) >= 4
    yield "edges", np.concatenate(engine.edges(place=True))
    truss, core = engine.trussness(4, once=True), engine.core_number()
    yield "edges of the 4-truss", np.concatenate(engine.edges(4, entries=truss, place=True))
    yield "edges of the 2-core", np.concatenate(engine.edges(2, ends=core)[:2])
    yield "edges of the 99-core", np.concatenate(engine.edges(99, ends=core)[:2])


def main():
    assert config.ENABLE_CUDASIM, "run this with NUMBA_ENABLE_CUDASIM=1"
    simulated_threads.let_threads_sleep()
    warnings.simplefilter("ignore")  # NumPy warns where 32-bit words wrap around
    differing, compared = [], 0
    for number, graph in enumerate(graphs()):
        indptr, indices = simple(graph)
        vertices = np.arange(indptr.size - 1)[::-1].copy()
        expected = dict(results(CpuEgoEngine(indptr, indices), vertices, True))
        for sizes in (WITH_HUBS, NO_HUBS):
            gpu_bitmap.SIZES = sizes
            engine = GpuEgoEngine(indptr, indices, memory_limit=1 << 14)
            for name, found in results(engine, vertices, sizes == WITH_HUBS):
                compared += 1
                if not np.array_equal(expected[name], found):
                    differing.append(f"graph {number} {len(sizes)} sizes {name};")
    print(*differing, f"{len(differing)} of {compared} differ")


if __name__ == "__main__":
    main()
