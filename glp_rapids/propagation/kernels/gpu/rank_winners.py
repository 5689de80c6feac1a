"""What a rank does with winners whose strips another kernel evaluates: it lists its own for the
others, and applies those of the others.

Its own are applied by `streamed`, which has their rows at hand. Whoever reads a vertex elsewhere is
told by the rank of that vertex, so those of the others wake nobody here.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from glp_rapids.jit.cuda import cuda, kernel
from glp_rapids.propagation.compile_program import Compiled
from glp_rapids.propagation.kernels.gpu import update, winners
from glp_rapids.propagation.kernels.gpu.arguments import PlanArrays
from glp_rapids.propagation.kernels.gpu.plan import COLUMNS
from glp_rapids.propagation.kernels.gpu.shared_memory import LANES, SWEEP, THREADS
from glp_rapids.propagation.kernels.gpu.warp_reductions import sum_by_shuffles


class Winners(NamedTuple):
    """Vertices of a class that get a label, in any order."""

    vertices: Any
    labels: Any
    scores: Any  # one element where a program's update asks for none


class UpdateMemory(NamedTuple):
    """The shared memory of an update that wakes nobody."""

    sweep: Any
    groups: Any


@cuda.jit(device=True)
def wake_nobody(run, readers, shared, named, differs):
    """Do nothing: who reads these vertices is told elsewhere."""


def build(compiled: Compiled, index_type: Any) -> tuple[Any, Any]:
    """Make ``list_winners`` and ``apply_winners``.

    Launch of ``list_winners``: any number of blocks of 256, which stride over the positions of a
    class. No shared memory. Any degree: no row is read.

    Launch of ``apply_winners``: likewise, over winners. Shared memory: 0.5 KB. Any degree.
    """
    keeps_score = not compiled.traits.default_update
    update_group = update.build(compiled, index_type, wake_nobody, buffered=False)
    State = compiled.state_type
    sweep_slots, columns = len(SWEEP), COLUMNS

    def list_winners(run, vertices, first, last, number, out):
        lane = np.int64(cuda.laneid)
        base = first + np.int64(cuda.blockIdx.x) * THREADS + cuda.threadIdx.x - lane
        while base < last:  # the same for all lanes
            position = base + lane
            label = index_type(-1)
            if position < last:
                label = run.winner[np.uint64(position)]
            place = winners.place_among(number, label >= 0, lane)
            if label >= 0:
                out.vertices[place] = vertices[np.uint64(position)]
                out.labels[place] = label
                if keeps_score:
                    out.scores[place] = run.winner_score[np.uint64(position)]
            base += np.int64(cuda.gridDim.x) * THREADS

    def apply_winners(plan, run, come, number, fields, sweep, place, numbers):
        shared = UpdateMemory(
            sweep=cuda.shared.array(sweep_slots, np.int64),
            groups=cuda.shared.array(columns, np.int64),
        )
        thread = cuda.threadIdx.x
        if thread == 0:
            shared.sweep[SWEEP.activates] = 0
            winners.describe(shared.groups, 0, np.int64(0), number)
        cuda.syncthreads()
        state = State(*(fields[:1] + (sweep,) + fields[2:]))  # noqa: RUF005
        came = PlanArrays(come.vertices, plan.starts, plan.degrees, plan.groups, plan.levels)
        told = winners.with_winners(run, come.labels, come.scores)
        changes = update_group(0, came, come, told, state, shared, numbers)
        changes = sum_by_shuffles(changes)
        if thread % LANES == 0 and changes > 0:
            cuda.atomic.add(run.changed, place, np.int64(changes))

    digest = f"rank winners {compiled.digest} {index_type.__name__}"
    return kernel(list_winners, digest, compiled), kernel(apply_winners, digest, compiled)
