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
    threads, longer ones those that evaluate them, and hubs are cut into pieces. ``dealt``: how many
    threads, of all, have a row already; they are the last to get another. It returns this.
    """
    threads, sizes, hubs = gpu_classes.THREADS, gpu_classes.SIZES, gpu_classes.HUBS
    lanes_of, quotient = gpu_classes.lanes_of, gpu_classes.quotient
    first_piece = gpu_classes.first_piece

    @cuda.jit(device=True)
    def goal_at(lists, place):
        if which == ALL:
            return np.int64(NOBODY)
        return np.int64(lists.goals[place])

    @cuda.jit(device=True)
    def visit(state, lists, offsets, group, stamp, dealt, shared):
        thread, block = np.int64(cuda.threadIdx.x), np.int64(cuda.blockIdx.x)
        blocks = np.int64(cuda.gridDim.x)
        all_threads = blocks * threads
        first_hub, past = offsets[group * sizes + hubs], offsets[(group + 1) * sizes]
        for length in range(3):
            begin, end, of_row = offsets[group * sizes], offsets[group * sizes + hubs - 2], lanes
            if length == 1:
                begin, end, of_row = end, offsets[group * sizes + hubs - 1], lanes_of(hubs - 2)
            if length == 2:
                begin, end, of_row = offsets[group * sizes + hubs - 1], first_hub, threads
            unit = block * threads + thread - dealt
            if unit < 0:
                unit += all_threads
            row = quotient(unit, of_row)
            lane, place = unit - row * of_row, begin + row
            rows, taken = quotient(all_threads, of_row), (end - begin) * of_row
            dealt += (taken + threads - 1) & -threads  # whole blocks: threads are a power of two
            if taken >= all_threads:
                dealt = np.int64(0)
            elif dealt >= all_threads:
                dealt -= all_threads
            while place < end:
                goal = goal_at(lists, place)
                if which == ALL or goal >= 0:
                    v = np.int64(lists.members[place])
                    if lane == 0:
                        arrive(state, v, goal)
                    entry = state.indptr[v] + lane
                    along(state, v, goal, stamp, entry, state.indptr[v + 1], of_row)
                place += rows
        for start in range(first_hub, past, threads):
            for item in range(own_hubs(state, lists, start, past, which, shared)):
                place = shared.listed[item]
                v, goal = np.int64(lists.members[place]), goal_at(lists, place)
                piece = first_piece(place, block, blocks)
                if thread == 0 and piece == 0:
                    arrive(state, v, goal)
                entry, end = state.indptr[v] + lists.lengths.piece * piece, state.indptr[v + 1]
                while entry < end:
                    past_piece = min(entry + lists.lengths.piece, end)
                    along(state, v, goal, stamp, entry + thread, past_piece, threads)
                    entry += lists.lengths.piece * blocks
            cuda.syncthreads()
        return dealt

    return visit
