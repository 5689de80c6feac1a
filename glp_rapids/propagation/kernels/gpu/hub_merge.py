"""Hubs: rows that are too long for one block, and how the blocks that share one come to a winner.

More than 2816 entries (1280 with 64-bit votes or labels) are a hub, unless one block reads them in
twice its share of the class. `block_per_row` counts a piece of up to 2048 entries a block. Where
scores are sums of votes (``prunes``), each piece hands its frequent labels to the hub's table in
global memory, and an upper bound for all the others; the block that comes last knows the winner if
the bounds allow no other. If they allow a few, it reads the row again and counts these alone; if
they allow a label that no piece handed over, it evaluates the whole row by itself. On a crawl
three hubs, of which the first two labels have nearly as many votes, were evaluated so in each
sweep, 250 microseconds of it.

For other scores every label of every piece goes to the hub's table. After a barrier the pieces
share the table among them: each scores the labels in its part of the slots and clears them; the
block that comes last compares the best of each part.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from glp_rapids.jit.cuda import add_in_order, cuda
from glp_rapids.propagation.kernels.gpu.hub_pieces import (
    END_PIECE,
    FIRST_PIECE,
    HUB_BASE,
    HUB_NUMBER,
    HUB_SLOTS,
)
from glp_rapids.propagation.kernels.gpu.shared_memory import SWEEP, THREADS
from glp_rapids.propagation.kernels.gpu.votes import STEP, WARP_ENTRIES, VoteFunctions


@dataclass(frozen=True)
class HubFunctions:
    """Device functions by which blocks that share a hub come together."""

    add: Any  # votes for a label in the hub's table
    comes_last: Any  # whether this block does
    hand_in: Any  # the best of a piece
    best_of_pieces: Any


def build(functions: VoteFunctions, prunes: bool) -> HubFunctions:
    """Make the functions; ``prunes``: pieces hand over upper bounds."""
    index_type, _, score_type = functions.types
    combine, best_of_block = functions.combine, functions.best_of_block

    @cuda.jit(device=True)
    def add(tables, hub, base, slots, label, amount, excess):
        """Add votes, and votes less the piece's upper bound, in a hub's table in global memory."""
        mask = slots - 1
        slot = np.int64((np.uint64(label) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(24)) & mask
        # There are more slots than labels: one is found.
        for _ in range(slots):
            place = np.uint64(base + slot)
            found = cuda.atomic.cas(tables.labels, place, index_type(-1), label)
            if prunes and found == -1:
                order = cuda.atomic.add(tables.number, np.uint64(hub), np.int32(1))
                tables.taken[np.uint64(base + order)] = np.int32(slot)
            if found == -1 or found == label:
                cuda.atomic.add(tables.votes, place, amount)
                if prunes:
                    cuda.atomic.add(tables.excess, place, excess)
                return
            slot = (slot + 1) & mask

    @cuda.jit(device=True)
    def comes_last(hub, first, last, pieces, arrived):
        """Tell all threads of a block whether it is the last with a piece of the hub."""
        cuda.syncthreads()
        if cuda.threadIdx.x == 0:
            arrived[0] = add_in_order(pieces.arrived, hub, np.int32(1))
        cuda.syncthreads()
        before = arrived[0]
        cuda.syncthreads()
        return before == last - first - 1

    @cuda.jit(device=True)
    def hand_in(piece, label, score, tied, pieces):
        """Write down the best of a piece."""
        if cuda.threadIdx.x == 0:
            pieces.label[np.uint64(piece)] = label
            pieces.score[np.uint64(piece)] = score
            pieces.tied[np.uint64(piece)] = tied

    @cuda.jit(device=True)
    def best_of_pieces(hub, first, last, pieces, current, shared, numbers):
        """Combine what the pieces handed in."""
        best, score, tied = index_type(-1), score_type(0), False
        for piece in range(first + cuda.threadIdx.x, last, THREADS):
            best, score, tied = combine(
                best, score, tied, pieces.label[piece], pieces.score[piece],
                pieces.tied[piece] != 0, current, shared.sweep, numbers,
            )  # fmt: skip
        if cuda.threadIdx.x == 0:
            pieces.arrived[hub] = 0
        return best_of_block(best, score, tied, current, shared, numbers)

    return HubFunctions(add, comes_last, hand_in, best_of_pieces)


def build_recount(functions: VoteFunctions, read_entries: Any) -> Any:
    """Make the count of a few labels in a whole row; all threads of a block call it together."""
    index_type, vote_type, score_type = functions.types
    heard_from, combine, table = functions.heard_from, functions.combine, functions.table
    add_to_present, votes_in, clear = table.add_to_present, table.votes_in, table.clear
    best_of_block = functions.best_of_block

    @cuda.jit(device=True)
    def recount(v, start, length, slots, current, rows, lists, state, shared, numbers):
        """Return the best of the labels in the block's table, which is clean afterwards."""
        labels = cuda.local.array(STEP, index_type)
        neighbors = cuda.local.array(STEP, index_type)
        amounts = cuda.local.array(STEP, vote_type)
        thread = np.int32(cuda.threadIdx.x)
        # Where a warp reads part by part, two of them a stretch of threads.
        begin = np.int64(thread // 64 * THREADS + thread // 32 % 2 * WARP_ENTRIES)
        offset = np.int64(thread)
        while offset - thread < length:  # the same for all threads
            first, further = read_entries(
                neighbors, v, start, length, offset, np.int64(THREADS), offset - thread + begin,
                rows, lists, shared,
            )  # fmt: skip
            for k in range(STEP):
                j = start + min(first + further * k, length - 1)
                labels[k], amounts[k] = heard_from(v, neighbors[k], j, rows, state, False, numbers)
            for k in range(STEP):
                if first + further * k < length and labels[k] >= 0:
                    add_to_present(shared.table, slots - 1, labels[k], amounts[k])
            offset += STEP * THREADS
        cuda.syncthreads()
        best, score, tied = index_type(-1), score_type(0), False
        for slot in range(thread, slots, THREADS):
            label = shared.table.labels[slot]
            if label >= 0:
                best, score, tied = combine(
                    best, score, tied, label, score_type(votes_in(shared.table, slot)), False,
                    current, shared.sweep, numbers,
                )  # fmt: skip
                clear(shared.table, slot)
        return best_of_block(best, score, tied, current, shared, numbers)

    return recount


def build_decide(functions: VoteFunctions, hub_functions: HubFunctions, read_entries: Any) -> Any:
    """Make the end of a hub where pieces hand over upper bounds."""
    index_type, vote_type, score_type = functions.types
    recount, table = build_recount(functions, read_entries), functions.table
    add_to_block, clear = table.add, table.clear
    # Of so many labels that may be the best each is counted again; the table stays half empty.
    few, slots = table.slots // 8, np.int32(table.slots // 4)
    combine, self_vote, unit = functions.combine, functions.self_vote, functions.unit
    best_of_block = functions.best_of_block
    sum_and_max_of_block = functions.sum_and_max_of_block
    comes_last, hand_in = hub_functions.comes_last, hub_functions.hand_in
    best_of_pieces = hub_functions.best_of_pieces

    @cuda.jit(device=True)
    def decide(v, start, length, hub, base, first, last, piece, best, score, tied, current,
               tables, pieces, rows, lists, state, shared, numbers):  # fmt: skip
        """Let the block that comes last find the winner of a hub, and clear the hub's table.

        Returns whether this block came last, whether it knows the winner, and the winner.
        """
        thread = np.int64(cuda.threadIdx.x)
        all_distinct = shared.sweep[SWEEP.all_distinct] != 0
        if all_distinct:
            hand_in(piece, best, score, tied, pieces)
        if not comes_last(hub, first, last, pieces, shared.reduction.arrived):
            return False, True, best, score, tied
        if all_distinct:
            best, score, tied = best_of_pieces(hub, first, last, pieces, current, shared, numbers)
            return True, True, best, score, tied
        number = tables.number[hub]
        best, score, tied = index_type(-1), score_type(0), False
        leaves_out = shared.sweep[SWEEP.leaves_out] != 0
        upper_bound, lower_bound, left_out = vote_type(0), vote_type(0), vote_type(0)
        for other in range(first + thread, last, THREADS):
            upper_bound = vote_type(upper_bound + pieces.upper_bound[np.uint64(other)])
            left_out = max(left_out, vote_type(pieces.score[np.uint64(other)]))
        for i in range(thread, number, THREADS):
            place = np.uint64(base + tables.taken[np.uint64(base + i)])
            lower_bound = max(lower_bound, tables.votes[place])
        if not unit:
            _, left_out = sum_and_max_of_block(vote_type(0), left_out, shared.reduction)
            lower_bound = max(lower_bound, left_out)
        elif leaves_out:
            left_out = vote_type(1)
        upper_bound, lower_bound = sum_and_max_of_block(upper_bound, lower_bound, shared.reduction)
        possible, unsure = vote_type(0), np.int32(0)
        for i in range(thread, number, THREADS):
            place = np.uint64(base + tables.taken[np.uint64(base + i)])
            highest = vote_type(tables.excess[place] + upper_bound)
            if tables.votes[place] > 0 and highest + left_out >= lower_bound:
                possible += vote_type(1)
        several, _ = sum_and_max_of_block(possible, vote_type(0), shared.reduction)
        bounded = upper_bound + left_out < lower_bound
        recounts = bounded and several > 1 and several <= few
        for i in range(thread, number, THREADS):
            place = np.uint64(base + tables.taken[np.uint64(base + i)])
            label, votes = tables.labels[place], tables.votes[place]
            highest = vote_type(tables.excess[place] + upper_bound)
            if votes > 0 and highest + left_out >= lower_bound:
                # Who alone can be the best has won, and its own vote is not looked up.
                if leaves_out and several > 1 and label != current:
                    own_vote = self_vote(v, label, start, length, rows, state, numbers)
                    votes, highest = vote_type(votes + own_vote), vote_type(highest + own_vote)
                if highest > votes:
                    unsure += np.int32(1)
                if recounts:
                    add_to_block(shared.table, 0, slots - 1, slots, label, vote_type(0))
                best, score, tied = combine(
                    best, score, tied, label, score_type(votes), False, current, shared.sweep,
                    numbers,
                )  # fmt: skip
            tables.labels[place] = index_type(-1)
            tables.votes[place] = vote_type(0)
            tables.excess[place] = vote_type(0)
        inexact, _ = sum_and_max_of_block(vote_type(unsure), vote_type(0), shared.reduction)
        known = bounded and (inexact == 0 or several == 1)
        if thread == 0:
            pieces.arrived[hub] = 0
            tables.number[hub] = 0
        if recounts and inexact > 0:
            best, score, tied = recount(
                v, start, length, slots, current, rows, lists, state, shared, numbers
            )
            return True, True, best, score, tied
        if recounts:
            for slot in range(thread, slots, THREADS):
                clear(shared.table, slot)
        best, score, tied = best_of_block(best, score, tied, current, shared, numbers)
        return True, known, best, score, tied

    return decide


def build_collect(functions: VoteFunctions, hub_functions: HubFunctions) -> Any:
    """Make the end of a hub where pieces hand over all labels."""
    index_type, vote_type, score_type = functions.types
    combine, score_of = functions.combine, functions.score_of
    best_of_block, comes_last = functions.best_of_block, hub_functions.comes_last
    hand_in, best_of_pieces = hub_functions.hand_in, hub_functions.best_of_pieces

    @cuda.jit(device=True)
    def collect(v, of_piece, piece, current, tables, pieces, state, shared, numbers):
        """Score a piece's part of the table; return whether it came last, and the hub's winner."""
        labels = cuda.local.array(STEP, index_type)
        votes = cuda.local.array(STEP, vote_type)
        thread = np.int64(cuda.threadIdx.x)
        best, score, tied = index_type(-1), score_type(0), False
        hub, first, last = of_piece[HUB_NUMBER], of_piece[FIRST_PIECE], of_piece[END_PIECE]
        if shared.sweep[SWEEP.all_distinct] == 0:
            base, slots, shares = of_piece[HUB_BASE], of_piece[HUB_SLOTS], last - first
            begin = base + slots * (piece - first) // shares
            end = base + slots * (piece - first + 1) // shares
            slot = begin + thread
            while slot - thread < end:
                for k in range(STEP):
                    place = np.uint64(min(slot + THREADS * k, end - 1))
                    labels[k], votes[k] = tables.labels[place], tables.votes[place]
                k = np.int32(0)
                while k < STEP:
                    place = slot + THREADS * k
                    if place < end and labels[0] >= 0:
                        tables.labels[np.uint64(place)] = index_type(-1)
                        tables.votes[np.uint64(place)] = vote_type(0)
                        best, score, tied = combine(
                            best, score, tied, labels[0],
                            score_of(v, labels[0], votes[0], state, numbers),
                            False, current, shared.sweep, numbers,
                        )  # fmt: skip
                    for i in range(1, STEP):
                        labels[i - 1], votes[i - 1] = labels[i], votes[i]
                    k += np.int32(1)
                slot += np.int64(STEP * THREADS)
            best, score, tied = best_of_block(best, score, tied, current, shared, numbers)
            hand_in(piece, best, score, tied, pieces)
        if not comes_last(hub, first, last, pieces, shared.reduction.arrived):
            return False, best, score, tied
        best, score, tied = best_of_pieces(hub, first, last, pieces, current, shared, numbers)
        return True, best, score, tied

    return collect
