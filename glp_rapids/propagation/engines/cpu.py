"""The CPU engine: the arrays of a run, and one call of compiled code a sweep."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from glp_rapids.jit.interrupts import A_CALL
from glp_rapids.propagation.compile_program import Compiled
from glp_rapids.propagation.engines import cpu_arrays
from glp_rapids.propagation.engines.cpu_arrays import Layout, Sizes
from glp_rapids.propagation.engines.stepped import SweptEngine
from glp_rapids.propagation.kernels.cpu import hash_votes
from glp_rapids.propagation.kernels.cpu.class_lists import vertices_by_class
from glp_rapids.propagation.kernels.cpu.tables import DIRECT, STAMPED
from glp_rapids.propagation.kernels.cpu.unit_votes import rows_in_order, starts_in_order
from glp_rapids.propagation.schedule import Rule, merged
from glp_rapids.propagation.workload import Workload


class CpuArrays:
    """The arrays of a run on a CPU, which both engines have; `cpu_arrays` plans them."""

    def __init__(
        self, workload: Workload, compiled: Compiled, fields: dict[str, Any], sizes: Sizes,
        layout: Layout,
    ):  # fmt: skip
        self._workload, self._compiled, self._fields = workload, compiled, fields
        self._index_type, self._threads = workload.rows.index_dtype, layout.threads
        self._kernel = hash_votes.sweep_kernel(compiled, layout.tables == STAMPED)
        made = [planned.made() for planned in cpu_arrays.tables_of(sizes, layout).values()]
        self._tables = (*made, *([] if layout.tables == STAMPED else [layout.tables == DIRECT]))
        arrays = cpu_arrays.state_arrays(sizes, layout)
        self._tied, self._errors = arrays["tied"].made(), arrays["errors"].made()
        if workload.active is None:
            self._slack = arrays["slack"].made()
        else:
            self._slack = arrays["slack"]._replace(first=0).made()
            self._slack[workload.active] = -1

    def _list_classes(self) -> None:
        """List the vertices class after class."""
        self._class_indptr = cpu_arrays.class_offsets_of(self._workload)
        self._vertices = np.empty(self._slack.size, self._index_type)
        vertices_by_class(self._workload.id_words, self._class_indptr, self._vertices)

    def _make_lists(self, size: int) -> None:
        """Make room for the winners of so many vertices, and for their labels before."""
        score_type = np.float64 if self._compiled.traits.real_scores else np.int64
        planned = cpu_arrays.winner_arrays(size, self._index_type, score_type)
        *self._winners, self._old, self._counts = (array.made() for array in planned.values())
        self._winners = tuple(self._winners)

    def start(self) -> None:
        """Write the first label of every vertex."""
        if self._compiled.traits.default_pick:
            return
        hash_votes.start_kernel(self._compiled)(tuple(self._fields.values()), self._errors[0])
        if "volume" in self._fields:
            labels = self._fields["labels"]
            self._fields["volume"][:] = np.bincount(labels[labels >= 0], minlength=labels.size)

    def _skips(self, rule: Rule) -> bool:
        """Tell whether a sweep leaves out inactive vertices, and marks those a change concerns."""
        # At first nearly every label changes: to mark all vertices at once is cheaper than each.
        return self._workload.skip and (self._workload.marks or not rule.activates_all)

    def _settings(self, rule: Rule) -> hash_votes.SweepRule:
        workload = self._workload
        seed = np.uint64(rule.tie_seed)
        ties = (rule.retain, np.int64(rule.tie_break), seed, *workload.id_words)
        return hash_votes.SweepRule(
            ties, np.float64(workload.scale), np.float64(workload.largest_amount),
            np.int64(workload.largest_vote),
        )  # fmt: skip

    def pending(self) -> np.ndarray | None:
        """Return the vertices that are not known to be settled, ascending; None: nobody noted."""
        return np.flatnonzero(self._slack < 0) if self._workload.skip else None

    def go_on(self, slack: np.ndarray) -> None:
        """Begin where another engine has done some sweeps."""
        self._slack[:] = slack

    def failure(self) -> int:
        """Return what a function of the program got wrong (see `failures`), or 0."""
        return int(self._errors[:, 1].min())


class CpuEngine(CpuArrays, SweptEngine):
    """The engine of plain rows: all classes of a sweep in one call, or in a few."""

    def __init__(self, workload: Workload, compiled: Compiled, fields: dict[str, Any]):
        sizes = cpu_arrays.sizes_of(workload, compiled.traits)
        super().__init__(workload, compiled, fields, sizes, cpu_arrays.resident_layout(sizes))
        self._list_classes()
        rows, readers = workload.rows, workload.readers
        held = rows.indices, *([] if rows.weights is None else [rows.weights])
        # of arrays in mapped files, what Numba knows as arrays
        indptr, entries = np.asarray(rows.indptr), list(map(np.asarray, held))
        if workload.classes > 1:
            starts, *copies = (one.made() for one in cpu_arrays.rows_by_class(sizes).values())
            starts_in_order(self._vertices, indptr, starts)
            for given, copy in zip(entries, copies, strict=True):
                rows_in_order(self._vertices, indptr, starts, given, copy, self._threads)
            indptr, entries = starts, copies
        indices, weights = (*entries, np.empty(0, np.int64))[:2]
        lists = np.asarray(readers.indptr), np.asarray(readers.indices)
        self._csr = self._vertices, indptr, indices, weights, *lists
        self._make_lists(rows.number_of_vertices)
        self._entries_a_call = A_CALL // 2 if compiled.traits.plain else A_CALL // 4
        self._calls: dict[int, list] = {}

    def _calls_of(self, span: int) -> list:
        """List the calls of a sweep that updates so many neighbouring classes as one."""
        if span not in self._calls:
            classes = merged(self._class_indptr, span)
            self._calls[span] = list(calls_of(classes, self._csr[1], self._entries_a_call))
        return self._calls[span]

    def sweep(self, rule: Rule) -> int:
        """Do one sweep; return how many labels it changed."""
        self._fields["sweep"] = np.int64(rule.sweep)
        return sum(
            int(self._kernel(
                self._threads, phases, groups, *self._csr, tuple(self._fields.values()),
                (self._skips(rule), rule.revisit_tied), self._settings(rule), self._tables,
                self._slack, self._tied, self._winners, self._old, self._counts[chunk:],
                self._errors,
            ))
            for phases, groups, chunk in self._calls_of(rule.span)
        )  # fmt: skip


def calls_of(
    class_indptr: np.ndarray, indptr: np.ndarray, entries: int
) -> Iterator[tuple[tuple, np.ndarray, int]]:
    """Cut a sweep into calls of about so many entries, so that Ctrl-C is noticed between them.

    Each is some phases of some classes, or parts of one, and the chunk of the class it begins with.
    """
    ends = indptr[class_indptr]
    group, groups = 0, class_indptr.size - 1
    while group < groups:
        beyond = int(np.searchsorted(ends, ends[group] + entries, side="right")) - 1
        if beyond > group:
            yield hash_votes.EVERYTHING, class_indptr[group : beyond + 1], 0
            group = beyond
            continue
        first, last = class_indptr[group : group + 2].tolist()
        chunks = first + np.arange(0, last - first, hash_votes.CHUNK)
        cuts = np.searchsorted(indptr[chunks], np.arange(ends[group], ends[group + 1], entries))
        cuts = [*np.unique(chunks[np.minimum(cuts, chunks.size - 1)]).tolist(), last]
        for phases in hash_votes.ONE_AFTER_ANOTHER:
            for part in pairwise(cuts):
                yield phases, np.array(part), (part[0] - first) // hash_votes.CHUNK
        group += 1
