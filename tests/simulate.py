"""Run the kernels without warp intrinsics in Numba's simulator; print how many results differ.

Run by test_cuda.py in a process of its own, with NUMBA_ENABLE_CUDASIM=1.
"""

import warnings

import numpy as np

import glp_rapids
from glp_rapids.propagation import kernels
from glp_rapids.propagation.kernels import gpu_common

gpu_common.THREADS = 4  # every simulated thread is a thread of the host

from glp_rapids.propagation.kernels import gpu  # noqa: E402


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
    warnings.simplefilter("ignore")  # NumPy warns of overflow where 64-bit hashing wraps around
    rng = np.random.default_rng(0)
    edges = rng.integers(0, 6, 14), rng.integers(0, 6, 14), rng.random(14)
    graph = glp_rapids.as_graph(edges, device="cpu", directed=True)
    expected = list(results(graph))
    kernels.engine_of = lambda device: (gpu.GpuEngine, gpu.gpu_target())
    differing = 0
    for degree_classes in (gpu.DEGREE_CLASSES[-1:], ()):  # a block a vertex; all are hubs
        gpu.DEGREE_CLASSES = degree_classes
        again = results(graph)
        differing += sum(
            not frame.equals(other) for frame, other in zip(expected, again, strict=True)
        )
    print(f"{differing} differ")


if __name__ == "__main__":
    main()
