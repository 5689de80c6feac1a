"""A warp a row of more than 128 entries, four a lane at a time, in a slice of the block's table.

All lanes of a warp call this together, row after row. The slice has 512 slots (256 where votes or
labels have 64 bits), and is clean before and after. A row with more labels than fit is given back
as failed, and its block evaluates it. Loads come first, see `subwarp_per_row`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from glp_rapids.jit.cuda import cuda
from glp_rapids.propagation.kernels.gpu.shared_memory import LANES, PROBES, SWEEP
from glp_rapids.propagation.kernels.gpu.votes import ALL, STEP, VoteFunctions


def build(functions: VoteFunctions, read_entries: Any, exact: bool) -> Any:
    """Make the evaluation of one row; ``read_entries`` gives a lane four of its entries.

    ``exact``: the score itself is wanted, not only who has the highest.
    """
    index_type, vote_type, score_type = functions.types
    heard_from, score_of, combine = functions.heard_from, functions.score_of, functions.combine
    best_of_subwarp, self_vote = functions.best_of_subwarp, functions.self_vote
    sum_of_warp, max_of_warp = functions.sum_of_warp, functions.max_of_warp
    unit, growing, table = functions.unit, functions.growing, functions.table
    narrow = functions.narrow
    add, votes_in, clear, most_slots = table.add, table.votes_in, table.clear, table.warp_slots

    @cuda.jit(device=True)
    def warp_row(v, start, degree, current, lane, base, rows, lists, state, shared, numbers):
        labels = cuda.local.array(STEP, index_type)
        neighbors = cuda.local.array(STEP, index_type)
        amounts = cuda.local.array(STEP, vote_type)
        all_distinct = shared.sweep[SWEEP.all_distinct] != 0
        slots = np.int32(64)
        while slots < 2 * degree and slots < most_slots:
            slots = np.int32(2 * slots)
        probes = slots if 2 * degree <= slots else np.int32(PROBES)
        # Votes of vertices for their own names stay out of the table, as in `block_per_row`:
        # so many may be missing of a label.
        leaves_out = growing and shared.sweep[SWEEP.leaves_out] != 0 and not all_distinct
        left_out = vote_type(0)
        if unit and leaves_out:
            left_out = vote_type(1)
        best, score, tied = index_type(-1), score_type(0), False
        own, most = vote_type(0), vote_type(0)
        has_own, inserted, failed = False, False, False
        last = degree - 1
        offset = np.int32(lane)
        while offset - lane < degree:
            begin = np.int64(offset - lane)
            read_entries(neighbors, v, start, degree, offset, LANES, begin, rows, lists, shared)
            for k in range(STEP):
                j = start + min(offset + LANES * k, last)
                labels[k], amounts[k] = heard_from(
                    v, neighbors[k], j, rows, state, all_distinct, numbers
                )
            for k in range(STEP):
                if offset + LANES * k > last:
                    labels[k] = index_type(-1)
                is_own = labels[k] >= 0 and labels[k] == current
                if unit:
                    count = cuda.popc(cuda.ballot_sync(ALL, is_own))
                    own = vote_type(own + vote_type(count))
                elif is_own:
                    own = vote_type(own + amounts[k])
                    has_own = True
                if is_own:
                    labels[k] = index_type(-1)
            k = np.int32(0)
            while k < STEP:
                label = labels[0]
                if label >= 0:
                    if growing and (all_distinct or (leaves_out and label == neighbors[0])):
                        # With votes of one nobody asks for these labels until none has two.
                        if all_distinct or not unit:
                            left_out = max(left_out, amounts[0])
                            best, score, tied = combine(
                                best, score, tied, label, score_type(amounts[0]), False, current,
                                shared.sweep, numbers,
                            )  # fmt: skip
                    elif not failed:
                        place, _, total = add(
                            shared.table, base, slots - 1, probes, label, amounts[0]
                        )
                        inserted = True
                        failed = place < 0
                        most = max(most, total)
                for i in range(1, STEP):
                    labels[i - 1], amounts[i - 1] = labels[i], amounts[i]
                    neighbors[i - 1] = neighbors[i]
                k += np.int32(1)
            offset += np.int32(LANES * STEP)
            if cuda.any_sync(ALL, failed):
                break
            if unit and leaves_out and offset - lane >= degree:
                cuda.syncwarp()
                most = max_of_warp(most)
                if max(most, own) < 2:
                    # No label has two votes without its own: those decide, and are counted too.
                    # What is in the table counts again, so it is cleared first.
                    slot = np.int32(lane)
                    while slot < slots:
                        clear(shared.table, np.uint32(base + slot))
                        slot += np.int32(LANES)
                    cuda.syncwarp()
                    left_out, own, most = vote_type(0), vote_type(0), vote_type(0)
                    leaves_out = False
                    offset = np.int32(lane)
        cuda.syncwarp()
        failed = cuda.any_sync(ALL, failed)
        if not unit:
            own = sum_of_warp(own)
        if cuda.any_sync(ALL, inserted):
            only_one = False
            if growing:
                if not unit:
                    left_out = max_of_warp(left_out)
                if not narrow:
                    slot = np.int32(lane)
                    while slot < slots:
                        most = max(most, votes_in(shared.table, np.uint32(base + slot)))
                        slot += np.int32(LANES)
                most_of_table = max_of_warp(most)
                most = max(most_of_table, own)
                if not unit:
                    most = max(most, left_out)
                if leaves_out and not exact and most_of_table > max(own, left_out):
                    # Who alone can be the best has won, and its own vote is not looked up.
                    possible = np.int32(0)
                    slot = np.int32(lane)
                    while slot < slots:
                        place = np.uint32(base + slot)
                        if (
                            shared.table.labels[place] >= 0
                            and votes_in(shared.table, place) + left_out >= most
                        ):
                            possible += np.int32(1)
                        slot += np.int32(LANES)
                    only_one = sum_of_warp(possible) == 1
            slot = np.int32(lane)
            while slot < slots:
                place = np.uint32(base + slot)
                label = shared.table.labels[place]
                if label >= 0:
                    total = votes_in(shared.table, place)
                    if not growing or total + left_out >= most:
                        if growing and leaves_out and not only_one:
                            total = vote_type(
                                total + self_vote(v, label, start, degree, rows, state, numbers)
                            )
                        best, score, tied = combine(
                            best, score, tied, label, score_of(v, label, total, state, numbers),
                            False, current, shared.sweep, numbers,
                        )  # fmt: skip
                    clear(shared.table, place)
                slot += np.int32(LANES)
            cuda.syncwarp()
        if failed:
            return index_type(-1), score_type(0), False, True
        best, score, tied = best_of_subwarp(
            best, score, tied, LANES, current, shared.sweep, numbers
        )
        has_own = cuda.any_sync(ALL, has_own) if not unit else own > 0
        if has_own:
            best, score, tied = combine(
                best, score, tied, current, score_of(v, current, own, state, numbers), False,
                current, shared.sweep, numbers,
            )  # fmt: skip
        return best, score, tied, False

    return warp_row
