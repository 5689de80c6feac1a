"""The update of a class: write its winners down, and take from the slack of those who read them.

A warp looks at up to 128 neighbours in the list at once (see `plan`), and gathers who has a new
label, so that few changes keep few lanes idle. Long lists of readers are gone through by warps, by
the block when its warps are done, or by all blocks: no warp waits for another vertex's readers.
Shared memory: 4 KB, the queue of those of a block.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from glp_rapids.jit.cuda import cuda, load_fresh
from glp_rapids.propagation.compile_program import Compiled
from glp_rapids.propagation.kernels.gpu.failures import build_say
from glp_rapids.propagation.kernels.gpu.plan import (
    ENDS,
    FIRST_CHUNKS,
    HUBS,
    LOOKED_AT,
    RANGES,
    SUBWARP_ROWS,
    UPDATED_TOGETHER,
)
from glp_rapids.propagation.kernels.gpu.shared_memory import LANES, SWEEP, THREADS, WARPS
from glp_rapids.propagation.kernels.gpu.votes import ALL

# Readers that a thread, a warp and a block goes through; more, all blocks together: else all wait
# for the block of a hub that changed. Runs on kron-22 went from 9.3 to 8.7 ms (H200, explore=0).
OF_THREAD, OF_WARP, OF_BLOCK = 8, 512, 4096
PART = 2 * THREADS  # readers that a block goes through at a time of a list that all share


class Activation(NamedTuple):
    """Device functions that tell the readers of vertices that changed."""

    tell: Any  # a warp: those of a vertex a lane; long lists are left to the block
    tell_rest: Any  # a block: what its warps left


@cuda.jit(device=True)
def activate(slack, readers, first, last, step):
    """Take one from the slack of every step-th reader of a list."""
    j = first
    while j + step < last:  # two are looked up before the first is told
        u = readers.indices[np.uint64(j)]
        other = readers.indices[np.uint64(j + step)]
        cuda.atomic.add(slack, np.uint64(u), np.int32(-1))
        cuda.atomic.add(slack, np.uint64(other), np.int32(-1))
        j += 2 * step
    if j < last:
        cuda.atomic.add(slack, np.uint64(readers.indices[np.uint64(j)]), np.int32(-1))


@cuda.jit(device=True)
def bounds_of_vertex(readers, v):
    """Return where the readers of a vertex begin and end in a CSR."""
    return readers.indptr[np.uint64(v)], readers.indptr[np.uint64(v + 1)]


def build_activate(bounds: Any = bounds_of_vertex) -> Activation:
    """Make what tells the readers of vertices that changed, from lists of readers in one array.

    ``bounds`` finds a vertex's list there.
    """

    @cuda.jit(device=True)
    def tell(run, readers, shared, v, differs):
        """Take from the slack of who reads the label of v, if v differs."""
        lane, slack, queue = np.int64(cuda.laneid), run.slack, shared.readers
        most = shared.sweep[SWEEP.long_list]
        start, end = np.int64(0), np.int64(0)
        if differs:
            start, end = bounds(readers, v)
        by_warp = end - start > OF_THREAD
        if not by_warp:
            activate(slack, readers, start, end, np.int64(1))
        elif most > 0 and end - start > most:
            place = np.uint64(2 * cuda.atomic.add(run.long_lists, 0, np.int64(1)))
            run.long_lists[place + np.uint64(1)] = start
            run.long_lists[place + np.uint64(2)] = end
            by_warp = False
        elif end - start > OF_WARP:
            place = cuda.atomic.add(queue.number, 0, np.int32(1))
            if place < THREADS:
                queue.first[place] = start
                queue.last[place] = end
                by_warp = False
        cuda.syncwarp()
        left = cuda.ballot_sync(ALL, by_warp)
        while left != 0:
            source = np.int32(cuda.ffs(left) - 1)
            left &= np.uint32(left - np.uint32(1))
            activate(
                slack, readers, cuda.shfl_sync(ALL, start, source) + lane,
                cuda.shfl_sync(ALL, end, source), np.int64(LANES),
            )  # fmt: skip

    @cuda.jit(device=True)
    def tell_rest(run, readers, shared):
        """Take from the slack of who is in the lists that warps left to the block."""
        queue = shared.readers
        cuda.syncthreads()
        for i in range(min(queue.number[0], THREADS)):
            activate(
                run.slack, readers, queue.first[i] + cuda.threadIdx.x, queue.last[i],
                np.int64(THREADS),
            )  # fmt: skip
        cuda.syncthreads()

    return Activation(tell, tell_rest)


def build_activate_together(grid_barrier: Any) -> Any:
    """Make what goes through the lists of readers that all blocks share."""

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
                activate(
                    run.slack, readers, begin + cuda.threadIdx.x, min(begin + PART, last),
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
    compiled: Compiled, index_type: Any, activation: Activation, buffered: bool,
    by_position: bool = False,
) -> Any:  # fmt: skip
    """Make the update of a group; all threads of the grid call it together.

    ``activation``: as `build_activate` makes it here, or `decode_buffer`. ``buffered``: a class may
    have many groups, of which shared memory has but one. ``by_position``: a list of readers is
    found by its vertex's position in the plan.
    """
    plain, counted = compiled.traits.plain, compiled.traits.count_volumes
    default_score = compiled.traits.default_score
    default_update = compiled.traits.default_update
    update_vertex, say = compiled.update_vertex, build_say(compiled)
    from_fixed = compiled.from_fixed
    tell, tell_rest = activation

    @cuda.jit(device=True)
    def bit_of_rank(mask, rank):
        """Return the number of the bit in a mask that has so many set bits below it."""
        bit, width = np.int32(0), np.int32(16)
        while width > 0:
            below = np.int32(cuda.popc(mask & np.uint32((np.uint32(1) << np.uint32(width)) - 1)))
            if rank >= below:
                rank -= below
                mask = np.uint32(mask >> np.uint32(width))
                bit += width
            width >>= 1
        return bit

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
    def update(row, plan, readers, run, state, shared, numbers):
        """Update the vertices of a group; return a thread's count of changes.

        Where rows are long, the longest first, a warp has few of them.
        """
        thread = np.int64(cuda.threadIdx.x)
        lane = np.int32(thread % LANES)
        winner, winner_score = run.winner, run.winner_score
        vertices = plan.vertices
        activates = shared.sweep[SWEEP.activates] != 0
        if activates:
            if thread == 0:
                shared.readers.number[0] = 0
            cuda.syncthreads()
        changes = np.int64(0)
        labels = cuda.local.array(LOOKED_AT, index_type)
        named = cuda.local.array(LOOKED_AT, index_type)
        masks = cuda.local.array(LOOKED_AT, np.uint32)
        chunks = column(row, FIRST_CHUNKS + RANGES, plan, shared)
        # Neighbouring chunks of long rows go to different blocks; of short ones to the same, whose
        # reads of neighbouring lists meet in its cache.
        of_long_rows, kind = column(row, FIRST_CHUNKS + SUBWARP_ROWS, plan, shared), np.int32(0)
        warps = np.int64(cuda.gridDim.x) * WARPS
        following = of_long_rows + np.int64(cuda.blockIdx.x) * WARPS + thread // LANES
        chunk = thread // LANES * cuda.gridDim.x + cuda.blockIdx.x
        if chunk >= of_long_rows:
            chunk, following = following, following + warps
        while chunk < chunks:
            while chunk >= column(row, FIRST_CHUNKS + kind + 1, plan, shared):
                kind += np.int32(1)
            together = column(row, UPDATED_TOGETHER + kind, plan, shared)
            begin = column(row, HUBS + kind, plan, shared)
            begin += (chunk - column(row, FIRST_CHUNKS + kind, plan, shared)) * together
            end = min(begin + together, column(row, ENDS + kind, plan, shared))
            for k in range(LOOKED_AT):
                labels[k], named[k] = index_type(-1), index_type(0)
                position = begin + k * LANES + lane
                if position < end:
                    labels[k] = winner[np.uint64(position)]
                    named[k] = vertices[np.uint64(position)]
            total = np.int32(0)
            for k in range(LOOKED_AT):
                masks[k] = cuda.ballot_sync(ALL, labels[k] >= 0)
                total += np.int32(cuda.popc(masks[k]))
                if labels[k] >= 0:
                    winner[np.uint64(begin + k * LANES + lane)] = -1
            of_lane = lane
            while of_lane - lane < total:
                # Of all winners the one of this rank comes to this lane.
                rank, mask, which = of_lane, np.uint32(0), np.int32(0)
                for k in range(LOOKED_AT):
                    here = np.int32(cuda.popc(masks[k]))
                    if mask == 0:
                        if rank < here:
                            mask, which = masks[k], np.int32(k)
                        else:
                            rank -= here
                bit = bit_of_rank(mask, rank)
                label, v = index_type(-1), index_type(0)
                for k in range(LOOKED_AT):
                    other = cuda.shfl_sync(ALL, labels[k], bit)
                    other_v = cuda.shfl_sync(ALL, named[k], bit)
                    if which == k:
                        label, v = other, other_v
                if of_lane >= total:
                    label = index_type(-1)
                position = begin + which * LANES + bit
                differs = False
                before = index_type(-1)
                after = label
                if label >= 0:
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
                                from_fixed(
                                    np.int64(winner_score[np.uint64(position)]), numbers.scale
                                ),
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
                    cuda.syncwarp()
                    tell(run, readers, shared, position if by_position else v, differs)
                of_lane += np.int32(LANES)
            if chunk + warps < of_long_rows:
                chunk += warps
            else:
                chunk, following = following, following + warps
        if activates:
            tell_rest(run, readers, shared)
        return changes

    return update
