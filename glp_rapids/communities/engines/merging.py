"""Contraction on a GPU: the rows of parts as rows of the next level, or as a caller's pairs."""

from __future__ import annotations

from typing import Any

import numpy as np

from glp_rapids.common.fixed_point import sums_by_group
from glp_rapids.common.segments import segment_ids
from glp_rapids.communities.kernels import (
    gpu_global_tables,
    gpu_merging,
    gpu_tables,
    gpu_windows,
    gpu_writing,
)
from glp_rapids.communities.objective import loops_of
from glp_rapids.device import array_module, to_host
from glp_rapids.graph.graph import Graph
from glp_rapids.jit import arena
from glp_rapids.jit.launch import launch, launch_together

Array = Any
ITEMS_A_BLOCK = 1 << 11  # vertices and entries: barriers of fewer blocks take less


class Merge:
    """The rows of parts, on their way.

    ``most``: of at most so many parts; ``numbered``: how many, for kernels. ``done``: three words
    for these, zeros. ``every``: entries inside parts and those without weight count, too, and the
    ``vertices`` are left alone, else filled in. ``ahead``: write the rows in the same launch, with
    as much room as the entries take now, which the rows keep.
    """

    def __init__(
        self, rows: gpu_windows.Rows, vertices: gpu_merging.Vertices, most: int,
        numbered: Array, done: Array, *, every: bool = False, ahead: bool = False,
    ) -> None:  # fmt: skip
        self._xp, self._rows, size = array_module(rows.indptr), rows, rows.indices.size
        self._weighing = gpu_tables.weights_of(rows.indices, rows.weights)
        self._every, self._ahead = every, ahead
        wide, threads = self._weighing.wide, gpu_merging.THREADS
        wanted = (size + rows.indptr.size) // ITEMS_A_BLOCK + 1
        # the tables of all parts take no more slots
        room = min(size + (size >> 1) + most, most * most)
        zeros = arena.carve(self._xp, {
            "entries": (np.int64, most),
            "table": (np.int64, gpu_global_tables.words_of_slot(wide) * room),
        }, zeros=True)  # fmt: skip
        others = arena.carve(
            self._xp, {"offsets": (np.int64, most + 1), "counts": (np.int64, wanted)}
        )
        self._merging = gpu_merging.Merging(
            numbered, zeros["entries"], others["offsets"], zeros["table"], others["counts"], done
        )
        self._written = self._room(most + 1, size) if ahead else self._room(0, 0)
        kernel = gpu_merging.build_add(threads, gpu_writing.EACH, self._weighing, every)
        launch_together(kernel, wanted, threads, rows, vertices, self._merging, self._written)

    def _room(self, offsets: int, entries: int) -> gpu_writing.Written:
        # a caller's weights have 64 bits
        weight = np.int64 if self._every or self._weighing.wide else np.int32
        return gpu_writing.Written(**arena.carve(self._xp, {
            "indptr": (np.int64, offsets), "indices": (self._rows.indices.dtype, entries),
            "weights": (weight, entries),
        }))  # fmt: skip

    def rows(self, parts: int, total: int, blocks: int) -> tuple[Array, Array, Array]:
        """Return indptr, indices, in any order, and weights, of what was read of the launch."""
        if not self._ahead:
            self._written = self._room(parts + 1, total)
            kernel = gpu_writing.build_write(
                gpu_merging.THREADS, gpu_writing.EACH, self._weighing.wide
            )
            launch(kernel, blocks, gpu_merging.THREADS, self._merging, self._written)
        indptr, indices, weights = map(arena.as_array, self._written)
        return indptr[: parts + 1], indices[:total], weights[:total]


def quotient(
    rows: Graph, labels: Array, number: int, directed: bool
) -> tuple[Array, Array, Array]:
    """Add up weights, integers or none, between labels: sources, destinations and sums.

    Each pair comes once, in any order. Edges inside a label count once, however often they are
    stored.
    """
    xp = array_module(labels)
    labels = labels.astype(rows.indices.dtype, copy=False)
    none = xp.empty(0, np.int64)
    weights = none if rows.weights is None else rows.weights.astype(np.int64, copy=False)
    given = gpu_windows.Rows(rows.indptr, rows.indices, weights, labels)
    vertices = gpu_merging.Vertices(
        none, none.view(np.uint64), labels[:0], labels, labels[:0], none, none.view(np.uint64),
        labels[:0],
    )  # fmt: skip
    numbered, done = xp.asarray([0, number]), xp.zeros(3, np.int64)
    merge = Merge(given, vertices, number, numbered, done, every=True)
    _, total, blocks = to_host(done).tolist()
    indptr, destination, weights = merge.rows(number, total, blocks)
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
