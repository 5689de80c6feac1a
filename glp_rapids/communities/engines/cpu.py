"""The CPU engine: one level of a multilevel run, each sweep a call of compiled code."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from glp_rapids.common.segments import segment_offsets
from glp_rapids.communities.kernels import merging, moving, refining
from glp_rapids.communities.kernels.classes import draws_of_classes
from glp_rapids.communities.kernels.tally import tables_for
from glp_rapids.communities.numbers import Numbered, Terms, numbered
from glp_rapids.communities.objective import Network, squares_of
from glp_rapids.communities.schedule import FEWER_CLASSES, ends_at, settles
from glp_rapids.graph.connected import connected_parts
from glp_rapids.jit.interrupts import A_CALL, interruptible
from glp_rapids.jit.parallel import threads_available

PARALLEL_FROM = 1 << 16  # entries
# Entries of a class, below which one thread does it all: waking another takes some 50
# microseconds, and far longer where other processes want the cores.
ENOUGH = 1 << 15
SOON = 1 << 20  # entries that all kernels go through in milliseconds
TOTALS = 4  # of all threads of a contraction, 8 bytes each, for a vertex


class CpuEngine:
    """As `Engine` says, by loops over rows, class by class.

    Parameters
    ----------
    network : Network
        Its arrays on the host.
    constant : int
        C of the objective.
    """

    def __init__(self, network: Network, constant: int) -> None:
        self.network, self.constant = network, constant
        self._level = moving.Level(
            network.indptr, network.indices, network.weights, np.int64(network.unit),
            network.volume, network.words, np.int64(constant),
        )  # fmt: skip
        self._threads = threads_available() if network.indices.size >= PARALLEL_FROM else 1
        longest = int(np.diff(network.indptr).max()) if network.size else 0
        self._index_type = network.indices.dtype
        self._tables = tables_for(longest, self._threads, self._index_type)
        self._enough = np.int64(ENOUGH * network.size // max(network.indices.size, 1))
        self._changes = np.empty(network.size, np.int64), np.empty(network.size, np.bool_)
        self._movers = np.empty((2, network.size), self._index_type)
        self._counts = np.empty(network.size // moving.CHUNK + 1, np.int64)
        self.volumes = self._counts[:0]  # of communities by name, as `up` left them

    def up(
        self, labels: np.ndarray, seed: int, classes: int, least_moves: int | None
    ) -> tuple[np.ndarray, list[int], Numbered, tuple[CpuEngine, np.ndarray] | None]:
        """Move, number and contract."""
        partition = self._partition(labels)
        moved = self._move(partition, seed, classes)
        self.volumes = partition.volumes
        parts = self._numbered(partition.labels)
        contracts = least_moves is not None and sum(moved) >= least_moves
        return partition.labels, moved, parts, self._above(parts, parts) if contracts else None

    def down(
        self, labels: np.ndarray, parts: Numbered | None, seed: int, classes: int, *,
        terms: bool = False, last: bool = False,
    ) -> tuple[np.ndarray, list[int], Terms | None]:  # fmt: skip
        """Move once more."""
        if parts is not None:
            labels = parts.first[labels[parts.numbers]]
        partition = self._partition(labels)
        moved = self._move(partition, seed, classes)
        labels, volumes = partition.labels, partition.volumes
        return labels, moved, self.terms(labels, volumes) if terms else None

    def refined(
        self, labels: np.ndarray, seed: int, sweeps: int, communities: Numbered | None = None
    ) -> tuple[Numbered, tuple[CpuEngine, np.ndarray] | None]:
        """Refine, number and contract."""
        partition = self._partition(labels)
        if communities is None:
            communities = self._numbered(partition.labels)
        parts = self._numbered(self._refine(partition, seed, sweeps))
        return parts, self._above(parts, communities)

    def terms(self, labels: np.ndarray, volumes: np.ndarray | None) -> Terms:
        """Add up."""
        totals = np.zeros(self._threads, np.int64)
        labels = labels.astype(self._index_type, copy=False)
        self._call(moving.add_crossing, self._threads, self._level, labels, totals)
        if volumes is None:
            volumes = self._partition(labels).volumes
        return Terms(int(totals.sum()), squares_of(volumes), self._numbered(labels))

    def connected_parts(self, labels: np.ndarray) -> tuple[np.ndarray, Terms]:
        """Find connected parts, and add up."""
        roots = connected_parts(self.network.rows, labels)
        return roots, self.terms(roots, None)

    def _partition(self, labels: np.ndarray) -> moving.Partition:
        """Return a partition with the sizes and volumes of communities, whose labels may change."""
        labels = labels.astype(self.network.indices.dtype)
        sizes, volumes = np.zeros((2, self.network.size), np.int64)
        self._call(moving.add_up_communities, labels, self.network.volume, sizes, volumes)
        return moving.Partition(labels, sizes, volumes)

    def _move(self, partition: moving.Partition, seed: int, classes: int) -> list[int]:
        draws = draws_of_classes(self.network.words, seed, 0, classes, self._index_type)
        active = np.ones(self.network.size, np.uint8)
        targets = tuple(self._movers)
        moved: list[int] = []
        while not settles(moved, self.network.size):
            moved.append(sum(self._calls(draws, lambda offsets, members: moving.sweep(
                self._threads, offsets, members, self._level, partition, np.uint64(seed), active,
                targets, self._counts, self._tables, np.count_nonzero(active) / active.size,
                self._enough,
            ))))  # fmt: skip
        return moved

    def _refine(self, partition: moving.Partition, seed: int, sweeps: int) -> np.ndarray:
        network = self.network
        parts = refining.Parts(
            np.arange(network.size, dtype=network.indices.dtype),
            np.zeros(network.size, np.uint8), network.volume.copy(),
            np.empty(network.size, np.int64),
        )  # fmt: skip
        self._call(
            refining.weights_inside, self._threads, self._level, partition.labels, parts.outward
        )
        joined = np.zeros(network.size, np.uint8)
        for sweep in range(1, sweeps + 1):
            draws = draws_of_classes(
                network.words, seed, sweep, FEWER_CLASSES, self._index_type, parts.turns
            )
            done = sum(self._calls(draws, lambda offsets, members: refining.sweep(
                self._threads, offsets, members, self._level, partition, parts, np.uint64(seed),
                joined, (*self._movers, *self._changes), self._counts, self._tables,
                self._enough,
            )))  # fmt: skip
            if not done:
                break
        return parts.labels

    def _numbered(self, labels: np.ndarray) -> Numbered:
        return numbered(labels.astype(self._index_type, copy=False))

    def rest(
        self, labels: np.ndarray, seed: int, depth: int, max_level: int, refining: bool
    ) -> None:
        """Do no more than a level at a time; a GPU does several."""

    def _above(
        self, parts: Numbered, communities: Numbered
    ) -> tuple[CpuEngine, np.ndarray] | None:
        """Return the level whose vertices are the parts, and their communities, if there is one."""
        if ends_at(parts.first.size, self.network.size):
            return None
        of_parts = communities.numbers[parts.first]
        labels = parts.numbers[communities.first[of_parts]]
        return CpuEngine(self._merged(*parts), self.constant), labels

    def _merged(self, parts: np.ndarray, first: np.ndarray) -> Network:
        old, number = self.network, first.size
        threads = min(self._threads, TOTALS * old.size // number)
        members = np.empty(old.size, self._index_type)
        offsets, begins = np.zeros(number + 2, np.int64), np.zeros(number + 1, np.int64)
        volumes = np.zeros(number, np.int64)
        self._call(
            merging.sort_by_part, parts, old.indptr, old.volume, offsets, members, begins, volumes
        )
        indices = np.empty(begins[-1], old.indices.dtype)
        weights = np.empty(begins[-1], np.int64)
        sizes = np.empty(number, np.int64)
        totals = np.zeros((threads, number), np.int64)
        self._call(
            merging.gather_rows, threads, offsets, members, self._level, parts, begins, indices,
            weights, sizes, totals,
        )  # fmt: skip
        indptr = segment_offsets(sizes)
        entries = np.empty(indptr[-1], indices.dtype), np.empty(indptr[-1], np.int64)
        self._call(merging.close_up, threads, begins, indptr, indices, weights, *entries)
        return Network(indptr, *entries, 1, volumes, old.words[first])

    def _calls(
        self, draws: tuple[np.ndarray, ...], call: Callable[[np.ndarray, np.ndarray], int]
    ) -> Iterator[int]:
        """Call a kernel for all classes at once, or for one at a time where that takes long."""
        _, offsets, members = draws
        step = offsets.size - 1 if self.network.indices.size < A_CALL else 1
        for first in range(0, offsets.size - 1, max(step, 1)):
            yield self._call(call, offsets[first : first + step + 1], members)

    def _call(self, kernel: Callable[..., Any], *arguments: Any) -> Any:
        """Call a kernel: in a thread of its own, where a signal would wait for long."""
        whole = self.network.indices.size < SOON
        return (kernel if whole else interruptible(kernel))(*arguments)
