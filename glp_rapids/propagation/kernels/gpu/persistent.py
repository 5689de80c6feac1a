"""The persistent kernel: sweeps, classes, evaluation, update and the decision to stop.

One cooperative launch does as many sweeps as are asked for. A class is one evaluation and one
update, with a barrier of the whole grid after each; the host is not asked in between. On a
compressed graph each group of a class (a strip of it, or all) is decoded before it is evaluated.

A barrier empties the first-level cache, so whatever is spilled from registers or looked up per
class costs a trip to the second level, hundreds of times a run. What a class needs to know is
therefore kept in shared memory, and fetched for the next class while one is updated.
"""

from __future__ import annotations

from collections import namedtuple
from types import SimpleNamespace
from typing import Any

import numpy as np

from glp_rapids.jit.cuda import cuda, kernel
from glp_rapids.jit.target import Target
from glp_rapids.propagation.compile_program import Compiled
from glp_rapids.propagation.kernels.gpu import (
    decode_buffer,
    dispatch,
    read_packed,
    schedule_rules,
    votes,
)
from glp_rapids.propagation.kernels.gpu import update as auto_update
from glp_rapids.propagation.kernels.gpu.dispatch import DEFERRED
from glp_rapids.propagation.kernels.gpu.failures import build_say
from glp_rapids.propagation.kernels.gpu.plan import BINS, BOUNDS, META
from glp_rapids.propagation.kernels.gpu.votes import (
    COUNTERS,
    DISTINCT,
    EVERYBODY,
    EXPLORED,
    LANES,
    LAYOUT,
    NOW,
    ONCE,
    OVER,
    SHIFT,
    SWEEPS,
    THREADS,
    TICKETS,
    WARPS,
    Here,
    common,
)

Lists = namedtuple("Lists", "vertices starts degrees meta")
Tables = namedtuple("Tables", "keys votes lacks touched filled")
Hubs = namedtuple("Hubs", "position base slots first_piece piece_hub batch_pieces")
Pieces = namedtuple("Pieces", "label heard tied bound arrived")
Run = namedtuple("Run", "active tied winner winner_score changed drawn barrier control")
Course = namedtuple(
    "Course",
    "classes strips sweeps dropped explore stops few patience retain tie_break seed skip distinct "
    "once wholesale awake room early",
)


def build(
    compiled: Compiled, index_type: Any, target: Target, compressed: SimpleNamespace | None = None
) -> Any:
    """Make the kernel of one program; for ``compressed`` lists of a scheme, see `auto_fetch`.

    Launch: blocks of 256, as many as the device holds at once (three a multiprocessor), together.
    Shared memory: 43 KB, 48 for packed lists. Registers: 80, and 200 to 520 bytes of local memory a
    thread, by program. Any degree.
    """
    shared = common(compiled, index_type, target)
    wake = auto_update.build_wake()
    if compressed is not None:
        wake = decode_buffer.build_wake(compressed, target)
    update = auto_update.build(compiled, index_type, wake)
    sum_of_lanes = shared.sum_of_lanes
    course_of = schedule_rules.build(target)
    meet, set_rule, judge = course_of.meet, course_of.set_rule, course_of.judge
    evaluation = dispatch.build(compiled, shared, meet, compressed, target)
    evaluate, fetch = evaluation.evaluate, evaluation.fetch
    fetched = fetch is not None
    near, classes, fill_tables = 1, 1, None
    if compressed is not None and compressed.near:
        near, classes = WARPS * read_packed.SEGMENT, read_packed.ENTRIES
        fill_tables = evaluation.fill_tables
    State = compiled.state_type
    vote_type, score_type = shared.vote_type, shared.score_type
    word_type, wipe = shared.word_type, shared.wipe
    slots, highs, two_classes = shared.slots, shared.highs, 2 * META

    def propagate(lists, tables, hubs, pieces, run, rows, readers, stream, fields, course, numbers):
        here = Here(
            now=cuda.shared.array(NOW, np.int64),
            meta=cuda.shared.array(two_classes, np.int64),
            keys=cuda.shared.array(slots, index_type),
            votes=cuda.shared.array(slots, word_type),
            highs=cuda.shared.array(highs, np.int32),
            sketch=cuda.shared.array(COUNTERS, vote_type),
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
            near=cuda.shared.array(near, index_type),
            classes=cuda.shared.array(classes, np.uint64),
        )
        # Our own barrier, which is inlined; asking for the grid makes the launch cooperative.
        cuda.cg.this_grid()
        thread, blocks = cuda.threadIdx.x, np.int64(cuda.gridDim.x)
        for slot in range(thread, slots, THREADS):
            wipe(here, slot)
        for i in range(thread, COUNTERS, THREADS):
            here.sketch[i] = vote_type(0)
        if thread < META:
            here.meta[thread] = lists.meta[0, thread]
        if thread == 0:
            here.waiting[0] = 0
            here.changes[0] = 0
            here.now[OVER] = 0
            here.now[TICKETS] = 0
            here.now[ONCE] = course.once
            here.now[SWEEPS] = run.control[0]
            here.now[EXPLORED] = run.control[1]
            here.now[EVERYBODY] = run.control[2]
        if classes > 1:
            fill_tables(stream, here)
        goal = blocks
        meta = np.int64(0)
        ready, half = False, np.int64(0)  # the next group is decoded, in this half of the buffer
        for _ in range(course.sweeps):
            if thread == 0:
                set_rule(here, run, course)
            cuda.syncthreads()
            state = State(
                *(fields[:1] + (np.int64(here.now[SWEEPS] + 1),) + fields[2:])  # noqa: RUF005
            )
            groups = course.classes * course.strips
            strip, first = np.int64(0), np.int64(0)
            for group in range(groups):
                if thread == 0:
                    here.now[DISTINCT] = (
                        course.distinct and here.now[SWEEPS] == 0 and group < course.strips
                    )
                    here.changes[0] = 0
                    here.now[SHIFT] = half * course.room
                    here.now[TICKETS] = 2 - here.now[TICKETS]
                cuda.syncthreads()
                following = group + 1 if group + 1 < groups else 0
                if fetched:
                    if not ready:
                        fetch(group, half * course.room, False, here, lists, stream, rows, run)
                        meet(run, goal)
                        goal += blocks
                    ready = course.early or here.now[LAYOUT] == 0
                    if ready:
                        half = 1 - half
                        fetch(following, half * course.room, True, here, lists, stream, rows, run)
                goal = evaluate(
                    goal, meta, here, lists, tables, hubs, pieces, run, rows, stream, state, numbers
                )
                meet(run, goal)
                goal += blocks
                # The next group draws from the other pair: no barrier need come before it.
                if cuda.blockIdx.x == 0 and thread == 0:
                    run.drawn[np.uint64(here.now[TICKETS])] = 0
                    run.drawn[np.uint64(here.now[TICKETS] + 1)] = 0
                # What the next group needs to know is on its way while this one is updated.
                if thread < META:
                    here.meta[META - meta + thread] = lists.meta[following, thread]
                if strip == 0:
                    first = here.meta[meta + BOUNDS]
                strip += 1
                if fetched and strip < course.strips:
                    meta = META - meta
                    continue  # a class is updated as a whole
                strip = np.int64(0)
                changes = update(
                    first, here.meta[meta + BOUNDS + 4], here.meta[meta + BOUNDS + BINS + 2],
                    lists.vertices, readers, run, here, state, numbers,
                )  # fmt: skip
                meta = META - meta
                changes = sum_of_lanes(changes)
                if thread % LANES == 0 and changes > 0:
                    cuda.atomic.add(here.changes, 0, changes)
                cuda.syncthreads()
                if thread == 0 and here.changes[0] > 0:
                    cuda.atomic.add(
                        run.changed,
                        np.uint64(here.now[SWEEPS] - course.dropped),
                        np.int64(here.changes[0]),
                    )
                meet(run, goal)
                goal += blocks
            if thread == 0:
                judge(here, run, course)
            cuda.syncthreads()
            # What failed in this sweep or before ends the run. A faster block may be in the next
            # one, where what fails is noted under a larger number: nobody leaves for that.
            failed = numbers.errors[0]
            if here.now[OVER] != 0 or (failed != 0 and failed <= here.now[SWEEPS] + 1):
                break
        if cuda.blockIdx.x == 0 and thread == 0:
            run.control[0] = here.now[SWEEPS]
            run.control[1] = here.now[EXPLORED]
            run.control[2] = here.now[EVERYBODY]

    def start(fields, errors):
        state = State(*fields)
        v = cuda.grid(1)
        if v < state.labels.size:
            say(v, state, errors)

    say = build_say(compiled)
    blocks = votes.BLOCKS_A_MULTIPROCESSOR
    digest = f"{compiled.digest} {index_type.__name__} {blocks} {votes.TABLE}"
    if compressed is not None:
        digest += f" {compressed.digest}"
    return (
        kernel(propagate, digest, compiled, launch_bounds=(THREADS, blocks)),
        kernel(start, digest, compiled),
    )
