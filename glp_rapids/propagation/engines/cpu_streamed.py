"""The CPU engine of rows that stay where they lie: those of a class are read, then swept.

A sweep goes class after class. The rows that a class needs are read into one buffer by all threads:
compressed lists are decoded, plain ones copied, out of memory or out of a mapped file. The sweep of
plain rows runs on that. A class that the buffer does not hold is read in strips: all are evaluated
before any vertex is updated, so the outcome is the same. The neighbours of a vertex that changed
become active: plain lists of readers are looked at where they lie; compressed ones are in the
buffer still or, for classes in strips and in directed graphs, are decoded once more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from glp_rapids.compressed.decode_some import copy_entries, read_lists
from glp_rapids.compressed.rows import CompressedCSR
from glp_rapids.graph.rows import CSR, Rows
from glp_rapids.jit.parallel import threads_available
from glp_rapids.propagation.compile_program import Compiled
from glp_rapids.propagation.engines import cpu_arrays
from glp_rapids.propagation.engines.cpu import CpuArrays, CpuEngine
from glp_rapids.propagation.engines.stepped import SteppedEngine, SweptEngine
from glp_rapids.propagation.kernels.cpu import hash_votes, strips
from glp_rapids.propagation.kernels.cpu.unit_votes import copy_rows
from glp_rapids.propagation.schedule import Rule, merged
from glp_rapids.propagation.workload import Workload

EVALUATE, UPDATE, RECOUNT = hash_votes.ONE_AFTER_ANOTHER


def packed_engine(workload: Workload, compiled: Compiled, fields: dict[str, Any]) -> SweptEngine:
    """Return the engine of compressed rows; for few entries decode these, and return CpuEngine."""
    rows, readers = workload.rows, workload.readers
    if rows.number_of_edges >= cpu_arrays.SMALL:
        return StreamedCpuEngine(replace(workload, memory=None), compiled, fields)
    plain_rows = _decoded(rows)
    plain_readers = plain_rows if readers is rows else _decoded(readers)
    workload = replace(workload, rows=plain_rows, readers=plain_readers)
    return CpuEngine(workload, compiled, fields)


class StreamedCpuEngine(CpuArrays, SteppedEngine):
    """The engine of rows read for each class; its arrays take no more than ``workload.memory``."""

    def __init__(self, workload: Workload, compiled: Compiled, fields: dict[str, Any]):
        rows, readers = workload.rows, workload.readers
        self.classes = workload.classes
        self._form = FORMS[rows.form]
        self._row_bounds = self._form.bounds(rows)
        self._reader_bounds = self._row_bounds
        if readers is not rows:
            self._reader_bounds = self._form.bounds(readers)
        sizes = cpu_arrays.sizes_of(workload, compiled.traits)
        size = cpu_arrays.largest_class_of(workload)
        layout = cpu_arrays.streamed_layout(sizes, size, workload.memory)
        super().__init__(workload, compiled, fields, sizes, layout)
        self._list_classes()
        arrays = cpu_arrays.strip_arrays(sizes, size)
        self._selected = arrays["active vertices"].made()
        self._starts = arrays["starts of active rows"].made()
        self._strip_starts = arrays["starts in a strip"].made()
        self._make_lists(size)
        self._room = layout.room
        buffers = {name: planned.made() for name, planned in sizes.entries(layout.room).items()}
        self._buffer, self._weights = buffers["neighbours"], buffers.get("weights")
        self._none = np.empty(0, np.int64)  # in the place of weights

    def begin(self, rule: Rule) -> None:
        """Get ready for a sweep."""
        self._fields["sweep"] = np.int64(rule.sweep)
        self._changed = 0

    def groups(self, rule: Rule, number: int) -> Iterator[tuple[int, int]]:
        """Yield the active vertices of a class, by strips whose rows the buffer holds."""
        first, last = merged(self._class_indptr, rule.span)[number : number + 2]
        self._active = int(strips.select(
            self._threads, self._vertices[first:last], *self._row_bounds, not self._skips(rule),
            rule.revisit_tied, self._slack, self._tied, self._selected, self._starts,
            *np.zeros((2, self._threads + 1), np.int64),
        ))  # fmt: skip
        self._winning = 0
        self._whole = self._starts[self._active] <= self._room
        return self._strips(self._active)

    def evaluate(self, rule: Rule, number: int, group: tuple[int, int]) -> None:
        """Read the rows of a strip and find its winners, beside those of the strips before."""
        rows, strip = self._workload.rows, self._strip(*group)
        self._form.read(rows, *strip, self._buffer, self._weights)
        self._run(EVALUATE, rule, strip, strip.starts[-1], self._skips(rule), self._winning)
        if not self._whole:
            size = strip.vertices.size
            winners = (array[self._winning :] for array in self._winners)
            self._winning += strips.close_up(hash_votes.CHUNK, size, self._counts, *winners)

    def update(self, rule: Rule, number: int) -> None:
        """Update a class, and mark the readers of changes active."""
        if not self._active:
            return
        listed = self._active
        if not self._whole:
            listed = self._winning
            fill_chunks(self._counts, listed)
        winners = Strip(self._selected[:listed], self._strip_starts[: listed + 1])
        skips, readers = self._skips(rule), self._form.in_place(self._workload.readers)
        entries, in_place = self._starts[self._active], skips and readers is not None
        changed = self._run(UPDATE, rule, winners, entries, in_place, readers=readers)
        if self._compiled.traits.count_volumes:
            self._run(RECOUNT, rule, winners, entries, skips=False)
        self._changed += changed
        if not changed or not skips or readers is not None:
            return
        if self._whole and self._workload.readers is self._workload.rows:
            strips.activate_neighbours(
                self._threads, hash_votes.CHUNK, *winners, self._winners[0], self._old,
                self._counts, self._buffer, self._fields["labels"], self._slack,
            )  # fmt: skip
        else:
            self._activate_readers(listed)

    def report(self) -> int:
        """Return how many labels the sweep changed."""
        return self._changed

    def _strips(self, number: int) -> Iterator[tuple[int, int]]:
        """Cut so many rows, which start at ``self._starts``, into runs that the buffer holds."""
        first, starts = 0, self._starts[: number + 1]
        while first < number:
            last = int(np.searchsorted(starts, starts[first] + self._room, side="right")) - 1
            yield first, last
            first = last

    def _strip(self, first: int, last: int) -> Strip:
        """Return some of the listed vertices, and where their rows start in the buffer."""
        starts = self._strip_starts[: last - first + 1]
        np.subtract(self._starts[first : last + 1], self._starts[first], out=starts)
        return Strip(self._selected[first:last], starts)

    def _run(
        self, phases: tuple, rule: Rule, strip: Strip, entries: int, skips: bool, place: int = 0,
        readers: tuple[np.ndarray, np.ndarray] | None = None,
    ) -> int:  # fmt: skip
        """Evaluate the strip in the buffer, its winners from a place on; or do what follows.

        ``entries``: of all rows that this is about.
        """
        vertices, starts = strip
        if readers is None:
            readers = starts, self._buffer
        # one thread does a short strip before another has begun
        threads = self._threads if entries >= hash_votes.PARALLEL_FROM // 4 else 1
        return int(self._kernel(
            threads, phases, np.array([0, vertices.size]), vertices, starts, self._buffer,
            self._none if self._weights is None else self._weights, *readers,
            tuple(self._fields.values()), (skips, rule.revisit_tied), self._settings(rule),
            self._tables, self._slack, self._tied,
            tuple(array[place:] for array in self._winners), self._old[place:], self._counts,
            self._errors,
        ))  # fmt: skip

    def _activate_readers(self, listed: int) -> None:
        """Mark the readers of the vertices that changed active; their lists are decoded for it."""
        changed = strips.changed_rows(
            hash_votes.CHUNK, listed, self._winners[0], self._old, self._counts,
            self._fields["labels"], *self._reader_bounds, self._selected, self._starts,
        )  # fmt: skip
        for first, last in self._strips(changed):
            strip = self._strip(first, last)
            self._form.read(self._workload.readers, *strip, self._buffer, None)
            strips.activate(self._threads, self._buffer, strip.starts[-1], self._slack)


class Strip(NamedTuple):
    """Vertices of one class whose rows the buffer holds together."""

    vertices: np.ndarray
    starts: np.ndarray  # of their rows in the buffer


@dataclass(frozen=True)
class Form:
    """How rows of one form are read.

    ``read(rows, vertices, starts, neighbours, weights)`` writes the neighbours of ``vertices[i]``
    to ``neighbours[starts[i]:starts[i + 1]]``, and their weights likewise unless that is None.
    ``bounds(rows)``: of which the entries of row v are counted, see `strips`. ``in_place(rows)``:
    offsets and entries where they can be looked at without reading them first, else None.
    """

    read: Callable[..., None]
    bounds: Callable[[Any], tuple[np.ndarray, np.ndarray | None]]
    in_place: Callable[[Any], tuple[np.ndarray, np.ndarray] | None]


def _read_plain(
    rows: CSR, vertices: np.ndarray, starts: np.ndarray, neighbours: np.ndarray,
    weights: np.ndarray | None,
) -> None:  # fmt: skip
    """Copy rows."""
    threads = threads_available() if starts[-1] >= hash_votes.PARALLEL_FROM else 1
    pairs = [(rows.indices, neighbours)]
    if weights is not None:
        pairs.append((rows.weights, weights))
    for entries, copy in pairs:
        if entries.flags.c_contiguous:
            copy_rows(threads, vertices, rows.indptr, np.asarray(entries), starts, copy)
        else:
            copy_entries(threads, vertices, rows.indptr, np.asarray(entries), None, starts, copy)


# By the form of rows, see `Rows.form`.
FORMS = {
    "plain": Form(
        read=_read_plain,
        bounds=lambda rows: (np.asarray(rows.indptr)[1:], np.asarray(rows.indptr)[:-1]),
        in_place=lambda rows: (np.asarray(rows.indptr), np.asarray(rows.indices)),
    ),
    "compressed": Form(
        read=read_lists, bounds=lambda rows: (rows.degrees, None), in_place=lambda rows: None
    ),
}


def neighbours_of(rows: Rows, vertices: np.ndarray) -> np.ndarray:
    """Return the entries of some rows, one row after the other."""
    form, starts = FORMS[rows.form], np.zeros(vertices.size + 1, np.int64)
    ends, begins = form.bounds(rows)
    degrees = ends[vertices] if begins is None else ends[vertices] - begins[vertices]
    np.cumsum(degrees, out=starts[1:])
    neighbours = np.empty(starts[-1], rows.index_dtype)
    form.read(rows, vertices.astype(rows.index_dtype, copy=False), starts, neighbours, None)
    return neighbours


def fill_chunks(counts: np.ndarray, size: int) -> None:
    """Write how many of ``size`` winners that follow one another are in each chunk."""
    full, rest = divmod(size, hash_votes.CHUNK)
    counts[:full] = hash_votes.CHUNK
    counts[full] = rest


def _decoded(rows: CompressedCSR) -> Rows:
    """Decode everything; in a graph stored in another order the entries of a row do not ascend."""
    starts = np.zeros(rows.number_of_vertices + 1, np.int64)
    np.cumsum(rows.degrees, out=starts[1:])
    indices = np.empty(rows.number_of_edges, rows.index_dtype)
    weights = None if rows.weights is None else np.empty(indices.size, rows.weights.dtype)
    vertices = np.arange(rows.number_of_vertices, dtype=rows.index_dtype)
    read_lists(rows, vertices, starts, indices, weights)
    return CSR(starts, indices, weights)
