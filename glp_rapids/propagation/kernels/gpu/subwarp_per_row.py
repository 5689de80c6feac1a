"""Rows that half a warp or a warp serves.

All lanes of a warp call these together. A lane stands for one vertex: its row's start, its degree
(0: not to be evaluated) and its current label; the outcome comes back to that lane.

Loads come first and without branches, several of them before the first is used: the time of a
sweep is the time of its loads, and a warp that waits for one at a time never fills the memory.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from glp_rapids.jit.cuda import cuda
from glp_rapids.propagation.kernels.gpu.votes import ALL, DISTINCT, LANES, ONCE, PROBES, STEP


def build_lanes(shared: SimpleNamespace) -> Any:
    """Make the path of 16 or 32 lanes a row (GLP, section 4.2), a neighbour a lane.

    A lane learns who says the same by one instruction. Where more than half of a row says the
    current label, one ballot is enough; most rows do after a few sweeps.
    """
    index_type, vote_type, score_type = shared.index_type, shared.vote_type, shared.score_type
    heard_from, scored = shared.heard_from, shared.scored
    best_of_lanes, unit, online = shared.best_of_lanes, shared.unit, shared.online
    sum_of_alike = shared.sum_of_alike

    @cuda.jit(device=True)
    def row_of_lanes(v, length, label, votes, held, own, lead, width, state, here, numbers):
        """Evaluate one row a group of lanes."""
        if unit and online:
            same = cuda.ballot_sync(ALL, label >= 0 and label == held)
            group = np.uint32((np.uint64(1) << np.uint64(width)) - np.uint64(1))
            count = np.int32(cuda.popc((same >> np.uint32(lead)) & group))
            if cuda.all_sync(ALL, 2 * count > length or length == 0):
                return held, score_type(count), False
        group = np.uint32((np.uint64(1) << np.uint64(width)) - np.uint64(1))
        alike = (np.uint32(cuda.match_any_sync(ALL, label)) >> np.uint32(lead)) & group
        repeated = np.int32(cuda.ffs(np.uint32(alike)) - 1) != own
        if unit:
            total = vote_type(cuda.popc(np.uint32(alike)))
        else:
            if label < 0:
                alike = np.uint32(0)  # nobody waits for the sum of what is not there
            total = sum_of_alike(np.uint32(alike), own, lead, votes)
        score = score_type(0)
        if repeated:
            label = index_type(-1)
        elif label >= 0:
            score = scored(v, label, total, state, numbers)
        cuda.syncwarp()
        return best_of_lanes(label, score, False, width, held, here)

    @cuda.jit(device=True)
    def lanes(v, start, degree, current, lane, width, rows, state, here, numbers):
        own = np.int32(lane & (width - 1))
        lead = np.int32(lane - own)
        together = np.int32(1 if width == LANES else 2)  # a division would be a call
        mine = np.int32(0 if width == LANES else lane >> 4)
        distinct = here.now[DISTINCT] != 0
        best, score, tied = index_type(-1), score_type(0), False
        wanted = cuda.ballot_sync(ALL, degree > 0)
        labels = cuda.local.array(STEP, index_type)
        votes = cuda.local.array(STEP, vote_type)
        base = np.int32(0)
        while base < LANES:
            rows_here = np.uint32((np.uint64(1) << np.uint64(STEP * together)) - np.uint64(1))
            if (wanted >> np.uint32(base)) & rows_here != 0:
                for k in range(STEP):
                    source = np.int32(base + k * together + mine)
                    j = cuda.shfl_sync(ALL, start, source)
                    if own < cuda.shfl_sync(ALL, degree, source):
                        j += own
                    labels[k] = rows.indices[np.uint64(j)]
                for k in range(STEP):
                    source = np.int32(base + k * together + mine)
                    j = cuda.shfl_sync(ALL, start, source) + own
                    at = cuda.shfl_sync(ALL, v, source)
                    if own < cuda.shfl_sync(ALL, degree, source):
                        labels[k], votes[k] = heard_from(
                            at, labels[k], j, rows, state, distinct, numbers
                        )
                    else:
                        labels[k], votes[k] = index_type(-1), vote_type(0)
                for k in range(STEP):
                    first = np.int32(base + k * together)
                    source = np.int32(first + mine)
                    winner, most, even = row_of_lanes(
                        cuda.shfl_sync(ALL, v, source), cuda.shfl_sync(ALL, degree, source),
                        labels[0], votes[0], cuda.shfl_sync(ALL, current, source), own, lead,
                        width, state, here, numbers,
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

    return lanes


def build_short(shared: SimpleNamespace, read_short: Any) -> Any:
    """Make the path of a warp a row of up to 128 entries, four a lane, in a slice of the table.

    There are at least as many slots as entries. Whoever takes a slot for a label scores that label,
    so nobody looks through the table.
    """
    index_type, vote_type, score_type = shared.index_type, shared.vote_type, shared.score_type
    heard_from, scored, combine = shared.heard_from, shared.scored, shared.combine
    best_of_lanes, sum_of_lanes = shared.best_of_lanes, shared.sum_of_lanes
    add_here, votes_at, wipe = shared.add_here, shared.votes_at, shared.wipe
    unit, online, slots = shared.unit, shared.online, np.int32(shared.slice)

    @cuda.jit(device=True)
    def short(v, start, degree, head, current, lane, base, rows, stream, state, here, numbers):
        labels = cuda.local.array(STEP, index_type)
        votes = cuda.local.array(STEP, vote_type)
        places = cuda.local.array(STEP, np.int32)
        distinct = here.now[DISTINCT] != 0
        last = degree - 1
        read_short(labels, v, start, degree, head, rows, stream, here)
        for k in range(STEP):
            if lane + LANES * k <= last:  # a user's function sees real entries, each once
                labels[k], votes[k] = heard_from(
                    v, labels[k], start + lane + LANES * k, rows, state, distinct, numbers
                )
            else:
                labels[k], votes[k] = index_type(-1), vote_type(0)
        best, score, tied = index_type(-1), score_type(0), False
        own, own_heard = vote_type(0), False
        if unit and online:
            count = np.int32(0)
            for k in range(STEP):
                mine = labels[k] >= 0 and labels[k] == current
                count += np.int32(cuda.popc(cuda.ballot_sync(ALL, mine)))
            if 2 * count > degree:
                return current, score_type(count), False
        k = np.int32(0)
        while k < STEP:
            label, place = labels[0], np.int32(-1)
            if label >= 0:
                if online and label == current:
                    own, own_heard = vote_type(own + votes[0]), True
                elif online and distinct:
                    best, score, tied = combine(
                        best, score, tied, label, score_type(votes[0]), False, current, here
                    )
                else:
                    place, claimed, _ = add_here(here, base, slots - 1, slots, label, votes[0])
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
                    scored(v, labels[0], votes_at(here, place), state, numbers), False, current,
                    here,
                )  # fmt: skip
                wipe(here, place)
            for i in range(1, STEP):
                labels[i - 1], places[i - 1] = labels[i], places[i]
            k += np.int32(1)
        cuda.syncwarp()
        best, score, tied = best_of_lanes(best, score, tied, LANES, current, here)
        if online and cuda.any_sync(ALL, own_heard):
            best, score, tied = combine(
                best, score, tied, current, score_type(sum_of_lanes(own)), False, current, here
            )
        return best, score, tied

    return short


def build_warp(shared: SimpleNamespace, read_names: Any, exact: bool) -> Any:
    """Make the path of a warp a row, with a slice of the block's table in shared memory.

    ``exact``: the score itself is wanted, not only who has the highest. The table is clean before
    and after. A row with more labels than fit is given back as failed.
    """
    index_type, vote_type, score_type = shared.index_type, shared.vote_type, shared.score_type
    heard_from, scored, combine = shared.heard_from, shared.scored, shared.combine
    best_of_lanes, add_here, wipe = shared.best_of_lanes, shared.add_here, shared.wipe
    sum_of_lanes, max_of_lanes = shared.sum_of_lanes, shared.max_of_lanes
    its_own_vote, votes_at = shared.its_own_vote, shared.votes_at
    unit, online, most_slots = shared.unit, shared.online, shared.slice

    @cuda.jit(device=True)
    def warp(v, start, degree, current, lane, base, rows, stream, state, here, numbers):
        labels = cuda.local.array(STEP, index_type)
        names = cuda.local.array(STEP, index_type)
        amounts = cuda.local.array(STEP, vote_type)
        distinct = here.now[DISTINCT] != 0
        slots = np.int32(64)
        while slots < 2 * degree and slots < most_slots:
            slots = np.int32(2 * slots)
        probes = slots if 2 * degree <= slots else np.int32(PROBES)
        # A name heard from its bearer only is left out of long rows, as in `auto_wide`; so many
        # votes it has at most.
        named = online and here.now[ONCE] != 0 and not distinct
        unheard = vote_type(0)
        if unit and named:
            unheard = vote_type(1)
        best, score, tied = index_type(-1), score_type(0), False
        own, most = vote_type(0), vote_type(0)
        own_heard, inserted, failed = False, False, False
        last = degree - 1
        offset = np.int32(lane)
        while offset - lane < degree:
            begin = np.int64(offset - lane)
            read_names(names, v, start, degree, offset, LANES, begin, rows, stream, here)
            for k in range(STEP):
                j = start + min(offset + LANES * k, last)
                labels[k], amounts[k] = heard_from(v, names[k], j, rows, state, distinct, numbers)
            for k in range(STEP):
                if offset + LANES * k > last:
                    labels[k] = index_type(-1)
                if online:
                    mine = labels[k] >= 0 and labels[k] == current
                    if unit:
                        count = cuda.popc(cuda.ballot_sync(ALL, mine))
                        own = vote_type(own + vote_type(count))
                    elif mine:
                        own = vote_type(own + amounts[k])
                        own_heard = True
                    if mine:
                        labels[k] = index_type(-1)
            k = np.int32(0)
            while k < STEP:
                label = labels[0]
                if label >= 0:
                    if online and (distinct or (named and label == names[0])):
                        # With votes of one nobody asks for these labels until none has two.
                        if distinct or not unit:
                            unheard = max(unheard, amounts[0])
                            best, score, tied = combine(
                                best, score, tied, label, score_type(amounts[0]), False, current,
                                here,
                            )  # fmt: skip
                    elif not failed:
                        place, _, total = add_here(here, base, slots - 1, probes, label, amounts[0])
                        inserted = True
                        failed = place < 0
                        most = max(most, total)
                for i in range(1, STEP):
                    labels[i - 1], amounts[i - 1] = labels[i], amounts[i]
                    names[i - 1] = names[i]
                k += np.int32(1)
            offset += np.int32(LANES * STEP)
            if unit and named and offset - lane >= degree:
                cuda.syncwarp()
                most = max_of_lanes(most)
                if max(most, own) < 2 and not cuda.any_sync(ALL, failed):
                    # No label has two votes without its own: those decide, and are counted too.
                    # What is in the table counts again, so it is wiped first.
                    slot = np.int32(lane)
                    while slot < slots:
                        wipe(here, np.uint32(base + slot))
                        slot += np.int32(LANES)
                    cuda.syncwarp()
                    unheard, own, most, named = vote_type(0), vote_type(0), vote_type(0), False
                    offset = np.int32(lane)
        cuda.syncwarp()
        failed = cuda.any_sync(ALL, failed)
        if online and not unit:
            own = sum_of_lanes(own)
        if cuda.any_sync(ALL, inserted):
            alone = False
            if online:
                if not unit:
                    unheard = max_of_lanes(unheard)
                    slot = np.int32(lane)
                    while slot < slots:
                        most = max(most, votes_at(here, np.uint32(base + slot)))
                        slot += np.int32(LANES)
                of_table = max_of_lanes(most)
                most = max(of_table, own)
                if not unit:
                    most = max(most, unheard)
                if named and not exact and of_table > max(own, unheard):
                    # Who alone can be the best has won, and its own vote is not looked up.
                    possible = np.int32(0)
                    slot = np.int32(lane)
                    while slot < slots:
                        place = np.uint32(base + slot)
                        if here.keys[place] >= 0 and votes_at(here, place) + unheard >= most:
                            possible += np.int32(1)
                        slot += np.int32(LANES)
                    alone = sum_of_lanes(possible) == 1
            slot = np.int32(lane)
            while slot < slots:
                place = np.uint32(base + slot)
                label = here.keys[place]
                if label >= 0:
                    total = votes_at(here, place)
                    if not online or total + unheard >= most:
                        if online and named and not alone:
                            total = vote_type(
                                total + its_own_vote(v, label, start, degree, rows, state, numbers)
                            )
                        best, score, tied = combine(
                            best, score, tied, label, scored(v, label, total, state, numbers),
                            False, current, here,
                        )  # fmt: skip
                    wipe(here, place)
                slot += np.int32(LANES)
            cuda.syncwarp()
        if failed:
            return index_type(-1), score_type(0), False, True
        best, score, tied = best_of_lanes(best, score, tied, LANES, current, here)
        if online:
            own_heard = cuda.any_sync(ALL, own_heard) if not unit else own > 0
            if own_heard:
                best, score, tied = combine(
                    best, score, tied, current, score_type(own), False, current, here
                )
        return best, score, tied, False

    return warp
