"""Evaluating the rows of a class: the labels around every vertex are weighed, and the best taken.

One text for moving and refining; what differs is handed in as functions (`gpu_best.Rule`). Rows up
to ``LARGEST[0]`` entries have a thread and a list in shared memory, longer ones several threads and
a hash table there. Hubs take further steps (`gpu_hubs`). Other rows are dealt out, longest first.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from glp_rapids.communities.kernels import gpu_best, gpu_classes, gpu_hubs, gpu_tables
from glp_rapids.communities.kernels.gpu_best import GOING, LISTED, NOBODY
from glp_rapids.communities.kernels.gpu_tables import U64
from glp_rapids.jit.cuda import ask_for, cuda


@functools.cache
def build(
    weights: gpu_tables.Weights, index_type: Any, rule: gpu_best.Rule
) -> tuple[Callable, ...]:
    """Make the function that writes a goal, or -1, for each member of a class.

    It returns the next barrier's turn, after which all blocks know how many go. Also the function
    that lists hubs. That threads ask for four entries before they add up the first took longer;
    that short rows have warps which wait for no other took as long.
    """
    threads, slots_of_all = gpu_classes.THREADS, gpu_classes.SLOTS
    hubs, sizes, size_lanes = gpu_classes.HUBS, gpu_classes.SIZES, gpu_classes.lanes_of
    slots_of_lane = slots_of_all // threads
    barrier, row_of_thread = gpu_classes.barrier, gpu_classes.row_of_thread
    rows_of = gpu_classes.rows_of
    add, amount, include = gpu_tables.build(weights, index_type)
    wanted, seen, _, own_of, stays, score, _, goal_of, _ = rule
    better, settle, look, clear, empty_slot, _, best_of_lanes, _ = gpu_best.build(
        weights, index_type, rule
    )
    add_pieces, evaluate_pieces, evaluate_hubs, own_hubs = gpu_hubs.build(weights, index_type, rule)
    halves, sums = weights.listed and weights.wide, gpu_tables.sum_type(weights)

    @cuda.jit(device=True)
    def list_label(label, weight, count, thread, shared):
        """Add to the list of a row of one thread, if there is a label; return how many it has."""
        if label < 0:
            return count
        k = 0
        while k < count and shared.keys[U64(k * threads + thread)] != label:
            k += 1
        place = U64(k * threads + thread)
        if k == count:
            shared.keys[place] = label
            shared.low[place] = 0
            if halves:
                shared.high[place] = 0
            count += 1
        include(shared.low, shared.high, place, weight)
        return count

    @cuda.jit(device=True)
    def best_of_row(v, own, first, count, thread, step, listed, shared, state):
        """Return the best of some labels of a row, and its gain."""
        best, best_high, best_low = np.int64(NOBODY), np.int64(0), np.uint64(0)
        use = np.int64(first)
        while use < count:
            place = use * threads + thread
            if not listed:
                place = thread + np.int64(shared.used[U64(thread + use)])
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
    def tiny_row(v, thread, shared, state):
        """Evaluate a row with one thread, in its own column of the tables."""
        own, count = own_of(v, state), np.int64(0)
        shared.own[U64(thread)] = 0
        entry, past = state.indptr[v], state.indptr[v + 1]
        while entry < past:
            label, weight = look(v, own, entry, state)
            if stays and label == own:
                shared.own[U64(thread)] += sums(weight)
            else:
                count = list_label(label, weight, count, thread, shared)
            entry += 1
        best, best_high, best_low = best_of_row(
            v, own, 0, count, thread, 1, True, shared, state
        )
        to_own = np.int64(shared.own[U64(thread)]) * state.unit
        return goal_of(v, own, best, best_high, best_low, to_own, state)

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
    def evaluate(state, lists, begins, group, step, shared, work):
        thread, blocks = np.int64(cuda.threadIdx.x), np.int64(cuda.gridDim.x)
        offsets = begins.offsets
        add_pieces(state, lists, offsets, group, shared, work)
        # Tables and counts are empty when a row begins, and whoever reads them leaves them so;
        # lists of tiny rows, which come last, don't.
        clear(thread, shared)
        shared.counts[U64(thread)] = 0
        for reverse in range(hubs):
            size = hubs - 1 - reverse
            place = group * sizes + size
            end, chunk = offsets[place + 1], np.int64(begins.chunks[place])
            following = offsets[place] + begins.of_block[place] * chunk
            if following >= end:
                continue
            lanes, rows, which = size_lanes(size), rows_of(size), row_of_thread(thread, size)
            lane, slots = thread - which * lanes, slots_of_lane * lanes
            first = which * slots
            while following < end:
                start = following
                following += blocks * chunk
                if thread == 0:
                    shared.words[LISTED] = 0
                cuda.syncthreads()
                if thread < chunk and start + thread < end:
                    v = np.int64(lists.members[start + thread])
                    lists.goals[start + thread] = NOBODY
                    if wanted(v, state):
                        seen(v, state)
                        listed = cuda.atomic.add(shared.words, LISTED, np.int32(1))
                        shared.listed[listed] = start + thread
                        if size > 0:  # rows of several rounds: those to come are on their way
                            ask_for(state.indices, state.indptr[U64(v)])
                cuda.syncthreads()
                number = np.int64(shared.words[LISTED])
                if size == 0:
                    if thread < number:
                        place = shared.listed[thread]
                        v = np.int64(lists.members[place])
                        goal = tiny_row(v, thread, shared, state)
                        settle(place, v, goal, step, lists, shared, state)
                    cuda.syncthreads()
                    continue
                round_first = np.int64(0)
                while round_first < number:
                    v, own, listed = np.int64(NOBODY), np.int64(0), round_first + which
                    shared.own[U64(thread)] = 0
                    round_first += rows  # `range` would divide
                    if listed < number:
                        v = np.int64(lists.members[shared.listed[listed]])
                    if v >= 0:
                        own = own_of(v, state)
                        entry, past = state.indptr[v] + lane, state.indptr[v + 1]
                        while entry < past:
                            label, weight = look(v, own, entry, state)
                            if stays and label == own:
                                shared.own[U64(thread)] += sums(weight)
                            else:
                                put(which, first, slots, label, weight, shared)
                            entry += lanes
                    cuda.syncthreads()
                    best, best_high, best_low = np.int64(NOBODY), np.int64(0), np.uint64(0)
                    if v >= 0:
                        best, best_high, best_low = best_of_row(
                            v, own, lane, np.int64(shared.counts[which]), first, lanes, False,
                            shared, state,
                        )  # fmt: skip
                    best, best_high, best_low = best_of_lanes(
                        v, best, best_high, best_low, lanes, lane, shared, state
                    )
                    if lane == 0 and v >= 0:
                        to_own = np.int64(shared.own[U64(thread)]) * state.unit
                        goal = goal_of(v, own, best, best_high, best_low, to_own, state)
                        place = shared.listed[listed]
                        settle(place, v, goal, step, lists, shared, state)
                        shared.counts[which] = 0
                    cuda.syncthreads()
                cuda.syncthreads()

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

    return decide, own_hubs
