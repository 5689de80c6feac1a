"""What the baselines' kernels share: a neighbour's votes, the better of two candidates, the best.

A candidate is (label, score, tied): the best label seen, its score, and whether another label has
the same. ``combine`` is commutative and associative, so the best does not depend on the order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from glp_rapids.jit.cuda import cuda, gpu_target
from glp_rapids.propagation.compile_program import Compiled
from glp_rapids.propagation.failures import AMOUNT, HEARD
from glp_rapids.propagation.kernels.gpu.failures import build_fail

THREADS = 128  # of the kernels that give a block to a vertex


@dataclass(frozen=True)
class VoteFunctions:
    """Device functions of one program for one type of vertex index, and the types they take."""

    index_type: Any
    score_type: Any
    needed: Any  # whether a vertex is to be evaluated
    heard_from: Any  # the label and votes of one entry
    score_of: Any  # a label
    combine: Any  # two candidates
    best_of_block: Any  # one candidate a thread
    add_votes: Any  # in a hash table
    best_of_slots: Any  # of a hash table
    conclude: Any  # the evaluation of a vertex


def build(compiled: Compiled, index_type: Any) -> VoteFunctions:
    """Make the device functions of one program for one type of vertex index."""
    traits = compiled.traits
    unit, weighted, default_score = traits.unit_votes, traits.weighted, traits.default_score
    checked, checks_heard = traits.checks_amounts, traits.checks_heard
    fail = build_fail(gpu_target())
    score_type = np.float64 if traits.real_scores else np.int64
    load_neighbor, label_score = compiled.load_neighbor, compiled.label_score
    to_fixed, from_fixed = compiled.to_fixed, compiled.from_fixed
    preferred, plain = compiled.preferred, traits.plain

    @cuda.jit(device=True)
    def needed(v, skip, revisit_tied, active, tied):
        """Tell whether v is to be evaluated in this sweep."""
        if not skip or active[v] != 0:
            return True
        return revisit_tied and tied[v] != 0

    @cuda.jit(device=True)
    def heard_from(v, j, indices, weights, state, scale, limit, errors):
        """Return what v hears over its edge j: a label (negative: nothing) and votes for it."""
        u = indices[j]
        if unit:
            return index_type(state.labels[u]), np.int64(1)
        if weighted:
            label, amount = load_neighbor(v, u, weights[j], state)
        else:
            label, amount = load_neighbor(v, u, np.int64(1), state)
        if checked and not abs(np.float64(amount)) <= limit:
            fail(errors, v, AMOUNT, state.sweep)
            return index_type(-1), np.int64(0)
        if checks_heard and (label < 0 or label >= state.labels.size):
            if label >= 0:
                fail(errors, v, HEARD, state.sweep)
            return index_type(-1), np.int64(0)
        return index_type(label), to_fixed(amount, scale)

    @cuda.jit(device=True)
    def score_of(v, label, votes, state, scale):
        """Score a label by its votes."""
        if default_score:
            return score_type(votes)
        return score_type(label_score(v, label, from_fixed(votes, scale), state))

    @cuda.jit(device=True)
    def combine(
        label, score, tied, other, other_score, other_tied, current, retain, tie_break, tie_order
    ):
        """Return the better of two candidates; a negative label is none, a score of NaN loses."""
        if other < 0 or other_score != other_score:
            return label, score, tied
        if label < 0 or other_score > score:
            return other, other_score, other_tied
        if other_score < score:
            return label, score, tied
        if other == label:
            return label, score, tied or other_tied
        if preferred(
            other, label, current, retain, tie_break, tie_order.seed, tie_order.first_id,
            tie_order.id_words,
        ):  # fmt: skip
            return other, score, True
        return label, score, True

    @cuda.jit(device=True)
    def best_of_block(
        label, score, tied, labels, scores, ties, current, retain, tie_break, tie_order
    ):
        """Combine one candidate a thread into one; every thread returns it."""
        thread = cuda.threadIdx.x
        labels[thread] = label
        scores[thread] = score
        ties[thread] = tied
        cuda.syncthreads()
        half = THREADS // 2
        while half > 0:
            if thread < half:
                label, score, tied = combine(
                    labels[thread], scores[thread], ties[thread] != 0, labels[thread + half],
                    scores[thread + half], ties[thread + half] != 0, current, retain, tie_break,
                    tie_order,
                )  # fmt: skip
                labels[thread] = label
                scores[thread] = score
                ties[thread] = tied
            cuda.syncthreads()
            half //= 2
        label, score, tied = labels[0], scores[0], ties[0] != 0
        cuda.syncthreads()
        return label, score, tied

    @cuda.jit(device=True)
    def add_votes(keys, votes, base, slots, label, amount):
        """Add votes to a label's slot in a table of ``slots`` (a power of two) from ``base``."""
        mask = slots - 1
        slot = np.int64((np.uint64(label) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(20)) & mask
        # Twice as many slots as votes: an empty one is always found.
        for _ in range(slots):
            found = keys[base + slot]
            if found == -1:
                found = cuda.atomic.cas(keys, base + slot, index_type(-1), label)
                if found == -1:
                    found = label
            if found == label:
                cuda.atomic.add(votes, base + slot, amount)
                return
            slot = (slot + 1) & mask

    @cuda.jit(device=True)
    def best_of_slots(
        v, lane, lanes, start, end, keys, votes, state, scale, current, retain, tie_break, tie_order
    ):
        """Return the best label in every ``lanes``-th slot, and clear these for the next use."""
        best = index_type(-1)
        score = score_type(0)
        was_tied = False
        for slot in range(start + lane, end, lanes):
            label = keys[slot]
            if label >= 0:
                best, score, was_tied = combine(
                    best, score, was_tied, label, score_of(v, label, votes[slot], state, scale),
                    False, current, retain, tie_break, tie_order,
                )  # fmt: skip
                keys[slot] = -1
                votes[slot] = 0
        return best, score, was_tied

    @cuda.jit(device=True)
    def conclude(v, best, score, was_tied, current, active, tied, winner, winner_score):
        """Take down how the evaluation of v ended."""
        active[v] = 0
        tied[v] = was_tied
        if best >= 0 and not (plain and best == current):
            winner[v] = best
            winner_score[v] = score

    return VoteFunctions(
        index_type=index_type, score_type=score_type, needed=needed, heard_from=heard_from,
        score_of=score_of, combine=combine, best_of_block=best_of_block, add_votes=add_votes,
        best_of_slots=best_of_slots, conclude=conclude,
    )  # fmt: skip
