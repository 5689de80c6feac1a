"""Compressed graphs: neighbours are decoded next to where they are counted.

As in CGLP+ (GLP, TKDE'24, section 5) the graph is never there as a whole. A warp that has short
rows decodes them into its slice of the block's table, a list a lane, and counts them from there.
Longer rows of a group (a class, or a strip of one) are decoded into a buffer, which stays in the
second-level cache unless the graph is large, while the group before is evaluated: lists of up to
one part by a lane each, of longer ones every part, as listed with the plan, so nobody walks through
a hub. A lane takes its time, even if there are few lists; hence the haste. When few are awake in a
large group it waits, and only theirs are decoded. Who changed has the list of its readers decoded
once more to wake them.

Entries come in no order, since votes do not mind; only where weights lie beside them they ascend,
and then all rows take the way of the long ones. So they do where the parts of lists are too short.

Under "packed" there is no buffer: longer rows too are decoded where they are counted, see
`auto_near`.
"""

from __future__ import annotations

from collections import namedtuple
from types import SimpleNamespace
from typing import Any

import numpy as np

from glp_rapids.compressed.format import neighbour_list, unordered
from glp_rapids.jit.cuda import cuda
from glp_rapids.jit.target import Target
from glp_rapids.propagation.kernels.gpu import read_packed
from glp_rapids.propagation.kernels.gpu.plan import BINS, BOUNDS
from glp_rapids.propagation.kernels.gpu.votes import ALL, LANES, THREADS, WARPS

# The compressed lists: bits, tables of codes, where each list begins; the parts of long lists by
# group: the position in the plan and the part; the place of each vertex's list and the vertex of
# each place; where each list's weights begin, and what they stand for if they are codes.
Stream = namedtuple(
    "Stream",
    "words tables offsets settings position part group_parts place order first_weight weights "
    "values",
)

ZERO = np.int64(0)
FETCHED = BOUNDS + 4  # rows before this one are too long for a warp's slice of the table


def store_named(out, place, entry):
    """Write the vertex of an entry: out is where to, and who is where."""
    out[0][np.uint64(place)] = out[1][np.uint64(entry)]


def mark(active, place, entry):
    """Wake a vertex, awake or not: a thread that asks waits for each answer before it reads on."""
    active[np.uint64(entry)] = 1


def mark_named(active, place, entry):
    """Wake the vertex of an entry."""
    active[0][np.uint64(active[1][np.uint64(entry)])] = 1


def _named(ordered: bool) -> tuple[Any, Any]:
    """Make what gives the sink of entries, and the list of a vertex."""

    @cuda.jit(device=True)
    def sink_of(sink, stream):
        """Give the sink, with the vertex of each place if lists are in an order of their own."""
        if ordered:
            return sink, stream.order
        return sink

    @cuda.jit(device=True)
    def stored(stream, v):
        """Give the list of a vertex."""
        if ordered:
            return np.int64(stream.place[np.uint64(v)])
        return np.int64(v)

    return sink_of, stored


def build(shared: SimpleNamespace, needed: Any, how: SimpleNamespace, target: Target) -> Any:
    """Make ``fetch``, ``unpack`` and ``clear`` for lists of one scheme.

    ``how``: whether lists are ``ordered`` otherwise than the vertices, ``weighted``, and have
    weights as codes (``coded``) or one for all (``equal``); and whether short rows are ``fused``:
    decoded where they are counted; or all rows are (``near``), for which nothing is to be fetched.
    """
    fused, how_near = how.fused, how.near
    index_type = shared.index_type
    ordered, weighted, coded, equal = how.ordered, how.weighted, how.coded, how.equal
    sink_of, stored = _named(ordered)
    in_order = neighbour_list.build(how.scheme, target)
    in_any = unordered.build(how.scheme, target, store_named if ordered else unordered.store)
    read_degree, part_bit = in_any.read_degree, in_any.part_bit
    list_in_order, part_in_order = in_order.read_list, in_order.read_part
    list_in_any, part_in_any = in_any.read_list, in_any.read_part

    @cuda.jit(device=True)
    def lay_beside(rows, stream, v, start, count, offset):
        """Name the neighbours as the vertices are, and lay their weights beside them."""
        if ordered:
            for i in range(count):
                place = np.uint64(start + i)
                rows.indices[place] = stream.order[np.uint64(rows.indices[place])]
        if equal:
            for i in range(count):
                rows.weights[np.uint64(start + i)] = stream.values[np.uint64(0)]
            return
        first = stream.first_weight[np.uint64(v)] + offset
        for i in range(count):
            weight = stream.weights[np.uint64(first + i)]
            if coded:
                weight = stream.values[np.uint64(weight)]
            rows.weights[np.uint64(start + i)] = weight

    @cuda.jit(device=True)
    def read_list(stream, v, bit, degree, indices, rows, start):
        """Decode a list of one part, which begins at a bit."""
        _, bit = read_degree(stream.words, stream.tables, bit, stream.settings)
        if weighted:
            list_in_order(
                stream.words, stream.tables, bit, v, degree, stream.settings, indices, start
            )
            lay_beside(rows, stream, v, start, degree, ZERO)
        else:
            list_in_any(
                stream.words, stream.tables, bit, v, degree, stream.settings,
                sink_of(indices, stream), start,
            )  # fmt: skip

    @cuda.jit(device=True)
    def fetch_part(position, v, part, shift, lists, stream, rows):
        """Decode one part of a longer list."""
        v, segment = stored(stream, v), stream.settings.segment
        begin = part * segment
        degree = np.int64(lists.degrees[np.uint64(position)])
        _, bit = read_degree(
            stream.words, stream.tables, stream.offsets[np.uint64(v)], stream.settings
        )
        bit = part_bit(stream.words, bit, degree, part, stream.settings)
        count = min(segment, degree - begin)
        start = shift + lists.starts[np.uint64(position)] + begin
        if weighted:
            part_in_order(
                stream.words, stream.tables, bit, v, count, stream.settings, rows.indices, start
            )
            lay_beside(rows, stream, v, start, count, begin)
        else:
            part_in_any(
                stream.words, stream.tables, bit, v, count, stream.settings,
                sink_of(rows.indices, stream), start,
            )  # fmt: skip

    @cuda.jit(device=True)
    def fetch(group, shift, everything, here, lists, stream, rows, run):
        """Decode a group into ``rows``, each list where the plan says, from ``shift`` on.

        Unless ``everything`` is wanted, only what is evaluated in this sweep.
        """
        lane = np.int32(cuda.laneid)
        # the first blocks have hubs to see to
        block = np.int64(cuda.gridDim.x - 1 - cuda.blockIdx.x)
        warp = block * WARPS + cuda.threadIdx.x // LANES
        warps = np.int64(cuda.gridDim.x) * WARPS
        segment = stream.settings.segment
        longest = max(segment, stream.settings.raw_below)  # of lists in one piece
        first_part = stream.group_parts[np.uint64(group)]
        end_of_parts = stream.group_parts[np.uint64(group + 1)]
        first = lists.meta[group, BOUNDS]
        last = lists.meta[group, FETCHED if fused else BOUNDS + BINS + 2]
        chunks_of_parts = (end_of_parts - first_part + LANES - 1) // LANES
        chunks = chunks_of_parts + (last - first + LANES - 1) // LANES
        chunk = warp
        while chunk < chunks:
            if chunk < chunks_of_parts:
                item = first_part + chunk * LANES + lane
                if item < end_of_parts:
                    position = stream.position[np.uint64(item)]
                    v = lists.vertices[np.uint64(position)]
                    if everything or needed(position, v, here, run):
                        fetch_part(position, v, stream.part[np.uint64(item)], shift, lists, stream,
                                   rows)  # fmt: skip
            else:
                position = first + (chunk - chunks_of_parts) * LANES + lane
                if position < last:
                    v = lists.vertices[np.uint64(position)]
                    degree = np.int64(lists.degrees[np.uint64(position)])
                    if degree <= longest and (everything or needed(position, v, here, run)):
                        start = shift + lists.starts[np.uint64(position)]
                        v = stored(stream, v)
                        bit = stream.offsets[np.uint64(v)]
                        read_list(stream, v, bit, degree, rows.indices, rows, start)
            chunk += warps

    near = read_packed.build(index_type, ordered, stored, target) if how.near else None
    read_near = near.read_list if how.near else None

    @cuda.jit(device=True)
    def unpack(stream, v, bit, degree, head, lane, base, here):
        """Decode a list a lane into a warp's slice of the table; give where each begins.

        And how many entries there are. The slice must have room for all. A list begins at ``bit``.
        """
        total = degree
        distance = np.int32(1)
        while distance < LANES:
            other = cuda.shfl_up_sync(ALL, total, distance)
            if lane >= distance:
                total = np.int32(total + other)
            distance = np.int32(2 * distance)
        # Who has no row gets another's: whatever is read there must be a vertex.
        start = np.int64(base)
        if degree > 0:
            start += np.int64(total - degree)
            v = stored(stream, v)
            if how_near:
                read_near(stream, here, head, bit, v, degree, np.int32(start))
            else:
                read_list(stream, v, bit, np.int64(degree), here.keys, here, start)
        cuda.syncwarp()
        return start, cuda.shfl_sync(ALL, total, LANES - 1)

    @cuda.jit(device=True)
    def clear(number, lane, base, here):
        """Leave the slice clean."""
        cuda.syncwarp()
        slot = np.int32(lane)
        while slot < number:
            here.keys[np.uint64(base + slot)] = index_type(-1)
            slot += np.int32(LANES)
        cuda.syncwarp()

    return SimpleNamespace(fetch=fetch, unpack=unpack, clear=clear, near=near)


def build_wake(how: SimpleNamespace, target: Target) -> Any:
    """Make what wakes the readers of vertices that changed, from compressed lists of readers."""
    sink_of, stored = _named(how.ordered)
    functions = unordered.build(how.scheme, target, mark_named if how.ordered else mark)
    read_degree, part_bit = functions.read_degree, functions.part_bit
    read_list, read_part = functions.read_list, functions.read_part

    @cuda.jit(device=True)
    def begin(readers, v):
        """Give the place of the list of a vertex, its degree and the bit behind that."""
        place = stored(readers, v)
        degree, bit = read_degree(
            readers.words, readers.tables, readers.offsets[np.uint64(place)], readers.settings
        )
        return place, degree, bit

    @cuda.jit(device=True)
    def wake(active, readers, v):
        """Wake who reads the label of v, unless the list is cut into parts: then give False."""
        place, degree, bit = begin(readers, v)
        if degree > max(readers.settings.segment, readers.settings.raw_below):
            return False
        read_list(
            readers.words, readers.tables, bit, place, degree, readers.settings,
            sink_of(active, readers), ZERO,
        )  # fmt: skip
        return True

    @cuda.jit(device=True)
    def wake_parts(active, readers, v):
        """Wake who reads the label of v; all threads of a block call this."""
        place, degree, bit = begin(readers, v)
        segment = readers.settings.segment
        part = np.int64(cuda.threadIdx.x)
        while part * segment < degree:
            read_part(
                readers.words, readers.tables,
                part_bit(readers.words, bit, degree, part, readers.settings), place,
                min(segment, degree - part * segment), readers.settings,
                sink_of(active, readers), ZERO,
            )  # fmt: skip
            part += THREADS

    @cuda.jit(device=True)
    def wake_readers(active, readers, here, v, differs):
        """Wake who reads the label of v, if v differs; all threads of a block call this."""
        if cuda.threadIdx.x == 0:
            here.long_rows[0] = 0
        cuda.syncthreads()
        if differs and not wake(active, readers, v):
            place = cuda.atomic.add(here.long_rows, 0, np.int32(1))
            here.long_first[place] = np.int64(v)
        cuda.syncthreads()
        for i in range(here.long_rows[0]):
            wake_parts(active, readers, here.long_first[i])
        cuda.syncthreads()

    return wake_readers
