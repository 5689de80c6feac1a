"""What the threads of a warp do together; in Numba's simulator, too, which knows no warps itself.

There a warp is ``SIMULATED_WARP`` threads of the host that wait for each other.
"""

from __future__ import annotations

import threading
import weakref
from typing import Any

import numpy as np

from glp_rapids.jit.cuda import SIMULATED, cuda

ALL = np.uint32(0xFFFFFFFF)

if SIMULATED:
    SIMULATED_WARP = 2
    _warps_of_blocks: Any = weakref.WeakKeyDictionary()
    _lock = threading.Lock()

    def _warp() -> tuple[threading.Barrier, list, int]:
        """Return the barrier of the caller's warp, a place for each of its values, and its lane."""
        thread: Any = threading.current_thread()
        warp, lane = divmod(int(thread.threadIdx.x), SIMULATED_WARP)
        with _lock:
            warps = _warps_of_blocks.setdefault(thread._manager, {})
            if warp not in warps:
                warps[warp] = threading.Barrier(SIMULATED_WARP), [None] * SIMULATED_WARP
            return *warps[warp], lane

    def sync_warp():
        """Wait for the other threads of the warp; what they wrote is then seen by all."""
        _warp()[0].wait(timeout=60)

    def shuffle_down(value, distance):
        """Return a value of the lane so much further on, or where there is none one's own."""
        barrier, values, lane = _warp()
        values[lane] = value
        barrier.wait(timeout=60)
        if lane + distance < SIMULATED_WARP:
            value = values[lane + distance]
        barrier.wait(timeout=60)
        return value

    def shuffle_from(value, lane):
        """Return the value of a lane."""
        return _told(value)[lane]

    def ballot(flag):
        """Return a bit of every lane."""
        return np.uint32(sum(1 << lane for lane, told in enumerate(_told(flag)) if told))

    def count_bits(bits):
        """Return how many bits are set."""
        return int(bits).bit_count()

    def first_bit(bits):
        """Return the lowest bit that is set."""
        return (int(bits) & -int(bits)).bit_length() - 1

    def _told(value):
        """Return what all lanes tell."""
        barrier, values, lane = _warp()
        values[lane] = value
        barrier.wait(timeout=60)
        told = list(values)
        barrier.wait(timeout=60)
        return told
else:

    @cuda.jit(device=True)
    def sync_warp():
        """Wait for the other threads of the warp; what they wrote is then seen by all."""
        cuda.syncwarp()

    @cuda.jit(device=True)
    def shuffle_down(value, distance):
        """Return a value of the lane so much further on, or where there is none one's own."""
        return cuda.shfl_down_sync(ALL, value, distance)

    @cuda.jit(device=True)
    def shuffle_from(value, lane):
        """Return the value of a lane."""
        return cuda.shfl_sync(ALL, value, lane)

    @cuda.jit(device=True)
    def ballot(flag):
        """Return a bit of every lane."""
        return np.uint32(cuda.ballot_sync(ALL, flag))

    @cuda.jit(device=True)
    def count_bits(bits):
        """Return how many bits are set."""
        return cuda.popc(bits)

    @cuda.jit(device=True)
    def first_bit(bits):
        """Return the lowest bit that is set."""
        return cuda.ffs(bits) - 1
