"""What finds and pushes residuals: compiled for CPU cores, for a GPU, or by whole arrays.

All do the same to the bit; `system` says why.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np

from glp_rapids.common.segments import (
    integer_sums,
    segment_ids,
    segment_ranges,
)
from glp_rapids.device import array_module, to_host
from glp_rapids.fraud.system import System
from glp_rapids.fraud.totals import PARALLEL_FROM, entries_of
from glp_rapids.jit.interrupts import call
from glp_rapids.jit.parallel import threads_available

Array = Any
AT_ONCE = 1 << 22  # entries
PUSH_GPU = 4  # a GPU reads so many entries while it pushes one, launches counted


class Pushed(NamedTuple):
    """How many rounds were made, entries pushed, and whether the next round is too large."""

    rounds: int
    entries: int
    too_large: bool


class Engine(Protocol):
    """Residuals of one system."""

    def residuals(self, numbers: Array) -> Array:
        """Compute the residual of every vertex."""

    def residuals_of(self, rows: Array, numbers: Array) -> Array:
        """Compute the residuals of some vertices."""

    def push(
        self, numbers: Array, residual: Array, allowed: int, entries: int, rounds: int
    ) -> Pushed:
        """Push residuals above ``allowed``, changing both arrays, as the CPU's kernel says."""

    def step(self, previous: Array, numbers: Array, residual: Array, factor: float) -> Array:
        """Return the numbers after a sweep that goes ``factor`` beyond, from those before it.

        ``previous``: those before ``numbers``.
        """

    def above(self, residual: Array, allowed: int) -> int:
        """Count the entries of the vertices whose residual is above ``allowed``."""


class ArrayEngine:
    """Residuals by operations on whole arrays, NumPy's or CuPy's."""

    def __init__(self, system: System) -> None:
        self.system, self._graph = system, system.graph

    def residuals(self, numbers: Array) -> Array:
        """Compute the residual of every vertex, some rows at a time."""
        xp = array_module(numbers)
        found, graph = xp.zeros_like(numbers), self._graph
        for first, last, begin, end in segment_ranges(graph.indptr, AT_ONCE):
            offsets = graph.indptr[first : last + 1] - begin
            row = segment_ids(offsets, np.int64, end - begin) + first
            entry = slice(begin, end)
            found[first:last] = self._heard(row, entry, offsets, numbers)
        return xp.where(self.system.fixed, 0, found - numbers)

    def residuals_of(self, rows: Array, numbers: Array) -> Array:
        """Compute the residuals of some vertices."""
        xp = array_module(numbers)
        of, entry, offsets = entries_of(self._graph, rows)
        heard = self._heard(rows[of], entry, offsets, numbers)
        return xp.where(self.system.fixed[rows], 0, heard - numbers[rows])

    def push(
        self, numbers: Array, residual: Array, allowed: int, entries: int, rounds: int
    ) -> Pushed:
        """Push round after round; all residuals are then computed anew."""
        made = pushed = 0
        while made < rounds and (work := self._wide_round(numbers, residual, allowed, entries)):
            if work < 0:
                return Pushed(made, pushed, True)
            made, pushed = made + 1, pushed + work
        return Pushed(made, pushed, False)

    def step(self, previous: Array, numbers: Array, residual: Array, factor: float) -> Array:
        """Return the numbers after a sweep."""
        xp, system = array_module(numbers), self.system
        step = xp.rint(factor * (residual + numbers - previous)).astype(np.int64)
        # the exact ones are in this span, so cutting to it only brings numbers nearer
        return system.clamped(xp.clip(previous + step, 0, system.most))

    def above(self, residual: Array, allowed: int) -> int:
        """Count the entries of the vertices with a large residual."""
        return int(self._graph.degree[array_module(residual).abs(residual) > allowed].sum())

    def _wide_round(self, numbers: Array, residual: Array, allowed: int, entries: int) -> int:
        """Make one round; return its entries, 0 if none is needed, -1 if it is too large."""
        xp = array_module(numbers)
        size = xp.abs(residual)
        largest = int(size.max()) if size.size else 0
        if largest <= allowed:
            return 0
        frontier = size > max(allowed, largest >> 2)
        work = int((self._graph.degree * frontier).sum())
        if work > entries:
            return -1
        numbers += xp.where(frontier, residual, 0)
        residual[:] = self.residuals(numbers)
        return work

    def _heard(self, row: Array, entry: Any, offsets: Array, numbers: Array) -> Array:
        xp, system = array_module(numbers), self.system
        neighbour, weights = self._graph.indices[entry], self._graph.weights
        weight = 1.0 if weights is None else weights[entry].astype(np.float64)
        counts = (row != neighbour) & ~system.fixed[row]
        share = weight / xp.where(counts, system.total[row], 1.0)
        heard = share * (system.damping * numbers.astype(np.float64))[neighbour]
        return integer_sums(xp.where(counts, heard, 0.0).astype(np.int64), offsets)


class GpuEngine(ArrayEngine):
    """Residuals of all vertices and pushes by kernels; residuals of some by whole arrays."""

    def __init__(self, system: System) -> None:
        super().__init__(system)
        # Numba takes longer to import than a small graph takes to build
        from glp_rapids.fraud.kernels import gpu_pushes, gpu_residuals
        from glp_rapids.jit.launch import launch, launch_together

        self._kernels, self._launch = gpu_residuals, launch
        self._pushes, self._launch_together = gpu_pushes, launch_together
        xp, graph = array_module(system.total), system.graph
        indptr, first_row = graph.indptr, gpu_residuals.first_rows(graph)
        weights = xp.empty(0, np.float64) if graph.weights is None else graph.weights
        self._blocks = -(-first_row.size // gpu_residuals.THREADS)
        total = xp.where(system.fixed, np.inf, system.total)
        self._arrays = indptr, graph.indices, weights, first_row, total

    def residuals(self, numbers: Array) -> Array:
        """Compute the residual of every vertex."""
        found = array_module(numbers).where(self.system.fixed, 0, -numbers)
        said = self.system.damping * numbers.astype(np.float64)
        kernels = self._kernels
        self._launch(
            kernels.build(), self._blocks, kernels.THREADS, *self._arrays, said, found
        )
        return found

    def step(self, previous: Array, numbers: Array, residual: Array, factor: float) -> Array:
        """Return the numbers after a sweep: as whole arrays do, in one launch instead of nine."""
        system = self.system
        return self._kernels.build_step()(
            system.fixed, system.clamp, system.most, factor, previous, numbers, residual
        )

    def above(self, residual: Array, allowed: int) -> int:
        """Count the entries of the vertices with a large residual."""
        return int(self._kernels.build_above()(residual, self._graph.degree, allowed))

    def push(
        self, numbers: Array, residual: Array, allowed: int, entries: int, rounds: int
    ) -> Pushed:
        """Push round after round in one launch; a wide round reads all rows, and is the same."""
        # Numba takes longer to import than a small graph takes to build
        from glp_rapids.jit.cuda import multiprocessors

        xp, graph, pushes = array_module(numbers), self._graph, self._pushes
        indptr, _, weights, _, total = self._arrays
        narrow = min(entries, graph.indices.size // PUSH_GPU)
        rooms = [xp.empty(numbers.size, dtype) for dtype in (graph.indices.dtype, *[np.int64] * 2)]

        def some(rounds: int) -> tuple[int, int, bool]:
            control = xp.zeros(pushes.CONTROL, np.int64)
            self._launch_together(
                pushes.build(pushes.THREADS, pushes.LANES, pushes.LONG),
                pushes.BLOCKS * multiprocessors(), pushes.THREADS, indptr, graph.indices, weights,
                total, self.system.damping, numbers, residual, np.int64(allowed),
                np.int64(narrow), np.int64(rounds), *rooms, control,
            )  # fmt: skip
            made, pushed, too_large = to_host(control)[pushes.MADE : pushes.TOO_LARGE + 1].tolist()
            return made, pushed, bool(too_large)

        return self._pushed(some, numbers, residual, allowed, entries, rounds)

    def _pushed(
        self, some: Callable[[int], tuple[int, int, bool]], numbers: Array, residual: Array,
        allowed: int, entries: int, rounds: int,
    ) -> Pushed:  # fmt: skip
        """Push ``some`` until a round is wide; that reads all rows, which costs less then."""
        made = pushed = 0
        while True:
            done, work, too_large = some(rounds - made)
            made, pushed = made + done, pushed + work
            if too_large:
                work = self._wide_round(numbers, residual, allowed, entries)
            if not too_large or work < 0:
                return Pushed(made, pushed, too_large)
            made, pushed = made + 1, pushed + work


class CpuEngine(ArrayEngine):
    """Residuals by compiled loops, on all cores; of some rows, on one."""

    def __init__(self, system: System) -> None:
        super().__init__(system)
        # Numba takes longer to import than a small graph takes to build
        from glp_rapids.fraud.kernels import cpu_pushes, cpu_residuals

        self._kernels, self._pushes = cpu_residuals, cpu_pushes
        graph = system.graph
        indices = np.ascontiguousarray(graph.indices)
        weights = np.empty(0) if graph.weights is None else np.ascontiguousarray(graph.weights)
        self._arrays = (
            np.ascontiguousarray(graph.indptr, np.int64),
            indices.view(np.dtype(f"u{indices.dtype.itemsize}")), weights,
            np.where(system.fixed, np.inf, system.total),
        )  # fmt: skip

    def _threads(self) -> int:
        return threads_available() if self._graph.indices.size >= PARALLEL_FROM else 1

    def step(
        self, previous: np.ndarray, numbers: np.ndarray, residual: np.ndarray, factor: float
    ) -> np.ndarray:
        """Return the numbers after a sweep: as whole arrays do, in one pass instead of nine."""
        system, following = self.system, np.empty_like(numbers)
        self._kernels.step(
            self._threads(), system.fixed, system.clamp, np.int64(system.most), np.float64(factor),
            previous, numbers, residual, following,
        )  # fmt: skip
        return following

    def above(self, residual: np.ndarray, allowed: int) -> int:
        """Count the entries of the vertices with a large residual."""
        threads = self._threads()
        works = np.zeros(threads, np.int64)
        self._kernels.above(threads, self._arrays[0], residual, np.int64(allowed), works)
        return int(works.sum())

    def residuals(self, numbers: np.ndarray) -> np.ndarray:
        """Compute the residual of every vertex."""
        found, residuals = np.empty_like(numbers), partial(self._kernels.residuals, self._threads())
        call(residuals, *self._arrays, self.system.damping, numbers, found)
        return found

    def residuals_of(self, rows: np.ndarray, numbers: np.ndarray) -> np.ndarray:
        """Compute the residuals of some vertices."""
        found, residuals_of = np.empty(rows.size, np.int64), self._kernels.residuals_of
        call(residuals_of, rows, *self._arrays, self.system.damping, numbers, found)
        return found

    def push(
        self, numbers: np.ndarray, residual: np.ndarray, allowed: int, entries: int, rounds: int
    ) -> Pushed:
        """Push round after round."""
        push = partial(self._pushes.push, self._threads())
        return Pushed(*call(
            push, *self._arrays, self.system.damping, numbers, residual, np.int64(allowed),
            np.int64(entries), np.int64(rounds),
        ))  # fmt: skip


def engine_of(system: System) -> Engine:
    """Return the engine for where the graph lives."""
    return CpuEngine(system) if system.graph.device == "cpu" else GpuEngine(system)
