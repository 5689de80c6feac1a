"""Refinement on a GPU: all sweeps of a level in one persistent launch, class after class.

The rules are those of `refining`, to the bit. A class takes two steps with grid barriers between
them: rows of lone vertices are evaluated (`gpu_rows`); those that join a part do, and the weight
from it to the rest of its community is brought up to date. Where its neighbours are is asked of
``following``, which is complete by then.

Launch: cooperative, as many blocks of THREADS as there is room for. Degrees: any, as in
`gpu_moving`. Shared memory: 32 KB, where sums take 64 bits 41 KB. Registers: 64, with 440 to 464
bytes of a thread in memory.
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
from glp_rapids.communities.schedule import CLASSES
from glp_rapids.jit.cuda import add_only, cuda, gpu_target, kernel

Array = Any
JOINED = 255
LANES = 8

gain = gpu_target().compile(rules.gain)
exceeds = gpu_target().compile(rules.exceeds)
draw = gpu_target().compile(rules.draw)
noisy = gpu_target().compile(rules.noisy)


class Refining(NamedTuple):
    """A level, its communities and their parts; see `refining.Parts`.

    ``joined``: the step, from 1 on, in which a vertex joined a part.
    """

    indptr: Array
    indices: Array
    weights: Array
    unit: Any
    volume: Array
    words: Array
    constant: Any
    communities: Array
    whole: Array  # volumes of the communities; zeros, which are added to
    labels: Array
    turns: Array
    volumes: Array
    outward: Array
    joined: Array
    following: Array  # the parts after the class that is updated
    seed: Any


@cuda.jit(device=True)
def initialize(v, volume, labels, volumes, outward, joined, following):
    """Bring what is known of a vertex, and of its part, to where refining begins."""
    labels[v], following[v], volumes[v] = v, v, volume
    outward[v], joined[v] = 0, 0


@functools.cache
def rule(weighted: bool) -> gpu_best.Rule:
    """Make the functions of a row, whose entries have weights or not."""

    @cuda.jit(device=True)
    def wanted(v, state):
        if state.turns[U64(v)] == JOINED:
            return False
        mine = state.volume[U64(v)]
        others = state.whole[U64(state.communities[U64(v)])] - mine
        high, _ = gain(state.outward[U64(v)], state.constant, mine, others)
        return high >= 0

    @cuda.jit(device=True)
    def seen(v, state):
        pass

    @cuda.jit(device=True)
    def own(v, state):
        return np.int64(state.communities[U64(v)])

    @cuda.jit(device=True)
    def entry_label(v, own, entry, state):
        u = U64(state.indices[U64(entry)])
        if state.communities[u] != own or state.turns[u] == state.turns[U64(v)]:
            return np.int64(gpu_best.NOBODY)
        if weighted and state.weights[U64(entry)] <= 0:
            return np.int64(gpu_best.NOBODY)
        return np.int64(state.labels[u])

    @cuda.jit(device=True)
    def score(v, own, label, weight, state):
        mine, others = state.volume[U64(v)], state.volumes[U64(label)]
        drawn = draw(state.words[U64(v)], state.words[U64(label)], state.seed)
        high, low = gain(weight, noisy(state.constant, drawn), mine, others)
        good = exceeds(high, low, np.int64(0), np.uint64(0))
        if not good:  # else the true gain is no less
            true_high, true_low = gain(weight, state.constant, mine, others)
            good = exceeds(true_high, true_low, np.int64(0), np.uint64(0))
        if good:
            outward, whole = state.outward[U64(label)], state.whole[U64(own)]
            outward_high, _ = gain(outward, state.constant, others, whole - others)
            good = outward_high >= 0
        return good, high, low

    @cuda.jit(device=True)
    def before(v, label, other, state):
        drawn = draw(state.words[U64(v)], state.words[U64(label)], state.seed)
        other_drawn = draw(state.words[U64(v)], state.words[U64(other)], state.seed)
        return drawn < other_drawn or (drawn == other_drawn and label < other)

    @cuda.jit(device=True)
    def goal(v, own, best, high, low, to_own, state):
        return best

    @cuda.jit(device=True)
    def goes(v, goal, step, state):
        state.following[U64(v)] = goal
        state.joined[U64(v)] = step + 1

    return gpu_best.Rule(wanted, seen, entry_label, own, False, score, before, goal, goes)


@functools.cache
def build_refine(weights: Weights, index_type: Any) -> Callable:
    """Make the function that splits communities into well-connected parts; all threads call.

    ``labels`` and ``following`` begin as the vertices themselves, ``volumes`` as ``volume``,
    ``outward`` and ``joined`` as zeros. It returns the next barrier's turn.
    """
    weighted = weights.listed
    decide = gpu_rows.build(weights, index_type, rule(weighted))
    list_classes, barrier = gpu_classes.list_classes, gpu_classes.barrier
    add_all = gpu_sums.build_all(gpu_sums.to_total)

    @cuda.jit(device=True)
    def inside(state, v, own, entry):
        """Return the weight of an entry inside the community, or 0."""
        weight, u = np.int64(0), state.indices[U64(entry)]
        if u != v and state.communities[U64(u)] == own:
            weight = np.int64(1)
            if weighted:
                weight = np.int64(state.weights[U64(entry)])
        return weight

    @cuda.jit(device=True)
    def add_inside(state, v, goal, stamp, entry, past, step):
        own, total = state.communities[v], np.int64(0)
        while entry < past:
            total += inside(state, v, own, entry)
            entry += step
        if total != 0:
            add_only(state.outward, v, total * state.unit)

    @cuda.jit(device=True)
    def change_by(state, v, own, goal, stamp, entry):
        """Return by how much an entry changes the weight."""
        sign, u = np.int64(0), state.indices[U64(entry)]
        if u != v and state.communities[U64(u)] == own:
            if state.following[U64(u)] != goal:
                sign = np.int64(1)
            elif state.joined[U64(u)] != stamp:
                sign = np.int64(-1)  # of two that join together neither was counted before
        if weighted:
            sign *= np.int64(state.weights[U64(entry)])
        return sign

    @cuda.jit(device=True)
    def add_change(state, v, goal, stamp, entry, past, step):
        own, change = state.communities[v], np.int64(0)
        while entry < past:
            change += change_by(state, v, own, goal, stamp, entry)
            entry += step
        if change != 0:
            add_only(state.outward, goal, change * state.unit)

    @cuda.jit(device=True)
    def pass_by(state, v, goal, going):
        pass

    @cuda.jit(device=True)
    def join(state, v, goal, going):
        if not going:
            return
        state.labels[v] = goal
        state.turns[v] = JOINED
        state.turns[goal] = JOINED
        state.volumes[v] = 0  # it was alone in its part
        state.outward[v] = 0
        add_only(state.volumes, goal, state.volume[v])

    weigh_class = gpu_visits.build(gpu_best.ALL, LANES, pass_by, add_inside)
    join_class = gpu_visits.build(gpu_best.MOVERS, LANES, join, add_change)

    @cuda.jit(device=True)
    def refine(state, lists, work, sweeps, shared, begins, turn):
        offsets, blocks = begins.offsets, np.int64(cuda.gridDim.x)
        if cuda.threadIdx.x == 0:
            shared.words[gpu_best.GOING] = 0
        add_all(state.communities, state.volume, state.whole)
        for sweep in range(sweeps):
            turn = list_classes(
                state, state.turns, JOINED, state.seed, sweep + 1, lists, sweep, begins,
                work.arrived, turn,
            )  # fmt: skip
            if sweep == 0:
                dealt = np.int64(0)
                for group in range(lists.classes):
                    dealt = weigh_class(
                        state, lists, offsets, group, np.int64(0), dealt, shared
                    )
                turn += 1
                barrier(work.arrived, turn * blocks)
            joined = np.int64(0)
            for group in range(lists.classes):
                step = np.int64(sweep * CLASSES + group)
                turn = decide(state, lists, begins, group, step, shared, work, turn)
                joins = work.moved[step]
                if joins > 0:
                    join_class(
                        state, lists, offsets, group, step + 1, np.int64(0), shared
                    )
                    turn += 1
                    barrier(work.arrived, turn * blocks)
                joined += joins
            if joined == 0:
                break
        return turn

    return refine


@functools.cache
def build(weights: Weights, index_type: Any) -> Any:
    """Make the kernel that does so, and before this all that refining begins with."""
    threads = gpu_classes.THREADS
    lay_out = gpu_best.build_shared(weights, index_type)
    lay_out_begins = gpu_classes.build_begins()
    refine, barrier = build_refine(weights, index_type), gpu_classes.barrier

    def refine_parts(state, lists, work, sweeps):
        cuda.cg.this_grid()
        blocks = np.int64(cuda.gridDim.x)
        everywhere = np.int64(cuda.blockIdx.x) * threads + np.int64(cuda.threadIdx.x)
        for v in range(everywhere, state.indptr.size - 1, blocks * threads):
            initialize(
                v, state.volume[v], state.labels, state.volumes, state.outward, state.joined,
                state.following,
            )  # fmt: skip
            state.whole[v] = 0
        barrier(work.arrived, blocks)
        refine(state, lists, work, sweeps, lay_out(), lay_out_begins(), np.int64(1))

    return kernel(
        refine_parts, f"{weights} {threads} {gpu_classes.SLOTS}",
        launch_bounds=(threads, gpu_best.BLOCKS),
    )  # fmt: skip
