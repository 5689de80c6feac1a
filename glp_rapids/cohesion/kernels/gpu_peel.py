"""Peeling a graph to its cores or trusses: all levels in one persistent launch.

Vertices (by degree) or edges (by the triangles over them) that fall short of a level are peeled,
and take one from those around them. Each is peeled once, so one queue of them all, in the order of
peeling, is also the frontier: a round goes through what the last one appended. Between two rounds
the blocks meet at a grid barrier; the host is not asked.

Launch: cooperative, as many blocks of THREADS as there is room for, at most 8 a multiprocessor;
LANES threads share the row of one that is peeled. Degrees: any. Shared memory: none. Registers:
56 for cores, 67 for trusses.

Cores: Batagelj and Zaversnik, "An O(m) algorithm for cores decomposition of networks" (2003), in
rounds. Trusses: Wang and Cheng, "Truss decomposition in massive networks", PVLDB 5 (2012),
likewise.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np

from glp_rapids.jit.cuda import cuda, kernel, load_fresh
from glp_rapids.jit.primitives import grid_barrier, lower_bound, row_of

Array = Any

THREADS = 256
LANES = 32  # threads that share one row
NEVER = np.int32((1 << 31) - 1)


class Control(NamedTuple):
    """What the blocks tell one another: int64 words on the device.

    A round reads of three what the last one wrote, writes the next, and clears the one after.
    """

    arrived: Array  # one: the blocks that came to a barrier
    queued: Array  # three: how many a round peeled
    least: Array  # three: the least that any of those left has


def new_control(xp: Any) -> Control:
    """Make the words of a launch, in one array."""
    words = np.zeros(7, np.int64)
    words[4:] = NEVER
    words = xp.asarray(words)
    return Control(words[:1], words[1:4], words[4:])


@cuda.jit(device=True)
def _clear(control, turn):
    if cuda.blockIdx.x == 0 and cuda.threadIdx.x == 0:
        control.queued[(turn + 2) % 3] = 0
        control.least[(turn + 2) % 3] = NEVER


@cuda.jit(device=True)
def _push(queue, control, turn, tail, item):
    queue[tail + cuda.atomic.add(control.queued, (turn + 1) % 3, np.int64(1))] = item


@cuda.jit(device=True)
def _note_least(control, turn, least):
    """Lower the least for the next round; it is looked at first, since most change nothing."""
    if least != NEVER and load_fresh(control.least, (turn + 1) % 3) > least:
        cuda.atomic.min(control.least, (turn + 1) % 3, np.int64(least))


@cuda.jit(device=True)
def _decrement(left, item, level):
    """Take one from an item; tell whether it is to be peeled for that, which happens once."""
    if left[item] > level:
        before = cuda.atomic.sub(left, item, np.int32(1))
        if before == level + 1:
            return True
        if before <= level:  # was peeled meanwhile
            cuda.atomic.add(left, item, np.int32(1))
    return False


@functools.cache
def build_core(threads: int, lanes: int) -> Any:
    """Make the kernel that peels vertices by degree.

    ``left``: the degrees; ``core``: -1, and in the end the level at which a vertex was peeled, or
    ``highest`` + 1.
    """

    def peel_core(indptr, indices, left, core, queue, control, lowest, highest):
        cuda.cg.this_grid()
        thread = np.int64(cuda.blockIdx.x) * threads + cuda.threadIdx.x
        blocks = np.int64(cuda.gridDim.x)
        all_threads = blocks * threads
        lane, group, groups = thread % lanes, thread // lanes, all_threads // lanes
        head, tail, turn, level = np.int64(0), np.int64(0), np.int64(0), np.int32(lowest)
        while level <= highest and tail < core.size:
            _clear(control, turn)
            least = NEVER
            for v in range(thread, core.size, all_threads):
                if core[v] < 0:
                    if left[v] <= level:
                        core[v] = level
                        _push(queue, control, turn, tail, v)
                    else:
                        least = min(least, left[v])
            _note_least(control, turn, least)
            turn += 1
            grid_barrier(control.arrived, turn * blocks)
            head, tail = tail, tail + load_fresh(control.queued, turn % 3)
            if head == tail:
                level = max(level + 1, np.int32(load_fresh(control.least, turn % 3)))
                continue
            while head < tail:
                _clear(control, turn)
                for place in range(head + group, tail, groups):
                    v = queue[place]
                    for entry in range(indptr[v] + lane, indptr[v + 1], lanes):
                        w = indices[entry]
                        if _decrement(left, w, level):
                            core[w] = level
                            _push(queue, control, turn, tail, w)
                turn += 1
                grid_barrier(control.arrived, turn * blocks)
                head, tail = tail, tail + load_fresh(control.queued, turn % 3)
            level += 1
        for v in range(thread, core.size, all_threads):
            if core[v] < 0:
                core[v] = highest + 1

    return kernel(peel_core, f"{threads} {lanes}")


@functools.cache
def build_truss(threads: int, lanes: int) -> Any:
    """Make the kernel that peels edges by the triangles over them.

    An edge is the entry of its smaller end; ``edge`` names it for both entries. ``left``: the
    triangles over each edge; ``peeled``: NEVER, then the round in which an edge was peeled;
    ``truss``: 0 for edges, -1 for their other entries, and in the end an edge's trussness, or
    ``highest`` + 3. Levels are numbers of triangles.

    Of a triangle of which several edges are peeled in one round, the smallest of these takes one
    from the others.
    """

    def peel_truss(
        indptr, indices, rows, edge, left, peeled, truss, queue, control, edges, lowest, highest
    ):
        cuda.cg.this_grid()
        thread = np.int64(cuda.blockIdx.x) * threads + cuda.threadIdx.x
        blocks = np.int64(cuda.gridDim.x)
        all_threads = blocks * threads
        lane, group, groups = thread % lanes, thread // lanes, all_threads // lanes
        head, tail, turn, level = np.int64(0), np.int64(0), np.int64(0), np.int32(lowest)
        while level <= highest and tail < edges:
            _clear(control, turn)
            least = NEVER
            for e in range(thread, truss.size, all_threads):
                if truss[e] == 0:
                    if left[e] <= level:
                        truss[e] = level + 2
                        peeled[e] = turn + 1
                        _push(queue, control, turn, tail, e)
                    else:
                        least = min(least, left[e])
            _note_least(control, turn, least)
            turn += 1
            grid_barrier(control.arrived, turn * blocks)
            head, tail = tail, tail + load_fresh(control.queued, turn % 3)
            if head == tail:
                level = max(level + 1, np.int32(load_fresh(control.least, turn % 3)))
                continue
            while head < tail:
                _clear(control, turn)
                for place in range(head + group, tail, groups):
                    e = queue[place]
                    short, long = rows[e], indices[e]
                    if indptr[long + 1] - indptr[long] < indptr[short + 1] - indptr[short]:
                        short, long = long, short
                    first, last = indptr[long], indptr[long + 1]
                    for entry in range(indptr[short] + lane, indptr[short + 1], lanes):
                        w = indices[entry]
                        f = edge[entry]
                        if peeled[f] < turn:
                            continue
                        position = lower_bound(indices, first, last, w)
                        if position == last or indices[position] != w:
                            continue
                        g = edge[position]
                        if peeled[g] < turn:
                            continue
                        f_goes, g_goes = peeled[f] == turn, peeled[g] == turn
                        takes_f = not f_goes and (not g_goes or e < g)
                        takes_g = not g_goes and (not f_goes or e < f)
                        if takes_f and _decrement(left, f, level):
                            truss[f] = level + 2
                            peeled[f] = turn + 1
                            _push(queue, control, turn, tail, f)
                        if takes_g and _decrement(left, g, level):
                            truss[g] = level + 2
                            peeled[g] = turn + 1
                            _push(queue, control, turn, tail, g)
                turn += 1
                grid_barrier(control.arrived, turn * blocks)
                head, tail = tail, tail + load_fresh(control.queued, turn % 3)
            level += 1
        for e in range(thread, truss.size, all_threads):
            if truss[e] == 0:
                truss[e] = highest + 3

    return kernel(peel_truss, f"{threads} {lanes}")


@functools.cache
def build_edges(threads: int) -> Any:
    """Make the kernel that finds each entry's row, and the entry of its edge's smaller end.

    Launch: a thread an entry. Degrees: any. Registers: 20.
    """

    def find_edges(indptr, indices, rows, edge):
        entry = np.int64(cuda.blockIdx.x) * threads + cuda.threadIdx.x
        if entry < indices.size:
            u, v = row_of(indptr, entry), indices[entry]
            rows[entry] = u
            edge[entry] = entry if u < v else lower_bound(indices, indptr[v], indptr[v + 1], u)

    return kernel(find_edges, str(threads))
