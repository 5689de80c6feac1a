"""A thread a row: up to four or up to eight entries, all in registers.

Threads of a warp take neighbours in the plan's list, whose rows lie side by side, so what they read
one after the other was fetched together. No shared memory.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from glp_rapids.jit.cuda import cuda
from glp_rapids.propagation.kernels.gpu.entries import entry_at
from glp_rapids.propagation.kernels.gpu.shared_memory import SWEEP
from glp_rapids.propagation.kernels.gpu.votes import VoteFunctions


def build(functions: VoteFunctions, size: int) -> Any:
    """Make the evaluation of rows of up to ``size`` entries, one a thread."""
    index_type, vote_type, score_type = functions.types
    heard_from, score_of, key_of = functions.heard_from, functions.score_of, functions.key_of
    unit, growing, harmless = functions.unit, functions.growing, functions.default_load

    @cuda.jit(device=True)
    def thread_row(v, start, degree, current, rows, state, sweep, numbers):
        labels = cuda.local.array(size, index_type)
        votes = cuda.local.array(size, vote_type)
        scores = cuda.local.array(size, score_type)
        first = cuda.local.array(size, np.bool_)
        all_distinct = sweep[SWEEP.all_distinct] != 0
        last = max(degree - 1, 0)
        for i in range(size):
            labels[i] = entry_at(rows.indices, start + min(i, last))
        for i in range(size):
            # What is read once too often is dropped below; a user's function sees real entries.
            if harmless or i < degree:
                labels[i], votes[i] = heard_from(
                    v, labels[i], start + min(i, last), rows, state, all_distinct, numbers
                )
        for i in range(size):
            if i >= degree:
                labels[i] = index_type(-1)
        best, most = index_type(-1), score_type(0)
        for i in range(size):
            total = vote_type(0)
            first[i] = labels[i] >= 0
            for j in range(size):
                if growing and j < i:
                    continue  # the first of its kind has them all; fewer cannot be the best
                same = labels[j] == labels[i]
                if unit:
                    total = vote_type(total + vote_type(same))
                elif same:
                    total = vote_type(total + votes[j])
                if j < i and same:
                    first[i] = False
            if growing:
                scores[i] = score_type(total)
            elif first[i]:
                scores[i] = score_of(v, labels[i], total, state, numbers)
                first[i] = scores[i] == scores[i]
            if first[i] and (best < 0 or scores[i] > most):
                best, most = labels[i], scores[i]
        tied, held = False, False
        for i in range(size):
            if first[i] and scores[i] == most:
                tied = tied or labels[i] != best
                held = held or labels[i] == current
        if tied:
            if held and sweep[SWEEP.retain] != 0:
                best = current
            else:
                key = ~np.uint64(0)
                best = index_type(-1)
                for i in range(size):
                    if first[i] and scores[i] == most:
                        this = key_of(labels[i], sweep, numbers)
                        if best < 0 or this < key or (this == key and labels[i] < best):
                            best, key = labels[i], this
        return best, most, tied

    return thread_row
