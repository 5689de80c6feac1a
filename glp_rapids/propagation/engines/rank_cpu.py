"""The CPU engine of a rank: it evaluates the vertices of a range, and applies what all ranks found.

Labels and state are replicated: every rank has all of them and updates all vertices, so they stay
the same to the last bit, whatever a program writes down. A step is one exchange: of the winners of
a class. Who reads a vertex that changed is looked up in the rank's own lists, of its own vertices.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from glp_rapids.multigpu.exchange import Exchange
from glp_rapids.propagation.compile_program import Compiled
from glp_rapids.propagation.engines import cpu_arrays
from glp_rapids.propagation.engines.cpu import CpuArrays
from glp_rapids.propagation.engines.cpu_streamed import fill_chunks
from glp_rapids.propagation.engines.stepped import SteppedEngine
from glp_rapids.propagation.kernels.cpu import hash_votes, strips
from glp_rapids.propagation.kernels.cpu.unit_votes import rows_in_order, starts_in_order
from glp_rapids.propagation.schedule import Rule, merged, spans_of
from glp_rapids.propagation.workload import Workload

EVALUATE, UPDATE, RECOUNT = hash_votes.ONE_AFTER_ANOTHER


class CpuRankEngine(CpuArrays, SteppedEngine):
    """The engine of one rank; ``workload`` has the rows of its range, other rows are empty.

    Parameters
    ----------
    workload, compiled, fields
        As for any engine; the arrays in ``fields`` are this rank's own.
    exchange : Exchange
        What all ranks tell one another by.
    first, last : int
        The range of its vertices.
    threads : int
        That it works with.
    """

    def __init__(
        self, workload: Workload, compiled: Compiled, fields: dict[str, Any], exchange: Exchange,
        first: int, last: int, threads: int,
    ):  # fmt: skip
        self._exchange, self._range = exchange, (first, last)
        self.classes = workload.classes
        sizes = cpu_arrays.sizes_of(workload, compiled.traits)
        sizes = replace(sizes, threads=min(threads, sizes.threads))
        super().__init__(workload, compiled, fields, sizes, cpu_arrays.resident_layout(sizes))
        self._list_classes()
        rows, readers = workload.rows, workload.readers
        held = rows.indices, *([] if rows.weights is None else [rows.weights])
        entries = list(map(np.asarray, held))
        starts = np.empty(self._vertices.size + 1, np.int64)
        starts_in_order(self._vertices, np.asarray(rows.indptr), starts)
        copies = [np.empty(starts[-1], given.dtype) for given in entries]
        for given, copy in zip(entries, copies, strict=True):
            rows_in_order(
                self._vertices, np.asarray(rows.indptr), starts, given, copy, self._threads
            )
        self._starts, self._entries = starts, (*copies, np.empty(0, np.int64))[:2]
        self._readers = np.asarray(readers.indptr), np.asarray(readers.indices)
        self._score_type = np.float64 if compiled.traits.real_scores else np.int64
        of_classes = merged(self._class_indptr, max(spans_of(self.classes)))
        self._make_lists(int(np.diff(of_classes).max()))

    def _list_classes(self) -> None:
        """List the vertices of the range class after class."""
        super()._list_classes()
        first, last = self._range
        own = (self._vertices >= first) & (self._vertices < last)
        counted = np.concatenate([[0], np.cumsum(own)])
        self._class_indptr = counted[self._class_indptr]
        self._vertices = self._vertices[own]

    def begin(self, rule: Rule) -> None:
        """Get ready for a sweep."""
        self._fields["sweep"] = np.int64(rule.sweep)
        self._changed, self._found = 0, 0

    def groups(self, rule: Rule, number: int) -> Iterable[tuple[int, int]]:
        """Return the stretch of this rank's vertices that are in a class."""
        first, last = merged(self._class_indptr, rule.span)[number : number + 2].tolist()
        return ((first, last),)

    def evaluate(self, rule: Rule, number: int, group: tuple[int, int]) -> None:
        """Find the winners of this rank's vertices of a class."""
        first, last = group
        self._found = 0
        if last == first:
            return
        vertices, starts = self._vertices[first:last], self._starts[first : last + 1]
        arrays = self._winners, self._old, self._counts
        self._run(EVALUATE, rule, vertices, starts, self._skips(rule), *arrays)
        self._found = strips.close_up(hash_votes.CHUNK, vertices.size, self._counts, *self._winners)

    def update(self, rule: Rule, number: int) -> None:
        """Exchange the winners of a class, update all of them, and wake who reads them here."""
        found, plain = self._found, self._compiled.traits.plain
        # copies: others may read them while the next class is evaluated
        sent = [array[:found].copy() for array in self._winners[: 2 if plain else 3]]
        vertices, labels, *scores = self._exchange.allgather(sent)
        if not vertices.size:
            return
        scores = scores[0] if scores else np.empty(vertices.size, self._score_type)
        winners = vertices, labels, scores
        old = np.empty(vertices.size, self._index_type)
        counts = np.empty(vertices.size // hash_votes.CHUNK + 1, np.int64)
        fill_chunks(counts, vertices.size)
        nothing = np.zeros(vertices.size + 1, np.int64)  # rows are not looked at
        skips = self._skips(rule)
        self._changed += self._run(UPDATE, rule, vertices, nothing, skips, winners, old, counts)
        if self._compiled.traits.count_volumes:
            self._run(RECOUNT, rule, vertices, nothing, False, winners, old, counts)

    def report(self) -> int:
        """Return how many labels the sweep changed, as all ranks agree; and what failed."""
        failure = super().failure()
        told = self._exchange.tell((self._changed, failure))
        agree([changed for changed, _ in told])
        self._agreed = min(failure for _, failure in told)
        return self._changed

    def start(self) -> None:
        """Write the first label of every vertex."""
        super().start()
        self._agreed = super().failure()  # all ranks do the same here

    def failure(self) -> int:
        """Return what a function of the program got wrong on any rank, or 0."""
        return self._agreed

    def pending(self) -> np.ndarray | None:
        """Return the vertices of this rank that are not known to be settled; None: nobody noted."""
        if not self._workload.skip:
            return None
        first, last = self._range
        return first + np.flatnonzero(self._slack[first:last] < 0)

    def _run(
        self, phases: tuple, rule: Rule, vertices: np.ndarray, starts: np.ndarray, skips: bool,
        winners: tuple, old: np.ndarray, counts: np.ndarray,
    ) -> int:  # fmt: skip
        return int(self._kernel(
            self._threads, phases, np.array([0, vertices.size]), vertices, starts,
            *self._entries, *self._readers, tuple(self._fields.values()),
            (skips, rule.revisit_tied), self._settings(rule), self._tables, self._slack,
            self._tied, winners, old, counts, self._errors,
        ))  # fmt: skip


def agree(changed: list[int]) -> None:
    """Raise if ranks counted different changes: their labels are no longer the same."""
    if len(set(changed)) > 1:
        raise RuntimeError(
            f"the ranks of one run counted {changed} changes in one sweep, which is a defect of "
            "glp_rapids (or of memory); please report it, and run on one device"
        )
