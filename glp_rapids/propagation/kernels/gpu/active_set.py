"""The active set: who is evaluated in a sweep, and what an evaluation leaves behind.

Each vertex has a slack, which every change of a neighbour makes smaller by one; below 0 the vertex
is active. Where votes are summed as they come, an evaluation sets it to how many changes the margin
between the best label and the second can bear: each takes one vote from the best at the most, and
gives one to another. The second has at most what the best has not, of all votes there may be.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from glp_rapids.jit.cuda import cuda
from glp_rapids.propagation.kernels.gpu.shared_memory import SWEEP
from glp_rapids.propagation.program import Traits

MOST_SLACK = 1 << 30


@cuda.jit(device=True)
def needed(position, v, sweep, run):
    """Tell whether v is to be evaluated in this sweep."""
    if sweep[SWEEP.everybody] != 0 or run.slack[np.uint64(v)] < 0:
        return True
    return sweep[SWEEP.revisit_tied] != 0 and run.tied[np.uint64(position)] != 0


def build_note(traits: Traits) -> Any:
    """Make what notes an outcome; of a plain program a winner that stays changes nothing."""
    plain, keeps_score = traits.plain, not traits.default_update
    bears = traits.bears_changes

    @cuda.jit(device=True)
    def slack_of(score, degree, numbers):
        """Return how many neighbours may change before the winner can: 0 if it is not known."""
        if not bears:
            return np.int32(0)
        most = np.int64(numbers.largest_vote)
        margin = np.int64(2) * np.int64(score) - np.int64(degree) * most - np.int64(1)
        if margin < 2 * most:
            return np.int32(0)
        return np.int32(min(margin // (2 * most), np.int64(MOST_SLACK)))

    @cuda.jit(device=True)
    def note(position, v, degree, label, score, tied, current, sweep, run, numbers):
        """Write down the outcome of one vertex, and take it out of the active set."""
        if sweep[SWEEP.exploring] != 0:
            run.tied[np.uint64(position)] = tied
        if sweep[SWEEP.activates] != 0:
            run.slack[np.uint64(v)] = slack_of(score, degree, numbers)
        if label >= 0 and not (plain and label == current):
            run.winner[np.uint64(position)] = label
            if keeps_score:
                run.winner_score[np.uint64(position)] = score

    return note
