"""Several blocks at once in Numba's simulator, which would run one after the other.

Its threads are threads of the host, so blocks may be, too: each with a manager, and shared memory,
of its own. Between barriers they run in any order, and change places often.
"""

import sys
import threading
import time

import numpy as np
from numba.cuda.simulator import kernel as simulated
from numba.cuda.simulator import kernelapi

from glp_rapids.jit import primitives

_shared_array, _run = kernelapi.FakeCUDAShared.array, simulated.BlockManager.run
_lock = threading.Lock()


class Shared(kernelapi.FakeCUDAShared):
    """Shared memory by block."""

    def __init__(self, size):
        super().__init__(size)
        self._of_blocks = {}

    def array(self, shape, dtype, alignment=None):
        """Return the block's array of the line that asks."""
        block = threading.current_thread()._manager
        frame = sys._getframe(1)
        place = block, frame.f_code.co_filename, frame.f_lineno
        with _lock:
            if place not in self._of_blocks:
                self._of_blocks[place] = np.empty(shape, dtype)
            return self._of_blocks[place]


def run_together(manager, grid_point, *arguments):
    """Run all blocks when the first one's turn has come."""
    if any(grid_point):
        return
    managers, failed = [], []

    def run(block, point):
        try:
            _run(block, point, *arguments)
        except BaseException as error:
            failed.append(error)

    for point in np.ndindex(*manager._grid_dim):
        block = simulated.BlockManager(
            manager._f, manager._grid_dim, manager._block_dim, manager._debug
        )
        managers.append(threading.Thread(target=run, args=(block, point), daemon=True))
    for one in managers:
        one.start()
    while any(one.is_alive() for one in managers) and not failed:
        time.sleep(0.001)
    if failed:
        raise failed[0]


def add_released(array, index, amount):
    """Add to an element, as one."""
    with _lock:
        array[index] += amount


def load_fresh(array, index):
    """Read an element, and let others run."""
    time.sleep(0.0001)
    return array[index]


def let_blocks_run_together():
    """Let launches of several blocks run all of them at once from now on."""
    sys.setswitchinterval(1e-5)
    kernelapi.FakeCUDAShared = Shared
    simulated.BlockManager.run = run_together
    primitives.add_released, primitives.load_fresh = add_released, load_fresh
