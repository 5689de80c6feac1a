"""Rows that are needed come from pinned host memory into a slot of the buffer, read over the bus.

The lists of a strip lie side by side on the host, bit-packed, in the order of the plan. A warp
looks at 32 vertices, at eight where rows are long, and reads the words of those that are active,
each to where the whole strip would have it: so nothing is said to the evaluation. Rows that blocks
evaluate are read in pieces of 1024 entries, by a warp each, which finds whose rows they are. If
several rows are wanted that lie near one another, all that is between is read with them: short
scattered reads reach 43 M rows a second, sequential ones 49 GB/s (EMOGI, VLDB 2020, section 4:
merged and aligned reads). Each lane has four loads on the way, of neighbouring lines.

Launch shape: the grid of the kernel that calls it. Any degree: a piece may be part of a row. No
shared memory but the rule of the sweep.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from glp_rapids.jit.cuda import cuda
from glp_rapids.outofcore.bit_packed import LINE, word_of
from glp_rapids.propagation.kernels.gpu.active_set import needed
from glp_rapids.propagation.kernels.gpu.plan import HUBS, LAST_END, SUBWARP_ROWS, WARP_ROWS
from glp_rapids.propagation.kernels.gpu.shared_memory import LANES, WARPS
from glp_rapids.propagation.kernels.gpu.votes import ALL

PIECE = 1024  # entries
SOME = 8  # long rows that a warp looks at together
# A read costs as much as so many bits more of one that goes on: 23 ns at 55 GB/s.
A_READ = 320 * 32
AHEAD = 4  # loads of a lane


def _build_read(element_type: Any) -> Any:
    """Make what reads a stretch of an array in host memory."""

    @cuda.jit(device=True)
    def read(first, last, shift, lane, source, there):
        """Read elements, in lines of 128 bytes, to where they are ``shift`` further on."""
        elements = cuda.local.array(AHEAD, element_type)
        j = first // LANES * LANES + lane
        while j - lane < last:
            for k in range(AHEAD):
                place = min(max(j + LANES * k, first), last - 1)
                elements[k] = source[np.uint64(place)]
            for k in range(AHEAD):
                place = j + LANES * k
                if place >= first and place < last:
                    there[np.uint64(place + shift)] = elements[k]
            j += LANES * AHEAD

    return read


def build(index_type: Any, weight_type: Any, packed: bool = False) -> Any:
    """Make the function that all threads of the grid call; ``weight_type`` None: no weights.

    ``packed``: what is read are words of packed lists; the plan says at which bit each begins, and
    after the last one where that ends.
    """
    weighted = weight_type is not None
    read_words, read_weights = _build_read(word_of(index_type).type), None
    if weighted:
        read_weights = _build_read(weight_type)
    width = np.int64(8 * np.dtype(index_type).itemsize)
    log_width, log_line = np.int64(width.item().bit_length() - 1), np.int64(LINE.bit_length() - 1)

    @cuda.jit(device=True)
    def begin_of(plan, position):
        start = plan.starts[np.uint64(position)]
        if packed:
            start >>= np.int64(5)
        return start

    @cuda.jit(device=True)
    def end_of(plan, position):
        if packed:
            return plan.starts[np.uint64(position + 1)] >> np.int64(5)
        return plan.starts[np.uint64(position)] + np.int64(plan.degrees[np.uint64(position)])

    @cuda.jit(device=True)
    def read(first, last, shift, lane, lists, rows):
        """Read entries to where they are ``shift``, whole lines, further on."""
        if packed:
            read_words(first, last, shift, lane, lists.entries, rows.indices)
        else:  # the words at either end may hold entries of others, which are the same there
            bits = lists.entries.bits
            begin, end = first * bits >> log_width, (last * bits + width - 1) >> log_width
            further = (shift >> log_line) * (bits << log_line >> log_width)
            read_words(begin, end, further, lane, lists.entries.words, rows.indices.words)
        if weighted:
            read_weights(first, last, shift, lane, lists.weights, rows.weights)

    @cuda.jit(device=True)
    def read_wanted(wanted, start, stop, shift, lane, lists, rows):
        """Read what some lanes want, one stretch each, which follow one another; say how much."""
        moved, which = np.int64(0), np.uint32(cuda.ballot_sync(ALL, wanted))
        if which == 0:
            return moved
        bits = np.int64(32)
        if not packed:
            bits = lists.entries.bits
        number = np.int64(cuda.popc(which))
        lowest = np.int32(cuda.ffs(which) - 1)
        highest = np.int32(LANES - 1 - cuda.clz(which))
        left = cuda.shfl_sync(ALL, start, lowest)
        right = cuda.shfl_sync(ALL, stop, highest)
        if (right - left) * bits <= A_READ * number:
            read(left, right, shift, lane, lists, rows)
            return right - left
        while which != 0:
            lowest = np.int32(cuda.ffs(which) - 1)
            which = np.uint32(which & np.uint32(which - np.uint32(1)))
            left = cuda.shfl_sync(ALL, start, lowest)
            right = cuda.shfl_sync(ALL, stop, lowest)
            read(left, right, shift, lane, lists, rows)
            moved += right - left
        return moved

    @cuda.jit(device=True)
    def fetch_rows(first, last, together, warp, shift, shared, plan, lists, rows, run):
        """Read the rows that are wanted, each by one warp, which looks at some together."""
        lane = np.int64(cuda.laneid)
        moved = np.int64(0)
        begin = first + warp * together
        while begin < last:
            position = begin + lane
            start, stop, wanted = np.int64(0), np.int64(0), False
            if lane < together and position < last:
                wanted = needed(position, plan.vertices[np.uint64(position)], shared.sweep, run)
                if wanted:
                    start, stop = begin_of(plan, position), end_of(plan, position)
            moved += read_wanted(wanted, start, stop, shift, lane, lists, rows)
            begin += np.int64(cuda.gridDim.x) * WARPS * together
        return moved

    @cuda.jit(device=True)
    def fetch_pieces(first, last, warp, shift, shared, plan, lists, rows, run):
        """Read the rows that are wanted, of which each warp takes pieces."""
        moved = np.int64(0)
        if first >= last:
            return moved
        lane = np.int64(cuda.laneid)
        begin, end = begin_of(plan, first), end_of(plan, last - 1)
        piece = (begin // PIECE + warp) * PIECE
        while piece < end:
            low, high = first, last - 1
            from_here, to_here = max(piece, begin), min(piece + PIECE, end)
            while low < high:  # the last row that begins by then
                middle = (low + high + 1) // 2
                if begin_of(plan, middle) <= from_here:
                    low = middle
                else:
                    high = middle - 1
            beyond = False
            while not beyond:
                position = low + lane
                start, stop, wanted, behind = to_here, to_here, False, True
                if position < last:
                    start = begin_of(plan, position)
                    behind = start >= to_here
                    if not behind:
                        stop = end_of(plan, position)
                        start, stop = max(start, from_here), min(stop, to_here)
                        v = plan.vertices[np.uint64(position)]
                        wanted = start < stop and needed(position, v, shared.sweep, run)
                beyond = cuda.any_sync(ALL, behind)
                moved += read_wanted(wanted, start, stop, shift, lane, lists, rows)
                low += LANES
            piece += np.int64(cuda.gridDim.x) * (WARPS * PIECE)
        return moved

    @cuda.jit(device=True)
    def fetch(group, shift, shared, plan, lists, rows, run):
        """Read what is needed of a strip in this sweep, each entry ``shift`` further on."""
        first, last = plan.groups[group, HUBS], plan.groups[group, LAST_END]
        middle, short = plan.groups[group, WARP_ROWS], plan.groups[group, SUBWARP_ROWS]
        warp = np.int64(cuda.blockIdx.x) * WARPS + cuda.threadIdx.x // LANES
        moved = fetch_pieces(first, middle, warp, shift, shared, plan, lists, rows, run)
        moved += fetch_rows(
            middle, short, np.int64(SOME), warp, shift, shared, plan, lists, rows, run
        )
        moved += fetch_rows(
            short, last, np.int64(LANES), warp, shift, shared, plan, lists, rows, run
        )
        if np.int64(cuda.laneid) == 0 and moved > 0:
            cuda.atomic.add(lists.moved, 0, moved)

    return fetch
