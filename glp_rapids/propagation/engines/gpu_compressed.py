"""The GPU engine on a compressed graph: the same kernel, which decodes what it needs.

On the device are the compressed lists, where each begins and its degree (12 bytes a vertex), and
what the engine keeps of any graph. Lists under "packed" are decoded where they are counted. Of
other lists the long ones are decoded into a buffer for two groups: one is decoded while the other
is evaluated. If those of a class are too many for half of it, the class is cut into strips.
"""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np

from glp_rapids.compressed.rows import CompressedCSR
from glp_rapids.compressed.weights import EqualWeights
from glp_rapids.device import to_host
from glp_rapids.jit.cuda import bound
from glp_rapids.propagation.compile_program import Compiled
from glp_rapids.propagation.engines.gpu import PersistentEngine, kernels_of
from glp_rapids.propagation.kernels.gpu import read_packed
from glp_rapids.propagation.kernels.gpu.decode_buffer import FETCHED, Stream
from glp_rapids.propagation.kernels.gpu.plan import (
    BINS,
    BOUNDS,
    WARP,
    Limits,
    Plan,
    make_plan,
    parts_of,
)
from glp_rapids.propagation.kernels.gpu.votes import Rows
from glp_rapids.propagation.schedule import Schedule
from glp_rapids.propagation.workload import Workload

# Of decoded rows, those of two groups: for each vertex, and at least. It leaves room, in 60 bytes a
# vertex, for all else that a run takes beside the lists.
BYTES_A_VERTEX, LEAST_BYTES = 20, 1 << 23
LAST = BOUNDS + BINS + 2  # of a row of the plan: where the group ends
NEAR = ("packed",)  # schemes whose parts a warp reads at once


def _weight_type(weights: Any) -> Any:
    return np.int64 if weights is None else weights.dtype


class CompressedPersistentEngine(PersistentEngine):
    """Run one program on one compressed graph with a GPU."""

    def __init__(self, workload: Workload, compiled: Compiled, fields: dict[str, Any]):
        # no row is in order, so none can be searched
        workload = replace(workload, once=False)
        rows = workload.rows
        settings = rows.lists.settings
        # Lists of one piece; short ones that are all of one are decoded where they are counted.
        self._longest = max(int(settings.segment), int(settings.raw_below))
        self._fused = rows.weights is None and self._longest >= WARP
        # Parts that a warp reads at once; lists that are left raw are not parts.
        self._near = (
            self._fused
            and rows.lists.layout.scheme in NEAR
            and int(settings.segment) == read_packed.SEGMENT
            and int(settings.raw_below) <= WARP
            and int(settings.min_interval) != 1  # then a part may have more numbers than entries
            and read_packed.fits(rows.lists.tables, rows.index_dtype)
        )
        super().__init__(workload, compiled, fields)
        self._room = self._workspace.plan.room
        if self._workspace.rows is None:
            self._workspace.rows = self._buffer(self._room)

    def advance(self, schedule: Schedule, sweeps: int) -> None:
        """Do up to so many sweeps in one launch."""
        workspace = self._workspace
        super().advance(schedule, sweeps)
        if schedule.over:
            workspace.rows = None  # made anew sooner than kept

    def _buffer(self, room: int) -> Rows:
        """Make room for the decoded rows of two groups."""
        xp, weights = self._xp, self._workload.rows.weights
        size = max(2 * room, 1)
        return Rows(
            bound(xp.zeros(1, np.int64)),
            bound(xp.zeros(size, self._workload.rows.index_dtype)),
            bound(xp.zeros(1 if weights is None else size, _weight_type(weights))),
        )

    def _kernels(self) -> tuple:
        rows = self._workload.rows
        how = SimpleNamespace(
            scheme=rows.lists.layout.scheme,
            ordered=rows.order is not None,
            weighted=rows.weights is not None,
            coded=hasattr(rows.weights, "codes"),
            equal=isinstance(rows.weights, EqualWeights),
            fused=self._fused,
            near=self._near,
        )
        # a kernel of one digest has one signature
        arrays = rows.order, getattr(rows.weights, "codes", None)
        types = [None if array is None else array.dtype.str for array in arrays]
        how.digest = f"{vars(how)} {types}"
        return kernels_of(self._compiled, rows.index_dtype.type, how)

    def _plan(self, limits: Limits) -> Plan:
        xp, workload = self._xp, self._workload
        rows, degrees = workload.rows, workload.rows.degrees
        indptr = xp.zeros(rows.number_of_vertices + 1, np.int64)
        if self._near:
            xp.cumsum(degrees, dtype=np.int64, out=indptr[1:])
            # A warp would be at a very long row when all others have come to the end.
            limits = replace(limits, longest=read_packed.LONGEST)
            plan = make_plan(
                indptr, rows.number_of_edges, rows.index_dtype, workload.classes, limits
            )
            del indptr
            for first, last in parts_of(0, plan.starts.size, plan.starts.size):
                plan.starts[first:last] = self._bits(plan.vertices[first:last])
            self._bounds = np.zeros((workload.classes, 2), np.int64)
            return plan
        fetched = degrees * (degrees > WARP) if self._fused else degrees
        xp.cumsum(fetched, dtype=np.int64, out=indptr[1:])
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
            indptr, rows.number_of_edges, rows.index_dtype, workload.classes, limits, strips, strip
        )
        del indptr, strip
        self._bounds = to_host(plan.meta[:, [BOUNDS, FETCHED if self._fused else LAST]])
        return replace(plan, room=self._place(plan))

    def _place(self, plan: Plan) -> int:
        """Say where each fetched row starts in the buffer; give the entries of the largest group.

        A row starts where the one before ends, from the beginning of the buffer in each group. Of
        rows that are decoded where they are counted, it says at which bit the list begins.
        """
        xp, starts, degrees = self._xp, plan.starts, plan.degrees
        if not starts.size:
            return 0
        begin, end = self._bounds.T
        starts[0] = 0
        xp.cumsum(degrees[:-1], dtype=np.int64, out=starts[1:])
        last = xp.asarray(np.maximum(end - 1, 0))
        first = xp.asarray(np.minimum(begin, starts.size - 1))
        sizes = to_host(starts[last] + degrees[last] - starts[first])
        groups = to_host(plan.meta[:, LAST]) - begin
        starts -= xp.repeat(starts[first], groups.tolist())
        if self._fused:
            runs = np.column_stack([end - begin, groups - (end - begin)]).ravel()
            near = xp.repeat(xp.asarray(np.arange(runs.size) % 2 == 1), runs.tolist())
            starts[near] = self._bits(plan.vertices[near])
        return int(np.where(end > begin, sizes, 0).max())

    def _bits(self, vertices: Any) -> Any:
        """Give the bit at which the list of each vertex begins; or if near, goes on behind that."""
        rows = self._workload.rows
        places = vertices if rows.order is None else rows.place[vertices]
        begin = rows.lists.offsets[places]
        if self._near:
            begin += read_packed.behind_degrees(rows.lists.tables, rows.degrees[vertices], self._xp)
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
        stream = Stream(
            **self._lists(rows),
            **{name: bound(array) for name, array in self._parts(plan).items()},
            first_weight=bound(first_weight),
            weights=bound(weights if weights.size else xp.zeros(1, weights.dtype)),
            values=bound(values if values.size else xp.zeros(1, values.dtype)),
        )
        readers = stream._replace(**self._lists(self._workload.readers))
        return self._buffer(plan.room), readers, stream

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
        if self._near:
            position = position[:0]
        parts = -(-plan.degrees[position].astype(np.int64) // segment)
        until = xp.cumsum(parts)
        number = int(until[-1]) if until.size else 0
        of_list = xp.searchsorted(until, xp.arange(number), side="right")
        part = xp.arange(number) - (until - parts)[of_list]
        position = position[of_list]
        group_parts = xp.searchsorted(position, xp.asarray(self._bounds[:, 0]))
        if number == 0:
            position = part = xp.zeros(1, np.int64)
        return {
            "position": position.astype(np.int64),
            "part": part.astype(np.int32),
            "group_parts": xp.concatenate([group_parts, xp.array([number])]).astype(np.int64),
        }
