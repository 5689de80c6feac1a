"""The schedule on the device: the rules of `propagation.schedule`, taken by every block."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from glp_rapids.jit.cuda import cuda
from glp_rapids.jit.primitives import grid_barrier
from glp_rapids.jit.target import Target
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
from glp_rapids.propagation.schedule import judged, ties_of, wakes_everybody


def build(target: Target) -> SimpleNamespace:
    """Make the barrier, and what one thread of each block decides before and after a sweep."""
    rules_of_ties, judgement = target.compile(ties_of), target.compile(judged)
    wakes_all = target.compile(wakes_everybody)

    @cuda.jit(device=True)
    def meet(run, goal):
        """Wait for all blocks of the grid; what they wrote is then seen by all."""
        grid_barrier(run.barrier, goal)

    @cuda.jit(device=True)
    def set_rule(here, run, course):
        """Say what holds for the next sweep; one thread of each block does."""
        now = here.now
        sweep = now[SWEEPS] + 1
        now[EXPLORING] = now[EXPLORED] < 0
        now[RETAIN], now[TIE_BREAK], now[TIE_SEED], now[REVISIT_TIED] = rules_of_ties(
            sweep, now[EXPLORED], course.retain, course.tie_break, np.int64(course.seed)
        )
        before = np.int64(0)
        if sweep > 1:
            before = run.changed[np.uint64(sweep - 2 - course.dropped)]
        wholesale = wakes_all(sweep, before, course.wholesale)
        now[WAKING] = course.skip and not wholesale
        if wholesale:
            # Nobody is woken for the classes that follow in this sweep either.
            now[EVERYBODY] = 1
        now[LAYOUT] = 0
        if now[EVERYBODY] == 0 and sweep > 1 and before <= course.awake:
            now[LAYOUT] = FEW_AWAKE

    @cuda.jit(device=True)
    def judge(here, run, course):
        """Take the sweep down, and say whether the run is over; one thread of each block does."""
        now = here.now
        now[SWEEPS] += 1
        now[EVERYBODY] = now[WAKING] == 0
        now[EXPLORED], settled = judgement(
            run.changed, course.dropped, now[SWEEPS], now[EXPLORED], course.explore, course.stops,
            course.few, course.patience,
        )  # fmt: skip
        now[OVER] = settled and course.stops

    return SimpleNamespace(meet=meet, set_rule=set_rule, judge=judge)
