"""What could hang, leave a process changed, or end in an error of a library on a GPU."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import glp_rapids

HERE = Path(__file__).parent


def run(script, timeout):
    path = [str(HERE.parent), str(HERE), os.environ.get("PYTHONPATH", "")]
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path)},
        capture_output=True, text=True, timeout=timeout, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.strip()


# ------------------------------------------------------------ compiling


def test_two_threads_that_compile_leave_numba_as_it_was():
    pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")
    from numba.cuda import compiler, dispatcher

    from glp_rapids.jit.cuda import compiling

    original = compiler.compile_cuda
    inside, leave = threading.Event(), threading.Event()
    seen = []

    def first():
        with compiling():
            inside.set()
            leave.wait(20)

    def second():
        with compiling():
            seen.append(compiler.compile_cuda)

    one, other = threading.Thread(target=first), threading.Thread(target=second)
    one.start()
    assert inside.wait(20)
    other.start()
    other.join(0.2)  # it would be done by then if it did not wait
    assert not seen
    leave.set()
    one.join(20)
    other.join(20)
    # who came second found its own patch around the original, not around that of the first
    assert seen[0].__closure__ is not None
    assert any(cell.cell_contents is original for cell in seen[0].__closure__)
    assert compiler.compile_cuda is dispatcher.compile_cuda is original


def test_nobody_else_compiles_while_the_compiler_is_another():
    pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")
    from numba.cuda.core.compiler_lock import global_compiler_lock

    from glp_rapids.jit.cuda import compiling

    entered = []

    def somebody():
        with global_compiler_lock:
            entered.append(True)

    with compiling():
        thread = threading.Thread(target=somebody)
        thread.start()
        thread.join(0.2)
        assert not entered
    thread.join(20)
    assert entered


def test_what_decides_about_a_kernel_is_in_its_key(monkeypatch):
    numba_cuda = pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")
    from types import SimpleNamespace

    from glp_rapids.jit import cuda as cuda_target

    device = SimpleNamespace(compute_capability=(9, 0))
    monkeypatch.setattr(cuda_target.cuda, "get_current_device", lambda: device)
    codegen = SimpleNamespace(magic_tuple=tuple)

    def nothing():
        pass

    def key(**options):
        cache = cuda_target.kernel(nothing, "digest", **options)._cache
        return cache._index_key("signature", codegen)

    keys = [key(), key(launch_bounds=(256, 3)), key(launch_bounds=(256, 2))]
    monkeypatch.setattr(numba_cuda, "__version__", "0.0")
    keys.append(key())
    assert len(set(keys)) == 4


@pytest.mark.gpu
def test_every_signature_of_a_kernel_rounds_as_a_cpu_does():
    import cupy

    from glp_rapids.jit.cuda import cuda, kernel
    from glp_rapids.jit.launch import launch

    def multiply_and_add(factors, sums):
        i = cuda.grid(1)
        if i < sums.size:
            sums[i] = factors[i] * factors[i] + sums[i]

    made = kernel(multiply_and_add, "test of signatures")
    rng = np.random.default_rng(1)
    for dtype in (np.float64, np.float32, np.float64):
        factors, sums = rng.random((2, 1000)).astype(dtype)
        expected = factors * factors + sums
        found = cupy.asarray(sums)
        launch(made, 8, 128, cupy.asarray(factors), found)
        np.testing.assert_array_equal(found.get(), expected)


# ------------------------------------------------------------ hanging

DIVERGENT = """
import numpy as np
import glp_rapids

class Ends(glp_rapids.Program):
    def load_neighbor(v, u, weight, state):
        return state.labels[u], weight / (state.last - state.sweep)

    def __init__(self, last):
        self.last = last

    def initial_state(self, graph):
        return {"last": float(self.last)}

rng = np.random.default_rng(1)
graph = glp_rapids.as_graph(tuple(rng.integers(0, 200_000, (2, 1_500_000))), device="gpu")
told = 0
for last in [2, 3, 4, 5] * 40:
    try:
        glp_rapids.propagate(graph, Ends(last), explore=0, tol=0, max_iter=20)
    except ValueError as error:
        told += f"in sweep {last}" in str(error)
print(told)
"""


@pytest.mark.gpu
def test_amounts_that_turn_infinite_in_a_later_sweep_end_the_run_in_that_sweep():
    assert run(DIVERGENT, 120) == "160"


# ------------------------------------------------------------ several GPUs


@pytest.mark.gpu
def test_a_graph_on_another_gpu_is_refused_everywhere_and_runs_under_its_own():
    import cupy

    if cupy.cuda.runtime.getDeviceCount() < 2:
        pytest.skip("only one GPU here")
    from families import FAMILIES, edges, result

    with cupy.cuda.Device(1):
        graph = glp_rapids.as_graph(edges(1), device="gpu")
        compressed = glp_rapids.compress(graph)
    for there in (graph, compressed):
        for call in (
            glp_rapids.label_propagation,
            glp_rapids.core_number,
            glp_rapids.compress,
            lambda graph: glp_rapids.structural_diversity(graph, 3),
            lambda graph: glp_rapids.seeded_label_propagation(graph, {0: "a"}),
            lambda graph: glp_rapids.account_scores(graph, [0]),
        ):
            with pytest.raises(ValueError, match="lies on GPU 1, but the current one is GPU 0"):
                call(there)
    for name in FAMILIES:
        expected = result(name, 1, "cpu")
        for number in (0, 1, 0):
            with cupy.cuda.Device(number):
                assert result(name, 1, "gpu") == expected, name


# ------------------------------------------------------------ forks


def test_a_forked_process_leaves_the_gpu_to_its_parent(monkeypatch):
    from glp_rapids import device

    monkeypatch.setattr(device, "_cuda_of_parent", False)
    asked = []

    class Cached:
        cache_info = staticmethod(lambda: type("Info", (), {"currsize": 1}))
        cache_clear = staticmethod(lambda: asked.append("cleared"))

        def __call__(self):
            return None

    monkeypatch.setattr(device, "_gpu_problem", Cached())
    device._lose_cuda()
    assert device._cuda_of_parent
    assert asked == ["cleared"]
    monkeypatch.undo()
    monkeypatch.setattr(device, "_cuda_of_parent", True)
    assert "forked" in device._gpu_problem.__wrapped__()


FORKED = """
import multiprocessing, warnings
import families
warnings.simplefilter("ignore")  # Python warns of forks where there are threads

def work(name):
    return families.result(name, 1, None)

names = ["classic", "speaker", "compressed", "truss"]
expected = [families.result(name, 1, "cpu") for name in names]
assert expected == [families.result(name, 1, None) for name in names]  # on the GPU
with multiprocessing.get_context("fork").Pool(4) as pool:
    print(expected == pool.map(work, names))
"""


@pytest.mark.gpu
def test_a_fork_pool_after_work_on_a_gpu():
    assert run(FORKED, 200) == "True"


ALLOCATOR_OF_A_BLOCK = """
import sys
import cupy
import glp_rapids
ends = cupy.array([0, 1, 2]), cupy.array([1, 2, 0])
with cupy.cuda.using_allocator(cupy.cuda.MemoryPool().malloc):
    assert "cudf" not in sys.modules
    found = glp_rapids.label_propagation(ends)
print(type(found).__module__.split(".")[0], len(found))
"""


@pytest.mark.gpu
def test_cudf_may_be_imported_where_a_block_has_its_own_allocator():
    pytest.importorskip("cudf", reason="cuDF is not installed")
    assert run(ALLOCATOR_OF_A_BLOCK, timeout=120) == "cudf 3"
