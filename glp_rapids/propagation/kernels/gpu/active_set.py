"""The active set: who is evaluated in a sweep, and what an evaluation leaves behind."""

from __future__ import annotations

from typing import Any

import numpy as np

from glp_rapids.jit.cuda import cuda
from glp_rapids.propagation.kernels.gpu.shared_memory import SWEEP


@cuda.jit(device=True)
def needed(position, v, sweep, run):
    """Tell whether v is to be evaluated in this sweep."""
    if sweep[SWEEP.everybody] != 0 or run.active[np.uint64(v)] != 0:
        return True
    return sweep[SWEEP.revisit_tied] != 0 and run.tied[np.uint64(position)] != 0


def build_note(plain: bool, keeps_score: bool) -> Any:
    """Make what notes an outcome; ``plain``: a winner that is the current label changes nothing."""

    @cuda.jit(device=True)
    def note(position, v, label, score, tied, current, sweep, run):
        """Write down the outcome of one vertex, and take it out of the active set."""
        if sweep[SWEEP.exploring] != 0:
            run.tied[np.uint64(position)] = tied
        if sweep[SWEEP.activates] != 0 and run.active[np.uint64(v)] != 0:
            run.active[np.uint64(v)] = 0
        if label >= 0 and not (plain and label == current):
            run.winner[np.uint64(position)] = label
            if keeps_score:
                run.winner_score[np.uint64(position)] = score

    return note
