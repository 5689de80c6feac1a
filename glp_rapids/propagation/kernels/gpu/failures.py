"""How a kernel notes that a function of the program went wrong, and how a vertex says its label."""

from __future__ import annotations

from typing import Any

import numpy as np

from glp_rapids.jit.cuda import cuda, gpu_target
from glp_rapids.jit.target import Target
from glp_rapids.propagation.compile_program import Compiled
from glp_rapids.propagation.failures import LOWEST, SAID, failure


def build_fail(target: Target) -> Any:
    """Make what notes a failure at a vertex; of all the smallest stays."""
    word = target.compile(failure)

    @cuda.jit(device=True)
    def fail(errors, v, kind, sweep):
        errors[0] = sweep + 1
        cuda.atomic.min(errors, 1, word(v, kind))

    return fail


def build_say(compiled: Compiled) -> Any:
    """Make what lets a vertex say its label."""
    pick_label, checked = compiled.pick_label, compiled.traits.checks_said
    fail = build_fail(gpu_target())

    @cuda.jit(device=True)
    def say(v, state, errors):
        label = pick_label(v, state.sweep, state)
        if checked and (label < LOWEST or label >= state.labels.size):
            fail(errors, v, SAID, state.sweep)
            label = -1
        state.labels[np.uint64(v)] = label

    return say
