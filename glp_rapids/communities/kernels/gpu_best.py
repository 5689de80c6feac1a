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

Array = Any
NOBODY = -1
ALL, MOVERS, WANTED = range(3)  # hubs
SUM, LISTED, GOING = range(3)  # of `Shared.words`
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
    listed: Array  # places of members
    labels: Array  # of each thread the best
    gains_high: Array
    gains_low: Array
    own: Array  # of each thread: weight to where the vertex is
    used: Array  # int16: of each row the slots in use
    counts: Array  # int32: of each row how many
    # int32: a sum, how many are listed, and how many go. Shared memory adds 64 bits by reading and
    # trying, and such a read is one beside another thread's write.
    words: Array
    begin: Array  # int64: where a block may write


class Functions(NamedTuple):
    """What `build` makes, compiled for the GPU."""

    better: Any  # v, a label and its gain, another, state
    settle: Any  # place, v, goal, step, lists, shared, state
    look: Any  # v, own, entry, state -> the label, or -1, and the weight
    clear: Any  # thread, shared: empty all slots
    empty_slot: Any  # place, shared
    best_of_lanes: Any
    best_and_sum_of_lanes: Any  # the same, and of the rule's own label the weight
    sum_own: Any  # thread, shared -> the sum of `Shared.own`, to the first thread; all call


@functools.cache
def build_shared(weights: Weights, index_type: Any) -> Callable:
    """Make the function that lays out a block's shared memory."""
    threads, slots = gpu_classes.THREADS, gpu_classes.SLOTS
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
            cuda.shared.array(3, np.int32),
            cuda.shared.array(1, np.int64),
        )

    return lay_out


@functools.cache
def build(weights: Weights, index_type: Any, rule: Rule) -> Functions:
    """Make the functions for a rule."""
    threads, slots_of_all = gpu_classes.THREADS, gpu_classes.SLOTS
    before, goes, entry_label = rule.before, rule.goes, rule.entry
    weighted, halves = weights.listed, weights.listed and weights.wide
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

    def build_best_of_lanes(sums_own):
        @cuda.jit(device=True)
        def best_of_lanes(v, best, best_high, best_low, lanes, lane, shared, state):
            """Return the best of what some threads found, to the first of them; all threads call.

            With ``sums_own`` its word of ``shared.own`` is then the sum of theirs.
            """
            thread = U64(cuda.threadIdx.x)
            shared.labels[thread] = best
            shared.gains_high[thread], shared.gains_low[thread] = best_high, best_low
            cuda.syncthreads()
            distance = lanes // 2
            while distance > 0:
                if lane < distance and v >= 0:
                    other = U64(thread + U64(distance))
                    if sums_own:
                        shared.own[thread] += shared.own[other]
                    label = shared.labels[other]
                    high, low = shared.gains_high[other], shared.gains_low[other]
                    if better(v, label, high, low, best, best_high, best_low, state):
                        best, best_high, best_low = label, high, low
                        shared.labels[thread] = best
                        shared.gains_high[thread], shared.gains_low[thread] = high, low
                cuda.syncthreads()
                distance //= 2
            return best, best_high, best_low

        return best_of_lanes

    @cuda.jit(device=True)
    def sum_own(thread, shared):
        cuda.syncthreads()
        distance = threads // 2
        while distance > 0:
            if thread < distance:
                shared.own[U64(thread)] += shared.own[U64(thread + distance)]
            cuda.syncthreads()
            distance //= 2
        return np.int64(shared.own[0])

    return Functions(
        better, settle, look, clear, empty_slot, build_best_of_lanes(False),
        build_best_of_lanes(rule.stays), sum_own,
    )  # fmt: skip
