"""Long rows: a block a row, or many blocks a hub.

Votes go into a table in shared memory; a label for which there is no room goes into a table in
global memory. What the current label gets is counted by ballots and never enters a table: once
communities have formed, that is most of it, and the rest has few labels.

A block that has a row alone keeps its overflow in a table of its own. A hub is cut into pieces;
every block adds what it counted to the hub's table, a label at a time, and the block that comes
last takes the best of all. Tables are clean before and after: who used a slot wipes it.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from glp_rapids.propagation.kernels.auto_common import ALL, LANES, PROBES, THREADS, WARPS
from glp_rapids.propagation.kernels.cuda_target import cuda

STEP = 4


def build(shared: SimpleNamespace) -> Any:
    """Make the path of a block a row or a piece of one; all threads of a block call it together.

    Shared memory: the block's table (32 KB) and 200 bytes.
    """
    index_type, vote_type, score_type = shared.index_type, shared.vote_type, shared.score_type
    heard_from, scored, combine = shared.heard_from, shared.scored, shared.combine
    best_of_lanes, add_here = shared.best_of_lanes, shared.add_here
    sum_of_lanes, max_of_lanes = shared.sum_of_lanes, shared.max_of_lanes
    unit, online, table = shared.unit, shared.online, shared.slots

    @cuda.jit(device=True)
    def add_there(tables, hub, base, slots, label, amount):
        """Add votes in a table in global memory; return the sum."""
        mask = slots - 1
        slot = np.int64((np.uint64(label) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(24)) & mask
        # As many slots as the row is long: there is room for every label.
        for _ in range(slots):
            place = np.uint64(base + slot)
            found = cuda.atomic.cas(tables.keys, place, index_type(-1), label)
            if found == -1 and hub >= 0:
                order = cuda.atomic.add(tables.filled, np.uint64(hub), np.int32(1))
                tables.touched[np.uint64(base + order)] = np.int32(slot)
            if found == -1 or found == label:
                return vote_type(cuda.atomic.add(tables.votes, place, amount) + amount)
            slot = (slot + 1) & mask
        return vote_type(0)

    @cuda.jit(device=True)
    def best_of_block(label, score, tied, here, current, rule):
        """Combine one candidate a thread into one; every thread gets it."""
        label, score, tied = best_of_lanes(label, score, tied, LANES, current, rule)
        thread = cuda.threadIdx.x
        if thread % LANES == 0:
            here.labels[thread // LANES] = label
            here.scores[thread // LANES] = score
            here.ties[thread // LANES] = tied
        cuda.syncthreads()
        label, score, tied = here.labels[0], here.scores[0], here.ties[0] != 0
        for i in range(1, WARPS):
            label, score, tied = combine(
                label, score, tied, here.labels[i], here.scores[i], here.ties[i] != 0, current, rule
            )
        cuda.syncthreads()
        return label, score, tied

    @cuda.jit(device=True)
    def wide(v, start, length, hub, base, room, here, current, tables, rows, state, rule,
             numbers):  # fmt: skip
        """Count ``length`` entries from ``start``; return the best, of a whole row if no hub."""
        labels = cuda.local.array(STEP, index_type)
        amounts = cuda.local.array(STEP, vote_type)
        thread = np.int32(cuda.threadIdx.x)
        slots = np.int32(2 * THREADS)
        while slots < 2 * length and slots < table:
            slots = np.int32(2 * slots)
        probes = slots if length <= slots * 3 // 4 else np.int32(PROBES)
        best, score, tied = index_type(-1), score_type(0), False
        own, most = vote_type(0), vote_type(0)
        own_heard, spills = False, False
        offset = np.int64(thread)
        while offset - thread < length:  # the same for all threads
            for k in range(STEP):
                j = start + min(offset + THREADS * k, length - 1)
                labels[k] = rows.indices[np.uint64(j)]
            for k in range(STEP):
                j = start + min(offset + THREADS * k, length - 1)
                labels[k], amounts[k] = heard_from(v, labels[k], j, rows, state, rule, numbers)
            for k in range(STEP):
                if offset + THREADS * k >= length:
                    labels[k] = index_type(-1)
                if online:
                    mine = labels[k] >= 0 and labels[k] == current
                    if unit:
                        count = cuda.popc(cuda.ballot_sync(ALL, mine))
                        own = vote_type(own + vote_type(count))
                    elif mine:
                        own = vote_type(own + amounts[k])
                    if mine:
                        own_heard = True
                        labels[k] = index_type(-1)
            k = np.int32(0)
            while k < STEP:
                label = labels[0]
                if label >= 0:
                    if rule.distinct:
                        best, score, tied = combine(
                            best, score, tied, label, score_type(1), False, current, rule
                        )
                    else:
                        fits, total = add_here(
                            here.keys, here.votes, 0, slots - 1, probes, label, amounts[0]
                        )
                        if not fits:
                            spills = True
                            total = add_there(tables, hub, base, room, label, amounts[0])
                        most = max(most, total)
                for i in range(1, STEP):
                    labels[i - 1], amounts[i - 1] = labels[i], amounts[i]
                k += np.int32(1)
            offset += STEP * THREADS
        if online:
            if not unit:
                own = sum_of_lanes(own)
            most = max_of_lanes(most)
            if thread % LANES == 0:
                here.owns[thread // LANES] = own
                here.mosts[thread // LANES] = most
        own_heard = cuda.syncthreads_or(np.int32(own_heard)) != 0
        spills = cuda.syncthreads_or(np.int32(spills)) != 0
        if online:
            own, most = vote_type(0), vote_type(0)
            for i in range(WARPS):
                own = vote_type(own + here.owns[i])
                most = max(most, here.mosts[i])
            most = max(most, own)
        merging = hub >= 0 and not rule.distinct
        slot = np.int64(thread)
        end = np.int64(slots)
        if rule.distinct:
            end = 0
        elif spills and hub < 0:
            end += room
            cuda.threadfence()  # what the others of this block added lies beyond its cache
            cuda.syncthreads()
        # The own label stands for one slot more, with the first thread.
        extra = own_heard and thread == 0
        while slot < end or extra:
            label, total = current, own
            if slot >= end:
                extra = False
            elif slot < slots:
                label, total = here.keys[np.uint32(slot)], here.votes[np.uint32(slot)]
                if label >= 0:
                    here.keys[np.uint32(slot)] = index_type(-1)
                    here.votes[np.uint32(slot)] = vote_type(0)
            else:
                place = np.uint64(base + slot - slots)
                label, total = tables.keys[place], tables.votes[place]
                if label >= 0:
                    tables.keys[place] = index_type(-1)
                    tables.votes[place] = vote_type(0)
            if label >= 0:
                if merging:
                    total = add_there(tables, hub, base, room, label, total)
                if not online or merging or rule.distinct or total == most:
                    best, score, tied = combine(
                        best, score, tied, label, scored(v, label, total, state, numbers), False,
                        current, rule,
                    )
            slot += THREADS
        if spills and hub < 0:
            cuda.threadfence()
        return best_of_block(best, score, tied, here, current, rule)

    @cuda.jit(device=True)
    def last_of_hub(v, hub, piece, best, score, tied, here, current, tables, hubs, pieces, state,
                    rule, numbers):  # fmt: skip
        """Leave a piece's best behind; the last block takes the best of all and wipes the table.

        Returns whether this block came last, and the best.
        """
        thread = np.int64(cuda.threadIdx.x)
        first, last = hubs.first_piece[hub], hubs.first_piece[hub + 1]
        if thread == 0:
            pieces.label[piece] = best
            pieces.score[piece] = score
            pieces.tied[piece] = tied
        cuda.threadfence()
        cuda.syncthreads()
        if thread == 0:
            here.arrived[0] = cuda.atomic.add(pieces.arrived, hub, np.int32(1))
        cuda.syncthreads()
        before = here.arrived[0]
        cuda.syncthreads()
        if before != last - first - 1:
            return False, best, score, tied
        cuda.threadfence()
        cuda.syncthreads()
        base, filled = hubs.base[hub], tables.filled[hub]
        best, score, tied = index_type(-1), score_type(0), False
        if online:
            for other in range(first + thread, last, THREADS):
                best, score, tied = combine(
                    best, score, tied, pieces.label[other], pieces.score[other],
                    pieces.tied[other] != 0, current, rule,
                )
        for i in range(thread, filled, THREADS):
            place = np.uint64(base + tables.touched[np.uint64(base + i)])
            if not online:
                label = tables.keys[place]
                best, score, tied = combine(
                    best, score, tied, label,
                    scored(v, label, tables.votes[place], state, numbers), False, current, rule,
                )
            tables.keys[place] = index_type(-1)
            tables.votes[place] = vote_type(0)
        best, score, tied = best_of_block(best, score, tied, here, current, rule)
        if thread == 0:
            pieces.arrived[hub] = 0
            tables.filled[hub] = 0
        return True, best, score, tied

    return SimpleNamespace(wide=wide, last_of_hub=last_of_hub)
