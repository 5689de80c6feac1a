"""The update of a class: write its winners down, and take from the slack of those who read them.

A thread a vertex, up to 32 neighbours in the list a warp; long lists of readers are gone through by
warps, by the whole block, or by all blocks. Shared memory: 4 KB, the queue of those of a block.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from glp_rapids.jit.cuda import cuda, load_fresh
from glp_rapids.propagation.compile_program import Compiled
from glp_rapids.propagation.kernels.gpu.entries import entry_at
from glp_rapids.propagation.kernels.gpu.failures import build_say
from glp_rapids.propagation.kernels.gpu.plan import (
    ENDS,
    FIRST_CHUNKS,
    HUBS,
    RANGES,
    UPDATED_TOGETHER,
)
from glp_rapids.propagation.kernels.gpu.shared_memory import LANES, SWEEP, THREADS, WARPS
from glp_rapids.propagation.kernels.gpu.votes import ALL

# Readers that a thread, a warp and a block goes through; more, all blocks together: else all wait
# for the block of a hub that changed. Runs on kron-22 went from 9.3 to 8.7 ms (H200, explore=0).
OF_THREAD, OF_WARP, OF_BLOCK = 8, 512, 4096
PART = 2 * THREADS  # readers that a block goes through at a time of a list that all share


@cuda.jit(device=True)
def take_one(run, readers, u):
    """Take one from the slack of a vertex."""
    cuda.atomic.add(run.slack, np.uint64(u), np.int32(-1))


def _build_walk(take: Any) -> Any:
    """Make what goes through a list of readers; ``take`` takes one from the slack of each."""

    @cuda.jit(device=True)
    def walk(run, readers, first, last, step):
        """Take one from the slack of every step-th reader of a list."""
        j = first
        while j + step < last:  # two are looked up before the first is told
            u = entry_at(readers.indices, j)
            other = entry_at(readers.indices, j + step)
            take(run, readers, u)
            take(run, readers, other)
            j += 2 * step
        if j < last:
            take(run, readers, entry_at(readers.indices, j))

    return walk


@cuda.jit(device=True)
def bounds_of_vertex(readers, v):
    """Return where the readers of a vertex begin and end in a CSR."""
    return readers.indptr[np.uint64(v)], readers.indptr[np.uint64(v + 1)]


def build_activate(
    bounds: Any = bounds_of_vertex, take: Any = take_one, of_thread: int = OF_THREAD
) -> Any:
    """Make what tells the readers of vertices that changed, from lists of readers in one array.

    ``bounds`` finds a vertex's list there; ``take`` takes one from the slack of a reader. Up to
    ``of_thread`` readers a thread goes through alone.
    """
    walk = _build_walk(take)

    @cuda.jit(device=True)
    def activate_readers(run, readers, shared, v, differs):
        """Take from the slack of who reads the label of v, if v differs; a block calls this."""
        thread, queue = np.int64(cuda.threadIdx.x), shared.readers
        most = shared.sweep[SWEEP.long_list]
        start, end = np.int64(0), np.int64(0)
        if differs:
            start, end = bounds(readers, v)
        if thread == 0:
            queue.number[0] = 0
        cuda.syncthreads()
        if end - start <= of_thread:
            walk(run, readers, start, end, np.int64(1))
        elif most > 0 and end - start > most:
            place = np.uint64(2 * cuda.atomic.add(run.long_lists, 0, np.int64(1)))
            run.long_lists[place + np.uint64(1)] = start
            run.long_lists[place + np.uint64(2)] = end
        elif end - start > OF_WARP:
            place = cuda.atomic.add(queue.number, 0, np.int32(1))
            queue.first[place] = start
            queue.last[place] = end
        cuda.syncwarp()
        by_warp = end - start > of_thread and end - start <= OF_WARP
        middle = cuda.ballot_sync(ALL, by_warp and (most == 0 or end - start <= most))
        while middle != 0:
            source = np.int32(cuda.ffs(middle) - 1)
            middle &= np.uint32(middle - np.uint32(1))
            walk(
                run, readers, cuda.shfl_sync(ALL, start, source) + cuda.laneid,
                cuda.shfl_sync(ALL, end, source), np.int64(LANES),
            )  # fmt: skip
        cuda.syncthreads()
        for i in range(queue.number[0]):
            walk(run, readers, queue.first[i] + thread, queue.last[i], np.int64(THREADS))
        cuda.syncthreads()

    return activate_readers


def build_activate_together(grid_barrier: Any, take: Any = take_one) -> Any:
    """Make what goes through the lists of readers that all blocks share."""
    walk = _build_walk(take)

    @cuda.jit(device=True)
    def activate_together(run, readers, shared):
        """Take from the slack of who is in one of the long lists; the whole grid calls this."""
        if cuda.threadIdx.x == 0:
            shared.readers.number[0] = load_fresh(run.long_lists, 0)
        cuda.syncthreads()
        number = shared.readers.number[0]
        if number == 0:
            return
        blocks = np.int64(cuda.gridDim.x)
        mine = np.int64(cuda.blockIdx.x)  # the next part for this block, from this list on
        for i in range(number):
            first = run.long_lists[np.uint64(2 * i + 1)]
            last = run.long_lists[np.uint64(2 * i + 2)]
            parts = (last - first + PART - 1) // PART
            while mine < parts:
                begin = first + mine * PART
                walk(
                    run, readers, begin + cuda.threadIdx.x, min(begin + PART, last),
                    np.int64(THREADS),
                )  # fmt: skip
                mine += blocks
            mine -= parts
        grid_barrier(run, shared.sweep)
        # Nobody writes there before the next class is evaluated, and a barrier comes after that.
        if cuda.blockIdx.x == 0 and cuda.threadIdx.x == 0:
            run.long_lists[0] = 0

    return activate_together


def build(
    compiled: Compiled, index_type: Any, activate_readers: Any, buffered: bool,
    by_position: bool = False, ranged: bool = False,
) -> Any:  # fmt: skip
    """Make the update of a group; all threads of the grid call it together.

    ``activate_readers``: as `build_activate` makes it here, or `decode_buffer`. ``buffered``: a
    class may have many groups, of which shared memory has but one. ``by_position``: a list of
    readers is found by its vertex's position in the plan. ``ranged``: it is called for some
    positions, of which the first and the one behind the last are two further arguments.
    """
    plain, counted = compiled.traits.plain, compiled.traits.count_volumes
    default_score = compiled.traits.default_score
    default_update = compiled.traits.default_update
    update_vertex, say = compiled.update_vertex, build_say(compiled)
    from_fixed = compiled.from_fixed

    @cuda.jit(device=True)
    def count_one(volume, label, amount, concerned):
        """Add to volumes; lanes that agree add once: many join one label at the same time."""
        who = cuda.ballot_sync(ALL, concerned)
        if who == 0:
            return
        leader = np.int32(cuda.ffs(who) - 1)
        first = cuda.shfl_sync(ALL, label, leader)
        with_first = cuda.ballot_sync(ALL, concerned and label == first)
        if concerned:
            if label != first:
                cuda.atomic.add(volume, np.uint64(label), amount)
            elif cuda.laneid == leader:
                cuda.atomic.add(volume, np.uint64(label), amount * np.int64(cuda.popc(with_first)))

    @cuda.jit(device=True)
    def column(row, number, plan, shared):
        """Return a column of the plan's row of the group."""
        if buffered:
            return plan.groups[row, number]
        return shared.groups[row + number]

    @cuda.jit(device=True)
    def update_range(row, plan, readers, run, state, shared, numbers, since, until):
        """Update the vertices of a group; return a thread's count of changes.

        Where rows are long, the longest first, a warp has few of them.
        """
        thread = np.int64(cuda.threadIdx.x)
        lane = thread % LANES
        winner, winner_score = run.winner, run.winner_score
        vertices = plan.vertices
        activates = shared.sweep[SWEEP.activates] != 0
        changes = np.int64(0)
        chunks = column(row, FIRST_CHUNKS + RANGES, plan, shared)
        chunk = np.int64(cuda.blockIdx.x) * WARPS
        while chunk < chunks:  # the same for all threads of a block
            mine, kind = chunk + thread // LANES, np.int32(0)
            position, end = np.int64(0), np.int64(0)
            if mine < chunks:
                while mine >= column(row, FIRST_CHUNKS + kind + 1, plan, shared):
                    kind += np.int32(1)
                first = column(row, FIRST_CHUNKS + kind, plan, shared)
                position = column(row, HUBS + kind, plan, shared)
                end = column(row, ENDS + kind, plan, shared)
                together = np.int64(UPDATED_TOGETHER[kind])
                position += (mine - first) * together + lane
                if lane >= together:
                    position = end
            if ranged and (position < since or position >= until):
                position = end
            label, v = index_type(-1), index_type(0)
            if position < end:
                label = winner[np.uint64(position)]
                v = vertices[np.uint64(position)]
            differs = False
            before = index_type(-1)
            after = label
            if label >= 0:
                winner[np.uint64(position)] = -1
                if counted or not plain:
                    before = state.labels[np.uint64(v)]
                if plain:  # what wins there is another label
                    state.labels[np.uint64(v)] = label
                    after = label
                else:
                    if default_update:
                        state.labels[np.uint64(v)] = label
                    elif default_score:
                        update_vertex(
                            v, label,
                            from_fixed(np.int64(winner_score[np.uint64(position)]), numbers.scale),
                            state,
                        )  # fmt: skip
                    else:
                        update_vertex(v, label, winner_score[np.uint64(position)], state)
                    say(v, state, numbers.errors)
                    after = state.labels[np.uint64(v)]
                differs = after != before
                if differs:
                    changes += 1
            if counted:
                cuda.syncwarp()
                count_one(state.volume, before, np.int64(-1), differs and before >= 0)
                count_one(state.volume, after, np.int64(1), differs and after >= 0)
            if activates:
                named = position if by_position else v
                activate_readers(run, readers, shared, named, differs)
            chunk += np.int64(cuda.gridDim.x) * WARPS
        return changes

    @cuda.jit(device=True)
    def update(row, plan, readers, run, state, shared, numbers):
        """Update all vertices of a group."""
        unused = np.int64(0)  # the range of one that is not ranged
        return update_range(row, plan, readers, run, state, shared, numbers, unused, unused)

    return update_range if ranged else update
