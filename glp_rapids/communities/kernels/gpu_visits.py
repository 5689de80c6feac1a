"""Going along the rows of a class, of all of them or of those that go, by many threads each."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from glp_rapids.communities.kernels import gpu_classes
from glp_rapids.communities.kernels.gpu_best import ALL, NOBODY
from glp_rapids.jit.cuda import cuda


def build(
    which: int, lanes: int, own_hubs: Callable, arrive: Callable, along: Callable
) -> Callable:
    """Make the function that visits the members of a class: ALL, or the MOVERS.

    ``arrive`` is called once for each, with where it goes; ``along`` by several threads, each with
    the entries that it goes along: the first, the end and the step. Short rows have ``lanes``
    threads, long ones a block, and hubs are cut into pieces.
    """
    threads, sizes, hubs = gpu_classes.THREADS, gpu_classes.SIZES, gpu_classes.HUBS
    piece_size, first_piece = gpu_classes.PIECE, gpu_classes.first_piece

    @cuda.jit(device=True)
    def goal_at(lists, place):
        if which == ALL:
            return np.int64(NOBODY)
        return np.int64(lists.goals[place])

    @cuda.jit(device=True)
    def visit_row(state, v, goal, stamp, thread, step):
        if thread == 0:
            arrive(state, v, goal)
        along(state, v, goal, stamp, state.indptr[v] + thread, state.indptr[v + 1], step)

    @cuda.jit(device=True)
    def visit(state, lists, offsets, group, stamp, shared):
        thread, block = np.int64(cuda.threadIdx.x), np.int64(cuda.blockIdx.x)
        blocks = np.int64(cuda.gridDim.x)
        begin, past = offsets[group * sizes], offsets[(group + 1) * sizes]
        long, first_hub = offsets[group * sizes + hubs - 1], offsets[group * sizes + hubs]
        row, rows = (block * threads + thread) // lanes, blocks * threads // lanes
        for place in range(begin + row, long, rows):
            goal = goal_at(lists, place)
            if which == ALL or goal >= 0:
                visit_row(state, np.int64(lists.members[place]), goal, stamp, thread % lanes, lanes)
        for place in range(long + block, first_hub, blocks):
            goal = goal_at(lists, place)
            if which == ALL or goal >= 0:
                visit_row(state, np.int64(lists.members[place]), goal, stamp, thread, threads)
        for start in range(first_hub, past, threads):
            for item in range(own_hubs(state, lists, start, past, which, shared)):
                place = shared.listed[item]
                v, goal = np.int64(lists.members[place]), goal_at(lists, place)
                piece = first_piece(place, block, blocks)
                if thread == 0 and piece == 0:
                    arrive(state, v, goal)
                entry, end = state.indptr[v] + piece_size * piece, state.indptr[v + 1]
                while entry < end:
                    past_piece = min(entry + piece_size, end)
                    along(state, v, goal, stamp, entry + thread, past_piece, threads)
                    entry += piece_size * blocks
            cuda.syncthreads()

    return visit
