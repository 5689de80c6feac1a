"""The kernel of runs in which few vertices are active: it lists them, and needs no plan.

To list all vertices by class and degree takes as long as the sweeps of a whole run; and a sweep of
`persistent` looks at all of them. Here a step looks through the list for who is of its classes. Who
is evaluated leaves the list, and whoever takes the last of a vertex's slack appends it, so no
vertex is there twice. The order in the list differs from run to run and decides nothing.

A block takes 64 places of the list at a time: its warps evaluate rows of up to 1024 entries by the
functions of `persistent`, then the block together longer ones, and those with too many labels.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from glp_rapids.common.hashing import CLASS_SEED, mix
from glp_rapids.jit.cuda import cuda, kernel, load_fresh, reduces_lanes
from glp_rapids.jit.target import Target
from glp_rapids.propagation import slack, ties
from glp_rapids.propagation.compile_program import Compiled
from glp_rapids.propagation.kernels.gpu import (
    block_per_row,
    hub_merge,
    read_plain,
    schedule_rules,
    shared_memory,
    votes,
    warp_registers,
    warp_table,
)
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
from glp_rapids.propagation.kernels.gpu.votes import WARP_ENTRIES

PLACES = 64  # of the list, that a block looks at together
LONGEST = 1024  # entries of a row that a warp reads alone
OF_WARP = 128  # readers that a warp goes through; more, its block together
# In `FrontierRun.counts`: how many places of the list are taken, then the winners of three steps.
LISTED, WON, STEPS = 0, 1, 3


class Levels(NamedTuple):
    """How a sweep goes through the classes: what there is of a plan without vertices."""

    levels: Any  # as a plan has them; a group is a class
    strips: Any  # groups of a class


class Frontier(NamedTuple):
    """The active vertices, and the winners of a step."""

    active: Any  # vertices, -1 where one has left
    won_vertices: Any
    won_labels: Any
    counts: Any  # int64, see `LISTED`


class FrontierRun(NamedTuple):
    """Of `arguments.Run`, what there is without a plan."""

    slack: Any
    changed: Any
    barrier: Any
    control: Any


def build(compiled: Compiled, index_type: Any, target: Target) -> Any:
    """Make ``propagate_frontier`` for a plain program.

    Launch of ``propagate_frontier``: blocks of 256 together, one for every 64 active vertices, at
    least one a multiprocessor, at the most three. Shared memory: 43 KB. Any degree.
    """
    functions = votes.build(compiled, index_type, target)
    rules = schedule_rules.build(target)
    grid_barrier, set_rule, judge = rules.grid_barrier, rules.set_rule, rules.judge
    bears, slack_of = compiled.traits.bears_changes, target.compile(slack.slack_of)
    hashed, word_of = target.compile(mix), target.compile(ties.word_of)
    prunes = functions.growing
    register_row = warp_registers.build(functions, read_plain.read_row)
    table_row = warp_table.build(functions, read_plain.read_entries, exact=False)
    hub_functions = hub_merge.build(functions, prunes)
    block_row = block_per_row.build(functions, hub_functions, read_plain.read_entries, prunes)
    State = compiled.state_type
    _, vote_type, score_type = functions.types
    table = functions.table
    word_type, clear, warp_slots = table.word_type, table.clear, table.warp_slots
    slots, high_slots, sweep_slots = table.slots, table.high_slots, len(SWEEP)

    @cuda.jit(device=True)
    def note(v, degree, label, score, current, step, run, frontier, numbers):
        """Write down the outcome of a vertex; it is settled until its slack is used up."""
        left = np.int32(0)
        if bears and label >= 0:
            left = slack_of(np.int64(score), np.int64(degree), numbers.largest_vote)
        run.slack[np.uint64(v)] = left
        if label >= 0 and label != current:
            place = np.uint64(cuda.atomic.add(frontier.counts, np.uint64(WON + step), np.int64(1)))
            frontier.won_vertices[place] = v
            frontier.won_labels[place] = label

    @cuda.jit(device=True)
    def evaluate(first_class, end_class, listed, classes, step, tables, frontier, pieces, run, rows,
                 lists, state, shared, numbers):  # fmt: skip
        """Evaluate who is listed and of some classes; the whole grid calls this."""
        thread, lane = np.int64(cuda.threadIdx.x), np.int32(cuda.threadIdx.x % LANES)
        warp = np.int32(cuda.threadIdx.x // LANES)
        base = np.int32(warp * warp_slots)
        # vertices for the warps, then those that are left to the block
        queue, number, left_over = shared.readers, shared.readers.number, shared.queue.number
        begin = np.int64(cuda.blockIdx.x) * PLACES
        while begin < listed:  # the same for all threads of a block
            if thread < PLACES and begin + thread < listed:
                v = np.int64(frontier.active[np.uint64(begin + thread)])
                if v >= 0:
                    word = word_of(v, numbers.first_id, numbers.id_words)
                    of_class = np.int64(hashed(word, CLASS_SEED) % np.uint64(classes))
                    if of_class >= first_class and of_class < end_class:
                        frontier.active[np.uint64(begin + thread)] = -1
                        queue.first[cuda.atomic.add(number, 0, np.int32(1))] = v
            cuda.syncthreads()
            i = warp
            while i < number[0]:
                v = index_type(queue.first[i])
                start = rows.indptr[np.uint64(v)]
                length = rows.indptr[np.uint64(v) + np.uint64(1)] - start
                current = index_type(state.labels[np.uint64(v)])
                label, score = index_type(-1), score_type(0)
                failed = length > LONGEST
                degree = np.int32(min(length, LONGEST))
                if not failed and degree > WARP_ENTRIES:
                    label, score, _, failed = table_row(
                        v, start, degree, current, lane, base, rows, lists, state, shared, numbers
                    )
                elif not failed and degree > 0:
                    label, score, _ = register_row(
                        v, start, degree, np.int32(0), current, lane, base, rows, lists, state,
                        shared, numbers,
                    )  # fmt: skip
                if lane == 0:
                    if failed:
                        queue.last[cuda.atomic.add(left_over, 0, np.int32(1))] = np.int64(v)
                    else:
                        note(v, length, label, score, current, step, run, frontier, numbers)
                cuda.syncwarp()
                i = np.int32(i + WARPS)
            cuda.syncthreads()
            for k in range(left_over[0]):
                v = index_type(queue.last[k])
                start = rows.indptr[np.uint64(v)]
                length = rows.indptr[np.uint64(v) + np.uint64(1)] - start
                current = index_type(state.labels[np.uint64(v)])
                label, score, _ = block_row(
                    v, start, length, np.int64(-1), np.int64(-1), np.int64(0), np.int64(1),
                    np.int64(0), np.int64(0), current, tables, pieces, rows, lists, state, shared,
                    numbers,
                )  # fmt: skip
                if thread == 0:
                    note(v, length, label, score, current, step, run, frontier, numbers)
                cuda.syncthreads()
            if thread == 0:
                number[0] = 0
                left_over[0] = 0
            cuda.syncthreads()
            begin += np.int64(cuda.gridDim.x) * PLACES

    @cuda.jit(device=True)
    def wake(first, last, stride, run, frontier, readers):
        """Take from the slack of every stride-th reader of a list; list whose was the last."""
        j = first
        while j < last:
            u = readers.indices[np.uint64(j)]
            if cuda.atomic.add(run.slack, np.uint64(u), np.int32(-1)) == 0:
                place = cuda.atomic.add(frontier.counts, np.uint64(LISTED), np.int64(1))
                frontier.active[np.uint64(place)] = u
            j += stride

    @cuda.jit(device=True)
    def update(won, run, frontier, readers, state, shared):
        """Write the winners of a step down, and wake who reads them; the whole grid calls this."""
        thread, lane = np.int64(cuda.threadIdx.x), np.int64(cuda.threadIdx.x % LANES)
        queue, number = shared.readers, shared.readers.number
        begin = np.int64(cuda.blockIdx.x) * WARPS
        while begin < won:  # the same for all threads of a block
            place = begin + thread // LANES
            start, end = np.int64(0), np.int64(0)
            if place < won:
                v = frontier.won_vertices[np.uint64(place)]
                if lane == 0:
                    state.labels[np.uint64(v)] = frontier.won_labels[np.uint64(place)]
                start = readers.indptr[np.uint64(v)]
                end = readers.indptr[np.uint64(v) + np.uint64(1)]
            if end - start <= OF_WARP:
                wake(start + lane, end, np.int64(LANES), run, frontier, readers)
            elif lane == 0:
                k = cuda.atomic.add(number, 0, np.int32(1))
                queue.first[k] = start
                queue.last[k] = end
            cuda.syncthreads()
            for k in range(number[0]):
                wake(queue.first[k] + thread, queue.last[k], np.int64(THREADS), run, frontier,
                     readers)  # fmt: skip
            cuda.syncthreads()
            if thread == 0:
                number[0] = 0
            cuda.syncthreads()
            begin += np.int64(cuda.gridDim.x) * WARPS

    @cuda.jit(device=True)
    def count_for_all(frontier, which, shared):
        """Return a count, as it is now, to all threads of a block."""
        if cuda.threadIdx.x == 0:
            shared.queue.drawn[0] = load_fresh(frontier.counts, which)
        cuda.syncthreads()
        count = shared.queue.drawn[0]
        cuda.syncthreads()
        return count

    def propagate_frontier(plan, tables, frontier, pieces, run, rows, readers, lists, fields,
                           schedule, numbers, most):  # fmt: skip
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
            shared.readers.number[0] = 0
            sweep[SWEEP.over] = 0
            sweep[SWEEP.goal] = 0
            sweep[SWEEP.all_distinct] = 0
            sweep[SWEEP.sweeps] = run.control[0]
            sweep[SWEEP.explored] = run.control[1]
            sweep[SWEEP.everybody] = run.control[2]
        step = np.int64(0)
        for _ in range(schedule.sweeps):
            if thread == 0:
                set_rule(sweep, plan, run, schedule)
            cuda.syncthreads()
            state = State(
                *(fields[:1] + (np.int64(sweep[SWEEP.sweeps] + 1),) + fields[2:])  # noqa: RUF005
            )
            first_class = np.int64(0)
            while first_class < schedule.classes:
                end_class = min(first_class + sweep[SWEEP.rows_a_class], schedule.classes)
                listed = count_for_all(frontier, LISTED, shared)
                evaluate(
                    first_class, end_class, listed, schedule.classes, step, tables, frontier,
                    pieces, run, rows, lists, state, shared, numbers,
                )  # fmt: skip
                grid_barrier(run, sweep)
                won = count_for_all(frontier, WON + step, shared)
                # All have seen the count of the step before, and the next but one adds to it.
                if cuda.blockIdx.x == 0 and thread == 0:
                    frontier.counts[np.uint64(WON + (step + STEPS - 1) % STEPS)] = 0
                if won > 0:
                    update(won, run, frontier, readers, state, shared)
                    if cuda.blockIdx.x == 0 and thread == 0:
                        run.changed[np.uint64(sweep[SWEEP.sweeps] - schedule.forgotten)] += won
                    grid_barrier(run, sweep)
                step = (step + 1) % STEPS
                first_class = end_class
            if thread == 0:
                judge(sweep, run, schedule)
            cuda.syncthreads()
            listed = count_for_all(frontier, LISTED, shared)
            # What failed later, in a faster block, is noted under a larger number.
            failed = numbers.errors[0]
            if (
                sweep[SWEEP.over] != 0
                or listed > most
                or (failed != 0 and failed <= sweep[SWEEP.sweeps] + 1)
            ):
                break
        if cuda.blockIdx.x == 0 and thread == 0:
            run.control[0] = sweep[SWEEP.sweeps]
            run.control[1] = sweep[SWEEP.explored]
            run.control[2] = sweep[SWEEP.everybody]

    blocks = shared_memory.BLOCKS_A_MULTIPROCESSOR
    digest = (
        f"frontier {compiled.digest} {index_type.__name__} {blocks} {shared_memory.TABLE_SLOTS} "
        f"{reduces_lanes()}"
    )
    return kernel(propagate_frontier, digest, compiled, launch_bounds=(THREADS, blocks))
