"""Local moving on a GPU: all sweeps of a level in one persistent launch, class after class.

The rules are those of `moving`, the sums integers, so what it does is the same to the bit. A class
takes two steps with grid barriers between them: its rows are evaluated (`gpu_rows`) on labels and
volumes as they stand; those that go are moved, and their neighbours woken. Whether one of these is
where its neighbour goes is asked of ``following``, which is complete by then.

Launch: cooperative, as many blocks of THREADS as there is room for. Degrees: any; longer rows have
more threads (`gpu_classes`). Shared memory: 32 KB, where sums take 64 bits 41 KB. Registers: 64, as
four blocks a multiprocessor leave, with 200 to 232 bytes of a thread in memory.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from glp_rapids.communities import rules
from glp_rapids.communities.kernels import (
    gpu_best,
    gpu_classes,
    gpu_rows,
    gpu_sums,
    gpu_visits,
)
from glp_rapids.communities.kernels.gpu_tables import U64, Weights
from glp_rapids.communities.schedule import CLASSES, FEW, MOST_SWEEPS
from glp_rapids.jit.cuda import cuda, gpu_target, kernel

Array = Any
WAKING_LANES = 8

gain = gpu_target().compile(rules.gain)
exceeds = gpu_target().compile(rules.exceeds)
first_of_equals = gpu_target().compile(rules.first_of_equals)
waits = gpu_target().compile(rules.waits)


class Moving(NamedTuple):
    """A level and its partition, as kernels take them; see `moving.Level` and `Partition`."""

    indptr: Array
    indices: Array
    weights: Array
    unit: Any
    volume: Array
    words: Array
    constant: Any
    labels: Array
    sizes: Array
    volumes: Array
    active: Array
    following: Array  # the labels after the class that is updated
    seed: Any


class Initial(NamedTuple):
    """What vertices begin with: communities, of the level above if there are parts.

    ``numbers`` and ``first`` are those of the parts, which are the vertices of that level.
    """

    labels: Array
    numbers: Array
    first: Array


@cuda.jit(device=True)
def initialize(v, label, labels, following, sizes, volumes, active):
    """Bring what is known of a vertex, and of the community of its name, to where moving begins."""
    labels[v], following[v] = label, label
    sizes[v], volumes[v], active[v] = 0, 0, 1


@functools.cache
def rule(weighted: bool) -> gpu_best.Rule:
    """Make the functions of a row, whose entries have weights or not."""

    @cuda.jit(device=True)
    def wanted(v, state):
        return state.active[U64(v)] != 0

    @cuda.jit(device=True)
    def seen(v, state):
        state.active[U64(v)] = 0

    @cuda.jit(device=True)
    def own(v, state):
        return np.int64(state.labels[U64(v)])

    # what `gpu_rows` compares entries with is the row itself
    @cuda.jit(device=True)
    def entry_label(v, own, entry, state):
        u = state.indices[U64(entry)]
        if u == v or (weighted and state.weights[U64(entry)] <= 0):
            return np.int64(gpu_best.NOBODY)
        return np.int64(state.labels[U64(u)])

    @cuda.jit(device=True)
    def score(v, own, label, weight, state):
        high, low = gain(weight, state.constant, state.volume[U64(v)], state.volumes[U64(label)])
        return True, high, low

    @cuda.jit(device=True)
    def before(v, label, other, state):
        return first_of_equals(label, other, state.seed, state.words)

    @cuda.jit(device=True)
    def goal(v, own, best, high, low, to_own, state):
        mine = state.volume[U64(v)]
        own_high, own_low = gain(to_own, state.constant, mine, state.volumes[U64(own)] - mine)
        if best < 0 or not exceeds(high, low, own_high, own_low):
            best, high = own, own_high
        if high < 0 and state.sizes[U64(v)] == 0:
            return np.int64(v)  # better alone, under its own name, which nobody bears
        if best == own or waits(own, best, state.sizes[U64(own)], state.sizes[U64(best)]):
            return np.int64(gpu_best.NOBODY)
        return best

    @cuda.jit(device=True)
    def goes(v, goal, step, state):
        state.following[U64(v)] = goal

    return gpu_best.Rule(wanted, seen, entry_label, own, True, score, before, goal, goes)


@functools.cache
def build_move(weights: Weights, index_type: Any, skips_active: bool) -> Callable:
    """Make the function that moves the vertices of a level until few move; all threads call.

    ``sizes`` and ``volumes`` begin as zeros, ``active`` as ones, ``following`` as the labels;
    ``swept`` is a word for the number of sweeps. It returns the next barrier's turn.
    ``skips_active``: where its neighbours go is read only of those that are not active. That is
    less to read, but one read after another, for which a small level would wait.
    """
    decide = gpu_rows.build(weights, index_type, rule(weights.listed))
    list_classes, barrier = gpu_classes.list_classes, gpu_classes.barrier
    add_to_community = gpu_sums.build(gpu_sums.to_community)
    add_all = gpu_sums.build_all(gpu_sums.to_community)

    @cuda.jit(device=True)
    def go(state, v, goal, going):
        own = other = np.int64(gpu_best.NOBODY)
        volume = np.int64(0)
        if going:
            own, other, volume = np.int64(state.labels[U64(v)]), goal, state.volume[U64(v)]
            state.labels[U64(v)] = goal
        add_to_community(own, -volume, (np.int64(-1), state.sizes, state.volumes))
        add_to_community(other, volume, (np.int64(1), state.sizes, state.volumes))

    @cuda.jit(device=True)
    def wake(state, v, goal, stamp, entry, past, step):
        # Four at a time, so that a thread waits less often; behind the end it asks again.
        while entry < past:
            second, third, fourth = entry + step, entry + 2 * step, entry + 3 * step
            u0 = U64(state.indices[U64(entry)])
            u1 = U64(state.indices[U64(second if second < past else entry)])
            u2 = U64(state.indices[U64(third if third < past else entry)])
            u3 = U64(state.indices[U64(fourth if fourth < past else entry)])
            at0, at1, at2, at3 = u0, u1, u2, u3
            if skips_active:
                # a mover's own place says its goal, so that nothing is marked
                at0 = u0 if state.active[u0] == 0 else U64(v)
                at1 = u1 if state.active[u1] == 0 else U64(v)
                at2 = u2 if state.active[u2] == 0 else U64(v)
                at3 = u3 if state.active[u3] == 0 else U64(v)
            label0, label1 = state.following[at0], state.following[at1]
            label2, label3 = state.following[at2], state.following[at3]
            if label0 != goal:
                state.active[u0] = 1
            if label1 != goal:
                state.active[u1] = 1
            if label2 != goal:
                state.active[u2] = 1
            if label3 != goal:
                state.active[u3] = 1
            entry += 4 * step

    move_class = gpu_visits.build(gpu_best.MOVERS, WAKING_LANES, go, wake)

    @cuda.jit(device=True)
    def move(state, lists, work, swept, shared, begins, turn):
        offsets, no_turns = begins.offsets, state.active[:0]
        thread, block = np.int64(cuda.threadIdx.x), np.int64(cuda.blockIdx.x)
        blocks, vertices = np.int64(cuda.gridDim.x), state.indptr.size - 1
        if thread == 0:
            shared.words[gpu_best.GOING] = 0
        add_all(state.labels, state.volume, (np.int64(1), state.sizes, state.volumes))
        turn = list_classes(
            state, no_turns, 0, state.seed, 0, lists, np.int64(0), begins, work.arrived, turn
        )
        for sweep in range(MOST_SWEEPS):
            moved = np.int64(0)
            for group in range(lists.classes):
                step = np.int64(sweep * CLASSES + group)
                turn = decide(state, lists, begins, group, step, shared, work, turn)
                moved += work.moved[step]
                if work.moved[step] > 0:
                    move_class(state, lists, offsets, group, step, np.int64(0), shared)
                    turn += 1
                    barrier(work.arrived, turn * blocks)
            if thread == 0 and block == 0:
                swept[0] = sweep + 1
            if FEW * moved <= vertices:
                break
        return turn

    return move


@functools.cache
def build(weights: Weights, index_type: Any) -> Any:
    """Make the kernel that does so, and before this all that moving begins with."""
    threads = gpu_classes.THREADS
    lay_out = gpu_best.build_shared(weights, index_type)
    lay_out_begins = gpu_classes.build_begins()
    move, barrier = build_move(weights, index_type, True), gpu_classes.barrier

    def move_vertices(given, state, lists, work, swept):
        cuda.cg.this_grid()
        blocks = np.int64(cuda.gridDim.x)
        everywhere = np.int64(cuda.blockIdx.x) * threads + np.int64(cuda.threadIdx.x)
        for v in range(everywhere, state.indptr.size - 1, blocks * threads):
            if given.numbers.size == 0:
                label = np.int64(given.labels[v])
            else:
                label = np.int64(given.first[given.labels[given.numbers[v]]])
            initialize(
                v, label, state.labels, state.following, state.sizes, state.volumes, state.active
            )
        barrier(work.arrived, blocks)
        move(state, lists, work, swept, lay_out(), lay_out_begins(), np.int64(1))

    return kernel(
        move_vertices, f"{weights} {threads} {gpu_classes.SLOTS}",
        launch_bounds=(threads, gpu_best.BLOCKS),
    )  # fmt: skip
