"""The course of a run on the device: the rule of a sweep, when to stop, and the grid's barrier.

The same decisions as `glp_rapids.propagation.schedule` takes on the host, by the same functions.
"""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from glp_rapids.jit.cuda import cuda
from glp_rapids.jit.cuda import meet as meet_all
from glp_rapids.jit.target import Target
from glp_rapids.propagation import ties
from glp_rapids.propagation.kernels.gpu.plan import FEW_AWAKE
from glp_rapids.propagation.kernels.gpu.votes import (
    EVERYBODY,
    EXPLORED,
    EXPLORING,
    LAYOUT,
    OVER,
    RETAIN,
    REVISIT_TIED,
    SWEEPS,
    TIE_BREAK,
    TIE_SEED,
    WAKING,
)
from glp_rapids.propagation.schedule import floods, settles


def build(target: Target) -> SimpleNamespace:
    """Make the barrier, and what one thread of each block decides before and after a sweep."""
    flooding, settling = target.compile(floods), target.compile(settles)

    @cuda.jit(device=True)
    def meet(run, goal):
        """Wait for all blocks of the grid; what they wrote is then seen by all."""
        meet_all(run.barrier, 0, goal)

    @cuda.jit(device=True)
    def set_rule(here, run, course):
        """Say what holds for the next sweep; one thread of each block does."""
        now = here.now
        sweep = now[SWEEPS] + 1
        exploring = now[EXPLORED] < 0
        now[EXPLORING] = exploring
        if exploring:
            now[RETAIN], now[TIE_BREAK] = 0, ties.TIE_HASH
            now[TIE_SEED] = np.int64(course.seed + (np.uint64(sweep) << np.uint64(32)))
            now[REVISIT_TIED] = 1
        else:
            now[RETAIN], now[TIE_BREAK] = course.retain, course.tie_break
            now[TIE_SEED] = np.int64(course.seed)
            now[REVISIT_TIED] = sweep == now[EXPLORED] + 1 and not course.retain
        # Where much changes, waking everybody is cheaper than waking one by one.
        wholesale = sweep == 1
        if sweep > 1:
            wholesale = run.changed[np.uint64(sweep - 2 - course.dropped)] > course.wholesale
        now[WAKING] = course.skip and not wholesale
        if wholesale:
            # Nobody is woken for the classes that follow in this sweep either.
            now[EVERYBODY] = 1
        now[LAYOUT] = 0
        if (
            now[EVERYBODY] == 0
            and sweep > 1
            and run.changed[np.uint64(sweep - 2 - course.dropped)] <= course.awake
        ):
            now[LAYOUT] = FEW_AWAKE

    @cuda.jit(device=True)
    def judge(here, run, course):
        """Take the sweep down, and say whether the run is over; one thread of each block does."""
        now = here.now
        now[SWEEPS] += 1
        now[EVERYBODY] = now[WAKING] == 0
        sweeps = now[SWEEPS] - course.dropped
        explored = max(now[EXPLORED] - course.dropped, 0)
        if now[EXPLORED] < 0:
            if now[SWEEPS] == course.explore or (course.stops and flooding(run.changed, sweeps)):
                now[EXPLORED] = now[SWEEPS]
        elif settling(run.changed, explored, sweeps, course.few, course.patience):
            now[OVER] = course.stops

    return SimpleNamespace(meet=meet, set_rule=set_rule, judge=judge)
