"""The persistent kernel: sweeps, classes, evaluation, update and the decision to stop.

One cooperative launch does as many sweeps as are asked for. A class is one evaluation and one
update, with a barrier of the whole grid after each; the host is not asked in between. Blocks draw
tickets for long rows first, then warps draw tickets for the rest, so nobody waits for a hub.
"""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import numpy as np

from glp_rapids.propagation import scalar
from glp_rapids.propagation.compilation import Compiled, Target
from glp_rapids.propagation.course import floods, settles
from glp_rapids.propagation.kernels import auto_rows, auto_update, auto_wide
from glp_rapids.propagation.kernels.auto_common import (
    ALL,
    LANES,
    THREADS,
    WARPS,
    Here,
    Rule,
    common,
)
from glp_rapids.propagation.kernels.auto_plan import BINS
from glp_rapids.propagation.kernels.cuda_target import cuda, kernel

REGISTERS = 64  # a thread: four blocks of 256 fill a multiprocessor
ROWS_OF_FEW = 3  # bins of whole warps, of 32 lanes, of 16 lanes come before
DEFERRED = 512  # rows of a warp that did not fit its slice of the table, a block

# What a block does together in a class: hubs and long rows, then what its warps put off.
HUBS, PUT_OFF, OVER = range(3)

# What is kept on the device from one launch to the next.
SWEEPS, EXPLORED, SETTLED, EVERYBODY = range(4)

Lists = namedtuple("Lists", "vertices bounds tickets ticket_size")
Tables = namedtuple("Tables", "keys votes touched filled private_slots private_base")
Hubs = namedtuple(
    "Hubs",
    "position base slots first_piece piece_hub piece_start piece_length class_batches batch_pieces",
)
Pieces = namedtuple("Pieces", "label score tied arrived")
Run = namedtuple("Run", "active tied winner winner_score changed drawn control")
Course = namedtuple(
    "Course",
    "classes sweeps explore stops few patience retain tie_break seed skip distinct wholesale",
)


def build(compiled: Compiled, index_type: Any, target: Target) -> Any:
    """Make the kernel of one program.

    Launch: blocks of 256, as many as the device holds at once, cooperative. Shared memory: 38 KB.
    Registers: 64. Any degree.
    """
    shared = common(compiled, index_type, target)
    few4, few8 = auto_rows.build_few(shared, 4), auto_rows.build_few(shared, 8)
    lanes, warp_row = auto_rows.build_lanes(shared), auto_rows.build_warp(shared)
    long_rows = auto_wide.build(shared)
    wide, last_of_hub = long_rows.wide, long_rows.last_of_hub
    update, sum_of_lanes = auto_update.build(compiled, index_type), shared.sum_of_lanes
    flooding, settling = target.compile(floods), target.compile(settles)
    State, plain = compiled.state_type, compiled.traits.plain
    vote_type, score_type = shared.vote_type, shared.score_type
    slots, slice_slots = shared.slots, shared.slice
    keeps_score = not compiled.traits.default_update

    @cuda.jit(device=True)
    def decided(position, v, label, score, tied, current, exploring, waking, run):
        """Write down the outcome of one vertex."""
        if exploring:
            run.tied[np.uint64(position)] = tied
        if waking and run.active[np.uint64(v)] != 0:
            run.active[np.uint64(v)] = 0
        if label >= 0 and not (plain and label == current):
            run.winner[np.uint64(position)] = label
            if keeps_score:
                run.winner_score[np.uint64(position)] = score

    @cuda.jit(device=True)
    def needed(position, v, everybody, revisit_tied, run):
        """Tell whether v is to be evaluated in this sweep."""
        if everybody or run.active[np.uint64(v)] != 0:
            return True
        return revisit_tied and run.tied[np.uint64(position)] != 0

    @cuda.jit(device=True)
    def block_item(position, piece, everybody, revisit_tied, exploring, waking, here, lists, tables,
                   hubs, pieces, run, rows, state, rule, numbers):  # fmt: skip
        """Evaluate a row, or a piece of a hub (piece >= 0), with all threads of a block."""
        hub, base, room = np.int64(-1), tables.private_base, tables.private_slots
        base += cuda.blockIdx.x * room
        if piece >= 0:
            hub = hubs.piece_hub[np.uint64(piece)]
            position = hubs.position[np.uint64(hub)]
        v = lists.vertices[np.uint64(position)]
        if not needed(position, v, everybody, revisit_tied, run):
            return
        start = rows.indptr[np.uint64(v)]
        length = rows.indptr[np.uint64(v + 1)] - start
        if piece >= 0:
            base, room = hubs.base[np.uint64(hub)], hubs.slots[np.uint64(hub)]
            start += hubs.piece_start[np.uint64(piece)]
            length = min(hubs.piece_length[0], length - hubs.piece_start[np.uint64(piece)])
        current = index_type(state.labels[np.uint64(v)])
        label, score, tied = wide(
            v, start, length, hub, base, room, here, current, tables, rows, state, rule, numbers
        )
        last = True
        if piece >= 0:
            last, label, score, tied = last_of_hub(
                v, hub, piece, label, score, tied, here, current, tables, hubs, pieces, state, rule,
                numbers,
            )
        # All the pieces of a hub have asked whether v is awake: it may be put to sleep.
        if last and cuda.threadIdx.x == 0:
            decided(position, v, label, score, tied, current, exploring, waking, run)

    @cuda.jit(device=True)
    def waits(here):
        """Give the number of rows that wait for their block, the same to all lanes."""
        number = np.int32(0)
        if cuda.threadIdx.x % LANES == 0:
            number = cuda.atomic.add(here.waiting, 0, np.int32(0))
        return cuda.shfl_sync(ALL, number, 0)

    @cuda.jit(device=True)
    def warp_ticket(ticket, group, everybody, revisit_tied, exploring, waking, here, lists, run, rows, state, rule, numbers):  # fmt: skip
        """Evaluate the vertices of one ticket with one warp."""
        lane = np.int32(cuda.threadIdx.x % LANES)
        base = np.int32((cuda.threadIdx.x // LANES) * slice_slots)
        kind = np.int64(0)
        while ticket >= lists.tickets[group, kind + 1]:
            kind += 1
        size = lists.ticket_size[group, kind]
        begin = lists.bounds[group, kind + 2] + (ticket - lists.tickets[group, kind]) * size
        end = min(begin + size, lists.bounds[group, kind + 3])
        while begin < end:
            position = begin + lane
            v, current = index_type(0), index_type(-1)
            start, degree, wanted = np.int64(0), np.int32(0), False
            if position < end:
                v = lists.vertices[np.uint64(position)]
                wanted = needed(position, v, everybody, revisit_tied, run)
            if cuda.any_sync(ALL, wanted):
                if wanted:
                    start = rows.indptr[np.uint64(v)]
                    degree = np.int32(rows.indptr[np.uint64(v + 1)] - start)
                    current = index_type(state.labels[np.uint64(v)])
                label, score, tied = index_type(-1), score_type(0), False
                if kind > ROWS_OF_FEW:
                    if cuda.any_sync(ALL, degree > 4):
                        label, score, tied = few8(
                            v, start, degree, current, rows, state, rule, numbers
                        )
                    else:
                        label, score, tied = few4(
                            v, start, degree, current, rows, state, rule, numbers
                        )
                elif kind > ROWS_OF_FEW - 2:
                    width = np.int32(16 if kind == ROWS_OF_FEW else 32)
                    label, score, tied = lanes(
                        v, start, degree, current, lane, width, rows, state, rule, numbers
                    )
                else:
                    left = cuda.ballot_sync(ALL, wanted)
                    while left != 0:
                        source = np.int32(cuda.ffs(left) - 1)
                        left &= np.uint32(left - np.uint32(1))
                        of_row, its_score, its_tie, failed = warp_row(
                            cuda.shfl_sync(ALL, v, source), cuda.shfl_sync(ALL, start, source),
                            cuda.shfl_sync(ALL, degree, source),
                            cuda.shfl_sync(ALL, current, source), lane, here, base, rows,
                            state, rule, numbers,
                        )
                        if lane == source:
                            label, score, tied = of_row, its_score, its_tie
                            if failed:
                                wanted = False
                                place = cuda.atomic.add(here.waiting, 0, np.int32(1))
                                here.deferred[place] = np.int32(position - lists.bounds[group, 2])
                if wanted:
                    decided(position, v, label, score, tied, current, exploring, waking, run)
            begin += LANES

    @cuda.jit(device=True)
    def evaluate(grid, group, everybody, revisit_tied, exploring, waking, here, lists, tables, hubs, pieces, run, rows, state, rule,
                 numbers):  # fmt: skip
        """Evaluate a class with the whole grid."""
        thread, block, blocks = cuda.threadIdx.x, cuda.blockIdx.x, np.int64(cuda.gridDim.x)
        tickets, warps = lists.tickets[group, BINS], blocks * WARPS
        # The first ticket is one's own number, which saves small classes a round trip.
        ticket = np.int64(block) * WARPS + thread // LANES
        first_row = lists.bounds[group, 1]
        alone = lists.bounds[group, 2] - first_row
        batch, last_batch = hubs.class_batches[group], hubs.class_batches[group + 1] - 1
        stage = HUBS
        while stage != OVER:
            # What the block does together: pieces of hubs and long rows, or what warps put off.
            first_piece, number_of_pieces, items = np.int64(0), np.int64(0), np.int64(0)
            stride, item = blocks, np.int64(block)
            if stage == HUBS:
                if batch <= last_batch:
                    first_piece = hubs.batch_pieces[batch]
                    number_of_pieces = hubs.batch_pieces[batch + 1] - first_piece
                items = number_of_pieces
                if batch >= last_batch:
                    items += alone
            else:
                items, stride, item = np.int64(here.waiting[0]), np.int64(1), np.int64(0)
            drawing = stage == HUBS and batch >= last_batch and items > blocks
            while item < items:
                if drawing and thread == 0:
                    here.drawn[0] = blocks + cuda.atomic.add(run.drawn, 0, np.int64(1))
                position, piece = np.int64(0), np.int64(-1)
                if stage != HUBS:
                    position = lists.bounds[group, 2] + here.deferred[item]
                elif item < number_of_pieces:
                    piece = first_piece + item
                else:
                    position = first_row + item - number_of_pieces
                block_item(
                    position, piece, everybody, revisit_tied, exploring, waking, here, lists,
                    tables, hubs, pieces, run, rows, state, rule, numbers,
                )
                item += stride
                if drawing:
                    cuda.syncthreads()
                    item = here.drawn[0]
                    cuda.syncthreads()
            if stage == HUBS and batch < last_batch:
                batch += 1
                grid.sync()  # the tables of these hubs are free again
                continue
            cuda.syncthreads()
            if thread == 0:
                here.waiting[0] = 0
            cuda.syncthreads()
            while ticket < tickets:
                # A warp defers at most 32 rows a ticket.
                if waits(here) > DEFERRED - WARPS * LANES:
                    break
                following = tickets
                if tickets > warps:
                    if thread % LANES == 0:
                        following = warps + cuda.atomic.add(run.drawn, 1, np.int64(1))
                    following = cuda.shfl_sync(ALL, following, 0)
                warp_ticket(
                    ticket, group, everybody, revisit_tied, exploring, waking, here, lists, run,
                    rows, state, rule, numbers,
                )
                ticket = following
                cuda.syncwarp()
            stage = PUT_OFF
            more = cuda.syncthreads_or(np.int32(ticket < tickets))
            if more == 0 and here.waiting[0] == 0:
                stage = OVER
            cuda.syncthreads()

    def propagate(lists, tables, hubs, pieces, run, rows, readers, fields, course, numbers):
        here = Here(
            keys=cuda.shared.array(slots, index_type),
            votes=cuda.shared.array(slots, vote_type),
            deferred=cuda.shared.array(DEFERRED, np.int32),
            waiting=cuda.shared.array(1, np.int32),
            drawn=cuda.shared.array(1, np.int64),
            changes=cuda.shared.array(1, np.int32),
            owns=cuda.shared.array(WARPS, vote_type),
            mosts=cuda.shared.array(WARPS, vote_type),
            arrived=cuda.shared.array(1, np.int32),
            labels=cuda.shared.array(WARPS, index_type),
            scores=cuda.shared.array(WARPS, score_type),
            ties=cuda.shared.array(WARPS, np.int32),
            long_first=cuda.shared.array(THREADS, np.int64),
            long_last=cuda.shared.array(THREADS, np.int64),
            long_rows=cuda.shared.array(1, np.int32),
        )
        grid = cuda.cg.this_grid()
        thread = cuda.threadIdx.x
        for slot in range(thread, slots, THREADS):
            here.keys[slot] = index_type(-1)
            here.votes[slot] = vote_type(0)
        if thread == 0:
            here.waiting[0] = 0
            here.changes[0] = 0
        cuda.syncthreads()
        sweeps = run.control[SWEEPS]
        explored = run.control[EXPLORED]  # -1 while exploring
        settled = run.control[SETTLED] != 0
        everybody = run.control[EVERYBODY] != 0
        last = sweeps + course.sweeps
        while sweeps < last:
            sweep = sweeps + 1
            exploring = explored < 0
            if exploring:
                rule = Rule(
                    course.distinct and sweep == 1, False, np.int64(scalar.TIE_HASH),
                    np.uint64(course.seed) + (np.uint64(sweep) << np.uint64(32)),
                )
            else:
                rule = Rule(
                    course.distinct and sweep == 1, course.retain, course.tie_break,
                    np.uint64(course.seed),
                )
            revisit_tied = exploring or (sweep == explored + 1 and not course.retain)
            # Where much changes, waking everybody is cheaper than waking one by one.
            wholesale = sweep == 1 or (sweep > 1 and run.changed[sweeps - 1] > course.wholesale)
            waking = course.skip and not wholesale
            state = State(*(fields[:1] + (np.int64(sweep),) + fields[2:]))
            for group in range(course.classes):
                evaluate(
                    grid, group, everybody, revisit_tied, exploring, waking, here, lists, tables, hubs, pieces, run, rows, state, rule,
                    numbers,
                )
                grid.sync()
                if cuda.blockIdx.x == 0 and thread < 2:
                    run.drawn[thread] = 0
                begin, end = lists.bounds[group, 0], lists.bounds[group, BINS + 2]
                changes = update(
                    begin, end, lists.vertices, readers, waking, run.active, run.winner,
                    run.winner_score, here, state, numbers.scale,
                )
                changes = sum_of_lanes(changes)
                if thread % LANES == 0 and changes > 0:
                    cuda.atomic.add(here.changes, 0, changes)
                cuda.syncthreads()
                if thread == 0 and here.changes[0] > 0:
                    cuda.atomic.add(run.changed, sweeps, np.int64(here.changes[0]))
                    here.changes[0] = 0
                grid.sync()
            sweeps = sweep
            everybody = not waking
            if exploring:
                if sweeps == course.explore or (course.stops and flooding(run.changed, sweeps)):
                    explored = sweeps
            else:
                settled = settling(run.changed, explored, sweeps, course.few, course.patience)
                if settled and course.stops:
                    break
            if numbers.errors[0] != 0:
                break
        if cuda.blockIdx.x == 0 and thread == 0:
            run.control[SWEEPS] = sweeps
            run.control[EXPLORED] = explored
            run.control[SETTLED] = settled
            run.control[EVERYBODY] = everybody

    def start(fields):
        state = State(*fields)
        v = cuda.grid(1)
        if v < state.labels.size:
            state.labels[v] = pick_label(v, state.sweep, state)

    pick_label = compiled.pick_label
    digest = f"{compiled.digest} {index_type.__name__}"
    return (
        kernel(propagate, digest, max_registers=REGISTERS, launch_bounds=(THREADS, 4)),
        kernel(start, digest),
    )
