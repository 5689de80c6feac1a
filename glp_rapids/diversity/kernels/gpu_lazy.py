"""Peeling by lazy counts: of what an item is to have, only as much is looked up as it needs.

Items are the members of all large ego-networks of a batch (to cores; each is to know ``need``
others) or their edges (to trusses; each is to be in ``need`` triangles). Whom a member may know,
or what may be a triangle, are its *candidates*, in the order of their vertices. Looking them up is
what costs, and where an ego-network is dense, the first few are enough: so an item looks at its
candidates until it has found ``need`` and remembers how far it came. What an item that goes had
part in is counted off from those that had found it; who falls short goes on from where it was. No
candidate is looked up twice but by those that go, once more: this never takes more than twice the
full counts. At k = 4, where few go, it takes 2.6 lookups an edge on uk-2007-100k, which is 35 times
less than the full counts, and 3 to 5 on a Kronecker graph, 40 times less.

In a round every item to be looked at goes on, first alone, and, if it comes to no end so soon, with
all lanes of a group; then those that fell short are counted off. Whatever goes in a round counts as
there until its end, so nothing depends on the order within one. The first look of all, where most
of the work is, has a launch of its own, of many threads with few registers; the rest is one more,
in which grid barriers part the rounds. The host is not asked.

Launch of the second: cooperative, as many blocks of ``threads`` as there is room for. Degrees: any.
Shared memory: 12 bytes a group of lanes.

After the edge-deletion of Cohen, "Trusses" (2008), and the watched literals of Moskewicz et al.,
"Chaff" (2001).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from glp_rapids.jit.cuda import cuda, load_fresh
from glp_rapids.jit.primitives import grid_barrier

Array = Any

THREADS = 128
LANES = 32  # threads that go on with one item together
NEVER = np.int32((1 << 31) - 1)
GONE, GONE_LONG, TODO, HEAVY = range(4)
COUNTS = 4  # of a round
UNSEEN = np.int32(-1)  # the position of an item that has enough, as is known without a look at any


class Limits(NamedTuple):
    """How many candidates are whose."""

    alone: int  # a thread's that looks at them by itself, and as many again for each it needs
    most_alone: int  # whatever it needs
    long: int  # a group's; of more they are those of all threads of a block


LIMITS = Limits(32, 512, 1024)


class State(NamedTuple):
    """What is known of every item, and lists of them."""

    position: Array  # how many of its candidates were looked at; UNSEEN
    found: Array  # how many of these are there and were hits; UNSEEN: as many as it has at least
    removed: Array  # the round in which it went; NEVER
    gone: Array  # in this round: from the front, and those of many candidates from behind
    todo: Array  # that have less than they need now
    heavy: Array  # that are not done with what a thread looks at


class Control(NamedTuple):
    """What the blocks tell one another: int64 words on the device."""

    arrived: Array  # one: the blocks that came to a barrier
    counts: Array  # of three rounds, the lengths of the lists


def new_control(xp: Any) -> Control:
    """Make the words of a launch, in one array."""
    words = xp.zeros(1 + 3 * COUNTS, np.int64)
    return Control(words[:1], words[1:])


def new_state(xp: Any, items: int, most: int) -> State:
    """Make the state of so many items, of which at most ``most`` can be in a list."""
    index_type = np.int32 if items < 2**31 else np.int64
    position, found = xp.zeros(items, np.int32), xp.zeros(items, np.int32)
    lists = (xp.empty(most, index_type) for _ in range(3))
    return State(position, found, xp.full(items, NEVER, np.int32), *lists)


@cuda.jit(device=True)
def push(items, counts, which, turn, item):
    """Append an item to a list of the round."""
    items[cuda.atomic.add(counts, turn % 3 * COUNTS + which, np.int64(1))] = item


@cuda.jit(device=True)
def count_off(state, control, item, need, turn):
    """Take one from what an item has found; who falls short for that is to go on."""
    if cuda.atomic.sub(state.found, item, np.int32(1)) == need:
        push(state.todo, control.counts, TODO, turn, item)


@functools.cache
def build_look(
    limits: Limits, candidates: Callable, is_hit: Callable, remove: Callable
) -> tuple[Callable, ...]:
    """Make the functions by which a thread looks at an item, and ends that.

    ``candidates(graph, item, row)``: how many it has, and five numbers by which to find them;
    ``is_hit(graph, removed, rows, candidate, turn)``; ``remove(graph, removed, item, rows, turn)``.
    """
    alone_at_least, alone_at_most, long = limits

    @cuda.jit(device=True)
    def finish(graph, state, control, item, rows, need, turn, position, count):
        """Note how far an item came, and what follows from that."""
        state.position[item] = position
        state.found[item] = count
        if count >= need:
            return
        if position < rows[0]:
            push(state.heavy, control.counts, HEAVY, turn, item)
            return
        remove(graph, state.removed, item, rows, turn)
        if rows[0] <= long:
            push(state.gone, control.counts, GONE, turn, item)
        else:
            place = cuda.atomic.add(control.counts, turn % 3 * COUNTS + GONE_LONG, np.int64(1))
            state.gone[state.gone.size - 1 - place] = item

    @cuda.jit(device=True)
    def alone(graph, state, control, item, row, need, turn):
        """Go on with an item, one candidate after another, up to so many."""
        rows = candidates(graph, item, row)
        position = np.int64(state.position[item])
        count = state.found[item]
        if position < 0:  # none was looked at, and those that were known without have got too few
            position, count = np.int64(0), np.int32(0)
        budget = min(alone_at_least * (1 + need), np.int64(alone_at_most))
        last = min(rows[0], position + budget)
        while position < last and count < need:
            if is_hit(graph, state.removed, rows, position, turn):
                count += 1
            position += 1
        finish(graph, state, control, item, rows, need, turn, position, count)

    return alone, finish


@functools.cache
def build_peel(
    threads: int, lanes: int, limits: Limits, candidates: Callable, is_hit: Callable,
    remove: Callable, take: Callable,
) -> Callable:  # fmt: skip
    """Make the function that peels after the first look, of the functions that make up an item.

    ``take(graph, state, control, item, lane, lanes, need, turn)`` counts an item off.
    """
    groups = threads // lanes
    counters = 3 * groups
    alone, finish = build_look(limits, candidates, is_hit, remove)

    @cuda.jit(device=True)
    def together(graph, state, control, number, need, turn):
        """Go on with the items of the list ``heavy``, each by a group of lanes, to the end.

        All groups of a block take a step at a time. Of three words a group one counts the hits of
        this step, one was read after the last, and one is cleared for the next.
        """
        hits = cuda.shared.array(counters, np.int32)
        thread = cuda.threadIdx.x
        group, lane = thread // lanes, thread % lanes
        for i in range(thread, counters, threads):
            hits[i] = 0
        cuda.syncthreads()
        place = np.int64(cuda.blockIdx.x) * groups + group
        item, position, count, step = np.int64(0), np.int64(0), np.int64(0), 0
        zero = np.int64(0)
        rows = (zero, zero, zero, zero, zero, zero)
        busy = False
        while True:
            if not busy and place < number:
                item = np.int64(state.heavy[place])
                place += np.int64(cuda.gridDim.x) * groups
                rows = candidates(graph, item, np.int64(-1))
                position, count = np.int64(state.position[item]), np.int64(state.found[item])
                busy = True
            if (
                busy
                and position + lane < rows[0]
                and is_hit(graph, state.removed, rows, position + lane, turn)
            ):
                cuda.atomic.add(hits, step * groups + group, np.int32(1))
            if not cuda.syncthreads_or(np.int32(busy)):
                break
            if busy:
                count += hits[step * groups + group]
                position = min(position + lanes, rows[0])
                if lane == 0:
                    hits[(step + 2) % 3 * groups + group] = 0
                if count >= need or position == rows[0]:
                    if lane == 0:
                        finish(graph, state, control, item, rows, need, turn, position, count)
                    busy = False
            step = (step + 1) % 3

    @cuda.jit(device=True)
    def peel(graph, state, control, need):
        thread = np.int64(cuda.threadIdx.x)
        block, blocks = np.int64(cuda.blockIdx.x), np.int64(cuda.gridDim.x)
        group, lane = block * groups + thread // lanes, thread % lanes
        turn, number, barriers = np.int64(0), np.int64(0), np.int64(0)
        while True:
            now = turn % 3 * COUNTS
            if block == 0 and thread < COUNTS:
                control.counts[(turn + 1) % 3 * COUNTS + thread] = 0
            for place in range(block * threads + thread, number, blocks * threads):
                item = np.int64(state.todo[place])
                alone(graph, state, control, item, np.int64(-1), need, turn)
            if turn > 0:
                barriers += blocks
                grid_barrier(control.arrived, barriers)
            heavy = load_fresh(control.counts, now + HEAVY)
            if heavy > 0:
                together(graph, state, control, heavy, need, turn)
                barriers += blocks
                grid_barrier(control.arrived, barriers)
            gone = load_fresh(control.counts, now + GONE)
            gone_long = load_fresh(control.counts, now + GONE_LONG)
            if gone + gone_long == 0:
                return
            for place in range(group, gone, blocks * groups):
                item = np.int64(state.gone[place])
                take(graph, state, control, item, lane, np.int64(lanes), need, turn)
            for place in range(block, gone_long, blocks):
                item = np.int64(state.gone[state.gone.size - 1 - place])
                take(graph, state, control, item, thread, np.int64(threads), need, turn)
            barriers += blocks
            grid_barrier(control.arrived, barriers)
            number = load_fresh(control.counts, now + TODO)
            if number == 0:
                return
            turn += 1

    return peel
