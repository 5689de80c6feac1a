"""Going along the rows of a class, of all of them or of those that go, by many threads each."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from glp_rapids.communities.kernels import gpu_classes
from glp_rapids.communities.kernels.gpu_best import ALL, NOBODY
from glp_rapids.communities.kernels.gpu_tables import U64
from glp_rapids.jit.cuda import ask_for, cuda
from glp_rapids.jit.warps import sync_warp


def build(which: int, lanes: int, arrive: Callable, along: Callable) -> Callable:
    """Make the function that visits the members of a class: ALL, or the MOVERS.

    ``arrive`` is called once for each, by a lane of a warp that calls as a whole: with where it
    goes and, last, whether there is one; ``along`` by several threads, each with the entries that
    it goes along: the first, the end and the step. Short rows have ``lanes`` threads, longer ones a
    warp, and hubs are cut into pieces. ``dealt``: how many warps, of all, have rows already; they
    are the last to get more. It returns this.
    """
    threads, sizes, hubs = gpu_classes.THREADS, gpu_classes.SIZES, gpu_classes.HUBS
    warp_size, quotient = gpu_classes.WARP, gpu_classes.quotient
    first_hubs, first_pieces = gpu_classes.FIRST_HUB, gpu_classes.FIRST_PIECE

    @cuda.jit(device=True)
    def goal_at(lists, place):
        if which == ALL:
            return np.int64(NOBODY)
        return np.int64(lists.goals[U64(place)])

    @cuda.jit(device=True)
    def visit_some(state, lists, start, end, of_row, stamp, first, lane, shared):
        """Visit the members of a chunk by a warp: a lane arrives at each, and all go along rows."""
        number_at = quotient(first, warp_size)
        if lane == 0:
            shared.numbers[number_at] = 0
        sync_warp()
        place, going = start + lane, False
        v = goal = np.int64(NOBODY)
        if place < end:
            goal = goal_at(lists, place)
            if which == ALL or goal >= 0:
                going, v = True, np.int64(lists.members[U64(place)])
                at = U64(first + np.int64(cuda.atomic.add(shared.numbers, number_at, np.int32(1))))
                shared.listed[at], shared.labels[at] = v, goal
                ask_for(state.indices, state.indptr[U64(v)])
        arrive(state, v, goal, going)
        sync_warp()
        row = quotient(lane, of_row)
        lane -= row * of_row
        row, last = row + first, first + np.int64(shared.numbers[number_at])
        while row < last:
            v, goal = shared.listed[U64(row)], shared.labels[U64(row)]
            entry, past = state.indptr[U64(v)] + lane, state.indptr[U64(v + 1)]
            along(state, v, goal, stamp, entry, past, of_row)
            row += quotient(warp_size, of_row)
        sync_warp()

    @cuda.jit(device=True)
    def visit(state, lists, offsets, group, stamp, dealt, shared):
        thread, block = np.int64(cuda.threadIdx.x), np.int64(cuda.blockIdx.x)
        blocks = np.int64(cuda.gridDim.x)
        warp, warps = quotient(thread, warp_size), blocks * (threads // warp_size)
        first = warp * warp_size
        lane = thread - first
        warp = warp * blocks + block
        first_hub = offsets[group * sizes + hubs]
        for length in range(2):
            begin, end, of_row = offsets[group * sizes + hubs - 2], first_hub, warp_size
            if length == 1:
                begin, end, of_row = offsets[group * sizes], begin, lanes
            chunk = quotient(end - begin + warps - 1, warps)
            chunk = min(max(chunk, quotient(warp_size, of_row)), warp_size)
            turn = warp - dealt
            if turn < 0:
                turn += warps
            start = begin + turn * chunk
            dealt += quotient(end - begin + chunk - 1, chunk)
            dealt -= quotient(dealt, warps) * warps
            while start < end:
                past_chunk = min(start + chunk, end)
                visit_some(state, lists, start, past_chunk, of_row, stamp, first, lane, shared)
                start += warps * chunk
        piece_of_all = offsets[first_pieces + group] + block
        while piece_of_all < offsets[first_pieces + group + 1]:
            place = np.int64(lists.owners[U64(piece_of_all)])
            v, goal = np.int64(lists.members[U64(place)]), goal_at(lists, place)
            piece = piece_of_all - lists.pieces[offsets[first_hubs + group] + place - first_hub]
            piece_of_all += blocks
            if which == ALL or goal >= 0:
                if thread < warp_size and piece == 0:
                    arrive(state, v, goal, thread == 0)
                entry = state.indptr[v] + lists.lengths.piece * piece
                end = min(entry + lists.lengths.piece, state.indptr[v + 1])
                along(state, v, goal, stamp, entry + thread, end, threads)
        return dealt

    return visit
