"""Runs of consecutive ids in an ascending list, for writers of intervals and residuals."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np

from glp_rapids.compressed.format.scheme import Function
from glp_rapids.jit.target import Target

ONE = np.int64(1)


@dataclass(frozen=True)
class RunFunctions:
    """Functions on runs, for compiled code alone to call.

    ``end_of_run(indices, i, last)``
        The place behind the consecutive ids that begin at place i.
    ``shortest_interval(count, settings)``
        The ids of the shortest interval that a part may have; too many if it has none.
    ``next_residual(indices, i, run, last, shortest)``
        The first residual at place i or later, and the end of the run that it is in; ``run`` is the
        end of the run that the residual before was in.
    """

    end_of_run: Function
    shortest_interval: Function
    next_residual: Function


@functools.cache
def build(target: Target) -> RunFunctions:
    """Compile the functions on runs."""
    device = target.device_function

    @device
    def end_of_run(indices, i, last):
        i += ONE
        while (
            i < last
            and np.int64(indices[np.uint64(i)]) == np.int64(indices[np.uint64(i - ONE)]) + ONE
        ):
            i += ONE
        return i

    @device
    def shortest_interval(count, settings):
        if settings.min_interval == 0 or count < settings.min_interval:
            return count + ONE
        return settings.min_interval

    @device
    def next_residual(indices, i, run, last, shortest):
        while i < last and i == run:
            run = end_of_run(indices, i, last)
            if run - i >= shortest:
                i = run
        return i, run

    return RunFunctions(
        end_of_run=end_of_run,
        shortest_interval=shortest_interval,
        next_residual=next_residual,
    )
