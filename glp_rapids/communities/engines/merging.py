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
)
from glp_rapids.communities.objective import loops_of
from glp_rapids.device import array_module, to_host
from glp_rapids.graph.rows import CSR
from glp_rapids.jit import arena
from glp_rapids.jit.launch import launch, launch_together

Array = Any
ITEMS_A_BLOCK = 1 << 11  # vertices and entries: barriers of fewer blocks take less


def merged(
    rows: gpu_windows.Rows, vertices: gpu_merging.Vertices, number: int, *, every: bool
) -> tuple[Array, Array, Array]:
    """Return indptr, indices, in any order, and weights of parts; fill in their ``vertices``.

    ``every``: entries inside parts and those without weight count, too; ``vertices`` is left alone.
    """
    xp, index_type = array_module(rows.parts), rows.indices.dtype.type
    threads, size = gpu_merging.THREADS, rows.indices.size
    weighing = gpu_tables.weights_of(rows.indices, rows.weights)
    wanted = (size + rows.parts.size) // ITEMS_A_BLOCK + 1
    # the tables of all parts take no more slots
    room = min(size + (size >> 1) + number, number * number)
    zeros = arena.carve(xp, {
        "done": (np.int64, 3), "entries": (np.int64, number),
        "table": (np.int64, gpu_global_tables.words_of_slot(weighing.wide) * room),
    }, zeros=True)  # fmt: skip
    others = arena.carve(xp, {
        "offsets": (np.int64, number + 1), "counts": (np.int64, wanted),
    })  # fmt: skip
    merging = gpu_merging.Merging(
        zeros["entries"], others["offsets"], zeros["table"], others["counts"], zeros["done"],
    )  # fmt: skip
    kernel = gpu_merging.build_add(threads, weighing, every)
    launch_together(kernel, wanted, threads, rows, vertices, merging)
    _, total, blocks = to_host(arena.as_array(zeros["done"])).tolist()
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
    given = gpu_windows.Rows(rows.indptr, rows.indices, weights, labels)
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
