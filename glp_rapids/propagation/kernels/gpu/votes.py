"""Votes and candidates: what all paths of the persistent kernel count, and how they compare.

A candidate is (label, score, tied): the best label seen, its score, and whether another label has
the same. ``combine`` is commutative and associative, so the best does not depend on the order.

Where scores are sums of votes that are never negative (``growing``), the largest sum is seen by
whoever adds the last vote to it, so the best is known without looking through a table.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from glp_rapids.jit.cuda import cuda
from glp_rapids.jit.target import Target
from glp_rapids.propagation import ties
from glp_rapids.propagation.compile_program import Compiled
from glp_rapids.propagation.failures import AMOUNT, HEARD
from glp_rapids.propagation.kernels.gpu import warp_reductions
from glp_rapids.propagation.kernels.gpu.entries import entry_at
from glp_rapids.propagation.kernels.gpu.failures import build_fail
from glp_rapids.propagation.kernels.gpu.shared_memory import (
    ALL,
    LANES,
    SWEEP,
    WARPS,
    TableFunctions,
    build_table,
)
from glp_rapids.propagation.kernels.gpu.warp_reductions import lanes_of_subwarp

STEP = 4  # loads that a thread has in flight
WARP_ENTRIES = STEP * LANES  # of a row that a warp reads at once


@dataclass(frozen=True)
class VoteFunctions:
    """Device functions of one program for one type of vertex index, and the types they take."""

    index_type: Any
    vote_type: Any  # int32 where sums are small, int64 elsewhere
    score_type: Any
    unit: bool  # every vote is one
    narrow: bool  # votes are int32: who adds to a sum learns what it is
    growing: bool  # a score is the sum of votes, which are never negative
    default_load: bool  # no function of the user's is called for an entry
    table: TableFunctions
    heard_from: Any  # the label and votes of one entry
    self_vote: Any  # the vote that a vertex has for the label of its own name
    score_of: Any  # a label
    key_of: Any  # of a label in a tie
    combine: Any  # two candidates
    best_of_subwarp: Any  # one candidate a lane
    sum_of_warp: Any  # one vote a lane
    max_of_warp: Any  # likewise
    sum_of_equal: Any  # of the lanes of a sub-warp that say the same
    best_of_block: Any  # one candidate a thread
    sum_and_max_of_block: Any  # two votes a thread

    @property
    def types(self) -> tuple[Any, Any, Any]:
        """The types of vertices and labels, of votes, and of scores."""
        return self.index_type, self.vote_type, self.score_type


def build(compiled: Compiled, index_type: Any, target: Target) -> VoteFunctions:
    """Make the device functions of one program for one type of vertex index."""
    traits = compiled.traits
    unit, weighted, default_score = traits.unit_votes, traits.weighted, traits.default_score
    growing = traits.growing_scores
    checked, checks_heard = traits.checks_amounts, traits.checks_heard
    fail = build_fail(target)
    vote_type = np.int32 if traits.narrow_votes else np.int64
    score_type = np.float64 if traits.real_scores else vote_type if default_score else np.int64
    load_neighbor, label_score = compiled.load_neighbor, compiled.label_score
    to_fixed, from_fixed = compiled.to_fixed, compiled.from_fixed
    order_key = target.compile(ties.order_key)

    reductions = warp_reductions.build(index_type, vote_type, score_type)
    sum_of_warp, max_of_warp = reductions.sum_of_warp, reductions.max_of_warp
    most_of_subwarp, first_of_subwarp = reductions.most_of_subwarp, reductions.first_of_subwarp

    @cuda.jit(device=True)
    def heard_from(v, u, j, rows, state, all_distinct, numbers):
        """Return what v hears from u over entry j: a label (negative: nothing) and its votes."""
        if unit:
            if all_distinct:
                return u, vote_type(1)
            return index_type(state.labels[np.uint64(u)]), vote_type(1)
        if growing and all_distinct:
            label, amount = u, rows.weights[np.uint64(j)]
        elif weighted:
            label, amount = load_neighbor(v, u, rows.weights[np.uint64(j)], state)
        else:
            label, amount = load_neighbor(v, u, np.int64(1), state)
        if checked and not abs(np.float64(amount)) <= numbers.limit:
            fail(numbers.errors, v, AMOUNT, state.sweep)
            return index_type(-1), vote_type(0)
        if checks_heard and (label < 0 or label >= state.labels.size):
            if label >= 0:
                fail(numbers.errors, v, HEARD, state.sweep)
            return index_type(-1), vote_type(0)
        return index_type(label), vote_type(to_fixed(amount, numbers.scale))

    @cuda.jit(device=True)
    def self_vote(v, label, start, length, rows, state, numbers):
        """Return the vote of the vertex named ``label`` for itself, if it is in a row that ascends.

        None (0) if it says another label.
        """
        if state.labels[np.uint64(label)] != label:
            return vote_type(0)
        low, high = start, start + length
        while low < high:
            middle = (low + high) >> 1
            if entry_at(rows.indices, middle) < label:
                low = middle + 1
            else:
                high = middle
        if low < start + length and entry_at(rows.indices, low) == label:
            return heard_from(v, label, low, rows, state, False, numbers)[1]
        return vote_type(0)

    @cuda.jit(device=True)
    def score_of(v, label, votes, state, numbers):
        """Score a label by its votes."""
        if default_score:
            return score_type(votes)
        return score_type(label_score(v, label, from_fixed(np.int64(votes), numbers.scale), state))

    @cuda.jit(device=True)
    def key_of(label, sweep, numbers):
        """Return a number that ascends in the order that settles ties."""
        return order_key(
            label, sweep[SWEEP.tie_break], np.uint64(sweep[SWEEP.tie_seed]), numbers.first_id,
            numbers.id_words,
        )  # fmt: skip

    @cuda.jit(device=True)
    def combine(label, score, tied, other, other_score, other_tied, current, sweep, numbers):
        """Return the better of two candidates; a negative label is none, a score of NaN loses."""
        if other < 0 or other_score != other_score:
            return label, score, tied
        if label < 0 or other_score > score:
            return other, other_score, other_tied
        if other_score < score:
            return label, score, tied
        if other == label:
            return label, score, tied or other_tied
        first = other
        if sweep[SWEEP.retain] != 0 and (label == current or other == current):
            first = current
        else:
            key, other_key = key_of(label, sweep, numbers), key_of(other, sweep, numbers)
            if key < other_key or (key == other_key and label < other):
                first = label
        return first, score, True

    @cuda.jit(device=True)
    def best_of_subwarp(label, score, tied, width, current, sweep, numbers):
        """Combine the candidates of ``width`` neighbouring lanes; each of them gets the best.

        Only the score is compared lane by lane; labels are, where several have the highest.
        """
        if score != score:
            label = index_type(-1)
        group = lanes_of_subwarp(width)
        most = most_of_subwarp(label >= 0, score, width)
        best = label >= 0 and score == most
        bests = np.uint32(cuda.ballot_sync(ALL, best) & group)
        leader = np.int32(max(cuda.ffs(bests), 1) - 1)
        winner = cuda.shfl_sync(ALL, label, leader)
        differs = cuda.ballot_sync(ALL, best and label != winner) & group
        ties = cuda.ballot_sync(ALL, best and tied) & group
        held = cuda.ballot_sync(ALL, best and label == current) & group
        if bests == 0:
            winner = index_type(-1)
        elif differs != 0 and held != 0 and sweep[SWEEP.retain] != 0:
            winner = current
        if cuda.any_sync(ALL, differs != 0):
            key = np.uint64(0)
            if best:
                key = key_of(label, sweep, numbers)
            first = first_of_subwarp(best, key, label, winner, width)
            if differs != 0 and not (held != 0 and sweep[SWEEP.retain] != 0):
                winner = first
        return winner, most, differs != 0 or ties != 0

    @cuda.jit(device=True)
    def sum_of_equal(equal, rank, lead, value):
        """Add up the values of the lanes in a mask from ``lead`` on; the first of them has the sum.

        ``rank``: of a lane in its sub-warp. In each round every second lane that is left adds the
        next one's sum to its own.
        """
        below = np.uint32((np.uint32(1) << np.uint32(rank)) - np.uint32(1))
        place = np.int32(cuda.popc(equal & below))
        above = np.uint32(equal & ~np.uint32((np.uint32(2) << np.uint32(rank)) - np.uint32(1)))
        while cuda.any_sync(ALL, above != 0):
            following = np.int32(cuda.ffs(above))
            other = cuda.shfl_sync(ALL, value, np.int32(lead + max(following, 1) - 1))
            if following > 0:
                value = vote_type(value + other)
            above &= np.uint32(cuda.ballot_sync(ALL, place & 1 == 0) >> np.uint32(lead))
            place >>= 1
        return value

    @cuda.jit(device=True)
    def best_of_block(label, score, tied, current, shared, numbers):
        """Combine one candidate a thread into one; every thread gets it."""
        warps, thread, lane = shared.reduction, cuda.threadIdx.x, cuda.threadIdx.x % LANES
        level = np.int32(0)
        while True:  # of the lanes of each warp, then of the warps: one copy of the code for both
            label, score, tied = best_of_subwarp(
                label, score, tied, LANES, current, shared.sweep, numbers
            )
            if level > 0:
                return label, score, tied
            if lane == 0:
                warps.labels[thread // LANES] = label
                warps.scores[thread // LANES] = score
                warps.ties[thread // LANES] = tied
            cuda.syncthreads()
            label, score, tied = index_type(-1), score_type(0), False
            if lane < WARPS:
                label, score = warps.labels[lane], warps.scores[lane]
                tied = warps.ties[lane] != 0
            cuda.syncthreads()
            level += np.int32(1)

    @cuda.jit(device=True)
    def sum_and_max_of_block(total, most, reduction):
        """Return the sum of one number a thread, and the largest of another, to every thread."""
        total, most = sum_of_warp(total), max_of_warp(most)
        thread = cuda.threadIdx.x
        if thread % LANES == 0:
            reduction.sums[thread // LANES] = total
            reduction.maxima[thread // LANES] = most
        cuda.syncthreads()
        total, most = vote_type(0), reduction.maxima[0]
        for i in range(WARPS):
            total = vote_type(total + reduction.sums[i])
            most = max(most, reduction.maxima[i])
        cuda.syncthreads()
        return total, most

    return VoteFunctions(
        index_type=index_type, vote_type=vote_type, score_type=score_type, unit=unit,
        narrow=vote_type is np.int32,
        growing=growing, default_load=traits.default_load,
        table=build_table(index_type, vote_type), heard_from=heard_from, self_vote=self_vote,
        score_of=score_of, key_of=key_of, combine=combine, best_of_subwarp=best_of_subwarp,
        sum_of_warp=sum_of_warp, max_of_warp=max_of_warp, sum_of_equal=sum_of_equal,
        best_of_block=best_of_block,
        sum_and_max_of_block=sum_and_max_of_block,
    )  # fmt: skip
