"""Hubs: rows that many blocks share, a piece each, and how the pieces come to a winner.

Where scores are sums of votes (``bounded``), each piece hands its frequent labels to the hub's
table in global memory, and a bound for all the others; the block that comes last knows the winner
if the bounds allow no other, and else reads the whole row by itself.

For other scores every label of every piece goes to the hub's table. After a barrier the pieces
share the table among them: each scores the labels in its part of the slots and wipes them; the
block that comes last compares the best of each part.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from glp_rapids.jit.cuda import cuda
from glp_rapids.propagation.kernels.gpu.votes import DISTINCT, LANES, ONCE, STEP, THREADS, WARPS


def build_block(shared: SimpleNamespace, bounded: bool) -> SimpleNamespace:
    """Make what the threads of a block do together, and how votes get to a hub's table."""
    index_type, vote_type, score_type = shared.index_type, shared.vote_type, shared.score_type
    combine, best_of_lanes = shared.combine, shared.best_of_lanes
    sum_of_lanes, max_of_lanes = shared.sum_of_lanes, shared.max_of_lanes

    @cuda.jit(device=True)
    def add_there(tables, hub, base, slots, label, amount, lack):
        """Add votes, and votes less the bound, in a hub's table in global memory."""
        mask = slots - 1
        slot = np.int64((np.uint64(label) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(24)) & mask
        # There are more slots than labels: one is found.
        for _ in range(slots):
            place = np.uint64(base + slot)
            found = cuda.atomic.cas(tables.keys, place, index_type(-1), label)
            if bounded and found == -1:
                order = cuda.atomic.add(tables.filled, np.uint64(hub), np.int32(1))
                tables.touched[np.uint64(base + order)] = np.int32(slot)
            if found == -1 or found == label:
                cuda.atomic.add(tables.votes, place, amount)
                if bounded:
                    cuda.atomic.add(tables.lacks, place, lack)
                return
            slot = (slot + 1) & mask

    @cuda.jit(device=True)
    def best_of_block(label, score, tied, here, current):
        """Combine one candidate a thread into one; every thread gets it."""
        label, score, tied = best_of_lanes(label, score, tied, LANES, current, here)
        thread = cuda.threadIdx.x
        if thread % LANES == 0:
            here.labels[thread // LANES] = label
            here.scores[thread // LANES] = score
            here.ties[thread // LANES] = tied
        cuda.syncthreads()
        label, score, tied = index_type(-1), score_type(0), False
        i = np.int32(0)
        while i < WARPS:
            label, score, tied = combine(
                label, score, tied, here.labels[i], here.scores[i], here.ties[i] != 0, current,
                here,
            )  # fmt: skip
            i += np.int32(1)
        cuda.syncthreads()
        return label, score, tied

    @cuda.jit(device=True)
    def sum_and_max_of_block(total, most, here):
        """Give the sum of one number a thread, and the largest of another, to every thread."""
        total, most = sum_of_lanes(total), max_of_lanes(most)
        thread = cuda.threadIdx.x
        if thread % LANES == 0:
            here.owns[thread // LANES] = total
            here.mosts[thread // LANES] = most
        cuda.syncthreads()
        total, most = vote_type(0), here.mosts[0]
        for i in range(WARPS):
            total = vote_type(total + here.owns[i])
            most = max(most, here.mosts[i])
        cuda.syncthreads()
        return total, most

    @cuda.jit(device=True)
    def comes_last(hub, first, last, here, pieces):
        """Tell all threads of a block whether it is the last with a piece of the hub."""
        cuda.threadfence()
        cuda.syncthreads()
        if cuda.threadIdx.x == 0:
            here.arrived[0] = cuda.atomic.add(pieces.arrived, hub, np.int32(1))
        cuda.syncthreads()
        before = here.arrived[0]
        cuda.syncthreads()
        if before != last - first - 1:
            return False
        cuda.threadfence()
        cuda.syncthreads()
        return True

    @cuda.jit(device=True)
    def hand_in(piece, label, score, tied, pieces):
        """Write down the best of a piece."""
        if cuda.threadIdx.x == 0:
            pieces.label[np.uint64(piece)] = label
            pieces.heard[np.uint64(piece)] = score
            pieces.tied[np.uint64(piece)] = tied

    @cuda.jit(device=True)
    def best_of_pieces(hub, first, last, here, pieces, current):
        """Combine what the pieces handed in."""
        best, score, tied = index_type(-1), score_type(0), False
        for piece in range(first + cuda.threadIdx.x, last, THREADS):
            best, score, tied = combine(
                best, score, tied, pieces.label[piece], pieces.heard[piece],
                pieces.tied[piece] != 0, current, here,
            )  # fmt: skip
        if cuda.threadIdx.x == 0:
            pieces.arrived[hub] = 0
        return best_of_block(best, score, tied, here, current)

    return SimpleNamespace(
        add_there=add_there, best_of_block=best_of_block, comes_last=comes_last, hand_in=hand_in,
        best_of_pieces=best_of_pieces, sum_and_max_of_block=sum_and_max_of_block,
    )  # fmt: skip


def build_last(shared: SimpleNamespace, block: SimpleNamespace) -> Any:
    """Make the end of a hub where pieces hand over bounds."""
    index_type, vote_type, score_type = shared.index_type, shared.vote_type, shared.score_type
    combine, its_own_vote, unit = shared.combine, shared.its_own_vote, shared.unit
    comes_last, best_of_block = block.comes_last, block.best_of_block
    sum_and_max_of_block = block.sum_and_max_of_block
    hand_in, best_of_pieces = block.hand_in, block.best_of_pieces

    @cuda.jit(device=True)
    def last_of_hub(v, start, length, hub, piece, best, score, tied, here, current, tables, hubs,
                    pieces, rows, state, numbers):  # fmt: skip
        """Let the block that comes last find the winner of a hub, and wipe the hub's table.

        Returns whether this block came last, whether it knows the winner, and the winner.
        """
        thread = np.int64(cuda.threadIdx.x)
        distinct = here.now[DISTINCT] != 0
        first, last = hubs.first_piece[hub], hubs.first_piece[hub + 1]
        if distinct:
            hand_in(piece, best, score, tied, pieces)
        if not comes_last(hub, first, last, here, pieces):
            return False, True, best, score, tied
        if distinct:
            best, score, tied = best_of_pieces(hub, first, last, here, pieces, current)
            return True, True, best, score, tied
        base, filled = hubs.base[hub], tables.filled[hub]
        best, score, tied = index_type(-1), score_type(0), False
        named = here.now[ONCE] != 0
        bound, floor, unheard = vote_type(0), vote_type(0), vote_type(0)
        for other in range(first + thread, last, THREADS):
            bound = vote_type(bound + pieces.bound[np.uint64(other)])
            unheard = max(unheard, vote_type(pieces.heard[np.uint64(other)]))
        for i in range(thread, filled, THREADS):
            place = np.uint64(base + tables.touched[np.uint64(base + i)])
            floor = max(floor, tables.votes[place])
        if not unit:
            _, unheard = sum_and_max_of_block(vote_type(0), unheard, here)
            floor = max(floor, unheard)
        elif named:
            unheard = vote_type(1)
        bound, floor = sum_and_max_of_block(bound, floor, here)
        possible, unsure = vote_type(0), np.int32(0)
        for i in range(thread, filled, THREADS):
            place = np.uint64(base + tables.touched[np.uint64(base + i)])
            highest = vote_type(tables.lacks[place] + bound)
            if tables.votes[place] > 0 and highest + unheard >= floor:
                possible += vote_type(1)
        several, _ = sum_and_max_of_block(possible, vote_type(0), here)
        for i in range(thread, filled, THREADS):
            place = np.uint64(base + tables.touched[np.uint64(base + i)])
            label, votes = tables.keys[place], tables.votes[place]
            highest = vote_type(tables.lacks[place] + bound)
            if votes > 0 and highest + unheard >= floor:
                # Who alone can be the best has won, and its own vote is not looked up.
                if named and several > 1 and label != current:
                    own_vote = its_own_vote(v, label, start, length, rows, state, numbers)
                    votes, highest = vote_type(votes + own_vote), vote_type(highest + own_vote)
                if highest > votes:
                    unsure += np.int32(1)
                best, score, tied = combine(
                    best, score, tied, label, score_type(votes), False, current, here
                )
            tables.keys[place] = index_type(-1)
            tables.votes[place] = vote_type(0)
            tables.lacks[place] = vote_type(0)
        inexact, _ = sum_and_max_of_block(vote_type(unsure), vote_type(0), here)
        known = bound + unheard < floor and (inexact == 0 or several == 1)
        best, score, tied = best_of_block(best, score, tied, here, current)
        if thread == 0:
            pieces.arrived[hub] = 0
            tables.filled[hub] = 0
        return True, known, best, score, tied

    return last_of_hub


def build_collect(shared: SimpleNamespace, block: SimpleNamespace) -> Any:
    """Make the end of a hub where pieces hand over all labels."""
    index_type, vote_type, score_type = shared.index_type, shared.vote_type, shared.score_type
    combine, scored = shared.combine, shared.scored
    best_of_block, comes_last = block.best_of_block, block.comes_last
    hand_in, best_of_pieces = block.hand_in, block.best_of_pieces

    @cuda.jit(device=True)
    def collect(v, hub, piece, here, current, tables, hubs, pieces, state, numbers):
        """Score a piece's part of the table; return whether it came last, and the hub's winner."""
        labels = cuda.local.array(STEP, index_type)
        votes = cuda.local.array(STEP, vote_type)
        thread = np.int64(cuda.threadIdx.x)
        best, score, tied = index_type(-1), score_type(0), False
        first, last = hubs.first_piece[hub], hubs.first_piece[hub + 1]
        if here.now[DISTINCT] == 0:
            room, shares = hubs.slots[hub], last - first
            begin = hubs.base[hub] + room * (piece - first) // shares
            end = hubs.base[hub] + room * (piece - first + 1) // shares
            slot = begin + thread
            while slot - thread < end:
                for k in range(STEP):
                    place = np.uint64(min(slot + THREADS * k, end - 1))
                    labels[k], votes[k] = tables.keys[place], tables.votes[place]
                k = np.int32(0)
                while k < STEP:
                    place = slot + THREADS * k
                    if place < end and labels[0] >= 0:
                        tables.keys[np.uint64(place)] = index_type(-1)
                        tables.votes[np.uint64(place)] = vote_type(0)
                        best, score, tied = combine(
                            best, score, tied, labels[0],
                            scored(v, labels[0], votes[0], state, numbers), False, current, here,
                        )  # fmt: skip
                    for i in range(1, STEP):
                        labels[i - 1], votes[i - 1] = labels[i], votes[i]
                    k += np.int32(1)
                slot += np.int64(STEP * THREADS)
            best, score, tied = best_of_block(best, score, tied, here, current)
            hand_in(piece, best, score, tied, pieces)
        if not comes_last(hub, first, last, here, pieces):
            return False, best, score, tied
        best, score, tied = best_of_pieces(hub, first, last, here, pieces, current)
        return True, best, score, tied

    return collect
