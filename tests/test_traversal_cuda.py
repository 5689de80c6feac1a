"""The kernels of searches without a GPU: they compile everywhere, and run in the simulator."""

from types import SimpleNamespace

import numpy as np
import pytest
from cases import exhaustive
from simulator import simulated

from glp_rapids import as_graph

pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")

KERNELS = {
    "search_levels", "search_near_far", "search_together", "pull_predecessors",
    "push_predecessors", "spread", "join_first", "join_all", "find_roots", "copy_rows",
    "sum_levels", "relax_layers",
}  # fmt: skip


@pytest.fixture
def compiled(monkeypatch):
    """Give a function that compiles, for a capability, whatever an engine would launch."""
    try:
        from cuda.bindings import nvrtc  # noqa: F401
    except ImportError:
        pytest.skip("NVIDIA's compilers are not installed (numba-cuda[cu13] brings them)")
    from numba import cuda, typeof
    from numba.cuda import dispatcher

    from glp_rapids.jit.cuda import compiling
    from glp_rapids.traversal.engines import (
        Lists,
        gpu,
        gpu_breadth_first,
        gpu_layers,
        order_by_level,
    )

    over = {
        module.NUMBER_OF_WORDS: module.WORDS.over
        for module in (gpu_breadth_first.gpu_bfs, gpu.gpu_sssp, gpu.gpu_together)
    }

    def run(capability, weights):
        found = {}

        def compile_instead(kernel, blocks, threads, *arguments):
            signature = tuple(typeof(argument) for argument in arguments)
            name = kernel.py_func.__name__
            options = kernel.targetoptions
            kept = {key: options[key] for key in ("launch_bounds",) if key in options}
            with compiling():
                code, _ = cuda.compile_ptx(
                    kernel.py_func, signature, device=False, cc=capability, **kept
                )
            found[name, signature] = code
            for one in arguments:  # nothing was launched that would come to an end
                if isinstance(one, np.ndarray) and one.dtype == np.int64 and one.size in over:
                    one[over[one.size]] = 1

        current = SimpleNamespace(compute_capability=capability)
        monkeypatch.setattr(dispatcher, "get_current_device", lambda: current)
        monkeypatch.setattr(gpu, "launch", compile_instead)
        monkeypatch.setattr(
            gpu_breadth_first, "prepared_together", lambda kernel, blocks, threads, known, _: (
                lambda last: compile_instead(kernel, blocks, threads, *known, last)
            ),
        )  # fmt: skip
        for module in (gpu, gpu_layers):
            monkeypatch.setattr(module, "launch_together", compile_instead)
        for module in (gpu, gpu_breadth_first, gpu_layers):
            monkeypatch.setattr(module, "multiprocessors", lambda: 1)
        ring = np.arange(40)
        frame = ring, (ring + 1) % 40, np.ones(40, weights)
        graph = as_graph(frame, directed=True, device="cpu")
        engine = gpu.GpuEngine(graph, "out")
        starts = np.zeros(1, np.int32)
        engine.bfs(starts, 5, True)
        graph.transpose()
        engine.bfs(starts, 5, True)
        engine.sssp(starts, 5, starts[:0], False)
        distance = np.zeros(40, weights)
        engine._predecessors(starts, distance, graph.weights, graph.transpose())
        engine._join_plateaus(starts, distance, graph.weights, np.zeros(40, np.int32))
        engine._together(starts, 5, True)
        engine.components()
        engine.rows_in_order(starts)
        on_ring = np.arange(40, dtype=np.int32)
        order, first_row = order_by_level(on_ring, 39)
        lists = Lists(order, graph.indptr, graph.indices, graph.weights, first_row)
        engine.count_paths(lists, starts, on_ring)
        engine._sum(
            False, True, graph.indptr, 0, graph.indices, order, first_row, (0, 40), on_ring,
            np.ones(40), np.ones(40),
        )  # fmt: skip
        engine.relax(lists, starts, 5)
        return found

    return run


# Nothing in these kernels depends on the generation, so the ends of the range do.
@pytest.mark.parametrize(
    ("capability", "weights"),
    exhaustive(((7, 5), np.int64), ((10, 0), np.float32)),
)
def test_kernels_compile(compiled, capability, weights):
    found = compiled(capability, weights)
    assert {name for name, _ in found} == KERNELS
    assert all(f".target sm_{capability[0]}{capability[1]}" in code for code in found.values())
    assert not any("fma.rn" in code for code in found.values())


def test_the_simulator_gives_the_results_of_a_cpu():
    assert simulated("simulate_traversal.py", 1) == "0 of 27 differ"
