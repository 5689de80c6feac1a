"""Winners of a class as ranks exchange them: taken out of the plan's order, applied as a group."""

from __future__ import annotations

from typing import Any

import numpy as np

from glp_rapids.jit.cuda import cuda
from glp_rapids.propagation.kernels.gpu.arguments import Run
from glp_rapids.propagation.kernels.gpu.plan import (
    ENDS,
    FIRST_CHUNKS,
    HUBS,
    RANGES,
    UPDATED_TOGETHER,
)
from glp_rapids.propagation.kernels.gpu.shared_memory import LANES, THREADS
from glp_rapids.propagation.kernels.gpu.votes import ALL

SHORTEST = RANGES - 1
TOGETHER = UPDATED_TOGETHER[SHORTEST]


@cuda.jit(device=True)
def describe(groups, row, first, number):
    """Write a row of a plan: of a group with vertices from a place on, all of the shortest rows."""
    for kind in range(RANGES):
        groups[row + HUBS + kind] = 0
        groups[row + ENDS + kind] = 0
        groups[row + FIRST_CHUNKS + kind] = 0
    groups[row + HUBS + SHORTEST] = first
    groups[row + ENDS + SHORTEST] = first + number
    groups[row + FIRST_CHUNKS + RANGES] = (number + TOGETHER - 1) // TOGETHER


@cuda.jit(device=True)
def with_winners(run, labels, scores):
    """Return the arrays of a run with other winners."""
    return Run(
        run.slack, run.tied, labels, scores, run.changed, run.drawn, run.barrier, run.clock,
        run.long_lists, run.control,
    )  # fmt: skip


@cuda.jit(device=True)
def place_among(number, found, lane):
    """Return a place for each lane of a warp that found something; count them in ``number``."""
    who = cuda.ballot_sync(ALL, found)
    first = np.int64(0)
    if who != 0 and lane == 0:
        first = cuda.atomic.add(number, 0, np.int64(cuda.popc(who)))
    first = cuda.shfl_sync(ALL, first, 0)
    below = np.uint32((np.uint32(1) << np.uint32(lane)) - np.uint32(1))
    return np.uint64(first + np.int64(cuda.popc(np.uint32(who) & below)))


def build_collect(index_type: Any, put: Any) -> Any:
    """Make what takes out the winners of a group, in any order.

    ``put(box, place, v, label, position, run)`` stores one of them.
    """

    @cuda.jit(device=True)
    def collect(row, plan, run, box, number, shared):
        """Take the winners of the group out, and count them in ``number``; the grid calls this."""
        thread = np.int64(cuda.threadIdx.x)
        lane = thread % LANES
        for kind in range(RANGES):
            end = shared.groups[row + ENDS + kind]
            base = shared.groups[row + HUBS + kind]
            base += np.int64(cuda.blockIdx.x) * THREADS + thread - lane
            while base < end:  # the same for all lanes
                position = base + lane
                label = index_type(-1)
                if position < end:
                    label = run.winner[np.uint64(position)]
                place = place_among(number, label >= 0, lane)
                if label >= 0:
                    put(box, place, plan.vertices[np.uint64(position)], label, position, run)
                    run.winner[np.uint64(position)] = -1
                base += np.int64(cuda.gridDim.x) * THREADS

    return collect
