"""The kernels of multilevel label propagation without a GPU: they compile, and run simulated."""

from types import SimpleNamespace

import numpy as np
import pytest
from simulator import simulated

pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")

# rows are added for a level and for a caller
KERNELS = ["add_rows", "add_rows", "find_roots", "move_vertices", "number_labels", "refine_parts",
           "sum_terms", "unite_inside", "write_slots"]  # fmt: skip


def compiled(monkeypatch, capability, index_type, weight_type, *, together=False):
    """Compile whatever the engine would launch; give the PTX and its name by kernel.

    ``weight_type``: None, int32 of a level of few entries without weights, or int64.
    ``together``: for levels that are done in one launch, else for one at a time.
    """
    try:
        from cuda.bindings import nvrtc  # noqa: F401
    except ImportError:
        pytest.skip("NVIDIA's compilers are not installed (numba-cuda[cu13] brings them)")
    from numba import cuda, typeof
    from numba.cuda import dispatcher

    from glp_rapids.cli.ship_multilevel import any_level, first_level, fused_levels, run_on_host
    from glp_rapids.jit.cuda import compiling

    ptx = {}

    def compile_instead(kernel, blocks, threads, *arguments):
        signature = tuple(typeof(argument) for argument in arguments)
        if kernel not in ptx:
            bounds = {
                option: value
                for option, value in kernel.targetoptions.items()
                if option == "launch_bounds"
            }
            with compiling():
                code, _ = cuda.compile_ptx(
                    kernel.py_func, signature, device=False, cc=capability, **bounds
                )
            ptx[kernel] = kernel.py_func.__name__, code

    current = SimpleNamespace(compute_capability=capability)
    monkeypatch.setattr(dispatcher, "get_current_device", lambda: current)
    stages = (fused_levels,) if together else (first_level, any_level, rows_of_a_caller)
    run_on_host(stages, index_type, weight_type, compile_instead)
    return ptx


def rows_of_a_caller(engine, labels):
    from glp_rapids.communities.engines import merging
    from glp_rapids.communities.kernels.gpu_merging import Vertices
    from glp_rapids.communities.kernels.gpu_windows import Rows

    network = engine.network
    rows = Rows(network.indptr, network.indices, network.weights, labels)
    nobody = Vertices(
        network.volume, network.words, labels, labels, labels, network.volume, network.words,
        labels,
    )  # fmt: skip
    words = np.zeros(3, np.int64)
    merging.Merge(rows, nobody, 2, words[:2], words, every=True)


# A compile of all takes a minute, so one is of the oldest generation, and one of the newest. Those
# of levels without weights are shipped (`test_cuda`).
@pytest.mark.exhaustive
def test_kernels_compile(monkeypatch):
    capability = 7, 5
    found = compiled(monkeypatch, capability, np.int64, np.int64)
    names, codes = zip(*found.values(), strict=True)
    assert sorted(names) == KERNELS
    assert all(f".target sm_{capability[0]}{capability[1]}" in code for code in codes)


# It is all kernels in one, of the same functions.
@pytest.mark.exhaustive
def test_the_kernel_of_levels_together_compiles(monkeypatch):
    capability = 10, 0
    found = compiled(monkeypatch, capability, np.int32, np.int32, together=True)
    [(name, code)] = found.values()
    assert name == "go_up_and_down"
    assert f".target sm_{capability[0]}{capability[1]}" in code


@pytest.mark.parametrize(
    ("index_type", "entries", "weight_type", "wide"),
    [(np.int32, 2**31 - 1, None, False), (np.int32, 2**31, None, True), (np.int64, 9, None, True),
     (np.int32, 9, np.int32, False), (np.int32, 9, np.int64, True)],
)  # fmt: skip
def test_sums_are_narrow_only_where_all_weights_fit(index_type, entries, weight_type, wide):
    from glp_rapids.communities.kernels.gpu_tables import Weights, weights_of

    listed = weight_type is not None
    indices = SimpleNamespace(size=entries, dtype=np.dtype(index_type))
    weights = SimpleNamespace(size=entries * listed, dtype=np.dtype(weight_type or np.int64))
    assert weights_of(indices, weights) == Weights(listed, wide)


def test_levels_without_an_entry_have_the_kernel_of_those_below(monkeypatch):
    """As of a graph of cliques alone: what is shipped for its weights is what is launched."""
    from glp_rapids.communities.engines import gpu, small_levels
    from glp_rapids.communities.kernels import gpu_small_levels

    def network(size, indptr, indices, weights):
        volume, words = np.ones(size, np.int64), np.arange(size, dtype=np.uint64)
        return gpu.Network(np.array(indptr), np.array(indices, np.int32), weights, 1, volume, words)

    launched = []
    monkeypatch.setattr(small_levels, "launch_together", lambda *given: launched.append(given))
    monkeypatch.setattr(small_levels, "bound", lambda arrays: arrays)
    monkeypatch.setattr(gpu_small_levels, "build", lambda wide, index_type: wide)
    for weight_type in (np.int32, np.int64):
        shared = small_levels.SharedStore()
        shared.prepare(network(2, [0, 1, 2], [1, 0], np.ones(2, weight_type)))
        above = network(1, [0, 0], [], np.empty(0, np.int64))
        small_levels.FusedLevels(above, np.zeros(1, np.int32), None, shared)
        kernel, _, _, level, store, _ = launched.pop()
        assert kernel == (weight_type == np.int64)
        assert level.weights.dtype == store.weights.dtype == weight_type


# `simulate_multilevel.py 2` compares 40 results, and takes half a minute.
@pytest.mark.exhaustive
def test_the_simulator_gives_the_results_of_a_cpu():
    assert simulated("simulate_multilevel.py", 1) == "0 of 5 differ"
