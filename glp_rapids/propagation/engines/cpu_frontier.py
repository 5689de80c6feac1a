"""The CPU engine of a warm run where few vertices are active: it looks at them alone.

Rows stay where they are. What is made for all vertices begins with zeros that the system hands out
as they are looked at, so a run takes as long as what changes. Should the changes spread after all,
the engine of the run's way goes on from there.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from glp_rapids.propagation.compile_program import Compiled
from glp_rapids.propagation.engines import cpu_arrays
from glp_rapids.propagation.engines.cpu import CpuArrays, CpuEngine
from glp_rapids.propagation.engines.stepped import SweptEngine
from glp_rapids.propagation.kernels.cpu import frontier
from glp_rapids.propagation.kernels.cpu.hash_votes import CHUNK
from glp_rapids.propagation.kernels.cpu.tables import STAMPED
from glp_rapids.propagation.schedule import Rule
from glp_rapids.propagation.workload import Workload

OF_ENTRIES, OF_VERTICES = 4, 8  # so small a part of them is active at first, at the most
SPREAD = 8  # as soon as more than one vertex in so many is active, the other engine goes on
BUFFER = 1 << 12  # entries, or the longest row


def engine_for(workload: Workload, compiled: Compiled, fields: dict[str, Any]) -> SweptEngine:
    """Return the engine of plain rows that suits how many vertices and entries are active."""
    rows, active = workload.rows, workload.active
    few = active is not None and active.size * OF_VERTICES <= rows.number_of_vertices
    few = few and workload.active_entries * OF_ENTRIES <= rows.number_of_edges
    return (FrontierCpuEngine if few else CpuEngine)(workload, compiled, fields)


class FrontierCpuEngine(CpuArrays, SweptEngine):
    """The engine of plain rows of which few vertices are active; ``workload.active`` are listed."""

    def __init__(self, workload: Workload, compiled: Compiled, fields: dict[str, Any]):
        sizes = replace(cpu_arrays.sizes_of(workload, compiled.traits), threads=1)
        layout = cpu_arrays.resident_layout(sizes)
        super().__init__(workload, compiled, fields, sizes, layout)
        self._kernel = frontier.sweep_kernel(compiled, layout.tables == STAMPED)
        rows, readers = workload.rows, workload.readers
        weights = np.empty(0, np.int64) if rows.weights is None else np.asarray(rows.weights)
        self._rows = np.asarray(rows.indptr), np.asarray(rows.indices), weights
        self._readers = np.asarray(readers.indptr), np.asarray(readers.indices)
        room = max(BUFFER, workload.largest_degree)
        amounts = np.empty(room if weights.size else 0, weights.dtype)
        neighbours = np.empty(room, rows.index_dtype)
        self._buffer = np.zeros(CHUNK + 1, np.int64), neighbours, amounts
        self._make_lists(rows.number_of_vertices)
        self._chosen = np.empty(rows.number_of_vertices, rows.index_dtype)
        self._lists = frontier.lists_of(workload.classes, rows.number_of_vertices, rows.index_dtype)
        frontier.put_all(workload.active, tuple(workload.id_words), self._lists)
        self._rest: CpuEngine | None = None

    def sweep(self, rule: Rule) -> int:
        """Do one sweep; return how many labels it changed."""
        if self._rest is None and self._lists.count[0] * SPREAD > self._slack.size:
            spread = replace(self._workload, active=self.pending(), active_entries=None)
            self._rest = CpuEngine(spread, self._compiled, self._fields)
            self._rest.go_on(self._slack)
        if self._rest is not None:
            return self._rest.sweep(rule)
        self._fields["sweep"] = np.int64(rule.sweep)
        return int(self._kernel(
            rule.span, self._rows, self._readers, self._buffer, tuple(self._fields.values()),
            self._settings(rule), self._tables, self._slack, self._tied,
            tuple(self._workload.id_words), self._lists, self._chosen, self._winners, self._old,
            self._errors[0],
        ))  # fmt: skip

    def pending(self) -> np.ndarray | None:
        """Return the vertices that are not known to be settled, ascending."""
        if self._rest is not None:
            return self._rest.pending()
        return np.flatnonzero(self._lists.listed.view(bool))

    def failure(self) -> int:
        """Return what a function of the program got wrong (see `failures`), or 0."""
        return min(super().failure(), 0 if self._rest is None else self._rest.failure())
