"""The update of a class: write its winners down, and make the readers of those that changed active.

A thread a vertex, 32 neighbours in the list a warp; long lists of readers are gone through by warps
or by the whole block. Shared memory: 4 KB, the queue of those.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from glp_rapids.jit.cuda import cuda
from glp_rapids.propagation.compile_program import Compiled
from glp_rapids.propagation.kernels.gpu.failures import build_say
from glp_rapids.propagation.kernels.gpu.shared_memory import LANES, SWEEP, THREADS, WARPS
from glp_rapids.propagation.kernels.gpu.votes import ALL

TOGETHER = 4  # readers looked up before the first is written
OF_THREAD, OF_WARP = 8, 512  # readers that a thread, and a warp, goes through; a block, more


def build_activate() -> Any:
    """Make what activates the readers of vertices that changed, from a CSR of readers."""

    @cuda.jit(device=True)
    def activate(active, readers, first, last, step):
        j = first
        while j < last:
            for k in range(TOGETHER):
                if j + k * step < last:
                    u = np.uint64(readers.indices[np.uint64(j + k * step)])
                    if active[u] == 0:  # a read is cheaper than a write: most are active already
                        active[u] = 1
            j += TOGETHER * step

    @cuda.jit(device=True)
    def activate_readers(active, readers, queue, v, differs):
        """Activate who reads the label of v, if v differs; all threads of a block call this."""
        thread = np.int64(cuda.threadIdx.x)
        start, end = np.int64(0), np.int64(0)
        if differs:
            start, end = readers.indptr[np.uint64(v)], readers.indptr[np.uint64(v + 1)]
        if thread == 0:
            queue.number[0] = 0
        cuda.syncthreads()
        if end - start <= OF_THREAD:
            activate(active, readers, start, end, np.int64(1))
        elif end - start > OF_WARP:
            place = cuda.atomic.add(queue.number, 0, np.int32(1))
            queue.first[place] = start
            queue.last[place] = end
        cuda.syncwarp()
        middle = cuda.ballot_sync(ALL, end - start > OF_THREAD and end - start <= OF_WARP)
        while middle != 0:
            source = np.int32(cuda.ffs(middle) - 1)
            middle &= np.uint32(middle - np.uint32(1))
            activate(
                active, readers, cuda.shfl_sync(ALL, start, source) + cuda.laneid,
                cuda.shfl_sync(ALL, end, source), np.int64(LANES),
            )  # fmt: skip
        cuda.syncthreads()
        for i in range(queue.number[0]):
            activate(active, readers, queue.first[i] + thread, queue.last[i], np.int64(THREADS))
        cuda.syncthreads()

    return activate_readers


def build(compiled: Compiled, index_type: Any, activate_readers: Any) -> Any:
    """Make the update of a class; all threads of the grid call it together.

    ``activate_readers``: as `build_activate` makes it here, or `decode_buffer`.
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
    def update(first, long_end, last, vertices, readers, run, state, shared, numbers):
        """Update the vertices at positions first..last; return a thread's count of changes.

        Up to ``long_end`` rows are long, the longest first: neighbours go to different warps.
        """
        thread = np.int64(cuda.threadIdx.x)
        lane = thread % LANES
        active, winner, winner_score = run.active, run.winner, run.winner_score
        activates = shared.sweep[SWEEP.activates] != 0
        changes = np.int64(0)
        long_chunks = (long_end - first + LANES - 1) // LANES
        chunks = long_chunks + (last - long_end + LANES - 1) // LANES
        chunk = np.int64(cuda.blockIdx.x) * WARPS
        while chunk < chunks:  # the same for all threads of a block
            mine = chunk + thread // LANES
            position, end_of_part = first + lane * long_chunks + mine, long_end
            if mine >= long_chunks:
                position, end_of_part = long_end + (mine - long_chunks) * LANES + lane, last
            label, v = index_type(-1), index_type(0)
            if position < end_of_part:
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
                activate_readers(active, readers, shared.readers, v, differs)
            chunk += np.int64(cuda.gridDim.x) * WARPS
        return changes

    return update
