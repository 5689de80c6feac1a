"""What the paths of the persistent kernel share: votes, candidates, tables.

A candidate is (label, score, tied): the best label seen, its score, and whether another label has
the same. ``combine`` is commutative and associative, so the best does not depend on the order.

Where scores are sums of votes that are never negative (``online``), the largest sum is seen by
whoever adds the last vote to it, so the best is known without looking through a table.
"""

from __future__ import annotations

from collections import namedtuple
from types import SimpleNamespace
from typing import Any

import numpy as np

from glp_rapids.jit.cuda import cuda
from glp_rapids.jit.target import Target
from glp_rapids.propagation import ties
from glp_rapids.propagation.compile_program import Compiled
from glp_rapids.propagation.failures import AMOUNT, HEARD
from glp_rapids.propagation.kernels.gpu.failures import build_fail

LANES = 32
ALL = np.uint32(0xFFFFFFFF)
SIGN, LAST = np.uint64(1 << 63), np.int64((1 << 63) - 1)
THREADS = 256
WARPS = THREADS // LANES
STEP = 4  # loads that a lane has in flight
SHORT = STEP * LANES  # entries of a row that a warp reads at once
BLOCKS_A_MULTIPROCESSOR = 3  # at once; it decides how many registers a thread gets
TABLE = 4096  # slots of a block's table in shared memory; half with 64-bit votes
PROBES = 16  # in a table that may be too small; then the vote goes elsewhere
COUNTERS = 1024  # of the sketch of labels that found no room
HANDED_OVER = 64  # labels that a piece of a hub hands over at most

# Arrays of the graph, of the run, and what holds for one sweep; all kernels' paths take them.
Rows = namedtuple("Rows", "indptr indices weights")
Numbers = namedtuple("Numbers", "scale limit errors")

# What holds for one sweep or class, in shared memory: rarely needed, it would cost registers.
(
    DISTINCT, RETAIN, TIE_BREAK, TIE_SEED, EVERYBODY, REVISIT_TIED, EXPLORING, WAKING,
    SWEEPS, EXPLORED, LAYOUT, OVER, ONCE, SHIFT, TICKETS, NOW,
) = range(16)  # fmt: skip

# Shared memory of a block: the table, then small things. Numba wants it allocated in the kernel.
Here = namedtuple(
    "Here",
    "now meta keys votes highs sketch deferred waiting drawn changes owns mosts arrived labels "
    "scores ties long_first long_last long_rows near classes",
)


def common(compiled: Compiled, index_type: Any, target: Target) -> SimpleNamespace:
    """Make the device functions of one program for one type of vertex index."""
    traits = compiled.traits
    unit, weighted, default_score = traits.unit_votes, traits.weighted, traits.default_score
    online = traits.growing_scores
    checked, checks_heard = traits.checks_amounts, traits.checks_heard
    fail = build_fail(target)
    vote_type = np.int32 if unit else np.int64
    score_type = np.float64 if traits.real_scores else vote_type if default_score else np.int64
    load_neighbor, label_score = compiled.load_neighbor, compiled.label_score
    to_fixed, from_fixed = compiled.to_fixed, compiled.from_fixed
    order_key = target.compile(ties.order_key)
    # Shared memory adds 32 bits in one step and 64 bits in a loop of compare-and-swaps, so sums of
    # 64 bits are kept as two words: the lower one's carry goes to the upper one.
    # The table of a block has 32 KB at the most, whatever a label takes.
    slots = TABLE if unit and index_type is np.int32 else TABLE // 2
    highs = 1 if unit else slots
    word_type = np.int32 if unit else np.uint32

    @cuda.jit(device=True)
    def heard_from(v, u, j, rows, state, distinct, numbers):
        """Give what v hears from u over entry j: a label (negative: nothing) and votes for it."""
        if unit:
            if distinct:
                return u, vote_type(1)
            return index_type(state.labels[np.uint64(u)]), vote_type(1)
        if online and distinct:
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
    def scored(v, label, votes, state, numbers):
        """Give the score of a label."""
        if default_score:
            return score_type(votes)
        return score_type(label_score(v, label, from_fixed(np.int64(votes), numbers.scale), state))

    @cuda.jit(device=True)
    def combine(label, score, tied, other, other_score, other_tied, current, here):
        """Give the better of two candidates; a negative label is none, a score of NaN loses."""
        if other < 0 or other_score != other_score:
            return label, score, tied
        if label < 0 or other_score > score:
            return other, other_score, other_tied
        if other_score < score:
            return label, score, tied
        if other == label:
            return label, score, tied or other_tied
        first = other
        if here.now[RETAIN] != 0 and (label == current or other == current):
            first = current
        else:
            key = order_key(label, here.now[TIE_BREAK], np.uint64(here.now[TIE_SEED]))
            other_key = order_key(other, here.now[TIE_BREAK], np.uint64(here.now[TIE_SEED]))
            if key < other_key or (key == other_key and label < other):
                first = label
        return first, score, True

    @cuda.jit(device=True)
    def best_of_lanes(label, score, tied, width, current, here):
        """Combine the candidates of ``width`` neighbouring lanes; each of them gets the best.

        Only the score is compared lane by lane; labels are, where several have the highest.
        """
        if score != score:
            label = index_type(-1)
        lane = np.int32(cuda.laneid)
        group = ALL
        if width < LANES:
            group = np.uint32(
                ((np.uint32(1) << np.uint32(width)) - np.uint32(1))
                << np.uint32(lane & (LANES - width))
            )
        some = np.uint32(cuda.ballot_sync(ALL, label >= 0) & group)
        leader = np.int32(max(cuda.ffs(some), 1) - 1)
        most = cuda.shfl_sync(ALL, score, leader)
        if label >= 0 and score > most:
            most = score
        distance = width >> 1
        while distance > 0:
            other_score = cuda.shfl_xor_sync(ALL, most, distance)
            if other_score > most:
                most = other_score
            distance >>= 1
        best = label >= 0 and score == most
        bests = np.uint32(cuda.ballot_sync(ALL, best) & group)
        leader = np.int32(max(cuda.ffs(bests), 1) - 1)
        winner = cuda.shfl_sync(ALL, label, leader)
        differs = cuda.ballot_sync(ALL, best and label != winner) & group
        ties = cuda.ballot_sync(ALL, best and tied) & group
        held = cuda.ballot_sync(ALL, best and label == current) & group
        if bests == 0:
            winner = index_type(-1)
        elif differs != 0 and held != 0 and here.now[RETAIN] != 0:
            winner = current
        if cuda.any_sync(ALL, differs != 0):
            # Shuffles know signed numbers only: the sign is flipped, and the order stays.
            key, first = LAST, winner
            if best:
                key = np.int64(
                    order_key(label, here.now[TIE_BREAK], np.uint64(here.now[TIE_SEED])) ^ SIGN
                )
                first = label
            distance = width >> 1
            while distance > 0:
                other_key = cuda.shfl_xor_sync(ALL, key, distance)
                other = cuda.shfl_xor_sync(ALL, first, distance)
                if other_key < key or (other_key == key and other < first):
                    key, first = other_key, other
                distance >>= 1
            if differs != 0 and not (held != 0 and here.now[RETAIN] != 0):
                winner = first
        return winner, most, differs != 0 or ties != 0

    @cuda.jit(device=True)
    def sum_of_lanes(value):
        """Add up a warp's values; every lane gets the sum."""
        for distance in (16, 8, 4, 2, 1):
            value += cuda.shfl_xor_sync(ALL, value, distance)
        return value

    @cuda.jit(device=True)
    def max_of_lanes(value):
        """Give a warp's largest value to every lane."""
        for distance in (16, 8, 4, 2, 1):
            value = max(value, cuda.shfl_xor_sync(ALL, value, distance))
        return value

    @cuda.jit(device=True)
    def its_own_vote(v, label, start, length, rows, state, numbers):
        """Give the vote of the vertex of this name in a row of ascending entries, if it says so."""
        if state.labels[np.uint64(label)] != label:
            return vote_type(0)
        low, high = start, start + length
        while low < high:
            middle = (low + high) >> 1
            if rows.indices[np.uint64(middle)] < label:
                low = middle + 1
            else:
                high = middle
        if low < start + length and rows.indices[np.uint64(low)] == label:
            return heard_from(v, label, low, rows, state, False, numbers)[1]
        return vote_type(0)

    @cuda.jit(device=True)
    def votes_at(here, place):
        """Give the votes in a slot of the table in shared memory."""
        if unit:
            return here.votes[place]
        return vote_type((np.int64(here.highs[place]) << 32) | np.int64(here.votes[place]))

    @cuda.jit(device=True)
    def wipe(here, place):
        """Make a slot of the table in shared memory free again."""
        here.keys[place] = index_type(-1)
        here.votes[place] = word_type(0)
        if not unit:
            here.highs[place] = np.int32(0)

    @cuda.jit(device=True)
    def add_here(here, base, mask, probes, label, amount):
        """Add votes in the table in shared memory.

        Returns the slot (negative: no room), whether it was taken for this label just now, and at
        least how many votes the label has; with votes of 64 bits that is no more than these.
        """
        slot = np.int32(
            (np.uint32(np.uint32(label) * np.uint32(0x9E3779B1)) >> np.uint32(12)) & np.uint32(mask)
        )
        for _ in range(probes):
            place = np.uint32(base + slot)
            found = here.keys[place]
            claimed = False
            if found == -1:
                found = cuda.atomic.cas(here.keys, place, index_type(-1), label)
                if found == -1:
                    found, claimed = label, True
            if found == label:
                if unit:
                    amount = vote_type(cuda.atomic.add(here.votes, place, amount) + amount)
                else:
                    low = np.uint32(amount)
                    before = np.uint32(cuda.atomic.add(here.votes, place, low))
                    high = np.int32(amount >> 32)
                    if np.uint32(before + low) < low:
                        high = np.int32(high + 1)
                    if high != 0:
                        cuda.atomic.add(here.highs, place, high)
                return np.int32(place), claimed, amount
            slot = np.int32((slot + 1) & mask)
        return np.int32(-1), False, vote_type(0)

    @cuda.jit(device=True)
    def sum_of_alike(alike, own, lead, value):
        """Add up the values of a group of lanes (a mask from ``lead`` on); its first lane has it.

        In each round every second lane that is left adds the next one's sum to its own.
        """
        below = np.uint32((np.uint32(1) << np.uint32(own)) - np.uint32(1))
        rank = np.int32(cuda.popc(alike & below))
        above = np.uint32(alike & ~np.uint32((np.uint32(2) << np.uint32(own)) - np.uint32(1)))
        while cuda.any_sync(ALL, above != 0):
            following = np.int32(cuda.ffs(above))
            other = cuda.shfl_sync(ALL, value, np.int32(lead + max(following, 1) - 1))
            if following > 0:
                value = vote_type(value + other)
            above &= np.uint32(cuda.ballot_sync(ALL, rank & 1 == 0) >> np.uint32(lead))
            rank >>= 1
        return value

    return SimpleNamespace(
        index_type=index_type, vote_type=vote_type, score_type=score_type, slots=slots,
        slice=slots // WARPS, highs=highs, word_type=word_type, unit=unit, online=online,
        default_load=traits.default_load, heard_from=heard_from, scored=scored, combine=combine,
        order_key=order_key, best_of_lanes=best_of_lanes, sum_of_lanes=sum_of_lanes,
        max_of_lanes=max_of_lanes, sum_of_alike=sum_of_alike, its_own_vote=its_own_vote,
        votes_at=votes_at, wipe=wipe, add_here=add_here,
    )  # fmt: skip
