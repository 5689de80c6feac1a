"""Kernels that make a window's update: simulated, compiled for GPUs, and on one as NumPy does."""

from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pytest
from row_kernels import differing
from simulator import simulated

from glp_rapids.common import scans

CAPABILITIES = [(7, 5), (10, 0)]


def test_the_simulator_does_as_numpy_does():
    pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")
    assert simulated("simulate_rows.py") == "[]"


@pytest.mark.gpu
def test_a_gpu_does_as_numpy_does(cupy):
    more = (2_000, 1_400, 700), (900, 3_000, 9_000)  # of several blocks
    assert differing(cupy.asarray, cupy.asnumpy, more) == []


@pytest.mark.gpu
def test_no_array_keeps_the_memory_of_others(cupy):
    """What a window's graph has as weights is held by whoever holds the graph."""
    from glp_rapids.fraud.pairs import Rows, added_up, merged

    rng = cupy.random.default_rng(0)
    ends = rng.integers(0, 50, (2, 200)).astype(np.int32)
    rows = Rows(ends[0], ends[1], rng.integers(0, 9, 200), rng.integers(0, 9, 200))
    pairs = added_up(rows, 1 << 20, False)
    for found in (pairs, merged(pairs, pairs)):
        assert all(getattr(found, name).base is None for name in ("key", *found.sums))


@pytest.mark.gpu
def test_a_new_thread_launches_on_arrays_of_another(cupy):
    from glp_rapids.fraud.kernels import gpu_transactions

    columns = (*cupy.arange(20, dtype=np.int32).reshape(2, 10), cupy.arange(10), cupy.arange(10))
    which = cupy.arange(3, 7)
    gpu_transactions.taken(columns, which)  # so that the kernel is loaded, and memory is at hand
    with ThreadPoolExecutor(1) as pool:
        found = pool.submit(gpu_transactions.taken, columns, which).result()
    assert [one.tolist() for one in found] == [[3, 4, 5, 6], [13, 14, 15, 16], *[[3, 4, 5, 6]] * 2]


@pytest.mark.gpu
def test_places_of_many_blocks_and_of_a_part_of_an_array(cupy):
    size = scans.MOST_BLOCKS * scans.LEAST * 3 + 5
    values = cupy.arange(size) % 7 == 0
    cupy.testing.assert_array_equal(scans.places_where(values), cupy.arange(0, size, 7))
    assert int(scans.exclusive_sums(values)[-1]) == -(-size // 7)
    np.testing.assert_array_equal(
        cupy.asnumpy(scans.exclusive_sums(values))[1:], np.cumsum(cupy.asnumpy(values))
    )
    every_other = cupy.arange(2000)[::2]
    assert scans.exclusive_sums(every_other).tolist()[-2:] == [997_002, 999_000]
    assert scans.places_where(every_other).size == 999
    assert (scans.number_where(values), scans.number_where(every_other)) == (-(-size // 7), 999)
    assert scans.integer_sum(every_other) == 999_000
    assert scans.integer_sum(cupy.full(3, 2**32 - 1, np.uint32)) == 3 * (2**32 - 1)


INT, LONG, REAL, MARK = np.int32, np.int64, np.float64, np.bool_
# Of each kernel what it takes: a type of arrays, a tuple of those, or a number's in a list.
TAKEN = {
    "_take": [(LONG, INT, INT, LONG, LONG, INT, INT, LONG, LONG)],
    "_join": [(INT, INT, LONG, REAL, INT, INT, LONG, REAL, INT, INT, LONG, REAL)],
    "_rename": [(INT,) * 5],
    "_rename_keys": [(INT, LONG, LONG)],
    "_move": [(REAL, LONG, REAL), (MARK, LONG, MARK)],
    "_find_new": [(LONG, LONG, LONG, MARK), (np.uint64, np.uint64, LONG, MARK)],
    "_shift": [(LONG,) * 4],
    "_spread": [(LONG, (LONG,) * 2, LONG, LONG, (LONG,) * 2)],
    "_add": [(LONG, (LONG,) * 3, LONG, LONG, (LONG,) * 3)],
    "_list_keys": [(INT, INT, [bool], LONG)],
    "_read_sorted": [(LONG, LONG, (LONG,) * 2, MARK, LONG, (LONG,) * 2)],
    "_write_pairs": [(LONG, LONG, LONG, LONG, (LONG,), LONG, LONG, (LONG,))],
    "_note": [(INT, INT, LONG, LONG, LONG)],
    "_number_kept": [(LONG, LONG, INT, LONG)],
    "_mark_inside": [(LONG, INT, LONG, INT, LONG, MARK)],
    "_copy_inside": [(LONG, INT, LONG, LONG, INT, LONG, MARK, LONG, LONG, INT, LONG)],
}


def kernels():
    from glp_rapids.fraud.kernels import gpu_transactions
    from glp_rapids.graph import subgraph_gpu
    from glp_rapids.jit.items import ItemKernel

    return {
        name: value
        for module in (gpu_transactions, subgraph_gpu)
        for name, value in vars(module).items()
        if isinstance(value, ItemKernel)
    }


def value_of(taken):
    if isinstance(taken, list):
        return taken[0]()
    return tuple(map(value_of, taken)) if isinstance(taken, tuple) else np.empty(0, taken)


@pytest.mark.parametrize("capability", CAPABILITIES)
def test_kernels_compile(capability, monkeypatch):
    pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")
    pytest.importorskip("cuda.bindings.nvrtc", reason="NVIDIA's compilers are not installed")
    from numba import cuda, typeof
    from numba.cuda import dispatcher

    from glp_rapids.jit.cuda import compiling

    current = SimpleNamespace(compute_capability=capability)
    monkeypatch.setattr(dispatcher, "get_current_device", lambda: current)
    found = kernels()
    assert set(found) == set(TAKEN)
    for name, several in TAKEN.items():
        for taken in several:
            types = tuple(typeof(value_of(one)) for one in taken)
            with compiling():
                function = found[name].kernel.py_func
                code, _ = cuda.compile_ptx(function, types, device=False, cc=capability)
            assert f".target sm_{capability[0]}{capability[1]}" in code


@pytest.mark.parametrize("capability", CAPABILITIES)
@pytest.mark.parametrize("code", ["?", "Q"])
def test_scans_compile(capability, code):
    nvrtc = pytest.importorskip(
        "cuda.bindings.nvrtc", reason="NVIDIA's compilers are not installed"
    )
    error, program = nvrtc.nvrtcCreateProgram(
        scans.source_for(code).encode(), b"scans.cu", 0, [], []
    )
    assert not error
    architecture = f"--gpu-architecture=compute_{capability[0]}{capability[1]}".encode()
    (error,) = nvrtc.nvrtcCompileProgram(program, 1, [architecture])
    _, size = nvrtc.nvrtcGetProgramLogSize(program)
    log = b" " * size
    nvrtc.nvrtcGetProgramLog(program, log)
    assert not error, log.decode()
    (error,) = nvrtc.nvrtcDestroyProgram(program)
    assert not error
