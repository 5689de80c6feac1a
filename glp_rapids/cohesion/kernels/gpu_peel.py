"""Peeling a CSR to its cores and trusses, all levels in one launch.

Whoever has too little falls, and takes something from those around; each falls once, so one queue
of them all, in the order of falling, is also the record of what is to be done. Between the rounds
of a level the blocks meet on the device; the host is not asked.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from glp_rapids.jit.cuda import cuda, kernel, load_fresh
from glp_rapids.jit.primitives import grid_barrier, lower_bound, row_of

THREADS = 256
LANES = 32  # threads that share one row
NEVER = np.int32((1 << 31) - 1)
# Words of control: the barrier, then for three rounds in turn how many fell and the least that
# anybody has. A round reads what the last one wrote, writes the next, and clears the one after.
BARRIER, FELL, LEAST, WORDS = 0, 1, 4, 7


@cuda.jit(device=True)
def _clear(control, turn):
    if cuda.blockIdx.x == 0 and cuda.threadIdx.x == 0:
        control[FELL + (turn + 2) % 3] = 0
        control[LEAST + (turn + 2) % 3] = NEVER


@cuda.jit(device=True)
def _fall(queue, control, turn, tail, who):
    queue[tail + cuda.atomic.add(control, FELL + (turn + 1) % 3, np.int64(1))] = who


@cuda.jit(device=True)
def _taken_from(left, who, level):
    """Take one from somebody; tell whether that makes them fall, which happens once."""
    if left[who] > level:
        before = cuda.atomic.sub(left, who, np.int32(1))
        if before == level + 1:
            return True
        if before <= level:  # had fallen meanwhile
            cuda.atomic.add(left, who, np.int32(1))
    return False


@functools.cache
def build_core(threads: int, lanes: int) -> Any:
    """Make the kernel that peels vertices by degree.

    Launch: as many blocks as there is room for, together; 56 registers. ``left``: the degrees;
    ``core``: -1, and in the end the level at which a vertex fell, or highest + 1. Any degrees.
    """

    def peel_core(indptr, indices, left, core, queue, control, lowest, highest):
        cuda.cg.this_grid()
        thread = np.int64(cuda.blockIdx.x) * threads + cuda.threadIdx.x
        everybody, blocks = np.int64(cuda.gridDim.x) * threads, np.int64(cuda.gridDim.x)
        lane, group, groups = thread % lanes, thread // lanes, everybody // lanes
        head, tail, turn, level = np.int64(0), np.int64(0), np.int64(0), np.int32(lowest)
        while level <= highest and tail < core.size:
            _clear(control, turn)
            least = NEVER
            for v in range(thread, core.size, everybody):
                if core[v] < 0:
                    if left[v] <= level:
                        core[v] = level
                        _fall(queue, control, turn, tail, v)
                    else:
                        least = min(least, left[v])
            if least != NEVER and load_fresh(control, LEAST + (turn + 1) % 3) > least:
                cuda.atomic.min(control, LEAST + (turn + 1) % 3, np.int64(least))
            turn += 1
            grid_barrier(control, turn * blocks)
            head, tail = tail, tail + load_fresh(control, FELL + turn % 3)
            if head == tail:
                level = max(level + 1, np.int32(load_fresh(control, LEAST + turn % 3)))
                continue
            while head < tail:
                _clear(control, turn)
                for place in range(head + group, tail, groups):
                    v = queue[place]
                    for entry in range(indptr[v] + lane, indptr[v + 1], lanes):
                        w = indices[entry]
                        if _taken_from(left, w, level):
                            core[w] = level
                            _fall(queue, control, turn, tail, w)
                turn += 1
                grid_barrier(control, turn * blocks)
                head, tail = tail, tail + load_fresh(control, FELL + turn % 3)
            level += 1
        for v in range(thread, core.size, everybody):
            if core[v] < 0:
                core[v] = highest + 1

    return kernel(peel_core, f"{threads} {lanes}")


@functools.cache
def build_truss(threads: int, lanes: int) -> Any:
    """Make the kernel that peels edges by the triangles over them.

    Launch: as many blocks as there is room for, together; 67 registers. An edge is the entry of its
    smaller end; ``edge`` gives it for both entries. ``left``: the triangles over each edge;
    ``fell``: NEVER, and while it runs the round in which an edge fell; ``truss``: 0 for edges, -1
    for their other entries, and in the end an edge's trussness, or highest + 3. Levels are numbers
    of triangles.

    Of a triangle whose edges fall in one round the smallest of these takes from the others.
    """

    def peel_truss(
        indptr, indices, rows, edge, left, fell, truss, queue, control, edges, lowest, highest
    ):
        cuda.cg.this_grid()
        thread = np.int64(cuda.blockIdx.x) * threads + cuda.threadIdx.x
        everybody, blocks = np.int64(cuda.gridDim.x) * threads, np.int64(cuda.gridDim.x)
        lane, group, groups = thread % lanes, thread // lanes, everybody // lanes
        head, tail, turn, level = np.int64(0), np.int64(0), np.int64(0), np.int32(lowest)
        while level <= highest and tail < edges:
            _clear(control, turn)
            least = NEVER
            for e in range(thread, truss.size, everybody):
                if truss[e] == 0:
                    if left[e] <= level:
                        truss[e] = level + 2
                        fell[e] = turn + 1
                        _fall(queue, control, turn, tail, e)
                    else:
                        least = min(least, left[e])
            if least != NEVER and load_fresh(control, LEAST + (turn + 1) % 3) > least:
                cuda.atomic.min(control, LEAST + (turn + 1) % 3, np.int64(least))
            turn += 1
            grid_barrier(control, turn * blocks)
            head, tail = tail, tail + load_fresh(control, FELL + turn % 3)
            if head == tail:
                level = max(level + 1, np.int32(load_fresh(control, LEAST + turn % 3)))
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
                        if fell[f] < turn:
                            continue
                        position = lower_bound(indices, first, last, w)
                        if position == last or indices[position] != w:
                            continue
                        g = edge[position]
                        if fell[g] < turn:
                            continue
                        f_falls, g_falls = fell[f] == turn, fell[g] == turn
                        takes_f = not f_falls and (not g_falls or e < g)
                        takes_g = not g_falls and (not f_falls or e < f)
                        if takes_f and _taken_from(left, f, level):
                            truss[f] = level + 2
                            fell[f] = turn + 1
                            _fall(queue, control, turn, tail, f)
                        if takes_g and _taken_from(left, g, level):
                            truss[g] = level + 2
                            fell[g] = turn + 1
                            _fall(queue, control, turn, tail, g)
                turn += 1
                grid_barrier(control, turn * blocks)
                head, tail = tail, tail + load_fresh(control, FELL + turn % 3)
            level += 1
        for e in range(thread, truss.size, everybody):
            if truss[e] == 0:
                truss[e] = highest + 3

    return kernel(peel_truss, f"{threads} {lanes}")


@functools.cache
def build_edges(threads: int) -> Any:
    """Make the kernel that finds each entry's row, and the entry of its edge's smaller end.

    Launch: a thread an entry. Any degrees.
    """

    def find_edges(indptr, indices, rows, edge):
        entry = np.int64(cuda.blockIdx.x) * threads + cuda.threadIdx.x
        if entry < indices.size:
            u, v = row_of(indptr, entry), indices[entry]
            rows[entry] = u
            edge[entry] = entry if u < v else lower_bound(indices, indptr[v], indptr[v + 1], u)

    return kernel(find_edges, str(threads))
