"""How much device memory a piece of work takes at its peak."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any


class HighWater:
    """Bytes in use, and the most there ever were."""

    def __init__(self, live: int = 0) -> None:
        self.live = self.peak = live

    def taken(self, size: int) -> None:
        """Count an allocation."""
        self.live += size
        self.peak = max(self.peak, self.live)

    def given_back(self, size: int) -> None:
        """Count a release."""
        self.live -= size


@contextlib.contextmanager
def peak_memory() -> Iterator[HighWater]:
    """Count what CuPy allocates inside the block, beside what it holds already.

    Every array of this library on a GPU is CuPy's. The count is of CuPy's own pool: with another
    allocator, as RMM once cuDF is imported, there is none to hold on to.
    """
    import cupy

    pool = cupy.get_default_memory_pool()
    water = HighWater(pool.used_bytes())

    class Counting(cupy.cuda.MemoryHook):
        name = "glp_rapids peak memory"

        def malloc_postprocess(self, **event: Any) -> None:
            water.taken(event["mem_size"])

        def free_postprocess(self, **event: Any) -> None:
            water.given_back(event["mem_size"])

    with Counting():
        yield water


def free_memory() -> None:
    """Give what nobody uses back to the device, cycles of garbage included."""
    import gc

    import cupy

    gc.collect()
    cupy.get_default_memory_pool().free_all_blocks()


def bound(vertices: int, entries: int, weighted: bool) -> int:
    """Give the bytes that a run may take, its graph included.

    4 a neighbour, 8 with weights, 8 a vertex for the row offsets and 48 a vertex for the rest.
    """
    return (8 if weighted else 4) * entries + (8 + 48) * vertices
