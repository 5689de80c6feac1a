"""A process that ran kernels on two GPUs ends well: what they share is unloaded once."""

import gc
import os
import subprocess
import sys
import weakref
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")

# More kernels than numba-cuda leaves loaded at the end.
SCRIPT = """
import cupy
from glp_rapids.jit.cuda import cuda

kernels = []
for number in range(14):
    space = {}
    exec(f"def add(array):\\n    array[0] += {number}", space)
    kernels.append(cuda.jit(space["add"]))
for gpu in (0, 1):
    with cupy.cuda.Device(gpu), cuda.gpus[gpu]:
        array = cupy.zeros(1, dtype="int32")
        for kernel in kernels:
            kernel[1, 1](array)
        print(int(array[0]))
"""


class Module:
    """A module as numba-cuda has it: when it is gone, its library is unloaded."""

    def __init__(self, handle, unloaded):
        self.handle = handle
        self._finalizer = weakref.finalize(self, unloaded.append, handle)


def test_what_two_gpus_share_is_unloaded_once():
    from glp_rapids.jit.unload import unload_once

    unloaded = []
    driver = SimpleNamespace(load_module_image=lambda handle: Module(handle, unloaded))
    unload_once(driver)
    modules = [driver.load_module_image(handle) for handle in (7, 8, 7, 7)]
    assert [module.handle for module in modules] == [7, 8, 7, 7]
    modules.clear()
    gc.collect()
    assert sorted(unloaded) == [7, 8]
    # a handle that was unloaded may be given to another library
    module = driver.load_module_image(7)
    del module
    gc.collect()
    assert sorted(unloaded) == [7, 7, 8]


def test_a_driver_that_loads_otherwise_is_left_alone():
    from glp_rapids.jit.unload import unload_once

    driver = SimpleNamespace()
    unload_once(driver)
    assert not vars(driver)
    for other in (SimpleNamespace(), SimpleNamespace(handle=None), SimpleNamespace(handle=1)):
        driver = SimpleNamespace(load_module_image=lambda other=other: other)
        unload_once(driver)
        assert driver.load_module_image() is other
        assert driver.load_module_image() is other


def test_numba_loads_modules_this_way():
    from numba.cuda.cudadrv import driver

    from glp_rapids.jit import cuda

    if cuda.SIMULATED or not hasattr(driver, "load_module_image"):
        pytest.skip("this numba-cuda loads modules otherwise")
    assert driver.load_module_image.__wrapped__.__module__ == driver.__name__


@pytest.mark.gpu
def test_a_process_that_used_two_gpus_ends_well():
    import cupy

    if cupy.cuda.runtime.getDeviceCount() < 2:
        pytest.skip("only one GPU here")
    path = [str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path)}
    run = subprocess.run(
        [sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, check=False
    )
    assert (run.returncode, run.stdout) == (0, "91\n91\n"), run.stderr[-2000:]
