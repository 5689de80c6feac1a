"""Compressed graphs: neighbours are decoded next to where they are counted.

As in CGLP+ (GLP, TKDE'24, section 5) the graph is never there as a whole. Rows of up to 32 entries
are decoded by the warp that counts them into its slice of the block's table, a list a thread.
Longer rows of a group (a class, or a strip of one) are decoded into a buffer, which stays in the
second-level cache unless the graph is large, while the group before is evaluated: lists of up to
one part by a thread each, of longer ones every part, as listed with the plan, so nobody walks
through a hub. A thread takes its time, even if there are few lists; hence the haste. When few are
active in a large group it waits, and only theirs are decoded. Who changed has the list of its
readers decoded once more to activate them. No shared memory but the table.

Entries come in no order, since votes do not mind; only where weights lie beside them they ascend,
and then all rows go through the buffer. So they do where the parts of lists are too small.

Under "packed" there is no buffer: longer rows too are decoded where they are counted, see
`read_packed`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from glp_rapids.compressed.format import neighbour_list, unordered
from glp_rapids.jit.cuda import cuda
from glp_rapids.jit.target import Target
from glp_rapids.propagation.kernels.gpu import read_packed_list
from glp_rapids.propagation.kernels.gpu.active_set import needed
from glp_rapids.propagation.kernels.gpu.arguments import Decoding
from glp_rapids.propagation.kernels.gpu.plan import HUBS, LAST_END, SUBWARP_ROWS
from glp_rapids.propagation.kernels.gpu.shared_memory import LANES, THREADS, WARPS
from glp_rapids.propagation.kernels.gpu.update import Activation
from glp_rapids.propagation.kernels.gpu.votes import ALL

ZERO = np.int64(0)


@dataclass(frozen=True)
class DecodeFunctions:
    """Device functions that decode lists of one scheme."""

    fill_buffer: Any  # with the long rows of a group
    unpack: Any  # short rows into a warp's slice of the table
    clear: Any  # that again


def store_vertex(out, place, entry):
    """Write the vertex of an entry: out is where to, and who is where."""
    out[0][np.uint64(place)] = out[1][np.uint64(entry)]


def activate(slack, place, entry):
    """Take from the slack of a vertex."""
    cuda.atomic.add(slack, np.uint64(entry), np.int32(-1))


def activate_vertex(slack, place, entry):
    """Take from the slack of the vertex of an entry."""
    cuda.atomic.add(slack[0], np.uint64(slack[1][np.uint64(entry)]), np.int32(-1))


def build_list_of(ordered: bool) -> Any:
    """Make what gives the list of a vertex; ``ordered``: lists are in an order of their own."""

    @cuda.jit(device=True)
    def list_of(lists, v):
        if ordered:
            return np.int64(lists.place[np.uint64(v)])
        return np.int64(v)

    return list_of


def _build_sink_of(ordered: bool) -> Any:
    """Make what gives the sink of entries, with the vertex of each list where that is needed."""

    @cuda.jit(device=True)
    def sink_of(sink, lists):
        if ordered:
            return sink, lists.order
        return sink

    return sink_of


def build(index_type: Any, decoding: Decoding, target: Target) -> DecodeFunctions:
    """Make the functions for lists of one scheme."""
    fused, bufferless, ordered = decoding.fused, decoding.bufferless, decoding.ordered
    weighted, coded, equal = decoding.weighted, decoding.coded, decoding.equal
    sink_of, list_of = _build_sink_of(ordered), build_list_of(ordered)
    in_order = neighbour_list.build(decoding.scheme, target)
    in_any = unordered.build(decoding.scheme, target, store_vertex if ordered else unordered.store)
    read_degree, part_bit = in_any.read_degree, in_any.part_bit
    list_in_order, part_in_order = in_order.read_list, in_order.read_part
    list_in_any, part_in_any = in_any.read_list, in_any.read_part

    @cuda.jit(device=True)
    def lay_weights(rows, lists, v, start, count, offset):
        """Name the neighbours as the vertices are, and lay their weights beside them."""
        if ordered:
            for i in range(count):
                place = np.uint64(start + i)
                rows.indices[place] = lists.order[np.uint64(rows.indices[place])]
        if equal:
            for i in range(count):
                rows.weights[np.uint64(start + i)] = lists.values[np.uint64(0)]
            return
        first = lists.first_weight[np.uint64(v)] + offset
        for i in range(count):
            weight = lists.weights[np.uint64(first + i)]
            if coded:
                weight = lists.values[np.uint64(weight)]
            rows.weights[np.uint64(start + i)] = weight

    @cuda.jit(device=True)
    def read_list(lists, v, bit, degree, indices, rows, start):
        """Decode a list of one part, which begins at a bit."""
        _, bit = read_degree(lists.words, lists.tables, bit, lists.settings)
        if weighted:
            list_in_order(lists.words, lists.tables, bit, v, degree, lists.settings, indices, start)
            lay_weights(rows, lists, v, start, degree, ZERO)
        else:
            list_in_any(
                lists.words, lists.tables, bit, v, degree, lists.settings,
                sink_of(indices, lists), start,
            )  # fmt: skip

    @cuda.jit(device=True)
    def buffer_part(position, v, part, buffer_start, plan, lists, rows):
        """Decode one part of a longer list."""
        v, segment = list_of(lists, v), lists.settings.segment
        begin = part * segment
        degree = np.int64(plan.degrees[np.uint64(position)])
        _, bit = read_degree(lists.words, lists.tables, lists.offsets[np.uint64(v)], lists.settings)
        bit = part_bit(lists.words, bit, degree, part, lists.settings)
        count = min(segment, degree - begin)
        start = buffer_start + plan.starts[np.uint64(position)] + begin
        if weighted:
            part_in_order(
                lists.words, lists.tables, bit, v, count, lists.settings, rows.indices, start
            )
            lay_weights(rows, lists, v, start, count, begin)
        else:
            part_in_any(
                lists.words, lists.tables, bit, v, count, lists.settings,
                sink_of(rows.indices, lists), start,
            )  # fmt: skip

    @cuda.jit(device=True)
    def fill_buffer(group, buffer_start, everything, shared, plan, lists, rows, run):
        """Decode a group into ``rows``, each list where the plan says, from ``buffer_start`` on.

        Unless ``everything`` is wanted, only what is evaluated in this sweep.
        """
        lane = np.int32(cuda.laneid)
        # the first blocks have hubs to see to
        block = np.int64(cuda.gridDim.x - 1 - cuda.blockIdx.x)
        warp = block * WARPS + cuda.threadIdx.x // LANES
        warps = np.int64(cuda.gridDim.x) * WARPS
        segment = lists.settings.segment
        longest = max(segment, lists.settings.raw_below)  # of lists in one piece
        first_part = lists.group_parts[np.uint64(group)]
        end_of_parts = lists.group_parts[np.uint64(group + 1)]
        first = plan.groups[group, HUBS]
        last = plan.groups[group, SUBWARP_ROWS if fused else LAST_END]
        chunks_of_parts = (end_of_parts - first_part + LANES - 1) // LANES
        chunks = chunks_of_parts + (last - first + LANES - 1) // LANES
        chunk = warp
        while chunk < chunks:
            if chunk < chunks_of_parts:
                item = first_part + chunk * LANES + lane
                if item < end_of_parts:
                    position = lists.position[np.uint64(item)]
                    v = plan.vertices[np.uint64(position)]
                    if everything or needed(position, v, shared.sweep, run):
                        buffer_part(position, v, lists.part[np.uint64(item)], buffer_start, plan,
                                    lists, rows)  # fmt: skip
            else:
                position = first + (chunk - chunks_of_parts) * LANES + lane
                if position < last:
                    v = plan.vertices[np.uint64(position)]
                    degree = np.int64(plan.degrees[np.uint64(position)])
                    if degree <= longest and (everything or needed(position, v, shared.sweep, run)):
                        start = buffer_start + plan.starts[np.uint64(position)]
                        v = list_of(lists, v)
                        bit = lists.offsets[np.uint64(v)]
                        read_list(lists, v, bit, degree, rows.indices, rows, start)
            chunk += warps

    read_packed = read_packed_list.build(index_type, ordered, target) if bufferless else None

    @cuda.jit(device=True)
    def unpack(lists, v, bit, degree, head, lane, base, shared):
        """Decode a list a thread into a warp's slice of the table, which has room for all.

        A list begins at ``bit``. Returns where each begins, and how many entries there are.
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
            v = list_of(lists, v)
            if bufferless:
                read_packed(lists, shared, head, bit, v, degree, np.int32(start))
            else:
                read_list(lists, v, bit, np.int64(degree), shared.table.labels, None, start)
        cuda.syncwarp()
        return start, cuda.shfl_sync(ALL, total, LANES - 1)

    @cuda.jit(device=True)
    def clear(number, lane, base, table):
        """Leave the slice clean."""
        cuda.syncwarp()
        slot = np.int32(lane)
        while slot < number:
            table.labels[np.uint64(base + slot)] = index_type(-1)
            slot += np.int32(LANES)
        cuda.syncwarp()

    return DecodeFunctions(fill_buffer, unpack, clear)


def build_activate(decoding: Decoding, target: Target) -> Activation:
    """Make what activates the readers of vertices that changed, from compressed lists."""
    sink_of, list_of = _build_sink_of(decoding.ordered), build_list_of(decoding.ordered)
    functions = unordered.build(
        decoding.scheme, target, activate_vertex if decoding.ordered else activate
    )
    read_degree, part_bit = functions.read_degree, functions.part_bit
    read_list, read_part = functions.read_list, functions.read_part

    @cuda.jit(device=True)
    def begin(readers, v):
        """Return the place of the list of a vertex, its degree and the bit behind that."""
        place = list_of(readers, v)
        degree, bit = read_degree(
            readers.words, readers.tables, readers.offsets[np.uint64(place)], readers.settings
        )
        return place, degree, bit

    @cuda.jit(device=True)
    def activate_list(slack, readers, v):
        """Activate who reads the label of v; return False if the list has several parts."""
        place, degree, bit = begin(readers, v)
        if degree > max(readers.settings.segment, readers.settings.raw_below):
            return False
        read_list(
            readers.words, readers.tables, bit, place, degree, readers.settings,
            sink_of(slack, readers), ZERO,
        )  # fmt: skip
        return True

    @cuda.jit(device=True)
    def activate_parts(slack, readers, v, first, step):
        """Activate who reads the label of v, by every step-th part of the list."""
        place, degree, bit = begin(readers, v)
        segment = readers.settings.segment
        part = first
        while part * segment < degree:
            read_part(
                readers.words, readers.tables,
                part_bit(readers.words, bit, degree, part, readers.settings), place,
                min(segment, degree - part * segment), readers.settings,
                sink_of(slack, readers), ZERO,
            )  # fmt: skip
            part += step

    @cuda.jit(device=True)
    def tell(run, readers, shared, v, differs):
        """Activate who reads the label of v, if v differs."""
        queue = shared.readers
        left = differs and not activate_list(run.slack, readers, v)
        if left:
            place = cuda.atomic.add(queue.number, 0, np.int32(1))
            if place < THREADS:
                queue.first[place] = np.int64(v)
                left = False
        cuda.syncwarp()
        by_warp = cuda.ballot_sync(ALL, left)
        while by_warp != 0:
            source = np.int32(cuda.ffs(by_warp) - 1)
            by_warp &= np.uint32(by_warp - np.uint32(1))
            activate_parts(
                run.slack, readers, np.int64(cuda.shfl_sync(ALL, v, source)),
                np.int64(cuda.laneid), np.int64(LANES),
            )  # fmt: skip

    @cuda.jit(device=True)
    def tell_rest(run, readers, shared):
        """Activate who reads the labels of vertices that warps left to the block."""
        queue = shared.readers
        cuda.syncthreads()
        for i in range(min(queue.number[0], THREADS)):
            activate_parts(
                run.slack, readers, queue.first[i], np.int64(cuda.threadIdx.x), np.int64(THREADS)
            )
        cuda.syncthreads()

    return Activation(tell, tell_rest)
