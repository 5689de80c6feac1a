"""The rows of parts on a GPU, out of the tables in which `gpu_merging` added them up."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from glp_rapids.communities.kernels import gpu_global_tables, gpu_scans
from glp_rapids.communities.kernels.gpu_numbering import NUMBER
from glp_rapids.jit.cuda import cuda, kernel
from glp_rapids.jit.primitives import lower_bound

Array = Any
EACH = 8  # slots that a thread looks at


class Written(NamedTuple):
    """The rows of parts; what there is more room for stays as it is."""

    indptr: Array
    indices: Array
    weights: Array


@functools.cache
def build_write_all(threads: int, each: int, wide: bool, empties: bool) -> Callable:
    """Make the function that writes the slots in use one after the other, and where rows begin.

    All threads call it, of as many blocks as added, each for the slots that it counted there.
    ``empties``: the slots end as zeros. ``sums``, int64, one a thread, and ``ranks``, one a slot,
    are in shared memory.
    """
    slots = threads * each
    *_, label_at, _, amount_at, empty_slot = gpu_global_tables.build(wide)
    _, base_of, ranked, own_range = gpu_scans.build(threads)

    @cuda.jit(device=True)
    def write_all(merging, written, sums, ranks):
        thread, block = np.int64(cuda.threadIdx.x), np.int64(cuda.blockIdx.x)
        parts = merging.numbered[NUMBER]
        room = merging.offsets[parts]
        begin, end = own_range(room, block, np.int64(cuda.gridDim.x), np.int64(1))
        base = base_of(block, sums, merging.counts)
        for first in range(begin, end, slots):
            past = min(first + slots, end)
            own, number = first + thread * each, np.int64(0)
            for slot in range(own, min(own + each, past)):
                if label_at(merging.table, slot) >= 0:
                    number += 1
            rank, whole = ranked(number, sums)
            entry = base + rank - number
            for slot in range(own, min(own + each, past)):
                ranks[slot - first] = entry - base
                other = label_at(merging.table, slot)
                if other >= 0:
                    written.indices[entry] = other
                    written.weights[entry] = amount_at(merging.table, slot)
                    if empties:
                        empty_slot(merging.table, slot)
                    entry += 1
            cuda.syncthreads()
            part = lower_bound(merging.offsets, 0, parts, first) + thread
            while part < parts and merging.offsets[part] < past:
                written.indptr[part] = base + ranks[merging.offsets[part] - first]
                part += threads
            base += whole
            cuda.syncthreads()
        if thread == 0 and begin < end and end == room:
            written.indptr[parts] = base

    return write_all


@functools.cache
def build_write(threads: int, each: int, wide: bool) -> Any:
    """Make the kernel that does so.

    Launch: as many blocks as `build_add` had. Shared memory: 10 KB. Registers: 47.
    """
    write_all, slots = build_write_all(threads, each, wide, False), threads * each

    def write_slots(merging, written):
        sums = cuda.shared.array(threads, np.int64)
        ranks = cuda.shared.array(slots, np.int32)
        write_all(merging, written, sums, ranks)

    return kernel(write_slots, f"{threads} {each} {wide}")
