"""What compressed rows need of a GPU: its own instructions for bits, and a thread an item."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from glp_rapids.jit import launch as cuda_launch
from glp_rapids.jit.cuda import SIMULATED, cuda, kernel

THREADS = 256  # of a block


def put(words, place, value):
    """Put bits into a word of zeros that other threads may be putting theirs into."""
    cuda.atomic.or_(words, place, value)


if SIMULATED:

    def trailing_zeros(value):
        """Count the zeros below the lowest one."""
        value = int(value)
        return np.uint32((value & -value).bit_length() - 1 if value else 32)

    def bit_length(value):
        """Give how many bits a number has."""
        return np.int64(int(value).bit_length())
else:

    def trailing_zeros(value):
        """Count the zeros below the lowest one."""
        return np.uint32(cuda.clz(cuda.brev(value)))

    def bit_length(value):
        """Give how many bits a number has."""
        return np.int64(64) - np.int64(cuda.clz(value))


def kernel_of(function: Callable, digest: str) -> Any:
    """Make a kernel that calls a compiled function of an item and all it works on."""

    def all_items(items, work):
        item = np.int64(cuda.blockIdx.x) * np.int64(cuda.blockDim.x) + np.int64(cuda.threadIdx.x)
        if item < items:
            function(item, work)

    return kernel(all_items, digest)


def launch(function: Any, items: int, work: Any) -> None:
    """Launch such a kernel, from any thread."""
    cuda_launch.launch(function, -(-items // THREADS), THREADS, np.int64(items), work)
