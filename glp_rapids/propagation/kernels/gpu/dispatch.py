"""The evaluation of a class by the whole grid: who takes which row, and by which path.

Blocks draw long rows and pieces of hubs first, then warps draw tickets for the rest, so nobody
waits for a hub. What a warp cannot finish in its slice of the table is deferred to its block.

Degrees: up to 8 a thread a row, 16 and 32 a sub-warp, 128 a warp with a row in registers, 4096 a
warp (less in small classes), then a block, and pieces of hubs from 4096 on, see `plan`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from glp_rapids.jit.cuda import cuda
from glp_rapids.jit.target import Target
from glp_rapids.propagation.compile_program import Compiled
from glp_rapids.propagation.kernels.gpu import (
    block_per_row,
    decode_buffer,
    hub_merge,
    packed_numbers,
    read_packed,
    read_plain,
    subwarp_per_row,
    thread_per_row,
    warp_registers,
    warp_table,
)
from glp_rapids.propagation.kernels.gpu.arguments import Decoding, Rows
from glp_rapids.propagation.kernels.gpu.plan import (
    BINS,
    BLOCK_ROWS,
    END_OF_BATCHES,
    FIRST_BATCH,
    FIRST_TICKETS,
    HALF_WARP,
    ONE_THREAD,
    TICKET_SIZES,
    WARP_ROWS,
    WHOLE_WARP,
)
from glp_rapids.propagation.kernels.gpu.shared_memory import DEFERRED_ROWS, LANES, SWEEP, WARPS
from glp_rapids.propagation.kernels.gpu.votes import ALL, WARP_ENTRIES, VoteFunctions

# What a block does together in a group: hubs and long rows, then what its warps deferred.
LONG_ROWS, DEFERRED, DONE = range(3)


@dataclass(frozen=True)
class Evaluation:
    """Device functions that the whole grid calls together."""

    evaluate: Any  # a group
    fill_buffer: Any | None  # with the rows of a group, if there is a buffer
    load_classes: Any | None  # into shared memory, if lists are read by warps


def build(
    compiled: Compiled,
    functions: VoteFunctions,
    grid_barrier: Any,
    target: Target,
    decoding: Decoding | None = None,
) -> Evaluation:
    """Make the functions of one program, for compressed lists if ``decoding`` says how."""
    keeps_score = not compiled.traits.default_update

    @cuda.jit(device=True)
    def needed(position, v, sweep, run):
        """Tell whether v is to be evaluated in this sweep."""
        if sweep[SWEEP.everybody] != 0 or run.active[np.uint64(v)] != 0:
            return True
        return sweep[SWEEP.revisit_tied] != 0 and run.tied[np.uint64(position)] != 0

    index_type, _, score_type = functions.types
    plain, warp_slots = compiled.traits.plain, functions.table.warp_slots
    fused, buffered, bufferless = False, False, False
    unpack = clear = fill_buffer = first_bits = None
    read_entries, read_row = read_plain.read_entries, read_plain.read_row
    if decoding is not None:
        fused, bufferless = decoding.fused, decoding.bufferless
        buffered = not bufferless
        decode = decode_buffer.build(index_type, needed, decoding, target)
        unpack, clear, fill_buffer = decode.unpack, decode.clear, decode.fill_buffer
    if bufferless:
        reader = read_packed.build(
            index_type, decoding.ordered, decode_buffer.build_list_of(decoding.ordered), target
        )
        read_entries, read_row = reader.read_entries, reader.read_row
        first_bits = reader.first_bits
    thread_row4, thread_row8 = (thread_per_row.build(functions, size) for size in (4, 8))
    subwarp_row = subwarp_per_row.build(functions)
    register_row = warp_registers.build(functions, read_row)
    table_row = warp_table.build(functions, read_entries, keeps_score)
    prunes = functions.growing and not keeps_score
    hub_functions = hub_merge.build(functions, prunes)
    hand_in = hub_functions.hand_in
    block_row = block_per_row.build(functions, hub_functions, read_entries, prunes)
    decide = hub_merge.build_decide(functions, hub_functions) if prunes else None
    collect = None if prunes else hub_merge.build_collect(functions, hub_functions)

    @cuda.jit(device=True)
    def note(position, v, label, score, tied, current, sweep, run):
        """Write down the outcome of one vertex, and take it out of the active set."""
        if sweep[SWEEP.exploring] != 0:
            run.tied[np.uint64(position)] = tied
        if sweep[SWEEP.activates] != 0 and run.active[np.uint64(v)] != 0:
            run.active[np.uint64(v)] = 0
        if label >= 0 and not (plain and label == current):
            run.winner[np.uint64(position)] = label
            if keeps_score:
                run.winner_score[np.uint64(position)] = score

    @cuda.jit(device=True)
    def block_item(
        position, piece, plan, tables, hubs, pieces, run, rows, lists, state, shared, numbers
    ):
        """Evaluate a row, or a piece of a hub (piece >= 0), with all threads of a block."""
        hub, base, slots = np.int64(-1), np.int64(0), np.int64(0)
        if piece >= 0:
            hub = hubs.piece_hub[np.uint64(piece)]
            position = hubs.position[np.uint64(hub)]
        v = plan.vertices[np.uint64(position)]
        start = plan.starts[np.uint64(position)]
        if buffered:
            start += shared.sweep[SWEEP.buffer_start]
        length = np.int64(plan.degrees[np.uint64(position)])
        if not needed(position, v, shared.sweep, run):
            return
        share, shares = np.int64(0), np.int64(1)
        if piece >= 0:
            base, slots = hubs.base[np.uint64(hub)], hubs.slots[np.uint64(hub)]
            share = piece - hubs.first_piece[np.uint64(hub)]
            shares = hubs.first_piece[np.uint64(hub + 1)] - hubs.first_piece[np.uint64(hub)]
        current = index_type(state.labels[np.uint64(v)])
        last = True
        while True:
            label, score, tied = block_row(
                v, start, length, hub, piece, share, shares, base, slots, current, tables, pieces,
                rows, lists, state, shared, numbers,
            )  # fmt: skip
            if hub < 0:
                break
            if not prunes:
                if shared.sweep[SWEEP.all_distinct] != 0:
                    hand_in(piece, label, score, tied, pieces)
                cuda.syncthreads()  # the table is cleared before the next piece is counted
                return  # `collect_piece` goes on
            last, known, label, score, tied = decide(
                v, start, length, hub, piece, label, score, tied, current, tables, hubs, pieces,
                rows, state, shared, numbers,
            )  # fmt: skip
            if known:
                break
            hub, share, shares = np.int64(-1), np.int64(0), np.int64(1)
        # All the pieces of a hub have asked whether v is active: it need not be any more.
        if last and cuda.threadIdx.x == 0:
            note(position, v, label, score, tied, current, shared.sweep, run)

    @cuda.jit(device=True)
    def collect_piece(piece, plan, tables, hubs, pieces, run, state, shared, numbers):
        """Evaluate one part of the table of a hub whose pieces are all in it."""
        hub = hubs.piece_hub[np.uint64(piece)]
        position = hubs.position[np.uint64(hub)]
        v = plan.vertices[np.uint64(position)]
        if needed(position, v, shared.sweep, run):
            current = index_type(state.labels[np.uint64(v)])
            last, label, score, tied = collect(
                v, hub, piece, current, tables, hubs, pieces, state, shared, numbers
            )
            if last and cuda.threadIdx.x == 0:
                note(position, v, label, score, tied, current, shared.sweep, run)

    @cuda.jit(device=True)
    def deferred_rows(queue):
        """Return the number of rows that wait for their block, the same to all lanes."""
        number = np.int32(0)
        if cuda.threadIdx.x % LANES == 0:
            number = cuda.atomic.add(queue.number, 0, np.int32(0))
        return cuda.shfl_sync(ALL, number, 0)

    @cuda.jit(device=True)
    def warp_ticket(ticket, group, plan, run, rows, lists, state, shared, numbers):
        """Evaluate the vertices of one ticket with one warp."""
        lane = np.int32(cuda.threadIdx.x % LANES)
        base = np.int32((cuda.threadIdx.x // LANES) * warp_slots)
        groups, sweep, queue = shared.groups, shared.sweep, shared.queue
        layout = group + sweep[SWEEP.layout]
        bin = np.int32(0)
        while ticket >= groups[layout + FIRST_TICKETS + bin + 1]:
            bin = np.int32(bin + 1)
        size = groups[layout + TICKET_SIZES + bin]
        begin = groups[group + WARP_ROWS + bin]
        end = groups[group + WARP_ROWS + bin + 1]
        begin += (ticket - groups[layout + FIRST_TICKETS + bin]) * size
        end = min(begin + size, end)
        together = np.int32(LANES)
        if fused and bin == WHOLE_WARP:  # as many as there is room for
            together = np.int32(warp_slots // LANES)
        elif fused and bin == HALF_WARP:
            together = np.int32(min(2 * warp_slots // LANES, LANES))
        last = end
        while begin < last:
            end = min(begin + together, last)
            position = begin + lane
            v, current = index_type(0), index_type(-1)
            start, degree, wanted = np.int64(0), np.int32(0), False
            if position < end:
                v = plan.vertices[np.uint64(position)]
                start = plan.starts[np.uint64(position)]
                if buffered and (not fused or bin < WHOLE_WARP):
                    start += sweep[SWEEP.buffer_start]
                degree = np.int32(plan.degrees[np.uint64(position)])
                # Read in any case: it comes together with what tells whether it is needed.
                current = index_type(state.labels[np.uint64(v)])
                wanted = needed(position, v, sweep, run)
            if cuda.any_sync(ALL, wanted):
                if not wanted:
                    start, degree = np.int64(0), np.int32(0)
                label, score, tied = index_type(-1), score_type(0), False
                decoded, entries, head = rows, np.int32(0), np.int32(0)
                if bufferless and degree > 0:
                    head = first_bits(lists, start)
                if fused:
                    decoded = Rows(rows.indptr, shared.table.labels, rows.weights)
                    if bin >= WHOLE_WARP:
                        start, entries = unpack(lists, v, start, degree, head, lane, base, shared)
                if bin >= ONE_THREAD:
                    if cuda.any_sync(ALL, degree > 4):
                        label, score, tied = thread_row8(
                            v, start, degree, current, decoded, state, sweep, numbers
                        )
                    else:
                        label, score, tied = thread_row4(
                            v, start, degree, current, decoded, state, sweep, numbers
                        )
                elif bin >= WHOLE_WARP:
                    width = np.int32(16 if bin == HALF_WARP else 32)
                    label, score, tied = subwarp_row(
                        v, start, degree, current, lane, width, decoded, state, sweep, numbers
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
                        if bufferless:
                            its_head = cuda.shfl_sync(ALL, head, source)
                        failed = False
                        if its_degree <= WARP_ENTRIES:
                            of_row, its_score, its_tie = register_row(
                                its_v, its_start, its_degree, its_head, its_label, lane, base, rows,
                                lists, state, shared, numbers,
                            )  # fmt: skip
                        else:
                            of_row, its_score, its_tie, failed = table_row(
                                its_v, its_start, its_degree, its_label, lane, base, rows, lists,
                                state, shared, numbers,
                            )  # fmt: skip
                        if lane == source:
                            label, score, tied = of_row, its_score, its_tie
                            if failed:
                                wanted = False
                                place = cuda.atomic.add(queue.number, 0, np.int32(1))
                                queue.deferred[place] = np.int32(
                                    position - groups[group + WARP_ROWS]
                                )
                if fused:
                    clear(entries, lane, base, shared.table)
                if wanted:
                    note(position, v, label, score, tied, current, shared.sweep, run)
            begin += together

    @cuda.jit(device=True)
    def evaluate(goal, group, plan, tables, hubs, pieces, run, rows, lists, state, shared, numbers):
        """Evaluate a group with the whole grid; return the goal of the next barrier."""
        groups, sweep, queue = shared.groups, shared.sweep, shared.queue
        thread, block, blocks = cuda.threadIdx.x, cuda.blockIdx.x, np.int64(cuda.gridDim.x)
        batch = groups[group + FIRST_BATCH]
        # The first ticket of a warp is its own number, which saves small classes a round trip; but
        # blocks that have a long row to read leave the first tickets to the others.
        ticket, given = np.int64(-1), np.int64(0)
        stage = LONG_ROWS
        while stage != DONE:
            # What the block does together: pieces of hubs and long rows, or what warps deferred.
            first_piece, number_of_pieces, items = np.int64(0), np.int64(0), np.int64(0)
            stride, item, drawing = np.int64(1), np.int64(0), False
            first_row = groups[group + BLOCK_ROWS]
            last_batch = groups[group + END_OF_BATCHES] - 1
            # Long rows come with the last hubs, or after them if those need two steps.
            with_rows = batch >= last_batch if prunes else batch > last_batch
            if stage == LONG_ROWS:
                if batch <= last_batch:
                    first_piece = hubs.batch_pieces[np.uint64(batch)]
                    number_of_pieces = hubs.batch_pieces[np.uint64(batch + 1)] - first_piece
                items = number_of_pieces
                stride, item = blocks, np.int64(block)
                if with_rows:
                    items += groups[group + WARP_ROWS] - first_row
                    drawing = items > blocks
            else:
                first_row = groups[group + WARP_ROWS]
                items = np.int64(queue.number[0])
            if stage == LONG_ROWS and with_rows:
                given = max(blocks - items, 0) * WARPS
                if block >= items:
                    ticket = (block - items) * WARPS + thread // LANES
            while item < items:
                if drawing and thread == 0:
                    queue.drawn[0] = blocks + cuda.atomic.add(
                        run.drawn, np.uint64(sweep[SWEEP.ticket_pair]), np.int64(1)
                    )
                position, piece = first_row + item - number_of_pieces, np.int64(-1)
                if stage != LONG_ROWS:
                    position = first_row + queue.deferred[np.uint64(item)]
                elif item < number_of_pieces:
                    piece = first_piece + item
                block_item(
                    position, piece, plan, tables, hubs, pieces, run, rows, lists, state, shared,
                    numbers,
                )  # fmt: skip
                item += stride
                if drawing:
                    cuda.syncthreads()
                    item = queue.drawn[0]
                    cuda.syncthreads()
            if stage == LONG_ROWS and not with_rows:
                grid_barrier(run, goal)
                goal += blocks
                if not prunes:
                    item = np.int64(block)
                    while item < number_of_pieces:
                        collect_piece(
                            first_piece + item, plan, tables, hubs, pieces, run, state, shared,
                            numbers,
                        )  # fmt: skip
                        item += blocks
                    if batch < last_batch:
                        grid_barrier(run, goal)
                        goal += blocks
                batch += 1  # the tables of these hubs are free again
                continue
            cuda.syncthreads()
            if thread == 0:
                queue.number[0] = 0
            cuda.syncthreads()
            tickets = groups[group + sweep[SWEEP.layout] + FIRST_TICKETS + BINS]
            if ticket < 0:
                if thread % LANES == 0:
                    ticket = given + cuda.atomic.add(
                        run.drawn, np.uint64(sweep[SWEEP.ticket_pair] + 1), np.int64(1)
                    )
                ticket = cuda.shfl_sync(ALL, ticket, 0)
            while ticket < tickets:
                # A warp defers at most 32 rows a ticket.
                if deferred_rows(queue) > DEFERRED_ROWS - WARPS * LANES:
                    break
                following = tickets
                if tickets > given and thread % LANES == 0:
                    following = given + cuda.atomic.add(
                        run.drawn, np.uint64(sweep[SWEEP.ticket_pair] + 1), np.int64(1)
                    )
                warp_ticket(ticket, group, plan, run, rows, lists, state, shared, numbers)
                cuda.syncwarp()
                # It was asked for before, and has come by now.
                ticket = cuda.shfl_sync(ALL, following, 0)
            stage = DEFERRED
            more = cuda.syncthreads_or(np.int32(ticket < tickets))
            if more == 0 and queue.number[0] == 0:
                stage = DONE
            cuda.syncthreads()
        return goal

    return Evaluation(
        evaluate,
        None if bufferless else fill_buffer,
        packed_numbers.load_classes if bufferless else None,
    )
