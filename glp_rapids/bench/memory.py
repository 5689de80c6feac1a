"""How much device memory a piece of work takes at its peak."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from glp_rapids.common.reused_memory import give_back

if TYPE_CHECKING:
    from glp_rapids.compressed.graph import CompressedGraph

SLACK, COMPRESSED_BYTES_A_VERTEX = 1.1, 60  # of a run on a compressed graph


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


def counts() -> bool:
    """Tell whether `peak_memory` sees what is allocated: not where RMM has taken over."""
    import cupy

    from glp_rapids.device import is_of_pool

    return is_of_pool(cupy.cuda.get_allocator())


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
    """Return memory that nobody uses to the device, cycles of garbage included."""
    import gc

    import cupy

    gc.collect()
    give_back()
    cupy.get_default_memory_pool().free_all_blocks()


def bound(vertices: int, entries: int, weighted: bool) -> int:
    """Return the bytes that a run may take, its graph included.

    4 a neighbour, 8 with weights, 8 a vertex for the row offsets and 48 a vertex for the rest.
    """
    return (8 if weighted else 4) * entries + (8 + 48) * vertices


def compressed_bound(compressed_bytes: float, vertices: int) -> float:
    """Return the bytes that a run on a compressed graph may take, the graph included."""
    return SLACK * compressed_bytes + COMPRESSED_BYTES_A_VERTEX * vertices


def bare(compressed: CompressedGraph) -> CompressedGraph:
    """Return a compressed graph without what runs left on it."""
    lists = replace(compressed.lists, _derived={})
    return replace(compressed, lists=lists, _derived={})


def of_run(
    compressed: CompressedGraph, call: Callable[[CompressedGraph], Any]
) -> tuple[Any, dict[str, Any]]:
    """Call a function with a bare copy of a compressed graph; return its result, and columns.

    The peak is that of CuPy's pool, without what others hold: ids, and the graph's own copies.
    """
    subject = bare(compressed)
    free_memory()
    with peak_memory() as water:
        others = water.live - subject.nbytes
        found = call(subject)
    if not counts():
        return found, {"compressed MB": subject.nbytes / 1e6, "peak MB": None}
    peak, vertices = water.peak - others, subject.number_of_vertices
    of_bound = peak / compressed_bound(subject.nbytes, vertices)
    return found, {"compressed MB": subject.nbytes / 1e6, "peak MB": peak / 1e6,
                   "bytes a vertex beyond": (peak - subject.nbytes) / vertices,
                   "of bound": of_bound, "reached": of_bound <= 1}  # fmt: skip
