"""The active set: who is evaluated in a sweep, and what an evaluation leaves behind."""

from __future__ import annotations

from typing import Any

import numpy as np

from glp_rapids.jit.cuda import cuda
from glp_rapids.jit.target import Target
from glp_rapids.propagation import slack
from glp_rapids.propagation.kernels.gpu.shared_memory import SWEEP
from glp_rapids.propagation.program import Traits


@cuda.jit(device=True)
def needed(position, v, sweep, run):
    """Tell whether v is to be evaluated in this sweep."""
    if sweep[SWEEP.everybody] != 0 or run.slack[np.uint64(v)] < 0:
        return True
    return sweep[SWEEP.revisit_tied] != 0 and run.tied[np.uint64(position)] != 0


def build_note(traits: Traits, target: Target) -> Any:
    """Make what notes an outcome; of a plain program a winner that stays changes nothing."""
    plain, keeps_score = traits.plain, not traits.default_update
    bears, slack_of = traits.bears_changes, target.compile(slack.slack_of)

    @cuda.jit(device=True)
    def note(position, v, degree, label, score, tied, current, sweep, run, numbers):
        """Write down the outcome of one vertex, and take it out of the active set."""
        if sweep[SWEEP.exploring] != 0:
            run.tied[np.uint64(position)] = tied
        if sweep[SWEEP.activates] != 0:
            left = np.int32(0)
            if bears and label >= 0:
                left = slack_of(np.int64(score), np.int64(degree), numbers.largest_vote)
            run.slack[np.uint64(v)] = left
        if label >= 0 and not (plain and label == current):
            run.winner[np.uint64(position)] = label
            if keeps_score:
                run.winner_score[np.uint64(position)] = score

    return note
