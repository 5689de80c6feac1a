"""Sweeps over few active vertices: a list of them, and nothing that looks at all.

The persistent kernel goes through all vertices, class by class, in an order that is made before:
worth it where labels spread, but most of a run's time where one edge in a thousand has changed.
Here the active vertices are in a list (see `frontier_lists`), of which each thread of the grid has
a place. A step evaluates the members of its class, by the same functions as elsewhere, where their
rows lie in the graph. Long rows of a step are listed, and after a barrier blocks share them evenly.
Classes without members take no step.

With so few rows a step is a chain of reads that wait for one another, and two or three barriers.
So a thread keeps what it has read of its member from step to step, and what has won from the
evaluation to the update. Lists that are longer than the grid has threads are read in every step.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from glp_rapids.jit.cuda import cuda, kernel, load_fresh, reduces_lanes
from glp_rapids.jit.target import Target
from glp_rapids.propagation import slack
from glp_rapids.propagation.compile_program import Compiled
from glp_rapids.propagation.kernels.gpu import (
    block_per_row,
    frontier_lists,
    hub_merge,
    read_plain,
    schedule_rules,
    subwarp_per_row,
    update,
    votes,
    warp_registers,
)
from glp_rapids.propagation.kernels.gpu.entries import entry_at
from glp_rapids.propagation.kernels.gpu.frontier_lists import (
    LONG_ROWS,
    OF_WARP,
    SPREADS,
    STEP,
    FrontierRun,
    class_of,
    vertex_of,
)
from glp_rapids.propagation.kernels.gpu.shared_memory import (
    ALL,
    CLAIMS,
    LANES,
    SKETCH_COUNTERS,
    SWEEP,
    THREADS,
    WARPS,
    PackedLists,
    ReaderQueue,
    Reduction,
    SharedMemory,
    Table,
    WorkQueue,
)
from glp_rapids.propagation.kernels.gpu.warp_reductions import sum_by_shuffles

BLOCKS = 2  # a multiprocessor, so that a thread has 128 registers


class Member(NamedTuple):
    """What a thread knows of the member at its place, or of none."""

    v: Any
    number: Any  # its class; negative: there is no member
    start: Any  # of its row
    degree: Any
    first: Any  # of its readers
    last: Any  # the one behind them


class ReadersOfOne(NamedTuple):
    """The readers of one vertex, as `update.build_activate` finds them."""

    indices: Any
    first: Any
    last: Any


@cuda.jit(device=True)
def bounds_of_one(readers, v):
    """Return where the readers of the vertex begin and end."""
    return readers.first, readers.last


def build(compiled: Compiled, index_type: Any, target: Target) -> Any:
    """Make the kernel of one plain program that skips who is not active.

    Launch: blocks of 256, as many as are wanted and the device holds at once (two a
    multiprocessor), together. Shared memory: 41 KB. Registers: 128; for capability 9.0 ptxas
    spills none of plain votes and 64 bytes a thread of real weights, for 7.5 416 of plain votes.
    Degrees: up to 32 a warp with an entry a lane, up to 128 with four, then a block.
    """
    functions = votes.build(compiled, index_type, target)
    _, vote_type, score_type = functions.types
    heard_from = functions.heard_from
    rules = schedule_rules.build(target)
    grid_barrier, set_ties, judge = rules.grid_barrier, rules.set_ties, rules.judge
    lists = frontier_lists.build(grid_barrier, target)
    list_first, find_class = lists.list_first, lists.find_class
    short_row = subwarp_per_row.build_one(functions)
    register_row = warp_registers.build(functions, read_plain.read_row)
    block_row = block_per_row.build(
        functions, hub_merge.build(functions, functions.growing), read_plain.read_entries,
        functions.growing,
    )  # fmt: skip
    activate_readers = update.build_activate(bounds_of_one, lists.take_one, of_thread=1)
    bears, slack_of = compiled.traits.bears_changes, target.compile(slack.slack_of)
    table = functions.table
    word_type, clear, slots, high_slots = (
        table.word_type, table.clear, table.slots, table.high_slots,
    )  # fmt: skip
    warp_slots, sweep_slots, step_slots = table.warp_slots, len(SWEEP), len(STEP)
    State = compiled.state_type

    @cuda.jit(device=True)
    def place_of(base, thread):
        """Return the place that a thread of this block has in a stretch of the list.

        Neighbours go to different warps: few are members of one step.
        """
        warps = np.int64(cuda.gridDim.x) * WARPS
        return base + thread % LANES * warps + cuda.blockIdx.x * WARPS + thread // LANES

    @cuda.jit(device=True)
    def member_at(place, run, rows, readers, apart):
        """Read the member at a place, if there is one."""
        if place >= run.step[STEP.count]:
            nothing = np.int64(0)
            return Member(index_type(0), np.int64(-1), nothing, nothing, nothing, nothing)
        member = run.listed.members[run.step[STEP.list], place]
        v = vertex_of(member)
        start, end = rows.indptr[np.uint64(v)], rows.indptr[np.uint64(v + 1)]
        first, last = start, end
        if apart:
            first, last = readers.indptr[np.uint64(v)], readers.indptr[np.uint64(v + 1)]
        return Member(index_type(v), class_of(member), start, end - start, first, last)

    @cuda.jit(device=True)
    def note(v, degree, label, score, current, run, numbers):
        """Take a vertex out of the active set; return what it will say, or -1."""
        left = np.int32(0)
        if bears and label >= 0:
            left = slack_of(np.int64(score), degree, numbers.largest_vote)
        run.slack[np.uint64(v)] = left
        return index_type(-1) if label == current else label

    @cuda.jit(device=True)
    def evaluate(member, place, first, run, rows, state, shared, numbers):
        """Evaluate the members of this step that a warp's lanes have; return what wins of each.

        Members with long rows are listed.
        """
        lane, sweep, no_lists = np.int32(cuda.laneid), shared.sweep, (np.int64(0),)
        v, start, degree = member.v, member.start, member.degree
        wanted = member.number >= first and member.number < run.step[STEP.beyond]
        winner = index_type(-1)
        if not cuda.any_sync(ALL, wanted):
            return winner
        current = index_type(-1)
        if wanted:
            current = index_type(state.labels[np.uint64(v)])
        if wanted and degree > OF_WARP:
            number = cuda.atomic.add(run.listed.counts, LONG_ROWS, np.int64(1))
            run.listed.long_places[number] = place
        label, score = index_type(-1), score_type(0)
        left = cuda.ballot_sync(ALL, wanted and degree > 0 and degree <= OF_WARP)
        while left != 0:
            source = np.int32(cuda.ffs(left) - 1)
            left &= np.uint32(left - np.uint32(1))
            its_v, its_start = cuda.shfl_sync(ALL, v, source), cuda.shfl_sync(ALL, start, source)
            length = np.int32(cuda.shfl_sync(ALL, degree, source))
            its_label = cuda.shfl_sync(ALL, current, source)
            if length <= LANES:
                j, heard, amount = its_start + lane, index_type(-1), vote_type(0)
                if lane < length:
                    heard, amount = heard_from(
                        its_v, entry_at(rows.indices, j), j, rows, state, False, numbers
                    )
                of_row, its_score, _ = short_row(
                    its_v, length, heard, amount, its_label, lane, np.int32(0), np.int32(LANES),
                    state, sweep, numbers,
                )  # fmt: skip
            else:
                of_row, its_score, _ = register_row(
                    its_v, its_start, length, np.int32(0), its_label, lane,
                    np.int32(cuda.threadIdx.x // LANES * warp_slots), rows, no_lists, state, shared,
                    numbers,
                )  # fmt: skip
            if lane == source:
                label, score = of_row, its_score
        if wanted and degree <= OF_WARP:
            winner = note(v, degree, label, score, current, run, numbers)
        return winner

    @cuda.jit(device=True)
    def evaluate_long_rows(tables, pieces, run, rows, state, shared, numbers):
        """Evaluate the members that were listed, a block each."""
        nobody, zero, no_lists = np.int64(-1), np.int64(0), (np.int64(0),)
        number = load_fresh(run.listed.counts, LONG_ROWS)
        for i in range(np.int64(cuda.blockIdx.x), number, np.int64(cuda.gridDim.x)):
            place = run.listed.long_places[i]
            v = vertex_of(run.listed.members[run.step[STEP.list], place])
            start = rows.indptr[np.uint64(v)]
            length = rows.indptr[np.uint64(v + 1)] - start
            current = index_type(state.labels[np.uint64(v)])
            label, score, _ = block_row(
                index_type(v), start, length, nobody, nobody, zero, np.int64(1), zero, zero,
                current, tables, pieces, rows, no_lists, state, shared, numbers,
            )  # fmt: skip
            if cuda.threadIdx.x == 0:
                run.winner[np.uint64(place)] = note(
                    v, length, label, score, current, run, numbers
                )
            cuda.syncthreads()

    @cuda.jit(device=True)
    def write_down(member, winner, run, readers, state, shared):
        """Write what a block's threads have found to win, and wake who reads it; count changes."""
        if winner >= 0:
            state.labels[np.uint64(member.v)] = winner
        of_member = ReadersOfOne(readers.indices, member.first, member.last)
        activate_readers(run, of_member, shared, member.v, winner >= 0)
        return np.int64(winner >= 0)

    def propagate_frontier(
        active, tables, pieces, arrays, rows, readers, apart, fields, schedule, numbers
    ):
        shared = SharedMemory(
            sweep=cuda.shared.array(sweep_slots, np.int64),
            groups=cuda.shared.array(1, np.int64),
            table=Table(
                labels=cuda.shared.array(slots, index_type),
                votes=cuda.shared.array(slots, word_type),
                high_votes=cuda.shared.array(high_slots, np.int32),
            ),
            claims=cuda.shared.array(CLAIMS, np.int32),
            sketch=cuda.shared.array(SKETCH_COUNTERS, vote_type),
            queue=WorkQueue(
                deferred=cuda.shared.array(1, np.int32),
                number=cuda.shared.array(1, np.int32),
                drawn=cuda.shared.array(1, np.int64),
            ),
            changes=cuda.shared.array(1, np.int32),
            reduction=Reduction(
                sums=cuda.shared.array(WARPS, vote_type),
                maxima=cuda.shared.array(WARPS, vote_type),
                arrived=cuda.shared.array(1, np.int32),
                labels=cuda.shared.array(WARPS, index_type),
                scores=cuda.shared.array(WARPS, score_type),
                ties=cuda.shared.array(WARPS, np.int32),
            ),
            readers=ReaderQueue(
                first=cuda.shared.array(THREADS, np.int64),
                last=cuda.shared.array(THREADS, np.int64),
                number=cuda.shared.array(1, np.int32),
            ),
            packed=PackedLists(
                entries=cuda.shared.array(1, index_type),
                classes=cuda.shared.array(1, np.uint64),
            ),
        )
        sweep, step = shared.sweep, cuda.shared.array(step_slots, np.int64)
        run = FrontierRun(
            arrays.slack, arrays.winner, arrays.long_lists, arrays.changed, arrays.barrier,
            arrays.control, arrays.listed, arrays.first_id, arrays.id_words, arrays.classes,
            arrays.indptr, arrays.most_listed, step,
        )  # fmt: skip
        # Our own barrier, which is inlined; asking for the grid makes the launch cooperative.
        cuda.cg.this_grid()
        thread = np.int64(cuda.threadIdx.x)
        for slot in range(thread, slots, THREADS):
            clear(shared.table, slot)
        for i in range(thread, SKETCH_COUNTERS, THREADS):
            shared.sketch[i] = vote_type(0)
        if thread < CLAIMS:
            shared.claims[thread] = 0
        if thread < sweep_slots:
            sweep[thread] = 0
        cuda.syncthreads()
        if thread == 0:
            sweep[SWEEP.activates] = 1
            sweep[SWEEP.sweeps] = run.control[0]
            sweep[SWEEP.explored] = run.control[1]
            step[STEP.list] = run.control[2]
            step[STEP.beyond] = 0
        cuda.syncthreads()
        if active.size > 0:
            list_first(active, run, sweep)
        stretch, place = np.int64(cuda.gridsize(1)), place_of(np.int64(0), thread)
        spreads = False
        for _ in range(schedule.sweeps):
            if spreads:
                break
            if thread == 0:
                span, _ = set_ties(sweep, run, schedule)
                step[STEP.beyond] = span
            cuda.syncthreads()
            state = State(
                *(fields[:1] + (np.int64(sweep[SWEEP.sweeps] + 1),) + fields[2:])  # noqa: RUF005
            )
            span = step[STEP.beyond]
            find_class(np.int64(0), span, run)
            kept = member_at(place, run, rows, readers, apart)
            while step[STEP.found] >= 0:
                first = step[STEP.found] // span * span
                beyond = min(first + span, np.int64(schedule.classes))
                cuda.syncthreads()
                if thread == 0:
                    step[STEP.beyond] = beyond
                    shared.changes[0] = 0
                cuda.syncthreads()
                # Of a longer list this thread has further members, which it keeps nothing of; the
                # last stretch is that of the member that it does.
                base, winner = (step[STEP.count] - 1) // stretch * stretch, index_type(-1)
                while base >= 0:
                    member = kept
                    if base > 0:
                        member = member_at(base + place, run, rows, readers, apart)
                    winner = evaluate(
                        member, base + place, first, run, rows, state, shared, numbers
                    )
                    if base > 0 and member.number >= 0 and member.degree <= OF_WARP:
                        run.winner[np.uint64(base + place)] = winner
                    base -= stretch
                grid_barrier(run, sweep)
                if step[STEP.long] != 0:
                    evaluate_long_rows(tables, pieces, run, rows, state, shared, numbers)
                    grid_barrier(run, sweep)
                    if cuda.blockIdx.x == 0 and thread == 0:
                        run.listed.counts[LONG_ROWS] = 0
                if cuda.blockIdx.x == 0 and thread < span and first + thread < beyond:
                    run.listed.of_class[step[STEP.list] * run.classes + first + thread] = 0
                changes, base = np.int64(0), np.int64(0)
                while base < step[STEP.count]:
                    member = kept
                    if base > 0:
                        member = member_at(base + place, run, rows, readers, apart)
                        winner = index_type(-1)
                    of_step = member.number >= first and member.number < beyond
                    if of_step and (base > 0 or member.degree > OF_WARP):
                        winner = run.winner[np.uint64(base + place)]
                    changes += write_down(member, winner, run, readers, state, shared)
                    base += stretch
                changes = sum_by_shuffles(changes)
                if cuda.laneid == 0 and changes > 0:
                    cuda.atomic.add(shared.changes, 0, np.int32(changes))
                cuda.syncthreads()
                if thread == 0 and shared.changes[0] > 0:
                    cuda.atomic.add(
                        run.changed,
                        np.uint64(sweep[SWEEP.sweeps] - schedule.forgotten),
                        np.int64(shared.changes[0]),
                    )
                grid_barrier(run, sweep)
                find_class(beyond, span, run)
                if kept.number < 0:
                    kept = member_at(place, run, rows, readers, apart)
            # Nobody puts a vertex in a list before all blocks have come to another barrier.
            which = step[STEP.list]
            if cuda.blockIdx.x == 0 and thread == 0:
                run.listed.counts[which] = 0
            spreads = cuda.syncthreads_or(np.int32(spreads_over(which, run, thread))) != 0
            if thread == 0:
                judge(sweep, run, schedule)
                step[STEP.list] = 1 - which
            cuda.syncthreads()
            failed = numbers.errors[0]
            if sweep[SWEEP.over] != 0 or (failed != 0 and failed <= sweep[SWEEP.sweeps] + 1):
                break
        if cuda.blockIdx.x == 0 and thread == 0:
            run.control[0] = sweep[SWEEP.sweeps]
            run.control[1] = sweep[SWEEP.explored]
            run.control[2] = step[STEP.list]
            run.listed.counts[SPREADS] = np.int64(spreads)

    spreads_over = frontier_lists.spreads_over
    digest = f"{compiled.digest} {index_type.__name__} {BLOCKS} {slots} {reduces_lanes()}"
    return kernel(propagate_frontier, digest, compiled, launch_bounds=(THREADS, BLOCKS))
