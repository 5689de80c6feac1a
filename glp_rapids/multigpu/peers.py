"""GPUs of one process that write into one another's memory, and where their threads meet."""

from __future__ import annotations

from typing import Any

import numpy as np

from glp_rapids.device import release
from glp_rapids.multigpu.exchange import Meeting
from glp_rapids.multigpu.nccl import in_turn

Array = Any
ALREADY = 704  # cudaErrorPeerAccessAlreadyEnabled
LACKS = 2  # cudaErrorMemoryAllocation
REFUSED = 217, 711  # cudaErrorPeerAccessUnsupported, cudaErrorTooManyPeers

_reached: dict[tuple[int, ...], bool] = {}


def reach_one_another(devices: tuple[int, ...]) -> bool:
    """Let every GPU write into the memory of all others; tell whether they can.

    Asked once a process; while ranks run nobody may ask, as an answer could wait for their kernels.
    """
    if devices not in _reached:
        with in_turn:
            _reached[devices] = _made_to_reach(devices)
    return _reached[devices]


def _made_to_reach(devices: tuple[int, ...]) -> bool:
    from cupy.cuda import Device, runtime

    pairs = [(one, other) for one in devices for other in devices if one != other]
    if not all(runtime.deviceCanAccessPeer(one, other) for one, other in pairs):
        return False
    for one, other in pairs:
        with Device(one):
            try:
                runtime.deviceEnablePeerAccess(other)
            except runtime.CUDARuntimeError as error:
                if error.status in REFUSED:
                    return False
                if error.status != ALREADY:
                    raise
    return True


class PeerMeeting(Meeting):
    """Where ranks meet whose kernels wait for one another: they look at a word of the host."""

    def __init__(self, devices: tuple[int, ...], patience: float | None = None):
        from cupy.cuda import alloc_pinned_memory

        super().__init__(len(devices), patience)
        self._pinned = alloc_pinned_memory(8)
        self._word = np.frombuffer(self._pinned, np.int64, 1)
        self._word[0] = 0

    def word(self) -> Array:
        """Return the word as an array of the current GPU."""
        import cupy

        device = cupy.cuda.runtime.getDevice()
        memory = cupy.cuda.UnownedMemory(self._pinned.ptr, 8, self._pinned, device)
        return cupy.ndarray(1, np.int64, cupy.cuda.MemoryPointer(memory, 0))

    def abort(self, error: BaseException) -> None:
        """Let all ranks fail; kernels that wait for one another end."""
        super().abort(error)
        self._word[0] = 1


def plain_memory(size: int, dtype: Any) -> Array:
    """Make an array that peers may reach; what a pool hands out, RMM's say, they may not.

    Raises
    ------
    MemoryError
        There is too little left, also of what pools gave back.
    """
    import cupy

    dtype = np.dtype(dtype)
    wanted = max(size, 1) * dtype.itemsize
    memory = _allocated(wanted)
    if memory is None:
        release()
        memory = _allocated(wanted)
    if memory is None:
        raise MemoryError(f"Out of memory allocating {wanted:,} bytes")
    return cupy.ndarray(max(size, 1), dtype, cupy.cuda.MemoryPointer(memory, 0))


def _allocated(size: int) -> Any:
    """Ask the driver for memory; None: there is too little."""
    from cupy.cuda import Memory, runtime

    try:
        return Memory(size)
    except runtime.CUDARuntimeError as error:
        if error.status != LACKS:
            raise
        return None


def address_of(array: Array) -> int:
    """Return where an array lies, for all GPUs."""
    return int(array.data.ptr)
