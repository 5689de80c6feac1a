"""Kernels with a thread for each of many items, made when they are first launched."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from glp_rapids.common.cached_property import cached_property
from glp_rapids.jit.cuda import cuda, kernel
from glp_rapids.jit.launch import launch

THREADS = 256  # of a block


@cuda.jit(device=True)
def item_of_thread():
    """Return the item of a thread; those of the last block may have none."""
    return np.int64(cuda.blockIdx.x) * cuda.blockDim.x + cuda.threadIdx.x


class ItemKernel:
    """A kernel as a function of how many items there are, and of its arguments."""

    def __init__(self, function: Callable) -> None:
        self._function = function

    @cached_property
    def kernel(self) -> Any:
        """What is launched."""
        return kernel(self._function, "items")

    def __call__(self, items: int, *arguments: Any) -> None:
        """Launch it; without items nothing happens."""
        launch(self.kernel, -(-items // THREADS), THREADS, *arguments)
