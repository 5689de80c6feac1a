"""Arrays in host memory that a GPU reads: pinned, so that its copy engine and its kernels can.

Pinning takes 0.4 s a GiB, so an array is pinned once and kept with its graph. Where the system lets
nobody pin so much, an array is an ordinary one: copies of it are staged by the driver, through
small pinned buffers of its own, and kernels cannot read it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from glp_rapids.device import LITTLE, memory_free, module_on


@dataclass
class HostArray:
    """An array in host memory; ``pinned``: kernels can read it, as ``on_device`` shows it."""

    array: np.ndarray
    pinned: bool

    @property
    def bits_an_entry(self) -> int:
        """How many bits an entry takes."""
        return 8 * self.array.itemsize

    def of_a_run(self) -> HostArray:
        """Return what one run copies from, which may need buffers of its own."""
        return self

    def let_go(self) -> None:
        """Give back what a run needed besides, once all is copied: nothing."""

    def copies(self, shift: int, first: int, last: int) -> Iterator[tuple[int, np.ndarray]]:
        """Yield what holds the entries from ``first`` to ``last``, and where it goes.

        That is ``shift`` elements further on than on the host.
        """
        yield first + shift, self.array[first:last]

    def on_device(self, xp: Any) -> Any:
        """Return it as kernels take arrays; nothing is copied."""
        if xp is np:
            return self.array
        pointer = self.array.ctypes.data
        owner = xp.cuda.UnownedMemory(pointer, self.array.nbytes, self, xp.cuda.Device().id)
        memory = xp.cuda.MemoryPointer(owner, 0)
        return xp.ndarray(self.array.shape, self.array.dtype, memory)


def room_for(size: int) -> bool:
    """Tell whether host memory has room for so many bytes more."""
    return size < LITTLE or size <= memory_free("cpu")


def empty(size: int, dtype: Any, device: Any = "gpu") -> HostArray:
    """Make an array of host memory for a GPU, pinned if the system allows it; never empty."""
    size, dtype = max(int(size), 1), np.dtype(dtype)
    if device == "cpu":
        return HostArray(np.empty(size, dtype), pinned=True)
    cuda = module_on("gpu").cuda
    try:
        # exactly so many bytes: a pool of pinned memory would round up to a power of two
        memory = cuda.PinnedMemory(size * dtype.itemsize)
    except cuda.runtime.CUDARuntimeError:
        return HostArray(np.empty(size, dtype), pinned=False)
    return HostArray(np.frombuffer(cuda.PinnedMemoryPointer(memory, 0), dtype, size), pinned=True)


def copy(there: Any, values: Any, xp: Any) -> None:
    """Copy an array between host memory and the device, in the order of the current stream.

    The host does not wait, if its array is pinned. ``there`` may be longer.
    """
    if xp is np:
        there[: values.size] = values
    elif values.nbytes:
        pointers = [
            array.ctypes.data if isinstance(array, np.ndarray) else array.data.ptr
            for array in (there, values)
        ]
        stream = xp.cuda.get_current_stream().ptr
        xp.cuda.runtime.memcpyAsync(
            *pointers, values.nbytes, xp.cuda.runtime.memcpyDefault, stream
        )
