"""The kernel of a rank whose GPU stores into the others': all sweeps in one launch.

As in `persistent` the host is not asked in between. What wins in a class is stored at once into the
inbox of every rank, its own included, each sender in a segment of its own, so that places need no
agreement. One barrier of all ranks a class says how many came from each; then every rank applies
all of them, by the update of all kernels, as groups of short rows. Two inboxes are used in turn:
who stores into one again has seen all ranks come to the barrier after the one that filled it.

Whose label changed is known on every rank, but who reads it on that of its row alone: that one
takes from the slack of the readers, wherever they are evaluated, and a second barrier of all ranks
lets this come before the next class. So no rank holds more lists than those of its range.

Ranks take the same decisions from the same words: each counts all changes, and what failed on one
comes with its word of the barrier.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from glp_rapids.jit.cuda import (
    add_released,
    cuda,
    kernel,
    load_fresh,
    nanoseconds,
    reduces_lanes,
)
from glp_rapids.jit.peer_memory import (
    load_of_system,
    store_at,
    store_released_at,
    take_one_at,
)
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

# Rows of `Peers.addresses`.
VERTICES, LABELS, SCORES, MAIL, SLACK = range(5)
# Words of `Peers.facts`: winners sent, nanoseconds waited for other ranks, whether the run broke.
SENT, WAITED, BROKEN = range(3)
FACTS = 3
SILENCE = 1024  # looks at a flag between two at the host's word and at the clock


class Peers(NamedTuple):
    """Where ranks store what they found, and what came to this one."""

    addresses: Any  # int64 [5, ranks]: the five arrays below, of every rank
    vertices: Any  # the inboxes: two turns of a segment for each sender
    labels: Any
    scores: Any  # one element where a program's update asks for none
    mail: Any  # int64: how many winners and which failure, by turn and sender; then their flags
    slack: Any  # int32 by vertex: that of the run
    bounds: Any  # int64 [ranks + 1]: where the range of each rank begins
    first: Any  # int64 [ranks + 1]: where in a turn the segment of each sender begins
    number: Any  # int64 [1]: how many winners of this class went out so far
    facts: Any  # int64 [3]
    stop: Any  # int64 [1] in the host's memory: not 0 once a rank has failed there
    patience: Any  # nanoseconds
    rank: Any
    ranks: Any


class PeerReaders(NamedTuple):
    """Who reads the vertices of this rank, and where slack is."""

    indptr: Any
    indices: Any
    addresses: Any
    bounds: Any


@cuda.jit(device=True)
def take_one_there(run, readers, u):
    """Take one from the slack of a vertex on the rank that evaluates it."""
    rank = 0
    while np.int64(u) >= readers.bounds[rank + 1]:
        rank += 1
    take_one_at(readers.addresses[SLACK, rank], np.int64(u))


def build(compiled: Compiled, index_type: Any, target: Target) -> tuple[Any, Any]:
    """Make ``propagate_with_peers``, and ``start`` for the first labels.

    Launch of ``propagate_with_peers``: blocks of 256, as many as the device holds at once (three a
    multiprocessor), together, and at the same time on all GPUs. Shared memory: 43 KB. Registers: 80
    at the most, which these bounds leave; it is made of the parts of `persistent`. Any degree; see
    `dispatch` for who serves it.

    Launch of ``start``: a thread a vertex. No shared memory.
    """
    functions = votes.build(compiled, index_type, target)
    rules = schedule_rules.build(target)
    grid_barrier, set_rule, judge = rules.grid_barrier, rules.set_rule, rules.judge
    keeps_score = not compiled.traits.default_update

    @cuda.jit(device=True)
    def note_time(run, step, moment):
        """Write nothing down: `Peers.facts` has what ranks waited."""

    evaluate = dispatch.build(compiled, functions, grid_barrier, note_time, target).evaluate
    activate_together = update.build_activate_together(grid_barrier, take_one_there)
    activate_readers = update.build_activate(take=take_one_there)
    update_group = update.build(compiled, index_type, activate_readers, buffered=False)
    State = compiled.state_type
    _, vote_type, score_type = functions.types
    table = functions.table
    word_type, clear = table.word_type, table.clear
    slots, high_slots, three_groups = table.slots, table.high_slots, 3 * COLUMNS
    sweep_slots, others = len(SWEEP), 2 * COLUMNS

    @cuda.jit(device=True)
    def put(box, place, v, label, position, run):
        """Store a winner on every rank; ``box``: the peers, and where the segment begins."""
        peers, first = box
        at = first + np.int64(place)
        for rank in range(peers.ranks):
            store_at(peers.addresses[VERTICES, rank], at, index_type(v))
            store_at(peers.addresses[LABELS, rank], at, index_type(label))
            if keeps_score:
                store_at(peers.addresses[SCORES, rank], at, run.winner_score[np.uint64(position)])

    collect = winners.build_collect(index_type, put)

    @cuda.jit(device=True)
    def tell_all(step, peers, numbers):
        """Say to all ranks that this one is done with a step, and wait for theirs; one thread."""
        sent, failed = load_fresh(peers.number, 0), load_fresh(numbers.errors, 0)
        word = 2 * ((step & 1) * peers.ranks + peers.rank)
        for rank in range(peers.ranks):
            store_at(peers.addresses[MAIL, rank], word, sent)
            store_at(peers.addresses[MAIL, rank], word + 1, failed)
        cuda.threadfence_system()
        flags = 4 * peers.ranks
        for rank in range(peers.ranks):
            store_released_at(peers.addresses[MAIL, rank], flags + peers.rank, step)
        begin, looks = nanoseconds(), 0
        for rank in range(peers.ranks):
            while load_of_system(peers.mail, flags + rank) < step and peers.facts[BROKEN] == 0:
                looks += 1
                if looks % SILENCE == 0:
                    late = nanoseconds() - begin > peers.patience
                    if late or load_of_system(peers.stop, 0) != 0:
                        peers.facts[BROKEN] = 1
        peers.facts[SENT] += sent
        peers.facts[WAITED] += nanoseconds() - begin
        peers.number[0] = 0

    @cuda.jit(device=True)
    def barrier_of_ranks(step, peers, run, now, numbers):
        """Wait for all blocks of all ranks; what they stored is then seen by all."""
        cuda.syncthreads()
        if cuda.threadIdx.x == 0:
            cuda.threadfence_system()  # for what its block has stored elsewhere
            now[SWEEP.goal] += np.int64(cuda.gridDim.x) + 1
            add_released(run.barrier, 0, np.int64(1))
            if cuda.blockIdx.x == 0:
                while load_fresh(run.barrier, 0) < now[SWEEP.goal] - 1:
                    pass
                cuda.threadfence_system()
                tell_all(step, peers, numbers)
                cuda.threadfence_system()
                add_released(run.barrier, 0, np.int64(1))
            while load_fresh(run.barrier, 0) < now[SWEEP.goal]:
                pass
        cuda.syncthreads()

    def propagate_with_peers(plan, tables, hubs, pieces, run, rows, readers, lists, fields,
                             schedule, numbers, peers):  # fmt: skip
        shared = SharedMemory(
            sweep=cuda.shared.array(sweep_slots, np.int64),
            groups=cuda.shared.array(three_groups, np.int64),
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
        came = PlanArrays(peers.vertices, plan.starts, plan.degrees, plan.groups, plan.levels)
        told = winners.with_winners(run, peers.labels, peers.scores)
        heard = PeerReaders(readers.indptr, readers.indices, peers.addresses, peers.bounds)
        step, row = np.int64(0), np.int64(0)
        for _ in range(schedule.sweeps):
            if thread == 0:
                set_rule(sweep, plan, run, schedule)
            cuda.syncthreads()
            state = State(
                *(fields[:1] + (np.int64(sweep[SWEEP.sweeps] + 1),) + fields[2:])  # noqa: RUF005
            )
            group = sweep[SWEEP.first_row]
            if thread < COLUMNS:
                shared.groups[row + thread] = plan.groups[group, thread]
            while group < sweep[SWEEP.end_row]:
                if thread == 0:
                    sweep[SWEEP.all_distinct] = (
                        schedule.all_distinct
                        and sweep[SWEEP.sweeps] == 0
                        and group == sweep[SWEEP.first_row]
                    )
                    shared.changes[0] = 0
                    sweep[SWEEP.ticket_pair] = 2 - sweep[SWEEP.ticket_pair]
                cuda.syncthreads()
                evaluate(
                    row, np.int64(0), plan, tables, hubs, pieces, run, rows, lists, state, shared,
                    numbers,
                )  # fmt: skip
                grid_barrier(run, sweep)
                # The next group draws from the other pair: no barrier need come before it.
                if cuda.blockIdx.x == 0 and thread == 0:
                    run.drawn[np.uint64(sweep[SWEEP.ticket_pair])] = 0
                    run.drawn[np.uint64(sweep[SWEEP.ticket_pair] + 1)] = 0
                step += 1
                turn = (step & 1) * peers.first[peers.ranks]
                collect(
                    row, plan, run, (peers, turn + peers.first[peers.rank]), peers.number, shared
                )
                following = group + 1 if group + 1 < sweep[SWEEP.end_row] else np.int64(0)
                if thread < COLUMNS:
                    shared.groups[COLUMNS - row + thread] = plan.groups[following, thread]
                barrier_of_ranks(step, peers, run, sweep, numbers)
                if load_fresh(peers.facts, BROKEN) != 0:
                    return  # the host says why
                changes, wakes = np.int64(0), sweep[SWEEP.activates]
                for rank in range(peers.ranks):
                    cuda.syncthreads()  # the description before has been read
                    if thread == 0:
                        sweep[SWEEP.activates] = wakes if rank == peers.rank else np.int64(0)
                        winners.describe(
                            shared.groups, others, turn + peers.first[rank],
                            load_fresh(peers.mail, 2 * ((step & 1) * peers.ranks + rank)),
                        )  # fmt: skip
                    cuda.syncthreads()
                    changes += update_group(others, came, heard, told, state, shared, numbers)
                changes = sum_by_shuffles(changes)
                if thread % LANES == 0 and changes > 0:
                    cuda.atomic.add(shared.changes, 0, changes)
                cuda.syncthreads()
                if thread == 0:
                    sweep[SWEEP.activates] = wakes
                    if shared.changes[0] > 0:
                        cuda.atomic.add(
                            run.changed,
                            np.uint64(sweep[SWEEP.sweeps] - schedule.forgotten),
                            np.int64(shared.changes[0]),
                        )
                if wakes == 0 or schedule.long_list > 0:
                    grid_barrier(run, sweep)
                if wakes != 0:
                    if schedule.long_list > 0:
                        activate_together(run, heard, shared)
                    step += 1
                    barrier_of_ranks(step, peers, run, sweep, numbers)
                    if load_fresh(peers.facts, BROKEN) != 0:
                        return
                group += 1
                row = COLUMNS - row
            if thread == 0:
                judge(sweep, run, schedule)
                # What failed on any rank in this sweep or before ends the run on all of them.
                failed = numbers.errors[0]
                if failed != 0 and failed <= sweep[SWEEP.sweeps] + 1:
                    sweep[SWEEP.over] = 1
                for rank in range(peers.ranks):
                    failed = load_fresh(peers.mail, 2 * ((step & 1) * peers.ranks + rank) + 1)
                    if failed != 0 and failed <= sweep[SWEEP.sweeps] + 1:
                        sweep[SWEEP.over] = 1
            cuda.syncthreads()
            if sweep[SWEEP.over] != 0:
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
        f"peers 2 {compiled.digest} {index_type.__name__} {blocks} {shared_memory.TABLE_SLOTS} "
        f"{reduces_lanes()}"
    )
    return (
        kernel(propagate_with_peers, digest, compiled, launch_bounds=(THREADS, blocks)),
        kernel(start, digest, compiled),
    )
