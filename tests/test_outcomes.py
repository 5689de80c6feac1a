"""The kernels by which GPUs tell one another what came of a class: they compile, and are right."""


import cuda_offline
import numpy as np
import pytest
from cases import exhaustive
from simulator import simulated

pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")

from glp_rapids.propagation.kernels.gpu import outcomes
from glp_rapids.propagation.kernels.gpu.outcomes import Outcome, Told


def test_the_kernels_in_the_simulator():
    assert simulated("simulate_outcomes.py") == "0"


@pytest.mark.parametrize("capability", [(9, 0), *exhaustive(((7, 5),), ((8, 6),), ((10, 0),))])
@pytest.mark.parametrize("index_type", [np.int32, np.int64])
def test_the_kernels_compile(capability, index_type, monkeypatch):
    pytest.importorskip("cuda.bindings.nvrtc", reason="NVIDIA's compilers are not installed")
    from numba import cuda, typeof, types

    arrays = Outcome(*(np.zeros(1, one) for one in (np.float64, index_type, np.int32, np.uint8)))
    told = Told(np.int64(0), np.int64(1), True, True)
    signature = (
        typeof(np.zeros(1, index_type)), typeof(np.zeros((1, 1, 2), np.int64)), typeof(arrays),
        typeof(arrays), types.int64, typeof(told),
    )  # fmt: skip
    with cuda_offline.compiling(monkeypatch, capability):
        for kernel in (outcomes.pack_outcome, outcomes.unpack_outcome):
            code, _ = cuda.compile_ptx(kernel, signature, device=False, cc=capability)
            assert kernel.__name__ in code
