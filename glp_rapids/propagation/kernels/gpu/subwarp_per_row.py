"""A sub-warp a row: 16 or 32 lanes, a neighbour a lane (GLP, SIGMOD'21, section 4.2).

All lanes of a warp call this together. A lane stands for one vertex: its row's start, its degree
(0: not to be evaluated) and its current label; the outcome comes back to that lane.

A lane learns who says the same by one instruction. Where more than half of a row says the current
label, one ballot is enough, and two sums where votes are not one; most rows do after a few sweeps.
No shared memory.

Loads come first and without branches, several of them before the first is used: the time of a
sweep is the time of its loads, and a warp that waits for one at a time never fills the memory.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from glp_rapids.jit.cuda import cuda
from glp_rapids.propagation.kernels.gpu.entries import entry_at
from glp_rapids.propagation.kernels.gpu.shared_memory import LANES, SWEEP
from glp_rapids.propagation.kernels.gpu.votes import ALL, STEP, VoteFunctions


def build_one(functions: VoteFunctions) -> Any:
    """Make the evaluation of a row of which each lane of a sub-warp has an entry."""
    index_type, vote_type, score_type = functions.types
    score_of, unit, growing = functions.score_of, functions.unit, functions.growing
    best_of_subwarp, sum_of_equal = functions.best_of_subwarp, functions.sum_of_equal

    @cuda.jit(device=True)
    def one_row(v, degree, label, votes, current, rank, lead, width, state, sweep, numbers):
        """Evaluate a row; ``rank``: of a lane in its sub-warp, which begins at ``lead``."""
        group = np.uint32((np.uint64(1) << np.uint64(width)) - np.uint64(1))
        if growing:
            same = cuda.ballot_sync(ALL, label >= 0 and label == current)
            count = np.int32(cuda.popc((same >> np.uint32(lead)) & group))
            if cuda.all_sync(ALL, 2 * count > degree or degree == 0):
                if unit:
                    return current, score_type(count), False
                # More than half of the entries mostly have more than half of the votes.
                own = votes if label >= 0 and label == current else vote_type(0)
                others = votes if label >= 0 and label != current else vote_type(0)
                distance = width >> 1
                while distance > 0:
                    own = vote_type(own + cuda.shfl_xor_sync(ALL, own, distance))
                    others = vote_type(others + cuda.shfl_xor_sync(ALL, others, distance))
                    distance >>= 1
                if cuda.all_sync(ALL, own > others or degree == 0):
                    return current, score_type(own), False
        equal = (np.uint32(cuda.match_any_sync(ALL, label)) >> np.uint32(lead)) & group
        repeated = np.int32(cuda.ffs(np.uint32(equal)) - 1) != rank
        if unit:
            total = vote_type(cuda.popc(np.uint32(equal)))
        else:
            if label < 0:
                equal = np.uint32(0)  # nobody waits for the sum of what is not there
            total = sum_of_equal(np.uint32(equal), rank, lead, votes)
        score = score_type(0)
        if repeated:
            label = index_type(-1)
        elif label >= 0:
            score = score_of(v, label, total, state, numbers)
        cuda.syncwarp()
        return best_of_subwarp(label, score, False, width, current, sweep, numbers)

    return one_row


def build(functions: VoteFunctions) -> Any:
    """Make the evaluation of rows by sub-warps of 16 or 32 lanes."""
    index_type, vote_type, score_type = functions.types
    heard_from, one_row = functions.heard_from, build_one(functions)

    @cuda.jit(device=True)
    def subwarp_row(v, start, degree, current, lane, width, rows, state, sweep, numbers):
        rank = np.int32(lane & (width - 1))
        lead = np.int32(lane - rank)
        together = np.int32(1 if width == LANES else 2)  # a division would be a call
        mine = np.int32(0 if width == LANES else lane >> 4)
        all_distinct = sweep[SWEEP.all_distinct] != 0
        best, score, tied = index_type(-1), score_type(0), False
        wanted = cuda.ballot_sync(ALL, degree > 0)
        labels = cuda.local.array(STEP, index_type)
        votes = cuda.local.array(STEP, vote_type)
        base = np.int32(0)
        while base < LANES:
            subwarps = np.uint32((np.uint64(1) << np.uint64(STEP * together)) - np.uint64(1))
            if (wanted >> np.uint32(base)) & subwarps != 0:
                for k in range(STEP):
                    source = np.int32(base + k * together + mine)
                    j = cuda.shfl_sync(ALL, start, source)
                    if rank < cuda.shfl_sync(ALL, degree, source):
                        j += rank
                    labels[k] = entry_at(rows.indices, j)
                for k in range(STEP):
                    source = np.int32(base + k * together + mine)
                    j = cuda.shfl_sync(ALL, start, source) + rank
                    at = cuda.shfl_sync(ALL, v, source)
                    if rank < cuda.shfl_sync(ALL, degree, source):
                        labels[k], votes[k] = heard_from(
                            at, labels[k], j, rows, state, all_distinct, numbers
                        )
                    else:
                        labels[k], votes[k] = index_type(-1), vote_type(0)
                for k in range(STEP):
                    first = np.int32(base + k * together)
                    source = np.int32(first + mine)
                    winner, most, even = one_row(
                        cuda.shfl_sync(ALL, v, source), cuda.shfl_sync(ALL, degree, source),
                        labels[0], votes[0], cuda.shfl_sync(ALL, current, source), rank, lead,
                        width, state, sweep, numbers,
                    )  # fmt: skip
                    # The next one comes to the front, so that one copy of the code serves all.
                    for i in range(1, STEP):
                        labels[i - 1], votes[i - 1] = labels[i], votes[i]
                    # The outcome of row first + g is with lane g * width.
                    place = np.int32(lane - first)
                    giver = np.int32((place * width) & (LANES - 1))
                    winner = cuda.shfl_sync(ALL, winner, giver)
                    most = cuda.shfl_sync(ALL, most, giver)
                    even = cuda.shfl_sync(ALL, np.int32(even), giver) != 0
                    if place >= 0 and place < together:
                        best, score, tied = winner, most, even
            base += np.int32(STEP * together)
        return best, score, tied

    return subwarp_row
