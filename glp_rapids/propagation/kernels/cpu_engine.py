"""The CPU engine: the arrays of a run, and one call of compiled code a sweep."""

from __future__ import annotations

from typing import Any

import numpy as np

from glp_rapids.propagation.compilation import Compiled
from glp_rapids.propagation.course import Rule, SweepBySweep
from glp_rapids.propagation.kernels import cpu
from glp_rapids.propagation.kernels.cpu_unit import LARGEST_TABLE, rows_in_order
from glp_rapids.propagation.sweep import Workload, class_lists


class CpuEngine(SweepBySweep):
    """Run one program on one graph with all cores."""

    def __init__(self, workload: Workload, compiled: Compiled, fields: dict[str, Any]):
        rows, readers = workload.rows, workload.readers
        number_of_vertices = rows.indptr.size - 1
        self._workload, self._compiled, self._fields = workload, compiled, fields
        self._threads = cpu.threads_for(rows.indices.size)
        stamped = (
            compiled.traits.unit_votes
            and compiled.traits.default_score
            and number_of_vertices <= LARGEST_TABLE
        )
        self._kernel = cpu.sweep_kernel(compiled, self._threads > 1, stamped)
        self._class_indptr, vertices = class_lists(number_of_vertices, workload.classes, np)
        index_type = rows.indices.dtype
        score_type = np.float64 if compiled.traits.real_scores else np.int64
        weights = rows.weights
        if weights is None:
            weights = np.empty(0, np.int64)
        vertices = vertices.astype(index_type)
        indptr, indices = rows.indptr, rows.indices
        if workload.classes > 1:
            entries = (indices, weights)[: 1 if rows.weights is None else 2]
            indptr, *entries = rows_in_order(vertices, indptr, entries, self._threads)
            indices, weights = (*entries, weights)[:2]
        self._csr = vertices, indptr, indices, weights, readers.indptr, readers.indices
        self._tables = cpu.tables_for(
            number_of_vertices, workload.largest_degree, self._threads, index_type, stamped
        )
        self._active = np.ones(number_of_vertices, np.uint8)
        self._tied = np.zeros(number_of_vertices, np.uint8)
        self._winners = (
            np.empty(number_of_vertices, index_type),
            np.empty(number_of_vertices, index_type),
            np.empty(number_of_vertices, score_type),
        )
        self._old = np.empty(number_of_vertices, index_type)
        self._counts = np.empty(number_of_vertices // cpu.CHUNK + 1, np.int64)
        self._errors = np.zeros((self._threads, 1), np.int64)

    def start(self) -> None:
        """Let every vertex say its first label."""
        if self._compiled.traits.default_pick:
            return
        cpu.start_kernel(self._compiled)(tuple(self._fields.values()))
        if "volume" in self._fields:
            labels = self._fields["labels"]
            self._fields["volume"][:] = np.bincount(labels[labels >= 0], minlength=labels.size)

    def sweep(self, rule: Rule) -> int:
        """Do one sweep; return how many vertices now say another label."""
        self._fields["sweep"] = np.int64(rule.sweep)
        # At first nearly every label changes: waking everyone at once is cheaper than one by one.
        wholesale = rule.sweep == 1
        flags = (self._workload.skip and not wholesale, rule.revisit_tied)
        settings = (
            rule.retain, np.int64(rule.tie_break), np.uint64(rule.tie_seed),
            np.float64(self._workload.scale), np.float64(self._workload.largest_amount),
        )
        return int(self._kernel(
            self._threads, self._class_indptr, *self._csr, tuple(self._fields.values()), flags,
            settings, self._tables, self._active, self._tied, self._winners, self._old,
            self._counts, self._errors,
        ))

    def bad_amounts(self) -> bool:
        """Tell whether a program returned amounts that are not finite or too large."""
        return bool(self._errors.any())
