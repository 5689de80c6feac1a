"""A warp a row of up to 128 entries: four a lane in registers, votes in a slice of the table.

All lanes of a warp call this together, row after row. The slice has at least as many slots as the
row has entries. Whoever takes a slot for a label scores that label and clears the slot, so nobody
looks through the table. Loads come first, see `subwarp_per_row`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from glp_rapids.jit.cuda import cuda
from glp_rapids.propagation.kernels.gpu.shared_memory import LANES, SWEEP
from glp_rapids.propagation.kernels.gpu.votes import ALL, STEP, VoteFunctions


def build(functions: VoteFunctions, read_row: Any) -> Any:
    """Make the evaluation of one row; ``read_row`` gives a lane four of its entries."""
    index_type, vote_type, score_type = functions.types
    heard_from, score_of, combine = functions.heard_from, functions.score_of, functions.combine
    best_of_subwarp, unit, growing = functions.best_of_subwarp, functions.unit, functions.growing
    sum_of_warp, table = functions.sum_of_warp, functions.table
    add, votes_in, clear, slots = table.add, table.votes_in, table.clear, np.int32(table.warp_slots)

    @cuda.jit(device=True)
    def warp_row(v, start, degree, head, current, lane, base, rows, lists, state, shared, numbers):
        labels = cuda.local.array(STEP, index_type)
        votes = cuda.local.array(STEP, vote_type)
        places = cuda.local.array(STEP, np.int32)
        all_distinct = shared.sweep[SWEEP.all_distinct] != 0
        last = degree - 1
        read_row(labels, v, start, degree, head, rows, lists, shared)
        for k in range(STEP):
            if lane + LANES * k <= last:  # a user's function sees real entries, each once
                labels[k], votes[k] = heard_from(
                    v, labels[k], start + lane + LANES * k, rows, state, all_distinct, numbers
                )
            else:
                labels[k], votes[k] = index_type(-1), vote_type(0)
        best, score, tied = index_type(-1), score_type(0), False
        own, has_own = vote_type(0), False
        if growing:
            count = np.int32(0)
            for k in range(STEP):
                is_own = labels[k] >= 0 and labels[k] == current
                count += np.int32(cuda.popc(cuda.ballot_sync(ALL, is_own)))
            if 2 * count > degree:
                if unit:
                    return current, score_type(count), False
                total = vote_type(0)
                for k in range(STEP):
                    if labels[k] >= 0:
                        total = vote_type(total + votes[k])
                        if labels[k] == current:
                            own = vote_type(own + votes[k])
                own, total = sum_of_warp(own), sum_of_warp(total)
                if own > total - own:
                    return current, score_type(own), False
                own = vote_type(0)
        k = np.int32(0)
        while k < STEP:
            label, place = labels[0], np.int32(-1)
            if label >= 0:
                if label == current:
                    own, has_own = vote_type(own + votes[0]), True
                elif growing and all_distinct:
                    best, score, tied = combine(
                        best, score, tied, label, score_type(votes[0]), False, current,
                        shared.sweep, numbers,
                    )  # fmt: skip
                else:
                    place, claimed, _ = add(shared.table, base, slots - 1, slots, label, votes[0])
                    if not claimed:
                        place = np.int32(-1)
            for i in range(1, STEP):
                labels[i - 1], votes[i - 1], places[i - 1] = labels[i], votes[i], places[i]
            labels[STEP - 1], places[STEP - 1] = label, place
            k += np.int32(1)
        cuda.syncwarp()
        k = np.int32(0)
        while k < STEP:
            if places[0] >= 0:
                place = np.uint32(places[0])
                best, score, tied = combine(
                    best, score, tied, labels[0],
                    score_of(v, labels[0], votes_in(shared.table, place), state, numbers),
                    False, current, shared.sweep, numbers,
                )  # fmt: skip
                clear(shared.table, place)
            for i in range(1, STEP):
                labels[i - 1], places[i - 1] = labels[i], places[i]
            k += np.int32(1)
        cuda.syncwarp()
        best, score, tied = best_of_subwarp(
            best, score, tied, LANES, current, shared.sweep, numbers
        )
        if cuda.any_sync(ALL, has_own):
            best, score, tied = combine(
                best, score, tied, current,
                score_of(v, current, sum_of_warp(own), state, numbers), False, current,
                shared.sweep, numbers,
            )  # fmt: skip
        return best, score, tied

    return warp_row
