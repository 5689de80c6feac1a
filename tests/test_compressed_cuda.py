"""The kernels of compressed rows: they compile everywhere, run in the simulator, and on a GPU."""

from types import SimpleNamespace

import numba
import numpy as np
import pytest
from cases import exhaustive, some
from compressed_rows import LAYOUTS, graphs
from simulator import simulated

from glp_rapids.compressed import decode, encode, packed_ids, symmetry
from glp_rapids.compressed.format.layout import Layout, settings
from glp_rapids.device import to_device, to_host
from glp_rapids.graph.rows import CSR

pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")


# Nothing in these kernels depends on the generation, so the ends of the range do.
@pytest.mark.parametrize(
    ("scheme", "capability", "index_type"),
    [("packed", (10, 0), np.int64), *exhaustive(("cgr", (7, 5), np.int32))],
)
def test_kernels_compile(monkeypatch, scheme, capability, index_type):
    try:
        from cuda.bindings import nvrtc  # noqa: F401
    except ImportError:
        pytest.skip("NVIDIA's compilers are not installed (numba-cuda[cu13] brings them)")
    from numba import cuda, typeof
    from numba.cuda import dispatcher

    from glp_rapids.jit.cuda import gpu_target, kernel_of

    current = SimpleNamespace(compute_capability=capability)
    monkeypatch.setattr(dispatcher, "get_current_device", lambda: current)
    words, ids, numbers = (np.zeros(1, dtype) for dtype in (np.uint32, index_type, np.int64))
    of_field = {
        "settings": settings(Layout(scheme), 1), "tables": words, "words": words,
        "block_bytes": words, "indices": ids, "out": ids, "degrees": ids, "vertices": ids,
    }  # fmt: skip
    decoding = {"skim_block": decode.Skimming, "read_list": decode.Decoding,
                "read_part": decode.Decoding}  # fmt: skip
    for module in (encode, decode):
        for name, function in module.functions(scheme, gpu_target()).items():
            work = decoding.get(name, encode.Encoding)
            arguments = [of_field.get(field, numbers) for field in work._fields]
            signature = numba.int64, typeof(work(*arguments))
            kernel = kernel_of(function, "")
            code, _ = cuda.compile_ptx(kernel.py_func, signature, device=False, cc=capability)
            assert f".target sm_{capability[0]}{capability[1]}" in code
            assert ".local" not in code  # nothing is kept in memory that belongs in registers


@pytest.mark.parametrize("index_type", some([np.int32, np.int64], np.int32))
def test_kernels_of_ids_and_of_symmetry_compile(monkeypatch, index_type):
    pytest.importorskip("cuda.bindings.nvrtc", reason="NVIDIA's compilers are not installed")
    from numba import cuda, typeof
    from numba.cuda import dispatcher

    from glp_rapids.jit.cuda import gpu_target, kernel_of

    current = SimpleNamespace(compute_capability=(9, 0))
    monkeypatch.setattr(dispatcher, "get_current_device", lambda: current)
    ids, wide = np.zeros(1, index_type), np.zeros(1, np.int64)
    words, widths = np.zeros(1, np.uint64), np.zeros(1, np.uint8)
    works = {
        "read_id": packed_ids.Reading(wide, wide, widths, wide, words, ids),
        "pack_block": packed_ids.Packing(ids, widths, wide, words),
        "add_span": symmetry.Summing(np.uint64(0), np.int64(0), wide, ids, words, words),
    }
    for module in (packed_ids, symmetry):
        for name, function in module.functions("any", gpu_target()).items():
            kernel = kernel_of(function, "")
            signature = numba.int64, typeof(works[name])
            code, _ = cuda.compile_ptx(kernel.py_func, signature, device=False, cc=(9, 0))
            assert ".target sm_90" in code
            assert ".f64" not in code  # uint64 and int64 make a float


def test_the_simulator_gives_the_bytes_of_the_twin():
    assert simulated("simulate_compressed.py") == "0 of 16 differ"


@pytest.mark.gpu
@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_a_gpu_gives_the_bytes_of_a_cpu(layout):
    for name, csr in graphs().items():
        rows = encode.encode(csr, layout)
        there = CSR(to_device(csr.indptr, "gpu"), to_device(csr.indices, "gpu"), None)
        other = encode.encode(there, layout)
        assert other.device == "gpu"
        for array in ("words", "block_bytes", "tables", "offsets", "degrees"):
            here, found = getattr(rows, array), to_host(getattr(other, array))
            np.testing.assert_array_equal(found, here, err_msg=f"{name} {array}")
        for found, wanted in zip(decode.decode(other), (csr.indptr, csr.indices), strict=True):
            np.testing.assert_array_equal(to_host(found), wanted, err_msg=name)
