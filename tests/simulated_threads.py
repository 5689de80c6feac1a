"""Threads of Numba's simulator that sleep while they wait for each other, for kernels of one block.

Its own look, all the time and each in its turn, whether the others have come to a barrier: most of
what a simulated kernel took was that.
"""

import sys
import threading

import numpy as np
from numba.cuda.simulator import kernel as simulated
from numba.cuda.simulator import kernelapi

_lock = threading.Lock()


class Meeting:
    """Where the threads of a block wait until all are there that have not ended."""

    def __init__(self, running):
        self.changed = threading.Condition()
        self.running, self.waiting, self.barriers, self.failed = running, 0, 0, None

    def wait(self):
        """Wait at a barrier."""
        with self.changed:
            self.waiting += 1
            barrier = self.barriers
            self._let_go()
            self.changed.wait_for(lambda: self.failed or barrier < self.barriers)
            if self.failed:
                raise RuntimeError("another thread of the block has failed")

    def leave(self, exception):
        """Say that a thread has ended; ``exception``: as a simulated thread keeps it, or None."""
        with self.changed:
            self.running -= 1
            self.failed = self.failed or exception
            self._let_go()

    def _let_go(self):
        if self.failed or self.waiting == self.running:
            self.waiting = 0
            self.barriers += 1
            self.changed.notify_all()

    def end(self):
        """Wait for the end of all threads; raise what one has raised, without the others' end."""
        with self.changed:
            self.changed.wait_for(lambda: self.failed or not self.running)
        if self.failed:
            raise self.failed[0].with_traceback(self.failed[1])


class Thread(simulated.BlockThread):
    """A simulated thread."""

    def run(self):
        super().run()
        self._manager.meeting.leave(self.exception)

    def syncthreads(self):
        self._manager.meeting.wait()


def run(manager, grid_point, *arguments):
    """Run a block."""
    manager.meeting = Meeting(int(np.prod(manager._block_dim)))
    for place in np.ndindex(*manager._block_dim):
        Thread(lambda: manager._f(*arguments), manager, grid_point, place, manager._debug).start()
    manager.meeting.end()


def array(shared, shape, dtype, alignment=None):
    """Return the shared array of the line that asks, one for all threads whoever is first."""
    frame = sys._getframe(1)
    place = frame.f_code.co_filename, frame.f_lineno
    with _lock:
        if place not in shared._allocations:
            shared._allocations[place] = np.empty(shape, dtype)
        return shared._allocations[place]


def let_threads_sleep():
    """Let threads sleep while they wait from now on.

    So they are seldom interrupted: let that be as often between two barriers as it was before.
    """
    sys.setswitchinterval(1e-4)
    simulated.BlockManager.run = run
    kernelapi.FakeCUDAShared.array = array
