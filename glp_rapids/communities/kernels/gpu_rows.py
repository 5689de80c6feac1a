"""Evaluating the rows of a class: the labels around every vertex are weighed, and the best taken.

One text for moving and refining; what differs is handed in as functions (`Rule`). Rows up to
``LARGEST[0]`` entries have a thread and a list in shared memory, longer ones several threads and a
hash table there. Hubs take three steps with grid barriers between them: pieces of their rows are
added up in shared memory, and the sums in a table of the hub's own; blocks look at pieces of what
is in there; and one takes the best of what they found. Other rows are dealt out, longest first.
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
ALL, MOVERS, WANTED = range(3)  # hubs
PROBES = 16  # of the table in shared memory, before a label of a hub goes to the hub's table

# A multiprocessor's; more of them hide more of the time that memory takes, and spill registers.
BLOCKS = int(__import__("os").environ.get("GLP_ML_BLOCKS", "4"))

exceeds = gpu_target().compile(rules.exceeds)


class Rule(NamedTuple):
    """What a kind of sweep does with a row; functions compiled for the GPU."""

    wanted: Any  # v, state -> whether to look at it now
    seen: Any  # v, state: note that it was looked at
    entry: Any  # v, own, entry, state -> the label there, or -1
    own: Any  # v, state -> what `entry` compares with
    apart: Any  # own -> the label that is no candidate
    score: Any  # v, own, label, weight, state -> whether it may be taken, and the gain: high, low
    before: Any  # v, label, other, state -> which of two of one gain
    goal: Any  # v, own, best, high, low, weight to own, state -> where to go, or -1
    goes: Any  # v, goal, step, state: note where it goes, where nobody looks while others decide


class Work(NamedTuple):
    """What the blocks share: control words, and the tables of hubs, side by side."""

    arrived: Array
    moved: Array  # of every step
    found: Array  # of each hub the number of labels in its table
    own: Array  # of each hub the weight to where it is
    table: Array  # int64, two a slot: a label plus one, and the sum
    used: Array  # the slots in use, in any order
    labels: Array  # of each piece of a hub the best
    gains_high: Array
    gains_low: Array


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
    words: Array  # int64: a sum, and how many are listed


@functools.cache
def build(weighted: bool, index_type: Any, rule: Rule) -> tuple[Callable, ...]:
    """Make the functions of a class's steps: a goal, or -1, is written for each member.

    The second and third are for hubs; the fourth lists hubs.
    """
    threads, slots_of_all = gpu_classes.THREADS, gpu_classes.SLOTS
    hubs, piece_size = gpu_classes.HUBS, gpu_classes.PIECE
    sizes, begins = gpu_classes.SIZES, gpu_classes.LISTS + 1
    room_for, first_piece = gpu_classes.room_for, gpu_classes.first_piece
    table = gpu_tables.build(weighted, index_type)
    wanted, seen, entry_label, own_of, apart, score, before, goal_of, goes = rule
    add, amount, include = table
    size_lanes = gpu_classes.lanes_of
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
    def settle(place, v, goal, step, lists, state):
        """Write down where a member goes, if anywhere."""
        lists.goals[place] = goal
        if goal >= 0:
            goes(v, goal, step, state)

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
    def clear(thread, shared):
        for place in range(thread, slots_of_all, threads):
            shared.keys[place] = empty
            shared.low[place] = 0
            if weighted:
                shared.high[place] = 0

    @cuda.jit(device=True)
    def add_to_hub(base, room, label, weight, work):
        """Add to the table of a hub; return the slot if it was taken for this, else -1."""
        mixed = np.uint32(np.uint32(label) * np.uint32(0x9E3779B1))
        slot = np.int64((np.uint64(mixed) * np.uint64(room)) >> np.uint64(32))
        name, taken = np.int64(label) + 1, np.int64(NOBODY)
        while True:
            place = 2 * (base + slot)
            found = work.table[place]
            if found == 0:
                found = cuda.atomic.cas(work.table, place, np.int64(0), name)
                if found == 0:
                    found, taken = name, slot
            if found == name:
                cuda.atomic.add(work.table, place + 1, weight)
                return taken
            slot += 1
            if slot == room:
                slot = np.int64(0)

    @cuda.jit(device=True)
    def own_hubs(state, lists, start, end, which, shared):
        """List the next hubs of which pieces are this block's own, and return their number.

        All of them, MOVERS only, or those WANTED.
        """
        thread, block = np.int64(cuda.threadIdx.x), np.int64(cuda.blockIdx.x)
        blocks = np.int64(cuda.gridDim.x)
        if thread == 0:
            shared.words[1] = 0
        cuda.syncthreads()
        place = start + thread
        if place < end:
            v = np.int64(lists.members[place])
            piece = first_piece(place, block, blocks)
            if piece * piece_size < state.indptr[v + 1] - state.indptr[v]:
                listed = which == ALL
                if which == MOVERS:
                    listed = lists.goals[place] >= 0
                if which == WANTED:
                    listed = wanted(v, state)
                if listed:
                    shared.listed[cuda.atomic.add(shared.words, 1, np.int64(1))] = place
        cuda.syncthreads()
        return shared.words[1]

    @cuda.jit(device=True)
    def add_pieces(state, lists, offsets, group, shared, work):
        """Add up the pieces of hubs that are this block's own."""
        thread, block = np.int64(cuda.threadIdx.x), np.int64(cuda.blockIdx.x)
        blocks = np.int64(cuda.gridDim.x)
        begin = offsets[group * sizes + hubs]
        end = offsets[group * sizes + sizes]
        for start in range(begin, end, threads):
            for item in range(own_hubs(state, lists, start, end, WANTED, shared)):
                place = shared.listed[item]
                v = np.int64(lists.members[place])
                own, row = own_of(v, state), state.indptr[v]
                degree = state.indptr[v + 1] - row
                hub = offsets[begins + group] + place - begin
                base, room = lists.bases[hub], room_for(degree)
                piece = first_piece(place, block, blocks)
                while piece * piece_size < degree:
                    clear(thread, shared)
                    if thread == 0:
                        shared.words[0] = 0
                    cuda.syncthreads()
                    past = row + min((piece + 1) * piece_size, degree)
                    for entry in range(row + piece * piece_size + thread, past, threads):
                        label = entry_label(v, own, entry, state)
                        if label < 0:
                            continue
                        weight = weight_at(entry, state)
                        if not add(
                            shared.keys, shared.low, shared.high, 0, slots_of_all, PROBES,
                            index_type(label), weight,
                        ):  # fmt: skip
                            taken = add_to_hub(base, room, label, weight, work)
                            if taken >= 0:
                                number = cuda.atomic.add(work.found, hub, np.int64(1))
                                work.used[base + number] = taken
                    cuda.syncthreads()
                    number = np.int64(0)
                    for slot in range(thread, slots_of_all, threads):
                        label = shared.keys[slot]
                        if label >= 0:
                            weight = amount(shared.low, shared.high, slot)
                            taken = add_to_hub(base, room, label, weight, work)
                            if taken >= 0:
                                shared.low[slot] = np.uint32(taken)
                                number += 1
                            else:
                                shared.keys[slot] = empty
                    rank = np.int64(0)
                    if number > 0:
                        rank = cuda.atomic.add(shared.words, 0, number)
                    cuda.syncthreads()
                    if thread == 0 and shared.words[0] > 0:
                        shared.words[0] = cuda.atomic.add(work.found, hub, shared.words[0])
                    cuda.syncthreads()
                    if number > 0:
                        rank += base + shared.words[0]
                        for slot in range(thread, slots_of_all, threads):
                            if shared.keys[slot] >= 0:
                                work.used[rank] = shared.low[slot]
                                rank += 1
                    cuda.syncthreads()
                    piece += blocks
            cuda.syncthreads()

    @cuda.jit(device=True)
    def best_of_lanes(v, best, best_high, best_low, lanes, lane, shared, state):
        """Return the best of what some threads found, to the first of them; all threads call."""
        thread = np.int64(cuda.threadIdx.x)
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
                    shared.gains_high[thread], shared.gains_low[thread] = high, low
            cuda.syncthreads()
            distance //= 2
        return best, best_high, best_low

    @cuda.jit(device=True)
    def evaluate_pieces(state, lists, offsets, group, shared, work):
        """Find the best in this block's own pieces of what is in the tables of hubs; empty them."""
        thread, block = np.int64(cuda.threadIdx.x), np.int64(cuda.blockIdx.x)
        blocks = np.int64(cuda.gridDim.x)
        begin = offsets[group * sizes + hubs]
        end = offsets[group * sizes + sizes]
        for start in range(begin, end, threads):
            for item in range(own_hubs(state, lists, start, end, WANTED, shared)):
                place = shared.listed[item]
                v = np.int64(lists.members[place])
                own, hub = own_of(v, state), offsets[begins + group] + place - begin
                degree = state.indptr[v + 1] - state.indptr[v]
                base, number = lists.bases[hub], work.found[hub]
                piece = first_piece(place, block, blocks)
                while piece * piece_size < degree:
                    best, best_high, best_low = np.int64(NOBODY), np.int64(0), np.uint64(0)
                    past = min((piece + 1) * piece_size, number)
                    for use in range(piece * piece_size + thread, past, threads):
                        slot = 2 * (base + np.int64(work.used[base + use]))
                        label, weight = work.table[slot] - 1, work.table[slot + 1] * state.unit
                        work.table[slot] = 0
                        work.table[slot + 1] = 0
                        if label == apart(own):
                            work.own[hub] = weight
                            continue
                        valid, high, low = score(v, own, label, weight, state)
                        if valid and better(v, label, high, low, best, best_high, best_low, state):
                            best, best_high, best_low = label, high, low
                    best, best_high, best_low = best_of_lanes(
                        v, best, best_high, best_low, threads, thread, shared, state
                    )
                    if thread == 0:
                        at = lists.pieces[hub] + piece
                        work.labels[at] = best
                        work.gains_high[at], work.gains_low[at] = best_high, best_low
                    cuda.syncthreads()
                    piece += blocks
            cuda.syncthreads()

    @cuda.jit(device=True)
    def evaluate_hubs(state, lists, offsets, group, step, shared, work):
        """Take the best of all pieces of each hub."""
        thread, block = np.int64(cuda.threadIdx.x), np.int64(cuda.blockIdx.x)
        blocks = np.int64(cuda.gridDim.x)
        begin = offsets[group * sizes + hubs]
        end = offsets[group * sizes + sizes]
        for place in range(begin + block, end, blocks):
            v = np.int64(lists.members[place])
            looked_at = wanted(v, state)
            cuda.syncthreads()
            if thread == 0:
                lists.goals[place] = NOBODY
                if looked_at:
                    seen(v, state)
            if not looked_at:
                continue
            own, hub = own_of(v, state), offsets[begins + group] + place - begin
            pieces = (state.indptr[v + 1] - state.indptr[v] + piece_size - 1) // piece_size
            best, best_high, best_low = np.int64(NOBODY), np.int64(0), np.uint64(0)
            for at in range(lists.pieces[hub] + thread, lists.pieces[hub] + pieces, threads):
                label, high, low = work.labels[at], work.gains_high[at], work.gains_low[at]
                if better(v, label, high, low, best, best_high, best_low, state):
                    best, best_high, best_low = label, high, low
            best, best_high, best_low = best_of_lanes(
                v, best, best_high, best_low, threads, thread, shared, state
            )
            if thread == 0:
                goal = goal_of(v, own, best, best_high, best_low, work.own[hub], state)
                settle(place, v, goal, step, lists, state)
                work.found[hub] = 0
                work.own[hub] = 0
            cuda.syncthreads()

    @cuda.jit(device=True)
    def evaluate(state, lists, offsets, group, step, shared, work):
        thread, block = np.int64(cuda.threadIdx.x), np.int64(cuda.blockIdx.x)
        blocks = np.int64(cuda.gridDim.x)
        add_pieces(state, lists, offsets, group, shared, work)
        dealt = np.int64(0)
        for reverse in range(hubs):
            size = hubs - 1 - reverse
            begin = offsets[group * sizes + size]
            end = offsets[group * sizes + size + 1]
            lanes = size_lanes(size)
            rows = threads // lanes
            which, lane = thread // lanes, thread % lanes
            slots = slots_of_all // rows
            first = which * slots
            # of short rows so many that most threads have one, as long as all blocks have some
            chunk = min(max((end - begin) // (4 * blocks), np.int64(rows)), np.int64(threads))
            number_of_chunks = (end - begin + chunk - 1) // chunk
            own_chunk = (block + blocks - dealt % blocks) % blocks
            dealt += number_of_chunks
            while own_chunk < number_of_chunks:
                start = begin + own_chunk * chunk
                own_chunk += blocks
                if thread == 0:
                    shared.words[1] = 0
                cuda.syncthreads()
                if thread < chunk and start + thread < end:
                    v = np.int64(lists.members[start + thread])
                    lists.goals[start + thread] = NOBODY
                    if wanted(v, state):
                        seen(v, state)
                        listed = cuda.atomic.add(shared.words, 1, np.int64(1))
                        shared.listed[listed] = start + thread
                cuda.syncthreads()
                number = shared.words[1]
                if size == 0:
                    if thread < number:
                        place = shared.listed[thread]
                        v = np.int64(lists.members[place])
                        settle(place, v, tiny_row(v, thread, shared, state), step, lists, state)
                    cuda.syncthreads()
                    continue
                for round_first in range(0, number, rows):
                    v, own = np.int64(NOBODY), np.int64(0)
                    if round_first + which < number:
                        v = np.int64(lists.members[shared.listed[round_first + which]])
                    clear(thread, shared)
                    if lane == 0:
                        shared.own[which] = 0
                    cuda.syncthreads()
                    if v >= 0:
                        own = own_of(v, state)
                        for entry in range(state.indptr[v] + lane, state.indptr[v + 1], lanes):
                            label = entry_label(v, own, entry, state)
                            if label >= 0:
                                add(
                                    shared.keys, shared.low, shared.high, first, slots, slots,
                                    index_type(label), weight_at(entry, state),
                                )  # fmt: skip
                    cuda.syncthreads()
                    best, best_high, best_low = np.int64(NOBODY), np.int64(0), np.uint64(0)
                    if v >= 0:
                        for place in range(first + lane, first + slots, lanes):
                            label = np.int64(shared.keys[place])
                            if label < 0:
                                continue
                            weight = amount(shared.low, shared.high, place) * state.unit
                            if label == apart(own):
                                shared.own[which] = weight
                                continue
                            valid, high, low = score(v, own, label, weight, state)
                            if valid and better(
                                v, label, high, low, best, best_high, best_low, state
                            ):
                                best, best_high, best_low = label, high, low
                    best, best_high, best_low = best_of_lanes(
                        v, best, best_high, best_low, lanes, lane, shared, state
                    )
                    if lane == 0 and v >= 0:
                        goal = goal_of(
                            v, own, best, best_high, best_low, shared.own[which], state
                        )
                        place = shared.listed[round_first + which]
                        settle(place, v, goal, step, lists, state)
                    cuda.syncthreads()
                cuda.syncthreads()

    return evaluate, evaluate_pieces, evaluate_hubs, own_hubs
