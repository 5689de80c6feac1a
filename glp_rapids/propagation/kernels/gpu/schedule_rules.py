"""The schedule on the device: the rules of `propagation.schedule`, taken by every block."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from glp_rapids.jit import primitives
from glp_rapids.jit.cuda import cuda
from glp_rapids.jit.target import Target
from glp_rapids.propagation.kernels.gpu.plan import (
    END_ROW,
    FIRST_ROW,
    ROWS_A_CLASS,
    SPAN,
    SPARSE,
)
from glp_rapids.propagation.kernels.gpu.shared_memory import SWEEP
from glp_rapids.propagation.schedule import activates_all, judged, span_of, ties_of


@dataclass(frozen=True)
class ScheduleFunctions:
    """Device functions of the schedule."""

    grid_barrier: Any  # which the whole grid calls
    set_ties: Any  # of the next sweep; one thread of each block calls it
    set_rule: Any  # all of it; likewise
    judge: Any  # the sweep that is done; likewise


def build(target: Target) -> ScheduleFunctions:
    """Make the barrier, and what one thread of each block decides before and after a sweep."""
    rules_of_ties, judgement = target.compile(ties_of), target.compile(judged)
    wait_for_blocks = primitives.wait_for_blocks
    wakes_all, spans = target.compile(activates_all), target.compile(span_of)

    @cuda.jit(device=True)
    def grid_barrier(run, now):
        """Wait for all blocks of the grid; what they wrote is then seen by all."""
        cuda.syncthreads()
        if cuda.threadIdx.x == 0:
            # Kept in shared memory: as a register it would be taken for the whole run, or spilled.
            now[SWEEP.goal] += cuda.gridDim.x
            wait_for_blocks(run.barrier, now[SWEEP.goal])
        cuda.syncthreads()

    @cuda.jit(device=True)
    def set_ties(now, run, schedule):
        """Say how the next sweep settles ties; one thread of each block does.

        Returns how many classes are one in it, and how many labels changed in the one before.
        """
        sweep = now[SWEEP.sweeps] + 1
        now[SWEEP.exploring] = now[SWEEP.explored] < 0
        now[SWEEP.retain], now[SWEEP.tie_break], now[SWEEP.tie_seed], now[SWEEP.revisit_tied] = (
            rules_of_ties(
                sweep,
                now[SWEEP.explored],
                schedule.retain,
                schedule.tie_break,
                np.int64(schedule.seed),
            )
        )
        before = schedule.before
        if sweep > 1:
            before = run.changed[np.uint64(sweep - 2 - schedule.forgotten)]
        span = spans(
            schedule.classes, sweep, before, schedule.vertices, now[SWEEP.exploring] != 0
        )  # fmt: skip
        return span, before

    @cuda.jit(device=True)
    def set_rule(now, plan, run, schedule):
        """Say what holds for the next sweep; one thread of each block does."""
        span, before = set_ties(now, run, schedule)
        sweep, level = now[SWEEP.sweeps] + 1, 0
        # Later on few vertices bear their own names: then to search a row for one takes longer.
        now[SWEEP.leaves_out] = schedule.rows_ascend and sweep == 1
        while plan.levels[level, SPAN] != span:
            level += 1
        now[SWEEP.first_row] = plan.levels[level, FIRST_ROW]
        now[SWEEP.end_row] = plan.levels[level, END_ROW]
        now[SWEEP.rows_a_class] = plan.levels[level, ROWS_A_CLASS]
        everybody = wakes_all(sweep, before, schedule.many)
        now[SWEEP.activates] = schedule.skip and (schedule.marks or not everybody)
        if now[SWEEP.activates] == 0:
            # Nobody is activated for the classes that follow in this sweep either.
            now[SWEEP.everybody] = 1
        now[SWEEP.layout] = 0
        if now[SWEEP.everybody] == 0 and before <= schedule.sparse:
            now[SWEEP.layout] = SPARSE

    @cuda.jit(device=True)
    def judge(now, run, schedule):
        """Take the sweep down, and say whether the run is over; one thread of each block does."""
        now[SWEEP.sweeps] += 1
        now[SWEEP.everybody] = now[SWEEP.activates] == 0
        now[SWEEP.explored], settled = judgement(
            run.changed, schedule.forgotten, now[SWEEP.sweeps], now[SWEEP.explored],
            schedule.explore, schedule.stops, schedule.few, schedule.patience,
        )  # fmt: skip
        now[SWEEP.over] = settled and schedule.stops

    return ScheduleFunctions(grid_barrier, set_ties, set_rule, judge)
