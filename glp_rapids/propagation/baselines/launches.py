"""What the baselines share on the host: the arrays of a run, what a sweep adds, batches.

A strategy is a table of degree classes. A degree class says which kernels serve its vertices, and
who launches them for one class of the sweep: made once a run, called with the class and
`SweepArguments`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from glp_rapids.device import memory_free, to_host
from glp_rapids.propagation.workload import Workload

UNLIMITED = (1 << 63) - 1
SMALLEST_BATCH = 1 << 16  # entries: below that launches cost more than they do


@dataclass(frozen=True)
class DegreeClass:
    """Who serves degrees up to a limit: ``build`` makes kernels, ``serve`` what launches them."""

    largest_degree: int
    build: Callable[..., Any]  # of a program and the shared device functions
    # of kernels, `RunArrays`, ranges by class
    serve: Callable[..., Callable[[int, SweepArguments], None]]


class TieOrder(NamedTuple):
    """Which random order of labels settles ties, as kernels take it."""

    seed: np.uint64
    first_id: np.int64  # see `graph.id_words`
    id_words: Any


@dataclass(frozen=True)
class SweepArguments:
    """What the kernels get in one sweep besides the arrays."""

    fields: tuple
    flags: tuple  # skip, revisit_tied
    ties: tuple  # retain, tie_break, `TieOrder`
    scale: np.float64
    limit: np.float64


@dataclass(frozen=True)
class RunArrays:
    """The arrays of a run, and how kernels are launched on them."""

    xp: Any
    launch: Callable[..., None]
    wrap: Callable[[Any], Any]  # an array, for launches
    most_blocks: int
    workload: Workload
    vertices: Any  # by (class, degree class); those without a neighbour are in no range
    active: Any
    tied: Any
    wrapped_vertices: Any
    wrapped_csr: tuple  # indptr, indices, weights
    wrapped_marks: tuple  # active, tied
    wrapped_winners: tuple  # winner, winner_score
    wrapped_errors: Any

    def filled(self, size: int, value: int, dtype: Any) -> Any:
        """Make a wrapped array; no kernel takes one without entries."""
        return self.wrap(self.xp.full(max(size, 1), value, dtype=dtype))

    def listed(self, ranges: list[tuple[int, int]]) -> tuple[Any, np.ndarray]:
        """List the vertices of a degree class, class after class, and where each class begins."""
        sizes = [last - first for first, last in ranges]
        parts = [self.vertices[first:last] for first, last in ranges if last > first]
        found = self.xp.concatenate(parts) if parts else self.vertices[:0]
        return found, np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)

    def degrees(self, vertices: Any) -> Any:
        """Count the neighbours of each."""
        indptr = self.workload.rows.indptr
        return indptr[vertices + 1] - indptr[vertices]

    def batch_size(self, largest: int, bytes_each: int) -> int:
        """Return how many entries a batch may have, so that it takes a quarter of what is free."""
        free = memory_free(self.workload.graph.device) // 4
        return min(largest, max(free // bytes_each, SMALLEST_BATCH))


class Listed:
    """Launch one kernel over the vertices of a degree class."""

    def __init__(
        self, kernel: Any, run: RunArrays, ranges: list[tuple[int, int]], *, threads: int,
        vertices_per_block: int,
    ):  # fmt: skip
        self._kernel, self._run, self._ranges = kernel, run, ranges
        self._threads, self._vertices_per_block = threads, vertices_per_block

    def __call__(self, group: int, sweep: SweepArguments) -> None:
        """Evaluate one class."""
        run = self._run
        first, last = self._ranges[group]
        blocks = min(-(-(last - first) // self._vertices_per_block), run.most_blocks)
        run.launch(
            self._kernel, blocks, self._threads, first, last, run.wrapped_vertices,
            *run.wrapped_csr, sweep.fields, *sweep.flags, *sweep.ties, sweep.scale, sweep.limit,
            *run.wrapped_marks, *run.wrapped_winners, run.wrapped_errors,
        )  # fmt: skip


def batches(before: Any, limits: np.ndarray, most: int, xp: Any) -> list[list[tuple[int, int]]]:
    """Cut the ranges between ``limits`` into batches; return those of each range.

    ``before`` holds the number of entries before every item, and in the end that of all; no item
    has none. A batch has at most ``most`` entries besides those of its last item.
    """
    total = int(before[-1])
    cuts = np.unique(limits)
    if total > most:
        passed = xp.arange(most, total, most, dtype=np.int64)
        cuts = np.union1d(cuts, to_host(xp.searchsorted(before, passed)))
    places = np.searchsorted(cuts, limits).tolist()
    return [list(pairwise(cuts[begin : end + 1].tolist())) for begin, end in pairwise(places)]
