"""Who is evaluated by which path, in which order: a plan of one graph for a number of classes.

Vertices are listed by class and, inside a class, by falling degree, so that long rows start first
and short ones fill the gaps; where a row starts and ends is listed beside, so that a class reads
neighbouring memory. A path serves a range of degrees; warps draw tickets for runs of vertices.
The plan depends on the graph and the number of classes alone, and is read-only.

Where only so many entries may be at hand at a time, a class is cut into strips of neighbouring
vertices, and a strip is to the plan what a class is elsewhere: a group.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from glp_rapids.device import array_module, device_of, to_device, to_host
from glp_rapids.propagation.kernels.gpu.shared_memory import THREADS
from glp_rapids.propagation.kernels.gpu.votes import WARP_ENTRIES
from glp_rapids.propagation.schedule import class_numbers

# Warps read more at a time than blocks do, which wait for one another; but a small class would be
# over before a warp has read a long row. So a warp's rows have at most this share of a class.
SHARE_OF_WARP = 4096
HUB = 4096  # entries at least in a row that several blocks share
PARTS = 16  # the vertices are looked at in so many parts, for the sake of memory
PIECE = 8  # stretches of a block's threads, one entry a thread, in a piece of a hub
SMALL_PIECE = 5  # where all labels are handed over, which takes longer
# Slots of the hubs' tables at one time, unless one hub needs more: they stay in the second level.
BATCH_SLOTS = 1 << 22


class Bin(NamedTuple):
    """Degrees that warps serve in one way, and how many vertices a warp draws at a time."""

    largest_degree: int
    least: int  # vertices of a ticket
    most: int
    sparse: int  # at least so many where few are active: a warp looks at many at once


# Longest rows first, and what serves them.
WARP_BINS = (
    Bin(4096, 1, 2, 8),
    Bin(WARP_ENTRIES, 1, 8, 8),
    Bin(32, 4, 32, 32),
    Bin(16, 8, 32, 32),
    Bin(8, 32, 512, 32),
)
WARP_TABLE, WARP_REGISTERS, WHOLE_WARP, HALF_WARP, ONE_THREAD = range(len(WARP_BINS))
BINS = len(WARP_BINS)

# The columns of `Plan.groups`. Positions in the list where something begins:
HUBS = 0
BLOCK_ROWS = 1
WARP_ROWS = 2  # and, in further columns, each bin
SUBWARP_ROWS = WARP_ROWS + WHOLE_WARP
END = WARP_ROWS + BINS
# Tickets:
FIRST_TICKETS = END + 1  # of each bin, and the number of all
TICKET_SIZES = FIRST_TICKETS + BINS + 1  # vertices of a ticket of each bin
SPARSE = 2 * BINS + 1  # so many columns further on the same for when few are active
# Batches of hubs:
FIRST_BATCH = TICKET_SIZES + BINS + SPARSE
END_OF_BATCHES = FIRST_BATCH + 1
COLUMNS = END_OF_BATCHES + 1


@dataclass(frozen=True)
class Plan:
    """A graph's plan, on the device of the graph."""

    vertices: Any  # who has neighbours, group after group, by falling degree
    starts: Any  # int64: where their rows start
    degrees: Any  # as vertices
    groups: Any  # int64 [groups, COLUMNS]
    hubs: dict[str, Any]  # int64 arrays, the fields of `arguments.Hubs`
    table_slots: int  # of the hubs' tables in global memory
    entries_a_group: int  # about: classes are drawn by a hash
    strips: int = 1  # groups of a class
    buffer: int = 0  # entries of the largest group, where they have to be decoded


@dataclass(frozen=True)
class Limits:
    """What a plan is made for."""

    blocks: int  # that the device holds at once
    warps_per_block: int
    slots: int  # of a block's table in shared memory
    handed_over: int | None  # labels that a piece of a hub hands over; None: all
    pruned: bool = True  # whether a sketch spares a block to read a row again
    longest: int = WARP_BINS[WARP_TABLE].largest_degree  # of rows that a warp reads alone


def make_plan(
    indptr: Any,
    number_of_edges: int,
    dtype: Any,
    classes: int,
    limits: Limits,
    strips: int = 1,
    strip: Any = None,
) -> Plan:
    """List the vertices, of type ``dtype``, and cut the long rows; ``strip`` is each vertex's."""
    xp = array_module(indptr)
    groups = classes * strips
    entries = -(-number_of_edges // groups)
    # A block takes a row alone if its table has room for any labels, or if that takes no longer
    # than twice its share of the class.
    single = min(limits.slots * 3 // 4 - THREADS, HUB)
    while limits.pruned and single * limits.blocks < entries:
        single *= 2
    degrees = [0, *(bin.largest_degree for bin in reversed(WARP_BINS))]
    longest = WARP_ENTRIES << int(np.log2(max(entries // (WARP_ENTRIES * SHARE_OF_WARP), 1)))
    if not limits.pruned:
        longest = min(longest, limits.slots // limits.warps_per_block)
    degrees[-1] = min(degrees[-1], longest, limits.longest)
    while degrees[-1] < single:
        degrees.append(min(max(2 * degrees[-1], 1), single))
    key = _keys(indptr, classes, strips, strip, np.array(degrees), xp)
    bins = len(degrees) + 1
    counts = to_host(xp.bincount(key, minlength=groups * bins)).reshape(groups, bins)
    vertices, starts, degree = _listed(indptr, dtype, key, counts, xp)
    counts = counts[:, :-1]  # the last bin: no neighbours
    ends = np.cumsum(counts.ravel()).reshape(counts.shape)
    begins = ends - counts
    first_of_warps = counts.shape[1] - BINS
    positions = np.column_stack(
        [begins[:, 0], begins[:, 1], begins[:, first_of_warps:], ends[:, -1]]
    )
    tickets = _tickets(np.diff(positions[:, WARP_ROWS:]), limits)
    hubs, table_slots = _hubs(degree, positions, limits, xp)
    batches = hubs.pop("group_batches")
    columns = np.column_stack([positions, tickets, batches[:-1], batches[1:]])

    def on_device(array: np.ndarray) -> Any:
        return to_device(np.ascontiguousarray(array, dtype=np.int64), device_of(indptr))

    return Plan(
        vertices=vertices,
        starts=starts,
        degrees=degree,
        groups=on_device(columns),
        hubs={
            name: on_device(array if array.size else np.zeros(1)) for name, array in hubs.items()
        },
        table_slots=table_slots,
        entries_a_group=entries,
        strips=strips,
    )


def _keys(indptr: Any, classes: int, strips: int, strip: Any, degrees: np.ndarray, xp: Any) -> Any:
    """Return each vertex's place in the order: class, strip, degree bins from hubs down to none."""
    number_of_vertices, bins = indptr.size - 1, degrees.size + 1
    dtype = np.uint16 if classes * strips * bins <= 1 << 16 else np.int32
    key = xp.empty(number_of_vertices, dtype)
    limits = xp.asarray(degrees)
    for first, last in parts_of(0, number_of_vertices, number_of_vertices):
        degree = indptr[first + 1 : last + 1] - indptr[first:last]
        place = degrees.size - xp.searchsorted(limits, degree, side="left")
        if classes > 1:
            index = xp.arange(first, last, dtype=np.int64)
            place += class_numbers(index, classes).astype(np.int64) * (strips * bins)
        if strips > 1:
            place += strip[first:last].astype(np.int64) * bins
        key[first:last] = place
    return key


def _listed(indptr: Any, dtype: Any, key: Any, counts: np.ndarray, xp: Any) -> tuple[Any, Any, Any]:
    """List the vertices that have neighbours, their rows' starts and degrees.

    By key, and ascending in each: a part of the vertices at a time is sorted and handed out, for
    to sort all at once takes more memory than the lists.
    """
    bins = counts.shape[1]
    with_neighbours = counts.copy()
    with_neighbours[:, -1] = 0
    ends = np.cumsum(with_neighbours.ravel())
    number = int(ends[-1])
    following = xp.asarray(ends - with_neighbours.ravel())  # the next free place of each key
    vertices, starts = xp.empty(number, dtype), xp.empty(number, np.int64)
    degrees = xp.empty(number, dtype)
    for first, last in parts_of(0, key.size, key.size):
        part = key[first:last]
        order = xp.argsort(part, kind="stable")
        part = part[order]
        of_part = xp.bincount(part, minlength=counts.size)
        place = xp.arange(last - first) + (following - xp.cumsum(of_part) + of_part)[part]
        following += of_part
        keep = part % bins != bins - 1
        place, listed = place[keep], first + order[keep]
        vertices[place] = listed
        starts[place] = indptr[listed]
        degrees[place] = indptr[listed + 1] - indptr[listed]
    return vertices, starts, degrees


def parts_of(first: int, last: int, number_of_vertices: int) -> Iterator[tuple[int, int]]:
    """Cut a range so that what is made for a part is small beside what there is for all."""
    length = max(number_of_vertices // PARTS, 1 << 16)
    for begin in range(first, last, length):
        yield begin, min(begin + length, last)


def _tickets(counts: np.ndarray, limits: Limits) -> np.ndarray:
    """Number the tickets of each bin and size them, group by group, for many active and for few."""
    least, most, sparse = (np.array(sizes) for sizes in list(zip(*WARP_BINS, strict=True))[1:])
    warps = limits.blocks * limits.warps_per_block
    share = counts // (4 * warps)  # a few tickets a warp, to even out what rows cost
    size = np.clip(1 << np.log2(np.maximum(share, 1)).astype(np.int64), least, most)
    columns = []
    for sizes in (size, np.maximum(size, sparse)):
        number = -(-counts // sizes)
        columns += [np.zeros((len(counts), 1), np.int64), np.cumsum(number, axis=1), sizes]
    return np.column_stack(columns)


def _hubs(
    degree: Any, positions: np.ndarray, limits: Limits, xp: Any
) -> tuple[dict[str, np.ndarray], int]:
    """Cut hubs into pieces, and pack their tables into batches, never across groups."""
    spans = [np.arange(first, last) for first, last in positions[:, [HUBS, BLOCK_ROWS]]]
    of_hubs = np.concatenate(spans).astype(np.int64)
    degrees = to_host(degree[xp.asarray(of_hubs)]).astype(np.int64)
    stretches = -(-degrees // THREADS)
    if limits.handed_over is None:
        # All labels of a piece must fit the block's table.
        pieces = -(-stretches // min(limits.slots * 3 // 4 // THREADS - 1, SMALL_PIECE))
        labels = degrees + degrees // 2  # a full table is a slow one
    else:
        pieces = -(-stretches // PIECE)
        labels = 2 * pieces * (limits.handed_over + 1)
    slots = np.int64(1) << np.ceil(np.log2(np.maximum(labels, 2))).astype(np.int64)
    base, batch_of_hub, group_batches = np.zeros(degrees.size, np.int64), [], [0]
    hub = batches = most = 0
    for span in spans:
        used = 0
        for _ in span:
            if used and used + slots[hub] > BATCH_SLOTS:
                batches, used = batches + 1, 0
            base[hub] = used
            used += int(slots[hub])
            most = max(most, used)
            batch_of_hub.append(batches)
            hub += 1
        batches += used > 0
        group_batches.append(batches)
    of_piece = np.repeat(np.arange(degrees.size), pieces)
    first_piece = np.concatenate([[0], np.cumsum(pieces)])
    batch_of_piece = np.asarray(batch_of_hub, np.int64)[of_piece]
    return {
        "position": of_hubs,
        "base": base,
        "slots": slots,
        "first_piece": first_piece,
        "piece_hub": of_piece,
        "batch_pieces": np.searchsorted(batch_of_piece, np.arange(batches + 1)),
        "group_batches": np.asarray(group_batches),
    }, max(most, 1)
