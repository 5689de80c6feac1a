"""The GPU engine: one level of a multilevel run, each of its stages a launch or two."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from glp_rapids.common.cached_property import cached_property
from glp_rapids.common.fixed_point import sums_by_group
from glp_rapids.common.segments import segment_ids
from glp_rapids.communities.engines import small_levels
from glp_rapids.communities.kernels import (
    gpu_best,
    gpu_classes,
    gpu_global_tables,
    gpu_merging,
    gpu_moving,
    gpu_numbering,
    gpu_refining,
    gpu_store,
    gpu_tables,
    gpu_uniting,
)
from glp_rapids.communities.numbers import Numbered, Rest
from glp_rapids.communities.objective import Network, loops_of
from glp_rapids.communities.schedule import CLASSES, FEWER_CLASSES, MOST_SWEEPS
from glp_rapids.device import array_module, to_host
from glp_rapids.graph.rows import CSR
from glp_rapids.jit.cuda import bound
from glp_rapids.jit.launch import launch, launch_together

Array = Any
FEW_ENTRIES = 1 << 20  # whose hubs take little memory, however many there are
LENGTHS = gpu_classes.Lengths(np.int64(128), np.int64(1024), np.int64(1024))
ITEMS_A_BLOCK = 1 << 11  # vertices and entries: barriers of fewer blocks take less


class Partition(NamedTuple):
    """Which community each vertex is in; of each community how many vertices, and what volume."""

    labels: Array
    sizes: Array
    volumes: Array


def merged(
    rows: gpu_merging.Rows, vertices: gpu_merging.Vertices, number: int, *, every: bool
) -> tuple[Array, Array, Array]:
    """Return indptr, indices, in any order, and weights of parts; fill in their ``vertices``.

    ``every``: entries inside parts and those without weight count, too; ``vertices`` is left alone.
    """
    xp, index_type = array_module(rows.parts), rows.indices.dtype.type
    threads, size = gpu_merging.THREADS, rows.indices.size
    weighing = gpu_tables.weights_of(rows.indices, rows.weights)
    words = gpu_global_tables.words_of_slot(weighing.wide)
    wanted = (size + rows.parts.size) // ITEMS_A_BLOCK + 1
    long = size // (gpu_merging.LONGEST + 1) + 1
    # the tables of all parts take no more slots
    room = min(size + (size >> 1) + number, number * number)
    zeros = xp.zeros(words * room + number + 4, np.int64)
    counts = xp.empty(wanted + number + 1, np.int64)
    entries, done = zeros[words * room :][:number], zeros[words * room + number :]
    merging = gpu_merging.Merging(
        entries, counts[wanted:], zeros[: words * room],
        xp.empty(long, index_type), counts[:wanted], done,
    )  # fmt: skip
    kernel = gpu_merging.build_add(
        threads, gpu_merging.LANES, gpu_merging.LONGEST, gpu_merging.PIECE, weighing, every
    )  # fmt: skip
    launch_together(kernel, wanted, threads, rows, vertices, merging)
    _, _, total, blocks = to_host(done).tolist()
    indptr, indices = xp.empty(number + 1, np.int64), xp.empty(total, index_type)
    # a caller's have 64 bits
    weights = xp.empty(total, np.int64 if every or weighing.wide else np.int32)
    kernel = gpu_merging.build_write(threads, gpu_merging.EACH, weighing.wide)
    launch(kernel, blocks, threads, merging, indptr, indices, weights)
    return indptr, indices, weights


def quotient(rows: CSR, labels: Array, number: int, directed: bool) -> tuple[Array, Array, Array]:
    """Add up weights, integers or none, between labels: sources, destinations and sums.

    Each pair comes once, in any order. Edges inside a label count once, however often they are
    stored.
    """
    xp = array_module(labels)
    labels = labels.astype(rows.indices.dtype, copy=False)
    none = xp.empty(0, np.int64)
    weights = none if rows.weights is None else rows.weights.astype(np.int64, copy=False)
    given = gpu_merging.Rows(rows.indptr, rows.indices, weights, labels)
    vertices = gpu_merging.Vertices(
        none, none.view(np.uint64), labels[:0], labels, labels[:0], none, none.view(np.uint64),
        labels[:0],
    )  # fmt: skip
    indptr, destination, weights = merged(given, vertices, number, every=True)
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
        self.network, self.constant = network, constant
        self.xp = array_module(network.indptr)
        self._index_type = network.indices.dtype.type
        self._weights = gpu_tables.weights_of(network.indices, network.weights)
        size = network.size
        self._rows = bound((network.indptr, network.indices, network.weights))
        self._vertices = bound((network.volume, network.words))
        self._blocks = (network.indices.size + size) // ITEMS_A_BLOCK + 1

    @cached_property
    def _members(self) -> Any:
        return bound(tuple(self.xp.empty((2, self.network.size), self._index_type)))

    @cached_property
    def _hubs(self) -> tuple[tuple, tuple]:
        """The tables of hubs, and where these and their pieces are found."""
        network, xp = self.network, self.xp
        largest = int(LENGTHS.block)
        room = small_levels.room_of_hubs(network.indices.size, largest)
        if network.indices.size > FEW_ENTRIES:
            degree = network.indptr[1:] - network.indptr[:-1]
            room = int(((degree + (degree >> 1) + 1) * (degree > largest)).sum())
        hubs, pieces = small_levels.hubs_and_pieces(room, LENGTHS)
        words = gpu_global_tables.words_of_slot(self._weights.wide)
        numbers = xp.zeros(words * room + 2 * hubs, np.int64)
        of_hubs = xp.empty((2, hubs), np.int64)
        return bound((
            numbers[:hubs], numbers[hubs : 2 * hubs], numbers[2 * hubs :],
            xp.empty(room, self._index_type), xp.empty(pieces, np.int64),
            xp.empty(pieces, np.int64), xp.empty(pieces, np.uint64),
        )), bound((*of_hubs, xp.empty(pieces, self._index_type)))  # fmt: skip

    def rest(
        self, labels: Array, seed: int, depth: int, max_level: int, refining: bool
    ) -> Rest | None:
        """Do this level and all above it, if it is small enough; None: do one at a time.

        ``seed``: of this level on the way up; ``depth``: how many are below it.
        """
        if not small_levels.is_small(self.network):
            return None
        parameters = gpu_store.Parameters(
            np.int64(self.network.unit), np.int64(self.constant), np.uint64(seed), np.int64(depth),
            np.int64(max_level), np.int64(refining), small_levels.LENGTHS, np.int64(0),
        )  # fmt: skip
        return small_levels.done_together(self.network, labels, parameters)

    def partition(self, labels: Array) -> Partition:
        """Return a partition for one `move`, which changes its labels, a copy, or one `refine`.

        Its sizes and volumes are zeros, to which either adds.
        """
        xp, size = self.xp, self.network.size
        labels = labels.astype(self._index_type)
        return Partition(labels, xp.zeros(size, np.int64), xp.zeros(size, np.int64))

    def move(self, partition: Partition, seed: int, classes: int) -> Array:
        """Sweep until few vertices move; return what `swept` reads."""
        network, xp = self.network, self.xp
        state = gpu_moving.Moving(
            *self._rows, np.int64(network.unit), *self._vertices, np.int64(self.constant),
            *partition, xp.ones(network.size, np.uint8), partition.labels.copy(), np.uint64(seed),
        )  # fmt: skip
        lists, work, done = self._work(MOST_SWEEPS, 1, classes)
        kernel = gpu_moving.build(self._weights, self._index_type)
        launch_together(kernel, self._blocks, gpu_classes.THREADS, state, lists, work, done[:1])
        return done

    def swept(self, done: Array) -> list[int]:
        """Wait for a move; return how many vertices moved in each sweep."""
        swept, *moved = to_host(done).tolist()
        return [sum(moved[sweep * CLASSES :][:CLASSES]) for sweep in range(swept)]

    def refine(self, partition: Partition, seed: int, sweeps: int) -> Array:
        """Split each community into well-connected parts; return the part of each vertex."""
        network, xp = self.network, self.xp
        labels = xp.arange(network.size, dtype=self._index_type)
        state = gpu_refining.Refining(
            *self._rows, np.int64(network.unit), *self._vertices, np.int64(self.constant),
            partition.labels, partition.volumes, labels, xp.empty(network.size, np.uint8),
            network.volume.copy(), xp.zeros(network.size, np.int64),
            xp.zeros(network.size, np.int16), labels.copy(), np.uint64(seed),
        )  # fmt: skip
        lists, work, _ = self._work(sweeps, sweeps, FEWER_CLASSES)
        kernel = gpu_refining.build(self._weights, self._index_type)
        launch_together(
            kernel, self._blocks, gpu_classes.THREADS, state, lists, work, np.int64(sweeps)
        )
        return labels

    def numbered(self, labels: Array) -> gpu_numbering.Numbering:
        """Number communities, or parts, in the order of their first vertices; for `counted`."""
        xp, size = self.xp, self.network.size
        labels = labels.astype(self._index_type, copy=False)
        scratch = xp.empty((3, size), labels.dtype)
        words = xp.zeros(self._blocks + 2, np.int64)
        state = gpu_numbering.Numbering(
            labels, xp.empty_like(labels), *scratch, words[2:], words[:2]
        )
        threads = gpu_numbering.THREADS
        launch_together(gpu_numbering.build(threads), self._blocks, threads, state)
        return state

    def counted(self, state: gpu_numbering.Numbering) -> Numbered:
        """Wait for numbers, and tell how many there are."""
        _, number = to_host(state.done).tolist()
        return Numbered(state.numbers, state.firsts[:number])

    def contract(self, parts: Numbered, communities: Numbered) -> tuple[Network, Array]:
        """Return the network whose vertices are the parts, without loops; their communities."""
        old, xp, number = self.network, self.xp, parts.first.size
        vertices = gpu_merging.Vertices(
            old.volume, old.words, parts.first, communities.numbers, communities.first,
            xp.zeros(number, np.int64), xp.empty(number, np.uint64),
            xp.empty(number, self._index_type),
        )  # fmt: skip
        given = gpu_merging.Rows(
            old.indptr, old.indices, old.weights, parts.numbers
        )
        rows = merged(given, vertices, number, every=False)
        network = Network(*rows, old.unit, vertices.volumes, vertices.words_of_parts)
        return network, vertices.labels

    def connected(self, labels: Array) -> Array:
        """Name every vertex by the smallest it is connected to inside its community."""
        xp, size, threads = self.xp, self.network.size, gpu_uniting.THREADS
        parent = xp.arange(size, dtype=self._index_type)
        roots = xp.empty_like(parent)
        build = gpu_uniting.build_unite
        self._along_edges(build(threads, gpu_uniting.EACH, self._weights.listed, self._index_type),
                          labels, parent)  # fmt: skip
        launch(gpu_uniting.build_roots(threads), -(-size // threads), threads, parent, roots)
        return roots

    def crossing(self, labels: Array) -> int:
        """Add up the weight from one community to another, from both ends."""
        total = self.xp.zeros(1, np.int64)
        build = gpu_uniting.build_cross
        self._along_edges(build(gpu_uniting.THREADS, gpu_uniting.EACH, self._weights.listed),
                          labels, total)  # fmt: skip
        return int(total[0]) * self.network.unit

    def _along_edges(self, kernel: Any, labels: Array, found: Array) -> None:
        network, threads = self.network, gpu_uniting.THREADS
        edges = gpu_uniting.Edges(network.indptr, network.indices, network.weights, labels)
        blocks = -(-network.indices.size // (threads * gpu_uniting.EACH))
        if blocks:
            launch(kernel, blocks, threads, edges, found)

    def volumes(self, labels: Array) -> Array:
        """Add up the volumes of communities, by name."""
        total = self.xp.zeros(self.network.size, np.uint64)  # of int64 CuPy adds none at places
        self.xp.add.at(total, labels, self.network.volume.view(np.uint64))
        return total.view(np.int64)

    def _work(
        self, sweeps: int, draws: int, classes: int
    ) -> tuple[gpu_classes.Lists, gpu_best.Work, Array]:
        """Return lists and what blocks share, as a launch of so many sweeps takes them.

        Also the words that tell how it went: how many sweeps, and how many moved in each step.
        """
        steps, lists = sweeps * CLASSES, draws * gpu_classes.LISTS
        sizes = 1, 1, steps, lists, lists, draws * gpu_classes.ROOMS * CLASSES
        cut = np.cumsum([0, *sizes]).tolist()
        words = self.xp.zeros(cut[-1], np.int64)
        arrived, _, moved, counts, cursors, rooms = (
            words[begin:end] for begin, end in pairwise(cut)
        )
        tables, of_hubs = self._hubs
        return (
            gpu_classes.Lists(
                *self._members, counts, cursors, rooms, *of_hubs, np.int64(classes),
                LENGTHS,
            ),
            gpu_best.Work(arrived, moved, *tables),
            words[1 : 2 + steps],
        )
