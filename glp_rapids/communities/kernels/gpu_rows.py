"""Evaluating the rows of a class: the labels around every vertex are weighed, and the best taken.

One text for moving and refining; what differs is handed in as functions (`Rule`). Rows up to
``LARGEST[0]`` entries have a thread and a list in shared memory, longer ones several threads and a
hash table there; where that is full, what has no room goes to a table of the block's in global
memory, of which only slots in use are looked at. Blocks draw rows from tickets, the longest first.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from glp_rapids.communities import rules
from glp_rapids.communities.kernels import gpu_classes, gpu_tables
from glp_rapids.jit.cuda import cuda, gpu_target

Array = Any
NOBODY = -1
PROBES = 16  # of the table in shared memory, before a label of a hub goes elsewhere

exceeds = gpu_target().compile(rules.exceeds)


class Rule(NamedTuple):
    """What a kind of sweep does with a row; functions compiled for the GPU."""

    wanted: Any  # v, state -> whether to look at it now; called once
    entry: Any  # v, own, entry, state -> the label there, or -1
    own: Any  # v, state -> what `entry` compares with
    apart: Any  # own -> the label that is no candidate
    score: Any  # v, own, label, weight, state -> whether it may be taken, and the gain: high, low
    before: Any  # v, label, other, state -> which of two of one gain
    goal: Any  # v, own, best, high, low, weight to own, state -> where to go, or -1


class Work(NamedTuple):
    """What the blocks share: control words, and the tables of hubs."""

    arrived: Array
    tickets: Array  # of every step and size
    moved: Array  # of every step
    keys: Array  # a row a block that serves hubs
    sums: Array  # likewise, int64
    used: Array  # likewise: the slots in use


class Shared(NamedTuple):
    """Arrays in a block's shared memory."""

    keys: Array
    low: Array
    high: Array
    listed: Array  # places of members
    labels: Array  # of each thread the best
    gains_high: Array
    gains_low: Array
    own: Array  # of each row: the weight to where it is
    words: Array  # int64: the ticket, how many are listed, how many slots of a hub are in use


@functools.cache
def build(weighted: bool, index_type: Any, rule: Rule) -> Callable:
    """Make the function that evaluates a class: writes a goal, or -1, for each of its members."""
    threads, slots_of_all = gpu_classes.THREADS, gpu_classes.SLOTS
    hubs = gpu_classes.HUBS
    table = gpu_tables.build(weighted, index_type)
    wanted, entry_label, own_of, apart, score, before, goal_of = rule
    add, amount, include = table
    size_lanes, slot_of = gpu_classes.lanes_of, gpu_tables.slot_of
    empty = index_type(gpu_tables.EMPTY)

    @cuda.jit(device=True)
    def better(v, label, high, low, other, other_high, other_low, state):
        """Tell whether a label, which may be none, comes before another."""
        if label < 0 or other < 0:
            return label >= 0
        if high == other_high and low == other_low:
            return before(v, label, other, state)
        return exceeds(high, low, other_high, other_low)

    @cuda.jit(device=True)
    def weight_at(entry, state):
        if weighted:
            return state.weights[entry]
        return np.int64(1)

    @cuda.jit(device=True)
    def tiny_row(v, thread, shared, state):
        """Evaluate a row with one thread, in its own column of the tables."""
        own = own_of(v, state)
        count = 0
        for entry in range(state.indptr[v], state.indptr[v + 1]):
            label = entry_label(v, own, entry, state)
            if label < 0:
                continue
            k = 0
            while k < count and shared.keys[k * threads + thread] != label:
                k += 1
            place = k * threads + thread
            if k == count:
                shared.keys[place] = label
                shared.low[place] = 0
                if weighted:
                    shared.high[place] = 0
                count += 1
            include(shared.low, shared.high, place, weight_at(entry, state))
        best, best_high, best_low = np.int64(NOBODY), np.int64(0), np.uint64(0)
        to_own = np.int64(0)
        for k in range(count):
            place = k * threads + thread
            label = np.int64(shared.keys[place])
            weight = amount(shared.low, shared.high, place) * state.unit
            if label == apart(own):
                to_own = weight
                continue
            valid, high, low = score(v, own, label, weight, state)
            if valid and better(v, label, high, low, best, best_high, best_low, state):
                best, best_high, best_low = label, high, low
        return goal_of(v, own, best, best_high, best_low, to_own, state)

    @cuda.jit(device=True)
    def add_to_hub(block, mask, label, weight, shared, work):
        """Add to the table in global memory."""
        slot = slot_of(label, mask + 1)
        while True:
            found = work.keys[block, slot]
            if found == empty:
                found = cuda.atomic.cas(work.keys, (block, slot), empty, label)
                if found == empty:
                    place = cuda.atomic.add(shared.words, 2, np.int64(1))
                    work.used[block, place] = slot
                    found = label
            if found == label:
                cuda.atomic.add(work.sums, (block, slot), weight)
                return
            slot = (slot + 1) & mask

    @cuda.jit(device=True)
    def evaluate(state, lists, offsets, group, step, shared, work):
        thread, block = np.int64(cuda.threadIdx.x), np.int64(cuda.blockIdx.x)
        blocks = np.int64(cuda.gridDim.x)
        for reverse in range(gpu_classes.SIZES):
            size = gpu_classes.SIZES - 1 - reverse
            begin = offsets[group * gpu_classes.SIZES + size]
            end = offsets[group * gpu_classes.SIZES + size + 1]
            if begin == end or (size == hubs and block >= work.keys.shape[0]):
                continue
            lanes = size_lanes(size)
            rows = threads // lanes
            which, lane = thread // lanes, thread % lanes
            slots = slots_of_all // rows
            first = which * slots
            chunk = min(max((end - begin) // (4 * blocks), np.int64(rows)), np.int64(threads))
            while True:
                if thread == 0:
                    shared.words[0] = cuda.atomic.add(
                        work.tickets, step * gpu_classes.SIZES + size, chunk
                    )
                    shared.words[1] = 0
                cuda.syncthreads()
                start = begin + shared.words[0]
                cuda.syncthreads()
                if start >= end:
                    break
                if thread < chunk and start + thread < end:
                    v = np.int64(lists.members[start + thread])
                    lists.goals[start + thread] = NOBODY
                    if wanted(v, state):
                        listed = cuda.atomic.add(shared.words, 1, np.int64(1))
                        shared.listed[listed] = start + thread
                cuda.syncthreads()
                number = shared.words[1]
                if size == 0:
                    if thread < number:
                        place = shared.listed[thread]
                        v = np.int64(lists.members[place])
                        lists.goals[place] = tiny_row(v, thread, shared, state)
                    cuda.syncthreads()
                    continue
                probes = PROBES if size == hubs else slots
                for round_first in range(0, number, rows):
                    v, own, mask = np.int64(NOBODY), np.int64(0), np.int64(0)
                    if round_first + which < number:
                        v = np.int64(lists.members[shared.listed[round_first + which]])
                    for place in range(thread, slots_of_all, threads):
                        shared.keys[place] = empty
                        shared.low[place] = 0
                        if weighted:
                            shared.high[place] = 0
                    if lane == 0:
                        shared.own[which] = 0
                        shared.words[2] = 0
                    cuda.syncthreads()
                    if v >= 0:
                        own = own_of(v, state)
                        row, past = state.indptr[v], state.indptr[v + 1]
                        if size == hubs:
                            mask = np.int64(1)
                            while mask < 2 * min(past - row, state.indptr.size):
                                mask *= 2
                            mask -= 1
                        for entry in range(row + lane, past, lanes):
                            label = entry_label(v, own, entry, state)
                            if label < 0:
                                continue
                            weight = weight_at(entry, state)
                            if not add(
                                shared.keys, shared.low, shared.high, first, slots, probes,
                                index_type(label), weight,
                            ):  # fmt: skip
                                add_to_hub(block, mask, index_type(label), weight, shared, work)
                    cuda.syncthreads()
                    best, best_high, best_low = np.int64(NOBODY), np.int64(0), np.uint64(0)
                    if v >= 0:
                        further = shared.words[2] if size == hubs else np.int64(0)
                        for item in range(lane, slots + further, lanes):
                            if item < slots:
                                label = np.int64(shared.keys[first + item])
                                if label < 0:
                                    continue
                                weight = amount(shared.low, shared.high, first + item)
                            else:
                                slot = np.int64(work.used[block, item - slots])
                                label = np.int64(work.keys[block, slot])
                                weight = work.sums[block, slot]
                                work.keys[block, slot] = empty
                                work.sums[block, slot] = 0
                            weight *= state.unit
                            if label == apart(own):
                                shared.own[which] = weight
                                continue
                            valid, high, low = score(v, own, label, weight, state)
                            if valid and better(
                                v, label, high, low, best, best_high, best_low, state
                            ):
                                best, best_high, best_low = label, high, low
                    shared.labels[thread] = best
                    shared.gains_high[thread], shared.gains_low[thread] = best_high, best_low
                    cuda.syncthreads()
                    distance = lanes // 2
                    while distance > 0:
                        if lane < distance and v >= 0:
                            other = thread + distance
                            label = shared.labels[other]
                            high, low = shared.gains_high[other], shared.gains_low[other]
                            if better(v, label, high, low, best, best_high, best_low, state):
                                best, best_high, best_low = label, high, low
                                shared.labels[thread] = best
                                shared.gains_high[thread] = best_high
                                shared.gains_low[thread] = best_low
                        cuda.syncthreads()
                        distance //= 2
                    if lane == 0 and v >= 0:
                        lists.goals[shared.listed[round_first + which]] = goal_of(
                            v, own, best, best_high, best_low, shared.own[which], state
                        )
                    cuda.syncthreads()
                cuda.syncthreads()

    return evaluate
