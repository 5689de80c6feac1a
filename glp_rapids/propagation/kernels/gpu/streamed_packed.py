"""Who reads a vertex whose packed list is in a strip, or in host memory: its readers become active.

As `decode_buffer` has it of lists on the device, but a list is found by the position of its vertex
in the plan, which says at which bit it begins behind its degree.

Launch shape: that of `streamed`, whose blocks call this together. Any degree: lists of up to 32
entries a thread each; of the others the parts of all together, a part a warp. Shared memory: the
queue of readers, and what a warp has read.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from glp_rapids.compressed.format import unordered
from glp_rapids.jit.cuda import cuda
from glp_rapids.jit.target import Target
from glp_rapids.propagation.kernels.gpu import read_packed
from glp_rapids.propagation.kernels.gpu.arguments import Decoding
from glp_rapids.propagation.kernels.gpu.decode_buffer import (
    ZERO,
    activate,
    activate_vertex,
    build_list_of,
    build_sink_of,
)
from glp_rapids.propagation.kernels.gpu.read_packed import SEGMENT
from glp_rapids.propagation.kernels.gpu.shared_memory import LANES, WARPS
from glp_rapids.propagation.kernels.gpu.votes import STEP

WORD = 32  # bits
# How many lists the warps of a block have to go through, and below it how many parts, in one word:
# so where the parts of a list begin is known as soon as it is counted.
LIST_SHIFT = 40
A_LIST = np.int64(1 << LIST_SHIFT)
INDEX_TYPE = np.int32  # of all lists that are streamed packed, see `streams_packed`


class PackedReaders(NamedTuple):
    """Packed lists of readers by the position of their vertex in the plan."""

    vertices: Any
    starts: Any  # the bit at which a list begins, and behind the last one where that ends
    degrees: Any
    words: Any  # in a strip, or in host memory
    tables: Any
    settings: Any
    place: Any  # see `CompressedLists`
    order: Any
    shift: Any  # bits: how much further on a list begins than ``starts`` says
    moved: Any
    counts: Any  # whether they are read over the bus


def build_activate(decoding: Decoding, target: Target) -> Any:
    """Make what activates the readers of vertices that changed."""
    sink_of, list_of = build_sink_of(decoding.ordered), build_list_of(decoding.ordered)
    functions = unordered.build(
        decoding.scheme, target, activate_vertex if decoding.ordered else activate
    )
    read_list = functions.read_list
    read_entries = read_packed.build(INDEX_TYPE, decoding.ordered, target).read_entries

    @cuda.jit(device=True)
    def begin(readers, position):
        """Return the place of the list of a position, its degree and the bit behind that."""
        place = list_of(readers, readers.vertices[np.uint64(position)])
        degree = np.int64(readers.degrees[np.uint64(position)])
        return place, degree, readers.starts[np.uint64(position)] + readers.shift

    @cuda.jit(device=True)
    def parts_of(readers, position):
        """Return how many parts a list has."""
        degree = np.int64(readers.degrees[np.uint64(position)])
        return (degree + np.int64(SEGMENT - 1)) // np.int64(SEGMENT)

    @cuda.jit(device=True)
    def activate_list(slack, readers, position):
        """Activate who is in a list; return False if it is one for warps."""
        if readers.counts:
            bits = readers.starts[np.uint64(position + 1)] - readers.starts[np.uint64(position)]
            cuda.atomic.add(readers.moved, 0, bits // WORD)
        place, degree, bit = begin(readers, position)
        if degree > LANES:
            return False
        read_list(
            readers.words, readers.tables, bit, place, degree, readers.settings,
            sink_of(slack, readers), ZERO,
        )  # fmt: skip
        return True

    @cuda.jit(device=True)
    def activate_part(slack, readers, shared, position, part):
        """Activate who is in one part of a list; all lanes of a warp call this."""
        entries = cuda.local.array(STEP, INDEX_TYPE)
        v = readers.vertices[np.uint64(position)]
        degree = np.int64(readers.degrees[np.uint64(position)])
        first, further = read_entries(
            entries, v, readers.starts[np.uint64(position)] + readers.shift, degree, ZERO, ZERO,
            part * np.int64(SEGMENT), readers, readers, shared,
        )  # fmt: skip
        for k in range(STEP):
            if first + further * k < degree:
                cuda.atomic.add(slack, np.uint64(entries[k]), np.int32(-1))

    @cuda.jit(device=True)
    def activate_readers(run, readers, shared, position, differs):
        """Activate who reads the label of a position's vertex, if that differs; a block calls."""
        slack, queue, queued = run.slack, shared.readers, shared.queue.drawn
        if cuda.threadIdx.x == 0:
            queued[0] = 0
        cuda.syncthreads()
        if differs and not activate_list(slack, readers, position):
            parts = parts_of(readers, position)
            before = cuda.atomic.add(queued, 0, A_LIST + parts)
            place = before >> LIST_SHIFT
            queue.first[np.uint64(place)] = np.int64(position)
            queue.last[np.uint64(place)] = before - (place << LIST_SHIFT) + parts
        cuda.syncthreads()
        lists = queued[0] >> LIST_SHIFT
        parts = queued[0] - (lists << LIST_SHIFT)
        part = np.int64(cuda.threadIdx.x // LANES)
        while part < parts:
            low, high = np.int64(0), lists - 1  # the first list that ends behind this part
            while low < high:
                middle = (low + high) // 2
                if queue.last[np.uint64(middle)] > part:
                    high = middle
                else:
                    low = middle + 1
            before = np.int64(0)
            if low > 0:
                before = queue.last[np.uint64(low - 1)]
            activate_part(slack, readers, shared, queue.first[np.uint64(low)], part - before)
            part += WARPS
        cuda.syncthreads()

    return activate_readers
