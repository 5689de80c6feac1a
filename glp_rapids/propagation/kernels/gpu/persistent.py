"""The persistent kernel: sweeps, classes, evaluation, update and the decision to stop.

One cooperative launch does as many sweeps as are asked for. A class is one evaluation and one
update, with a grid barrier after each; the host is not asked in between. On a compressed graph each
group of a class (a strip of it, or all) is decoded before it is evaluated.

A barrier empties the first-level cache, so whatever is spilled from registers or looked up per
class costs a trip to the second level, hundreds of times a run. What a class needs to know is
therefore kept in shared memory, and fetched for the next class while one is updated.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from glp_rapids.jit.cuda import cuda, kernel, nanoseconds, reduces_lanes
from glp_rapids.jit.target import Target
from glp_rapids.propagation.compile_program import Compiled
from glp_rapids.propagation.kernels.gpu import (
    decode_buffer,
    dispatch,
    packed_numbers,
    read_packed,
    schedule_rules,
    shared_memory,
    update,
    votes,
)
from glp_rapids.propagation.kernels.gpu.arguments import Decoding
from glp_rapids.propagation.kernels.gpu.failures import build_say
from glp_rapids.propagation.kernels.gpu.plan import COLUMNS
from glp_rapids.propagation.kernels.gpu.shared_memory import (
    CLAIMS,
    DEFERRED_ROWS,
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

# Of a step: begun, long rows evaluated, the others, all blocks have, updated, all blocks have.
MOMENTS = 6


def build(
    compiled: Compiled, index_type: Any, target: Target, decoding: Decoding | None = None
) -> tuple[Any, Any]:
    """Make the kernels of one program: ``propagate``, and ``start`` for the first labels.

    Launch of ``propagate``: blocks of 256, as many as the device holds at once (three a
    multiprocessor), together. Shared memory: 43 KB, 48 for packed lists. Registers: 80, and 150 to
    640 bytes of local memory a thread, by program. Any degree; see `dispatch` for who serves it.

    Launch of ``start``: a thread a vertex. No shared memory.
    """
    functions = votes.build(compiled, index_type, target)
    activation = update.build_activate()
    together = decoding is None  # packed lists of readers are gone through part by part by a block
    if decoding is not None:
        activation = decode_buffer.build_activate(decoding, target)
    rules = schedule_rules.build(target)
    grid_barrier, set_rule, judge = rules.grid_barrier, rules.set_rule, rules.judge
    clocked = shared_memory.CLOCKED

    @cuda.jit(device=True)
    def note_time(run, step, moment):
        """Write down when this block came to one of the moments of a step."""
        if clocked > 0 and cuda.threadIdx.x == 0 and step < clocked:
            place = (step * cuda.gridDim.x + cuda.blockIdx.x) * MOMENTS + moment
            run.clock[np.uint64(place)] = nanoseconds()

    evaluation = dispatch.build(compiled, functions, grid_barrier, note_time, target, decoding)
    evaluate, fill_buffer = evaluation.evaluate, evaluation.fill_buffer
    load_classes, buffered = evaluation.load_classes, evaluation.fill_buffer is not None
    activate_together = update.build_activate_together(grid_barrier)
    update_group = update.build(compiled, index_type, activation, buffered)
    entries, classes = 1, 1
    if load_classes is not None:
        entries, classes = WARPS * read_packed.SEGMENT, packed_numbers.ENTRIES
    State = compiled.state_type
    _, vote_type, score_type = functions.types
    table = functions.table
    word_type, clear = table.word_type, table.clear
    slots, high_slots, two_groups = table.slots, table.high_slots, 2 * COLUMNS
    sweep_slots = len(SWEEP)

    def propagate(plan, tables, hubs, pieces, run, rows, readers, lists, fields, schedule, numbers):
        shared = SharedMemory(
            sweep=cuda.shared.array(sweep_slots, np.int64),
            groups=cuda.shared.array(two_groups, np.int64),
            table=Table(
                labels=cuda.shared.array(slots, index_type),
                votes=cuda.shared.array(slots, word_type),
                high_votes=cuda.shared.array(high_slots, np.int32),
            ),
            claims=cuda.shared.array(CLAIMS, np.int32),
            sketch=cuda.shared.array(SKETCH_COUNTERS, vote_type),
            queue=WorkQueue(
                deferred=cuda.shared.array(DEFERRED_ROWS, np.int32),
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
                entries=cuda.shared.array(entries, index_type),
                classes=cuda.shared.array(classes, np.uint64),
            ),
        )
        sweep = shared.sweep
        # Our own barrier, which is inlined; asking for the grid makes the launch cooperative.
        cuda.cg.this_grid()
        thread = cuda.threadIdx.x
        for slot in range(thread, slots, THREADS):
            clear(shared.table, slot)
        for i in range(thread, SKETCH_COUNTERS, THREADS):
            shared.sketch[i] = vote_type(0)
        if thread < CLAIMS:
            shared.claims[thread] = 0
        if thread == 0:
            shared.queue.number[0] = 0
            shared.changes[0] = 0
            sweep[SWEEP.over] = 0
            sweep[SWEEP.goal] = 0
            sweep[SWEEP.long_list] = schedule.long_list
            sweep[SWEEP.ticket_pair] = 0
            sweep[SWEEP.sweeps] = run.control[0]
            sweep[SWEEP.explored] = run.control[1]
            sweep[SWEEP.everybody] = run.control[2]
        if classes > 1:
            load_classes(lists, shared.packed)
        step = np.int64(0)
        row = np.int64(0)  # of this group in `shared.groups`: the first of two, or the second
        ready, half = False, np.int64(0)  # the next group is decoded, in this half of the buffer
        for _ in range(schedule.sweeps):
            if thread == 0:
                set_rule(sweep, plan, run, schedule)
            cuda.syncthreads()
            state = State(
                *(fields[:1] + (np.int64(sweep[SWEEP.sweeps] + 1),) + fields[2:])  # noqa: RUF005
            )
            group, of_class = sweep[SWEEP.first_row], np.int64(0)
            if thread < COLUMNS:
                shared.groups[row + thread] = plan.groups[group, thread]
            while group < sweep[SWEEP.end_row]:
                if thread == 0:
                    sweep[SWEEP.all_distinct] = (
                        schedule.all_distinct
                        and sweep[SWEEP.sweeps] == 0
                        and group < schedule.strips
                    )
                    shared.changes[0] = 0
                    sweep[SWEEP.buffer_start] = half * schedule.buffer
                    sweep[SWEEP.ticket_pair] = 2 - sweep[SWEEP.ticket_pair]
                cuda.syncthreads()
                note_time(run, step, 0)
                following = group + 1 if group + 1 < sweep[SWEEP.end_row] else np.int64(0)
                if buffered:
                    if not ready:
                        fill_buffer(
                            group, half * schedule.buffer, False, shared, plan, lists, rows, run
                        )
                        grid_barrier(run, sweep)
                    ready = schedule.early or sweep[SWEEP.layout] == 0
                    if ready:
                        half = 1 - half
                        fill_buffer(
                            following, half * schedule.buffer, True, shared, plan, lists, rows, run
                        )
                evaluate(
                    row, step, plan, tables, hubs, pieces, run, rows, lists, state, shared,
                    numbers,
                )  # fmt: skip
                note_time(run, step, 2)
                grid_barrier(run, sweep)
                note_time(run, step, 3)
                # The next group draws from the other pair: no barrier need come before it.
                if cuda.blockIdx.x == 0 and thread == 0:
                    run.drawn[np.uint64(sweep[SWEEP.ticket_pair])] = 0
                    run.drawn[np.uint64(sweep[SWEEP.ticket_pair] + 1)] = 0
                # What the next group needs to know is on its way while this one is updated.
                if thread < COLUMNS:
                    shared.groups[COLUMNS - row + thread] = plan.groups[following, thread]
                group, of_class = group + 1, of_class + 1
                if buffered and of_class < sweep[SWEEP.rows_a_class] and following > 0:
                    row = COLUMNS - row
                    continue  # a class is updated as a whole
                changes = np.int64(0)
                if buffered:
                    for one in range(group - of_class, group):
                        changes += update_group(one, plan, readers, run, state, shared, numbers)
                else:
                    changes = update_group(row, plan, readers, run, state, shared, numbers)
                of_class = np.int64(0)
                row = COLUMNS - row
                changes = sum_by_shuffles(changes)
                if thread % LANES == 0 and changes > 0:
                    cuda.atomic.add(shared.changes, 0, changes)
                cuda.syncthreads()
                if thread == 0 and shared.changes[0] > 0:
                    cuda.atomic.add(
                        run.changed,
                        np.uint64(sweep[SWEEP.sweeps] - schedule.forgotten),
                        np.int64(shared.changes[0]),
                    )
                note_time(run, step, 4)
                grid_barrier(run, sweep)
                if together:  # noqa: SIM102 (only a constant of its own spares the compiler the rest)
                    if schedule.long_list > 0 and sweep[SWEEP.activates] != 0:
                        activate_together(run, readers, shared)
                note_time(run, step, 5)
                step += 1
            if thread == 0:
                judge(sweep, run, schedule)
            cuda.syncthreads()
            # What failed in this sweep or before ends the run. A faster block may be in the next
            # one, where what fails is noted under a larger number: nobody leaves for that.
            failed = numbers.errors[0]
            if sweep[SWEEP.over] != 0 or (failed != 0 and failed <= sweep[SWEEP.sweeps] + 1):
                break
        if cuda.blockIdx.x == 0 and thread == 0:
            run.control[0] = sweep[SWEEP.sweeps]
            run.control[1] = sweep[SWEEP.explored]
            run.control[2] = sweep[SWEEP.everybody]

    def start(fields, errors):
        state = State(*fields)
        v = cuda.grid(1)
        if v < state.labels.size:
            say(v, state, errors)

    say = build_say(compiled)
    blocks = shared_memory.BLOCKS_A_MULTIPROCESSOR
    digest = (
        f"{compiled.digest} {index_type.__name__} {blocks} {shared_memory.TABLE_SLOTS} {clocked}"
        f" {reduces_lanes()}"
    )
    if decoding is not None:
        digest += f" {decoding}"
    return (
        kernel(propagate, digest, compiled, launch_bounds=(THREADS, blocks)),
        kernel(start, digest, compiled),
    )
