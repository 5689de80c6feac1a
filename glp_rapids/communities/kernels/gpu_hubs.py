"""The rows of hubs: blocks share their pieces, in steps with grid barriers between them.

Pieces are added up in a block's shared memory, and the sums in a table of the hub's own in global
memory; blocks look at pieces of what is in there; and one takes the best of what they found.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from glp_rapids.communities.kernels import (
    gpu_best,
    gpu_classes,
    gpu_global_tables,
    gpu_tables,
)
from glp_rapids.communities.kernels.gpu_best import NOBODY, PROBES, SUM
from glp_rapids.communities.kernels.gpu_tables import U64
from glp_rapids.jit.cuda import add_only, cuda

DENSE = 4  # a table of a hub is dense if one in so many slots is in use


@functools.cache
def build(
    weights: gpu_tables.Weights, index_type: Any, rule: gpu_best.Rule
) -> tuple[Callable, ...]:
    """Make the functions of the three steps."""
    threads, slots_of_all = gpu_classes.THREADS, gpu_classes.SLOTS
    hubs, sizes = gpu_classes.HUBS, gpu_classes.SIZES
    first_hubs, first_pieces = gpu_classes.FIRST_HUB, gpu_classes.FIRST_PIECE
    room_for, pieces_of = gpu_classes.room_for, gpu_classes.pieces_of
    add, amount, _ = gpu_tables.build(weights, index_type)
    _, _, _, add_to_table, label_at, ask, amount_at, empty_slot = gpu_global_tables.build(
        weights.wide
    )
    slot_of, sums = gpu_global_tables.slot_of, gpu_tables.sum_type(weights)
    wanted, seen, _, own_of, stays, score, _, goal_of, _ = rule
    better, settle, look, clear, _, sum_of_lanes, _, best_of_block = gpu_best.build(
        weights, index_type, rule
    )
    warp_size, remainder = gpu_classes.WARP, gpu_classes.remainder
    empty = index_type(gpu_tables.EMPTY)

    @cuda.jit(device=True)
    def hub_at(offsets, group, place):
        return offsets[first_hubs + group] + place - offsets[group * sizes + hubs]

    @cuda.jit(device=True)
    def add_to_hub(base, room, label, weight, work):
        """Add to the table of a hub; return the slot if it was taken for this, else -1."""
        return add_to_table(work.table, base, room, slot_of(label, room), label, weight)

    @cuda.jit(device=True)
    def add_entry(label, weight, base, room, hub, shared, work):
        """Add to the block's table, or where that has no room to the hub's, if there is a label."""
        if label < 0:
            return
        slot = add(
            shared.keys, shared.low, shared.high, 0, slots_of_all, PROBES, index_type(label), weight
        )
        if slot >= 0:
            ask(work.table, base, slot_of(label, room))  # for when the piece is added up
            shared.used[cuda.atomic.add(shared.counts, 0, np.int32(1))] = slot
        elif slot == gpu_tables.NO_ROOM:
            taken = add_to_hub(base, room, label, weight, work)
            if taken >= 0:
                number = cuda.atomic.add(work.found, hub, np.int64(1))
                work.used[base + number] = taken

    @cuda.jit(device=True)
    def add_pieces(state, lists, offsets, group, shared, work):
        """Add up the pieces of hubs that are this block's own."""
        thread, blocks = np.int64(cuda.threadIdx.x), np.int64(cuda.gridDim.x)
        piece_of_all = offsets[first_pieces + group] + np.int64(cuda.blockIdx.x)
        while piece_of_all < offsets[first_pieces + group + 1]:
            place = np.int64(lists.owners[U64(piece_of_all)])
            v, hub = np.int64(lists.members[U64(place)]), hub_at(offsets, group, place)
            piece = piece_of_all - lists.pieces[hub]
            piece_of_all += blocks
            if not wanted(v, state):
                continue
            own, row, to_own = own_of(v, state), state.indptr[v], np.int64(0)
            degree = state.indptr[v + 1] - row
            base, room = lists.bases[hub], room_for(degree)
            clear(thread, shared)
            if thread == 0:
                shared.words[SUM] = 0
                shared.counts[0] = 0
            cuda.syncthreads()
            past = row + min((piece + 1) * lists.lengths.piece, degree)
            entry = row + piece * lists.lengths.piece + thread
            while entry < past:
                label, weight = look(v, own, entry, state)
                entry += threads
                if stays and label == own:
                    to_own += weight
                else:
                    add_entry(label, weight, base, room, hub, shared, work)
            if stays:
                to_own = sum_of_lanes(to_own, warp_size)
                if remainder(thread, warp_size) == 0 and to_own > 0:
                    add_only(work.own, hub, np.int64(to_own))
            cuda.syncthreads()
            number, count = np.int32(0), np.int64(shared.counts[0])
            for use in range(thread, count, threads):
                slot = np.int64(shared.used[use])
                weight = amount(shared.low, shared.high, slot)
                taken = add_to_hub(base, room, np.int64(shared.keys[slot]), weight, work)
                if taken >= 0:
                    shared.low[slot] = np.uint32(taken)
                    number += np.int32(1)
                else:
                    shared.keys[slot] = empty
            rank = np.int64(0)
            if number > 0:
                rank = np.int64(cuda.atomic.add(shared.words, SUM, number))
            cuda.syncthreads()
            if thread == 0 and shared.words[SUM] > 0:
                shared.begin[0] = cuda.atomic.add(work.found, hub, np.int64(shared.words[SUM]))
            cuda.syncthreads()
            if number > 0:
                rank += base + shared.begin[0]
                for use in range(thread, count, threads):
                    slot = np.int64(shared.used[use])
                    if shared.keys[slot] >= 0:
                        work.used[rank] = shared.low[slot]
                        rank += 1
            cuda.syncthreads()

    @cuda.jit(device=True)
    def evaluate_pieces(state, lists, offsets, group, shared, work):
        """Find the best in this block's own pieces of what is in the tables of hubs; empty them."""
        thread, blocks = np.int64(cuda.threadIdx.x), np.int64(cuda.gridDim.x)
        piece_of_all = offsets[first_pieces + group] + np.int64(cuda.blockIdx.x)
        while piece_of_all < offsets[first_pieces + group + 1]:
            at, place = piece_of_all, np.int64(lists.owners[U64(piece_of_all)])
            piece_of_all += blocks
            v, hub = np.int64(lists.members[U64(place)]), hub_at(offsets, group, place)
            if not wanted(v, state):
                continue
            own, base, number = own_of(v, state), lists.bases[hub], work.found[hub]
            room, piece = room_for(state.indptr[v + 1] - state.indptr[v]), at - lists.pieces[hub]
            # a table that is full enough is read from one end to the other
            dense = DENSE * number > room
            last = room if dense else number
            items = lists.lengths.piece
            if dense:
                items += (items >> 1) + 1
            best, best_high, best_low = np.int64(NOBODY), np.int64(0), np.uint64(0)
            past = min((piece + 1) * items, last)
            for item in range(piece * items + thread, past, threads):
                slot = base + item
                if not dense:
                    slot = base + np.int64(work.used[base + item])
                label = label_at(work.table, slot)
                if label < 0:
                    continue
                weight = amount_at(work.table, slot) * state.unit
                empty_slot(work.table, slot)
                valid, high, low = score(v, own, label, weight, state)
                if valid and better(v, label, high, low, best, best_high, best_low, state):
                    best, best_high, best_low = label, high, low
            best, best_high, best_low, _ = best_of_block(
                v, best, best_high, best_low, sums(0), thread, shared, state
            )
            if thread == 0:
                work.labels[at] = best
                work.gains_high[at], work.gains_low[at] = best_high, best_low
            cuda.syncthreads()

    @cuda.jit(device=True)
    def evaluate_hubs(state, lists, offsets, group, step, shared, work):
        """Take the best of all pieces of each hub."""
        thread, block = np.int64(cuda.threadIdx.x), np.int64(cuda.blockIdx.x)
        blocks = np.int64(cuda.gridDim.x)
        begin = offsets[group * sizes + hubs]
        end = offsets[group * sizes + sizes]
        following = begin + block
        while following < end:
            place = following
            following += blocks  # `range` would divide
            v = np.int64(lists.members[place])
            looked_at = wanted(v, state)
            cuda.syncthreads()
            if thread == 0:
                lists.goals[place] = NOBODY
                if looked_at:
                    seen(v, state)
            if not looked_at:
                continue
            own, hub = own_of(v, state), hub_at(offsets, group, place)
            pieces = pieces_of(state.indptr[v + 1] - state.indptr[v], lists.lengths)
            best, best_high, best_low = np.int64(NOBODY), np.int64(0), np.uint64(0)
            for at in range(lists.pieces[hub] + thread, lists.pieces[hub] + pieces, threads):
                label, high, low = work.labels[at], work.gains_high[at], work.gains_low[at]
                if better(v, label, high, low, best, best_high, best_low, state):
                    best, best_high, best_low = label, high, low
            best, best_high, best_low, _ = best_of_block(
                v, best, best_high, best_low, sums(0), thread, shared, state
            )
            if thread == 0:
                to_own = work.own[hub] * state.unit
                goal = goal_of(v, own, best, best_high, best_low, to_own, state)
                settle(place, v, goal, step, lists, shared, state)
                work.found[hub] = 0
                work.own[hub] = 0
            cuda.syncthreads()

    return add_pieces, evaluate_pieces, evaluate_hubs
