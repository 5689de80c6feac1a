"""The GPU engine on a compressed graph: the same kernel, which decodes what it needs.

On the device are the compressed lists, where each begins and its degree (12 bytes a vertex), and
what the engine keeps of any graph. Lists under "packed" are decoded where they are counted. Of
other lists the long ones are decoded into a buffer for two groups: one is decoded while the other
is evaluated. If those of a class are too many for half of it, the class is cut into strips.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from glp_rapids.compressed.rows import CompressedCSR
from glp_rapids.compressed.weights import EqualWeights
from glp_rapids.device import to_host
from glp_rapids.jit.cuda import bound
from glp_rapids.propagation.compile_program import Compiled
from glp_rapids.propagation.engines.gpu import PersistentEngine, kernels_of
from glp_rapids.propagation.engines.workspace import Workspace
from glp_rapids.propagation.kernels.gpu import packed_numbers, read_packed
from glp_rapids.propagation.kernels.gpu.arguments import CompressedLists, Decoding, Rows
from glp_rapids.propagation.kernels.gpu.plan import (
    HUBS,
    LAST_END,
    SUBWARP_ROWS,
    Limits,
    Plan,
    make_plan,
    parts_of,
)
from glp_rapids.propagation.kernels.gpu.shared_memory import LANES
from glp_rapids.propagation.workload import Workload

if TYPE_CHECKING:
    from glp_rapids.compressed.graph import CompressedGraph

# Of decoded rows, those of two groups: for each vertex, and at least. It leaves room, in 60 bytes a
# vertex, for all else that a run takes beside the lists.
BYTES_A_VERTEX, LEAST_BYTES = 20, 1 << 23
BUFFERLESS = ("packed",)  # schemes whose parts a warp reads at once


def _weight_type(weights: Any) -> Any:
    return np.int64 if weights is None else weights.dtype


def reads_parts(rows: CompressedCSR, unit_votes: bool) -> bool:
    """Tell whether a warp can read the parts of these lists where it counts them."""
    settings = rows.lists.settings
    return (
        rows.weights is None
        and rows.lists.layout.scheme in BUFFERLESS
        and int(settings.segment) == read_packed.SEGMENT
        and int(settings.raw_below) <= LANES
        and int(settings.min_interval) != 1  # then a part may have more numbers than entries
        and packed_numbers.fits(rows.lists.tables, rows.index_dtype)
        # both with 64 bits take more shared memory than there is
        and (rows.index_dtype.itemsize == 4 or unit_votes)
    )


def streams_packed(graph: CompressedGraph) -> bool:
    """Tell whether packed lists of a graph can be streamed, see `gpu_streamed_packed`."""
    rows = graph.rows("out")
    narrow = rows.index_dtype.itemsize == 4
    return not graph.directed and rows.order is None and narrow and reads_parts(rows, True)


def decoding_of(rows: CompressedCSR, fused: bool, bufferless: bool) -> Decoding:
    """Say how lists are decoded."""
    # a kernel of one digest has one signature
    arrays = rows.order, getattr(rows.weights, "codes", None)
    return Decoding(
        scheme=rows.lists.layout.scheme, ordered=rows.order is not None,
        weighted=rows.weights is not None, coded=hasattr(rows.weights, "codes"),
        equal=isinstance(rows.weights, EqualWeights), fused=fused, bufferless=bufferless,
        types=tuple(None if array is None else array.dtype.str for array in arrays),
    )  # fmt: skip


class CompressedPersistentEngine(PersistentEngine):
    """Run one program on one compressed graph with a GPU."""

    def __init__(self, workload: Workload, compiled: Compiled, fields: dict[str, Any]):
        # no row is in order, so none can be searched
        workload = replace(workload, once=False)
        rows = workload.rows
        settings = rows.lists.settings
        # Lists of one piece; short ones that are all of one are decoded where they are counted.
        self._longest = max(int(settings.segment), int(settings.raw_below))
        self._fused = rows.weights is None and self._longest >= LANES
        # Parts that a warp reads at once; lists that are left raw are not parts.
        self._bufferless = self._fused and reads_parts(rows, compiled.traits.unit_votes)
        super().__init__(workload, compiled, fields)
        self._buffer_entries = self._workspace.plan.buffer
        if self._workspace.rows is None:
            self._workspace.rows = self._buffer(self._buffer_entries)

    def _trim(self, workspace: Workspace) -> None:
        """Let go of the buffer, before another thread finds it."""
        workspace.rows = None

    def _buffer(self, entries: int) -> Rows:
        """Make room for the decoded rows of two groups."""
        xp, weights = self._xp, self._workload.rows.weights
        size = max(2 * entries, 1)
        return Rows(
            bound(xp.zeros(1, np.int64)),
            bound(xp.zeros(size, self._workload.rows.index_dtype)),
            bound(xp.zeros(1 if weights is None else size, _weight_type(weights))),
        )

    def _kernels(self) -> tuple:
        rows = self._workload.rows
        decoding = decoding_of(rows, self._fused, self._bufferless)
        return kernels_of(self._compiled, rows.index_dtype.type, decoding)

    def _plan(self, limits: Limits) -> Plan:
        xp, workload = self._xp, self._workload
        rows, degrees = workload.rows, workload.rows.degrees
        indptr = xp.zeros(rows.number_of_vertices + 1, np.int64)
        if self._bufferless:
            xp.cumsum(degrees, dtype=np.int64, out=indptr[1:])
            # A warp would be at a very long row when all others have come to the end.
            limits = replace(limits, longest=read_packed.LONGEST)
            plan = make_plan(
                indptr, rows.number_of_edges, rows.index_dtype, workload.classes,
                workload.id_words, limits,
            )  # fmt: skip
            del indptr
            for first, last in parts_of(0, plan.starts.size, plan.starts.size):
                plan.starts[first:last] = self._bits(plan.vertices[first:last])
            self._decoded = np.zeros((len(plan.groups), 2), np.int64)
            return plan
        buffered = degrees * (degrees > LANES) if self._fused else degrees
        xp.cumsum(buffered, dtype=np.int64, out=indptr[1:])
        entries, strip = int(indptr[-1]), None
        most = max(BYTES_A_VERTEX * rows.number_of_vertices, LEAST_BYTES)
        most //= 2 * rows.index_dtype.itemsize
        share = -(-entries // workload.classes)
        # classes are drawn, so some have more than others
        strips = 1 if share + share // 4 <= most else -(-share // most)
        if strips > 1:
            strip = indptr[:-1] // -(-entries // strips)
            strip = xp.minimum(strip, strips - 1, out=strip).astype(np.uint16)
        if self._fused:
            xp.cumsum(degrees, dtype=np.int64, out=indptr[1:])
        plan = make_plan(
            indptr, rows.number_of_edges, rows.index_dtype, workload.classes, workload.id_words,
            limits, strips, strip, merges=False,
        )  # fmt: skip
        del indptr, strip
        self._decoded = to_host(plan.groups[:, [HUBS, SUBWARP_ROWS if self._fused else LAST_END]])
        return replace(plan, buffer=self._place(plan))

    def _place(self, plan: Plan) -> int:
        """Say where each decoded row starts in the buffer; give the entries of the largest group.

        A row starts where the one before ends, from the beginning of the buffer in each group. Of
        rows that are decoded where they are counted, it says at which bit the list begins.
        """
        xp, starts, degrees = self._xp, plan.starts, plan.degrees
        if not starts.size:
            return 0
        begin, end = self._decoded.T
        starts[0] = 0
        xp.cumsum(degrees[:-1], dtype=np.int64, out=starts[1:])
        last = xp.asarray(np.maximum(end - 1, 0))
        first = xp.asarray(np.minimum(begin, starts.size - 1))
        sizes = to_host(starts[last] + degrees[last] - starts[first])
        groups = to_host(plan.groups[:, LAST_END]) - begin
        starts -= xp.repeat(starts[first], groups.tolist())
        if self._fused:
            runs = np.column_stack([end - begin, groups - (end - begin)]).ravel()
            counted_there = xp.repeat(xp.asarray(np.arange(runs.size) % 2 == 1), runs.tolist())
            starts[counted_there] = self._bits(plan.vertices[counted_there])
        return int(np.where(end > begin, sizes, 0).max())

    def _bits(self, vertices: Any) -> Any:
        """Return the bit at which each list begins; without a buffer, goes on behind its degree."""
        rows = self._workload.rows
        places = vertices if rows.order is None else rows.place[vertices]
        begin = rows.lists.offsets[places]
        if self._bufferless:
            begin += packed_numbers.behind_degrees(
                rows.lists.tables, rows.degrees[vertices], self._xp
            )
        return begin

    def _rows(self, plan: Plan) -> tuple[Rows, Rows, Any]:
        xp, rows = self._xp, self._workload.rows
        none, weights = xp.zeros(1, np.int64), rows.weights
        values = first_weight = none
        if weights is None:
            weights = none
        else:
            first_weight = none if isinstance(weights, EqualWeights) else rows.entry_starts
            if hasattr(weights, "values"):
                weights, values = getattr(weights, "codes", none), weights.values
        lists = CompressedLists(
            **self._lists(rows),
            **{name: bound(array) for name, array in self._parts(plan).items()},
            first_weight=bound(first_weight),
            weights=bound(weights if weights.size else xp.zeros(1, weights.dtype)),
            values=bound(values if values.size else xp.zeros(1, values.dtype)),
        )
        readers = lists._replace(**self._lists(self._workload.readers))
        return self._buffer(plan.buffer), readers, lists

    def _lists(self, rows: CompressedCSR) -> dict[str, Any]:
        lists, none = rows.lists, self._xp.zeros(1, np.int64)
        return {
            "words": bound(lists.words),
            "tables": bound(lists.tables),
            "offsets": bound(lists.offsets if lists.offsets.size else none),
            "settings": lists.settings,
            "place": bound(none if rows.order is None else rows.place),
            "order": bound(none if rows.order is None else rows.order),
        }

    def _parts(self, plan: Plan) -> dict[str, Any]:
        """List the parts of long lists, group by group."""
        xp, segment = self._xp, int(self._workload.rows.lists.settings.segment)
        position = xp.flatnonzero(plan.degrees > self._longest)
        if self._bufferless:
            position = position[:0]
        parts = -(-plan.degrees[position].astype(np.int64) // segment)
        until = xp.cumsum(parts)
        number = int(until[-1]) if until.size else 0
        of_list = xp.searchsorted(until, xp.arange(number), side="right")
        part = xp.arange(number) - (until - parts)[of_list]
        position = position[of_list]
        group_parts = xp.searchsorted(position, xp.asarray(self._decoded[:, 0]))
        if number == 0:
            position = part = xp.zeros(1, np.int64)
        return {
            "position": position.astype(np.int64),
            "part": part.astype(np.int32),
            "group_parts": xp.concatenate([group_parts, xp.array([number])]).astype(np.int64),
        }
