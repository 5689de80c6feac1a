"""Long rows: a block a row, or many blocks a hub.

Votes go into a table in shared memory. What the current label gets is counted by ballots and never
enters it: once communities have formed, that is most of it, and the rest has few labels.

A label for which there is no room is counted in a sketch instead, a few counters that labels share
by hash, so a counter is a bound (GLP, section 4.1, a count-min sketch of one row). If no counter
reaches the best label of the table, that one has won. Otherwise the row is read again, in parts
of the labels by another hash, and only labels whose counter reaches the best so far are counted.
A label is in the table from its first vote or never, so what the table holds is always exact.

In the first sweeps most labels in a long row are heard once, from the vertex that bears the name.
Such votes stay out of the table: the best of them is a candidate, and for the few labels of the
table that such a vote could help to win it is looked up: a row holds a neighbour once, so whether
it holds the name itself is a binary search. With votes of one all of them would be the best, so
they are not even compared until it is known that no label has two.

A hub is cut into pieces, whose labels `auto_hub` brings together. Tables are clean before and
after: who used a slot wipes it.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from glp_rapids.jit.cuda import cuda
from glp_rapids.propagation.kernels.gpu.votes import (
    ALL,
    COUNTERS,
    DISTINCT,
    HANDED_OVER,
    LANES,
    ONCE,
    PROBES,
    SHORT,
    STEP,
    THREADS,
)

LEVEL = np.int32(1 << 16)  # two counts in one word


def build(shared: SimpleNamespace, block: SimpleNamespace, read_names: Any, bounded: bool) -> Any:
    """Make the path of a block a row or a piece of one; all threads of a block call it together.

    ``bounded``: frequent labels and a bound for the others are enough of a piece.
    """
    index_type, vote_type, score_type = shared.index_type, shared.vote_type, shared.score_type
    heard_from, scored, combine = shared.heard_from, shared.scored, shared.combine
    add_here, wipe, votes_at = shared.add_here, shared.wipe, shared.votes_at
    its_own_vote, add_there = shared.its_own_vote, block.add_there
    best_of_block, sum_and_max_of_block = block.best_of_block, block.sum_and_max_of_block
    unit, online, table = shared.unit, shared.online, shared.slots

    @cuda.jit(device=True)
    def wide(v, start, length, hub, piece, share, shares, base, room, here, current, tables, pieces,
             rows, stream, state, numbers):  # fmt: skip
        """Count a row, or one share of it; return the best, or hand over a hub's piece.

        Shares are interleaved: neighbours with similar numbers often say the same, and the bounds
        are tight only if all pieces of a hub hear about the same.
        """
        labels = cuda.local.array(STEP, index_type)
        names = cuda.local.array(STEP, index_type)
        amounts = cuda.local.array(STEP, vote_type)
        thread = np.int32(cuda.threadIdx.x)
        distinct = here.now[DISTINCT] != 0
        stride = shares * THREADS
        # Where a warp reads part by part, two of them a stretch of threads.
        of_stretch, of_half = np.int64(thread // 64), np.int64(thread // 32 % 2 * SHORT)
        slots = np.int32(2 * THREADS)
        while slots * shares < 2 * length and slots < table:
            slots = np.int32(2 * slots)
        # A share is at most one stretch of THREADS entries longer than the others.
        fits_all = length <= (slots * 3 // 4 - THREADS) * shares or length <= slots // 2
        probes = slots if fits_all else np.int32(PROBES)
        best, score, tied = index_type(-1), score_type(0), False
        own, floor = vote_type(0), vote_type(0)
        own_heard, sketched = False, False
        part, parts = np.int32(0), np.int32(1)
        # How many votes a label may have that are not counted: its own.
        named = online and (bounded or hub < 0) and here.now[ONCE] != 0 and not distinct
        unheard = vote_type(0)
        if unit and named:
            unheard = vote_type(1)
        while part < parts:
            spills = False
            most = vote_type(0)
            offset = np.int64(thread) + share * THREADS
            while offset - thread < length:  # the same for all threads
                first, further = read_names(
                    names, v, start, length, offset, stride,
                    offset - thread + stride * of_stretch + of_half, rows, stream, here,
                )  # fmt: skip
                for k in range(STEP):
                    j = start + min(first + further * k, length - 1)
                    labels[k], amounts[k] = heard_from(
                        v, names[k], j, rows, state, distinct, numbers
                    )
                for k in range(STEP):
                    if first + further * k >= length:
                        labels[k] = index_type(-1)
                    if online:
                        mine = labels[k] >= 0 and labels[k] == current
                        if mine:
                            labels[k] = index_type(-1)
                        if parts > 1:
                            mine = False  # it was counted the first time
                        if unit:
                            count = cuda.popc(cuda.ballot_sync(ALL, mine))
                            own = vote_type(own + vote_type(count))
                        elif mine:
                            own = vote_type(own + amounts[k])
                        own_heard = own_heard or mine
                k = np.int32(0)
                while k < STEP:
                    label = labels[0]
                    if online and label >= 0 and (distinct or (named and label == names[0])):
                        if not unit and parts == 1:
                            unheard = max(unheard, amounts[0])
                        if distinct or (not unit and parts == 1 and hub < 0):
                            best, score, tied = combine(
                                best, score, tied, label, score_type(amounts[0]), False, current,
                                here,
                            )  # fmt: skip
                        label = index_type(-1)
                    counter = np.uint32(
                        np.uint32(np.uint32(label) * np.uint32(0xC2B2AE35)) >> np.uint32(12)
                    ) & np.uint32(COUNTERS - 1)
                    if parts > 1 and label >= 0:
                        other = np.uint32(np.uint32(label) * np.uint32(0x85EBCA6B)) >> np.uint32(7)
                        if (other & np.uint32(parts - 1)) != part or (
                            sketched and here.sketch[counter] + unheard < floor
                        ):
                            label = index_type(-1)
                    if label >= 0:
                        place, _, total = add_here(here, 0, slots - 1, probes, label, amounts[0])
                        most = max(most, total)
                        if place < 0:
                            spills = True
                            if online and parts == 1:
                                cuda.atomic.add(here.sketch, counter, amounts[0])
                    for i in range(1, STEP):
                        labels[i - 1], amounts[i - 1] = labels[i], amounts[i]
                        names[i - 1] = names[i]
                    k += np.int32(1)
                offset += STEP * stride
            spills = cuda.syncthreads_or(np.int32(spills)) != 0
            highest = vote_type(0)
            if online and parts == 1:
                if unit and thread % LANES != 0:
                    own = vote_type(0)  # all lanes of a warp have the same count
                own_heard = cuda.syncthreads_or(np.int32(own_heard)) != 0
                if not unit:
                    for slot in range(thread, slots, THREADS):
                        most = max(most, votes_at(here, slot))
                    _, unheard = sum_and_max_of_block(vote_type(0), unheard, here)
                own, most = sum_and_max_of_block(own, most, here)
                floor = max(most, own)
                if not unit:
                    floor = max(floor, unheard)
                sketched = spills
                if spills:
                    for i in range(thread, COUNTERS, THREADS):
                        highest = max(highest, here.sketch[i])
                    _, highest = sum_and_max_of_block(vote_type(0), highest, here)
                if unit and named and floor < 2 and hub < 0:
                    # No label has two votes without its own: those decide, and are counted too.
                    unheard, named = vote_type(0), False
                    own, own_heard, sketched = vote_type(0), False, False
                    for slot in range(thread, slots, THREADS):
                        wipe(here, slot)
                    for i in range(thread, COUNTERS, THREADS):
                        here.sketch[i] = vote_type(0)
                    cuda.syncthreads()
                    continue
            if hub >= 0:
                break
            if not distinct:
                alone = False
                again = spills and (parts > 1 or not online or highest + unheard >= floor)
                if bounded and named and parts == 1 and not again and most > max(own, unheard):
                    # Who alone can be the best has won, and its own vote is not looked up.
                    possible = vote_type(0)
                    for slot in range(thread, slots, THREADS):
                        if here.keys[slot] >= 0 and votes_at(here, slot) + unheard >= floor:
                            possible += vote_type(1)
                    possible, _ = sum_and_max_of_block(possible, vote_type(0), here)
                    alone = possible == 1
                for slot in range(thread, slots, THREADS):
                    label, total = here.keys[slot], votes_at(here, slot)
                    if label >= 0:
                        wipe(here, slot)
                        if not online or total + unheard >= floor:
                            if online and named and not alone:
                                total = vote_type(
                                    total
                                    + its_own_vote(v, label, start, length, rows, state, numbers)
                                )
                            best, score, tied = combine(
                                best, score, tied, label, scored(v, label, total, state, numbers),
                                False, current, here,
                            )  # fmt: skip
                cuda.syncthreads()
            if spills and (parts > 1 or not online or highest + unheard >= floor):
                # A table and a half is read in two parts; how much of more is needed is not known.
                part, parts = np.int32(0), np.int32((2 if length < 2 * slots else 4) * parts)
            else:
                part += np.int32(1)
                if parts == 1:
                    break
        if hub < 0 or distinct:
            if own_heard and thread == 0:
                best, score, tied = combine(
                    best, score, tied, current, score_type(own), False, current, here
                )
            best, score, tied = best_of_block(best, score, tied, here, current)
        else:
            least, bound = vote_type(1), vote_type(0)
            if bounded:
                # As many of the labels with the most votes as may be: from a 16th of the most on,
                # from a quarter, those with the most, or none.
                least, fewer, step = vote_type(most + 1), most, np.int32(0)
                many, some = max(floor // 16, vote_type(1)), max(floor // 4, vote_type(1))
                while step < 2:
                    packed = np.int32(0)
                    for slot in range(thread, slots, THREADS):
                        if here.keys[slot] >= 0 and votes_at(here, slot) >= many:
                            packed += np.int32(1)
                            if votes_at(here, slot) >= some:
                                packed += LEVEL
                    counted, _ = sum_and_max_of_block(vote_type(packed), vote_type(0), here)
                    if (counted & (LEVEL - 1)) <= HANDED_OVER:
                        least, step = vote_type(many), np.int32(2)
                    elif counted // LEVEL <= HANDED_OVER:
                        least, step = vote_type(some), np.int32(2)
                    many, some = fewer, fewer
                    step += np.int32(1)
                bound = max(min(vote_type(least - 1), most), highest)
            for slot in range(thread, slots, THREADS):
                label, total = here.keys[slot], votes_at(here, slot)
                if label >= 0:
                    wipe(here, slot)
                    if not bounded or total >= least:
                        add_there(tables, hub, base, room, label, total, vote_type(total - bound))
            if thread == 0:
                if (own_heard or bounded) and current >= 0:
                    add_there(tables, hub, base, room, current, own, vote_type(own - bound))
                pieces.bound[np.uint64(piece)] = bound
                pieces.heard[np.uint64(piece)] = score_type(unheard)
        if sketched:
            for i in range(thread, COUNTERS, THREADS):
                here.sketch[i] = vote_type(0)
            cuda.syncthreads()
        return best, score, tied

    return wide
