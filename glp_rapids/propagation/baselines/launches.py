"""What the baselines share on the host: the arrays of a run, what a sweep adds, batches.

A strategy is a table of degree classes. A degree class says which kernels serve its vertices, and
who launches them for one class of the sweep: a function of (class, `Turn`), made once a run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

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
    serve: Callable[..., Callable[[int, Turn], None]]  # of kernels, `Ground`, ranges by class


@dataclass(frozen=True)
class Turn:
    """What the kernels get in one sweep besides the arrays."""

    fields: tuple
    flags: tuple  # skip, revisit_tied
    ties: tuple  # retain, tie_break, tie_seed
    scale: np.float64
    limit: np.float64


@dataclass(frozen=True)
class Ground:
    """The arrays of a run. Those called bound are wrapped for launches."""

    xp: Any
    launch: Callable[..., None]
    bound: Callable[[Any], Any]
    most_blocks: int
    workload: Workload
    vertices: Any  # by (class, degree class); those without a neighbour are in no range
    active: Any
    tied: Any
    bound_vertices: Any
    bound_csr: tuple  # indptr, indices, weights
    bound_marks: tuple  # active, tied
    bound_winners: tuple  # winner, winner_score
    bound_errors: Any

    def filled(self, size: int, value: int, dtype: Any) -> Any:
        """Make a bound array; no kernel takes one without entries."""
        return self.bound(self.xp.full(max(size, 1), value, dtype=dtype))

    def listed(self, ranges: list[tuple[int, int]]) -> tuple[Any, np.ndarray]:
        """Give the vertices of a degree class, class after class, and where each class begins."""
        sizes = [last - first for first, last in ranges]
        parts = [self.vertices[first:last] for first, last in ranges if last > first]
        found = self.xp.concatenate(parts) if parts else self.vertices[:0]
        return found, np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)

    def degrees(self, vertices: Any) -> Any:
        """Give the number of neighbours of each."""
        indptr = self.workload.rows.indptr
        return indptr[vertices + 1] - indptr[vertices]

    def batch_size(self, largest: int, bytes_each: int) -> int:
        """Give how many entries a batch may have, so that it takes a quarter of what is free."""
        free = memory_free(self.workload.graph.device) // 4
        return min(largest, max(free // bytes_each, SMALLEST_BATCH))


class Listed:
    """Launch one kernel over the vertices of a degree class."""

    def __init__(
        self,
        kernel: Any,
        ground: Ground,
        ranges: list[tuple[int, int]],
        *,
        threads: int,
        vertices_per_block: int,
    ):
        self._kernel, self._ground, self._ranges = kernel, ground, ranges
        self._threads, self._vertices_per_block = threads, vertices_per_block

    def __call__(self, group: int, turn: Turn) -> None:
        """Evaluate one class."""
        ground = self._ground
        first, last = self._ranges[group]
        blocks = min(-(-(last - first) // self._vertices_per_block), ground.most_blocks)
        ground.launch(
            self._kernel,
            blocks,
            self._threads,
            first,
            last,
            ground.bound_vertices,
            *ground.bound_csr,
            turn.fields,
            *turn.flags,
            *turn.ties,
            turn.scale,
            turn.limit,
            *ground.bound_marks,
            *ground.bound_winners,
            ground.bound_errors,
        )


def batches(before: Any, bounds: np.ndarray, most: int, xp: Any) -> list[list[tuple[int, int]]]:
    """Cut the ranges between ``bounds`` into batches; give those of each range.

    ``before`` holds the number of entries before every item, and in the end that of all; no item
    has none. A batch has at most ``most`` entries besides those of its last item.
    """
    total = int(before[-1])
    cuts = np.unique(bounds)
    if total > most:
        passed = xp.arange(most, total, most, dtype=np.int64)
        cuts = np.union1d(cuts, to_host(xp.searchsorted(before, passed)))
    places = np.searchsorted(cuts, bounds).tolist()
    return [list(pairwise(cuts[begin : end + 1].tolist())) for begin, end in pairwise(places)]
