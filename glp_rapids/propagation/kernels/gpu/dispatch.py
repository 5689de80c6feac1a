"""The evaluation of a class by the whole grid: who takes which row, and by which path.

Blocks draw long rows and pieces of hubs first, then warps draw tickets for the rest, so nobody
waits for a hub. What a warp cannot finish in its slice of the table is deferred to its block.

Degrees: up to 8 a thread a row, 16 and 32 a sub-warp, 128 a warp in registers, up to 4096 in large
classes a warp with a table, then a block, and for hubs many blocks; see `plan` for the limits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from glp_rapids.jit.cuda import cuda
from glp_rapids.jit.target import Target
from glp_rapids.propagation.compile_program import Compiled
from glp_rapids.propagation.kernels.gpu import (
    block_work,
    decode_buffer,
    packed_numbers,
    read_packed,
    read_plain,
    warp_work,
)
from glp_rapids.propagation.kernels.gpu.active_set import build_note
from glp_rapids.propagation.kernels.gpu.arguments import Decoding
from glp_rapids.propagation.kernels.gpu.plan import (
    BINS,
    BLOCK_ROWS,
    END_OF_BATCHES,
    ENDS,
    FIRST_BATCH,
    FIRST_TICKETS,
    WARP_ROWS,
)
from glp_rapids.propagation.kernels.gpu.shared_memory import DEFERRED_ROWS, LANES, SWEEP, WARPS
from glp_rapids.propagation.kernels.gpu.votes import ALL, VoteFunctions

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
    note_time: Any,
    target: Target,
    decoding: Decoding | None = None,
    streamed: bool = False,
) -> Evaluation:
    """Make the functions of one program, for compressed lists if ``decoding`` says how.

    ``streamed``: plain rows lie in a buffer, too, or packed lists, as they are.
    """
    keeps_score = not compiled.traits.default_update
    prunes = functions.growing and not keeps_score
    note = build_note(compiled.traits, target)
    decode, reader, fill_buffer, load_classes = None, read_plain, None, None
    if decoding is not None:
        decode = decode_buffer.build(functions.index_type, decoding, target)
        fill_buffer = decode.fill_buffer
        if decoding.bufferless:
            reader = read_packed.build(functions.index_type, decoding.ordered, target)
            fill_buffer, load_classes = None, packed_numbers.load_classes
    buffered = streamed or fill_buffer is not None
    warp_ticket = warp_work.build(functions, reader, note, keeps_score, decoding, decode, buffered)
    work = block_work.build(functions, reader.read_entries, note, prunes, buffered)
    block_item, collect_piece = work.evaluate, work.collect

    @cuda.jit(device=True)
    def deferred_rows(queue):
        """Return the number of rows that wait for their block, the same to all lanes."""
        number = np.int32(0)
        if cuda.threadIdx.x % LANES == 0:
            number = cuda.atomic.add(queue.number, 0, np.int32(0))
        return cuda.shfl_sync(ALL, number, 0)

    @cuda.jit(device=True)
    def evaluate(group, step, plan, tables, hubs, pieces, run, rows, lists, state, shared,
                 numbers):  # fmt: skip
        """Evaluate a group with the whole grid."""
        groups, sweep, queue = shared.groups, shared.sweep, shared.queue
        thread, block, blocks = cuda.threadIdx.x, cuda.blockIdx.x, np.int64(cuda.gridDim.x)
        batch = groups[group + FIRST_BATCH]
        # The first ticket of a warp is given, which saves small classes a round trip; but blocks
        # that have a long row to read leave the first tickets to the others. Those of one block are
        # served by one path, and its code is fetched once; but where the first rows may have too
        # many labels and be deferred to the block, they are given to different blocks.
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
                    items += groups[group + ENDS + BLOCK_ROWS] - first_row
                    drawing = items > blocks
            else:
                first_row = groups[group + WARP_ROWS]
                items = np.int64(queue.number[0])
            if stage == LONG_ROWS and with_rows:
                given = max(blocks - items, 0) * WARPS
                if block >= items:
                    ticket = (block - items) * WARPS + thread // LANES
                    if groups[group + sweep[SWEEP.layout] + FIRST_TICKETS + 1] > 0:
                        ticket = (thread // LANES) * (blocks - items) + block - items
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
                grid_barrier(run, sweep)
                if not prunes:
                    item = np.int64(block)
                    while item < number_of_pieces:
                        collect_piece(
                            first_piece + item, plan, tables, hubs, pieces, run, state, shared,
                            numbers,
                        )  # fmt: skip
                        item += blocks
                    if batch < last_batch:
                        grid_barrier(run, sweep)
                batch += 1  # the tables of these hubs are free again
                continue
            cuda.syncthreads()
            if thread == 0:
                queue.number[0] = 0
            if stage == LONG_ROWS:
                note_time(run, step, 1)
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

    return Evaluation(evaluate, fill_buffer, load_classes)
