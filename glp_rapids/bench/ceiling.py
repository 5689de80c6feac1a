"""What the machine's memory allows: the least that a sweep must read, and nothing else.

Two kernels: every neighbour's index is read once (``index_stream``), and every neighbour's index
and label (``label_gather``). A sweep that evaluates every vertex reads what the second reads. Eight
independent loads a thread are under way at a time, so that latency is hidden; the sums are written
so that no load can be left out.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np

from glp_rapids.graph.graph import Graph
from glp_rapids.jit.cuda import bound, cuda, kernel, multiprocessors
from glp_rapids.jit.launch import launch

THREADS = 256
BLOCKS_PER_MULTIPROCESSOR = (4, 8, 16, 32)  # the fastest counts: this is to be a ceiling
LAUNCHES = 10  # timed together, so that the time to launch does not count


# All unsigned: an index that may be negative would cost three instructions to wrap around.
TWO, THREE, FOUR, FIVE, SIX, SEVEN, EIGHT = (np.uint64(i) for i in range(2, 9))


def index_stream(indices, sums):
    """Add up all indices."""
    thread, step = np.uint64(cuda.grid(1)), np.uint64(cuda.gridsize(1))
    size, total, j = np.uint64(indices.size), np.uint64(0), thread
    second, third, fourth = step, TWO * step, THREE * step
    fifth, sixth, seventh, eighth = FOUR * step, FIVE * step, SIX * step, SEVEN * step
    while j + eighth < size:
        a, b = indices[j], indices[j + second]
        c, d = indices[j + third], indices[j + fourth]
        e, f = indices[j + fifth], indices[j + sixth]
        g, h = indices[j + seventh], indices[j + eighth]
        total += a + b + c + d + e + f + g + h
        j += EIGHT * step
    while j < size:
        total += indices[j]
        j += step
    sums[thread] = total


def label_gather(indices, labels, sums):
    """Add up the labels at all indices."""
    thread, step = np.uint64(cuda.grid(1)), np.uint64(cuda.gridsize(1))
    size, total, j = np.uint64(indices.size), np.uint64(0), thread
    second, third, fourth = step, TWO * step, THREE * step
    fifth, sixth, seventh, eighth = FOUR * step, FIVE * step, SIX * step, SEVEN * step
    while j + eighth < size:
        a, b = indices[j], indices[j + second]
        c, d = indices[j + third], indices[j + fourth]
        e, f = indices[j + fifth], indices[j + sixth]
        g, h = indices[j + seventh], indices[j + eighth]
        first = labels[a] + labels[b] + labels[c] + labels[d]
        total += first + labels[e] + labels[f] + labels[g] + labels[h]
        j += EIGHT * step
    while j < size:
        total += labels[indices[j]]
        j += step
    sums[thread] = total


@functools.cache
def _kernel(function: Callable) -> Any:
    return kernel(function, "")


@dataclass(frozen=True)
class Ceiling:
    """Milliseconds to read every index, and every index with its label."""

    stream_ms: float
    gather_ms: float


def measure(graph: Graph, repeats: int) -> Ceiling:
    """Measure both on the rows of a graph on the GPU; medians, of the best of some grids."""
    import cupy

    unsigned = np.dtype(f"u{graph.indices.dtype.itemsize}")
    labels = cupy.arange(graph.number_of_vertices, dtype=unsigned)
    indices = graph.indices.view(unsigned)
    return Ceiling(
        _fastest(index_stream, (indices,), repeats),
        _fastest(label_gather, (indices, labels), repeats),
    )


def _fastest(function: Callable, arrays: tuple, repeats: int) -> float:
    import cupy

    times = []
    for blocks in BLOCKS_PER_MULTIPROCESSOR:
        blocks *= multiprocessors()
        sums = cupy.empty(blocks * THREADS, np.uint64)
        arguments = [bound(array) for array in (*arrays, sums)]
        run = functools.partial(launch, _kernel(function), blocks, THREADS, *arguments)
        times.append(median(_milliseconds(run) for _ in range(repeats + 1)))
    return min(times)


def _milliseconds(run: Callable[[], None]) -> float:
    import cupy

    start, end = cupy.cuda.Event(), cupy.cuda.Event()
    run()  # warms up, and keeps the GPU busy while the next are queued
    start.record()
    for _ in range(LAUNCHES):
        run()
    end.record()
    end.synchronize()
    return cupy.cuda.get_elapsed_time(start, end) / LAUNCHES
