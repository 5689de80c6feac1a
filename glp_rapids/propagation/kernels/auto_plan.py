"""Who is evaluated by which path, in which order: a plan of one graph for a number of classes.

Vertices are listed by class and, inside a class, by falling degree, so that long rows start first
and short ones fill the gaps. A path serves a range of degrees; warps draw tickets for runs of
vertices. The plan depends on the graph alone, is read-only, and is kept on the graph.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from glp_rapids.device import array_module, to_device, to_host
from glp_rapids.propagation import scalar

FEW, HALF_WARP, WARP, SHORT, LONG = 8, 16, 32, 128, 1024
CHUNK = 1 << 22  # vertices whose class and degree are looked at at one time

# Bins of degree that warps serve, longest rows first: the largest degree, and how many vertices
# a ticket is at least and at most.
TICKETS = ((LONG, 1, 2), (SHORT, 1, 8), (WARP, 4, 32), (HALF_WARP, 8, 32), (FEW, 32, 512))
BINS = len(TICKETS)


@dataclass(frozen=True)
class Plan:
    """A graph's plan. ``c`` is the number of classes, ``b`` that of degree bins."""

    vertices: Any  # who has neighbours, class after class, by falling degree
    bounds: Any  # int64 [c, b + 2] positions in vertices: hubs, a block's vertices, b bins, end
    tickets: Any  # int64 [c, b + 1] first ticket of each bin
    ticket_size: Any  # int64 [c, b] vertices a ticket
    hub: dict[str, Any]  # int64 arrays about the hubs, see `_hubs`
    table_slots: int  # of the hubs' tables in global memory
    private_slots: int  # of each block's own table in global memory
    entries_a_class: int  # about: classes are drawn by a hash


@dataclass(frozen=True)
class Limits:
    """What a plan is made for: the machine, and how much scratch there may be."""

    blocks: int
    warps_per_block: int
    slots: int  # of a block's table in shared memory
    scratch_bytes: int  # a vertex, for tables in global memory
    slot_bytes: int


def make_plan(rows: Any, classes: int, limits: Limits) -> Plan:
    """List the vertices and cut the long rows."""
    xp = array_module(rows.indptr)
    number_of_vertices = rows.indptr.size - 1
    scratch = limits.scratch_bytes * number_of_vertices // limits.slot_bytes
    # A block takes a row alone if its table, or a table of its own in global memory, holds it.
    half = limits.slots // 2
    single = half
    while single < 16 * half and 2 * single * limits.blocks <= scratch // 2:
        single *= 2
    degrees = [0, *(limit for limit, _, _ in reversed(TICKETS))]
    while degrees[-1] < single:
        degrees.append(min(max(2 * degrees[-1], 1), single))
    degrees = np.array(degrees)
    bins = degrees.size + 1
    key = _keys(rows.indptr, classes, degrees, xp)
    counts = to_host(xp.bincount(key, minlength=classes * bins)).reshape(classes, bins)
    vertices = _listed(key, counts, classes, rows.indices.dtype, xp)
    counts = counts[:, :-1]  # the last bin: no neighbours
    ends = np.cumsum(counts.ravel()).reshape(counts.shape)
    begins = ends - counts
    first_of_warps = counts.shape[1] - BINS
    bounds = np.column_stack([begins[:, 0], begins[:, 1], begins[:, first_of_warps:], ends[:, -1]])
    sizes, tickets = _tickets(np.diff(bounds[:, 2:]), limits)
    hub, table_slots = _hubs(
        rows, vertices, bounds, limits, scratch - single * limits.blocks * (single > half), xp
    )
    device = rows.device

    def there(array: np.ndarray) -> Any:
        return to_device(np.ascontiguousarray(array, dtype=np.int64), device)

    return Plan(
        vertices=vertices,
        bounds=there(bounds),
        tickets=there(tickets),
        ticket_size=there(sizes),
        hub={
            name: there(array if array.size else np.zeros(1)) for name, array in hub.items()
        },
        table_slots=table_slots,
        private_slots=single if single > half else 1,
        entries_a_class=-(-rows.indices.size // classes),
    )


def _keys(indptr: Any, classes: int, degrees: np.ndarray, xp: Any) -> Any:
    """Give each vertex's place in the order: class, then degree bins from hubs down to none."""
    number_of_vertices, bins = indptr.size - 1, degrees.size + 1
    dtype = np.uint16 if classes * bins <= 1 << 16 else np.int32
    key = xp.empty(number_of_vertices, dtype)
    limits = xp.asarray(degrees)
    for first in range(0, number_of_vertices, CHUNK):
        last = min(first + CHUNK, number_of_vertices)
        degree = indptr[first + 1 : last + 1] - indptr[first:last]
        place = degrees.size - xp.searchsorted(limits, degree, side="left")
        if classes > 1:
            index = xp.arange(first, last, dtype=np.int64)
            group = scalar.mix_array(index, scalar.CLASS_SEED) % np.uint64(classes)
            place += group.astype(np.int64) * bins
        key[first:last] = place
    return key


def _listed(key: Any, counts: np.ndarray, classes: int, dtype: Any, xp: Any) -> Any:
    """List the vertices that have neighbours by key; a stable sort keeps them ascending."""
    bins = counts.shape[1]
    order = xp.argsort(key, kind="stable")
    if not counts[:, -1].any():
        return order.astype(dtype)
    ends = np.cumsum(counts.ravel()).reshape(counts.shape)
    parts = [
        order[int(ends[c, -1] - counts[c].sum()) : int(ends[c, bins - 2])].astype(dtype)
        for c in range(classes)
    ]
    return xp.concatenate(parts)


def _tickets(counts: np.ndarray, limits: Limits) -> tuple[np.ndarray, np.ndarray]:
    """Give the vertices a ticket, and the first ticket of each bin, class by class."""
    least = np.array([low for _, low, _ in TICKETS])
    most = np.array([high for _, _, high in TICKETS])
    warps = limits.blocks * limits.warps_per_block
    share = counts // (4 * warps)  # a few tickets a warp, to even out what rows cost
    size = np.clip(1 << np.log2(np.maximum(share, 1)).astype(np.int64), least, most)
    number = -(-counts // size)
    return size, np.column_stack([np.zeros(len(counts), np.int64), np.cumsum(number, axis=1)])


def _hubs(
    rows: Any, vertices: Any, bounds: np.ndarray, limits: Limits, scratch: int, xp: Any
) -> tuple[dict[str, np.ndarray], int]:
    """Cut hubs into pieces, and pack their tables into batches, never across classes."""
    positions = np.concatenate(
        [np.arange(first, last) for first, last in bounds[:, :2]] or [np.empty(0, np.int64)]
    ).astype(np.int64)
    listed = vertices[to_device(positions, rows.device)]
    degree = to_host(rows.indptr[listed + 1] - rows.indptr[listed]).astype(np.int64)
    longest = int(degree.max()) if degree.size else 0
    slots = np.ones(degree.size, np.int64) << np.ceil(np.log2(np.maximum(degree, 2))).astype(
        np.int64
    )
    scratch = max(scratch, int(slots.max()) if degree.size else 0)
    piece = limits.slots * 3 // 4  # all its labels fit the block's table
    pieces = -(-degree // piece)
    base, batch_of_hub, class_batches = np.zeros(degree.size, np.int64), [], [0]
    hub = batches = 0
    for first, last in bounds[:, :2]:
        used = 0
        for _ in range(int(last - first)):
            if used and used + slots[hub] > scratch:
                batches, used = batches + 1, 0
            base[hub] = used
            used += int(slots[hub])
            batch_of_hub.append(batches)
            hub += 1
        batches += used > 0
        class_batches.append(batches)
    of_piece = np.repeat(np.arange(degree.size), pieces)
    first_piece = np.concatenate([[0], np.cumsum(pieces)])
    batch_of_piece = np.asarray(batch_of_hub, np.int64)[of_piece]
    return {
        "position": positions,
        "base": base,
        "slots": slots,
        "first_piece": first_piece,
        "piece_hub": of_piece,
        "piece_start": (np.arange(of_piece.size) - first_piece[of_piece]) * piece,
        "piece_length": np.full(1, piece),
        "class_batches": np.asarray(class_batches),
        "batch_pieces": np.searchsorted(batch_of_piece, np.arange(batches + 1)),
    }, (min(scratch, int(slots.sum())) if longest else 1)
