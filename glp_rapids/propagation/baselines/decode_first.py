"""Decode-first: the whole compressed graph is decoded before every sweep, to compare with."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from glp_rapids.common.segments import segment_ids
from glp_rapids.compressed.decode import decode_rows
from glp_rapids.compressed.rows import CompressedCSR
from glp_rapids.device import array_module
from glp_rapids.graph.rows import CSR
from glp_rapids.propagation.compile_program import Compiled
from glp_rapids.propagation.engines.gpu import PersistentEngine
from glp_rapids.propagation.schedule import Schedule
from glp_rapids.propagation.workload import Workload


class DecodeEngine(PersistentEngine):
    """Run with a GPU as CGLP does (GLP, TKDE'24): decode, then do a plain sweep.

    The graph must fit the device as it is.
    """

    def __init__(self, workload: Workload, compiled: Compiled, fields: dict[str, Any]):
        self._compressed = workload.rows
        rows = plain_rows(workload.rows)
        readers = rows if workload.readers is workload.rows else plain_rows(workload.readers, False)
        # what is kept would hold on to these rows
        workload = replace(workload, rows=rows, readers=readers, once=False, kept={})
        super().__init__(workload, compiled, fields)

    def advance(self, schedule: Schedule, sweeps: int) -> None:
        """Do up to so many sweeps, each after decoding."""
        rows = self._workload.rows
        until = len(schedule.changed) + sweeps
        while not schedule.over and len(schedule.changed) < until and not self.failure():
            fill(self._compressed, rows.indptr, rows.indices)
            super().advance(schedule, 1)


def plain_rows(rows: CompressedCSR, weighted: bool = True) -> CSR:
    """Decode everything, the entries of a row in no order."""
    xp, place = array_module(rows.lists.words), rows.place
    indptr = xp.zeros(rows.number_of_vertices + 1, np.int64)
    xp.cumsum(rows.degrees, dtype=np.int64, out=indptr[1:])
    indices = xp.empty(rows.number_of_edges, rows.index_dtype)
    fill(rows, indptr, indices)
    weights = rows.weights
    if weights is None or not weighted:
        return CSR(indptr, indices, None)
    if hasattr(weights, "decoded"):
        weights = weights.decoded()
    if place is not None:
        row = segment_ids(indptr, indices.dtype, indices.size)
        weights = weights[(rows.entry_starts[place] - indptr[:-1])[row] + xp.arange(indices.size)]
    return CSR(indptr, indices, weights)


def fill(rows: CompressedCSR, indptr: Any, indices: Any) -> None:
    """Decode all rows to where ``indptr`` says."""
    decode_rows(rows.lists, rows.place, indices, indptr, in_order=False)
    if rows.order is not None:
        rows.order.take(indices, out=indices)
