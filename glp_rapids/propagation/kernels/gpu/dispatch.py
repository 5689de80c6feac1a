"""The evaluation of a class by the whole grid: who takes which row, and by which path.

Blocks draw tickets for long rows first, then warps draw tickets for the rest, so nobody waits for
a hub. What a warp cannot finish in its slice of the table is put off, and its block takes it.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from glp_rapids.jit.cuda import cuda
from glp_rapids.jit.target import Target
from glp_rapids.propagation.compile_program import Compiled
from glp_rapids.propagation.kernels.gpu import (
    block_per_row,
    decode_buffer,
    hub_merge,
    read_packed,
    subwarp_per_row,
    thread_per_row,
)
from glp_rapids.propagation.kernels.gpu.plan import (
    BATCHES,
    BINS,
    BOUNDS,
    FIRST_TICKETS,
    TICKET_SIZES,
)
from glp_rapids.propagation.kernels.gpu.votes import (
    ALL,
    DISTINCT,
    EVERYBODY,
    EXPLORING,
    LANES,
    LAYOUT,
    REVISIT_TIED,
    SHIFT,
    SHORT,
    TICKETS,
    WAKING,
    WARPS,
    Rows,
)

ROWS_OF_FEW = 3  # bins of whole warps, of 32 lanes, of 16 lanes come before
DEFERRED = 512  # rows of a warp that did not fit its slice of the table, a block

# What a block does together in a class: hubs and long rows, then what its warps put off.
HUBS, PUT_OFF, DONE = range(3)


def build(
    compiled: Compiled,
    shared: SimpleNamespace,
    meet: Any,
    compressed: SimpleNamespace | None = None,
    target: Target | None = None,
) -> SimpleNamespace:
    """Make ``evaluate``, ``fetch`` if rows are to be, and ``fill_tables`` if there are any.

    The whole grid calls them together.
    """
    keeps_score = not compiled.traits.default_update

    @cuda.jit(device=True)
    def needed(position, v, here, run):
        """Tell whether v is to be evaluated in this sweep."""
        if here.now[EVERYBODY] != 0 or run.active[np.uint64(v)] != 0:
            return True
        return here.now[REVISIT_TIED] != 0 and run.tied[np.uint64(position)] != 0

    fetching = SimpleNamespace(fetch=None, unpack=None, clear=None, near=None)
    fused, shifted, near = False, False, False
    if compressed is not None:
        fetching = decode_buffer.build(shared, needed, compressed, target)
        fused, near = compressed.fused, compressed.near
        shifted = not near
    unpack, clear = fetching.unpack, fetching.clear
    reading = fetching.near if near else read_packed.build_plain()
    read_names, head_of = reading.read_names, getattr(reading, "head", None)
    few4, few8 = thread_per_row.build_few(shared, 4), thread_per_row.build_few(shared, 8)
    lanes, short = (
        subwarp_per_row.build_lanes(shared),
        subwarp_per_row.build_short(shared, reading.read_short),
    )
    warp_row = subwarp_per_row.build_warp(shared, read_names, keeps_score)
    bounded = shared.online and not keeps_score
    block_tools = hub_merge.build_block(shared, bounded)
    wide = block_per_row.build(shared, block_tools, read_names, bounded)
    hand_in = block_tools.hand_in
    last_of_hub = hub_merge.build_last(shared, block_tools) if bounded else None
    collect = None if bounded else hub_merge.build_collect(shared, block_tools)
    plain, slice_slots = compiled.traits.plain, shared.slice
    index_type, score_type = shared.index_type, shared.score_type

    @cuda.jit(device=True)
    def decided(position, v, label, score, tied, current, here, run):
        """Write down the outcome of one vertex."""
        if here.now[EXPLORING] != 0:
            run.tied[np.uint64(position)] = tied
        if here.now[WAKING] != 0 and run.active[np.uint64(v)] != 0:
            run.active[np.uint64(v)] = 0
        if label >= 0 and not (plain and label == current):
            run.winner[np.uint64(position)] = label
            if keeps_score:
                run.winner_score[np.uint64(position)] = score

    @cuda.jit(device=True)
    def block_item(
        position, piece, here, lists, tables, hubs, pieces, run, rows, stream, state, numbers
    ):
        """Evaluate a row, or a piece of a hub (piece >= 0), with all threads of a block."""
        hub, base, room = np.int64(-1), np.int64(0), np.int64(0)
        if piece >= 0:
            hub = hubs.piece_hub[np.uint64(piece)]
            position = hubs.position[np.uint64(hub)]
        v = lists.vertices[np.uint64(position)]
        start = lists.starts[np.uint64(position)]
        if shifted:
            start += here.now[SHIFT]
        length = np.int64(lists.degrees[np.uint64(position)])
        if not needed(position, v, here, run):
            return
        share, shares = np.int64(0), np.int64(1)
        if piece >= 0:
            base, room = hubs.base[np.uint64(hub)], hubs.slots[np.uint64(hub)]
            share = piece - hubs.first_piece[np.uint64(hub)]
            shares = hubs.first_piece[np.uint64(hub + 1)] - hubs.first_piece[np.uint64(hub)]
        current = index_type(state.labels[np.uint64(v)])
        last = True
        while True:
            label, score, tied = wide(
                v, start, length, hub, piece, share, shares, base, room, here, current, tables,
                pieces, rows, stream, state, numbers,
            )  # fmt: skip
            if hub < 0:
                break
            if not bounded:
                if here.now[DISTINCT] != 0:
                    hand_in(piece, label, score, tied, pieces)
                cuda.syncthreads()  # the table is wiped before the next piece is counted
                return  # `collected` goes on
            last, known, label, score, tied = last_of_hub(
                v, start, length, hub, piece, label, score, tied, here, current, tables, hubs,
                pieces, rows, state, numbers,
            )  # fmt: skip
            if known:
                break
            hub, share, shares = np.int64(-1), np.int64(0), np.int64(1)
        # All the pieces of a hub have asked whether v is awake: it may be put to sleep.
        if last and cuda.threadIdx.x == 0:
            decided(position, v, label, score, tied, current, here, run)

    @cuda.jit(device=True)
    def collected(piece, here, lists, tables, hubs, pieces, run, state, numbers):
        """Evaluate one part of the table of a hub whose pieces are all in it."""
        hub = hubs.piece_hub[np.uint64(piece)]
        position = hubs.position[np.uint64(hub)]
        v = lists.vertices[np.uint64(position)]
        if needed(position, v, here, run):
            current = index_type(state.labels[np.uint64(v)])
            last, label, score, tied = collect(
                v, hub, piece, here, current, tables, hubs, pieces, state, numbers
            )
            if last and cuda.threadIdx.x == 0:
                decided(position, v, label, score, tied, current, here, run)

    @cuda.jit(device=True)
    def waits(here):
        """Give the number of rows that wait for their block, the same to all lanes."""
        number = np.int32(0)
        if cuda.threadIdx.x % LANES == 0:
            number = cuda.atomic.add(here.waiting, 0, np.int32(0))
        return cuda.shfl_sync(ALL, number, 0)

    @cuda.jit(device=True)
    def warp_ticket(ticket, meta, here, lists, run, rows, stream, state, numbers):
        """Evaluate the vertices of one ticket with one warp."""
        lane = np.int32(cuda.threadIdx.x % LANES)
        base = np.int32((cuda.threadIdx.x // LANES) * slice_slots)
        layout = meta + here.now[LAYOUT]
        kind = np.int32(0)
        while ticket >= here.meta[layout + FIRST_TICKETS + kind + 1]:
            kind = np.int32(kind + 1)
        size = here.meta[layout + TICKET_SIZES + kind]
        begin = here.meta[meta + BOUNDS + 2 + kind]
        end = here.meta[meta + BOUNDS + 3 + kind]
        begin += (ticket - here.meta[layout + FIRST_TICKETS + kind]) * size
        end = min(begin + size, end)
        together = np.int32(LANES)
        if fused and kind == ROWS_OF_FEW - 1:  # as many as there is room for
            together = np.int32(slice_slots // LANES)
        elif fused and kind == ROWS_OF_FEW:
            together = np.int32(min(2 * slice_slots // LANES, LANES))
        last = end
        while begin < last:
            end = min(begin + together, last)
            position = begin + lane
            v, current = index_type(0), index_type(-1)
            start, degree, wanted = np.int64(0), np.int32(0), False
            if position < end:
                v = lists.vertices[np.uint64(position)]
                start = lists.starts[np.uint64(position)]
                if shifted and (not fused or kind <= ROWS_OF_FEW - 2):
                    start += here.now[SHIFT]
                degree = np.int32(lists.degrees[np.uint64(position)])
                # Read in any case: it comes together with what tells whether it is needed.
                current = index_type(state.labels[np.uint64(v)])
                wanted = needed(position, v, here, run)
            if cuda.any_sync(ALL, wanted):
                if not wanted:
                    start, degree = np.int64(0), np.int32(0)
                label, score, tied = index_type(-1), score_type(0), False
                at_hand, entries, head = rows, np.int32(0), np.int32(0)
                if near and degree > 0:
                    head = head_of(stream, start)
                if fused:
                    at_hand = Rows(rows.indptr, here.keys, rows.weights)
                    if kind > ROWS_OF_FEW - 2:
                        start, entries = unpack(stream, v, start, degree, head, lane, base, here)
                if kind > ROWS_OF_FEW:
                    if cuda.any_sync(ALL, degree > 4):
                        label, score, tied = few8(
                            v, start, degree, current, at_hand, state, here, numbers
                        )
                    else:
                        label, score, tied = few4(
                            v, start, degree, current, at_hand, state, here, numbers
                        )
                elif kind > ROWS_OF_FEW - 2:
                    width = np.int32(16 if kind == ROWS_OF_FEW else 32)
                    label, score, tied = lanes(
                        v, start, degree, current, lane, width, at_hand, state, here, numbers
                    )
                else:
                    left = cuda.ballot_sync(ALL, wanted)
                    while left != 0:
                        source = np.int32(cuda.ffs(left) - 1)
                        left &= np.uint32(left - np.uint32(1))
                        its_v = cuda.shfl_sync(ALL, v, source)
                        its_start = cuda.shfl_sync(ALL, start, source)
                        its_degree = cuda.shfl_sync(ALL, degree, source)
                        its_label = cuda.shfl_sync(ALL, current, source)
                        its_head = np.int32(0)
                        if near:
                            its_head = cuda.shfl_sync(ALL, head, source)
                        failed = False
                        if its_degree <= SHORT:
                            of_row, its_score, its_tie = short(
                                its_v, its_start, its_degree, its_head, its_label, lane, base, rows,
                                stream, state, here, numbers,
                            )  # fmt: skip
                        else:
                            of_row, its_score, its_tie, failed = warp_row(
                                its_v, its_start, its_degree, its_label, lane, base, rows, stream,
                                state, here, numbers,
                            )  # fmt: skip
                        if lane == source:
                            label, score, tied = of_row, its_score, its_tie
                            if failed:
                                wanted = False
                                place = cuda.atomic.add(here.waiting, 0, np.int32(1))
                                here.deferred[place] = np.int32(
                                    position - here.meta[meta + BOUNDS + 2]
                                )
                if fused:
                    clear(entries, lane, base, here)
                if wanted:
                    decided(position, v, label, score, tied, current, here, run)
            begin += together

    @cuda.jit(device=True)
    def evaluate(goal, meta, here, lists, tables, hubs, pieces, run, rows, stream, state, numbers):
        """Evaluate a class with the whole grid; return the goal of the next barrier."""
        thread, block, blocks = cuda.threadIdx.x, cuda.blockIdx.x, np.int64(cuda.gridDim.x)
        batch = here.meta[meta + BATCHES]
        # The first ticket of a warp is its own number, which saves small classes a round trip; but
        # blocks that have a long row to read leave the first tickets to the others.
        ticket, given = np.int64(-1), np.int64(0)
        stage = HUBS
        while stage != DONE:
            # What the block does together: pieces of hubs and long rows, or what warps put off.
            first_piece, number_of_pieces, items = np.int64(0), np.int64(0), np.int64(0)
            stride, item, drawing = np.int64(1), np.int64(0), False
            first_row = here.meta[meta + BOUNDS + 1]
            last_batch = here.meta[meta + BATCHES + 1] - 1
            # Long rows come with the last hubs, or after them if those need two steps.
            with_rows = batch >= last_batch if bounded else batch > last_batch
            if stage == HUBS:
                if batch <= last_batch:
                    first_piece = hubs.batch_pieces[np.uint64(batch)]
                    number_of_pieces = hubs.batch_pieces[np.uint64(batch + 1)] - first_piece
                items = number_of_pieces
                stride, item = blocks, np.int64(block)
                if with_rows:
                    items += here.meta[meta + BOUNDS + 2] - first_row
                    drawing = items > blocks
            else:
                first_row = here.meta[meta + BOUNDS + 2]
                items = np.int64(here.waiting[0])
            if stage == HUBS and with_rows:
                given = max(blocks - items, 0) * WARPS
                if block >= items:
                    ticket = (block - items) * WARPS + thread // LANES
            while item < items:
                if drawing and thread == 0:
                    here.drawn[0] = blocks + cuda.atomic.add(
                        run.drawn, np.uint64(here.now[TICKETS]), np.int64(1)
                    )
                position, piece = first_row + item - number_of_pieces, np.int64(-1)
                if stage != HUBS:
                    position = first_row + here.deferred[np.uint64(item)]
                elif item < number_of_pieces:
                    piece = first_piece + item
                block_item(
                    position, piece, here, lists, tables, hubs, pieces, run, rows, stream, state,
                    numbers,
                )  # fmt: skip
                item += stride
                if drawing:
                    cuda.syncthreads()
                    item = here.drawn[0]
                    cuda.syncthreads()
            if stage == HUBS and not with_rows:
                meet(run, goal)
                goal += blocks
                if not bounded:
                    item = np.int64(block)
                    while item < number_of_pieces:
                        collected(
                            first_piece + item, here, lists, tables, hubs, pieces, run, state,
                            numbers,
                        )  # fmt: skip
                        item += blocks
                    if batch < last_batch:
                        meet(run, goal)
                        goal += blocks
                batch += 1  # the tables of these hubs are free again
                continue
            cuda.syncthreads()
            if thread == 0:
                here.waiting[0] = 0
            cuda.syncthreads()
            tickets = here.meta[meta + here.now[LAYOUT] + FIRST_TICKETS + BINS]
            if ticket < 0:
                if thread % LANES == 0:
                    ticket = given + cuda.atomic.add(
                        run.drawn, np.uint64(here.now[TICKETS] + 1), np.int64(1)
                    )
                ticket = cuda.shfl_sync(ALL, ticket, 0)
            while ticket < tickets:
                # A warp defers at most 32 rows a ticket.
                if waits(here) > DEFERRED - WARPS * LANES:
                    break
                following = tickets
                if tickets > given and thread % LANES == 0:
                    following = given + cuda.atomic.add(
                        run.drawn, np.uint64(here.now[TICKETS] + 1), np.int64(1)
                    )
                warp_ticket(ticket, meta, here, lists, run, rows, stream, state, numbers)
                cuda.syncwarp()
                # It was asked for before, and is here by now.
                ticket = cuda.shfl_sync(ALL, following, 0)
            stage = PUT_OFF
            more = cuda.syncthreads_or(np.int32(ticket < tickets))
            if more == 0 and here.waiting[0] == 0:
                stage = DONE
            cuda.syncthreads()
        return goal

    return SimpleNamespace(
        evaluate=evaluate,
        fetch=None if near else fetching.fetch,
        fill_tables=reading.fill_tables if near else None,
    )
