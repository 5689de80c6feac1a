"""The kernel of a rank: it applies what all ranks found in a class, and evaluates the next one.

Launched once a class: what the exchange has brought of the class before is written into the labels,
by the update of all kernels, as if it were a group of short rows; then the grid evaluates this
rank's vertices of the class, and what wins is collected for the exchange, in any order. The last
launch of a sweep only applies, and takes the decisions of the schedule, as on all ranks.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from glp_rapids.jit.cuda import cuda, kernel, reduces_lanes
from glp_rapids.jit.target import Target
from glp_rapids.propagation.compile_program import Compiled
from glp_rapids.propagation.kernels.gpu import (
    dispatch,
    schedule_rules,
    shared_memory,
    update,
    votes,
    winners,
)
from glp_rapids.propagation.kernels.gpu.arguments import PlanArrays
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


class Box(NamedTuple):
    """Winners that go out to other ranks, and those of all ranks that came in."""

    number: Any  # int64 [1]: how many go out; 0 before a launch
    vertices: Any
    labels: Any
    scores: Any  # one element where a program's update asks for none
    come_vertices: Any
    come_labels: Any
    come_scores: Any


class Step(NamedTuple):
    """What one launch does of a sweep."""

    come: Any  # winners that came in
    number: Any  # of the class to be evaluated; -1: none
    last: Any  # the sweep is over then


def build(compiled: Compiled, index_type: Any, target: Target) -> tuple[Any, Any]:
    """Make ``propagate_part``, and ``start`` for the first labels.

    Launch of ``propagate_part``: blocks of 256, as many as the device holds at once (three a
    multiprocessor), together. Shared memory: 43 KB. Registers: 80 at the most, which these bounds
    leave; it is made of the parts of `persistent`. Any degree; see `dispatch` for who serves it.

    Launch of ``start``: a thread a vertex. No shared memory.
    """
    functions = votes.build(compiled, index_type, target)
    rules = schedule_rules.build(target)
    grid_barrier, set_rule, judge = rules.grid_barrier, rules.set_rule, rules.judge
    keeps_score = not compiled.traits.default_update

    @cuda.jit(device=True)
    def note_time(run, step, moment):
        """Write nothing down: these steps are timed from the host."""

    evaluate = dispatch.build(compiled, functions, grid_barrier, note_time, target).evaluate
    activate_together = update.build_activate_together(grid_barrier)
    update_group = update.build(compiled, index_type, update.build_activate(), buffered=False)
    State = compiled.state_type
    _, vote_type, score_type = functions.types
    table = functions.table
    word_type, clear = table.word_type, table.clear
    slots, high_slots, two_groups = table.slots, table.high_slots, 2 * COLUMNS
    sweep_slots = len(SWEEP)

    @cuda.jit(device=True)
    def put(box, place, v, label, position, run):
        """Store a winner in the box."""
        box.vertices[place] = v
        box.labels[place] = label
        if keeps_score:
            box.scores[place] = run.winner_score[np.uint64(position)]

    collect = winners.build_collect(index_type, put)

    def propagate_part(plan, tables, hubs, pieces, run, rows, readers, lists, fields, schedule,
                       numbers, box, step):  # fmt: skip
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
                entries=cuda.shared.array(1, index_type),
                classes=cuda.shared.array(1, np.uint64),
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
            sweep[SWEEP.buffer_start] = 0
            sweep[SWEEP.sweeps] = run.control[0]
            sweep[SWEEP.explored] = run.control[1]
            sweep[SWEEP.everybody] = run.control[2]
            set_rule(sweep, plan, run, schedule)
            winners.describe(shared.groups, COLUMNS, np.int64(0), step.come)
        cuda.syncthreads()
        state = State(
            *(fields[:1] + (np.int64(sweep[SWEEP.sweeps] + 1),) + fields[2:])  # noqa: RUF005
        )
        group = sweep[SWEEP.first_row] + step.number
        if step.number >= 0 and thread < COLUMNS:
            shared.groups[thread] = plan.groups[group, thread]
        if step.come > 0:
            came = PlanArrays(
                box.come_vertices, plan.starts, plan.degrees, plan.groups, plan.levels
            )
            told = winners.with_winners(run, box.come_labels, box.come_scores)
            changes = update_group(COLUMNS, came, readers, told, state, shared, numbers)
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
        grid_barrier(run, sweep)
        if schedule.long_list > 0 and sweep[SWEEP.activates] != 0:
            activate_together(run, readers, shared)
        if step.number >= 0:
            if thread == 0:
                sweep[SWEEP.all_distinct] = (
                    schedule.all_distinct and sweep[SWEEP.sweeps] == 0 and step.number == 0
                )
            cuda.syncthreads()
            evaluate(
                0, np.int64(0), plan, tables, hubs, pieces, run, rows, lists, state, shared,
                numbers,
            )  # fmt: skip
            grid_barrier(run, sweep)
            collect(0, plan, run, box, box.number, shared)
        if step.last:
            if thread == 0:
                judge(sweep, run, schedule)
            cuda.syncthreads()
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
        f"part {compiled.digest} {index_type.__name__} {blocks} {shared_memory.TABLE_SLOTS} "
        f"{reduces_lanes()}"
    )
    return (
        kernel(propagate_part, digest, compiled, launch_bounds=(THREADS, blocks)),
        kernel(start, digest, compiled),
    )
