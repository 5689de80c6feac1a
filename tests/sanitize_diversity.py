"""Small runs of every kernel of ego-networks, for compute-sanitizer; run by hand.

    compute-sanitizer --tool memcheck --report-api-errors no \\
        --kernel-name kernel_substring=locals python tests/sanitize_diversity.py

and the same with ``--tool racecheck``. What comes out is compared with a CPU.
"""

import numpy as np

from glp_rapids import as_graph
from glp_rapids.diversity.engines import engine_of
from glp_rapids.diversity.kernels import gpu_bitmap, gpu_hubs, gpu_lazy
from glp_rapids.graph.simple import simple

# Everybody in a warp's bits, in a block's, in the large ones' CSR, and each where it belongs.
# The last time lists are for whom a few candidates are not enough, and rows for whole blocks; and
# hubs are few, or all.
FEW = gpu_lazy.Limits(1, 2, 3)
ANY, NO_HUBS = 0.0, float("inf")
PATHS = {
    "as it is": (gpu_bitmap.SIZES, gpu_lazy.LIMITS, gpu_hubs.NUMBER, gpu_hubs.LEAST_KNOWN),
    "blocks": (((256, 512, 4),), gpu_lazy.LIMITS, gpu_hubs.NUMBER, NO_HUBS),
    "large": ((), gpu_lazy.LIMITS, gpu_hubs.NUMBER, ANY),
    "large, few alone": ((), FEW, 2, ANY),
    "large, few alone, no hubs": ((), FEW, 2, NO_HUBS),
}


def graph():
    rng = np.random.default_rng(3)
    hub = [(0, i) for i in range(1, 600)] + [(1, i) for i in range(2, 300)]
    hub += [(2, i) for i in range(3, 100)]
    pairs = np.vstack([hub, rng.integers(0, 640, (2500, 2))])
    return as_graph(tuple(pairs.T), device="gpu")


def results(engine, vertices):
    for model in ("component", "core", "truss"):
        yield f"scores, {model}", engine.scores(vertices, 3, model)
        yield f"members, {model}", engine.members(vertices, 2, model)
        yield f"every score, {model}", engine.every_score(vertices, model)[1]
    yield "ego rows", engine.ego_rows(vertices)[1]
    yield "common neighbours", engine.common_neighbors()
    yield "triangles", engine.triangle_counts()
    yield "core numbers", engine.core_number()
    yield "trussness", engine.trussness()
    yield "edges", engine.edges()[1]
    yield "edges of the 4-core", engine.edges(4, ends=engine.core_number())[1]
    truss = engine.trussness(4, once=True)
    yield "edges of the 4-truss", engine.edges(4, entries=truss, place=True)[2]


def main():
    import cupy

    on_gpu = simple(graph(), False)
    vertices = cupy.arange(on_gpu.number_of_vertices)
    on_cpu = type(on_gpu)(on_gpu.indptr.get(), on_gpu.indices.get(), None)
    expected = dict(results(engine_of(on_cpu, "cpu"), vertices.get()))
    for path, (sizes, limits, hubs, least) in PATHS.items():
        gpu_bitmap.SIZES, gpu_lazy.LIMITS = sizes, limits
        gpu_hubs.NUMBER, gpu_hubs.LEAST_KNOWN = hubs, least
        for name, found in results(engine_of(on_gpu, "gpu"), vertices):
            same = np.array_equal(expected[name], found.get())
            print(f"{path}: {name}: {'same as on a CPU' if same else 'DIFFERENT'}")


if __name__ == "__main__":
    main()
