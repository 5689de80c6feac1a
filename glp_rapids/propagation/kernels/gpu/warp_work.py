"""What a warp evaluates: the vertices of one ticket, by the path of their bin of degrees."""

from __future__ import annotations

from typing import Any

import numpy as np

from glp_rapids.jit.cuda import cuda
from glp_rapids.propagation.kernels.gpu import (
    subwarp_per_row,
    thread_per_row,
    warp_registers,
    warp_table,
)
from glp_rapids.propagation.kernels.gpu.active_set import needed
from glp_rapids.propagation.kernels.gpu.arguments import Decoding, Rows
from glp_rapids.propagation.kernels.gpu.decode_buffer import DecodeFunctions
from glp_rapids.propagation.kernels.gpu.plan import (
    ENDS,
    FIRST_TICKETS,
    HALF_WARP,
    ONE_THREAD,
    TICKET_SIZES,
    WARP_ROWS,
    WHOLE_WARP,
)
from glp_rapids.propagation.kernels.gpu.read_packed import PackedReader
from glp_rapids.propagation.kernels.gpu.shared_memory import LANES, SWEEP
from glp_rapids.propagation.kernels.gpu.votes import ALL, WARP_ENTRIES, VoteFunctions


def build(
    functions: VoteFunctions,
    reader: Any,
    note: Any,
    keeps_score: bool,
    decoding: Decoding | None,
    decode: DecodeFunctions | None,
    buffered: bool,
) -> Any:
    """Make the evaluation of a ticket; ``reader``: `read_plain`, or a `PackedReader`.

    ``buffered``: rows that are not decoded where they are counted lie in a buffer.
    """
    index_type, _, score_type = functions.types
    warp_slots = functions.table.warp_slots
    fused, bufferless = False, isinstance(reader, PackedReader)
    unpack = clear = None
    if decoding is not None:
        fused, unpack, clear = decoding.fused, decode.unpack, decode.clear
    first_bits = reader.first_bits if bufferless else None
    thread_row4, thread_row8 = (thread_per_row.build(functions, size) for size in (4, 8))
    subwarp_row = subwarp_per_row.build(functions)
    register_row = warp_registers.build(functions, reader.read_row)
    table_row = warp_table.build(functions, reader.read_entries, keeps_score)

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
        end = groups[group + ENDS + WARP_ROWS + bin]
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
                if buffered and (not fused or bufferless or bin < WHOLE_WARP):
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
                    note(
                        position, v, degree, label, score, tied, current, shared.sweep, run, numbers
                    )
            begin += together

    return warp_ticket
