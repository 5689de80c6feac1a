"""Rows that are needed come from pinned host memory into a slot of the buffer, read over the bus.

The lists of a strip lie side by side on the host, bit-packed, in the order of the plan. A warp
takes a piece of 1024 entries, finds whose rows they are, and reads the words of active vertices,
each to where the whole strip would have it: so nothing is said to the evaluation. If four rows or
more of a piece are wanted, all that lies between is read with them: short scattered reads reach 43
M rows a second, sequential ones 49 GB/s (EMOGI, VLDB 2020, section 4: merged and aligned reads).
Each lane has four loads on the way, of neighbouring lines.

Launch shape: the grid of the kernel that calls it. Any degree: a piece may be part of a row. No
shared memory but the rule of the sweep.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from glp_rapids.jit.cuda import cuda
from glp_rapids.outofcore.bit_packed import LINE, word_of
from glp_rapids.propagation.kernels.gpu.active_set import needed
from glp_rapids.propagation.kernels.gpu.plan import HUBS, LAST_END
from glp_rapids.propagation.kernels.gpu.shared_memory import LANES, WARPS
from glp_rapids.propagation.kernels.gpu.votes import ALL

PIECE = 1024  # entries
# A read costs as much as so many entries more of one that goes on: 23 ns at 55 GB/s.
A_READ = 320
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
    def fetch(group, shift, shared, plan, lists, rows, run):
        """Read what is needed of a strip in this sweep, each entry ``shift`` further on."""
        first, last = plan.groups[group, HUBS], plan.groups[group, LAST_END]
        if first >= last:
            return
        lane = np.int64(cuda.laneid)
        begin, end = begin_of(plan, first), end_of(plan, last - 1)
        warp = np.int64(cuda.blockIdx.x) * WARPS + cuda.threadIdx.x // LANES
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
            moved = np.int64(0)
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
                which = np.uint32(cuda.ballot_sync(ALL, wanted))
                beyond = cuda.any_sync(ALL, behind)
                if which != 0:
                    number = np.int64(cuda.popc(which))
                    lowest = np.int32(cuda.ffs(which) - 1)
                    highest = np.int32(LANES - 1 - cuda.clz(which))
                    left = cuda.shfl_sync(ALL, start, lowest)
                    right = cuda.shfl_sync(ALL, stop, highest)
                    if right - left <= A_READ * number:
                        read(left, right, shift, lane, lists, rows)
                        moved += right - left
                        which = np.uint32(0)
                    while which != 0:
                        lowest = np.int32(cuda.ffs(which) - 1)
                        which = np.uint32(which & np.uint32(which - np.uint32(1)))
                        left = cuda.shfl_sync(ALL, start, lowest)
                        right = cuda.shfl_sync(ALL, stop, lowest)
                        read(left, right, shift, lane, lists, rows)
                        moved += right - left
                low += LANES
            if lane == 0 and moved > 0:
                cuda.atomic.add(lists.moved, 0, moved)
            piece += np.int64(cuda.gridDim.x) * (WARPS * PIECE)

    return fetch
