"""The GPU engine: one level of a multilevel run, each of its stages a launch or two."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from glp_rapids.common.fixed_point import sums_by_group
from glp_rapids.common.segments import segment_ids, segment_offsets
from glp_rapids.communities.kernels import (
    gpu_best,
    gpu_classes,
    gpu_merging,
    gpu_moving,
    gpu_refining,
)
from glp_rapids.communities.objective import Network, loops_of
from glp_rapids.communities.schedule import CLASSES, MOST_SWEEPS
from glp_rapids.device import array_module, to_host
from glp_rapids.graph.rows import CSR
from glp_rapids.jit.cuda import multiprocessors
from glp_rapids.jit.launch import launch, launch_together

Array = Any
LONG_BLOCKS = 8  # of a multiprocessor, for long rows
ITEMS_A_BLOCK = 1 << 11  # vertices and entries: fewer blocks meet sooner


class Partition(NamedTuple):
    """Which community each vertex is in; of each community how many vertices, and what volume."""

    labels: Array
    sizes: Array
    volumes: Array


def merged(
    rows: CSR, unit: int, parts: Array, entries: Array, *, every: bool
) -> tuple[Array, Array, Array]:
    """Return indptr, indices, in any order, and weights of parts, of which each has ``entries``.

    ``every``: those inside parts and those without weight count, too.
    """
    xp, index_type = array_module(parts), rows.indices.dtype.type
    threads, lanes = gpu_merging.THREADS, gpu_merging.LANES
    number, size = entries.size, rows.indices.size
    weights = xp.empty(0, np.int64) if rows.weights is None else rows.weights
    slots = xp.minimum(entries + (entries >> 1) + 1, number)
    room = min(size + (size >> 1) + number, number * number)
    tables = gpu_merging.Tables(segment_offsets(slots), xp.zeros(2 * room, np.int64))
    kernel = gpu_merging.build_add(
        threads, lanes, gpu_merging.LONGEST, gpu_merging.PIECE, weights.size > 0, every
    )
    long = xp.empty(size // (gpu_merging.LONGEST + 1) + 1, index_type), xp.zeros(1, np.int64)
    arguments = rows.indptr, rows.indices, weights, np.int64(unit), parts, tables, *long
    launch(kernel, -(-parts.size * lanes // threads), threads, *arguments, np.bool_(False))
    launch(kernel, LONG_BLOCKS * multiprocessors(), threads, *arguments, np.bool_(True))
    each = gpu_merging.EACH
    blocks = -(-room // (threads * each))
    counts = xp.empty(blocks, np.int64)
    launch(gpu_merging.build_count(threads, each), blocks, threads, tables.table, counts)
    begins = segment_offsets(counts)
    total = int(begins[-1])
    indptr = xp.empty(number + 1, np.int64)
    indices, weights = xp.empty(total, index_type), xp.empty(total, np.int64)
    kernel = gpu_merging.build_write(threads, each)
    launch(kernel, blocks, threads, tables, begins, indptr, indices, weights)
    return indptr, indices, weights


def quotient(rows: CSR, labels: Array, number: int, directed: bool) -> tuple[Array, Array, Array]:
    """Add up weights, integers or none, between labels: sources, destinations and sums.

    Each pair comes once, in any order. Edges inside a label count once, however often they are
    stored.
    """
    xp = array_module(labels)
    labels = labels.astype(rows.indices.dtype, copy=False)
    threads = gpu_merging.THREADS
    entries, unused = xp.zeros((2, number), np.int64)
    first = xp.full(number, labels.size, np.int64)
    launch(gpu_merging.build_totals(threads), -(-labels.size // threads), threads,
           rows.indptr, labels, rows.indptr, entries, unused, first)  # fmt: skip
    indptr, destination, weights = merged(rows, 1, labels, entries, every=True)
    source = segment_ids(indptr, destination.dtype, destination.size)
    if not directed:
        loops = loops_of(rows)
        at = labels[rows.indices[loops]]
        of_loops = xp.ones(loops.size, np.int64) if rows.weights is None else rows.weights[loops]
        inside = xp.flatnonzero(source == destination)
        weights[inside] += _sums(at, of_loops, number)[source[inside]]
        weights[inside] >>= 1
    return source, destination, weights


def _sums(group: Array, values: Array, groups: int) -> Array:
    if not values.size:
        return array_module(group).zeros(groups, np.int64)
    return sums_by_group(group, values, groups)


class GpuEngine:
    """Moves, refines and contracts one network.

    Parameters
    ----------
    network : Network
        Its arrays on the GPU.
    constant : int
        C of the objective.
    """

    def __init__(self, network: Network, constant: int) -> None:
        self.network, self._constant = network, np.int64(constant)
        self.xp = xp = array_module(network.indptr)
        self._index_type = network.indices.dtype.type
        self._weighted = network.weights.size > 0
        size = network.size
        self._blocks = (network.indices.size + size) // ITEMS_A_BLOCK + 1
        self._members = xp.empty(size, self._index_type), xp.empty(size, self._index_type)
        room = 0
        largest = gpu_classes.LARGEST[-1]
        if network.indices.size > largest:
            degree = network.indptr[1:] - network.indptr[:-1]
            room = int(((degree + (degree >> 1) + 1) * (degree > largest)).sum())
        self._hubs = room // (largest + (largest >> 1)) + 1
        pieces = room // gpu_classes.PIECE + self._hubs
        numbers = xp.zeros(2 * (room + self._hubs), np.int64)
        self._tables = (
            numbers[: self._hubs], numbers[self._hubs : 2 * self._hubs], numbers[2 * self._hubs :],
            xp.empty(room, self._index_type), xp.empty(pieces, np.int64),
            xp.empty(pieces, np.int64), xp.empty(pieces, np.uint64),
        )  # fmt: skip

    def partition(self, labels: Array) -> Partition:
        """Return a partition whose labels are a copy, which `move` changes."""
        xp, size = self.xp, self.network.size
        labels = labels.astype(self._index_type)
        return Partition(labels, xp.zeros(size, np.int64), xp.zeros(size, np.int64))

    def move(self, partition: Partition, seed: int) -> list[int]:
        """Sweep until few vertices move; return how many did in each sweep."""
        network, xp = self.network, self.xp
        state = gpu_moving.Moving(
            network.indptr, network.indices, network.weights, np.int64(network.unit),
            network.volume, network.words, self._constant, *partition,
            xp.ones(network.size, np.uint8), partition.labels.copy(), np.uint64(seed),
        )  # fmt: skip
        lists, work, done = self._work(MOST_SWEEPS, 1)
        kernel = gpu_moving.build(self._weighted, self._index_type)
        launch_together(kernel, self._blocks, gpu_classes.THREADS, state, lists, work, done[:1])
        swept, *moved = to_host(done).tolist()
        return [sum(moved[sweep * CLASSES :][:CLASSES]) for sweep in range(swept)]

    def refine(self, partition: Partition, seed: int, sweeps: int) -> Array:
        """Split each community into well-connected parts; return the part of each vertex."""
        network, xp = self.network, self.xp
        labels = xp.arange(network.size, dtype=self._index_type)
        state = gpu_refining.Refining(
            network.indptr, network.indices, network.weights, np.int64(network.unit),
            network.volume, network.words, self._constant, partition.labels, partition.volumes,
            labels, xp.empty(network.size, np.uint8), network.volume.copy(),
            xp.zeros(network.size, np.int64), xp.zeros(network.size, np.int16),
            labels.copy(), np.uint64(seed),
        )  # fmt: skip
        lists, work, _ = self._work(sweeps, sweeps)
        kernel = gpu_refining.build(self._weighted, self._index_type)
        launch_together(
            kernel, self._blocks, gpu_classes.THREADS, state, lists, work, np.int64(sweeps)
        )
        return labels

    def contract(self, parts: Array, number: int) -> Network:
        """Return the network whose vertices are the parts 0 .. number - 1, without loops."""
        old, xp = self.network, self.xp
        threads = gpu_merging.THREADS
        parts = parts.astype(self._index_type, copy=False)
        entries, volumes = xp.zeros((2, number), np.int64)
        first = xp.full(number, old.size, np.int64)
        launch(gpu_merging.build_totals(threads), -(-old.size // threads), threads,
               old.indptr, parts, old.volume, entries, volumes, first)  # fmt: skip
        rows = merged(old.rows, old.unit, parts, entries, every=False)
        return Network(*rows, 1, volumes, old.words[first])

    def connected(self, labels: Array) -> Array:
        """Name every vertex by the smallest it is connected to inside its community."""
        network, xp = self.network, self.xp
        threads, lanes = gpu_merging.THREADS, gpu_merging.LANES
        parent = xp.arange(network.size, dtype=self._index_type)
        roots = xp.empty_like(parent)
        kernel = gpu_merging.build_unite(threads, lanes, self._weighted, self._index_type)
        launch(kernel, -(-network.size * lanes // threads), threads,
               network.indptr, network.indices, network.weights, labels, parent)  # fmt: skip
        launch(gpu_merging.build_roots(threads), -(-network.size // threads), threads,
               parent, roots)  # fmt: skip
        return roots

    def _work(self, sweeps: int, draws: int) -> tuple[gpu_classes.Lists, gpu_best.Work, Array]:
        """Return lists and what blocks share, as a launch of so many sweeps takes them.

        Also the words that tell how it went: how many sweeps, and how many moved in each step.
        """
        steps, lists = sweeps * CLASSES, draws * gpu_classes.LISTS
        sizes = 1, 1, steps, lists, lists, 2 * draws * CLASSES
        cut = np.cumsum([0, *sizes]).tolist()
        words = self.xp.zeros(cut[-1], np.int64)
        arrived, _, moved, counts, cursors, rooms = (
            words[begin:end] for begin, end in pairwise(cut)
        )
        hubs = self.xp.empty((2, self._hubs), np.int64)
        return (
            gpu_classes.Lists(*self._members, counts, cursors, rooms, hubs[0], hubs[1]),
            gpu_best.Work(arrived, moved, *self._tables),
            words[1 : 2 + steps],
        )
