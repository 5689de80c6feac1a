"""Kernels of multilevel methods that come with the package: all that a GPU launches."""

import numpy as np
import pytest

import glp_rapids
from glp_rapids.cli import ship as shipping

pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")
pytest.importorskip("cuda.bindings.nvrtc", reason="NVIDIA's compilers are not installed")

from glp_rapids.jit import ship
from glp_rapids.jit.cuda import bound
from glp_rapids.jit.shipped_kernels import name_of


@pytest.mark.gpu
@pytest.mark.parametrize("largest", [0, 1 << 20], ids=["level by level", "fused levels"])
@pytest.mark.parametrize("weighted", [False, True], ids=["unweighted", "weighted"])
def test_what_multilevel_methods_launch_is_in_the_table(monkeypatch, largest, weighted):
    from glp_rapids.communities.engines import small_levels
    from glp_rapids.jit import launch

    launched, of_launch = {}, launch._loaded

    def loaded(kernel, kinds, arguments):
        if kernel.py_func.__module__.startswith("glp_rapids.communities"):
            signature = tuple(map(kernel.typeof_pyval, bound(arguments)))
            launched[kernel.py_func.__name__, signature] = kernel
        return of_launch(kernel, kinds, arguments)

    monkeypatch.setattr(small_levels, "LARGEST", largest)
    monkeypatch.setattr(launch, "_loaded", loaded)
    ends = np.random.default_rng(0).integers(0, 3_000, (2, 40_000))
    weights = (np.ones(40_000, np.int64),) if weighted else ()
    glp_rapids.multilevel_label_propagation((*ends, *weights), device="gpu")
    table = [name_of(one.kernel.recipe, one.signature)
             for title, shipped in shipping.KERNELS.items() if title.startswith("multilevel")
             for one in shipping.launches(shipped)]  # fmt: skip
    with ship.oldest_gpu():
        missing = [name for (name, signature), kernel in launched.items()
                   if name_of(kernel.recipe, signature) not in table]  # fmt: skip
    assert ("go_up_and_down" if largest else "refine_parts") in {name for name, _ in launched}
    assert missing == []
