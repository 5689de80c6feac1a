"""The GPU engine on a compressed graph: the same kernel, which decodes what a group needs first.

On the device are the compressed lists, where each begins and its degree (12 bytes a vertex), what
the engine keeps of any graph, and a buffer for the decoded rows of one group. If all rows of a
class are too many for the buffer, the class is cut into strips; then nobody is put to sleep, since
who wakes a vertex's readers needs its row.
"""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np

from glp_rapids.compressed import lists
from glp_rapids.compressed.csr import CompressedCSR
from glp_rapids.compressed.decode import decode_rows
from glp_rapids.device import array_module, to_host
from glp_rapids.graph import CSR
from glp_rapids.propagation.compilation import Compiled
from glp_rapids.propagation.course import Course
from glp_rapids.propagation.kernels.auto import AutoEngine, kernels_of
from glp_rapids.propagation.kernels.auto_common import LANES, Rows
from glp_rapids.propagation.kernels.auto_fetch import Stream
from glp_rapids.propagation.kernels.auto_plan import BINS, BOUNDS, Limits, Plan, make_plan
from glp_rapids.propagation.kernels.cuda_target import bound, gpu_target
from glp_rapids.propagation.sweep import Workload
from glp_rapids.sorting import rows_of

# Entries of the buffer: for each vertex, and at least. Three of four bytes each leave room, in 60
# bytes a vertex, for all that a run takes beside the lists.
ENTRIES_A_VERTEX, LEAST_ENTRIES = 3, 1 << 20


def plain_rows(rows: CompressedCSR, weighted: bool = True) -> CSR:
    """Decode everything; with an order the entries of a row do not ascend."""
    xp, place = array_module(rows.lists.words), rows.place
    indptr = xp.zeros(rows.number_of_vertices + 1, np.int64)
    xp.cumsum(rows.degrees, dtype=np.int64, out=indptr[1:])
    indices = xp.empty(rows.number_of_edges, rows.index_dtype)
    fill(rows, indptr, indices)
    weights = rows.weights
    if weights is None or not weighted:
        return CSR(indptr, indices, None)
    if hasattr(weights, "codes"):
        weights = weights.decoded()
    if place is not None:
        row = rows_of(indptr, indices)
        weights = weights[(rows.entry_starts[place] - indptr[:-1])[row] + xp.arange(indices.size)]
    return CSR(indptr, indices, weights)


def fill(rows: CompressedCSR, indptr: Any, indices: Any) -> None:
    """Decode all rows to where ``indptr`` says."""
    decode_rows(rows.lists, rows.place, indices, indptr)
    if rows.order is not None:
        rows.order.take(indices, out=indices)


class DecodeEngine(AutoEngine):
    """Decode the whole graph before every sweep, as CGLP does (GLP, TKDE'24): to compare with.

    The graph must fit the device as it is.
    """

    def __init__(self, workload: Workload, compiled: Compiled, fields: dict[str, Any]):
        self._compressed = workload.rows
        rows = plain_rows(workload.rows)
        readers = rows if workload.readers is workload.rows else plain_rows(workload.readers)
        # what is kept would hold on to these rows
        super().__init__(replace(workload, rows=rows, readers=readers, kept={}), compiled, fields)

    def advance(self, course: Course, sweeps: int) -> None:
        """Do up to so many sweeps, each after decoding."""
        rows = self._workload.rows
        until = len(course.changed) + sweeps
        while not course.over and len(course.changed) < until and not self.bad_amounts():
            fill(self._compressed, rows.indptr, rows.indices)
            super().advance(course, 1)


class CompressedEngine(AutoEngine):
    """Run one program on one compressed graph with a GPU."""

    def __init__(self, workload: Workload, compiled: Compiled, fields: dict[str, Any]):
        rows = workload.rows
        plain = compiled.traits.plain
        entries = -(-rows.number_of_edges // workload.classes)
        most = max(ENTRIES_A_VERTEX * rows.number_of_vertices, LEAST_ENTRIES)
        # classes are drawn, so some have more than others
        self._strips = 1 if entries + entries // 4 <= most else -(-entries // most)
        self._own_readers = workload.readers is rows
        if workload.skip and not plain:
            # What a program's own functions do must not be done once more than on a CPU.
            self._strips = 1
        elif self._strips > 1 or not self._own_readers:
            workload = replace(workload, skip=False)
        self._room = 0  # entries of the largest group
        super().__init__(workload, compiled, fields)

    def _kernels(self) -> tuple:
        rows = self._workload.rows
        scheme = rows.lists.layout.scheme
        how = SimpleNamespace(
            functions=lists.build(scheme, gpu_target()),
            ordered=rows.order is not None,
            weighted=rows.weights is not None,
            coded=hasattr(rows.weights, "codes"),
            own_readers=self._own_readers,
        )
        how.digest = f"{scheme} {how.ordered} {how.weighted} {how.coded} {how.own_readers}"
        return kernels_of(self._compiled, rows.index_dtype.type, how)

    def _plan(self, limits: Limits) -> Plan:
        xp, rows = self._xp, self._workload.rows
        indptr = xp.zeros(rows.number_of_vertices + 1, np.int64)
        xp.cumsum(rows.degrees, dtype=np.int64, out=indptr[1:])
        plan = make_plan(
            indptr, rows.number_of_edges, rows.index_dtype, self._workload.classes, limits,
            self._strips,
        )  # fmt: skip
        del indptr
        # A row starts where the one before ends, from the beginning of the buffer in each group.
        bounds = to_host(plan.meta[:, [BOUNDS, BOUNDS + BINS + 2]])
        starts = plan.starts
        if starts.size:
            starts[0] = 0
            xp.cumsum(plan.degrees[:-1], dtype=np.int64, out=starts[1:])
            ends = to_host(starts[xp.asarray(np.maximum(bounds[:, 1] - 1, 0))])
            ends += to_host(plan.degrees[xp.asarray(np.maximum(bounds[:, 1] - 1, 0))])
            begins = starts[xp.asarray(np.minimum(bounds[:, 0], starts.size - 1))]
            starts -= xp.repeat(begins, (bounds[:, 1] - bounds[:, 0]).tolist())
            sizes = np.where(bounds[:, 1] > bounds[:, 0], ends - to_host(begins), 0)
            self._room = int(sizes.max())
        self._first_positions = bounds[:, 0]
        return plan

    def _rows(self, plan: Plan) -> tuple[Rows, Rows, Any]:
        xp, rows = self._xp, self._workload.rows
        index_type = rows.index_dtype.type
        compressed = rows.lists
        none, weights = xp.zeros(1, np.int64), rows.weights
        values = first_weight = none
        if weights is None:
            weights = none
        else:
            first_weight = rows.entry_starts
            if hasattr(weights, "codes"):
                weights, values = weights.codes, weights.values
        room = self._room if rows.weights is not None else 1
        buffer = Rows(
            bound(none),
            bound(xp.zeros(max(self._room, 1), index_type)),
            bound(xp.zeros(max(room, 1), none.dtype if room == 1 else rows.weights.dtype)),
        )
        readers = buffer
        if self._workload.skip and not self._own_readers:
            decoded = plain_rows(self._workload.readers, weighted=False)
            readers = Rows(bound(decoded.indptr), bound(decoded.indices), buffer.weights)
        stream = Stream(
            words=bound(compressed.words),
            tables=bound(compressed.tables),
            offsets=bound(compressed.offsets if compressed.offsets.size else none),
            settings=compressed.settings,
            **{name: bound(array) for name, array in self._items(plan).items()},
            place=bound(none if rows.order is None else rows.place),
            order=bound(none if rows.order is None else rows.order),
            first_weight=bound(first_weight),
            weights=bound(weights if weights.size else none),
            values=bound(values if values.size else none),
        )
        return buffer, readers, stream

    def _items(self, plan: Plan) -> dict[str, Any]:
        """List the parts of long lists, 32 an item."""
        xp, rows = self._xp, self._workload.rows
        settings = rows.lists.settings
        segment = int(settings.segment)
        position = xp.flatnonzero(plan.degrees > max(segment, int(settings.raw_below)))
        items = -(-plan.degrees[position].astype(np.int64) // (segment * LANES))
        until = xp.cumsum(items)
        number = int(until[-1]) if until.size else 0
        of_list = xp.searchsorted(until, xp.arange(number), side="right")
        first_item = until - items
        part = (xp.arange(of_list.size) - first_item[of_list]) * LANES
        group_items = xp.searchsorted(position[of_list], xp.asarray(self._first_positions))
        group_items = xp.concatenate([group_items, xp.array([number])]).astype(np.int64)
        arrays = {"position": position[of_list], "part": part}
        arrays = {
            name: array.astype(np.int64) if array.size else xp.zeros(1, np.int64)
            for name, array in arrays.items()
        }
        return {**arrays, "group_items": group_items}
