"""Compressed graphs: the rows that a group needs are decoded before it is evaluated.

A group (a class, or a strip of one) is decoded by the whole grid into a buffer that stays in the
second-level cache, and evaluated from there by the same paths as any other rows; who sleeps is not
decoded. So labels are computed next to the codes, as in CGLP+ (GLP, TKDE'24, section 5), and the
graph is never there as a whole.

Lists of up to one part are decoded by a lane each. Of longer ones a warp takes 32 parts, a lane
each, listed with the plan, so nobody walks through a hub.
"""

from __future__ import annotations

from collections import namedtuple
from types import SimpleNamespace
from typing import Any

import numpy as np

from glp_rapids.propagation.kernels.auto_common import LANES, WARPS
from glp_rapids.propagation.kernels.auto_plan import BINS, BOUNDS
from glp_rapids.propagation.kernels.cuda_target import cuda

# The compressed lists: bits, tables of codes, where each list begins; long lists by 32 parts each:
# the position in the plan and the first part, by group; the place of each vertex's list and the
# vertex of each place; where each list's weights begin, and what they stand for if they are codes.
Stream = namedtuple(
    "Stream",
    "words tables offsets settings position part group_items place order first_weight weights "
    "values",
)


def build(functions: SimpleNamespace, needed: Any, index_type: Any, how: SimpleNamespace) -> Any:
    """Make ``fetch``; all threads of the grid call it together.

    ``functions`` read the lists of one scheme. ``how``: whether lists are ``ordered`` otherwise
    than the vertices, ``weighted``, and have weights as codes (``coded``).
    """
    read_degree, read_list = functions.read_degree, functions.read_list
    read_part, part_bit = functions.read_part, functions.part_bit
    ordered, weighted, coded = how.ordered, how.weighted, how.coded

    @cuda.jit(device=True)
    def finish(rows, stream, start, first, count, offset):
        """Name the neighbours as the vertices are, and lay their weights beside them."""
        if ordered:
            for i in range(count):
                place = np.uint64(start + i)
                rows.indices[place] = stream.order[np.uint64(rows.indices[place])]
        if weighted:
            for i in range(count):
                weight = stream.weights[np.uint64(first + offset + i)]
                if coded:
                    weight = stream.values[np.uint64(weight)]
                rows.weights[np.uint64(start + i)] = weight

    @cuda.jit(device=True)
    def stored(stream, v):
        """Give the list of a vertex."""
        if ordered:
            return index_type(stream.place[np.uint64(v)])
        return v

    @cuda.jit(device=True)
    def weights_of(stream, v):
        """Give where the weights of a list begin."""
        if weighted:
            return stream.first_weight[np.uint64(v)]
        return np.int64(0)

    @cuda.jit(device=True)
    def fetch(group, meta, here, lists, stream, rows, run):
        """Decode what a group needs into ``rows``, each list where the plan says."""
        lane = np.int32(cuda.laneid)
        warp = np.int64(cuda.blockIdx.x) * WARPS + cuda.threadIdx.x // LANES
        warps = np.int64(cuda.gridDim.x) * WARPS
        segment = stream.settings.segment
        longest = max(segment, stream.settings.raw_below)  # of lists in one piece
        item = stream.group_items[np.uint64(group)] + warp
        last = stream.group_items[np.uint64(group + 1)]
        while item < last:
            position = stream.position[np.uint64(item)]
            v = lists.vertices[np.uint64(position)]
            if needed(position, v, here, run):
                v = stored(stream, v)
                degree = np.int64(lists.degrees[np.uint64(position)])
                part = stream.part[np.uint64(item)] + lane
                _, bit = read_degree(
                    stream.words, stream.tables, stream.offsets[np.uint64(v)], stream.settings
                )
                begin = part * segment
                if begin < degree:
                    bit = part_bit(stream.words, bit, degree, part, stream.settings)
                    count = min(segment, degree - begin)
                    start = lists.starts[np.uint64(position)] + begin
                    read_part(
                        stream.words, stream.tables, bit, v, count, stream.settings,
                        rows.indices, start,
                    )  # fmt: skip
                    finish(rows, stream, start, weights_of(stream, v), count, begin)
            item += warps
        position = here.meta[meta + BOUNDS] + warp * LANES + lane
        last = here.meta[meta + BOUNDS + BINS + 2]
        while position - lane < last:
            if position < last:
                v = lists.vertices[np.uint64(position)]
                degree = np.int64(lists.degrees[np.uint64(position)])
                if degree <= longest and needed(position, v, here, run):
                    v = stored(stream, v)
                    start = lists.starts[np.uint64(position)]
                    _, bit = read_degree(
                        stream.words, stream.tables, stream.offsets[np.uint64(v)],
                        stream.settings,
                    )  # fmt: skip
                    read_list(
                        stream.words, stream.tables, bit, v, degree, stream.settings,
                        rows.indices, start,
                    )  # fmt: skip
                    finish(rows, stream, start, weights_of(stream, v), degree, np.int64(0))
            position += warps * LANES

    return fetch
