"""Counting triangles of an oriented graph: at their corners, or over their edges.

A triangle has one edge that neither starts at its highest vertex nor ends there. Its two ends have
the highest as a common successor; so each triangle is found once where the oriented rows of both
ends of each edge are intersected. The longer of the two rows (ties: that of the greater number)
lies in shared memory as a hash table; the entries of the shorter are looked up in it. A vertex
whose row is in a table serves all of its edges to shorter rows. That takes as many lookups as the
shorter rows of all edges have entries (kron-20-16: 2.0 G instead of 6.9 G binary searches of 12
steps in rows that are not oriented).

The rows to be looked up for 32 edges are one list to the lanes of a warp, so that work is even and
reads lie side by side. What is counted at the ends of an edge stays in registers and at the third
corner in the table, until both are added to the result.

Launch: first a block of one warp (`LIGHT`) for every 32 vertices, which lists what has more than
LARGEST_LIGHT successors or more than CHUNK neighbours; then larger blocks (`HEAVY`) that take one
piece of CHUNK neighbours after the other from this list. A row of more successors than half of a
table has slots is cut, and the neighbours are served once for each part. Degrees: any. Shared
memory: 4.7 and 36.9 KB. Registers: 48 and 38.

Pandey et al., "TRUST: Triangle Counting Reloaded on GPUs", IEEE TPDS 32 (2021), has tables, too.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from glp_rapids.cohesion.kernels.gpu_orient import comes_first
from glp_rapids.jit.cuda import SIMULATED, cuda, kernel
from glp_rapids.jit.primitives import lower_bound

CORNERS, EDGES = range(2)
COUNT_TYPES = np.int64, np.int32
# Threads of a block, lanes that share a list, slots of its table.
LIGHT, HEAVY = (32, 32, 512), (256, 32, 4096)
HEAVY_BLOCKS = 6  # a multiprocessor
LARGEST_LIGHT = 128  # successors
CHUNK = 2048  # neighbours
# Slots for a key, where there are as many. A warp waits for the lane that looks longest: of 32 that
# took 7.2 reads with 2, and takes 2.4 with 8 (rows of 129 to 512 of kron-20-16).
ROOM = 8
FACTOR = np.uint32(2654435769)  # 2 ** 32 / the golden ratio

if SIMULATED:  # where a block has no more threads than a list has lanes

    @cuda.jit(device=True)
    def sync_lanes():
        """Wait for the lanes that share a list."""
        cuda.syncthreads()
else:

    @cuda.jit(device=True)
    def sync_lanes():
        """Wait for the lanes that share a list."""
        cuda.syncwarp()


def fitting(sizes: tuple[int, int, int], key_type: Any) -> tuple[int, int, int]:
    """Halve a table whose keys take twice the bytes."""
    threads, lanes, slots = sizes
    return threads, lanes, slots * 4 // np.dtype(key_type).itemsize


@functools.cache
def _server(sizes: tuple[int, int, int], action: int, key_type: Any) -> Any:
    """Make the function by which a block serves some of a vertex's edges."""
    threads, lanes, slots = sizes
    empty, one, largest = key_type(-1), np.uint32(1), slots // 2
    count_type, least_shift = COUNT_TYPES[action], 33 - slots.bit_length()

    @cuda.jit(device=True)
    def slot_of(keys, mask, shift, w):
        """Find a key's slot, or the empty one where it would be."""
        slot = np.uint32(np.uint32(w) * FACTOR) >> shift
        while keys[slot] != w and keys[slot] != empty:
            slot = np.uint32(slot + one) & mask
        return slot

    @cuda.jit(device=True)
    def insert(keys, mask, shift, w):
        """Put a key, which nobody else puts, into its slot."""
        slot = np.uint32(np.uint32(w) * FACTOR) >> shift
        while cuda.atomic.cas(keys, slot, empty, w) != empty:
            slot = np.uint32(slot + one) & mask

    @cuda.jit(device=True)
    def serve(x, first, last, indptr, indices, starts, ends, result, shared):
        """Serve the neighbours of x at the entries from first up to last."""
        keys, counts, sums, shifted, found, own = shared
        thread = cuda.threadIdx.x
        lane = thread % lanes
        base = thread - lane
        row, successors = np.int64(starts[x]), np.int64(starts[x + 1] - starts[x])
        corners = np.int32(0)
        for done in range(0, successors, largest):
            part, size = row + done, min(successors - done, largest)
            # of 2 ** (32 - shift) slots
            shift = np.uint32(max(cuda.clz(np.int32(ROOM * size - 1)), least_shift))
            used = np.int64(1) << (32 - np.int64(shift))
            mask = np.uint32(used - 1)
            for slot in range(thread, used, threads):
                keys[slot] = empty
            cuda.syncthreads()
            for i in range(thread, size, threads):
                insert(keys, mask, shift, ends[part + i])
            cuda.syncthreads()
            for tile in range(first + base, last, threads):
                # one neighbour a lane: its row, if it is the shorter
                entry = tile + lane
                begin, length, y = np.int64(0), np.int32(0), np.int64(0)
                if entry < last:
                    y = np.int64(indices[entry])
                    begin = np.int64(starts[y])
                    length = np.int32(starts[y + 1] - starts[y])
                    if length > successors or (length == successors and y > x):
                        length = np.int32(0)
                found[thread] = 0
                sums[thread] = length
                sync_lanes()
                step = 1
                while step < lanes:
                    before = sums[thread - step] if lane >= step else np.int32(0)
                    sync_lanes()
                    sums[thread] += before
                    sync_lanes()
                    step *= 2
                shifted[thread] = begin - (sums[thread] - length)
                sync_lanes()
                # all of these rows, as one list
                total = sums[base + lanes - 1]
                which, mine = np.uint32(base), np.int32(0)  # unsigned: no test for below 0
                for position in range(lane, total, lanes):
                    if sums[which] <= position:
                        if mine > 0:
                            cuda.atomic.add(found, which, mine)
                            mine = np.int32(0)
                        while sums[which] <= position:
                            which = np.uint32(which + one)
                    place = np.uint64(shifted[which] + position)
                    w = ends[place]
                    slot = slot_of(keys, mask, shift, w)
                    if keys[slot] == w:
                        mine += np.int32(1)
                        cuda.atomic.add(counts, slot, np.int32(1))
                        if action == EDGES:
                            cuda.atomic.add(result, place, count_type(1))
                if mine > 0:
                    cuda.atomic.add(found, which, mine)
                sync_lanes()
                if found[thread] > 0:
                    if action == CORNERS:
                        cuda.atomic.add(result, y, count_type(found[thread]))
                        corners += found[thread]
                    else:
                        at, to = x, y
                        if not comes_first(x, y, indptr):
                            at, to = y, x
                        place = lower_bound(ends, starts[at], starts[at + 1], to)
                        cuda.atomic.add(result, place, count_type(found[thread]))
                sync_lanes()
            cuda.syncthreads()
            for i in range(thread, size, threads):
                w = ends[part + i]
                slot = slot_of(keys, mask, shift, w)
                count = counts[slot]
                if count > 0:
                    counts[slot] = 0
                    place = np.int64(w) if action == CORNERS else part + i
                    cuda.atomic.add(result, place, count_type(count))
            cuda.syncthreads()
        if action == CORNERS:
            if corners > 0:
                cuda.atomic.add(own, 0, corners)
            cuda.syncthreads()
            if thread == 0 and own[0] > 0:
                cuda.atomic.add(result, x, count_type(own[0]))
                own[0] = 0

    return serve


@functools.cache
def build_light(sizes: tuple[int, int, int], action: int, key_type: Any) -> Any:
    """Make the kernel that counts where the longer row is short, and lists the other vertices.

    CORNERS: the triangles that each vertex is a corner of, added to ``result``; EDGES: those over
    each oriented edge. Listed are the ``vertex`` and the ``first`` entry of every piece of its row,
    ``number[0]`` of them.
    """
    threads, _, slots = sizes = fitting(sizes, key_type)
    serve = _server(sizes, action, key_type)

    def count_light(
        indptr, indices, starts, ends, result, vertex, first, number, chunk, largest
    ):  # fmt: skip
        keys = cuda.shared.array(slots, key_type)
        counts = cuda.shared.array(slots, np.int32)
        sums = cuda.shared.array(threads, np.int32)
        shifted = cuda.shared.array(threads, np.int64)
        found = cuda.shared.array(threads, np.int32)
        own = cuda.shared.array(1, np.int32)
        served = cuda.shared.array(threads, np.int32)
        thread = cuda.threadIdx.x
        begin = np.int64(cuda.blockIdx.x) * threads
        served[thread] = 0
        for slot in range(thread, slots, threads):
            counts[slot] = 0
        if thread == 0:
            own[0] = 0
        v = begin + thread
        if v < indptr.size - 1 and starts[v + 1] - starts[v] > 1:
            degree = np.int64(indptr[v + 1] - indptr[v])
            if starts[v + 1] - starts[v] > largest or degree > chunk:
                pieces = (degree + chunk - 1) // chunk
                place = cuda.atomic.add(number, 0, pieces)
                for piece in range(pieces):
                    vertex[place + piece] = v
                    first[place + piece] = indptr[v] + piece * chunk
            else:
                served[thread] = 1
        cuda.syncthreads()
        shared = keys, counts, sums, shifted, found, own
        for i in range(threads):
            if served[i]:
                x = begin + i
                serve(x, indptr[x], indptr[x + 1], indptr, indices, starts, ends, result, shared)

    return kernel(count_light, f"{sizes} {action} {key_type.__name__}")


@functools.cache
def build_heavy(sizes: tuple[int, int, int], action: int, key_type: Any) -> Any:
    """Make the kernel that counts the pieces that were listed; blocks take one after the other.

    ``number``: how many there are, and, 0 at first, how many were taken.
    """
    threads, _, slots = sizes = fitting(sizes, key_type)
    serve = _server(sizes, action, key_type)

    def count_heavy(
        indptr, indices, starts, ends, result, vertex, first, number, chunk
    ):  # fmt: skip
        keys = cuda.shared.array(slots, key_type)
        counts = cuda.shared.array(slots, np.int32)
        sums = cuda.shared.array(threads, np.int32)
        shifted = cuda.shared.array(threads, np.int64)
        found = cuda.shared.array(threads, np.int32)
        own = cuda.shared.array(1, np.int32)
        taken = cuda.shared.array(1, np.int64)
        thread = cuda.threadIdx.x
        shared = keys, counts, sums, shifted, found, own
        pieces = number[0]
        for slot in range(thread, slots, threads):
            counts[slot] = 0
        if thread == 0:
            own[0] = 0
            taken[0] = cuda.atomic.add(number, 1, np.int64(1))
        cuda.syncthreads()
        piece = taken[0]
        while piece < pieces:
            x, begin = np.int64(vertex[piece]), np.int64(first[piece])
            end = min(begin + chunk, np.int64(indptr[x + 1]))
            serve(x, begin, end, indptr, indices, starts, ends, result, shared)
            cuda.syncthreads()
            if thread == 0:
                taken[0] = cuda.atomic.add(number, 1, np.int64(1))
            cuda.syncthreads()
            piece = taken[0]

    digest = f"{sizes} {action} {key_type.__name__}"
    return kernel(count_heavy, digest, launch_bounds=(threads, HEAVY_BLOCKS))
