"""A block a row that is too long for a warp, or many blocks a hub, a piece each.

A row has more than 128 entries, in large classes more than 4096; see `hub_merge` for where hubs
begin.

Votes go into a table in shared memory. What the current label gets is counted beside it, by ballots
where votes are one: once communities have formed, that is most of it, and the rest has few labels.
In the table all threads would add to one slot in turn.

A label for which there is no room is counted in a sketch instead, a few counters that labels share
by hash, so a counter is a bound (GLP, section 4.1, a count-min sketch of one row). If no counter
reaches the best label of the table, that one has won. Otherwise the row is read again, and only
labels whose counter reaches the best so far are counted; if even these are too many, in parts by
another hash.
A label is in the table from its first vote or never, so what the table holds is always exact.

In the first sweep most labels in a long row are heard once, from the vertex that bears the name.
Such votes stay out of the table: the best of them is a candidate, and for the few labels of the
table that such a vote could help to win it is looked up: a row holds a neighbour once, so whether
it holds the name itself is a binary search. With votes of one all of them would be the best, so
they are not even compared until it is known that no label has two.

A hub is cut into pieces, whose labels `hub_merge` brings together. The table, all of it, and the
sketch are clean before and after: who used a slot clears it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from glp_rapids.jit.cuda import cuda
from glp_rapids.propagation.kernels.gpu.hub_merge import HubFunctions
from glp_rapids.propagation.kernels.gpu.shared_memory import (
    BLOCK_PROBES,
    LANES,
    PROBES,
    SKETCH_COUNTERS,
    SWEEP,
    THREADS,
    build_claims,
)
from glp_rapids.propagation.kernels.gpu.votes import ALL, STEP, WARP_ENTRIES, VoteFunctions

HANDED_OVER = 64  # labels that a piece of a hub hands over at most
LEVEL = np.int32(1 << 16)  # two counts in one word


def build(
    functions: VoteFunctions, hub_functions: HubFunctions, read_entries: Any, prunes: bool
) -> Any:
    """Make the evaluation of a row or a piece of one; all threads of a block call it together.

    ``prunes``: frequent labels and an upper bound for the others are enough of a piece.
    """
    index_type, vote_type, score_type = functions.types
    heard_from, score_of, combine = functions.heard_from, functions.score_of, functions.combine
    self_vote, add_to_hub = functions.self_vote, hub_functions.add
    best_of_block, sum_and_max_of_block = functions.best_of_block, functions.sum_and_max_of_block
    unit, growing, table = functions.unit, functions.growing, functions.table
    narrow = functions.narrow
    add, votes_in, clear, most_slots = table.add, table.votes_in, table.clear, table.slots
    claims = build_claims()
    claim, claimed, slot_of, release = claims.claim, claims.claimed, claims.slot_of, claims.release

    @cuda.jit(device=True)
    def count(v, start, length, hub, share, shares, slots, probes, part, parts, again, sketched,
              lower_bound, all_distinct, leaves_out, left_out, own, has_own, best, score, tied,
              current, rows, lists, state, shared, numbers):  # fmt: skip
        """Count the labels of a row, of one share of it, or of one part of all labels.

        Returns, for each thread: what is left out, the votes of the current label and whether there
        are any, the best candidate, the most votes in the table, and whether a label found no room.
        """
        labels = cuda.local.array(STEP, index_type)
        neighbors = cuda.local.array(STEP, index_type)
        amounts = cuda.local.array(STEP, vote_type)
        thread, stride = np.int32(cuda.threadIdx.x), shares * THREADS
        # Where a warp reads part by part, two of them a stretch of threads.
        of_stretch, of_half = np.int64(thread // 64), np.int64(thread // 32 % 2 * WARP_ENTRIES)
        spills, most = False, vote_type(0)
        offset = np.int64(thread) + share * THREADS
        while offset - thread < length:  # the same for all threads
            first, further = read_entries(
                neighbors, v, start, length, offset, stride,
                offset - thread + stride * of_stretch + of_half, rows, lists, shared,
            )  # fmt: skip
            for k in range(STEP):
                j = start + min(first + further * k, length - 1)
                labels[k], amounts[k] = heard_from(
                    v, neighbors[k], j, rows, state, all_distinct, numbers
                )
            for k in range(STEP):
                if first + further * k >= length:
                    labels[k] = index_type(-1)
                is_own = labels[k] >= 0 and labels[k] == current
                if is_own:
                    labels[k] = index_type(-1)
                if again:
                    is_own = False  # it was counted the first time
                if unit:
                    holders = cuda.popc(cuda.ballot_sync(ALL, is_own))
                    own = vote_type(own + vote_type(holders))
                elif is_own:
                    own = vote_type(own + amounts[k])
                has_own = has_own or is_own
            k = np.int32(0)
            while k < STEP:
                label = labels[0]
                if (
                    growing
                    and label >= 0
                    and (all_distinct or (leaves_out and label == neighbors[0]))
                ):
                    if not unit and not again:
                        left_out = max(left_out, amounts[0])
                    if all_distinct or (not unit and not again and hub < 0):
                        best, score, tied = combine(
                            best, score, tied, label, score_type(amounts[0]), False, current,
                            shared.sweep, numbers,
                        )  # fmt: skip
                    label = index_type(-1)
                counter = np.uint32(
                    np.uint32(np.uint32(label) * np.uint32(0xC2B2AE35)) >> np.uint32(12)
                ) & np.uint32(SKETCH_COUNTERS - 1)
                if again and label >= 0:
                    other = np.uint32(np.uint32(label) * np.uint32(0x85EBCA6B)) >> np.uint32(7)
                    if (other & np.uint32(parts - 1)) != part or (
                        sketched and shared.sketch[counter] + left_out < lower_bound
                    ):
                        label = index_type(-1)
                if label >= 0:
                    place, is_new, total = add(
                        shared.table, 0, slots - 1, probes, label, amounts[0]
                    )
                    most = max(most, total)
                    if is_new:
                        claim(shared.claims, place)
                    if place < 0:
                        spills = True
                        if growing and not again:
                            cuda.atomic.add(shared.sketch, counter, amounts[0])
                for i in range(1, STEP):
                    labels[i - 1], amounts[i - 1] = labels[i], amounts[i]
                    neighbors[i - 1] = neighbors[i]
                k += np.int32(1)
            offset += STEP * stride
        return left_out, own, has_own, best, score, tied, most, spills

    @cuda.jit(device=True)
    def clear_sketch(shared):
        for i in range(cuda.threadIdx.x, SKETCH_COUNTERS, THREADS):
            shared.sketch[i] = vote_type(0)
        cuda.syncthreads()

    @cuda.jit(device=True)
    def one_is_possible(left_out, lower_bound, shared):
        """Tell whether one label alone of the table can be the best."""
        possible = vote_type(0)
        bits = claimed(shared.claims)
        while bits != 0:
            if votes_in(shared.table, slot_of(bits)) + left_out >= lower_bound:
                possible += vote_type(1)
            bits &= np.uint32(bits - np.uint32(1))
        possible, _ = sum_and_max_of_block(possible, vote_type(0), shared.reduction)
        return possible == 1

    @cuda.jit(device=True)
    def score_table(v, start, length, looks_up, left_out, lower_bound, best, score, tied,
                    current, rows, state, shared, numbers):  # fmt: skip
        """Return the best of the labels in the table, with their self votes, and clear it."""
        bits = claimed(shared.claims)
        release(shared.claims, bits)
        while bits != 0:
            slot = slot_of(bits)
            label, total = shared.table.labels[slot], votes_in(shared.table, slot)
            clear(shared.table, slot)
            if not growing or total + left_out >= lower_bound:
                if growing and looks_up:
                    total = vote_type(
                        total + self_vote(v, label, start, length, rows, state, numbers)
                    )
                best, score, tied = combine(
                    best, score, tied, label, score_of(v, label, total, state, numbers),
                    False, current, shared.sweep, numbers,
                )  # fmt: skip
            bits &= np.uint32(bits - np.uint32(1))
        cuda.syncthreads()
        return best, score, tied

    @cuda.jit(device=True)
    def hand_over(hub, piece, base, hub_slots, most, sketch_most, lower_bound, left_out, own,
                  has_own, current, tables, pieces, shared):  # fmt: skip
        """Hand labels of the table over to the hub, with a bound for others, and clear it."""
        thread = np.int32(cuda.threadIdx.x)
        least, upper_bound = vote_type(1), vote_type(0)
        if prunes:
            # As many of the labels with the most votes as may be: from a 16th of the most on,
            # from a quarter, those with the most, or none.
            least, fewer, step = vote_type(most + 1), most, np.int32(0)
            many, some = max(lower_bound // 16, vote_type(1)), max(lower_bound // 4, vote_type(1))
            while step < 2:
                both_counts = np.int32(0)
                bits = claimed(shared.claims)
                while bits != 0:
                    total = votes_in(shared.table, slot_of(bits))
                    if total >= many:
                        both_counts += np.int32(1)
                        if total >= some:
                            both_counts += LEVEL
                    bits &= np.uint32(bits - np.uint32(1))
                counted, _ = sum_and_max_of_block(
                    vote_type(both_counts), vote_type(0), shared.reduction
                )
                if (counted & (LEVEL - 1)) <= HANDED_OVER:
                    least, step = vote_type(many), np.int32(2)
                elif counted // LEVEL <= HANDED_OVER:
                    least, step = vote_type(some), np.int32(2)
                many, some = fewer, fewer
                step += np.int32(1)
            upper_bound = max(min(vote_type(least - 1), most), sketch_most)
        bits = claimed(shared.claims)
        release(shared.claims, bits)
        while bits != 0:
            slot = slot_of(bits)
            label, total = shared.table.labels[slot], votes_in(shared.table, slot)
            clear(shared.table, slot)
            if not prunes or total >= least:
                excess = vote_type(total - upper_bound)
                add_to_hub(tables, hub, base, hub_slots, label, total, excess)
            bits &= np.uint32(bits - np.uint32(1))
        if thread == 0:
            if (has_own or prunes) and current >= 0:
                add_to_hub(tables, hub, base, hub_slots, current, own, vote_type(own - upper_bound))
            pieces.upper_bound[np.uint64(piece)] = upper_bound
            pieces.score[np.uint64(piece)] = score_type(left_out)

    @cuda.jit(device=True)
    def block_row(v, start, length, hub, piece, share, shares, base, hub_slots, current, tables,
                  pieces, rows, lists, state, shared, numbers):  # fmt: skip
        """Count a row, or one share of it; return the best, or hand over a hub's piece.

        Shares are interleaved: neighbours with similar numbers often say the same, and the bounds
        are tight only if all pieces of a hub hear about the same.
        """
        thread = np.int32(cuda.threadIdx.x)
        all_distinct = shared.sweep[SWEEP.all_distinct] != 0
        slots = np.int32(2 * THREADS)
        while slots * shares < 2 * length and slots < most_slots:
            slots = np.int32(2 * slots)
        # A share is at most one stretch of THREADS entries longer than the others.
        fits_all = length <= (slots * 3 // 4 - THREADS) * shares or length <= slots // 2
        # A piece holds back what finds no slot, and its upper bound must be tight.
        probes = slots if fits_all else np.int32(BLOCK_PROBES if hub < 0 else PROBES)
        best, score, tied = index_type(-1), score_type(0), False
        own, lower_bound = vote_type(0), vote_type(0)
        has_own, sketched = False, False
        part, parts, again = np.int32(0), np.int32(1), False
        # How many votes a label may have that are not counted: its own.
        some_left_out = shared.sweep[SWEEP.leaves_out] != 0
        leaves_out = growing and (prunes or hub < 0) and some_left_out and not all_distinct
        left_out = vote_type(0)
        if unit and leaves_out:
            left_out = vote_type(1)
        while part < parts:
            left_out, own, has_own, best, score, tied, most, spills = count(
                v, start, length, hub, share, shares, slots, probes, part, parts, again, sketched,
                lower_bound, all_distinct, leaves_out, left_out, own, has_own, best, score, tied,
                current, rows, lists, state, shared, numbers,
            )  # fmt: skip
            spills = cuda.syncthreads_or(np.int32(spills)) != 0
            sketch_most = vote_type(0)
            if not again:
                if unit and thread % LANES != 0:
                    own = vote_type(0)  # all lanes of a warp have the same count
                has_own = cuda.syncthreads_or(np.int32(has_own)) != 0
                if growing and not narrow:
                    bits = claimed(shared.claims)
                    while bits != 0:
                        most = max(most, votes_in(shared.table, slot_of(bits)))
                        bits &= np.uint32(bits - np.uint32(1))
                if growing and not unit:
                    _, left_out = sum_and_max_of_block(vote_type(0), left_out, shared.reduction)
                own, most = sum_and_max_of_block(own, most, shared.reduction)
                lower_bound = max(most, own)
                if not unit:
                    lower_bound = max(lower_bound, left_out)
                sketched = growing and spills
                if sketched:
                    for i in range(thread, SKETCH_COUNTERS, THREADS):
                        sketch_most = max(sketch_most, shared.sketch[i])
                    _, sketch_most = sum_and_max_of_block(
                        vote_type(0), sketch_most, shared.reduction
                    )
                if unit and leaves_out and lower_bound < 2 and hub < 0:
                    # No label has two votes without its own: those decide, and are counted too.
                    left_out, leaves_out = vote_type(0), False
                    own, has_own, sketched = vote_type(0), False, False
                    bits = claimed(shared.claims)
                    release(shared.claims, bits)
                    while bits != 0:
                        clear(shared.table, slot_of(bits))
                        bits &= np.uint32(bits - np.uint32(1))
                    clear_sketch(shared)
                    continue
            if hub >= 0:
                break
            anew = spills and (again or not growing or sketch_most + left_out >= lower_bound)
            if not all_distinct:
                only_one = False
                if prunes and leaves_out and not again and not anew and most > max(own, left_out):
                    # Who alone can be the best has won, and its own vote is not looked up.
                    only_one = one_is_possible(left_out, lower_bound, shared)
                best, score, tied = score_table(
                    v, start, length, leaves_out and not only_one, left_out, lower_bound,
                    best, score, tied, current, rows, state, shared, numbers,
                )  # fmt: skip
            if anew:
                # Few labels pass the sketch, and one part has room for them, if a slot is looked
                # for in earnest: one label without makes all parts be read anew. Where there is no
                # sketch, a table and a half is read in two parts; how much of more is needed is not
                # known.
                probes = np.int32(PROBES)
                if again or not sketched:
                    parts = np.int32((2 if length < 2 * slots else 4) * parts)
                part, again = np.int32(0), True
            else:
                part += np.int32(1)
                if not again:
                    break
        if hub < 0 or all_distinct:
            if has_own and thread == 0:
                best, score, tied = combine(
                    best, score, tied, current, score_of(v, current, own, state, numbers), False,
                    current, shared.sweep, numbers,
                )  # fmt: skip
            best, score, tied = best_of_block(best, score, tied, current, shared, numbers)
        else:
            hand_over(
                hub, piece, base, hub_slots, most, sketch_most, lower_bound, left_out, own,
                has_own, current, tables, pieces, shared,
            )  # fmt: skip
        if sketched:
            clear_sketch(shared)
        return best, score, tied

    return block_row
