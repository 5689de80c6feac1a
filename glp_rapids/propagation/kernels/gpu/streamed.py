"""The streamed kernel: rows in pinned host memory, of which a strip at a time is on the device.

Launched once for each strip that the copy engine brings, and the strips beside it that are on the
device already: it evaluates them and, with the last strip of a class, updates the class. Or once
for whole sweeps in which little is active: then it fetches, strip by strip, what is needed.

A strip is a group of the plan. Some are on the device for good, the others come into slots; there a
row lies where the plan says, less where its strip begins on the host. Strips that another GPU
evaluates never come. Readers of vertices that changed are found in a strip that is still there,
else in host memory: only rows of changed ones.

Packed lists come as they are, strips of words, and are decoded where they are counted.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from glp_rapids.jit.cuda import cuda, kernel, reduces_lanes
from glp_rapids.jit.target import Target
from glp_rapids.propagation.compile_program import Compiled
from glp_rapids.propagation.kernels.gpu import (
    census,
    dispatch,
    fetch,
    packed_numbers,
    read_packed,
    schedule_rules,
    shared_memory,
    streamed_packed,
    update,
    votes,
)
from glp_rapids.propagation.kernels.gpu.arguments import Decoding, Rows
from glp_rapids.propagation.kernels.gpu.failures import build_say
from glp_rapids.propagation.kernels.gpu.plan import (
    COLUMNS,
    END_OF_BATCHES,
    FIRST_BATCH,
    HUBS,
    LAST_END,
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
from glp_rapids.propagation.kernels.gpu.streamed_packed import PackedReaders
from glp_rapids.propagation.kernels.gpu.warp_reductions import sum_by_shuffles

EVERYTHING = np.iinfo(np.int64).max  # behind all positions, and all strips
IN_SLOT, OF_OTHERS = -1, -2  # places of strips that are not on the device for good


class StreamedLists(NamedTuple):
    """Neighbour lists in host memory, in the order of the plan, and where strips are."""

    entries: Any  # pinned; of packed lists the words
    weights: Any  # pinned
    first: Any  # int64, by strip: its first entry there
    place: Any  # int64, by strip: where it begins on the device; or `IN_SLOT`, `OF_OTHERS`
    slots: Any  # int64 [2]: where these begin
    moved: Any  # int64 [1]: entries read over the bus
    packed: Any  # `CompressedLists`: the words on the device, and how they are read


class Step(NamedTuple):
    """What one launch does of a sweep."""

    first: Any  # strip; -1: the sweep's first
    end: Any  # behind its last strip; -1: the sweep's
    slot: Any
    filled: Any  # the strip that has a slot is in it
    last: Any  # the sweep is over then
    since: Any = np.int64(0)  # positions before have been evaluated
    until: Any = np.int64(EVERYTHING)  # from this position on others evaluate, or a later launch
    updated: Any = np.int64(EVERYTHING)  # classes that end up to this strip are updated


class StripReaders(NamedTuple):
    """Lists of readers by the position of their vertex in the plan."""

    starts: Any
    degrees: Any
    indices: Any
    shift: Any  # how much further on a list begins than ``starts`` says
    moved: Any
    counts: Any  # whether they are read over the bus


class ReadersApart(NamedTuple):
    """Lists of readers in host memory, by vertex."""

    indptr: Any
    indices: Any  # pinned
    moved: Any


@cuda.jit(device=True)
def bounds_apart(readers, v):
    """Return where the list of a vertex begins and ends."""
    start, end = readers.indptr[np.uint64(v)], readers.indptr[np.uint64(v + 1)]
    cuda.atomic.add(readers.moved, 0, end - start)
    return start, end


@cuda.jit(device=True)
def bounds_of_position(readers, position):
    """Return where the list of a position begins and ends."""
    start = readers.starts[np.uint64(position)] + readers.shift
    length = np.int64(readers.degrees[np.uint64(position)])
    if readers.counts:
        cuda.atomic.add(readers.moved, 0, length)
    return start, start + length


def build(
    compiled: Compiled, index_type: Any, target: Target, weight_type: Any, apart: bool,
    decoding: Decoding | None = None,
) -> tuple[Any, Any, Any]:  # fmt: skip
    """Make ``propagate_strips``, ``start`` for the first labels, and the census.

    ``weight_type``: None if there are no weights. ``apart``: readers are other rows. ``decoding``:
    how packed lists are read, whose parts a warp reads at once; None: lists are plain.

    Launch of ``propagate_strips``: blocks of 256, as many as the device holds at once (three a
    multiprocessor), together. Shared memory: 43 KB, 48 for packed lists. Registers: 80, and 552
    bytes of local memory a thread, 592 for packed lists (classic, for 9.0). Any degree; see
    `dispatch` for who serves it.
    """
    packed = decoding is not None
    functions = votes.build(compiled, index_type, target)
    rules = schedule_rules.build(target)
    grid_barrier, set_rule, judge = rules.grid_barrier, rules.set_rule, rules.judge

    @cuda.jit(device=True)
    def note_time(run, step, moment):
        """Write nothing down: these steps are timed from the host."""

    evaluation = dispatch.build(
        compiled, functions, grid_barrier, note_time, target, decoding, streamed=True
    )
    evaluate, load_classes = evaluation.evaluate, evaluation.load_classes
    fill = fetch.build(np.uint32 if packed else index_type, weight_type, packed)
    activate_readers = update.build_activate(bounds_apart if apart else bounds_of_position)
    entries_of_packed, classes, scale = 1, 1, 1
    if packed:
        activate_readers = streamed_packed.build_activate(decoding, target)
        entries_of_packed, classes = WARPS * read_packed.SEGMENT, packed_numbers.ENTRIES
        scale = streamed_packed.WORD
    update_group = update.build(
        compiled, index_type, activate_readers, buffered=True, by_position=not apart, ranged=True
    )
    State = compiled.state_type
    _, vote_type, score_type = functions.types
    table = functions.table
    word_type, clear = table.word_type, table.clear
    slots, high_slots, two_groups = table.slots, table.high_slots, 2 * COLUMNS
    sweep_slots = len(SWEEP)

    @cuda.jit(device=True)
    def readers_of(strip, held, slot, plan, rows, lists, readers):
        """Return the lists of readers of a strip's vertices."""
        if apart:
            return readers
        shift, here = lists.place[strip] - lists.first[strip], True
        if lists.place[strip] < 0:
            shift, here = np.int64(0), strip == held
            if here:
                shift = lists.slots[slot] - lists.first[strip] // LANES * LANES
        entries = lists.entries
        if packed:
            if here:
                entries = lists.packed.words
            how = lists.packed
            return PackedReaders(
                plan.vertices, plan.starts, plan.degrees, entries, how.tables, how.settings,
                how.place, how.order, scale * shift, lists.moved, not here,
            )  # fmt: skip
        if here:
            entries = rows.indices
        return StripReaders(plan.starts, plan.degrees, entries, shift, lists.moved, not here)

    def propagate_strips(plan, tables, hubs, pieces, run, rows, readers, lists, fields, schedule,
                         numbers, step):  # fmt: skip
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
                entries=cuda.shared.array(entries_of_packed, index_type),
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
            sweep[SWEEP.long_list] = 0  # where lists lie differs from strip to strip
            sweep[SWEEP.ticket_pair] = 0
            sweep[SWEEP.sweeps] = run.control[0]
            sweep[SWEEP.explored] = run.control[1]
            sweep[SWEEP.everybody] = run.control[2]
        if packed:
            load_classes(lists.packed, shared.packed)
        for _ in range(schedule.sweeps):
            if thread == 0:
                set_rule(sweep, plan, run, schedule)
            cuda.syncthreads()
            state = State(
                *(fields[:1] + (np.int64(sweep[SWEEP.sweeps] + 1),) + fields[2:])  # noqa: RUF005
            )
            strip, end = sweep[SWEEP.first_row], sweep[SWEEP.end_row]
            if step.first >= 0:
                strip, end = step.first, step.end
            a_class = sweep[SWEEP.rows_a_class]
            of_class = (strip - sweep[SWEEP.first_row]) % a_class
            held = np.int64(-1)  # the strip that is in the slot
            while strip < end:
                place, first = lists.place[strip], lists.first[strip]
                shift = place - first
                if place < 0:
                    shift = lists.slots[step.slot] - first // LANES * LANES
                # Ranges of degrees begin and end where the launch does. Hubs come in the first one.
                begin, behind = plan.groups[strip, HUBS], plan.groups[strip, LAST_END]
                if thread < COLUMNS:
                    column = plan.groups[strip, thread]
                    if thread <= LAST_END:
                        column = max(min(column, step.until), step.since)
                    elif thread == FIRST_BATCH and step.since > begin:
                        column = plan.groups[strip, END_OF_BATCHES]
                    shared.groups[thread] = column
                evaluates = place != OF_OTHERS
                evaluates &= max(begin, step.since) < min(behind, step.until)
                if thread == 0:
                    sweep[SWEEP.all_distinct] = (
                        schedule.all_distinct
                        and sweep[SWEEP.sweeps] == 0
                        and strip < schedule.strips
                    )
                    shared.changes[0] = 0
                    sweep[SWEEP.buffer_start] = scale * shift
                    if evaluates:
                        sweep[SWEEP.ticket_pair] = 2 - sweep[SWEEP.ticket_pair]
                cuda.syncthreads()
                if place == IN_SLOT and begin < min(behind, step.until):
                    held = strip  # up to there
                    if not step.filled:
                        if packed:
                            words = Rows(rows.indptr, lists.packed.words, rows.weights)
                            fill(strip, shift, shared, plan, lists, words, run)
                        else:
                            fill(strip, shift, shared, plan, lists, rows, run)
                        grid_barrier(run, sweep)
                if evaluates:
                    evaluate(
                        0, np.int64(0), plan, tables, hubs, pieces, run, rows, lists.packed, state,
                        shared, numbers,
                    )  # fmt: skip
                    grid_barrier(run, sweep)
                    # The next strip draws from the other pair: no barrier need come before it.
                    if cuda.blockIdx.x == 0 and thread == 0:
                        run.drawn[np.uint64(sweep[SWEEP.ticket_pair])] = 0
                        run.drawn[np.uint64(sweep[SWEEP.ticket_pair] + 1)] = 0
                strip, of_class = strip + 1, of_class + 1
                ends = of_class == a_class or strip == sweep[SWEEP.end_row]
                if not (ends and strip <= step.updated):
                    continue  # a class is updated as a whole
                changes = np.int64(0)
                for one in range(strip - of_class, strip):
                    # Rows that others have evaluated have not come.
                    since, until, here = np.int64(0), step.until, held
                    while since < plan.groups[one, LAST_END]:
                        told = readers_of(one, here, step.slot, plan, rows, lists, readers)
                        changes += update_group(
                            one, plan, told, run, state, shared, numbers, since, until
                        )
                        since, until, here = until, np.int64(EVERYTHING), np.int64(-1)
                of_class = np.int64(0)
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
            if not step.last:
                return
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
        f"strips {compiled.digest} {index_type.__name__} {blocks} {shared_memory.TABLE_SLOTS} "
        f"{reduces_lanes()} {weight_type} {apart} {decoding}"
    )
    return (
        kernel(propagate_strips, digest, compiled, launch_bounds=(THREADS, blocks)),
        kernel(start, digest, compiled),
        kernel(census.census, f"census {index_type.__name__}"),
    )
