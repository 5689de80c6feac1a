"""What evaluating a row takes, however many threads do it: which label is better, and so on."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from glp_rapids.communities import rules
from glp_rapids.communities.kernels import gpu_classes, gpu_tables
from glp_rapids.communities.kernels.gpu_tables import U64, Weights, sum_type
from glp_rapids.jit.cuda import cuda, gpu_target
from glp_rapids.jit.warps import shuffle_down

Array = Any
NOBODY = -1
ALL, MOVERS = range(2)  # of a class
SUM, GOING = range(2)  # of `Shared.words`
PROBES = 16  # of the table in shared memory, before a label of a hub goes to the hub's table

# A multiprocessor's; more of them hide more of the time that memory takes, and spill registers.
BLOCKS = 4

exceeds = gpu_target().compile(rules.exceeds)


class Rule(NamedTuple):
    """What a kind of sweep does with a row; functions compiled for the GPU."""

    wanted: Any  # v, state -> whether to look at it now
    seen: Any  # v, state: note that it was looked at
    entry: Any  # v, own, entry, state -> the label there, or -1
    own: Any  # v, state -> what `entry` compares with
    stays: bool  # whether a label may be `own`: no candidate, and weighed apart
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
    table: Array  # see `gpu_global_tables`
    used: Array  # the slots in use, in any order
    labels: Array  # of each piece of a hub the best
    gains_high: Array
    gains_low: Array


class Shared(NamedTuple):
    """Arrays in a block's shared memory."""

    keys: Array
    low: Array
    high: Array
    # Of each thread, or row that a warp has at hand:
    listed: Array  # the place of a member
    labels: Array  # the best
    gains_high: Array
    gains_low: Array
    own: Array  # weight to where the vertex is
    used: Array  # int16: of each row the slots in use
    counts: Array  # int32: of each row how many
    numbers: Array  # int32: of each warp how many rows it has at hand
    # int32: a sum, and how many go. Shared memory adds 64 bits by reading and trying, and such a
    # read is one beside another thread's write.
    words: Array
    begin: Array  # int64: where a block may write


class Functions(NamedTuple):
    """What `build` makes, compiled for the GPU."""

    better: Any  # v, a label and its gain, another, state
    settle: Any  # place, v, goal, step, lists, shared, state
    look: Any  # v, own, entry, state -> the label, or -1, and the weight
    clear: Any  # thread, shared: empty all slots
    empty_slot: Any  # place, shared
    sum_of_lanes: Any  # value, lanes -> the sum, to the first lane; the whole warp calls
    best_of_lanes: Any
    best_of_block: Any


@functools.cache
def build_shared(weights: Weights, index_type: Any) -> Callable:
    """Make the function that lays out a block's shared memory."""
    threads, slots = gpu_classes.THREADS, gpu_classes.SLOTS
    warps = threads // gpu_classes.WARP
    high_slots = slots if weights.listed and weights.wide else 1
    sums = sum_type(weights)

    @cuda.jit(device=True)
    def lay_out():
        return Shared(
            cuda.shared.array(slots, index_type),
            cuda.shared.array(slots, np.uint32),
            cuda.shared.array(high_slots, np.uint32),
            cuda.shared.array(threads, np.int64),
            cuda.shared.array(threads, np.int64),
            cuda.shared.array(threads, np.int64),
            cuda.shared.array(threads, np.uint64),
            cuda.shared.array(threads, sums),
            cuda.shared.array(slots, np.int16),
            cuda.shared.array(threads, np.int32),
            cuda.shared.array(warps, np.int32),
            cuda.shared.array(2, np.int32),
            cuda.shared.array(1, np.int64),
        )

    return lay_out


@functools.cache
def build(weights: Weights, index_type: Any, rule: Rule) -> Functions:
    """Make the functions for a rule."""
    threads, slots_of_all = gpu_classes.THREADS, gpu_classes.SLOTS
    before, goes, entry_label = rule.before, rule.goes, rule.entry
    weighted, halves = weights.listed, weights.listed and weights.wide
    empty, sums = index_type(gpu_tables.EMPTY), sum_type(weights)
    warp_size, warps = gpu_classes.WARP, gpu_classes.THREADS // gpu_classes.WARP
    quotient, remainder = gpu_classes.quotient, gpu_classes.remainder

    @cuda.jit(device=True)
    def sum_of_lanes(value, lanes):
        distance = lanes // 2
        while distance > 0:
            value += shuffle_down(value, distance)
            distance //= 2
        return value

    @cuda.jit(device=True)
    def better(v, label, high, low, other, other_high, other_low, state):
        """Tell whether a label, which may be none, comes before another."""
        if label < 0 or other < 0:
            return label >= 0
        if high == other_high and low == other_low:
            return before(v, label, other, state)
        return exceeds(high, low, other_high, other_low)

    @cuda.jit(device=True)
    def settle(place, v, goal, step, lists, shared, state):
        """Write down where a member goes, if anywhere."""
        lists.goals[place] = goal
        if goal >= 0:
            goes(v, goal, step, state)
            cuda.atomic.add(shared.words, GOING, np.int32(1))

    @cuda.jit(device=True)
    def look(v, own, entry, state):
        label, weight = entry_label(v, own, entry, state), np.int64(1)
        if weighted:
            weight = np.int64(state.weights[U64(entry)])
        return label, weight

    @cuda.jit(device=True)
    def empty_slot(place, shared):
        shared.keys[place] = empty
        shared.low[place] = 0
        if halves:
            shared.high[place] = 0

    @cuda.jit(device=True)
    def clear(thread, shared):
        for slot in range(thread, slots_of_all, threads):
            empty_slot(U64(slot), shared)

    @cuda.jit(device=True)
    def best_of_lanes(v, best, best_high, best_low, lanes, lane, state):
        """Return the best of what some lanes found, to the first of them; the whole warp calls."""
        distance = lanes // 2
        while distance > 0:
            label, high = shuffle_down(best, distance), shuffle_down(best_high, distance)
            low = np.uint64(shuffle_down(np.int64(best_low), distance))
            if lane < distance and better(v, label, high, low, best, best_high, best_low, state):
                best, best_high, best_low = label, high, low
            distance //= 2
        return best, best_high, best_low

    @cuda.jit(device=True)
    def best_of_block(v, best, best_high, best_low, to_own, thread, shared, state):
        """Return the best of what all threads found, and the sum, to the first; the block meets."""
        warp, lane = quotient(thread, warp_size), remainder(thread, warp_size)
        best, best_high, best_low = best_of_lanes(
            v, best, best_high, best_low, warp_size, lane, state
        )
        to_own = sum_of_lanes(to_own, warp_size)
        if lane == 0:
            at = U64(warp)
            shared.labels[at], shared.own[at] = best, to_own
            shared.gains_high[at], shared.gains_low[at] = best_high, best_low
        cuda.syncthreads()
        if warp == 0:
            best, to_own = np.int64(NOBODY), sums(0)
            if lane < warps:
                at = U64(lane)
                best, to_own = shared.labels[at], shared.own[at]
                best_high, best_low = shared.gains_high[at], shared.gains_low[at]
            best, best_high, best_low = best_of_lanes(
                v, best, best_high, best_low, warps, lane, state
            )
            to_own = sum_of_lanes(to_own, warps)
        return best, best_high, best_low, to_own

    return Functions(
        better, settle, look, clear, empty_slot, sum_of_lanes, best_of_lanes, best_of_block
    )
