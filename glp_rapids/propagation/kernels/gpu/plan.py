"""Who is evaluated by which path, in which order: a plan of one graph for a number of classes.

Vertices are listed by class and, inside a class, by falling degree, so that long rows start first
and short ones fill the gaps; where a row starts and ends is listed beside, so that a class reads
neighbouring memory. A path serves a range of degrees; warps draw tickets for runs of vertices.
Classes that merge when little changes lie side by side in each range of degrees, so that a merged
class is to the kernel what a class is: a group, of another level.
The plan depends on the graph and the number of classes alone, and is read-only.

Where only so many entries may be at hand at a time, a class is cut into strips of neighbouring
vertices, and a strip is to the plan what a class is elsewhere: a group.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from glp_rapids.common.hashing import CLASS_SEED, mix
from glp_rapids.device import array_module, device_of, to_device, to_host
from glp_rapids.graph.id_words import IdWords
from glp_rapids.jit.parallel_for import each
from glp_rapids.jit.target import Target
from glp_rapids.propagation import ties
from glp_rapids.propagation.kernels.gpu import hub_pieces
from glp_rapids.propagation.kernels.gpu.shared_memory import LANES, THREADS
from glp_rapids.propagation.kernels.gpu.votes import WARP_ENTRIES
from glp_rapids.propagation.schedule import spans_of

# Warps read more at a time than blocks do, which wait for one another; but a small class would be
# over before a warp has read a long row. So a warp's rows have at most this share of a class.
SHARE_OF_WARP = 4096
HUB = 4096  # entries at least in a row that several blocks share
PARTS = 16  # the vertices are looked at in so many parts, for the sake of memory


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

# Ranges of degrees, the order inside a class: hubs, rows of one block, and the bins of warps.
HUBS, BLOCK_ROWS, WARP_ROWS = range(3)
SUBWARP_ROWS = WARP_ROWS + WHOLE_WARP
RANGES = WARP_ROWS + BINS

# Vertices of each range that a warp updates together: so many at the most, fewer if there are not
# enough for all warps, but not less than lanes where rows are short. Where they are long, those who
# read a vertex are many, and are told by a warp for one vertex after the other: with 32 of them to
# a warp, updates of a Kronecker graph waited 45 microseconds for a few blocks.
LOOKED_AT = 4  # by a lane
MOST_TOGETHER = (4, 8, 8, 16, LANES, 2 * LANES, LOOKED_AT * LANES)

# The columns of `Plan.groups`. First, by range, the position in the list where it begins; then
# where it ends:
ENDS = RANGES
LAST_END = ENDS + RANGES - 1
# Tickets:
FIRST_TICKETS = ENDS + RANGES  # of each bin, and the number of all
TICKET_SIZES = FIRST_TICKETS + BINS + 1  # vertices of a ticket of each bin
SPARSE = 2 * BINS + 1  # so many columns further on the same for when few are active
# Batches of hubs:
FIRST_BATCH = TICKET_SIZES + BINS + SPARSE
END_OF_BATCHES = FIRST_BATCH + 1
FIRST_CHUNKS = END_OF_BATCHES + 1  # that warps update, of each range, and the number of all
UPDATED_TOGETHER = FIRST_CHUNKS + RANGES + 1  # vertices of a chunk of each range
COLUMNS = UPDATED_TOGETHER + RANGES

# The columns of `Plan.levels`: how many classes are one, the first row of `Plan.groups` and the one
# behind the last, and how many rows make one class.
SPAN, FIRST_ROW, END_ROW, ROWS_A_CLASS = range(4)


@dataclass(frozen=True)
class Plan:
    """A graph's plan, on the device of the graph."""

    vertices: Any  # who has neighbours, group after group, by falling degree
    starts: Any  # int64: where their rows start
    degrees: Any  # as vertices
    groups: Any  # int64 [rows, COLUMNS]: a row a group of every level
    levels: Any  # int64 [levels, LEVEL_COLUMNS]: how a sweep goes through the groups
    hubs: dict[str, Any]  # int64 arrays, the fields of `arguments.Hubs`
    number_of_hubs: int
    table_slots: int  # of the hubs' tables in global memory
    entries_a_group: int  # about: classes are drawn by a hash
    has_long_rows: bool  # that blocks read
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


class Listed(NamedTuple):
    """Vertices in the order of a plan, and where the ranges of degrees of each group are."""

    vertices: Any
    starts: Any
    degrees: Any
    begins: list[np.ndarray]  # by level: [groups, RANGES]
    ends: list[np.ndarray]


class Listing(NamedTuple):
    """What the functions that sort the vertices work on, a vertex or a position each."""

    indptr: Any
    strip: Any  # of each vertex, if classes have strips
    degrees: Any  # the largest of each bin, ascending from 0
    place: Any  # of each bin: its range and what is finer, with room for the class between them
    id_words: IdWords
    shape: Any  # int64: classes, classes that merge into one, strips, ranges, finer bins, bits
    words: Any  # int64: place in the order, vertex
    vertices: Any
    starts: Any
    listed_degrees: Any


def make_plan(
    indptr: Any,
    number_of_edges: int,
    dtype: Any,
    classes: int,
    id_words: IdWords,
    limits: Limits,
    strips: int = 1,
    strip: Any = None,
    merges: bool = True,
) -> Plan:
    """List the vertices, of type ``dtype``, and cut the long rows; ``strip`` is each vertex's.

    ``merges``: groups of several classes have rows of their own; else they are gone through.
    """
    xp = array_module(indptr)
    entries = -(-number_of_edges // (classes * strips))
    degrees, ranges = bins(entries, limits)
    spans = spans_of(classes)
    coarse = spans[-1] if merges else 1
    vertices, starts, degree, ends = listed_vertices(
        indptr, dtype, degrees, ranges, id_words, (classes, coarse, strips), strip, xp
    )
    begins, ends = range_ends(ends, spans if merges else [1], classes)
    rows = np.cumsum([0, *map(len, begins)])
    if merges:
        levels = [(span, *row, 1) for span, row in zip(spans, pairwise(rows), strict=True)]
    else:
        levels = [(span, 0, classes * strips, span * strips) for span in spans]
    listed = Listed(vertices, starts, degree, begins, ends)
    return assembled(listed, np.array(levels), limits, entries, strips)


def assembled(
    listed: Listed, levels: np.ndarray, limits: Limits, entries: int, strips: int
) -> Plan:
    """Make the plan of listed vertices: tickets, pieces of hubs, and what is updated together."""
    begins, ends = listed.begins, listed.ends
    of_hubs = ([bound[:, HUBS] for bound in bounds] for bounds in (begins, ends))
    cut = hub_pieces.cut(listed.degrees, *of_hubs, limits.slots, limits.handed_over)
    begins, ends = np.concatenate(begins), np.concatenate(ends)
    tickets = _tickets((ends - begins)[:, WARP_ROWS:], limits)
    chunks = _chunks(ends - begins, limits)
    columns = np.column_stack([begins, ends, tickets, cut.batches, chunks])
    arrays = {"groups": columns, "levels": levels, **cut.arrays}
    on_device = moved_together(arrays, device_of(listed.vertices))
    return Plan(
        vertices=listed.vertices,
        starts=listed.starts,
        degrees=listed.degrees,
        groups=on_device.pop("groups"),
        levels=on_device.pop("levels"),
        hubs=on_device,
        number_of_hubs=cut.hubs,
        table_slots=cut.table_slots,
        entries_a_group=entries,
        has_long_rows=bool((begins < ends)[:, [HUBS, BLOCK_ROWS]].any()),
        strips=strips,
    )


def bins(entries: int, limits: Limits) -> tuple[list[int], list[int]]:
    """Return the largest degree of each bin, ascending from 0, and the range of each but the first.

    Rows for one block have several bins, so that long ones come first; what is beyond is a hub.
    """
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
    of_blocks = len(degrees) - 1 - BINS
    return degrees, [*range(WARP_ROWS + BINS - 1, BLOCK_ROWS, -1), *[BLOCK_ROWS] * of_blocks, HUBS]


def listed_vertices(indptr, dtype, degrees, ranges, id_words, shape, strip, xp):
    """List the vertices that have neighbours, their rows' starts and degrees, and where keys end.

    Vertices are in the order of a key of (merged class, strip, range, class, finer bin, index):
    so a range of a class, and of neighbouring classes that merge, is one stretch of the list.
    Key and index are one word, so that one sort of whole words does it.
    """
    number_of_vertices = indptr.size - 1
    classes, coarse, strips = shape
    finer = max(ranges.count(BLOCK_ROWS), 1)
    within = [ranges[i:].count(range) - 1 for i, range in enumerate(ranges)]  # long rows first
    place = [range * coarse * finer + fine for range, fine in zip(ranges, within, strict=True)]
    bits = max(number_of_vertices - 1, 1).bit_length()
    keys = -(-classes // coarse) * strips * RANGES * coarse * finer
    device = device_of(indptr)
    small = moved_together(
        {
            "degrees": np.array(degrees),
            "place": np.array([0, *place]),
            "shape": np.array([classes, coarse, strips, finer, bits, keys]),
            "bounds": np.arange(1, keys + 1) << bits,
        },
        device,
    )
    bounds = small.pop("bounds")
    work = Listing(
        **small,
        indptr=indptr,
        strip=small["shape"].view(np.uint16)[:1] if strip is None else strip,
        id_words=id_words,
        words=xp.empty(number_of_vertices, np.int64),
        vertices=xp.empty(0, dtype),
        starts=xp.empty(0, np.int64),
        listed_degrees=xp.empty(0, dtype),
    )
    each(functions, "", "make_word", number_of_vertices, work, device)
    work.words.sort()
    ends = to_host(xp.searchsorted(work.words, bounds))
    number = int(ends[-1])
    # One allocation, for the sake of those who keep no pool.
    starts, vertices = 8 * number, np.dtype(dtype).itemsize * number
    memory = xp.empty(starts + 2 * vertices, np.uint8)
    work = work._replace(
        starts=memory[:starts].view(np.int64),
        vertices=memory[starts : starts + vertices].view(dtype),
        listed_degrees=memory[starts + vertices :].view(dtype),
    )
    each(functions, "", "list_word", number, work, device)
    ends = ends.reshape(-(-classes // coarse), strips, RANGES, coarse, finer)
    return work.vertices, work.starts, work.listed_degrees, ends


def range_ends(
    ends: np.ndarray, spans: list[int], classes: int
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Return where ranges begin and end, by level, group and range, from where keys end."""
    begins = np.concatenate([[0], ends.ravel()[:-1]]).reshape(ends.shape)
    strips = ends.shape[1]

    def grouped(keys: np.ndarray, span: int) -> np.ndarray:
        return np.moveaxis(keys, -1, 1).reshape(-1, RANGES)[: -(-classes // span) * strips]

    return (
        [grouped(begins[..., ::span, 0], span) for span in spans],
        [grouped(ends[..., span - 1 :: span, -1], span) for span in spans],
    )


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


def _chunks(counts: np.ndarray, limits: Limits) -> np.ndarray:
    """Number the chunks of each range that warps update, and size them, group by group."""
    warps, most = limits.blocks * limits.warps_per_block, np.array(MOST_TOGETHER)
    rounds = -(-counts // (warps * LANES))
    size = np.clip(rounds * LANES, 1, most)
    numbers = np.cumsum(-(-counts // size), axis=1)
    return np.column_stack([np.zeros((len(counts), 1), np.int64), numbers, size])


def moved_together(arrays: dict[str, np.ndarray], device: Any) -> dict[str, Any]:
    """Copy int64 arrays to a device at once; of an empty one comes a zero."""
    arrays = {
        name: array if array.size else np.zeros((1, *array.shape[1:]))
        for name, array in arrays.items()
    }
    ends = np.cumsum([0, *(array.size for array in arrays.values())])
    moved = to_device(
        np.concatenate([array.ravel() for array in arrays.values()]).astype(np.int64), device
    )
    return {
        name: moved[first:last].reshape(array.shape)
        for (name, array), (first, last) in zip(arrays.items(), pairwise(ends), strict=True)
    }


def parts_of(first: int, last: int, number_of_vertices: int) -> Iterator[tuple[int, int]]:
    """Cut a range so that what is made for a part is small beside what there is for all."""
    length = max(number_of_vertices // PARTS, 1 << 16)
    for begin in range(first, last, length):
        yield begin, min(begin + length, last)


@functools.cache
def functions(_scheme: str, target: Target) -> dict[str, Any]:
    """Compile the functions that take a vertex, and a position in the list, and a `Listing`."""
    hashed, word_of = target.compile(mix), target.compile(ties.word_of)

    def make_word(v, work):
        classes, coarse, strips, finer, bits, keys = (
            work.shape[0], work.shape[1], work.shape[2], work.shape[3], work.shape[4],
            work.shape[5],
        )  # fmt: skip
        degree = work.indptr[v + 1] - work.indptr[v]
        key = keys
        if degree > 0:
            bin = 1
            while bin < work.degrees.size and degree > work.degrees[bin]:
                bin += 1
            word = word_of(v, work.id_words.first, work.id_words.words)
            of_class = np.int64(hashed(word, CLASS_SEED) % np.uint64(classes))
            group = (of_class // coarse) * strips
            if strips > 1:
                group += work.strip[v]
            key = group * (RANGES * coarse * finer) + work.place[bin] + of_class % coarse * finer
        work.words[v] = (key << bits) | v

    def list_word(position, work):
        bits = work.shape[4]
        v = work.words[position] & ((np.int64(1) << bits) - 1)
        start = work.indptr[v]
        work.vertices[position] = v
        work.starts[position] = start
        work.listed_degrees[position] = work.indptr[v + 1] - start

    return {
        "make_word": target.device_function(make_word),
        "list_word": target.device_function(list_word),
    }
