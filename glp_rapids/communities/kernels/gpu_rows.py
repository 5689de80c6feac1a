"""Evaluating the rows of a class: the labels around every vertex are weighed, and the best taken.

One text for moving and refining; what differs is handed in as functions (`gpu_best.Rule`). Rows up
to ``LARGEST[0]`` entries have a thread and a list in shared memory, longer ones a part of a warp or
a whole one, or a block, and a hash table there. Hubs take further steps (`gpu_hubs`).

Warps wait for no other. A warp takes some rows to hand, a lane each: what decides whether they are
evaluated, and in the end where they go, is read by all lanes at once, and what is read between has
been asked for.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from glp_rapids.communities.kernels import gpu_best, gpu_classes, gpu_hubs, gpu_tables
from glp_rapids.communities.kernels.gpu_best import GOING, NOBODY
from glp_rapids.communities.kernels.gpu_tables import U64
from glp_rapids.jit.cuda import ask_for, cuda
from glp_rapids.jit.warps import sync_warp


@functools.cache
def build(
    weights: gpu_tables.Weights, index_type: Any, rule: gpu_best.Rule
) -> Callable:
    """Make the function that writes a goal, or -1, for each member of a class.

    It returns the next barrier's turn, after which all blocks know how many go.
    """
    threads, slots_of_all = gpu_classes.THREADS, gpu_classes.SLOTS
    hubs, sizes, lanes_of = gpu_classes.HUBS, gpu_classes.SIZES, gpu_classes.lanes_of
    slots_of_lane, warp_size = slots_of_all // threads, gpu_classes.WARP
    barrier, quotient = gpu_classes.barrier, gpu_classes.quotient
    add, amount, include = gpu_tables.build(weights, index_type)
    wanted, seen, _, own_of, stays, score, _, goal_of, _ = rule
    better, settle, look, clear, empty_slot, sum_of_lanes, best_of_lanes, best_of_block = (
        gpu_best.build(weights, index_type, rule)
    )
    add_pieces, evaluate_pieces, evaluate_hubs = gpu_hubs.build(weights, index_type, rule)
    halves, sums = weights.listed and weights.wide, gpu_tables.sum_type(weights)

    @cuda.jit(device=True)
    def list_label(label, weight, count, first, shared):
        """Add to the list of a row of one thread, if there is a label; return how many it has."""
        if label < 0:
            return count
        k, place = 0, U64(first)
        while k < count and shared.keys[place] != label:
            k, place = k + 1, place + U64(warp_size)
        if k == count:
            shared.keys[place] = label
            shared.low[place] = 0
            if halves:
                shared.high[place] = 0
            count += 1
        include(shared.low, shared.high, place, weight)
        return count

    @cuda.jit(device=True)
    def best_of_row(v, own, use, count, first, step, listed, shared, state):
        """Return the best of some labels of a row, from one on, and its gain."""
        best, best_high, best_low = np.int64(NOBODY), np.int64(0), np.uint64(0)
        while use < count:
            place = first + use * warp_size
            if not listed:
                place = first + np.int64(shared.used[U64(first + use)])
            label = np.int64(shared.keys[U64(place)])
            weight = amount(shared.low, shared.high, place) * state.unit
            if not listed:  # nobody else reads a slot, so it is left as the next row needs it
                empty_slot(U64(place), shared)
            valid, high, low = score(v, own, label, weight, state)
            if valid and better(v, label, high, low, best, best_high, best_low, state):
                best, best_high, best_low = label, high, low
            use = use + step
        return best, best_high, best_low

    @cuda.jit(device=True)
    def put(which, first, slots, label, weight, shared):
        """Add to the table of a row, if there is a label."""
        if label >= 0:
            slot = add(
                shared.keys, shared.low, shared.high, first, slots, slots, index_type(label), weight
            )
            if slot >= 0:
                number_before = cuda.atomic.add(shared.counts, which, np.int32(1))
                shared.used[U64(first + number_before)] = slot

    @cuda.jit(device=True)
    def add_up(v, own, lane, lanes, which, first, slots, shared, state):
        """Add entries of a row to its table, from one lane's on; return those of its own label."""
        to_own = np.int64(0)
        entry, past = state.indptr[U64(v)] + lane, state.indptr[U64(v + 1)]
        while entry < past:
            last, read = past - 1, entry + lanes
            label, weight = look(v, own, entry, state)
            label1 = label2 = label3 = label
            weight1 = weight2 = weight3 = weight
            if lanes >= warp_size:
                # four at a time, so that a thread waits less often; behind the end it looks again
                read = entry + 4 * lanes
                label1, weight1 = look(v, own, min(entry + lanes, last), state)
                label2, weight2 = look(v, own, min(entry + 2 * lanes, last), state)
                label3, weight3 = look(v, own, min(entry + 3 * lanes, last), state)
            while entry < min(past, read):
                if stays and label == own:
                    to_own += weight
                else:
                    put(which, first, slots, label, weight, shared)
                label, weight, label1, weight1 = label1, weight1, label2, weight2
                label2, weight2 = label3, weight3
                entry += lanes
        return to_own

    @cuda.jit(device=True)
    def take_rows(start, end, lane, first, ask, lists, shared, state):
        """List the members of a chunk that are looked at; return how many a warp then has."""
        number_at = quotient(first, warp_size)
        if lane == 0:
            shared.numbers[number_at] = 0
        sync_warp()
        place = start + lane
        if place < end:
            v = np.int64(lists.members[U64(place)])
            lists.goals[U64(place)] = NOBODY
            if wanted(v, state):
                seen(v, state)
                listed = np.int64(cuda.atomic.add(shared.numbers, number_at, np.int32(1)))
                shared.listed[U64(first + listed)] = place
                if ask:
                    ask_for(state.indices, state.indptr[U64(v)])
        sync_warp()
        return np.int64(shared.numbers[number_at])

    @cuda.jit(device=True)
    def note(row, best, best_high, best_low, to_own, shared):
        """Write down what was found for a row that a warp has at hand."""
        at = U64(row)
        shared.labels[at], shared.own[at] = best, to_own
        shared.gains_high[at], shared.gains_low[at] = best_high, best_low

    @cuda.jit(device=True)
    def tiny_row(row, lane, lists, shared, state):
        """Evaluate a row with one thread, in its own column of the warp's table."""
        v = np.int64(lists.members[U64(shared.listed[U64(row)])])
        own, count, to_own = own_of(v, state), np.int64(0), np.int64(0)
        column = (row - lane) * slots_of_lane + lane
        entry, past = state.indptr[U64(v)], state.indptr[U64(v + 1)]
        while entry < past:
            # four at a time, so that a thread waits less often; behind the end it looks again
            last = past - 1
            label, weight = look(v, own, entry, state)
            label1, weight1 = look(v, own, min(entry + 1, last), state)
            label2, weight2 = look(v, own, min(entry + 2, last), state)
            label3, weight3 = look(v, own, min(entry + 3, last), state)
            for _ in range(min(past - entry, 4)):
                if stays and label == own:
                    to_own += weight
                else:
                    count = list_label(label, weight, count, column, shared)
                label, weight, label1, weight1 = label1, weight1, label2, weight2
                label2, weight2 = label3, weight3
            entry += 4
        best, best_high, best_low = best_of_row(
            v, own, np.int64(0), count, column, 1, True, shared, state
        )
        note(row, best, best_high, best_low, to_own, shared)

    @cuda.jit(device=True)
    def rows_of_lanes(number, first, lane, lanes, lists, shared, state):
        """Evaluate the rows that a warp has at hand, with some lanes each."""
        which = quotient(lane, lanes)
        lane -= which * lanes
        table, rows = first + which * lanes, quotient(warp_size, lanes)
        slots, begin, row = slots_of_lane * lanes, slots_of_lane * table, first + which
        last = first + number
        while row - which < last:
            v, own, to_own = np.int64(NOBODY), np.int64(0), np.int64(0)
            if row < last:
                v = np.int64(lists.members[U64(shared.listed[U64(row)])])
                own = own_of(v, state)
                to_own = add_up(v, own, lane, lanes, table, begin, slots, shared, state)
            sync_warp()
            best, best_high, best_low = np.int64(NOBODY), np.int64(0), np.uint64(0)
            if v >= 0:
                count = np.int64(shared.counts[U64(table)])
                best, best_high, best_low = best_of_row(
                    v, own, lane, count, begin, lanes, False, shared, state
                )
            best, best_high, best_low = best_of_lanes(
                v, best, best_high, best_low, lanes, lane, state
            )
            if stays:
                to_own = sum_of_lanes(to_own, lanes)
            sync_warp()
            if lane == 0 and v >= 0:
                note(row, best, best_high, best_low, to_own, shared)
                shared.counts[U64(table)] = 0
            sync_warp()
            row += rows

    @cuda.jit(device=True)
    def decide_rows(number, first, lane, step, lists, shared, state):
        """Write down where the rows that a warp has at hand go."""
        sync_warp()
        row = first + lane
        if lane < number:
            at, place = U64(row), shared.listed[U64(row)]
            v = np.int64(lists.members[U64(place)])
            to_own = np.int64(shared.own[at]) * state.unit
            goal = goal_of(
                v, own_of(v, state), shared.labels[at], shared.gains_high[at],
                shared.gains_low[at], to_own, state,
            )  # fmt: skip
            settle(place, v, goal, step, lists, shared, state)

    @cuda.jit(device=True)
    def rows_of_block(state, lists, begins, place, step, shared):
        """Evaluate rows that have a block each.

        Two counts take turns: one thread empties that of a row when others have begun the next.
        """
        thread, blocks = np.int64(cuda.threadIdx.x), np.int64(cuda.gridDim.x)
        following, end = begins.offsets[place], begins.offsets[place + 1]
        following += np.int64(cuda.blockIdx.x)
        which = np.int64(0)
        while following < end:
            member, v = following, np.int64(lists.members[U64(following)])
            following += blocks
            if not wanted(v, state):
                if thread == 0:
                    lists.goals[U64(member)] = NOBODY
                continue
            own = own_of(v, state)
            to_own = add_up(v, own, thread, threads, which, 0, slots_of_all, shared, state)
            cuda.syncthreads()
            best, best_high, best_low = best_of_row(
                v, own, thread, np.int64(shared.counts[which]), 0, threads, False, shared, state
            )
            best, best_high, best_low, to_own = best_of_block(
                v, best, best_high, best_low, sums(to_own), thread, shared, state
            )
            if thread == 0:
                seen(v, state)
                shared.counts[which] = 0
                to_own = np.int64(to_own) * state.unit
                goal = goal_of(v, own, best, best_high, best_low, to_own, state)
                settle(member, v, goal, step, lists, shared, state)
            which = 1 - which

    @cuda.jit(device=True)
    def evaluate(state, lists, begins, group, step, shared, work):
        thread, block = np.int64(cuda.threadIdx.x), np.int64(cuda.blockIdx.x)
        blocks = np.int64(cuda.gridDim.x)
        offsets = begins.offsets
        add_pieces(state, lists, offsets, group, shared, work)
        # Tables and counts are empty when a row begins, and whoever reads them leaves them so;
        # lists of tiny rows, which come last, don't.
        clear(thread, shared)
        shared.counts[U64(thread)] = 0
        cuda.syncthreads()
        rows_of_block(state, lists, begins, group * sizes + hubs - 1, step, shared)
        cuda.syncthreads()
        warp, warps = quotient(thread, warp_size), blocks * (threads // warp_size)
        first = warp * warp_size
        lane = thread - first
        for reverse in range(hubs - 1):
            size = hubs - 2 - reverse
            place = group * sizes + size
            end, chunk = offsets[place + 1], np.int64(begins.chunks[place])
            turn = warp * blocks + block - begins.dealt[place]
            if turn < 0:
                turn += warps
            start = offsets[place] + turn * chunk
            while start < end:
                number = take_rows(
                    start, min(start + chunk, end), lane, first, size > 0, lists, shared, state
                )
                if size == 0:
                    if lane < number:
                        tiny_row(first + lane, lane, lists, shared, state)
                else:
                    rows_of_lanes(number, first, lane, lanes_of(size), lists, shared, state)
                decide_rows(number, first, lane, step, lists, shared, state)
                sync_warp()
                start += warps * chunk

    @cuda.jit(device=True)
    def sum_moves(step, shared, work, turn):
        """Add up how many go, and wait for the other blocks; return the next turn."""
        cuda.syncthreads()
        going = np.int64(shared.words[GOING])
        cuda.syncthreads()  # a compiler may have all threads read, whatever only one does with it
        if cuda.threadIdx.x == 0 and going > 0:
            cuda.atomic.add(work.moved, step, going)
            shared.words[GOING] = 0
        turn += 1
        barrier(work.arrived, turn * np.int64(cuda.gridDim.x))
        return turn

    @cuda.jit(device=True)
    def decide(state, lists, begins, group, step, shared, work, turn):
        offsets = begins.offsets
        evaluate(state, lists, begins, group, step, shared, work)
        turn = sum_moves(step, shared, work, turn)
        if offsets[group * sizes + hubs] < offsets[(group + 1) * sizes]:
            evaluate_pieces(state, lists, offsets, group, shared, work)
            turn += 1
            barrier(work.arrived, turn * np.int64(cuda.gridDim.x))
            evaluate_hubs(state, lists, offsets, group, step, shared, work)
            turn = sum_moves(step, shared, work, turn)
        return turn

    return decide
