"""The CPU engine of compressed graphs: the lists of a class are decoded, then swept as plain rows.

A sweep goes class after class. The lists that a class needs are decoded into one buffer, by all
threads, and the sweep of plain rows runs on that. A class that the buffer does not hold is read in
pieces: all are evaluated before any vertex is updated, so the outcome is the same. The neighbours
of a vertex that changed become active; their list is in the buffer still. For classes in pieces,
and in directed graphs, the lists of the vertices that changed are decoded once more.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from glp_rapids.compressed.decode_some import read_lists
from glp_rapids.compressed.rows import CompressedCSR
from glp_rapids.graph.rows import CSR
from glp_rapids.jit.cache import kept
from glp_rapids.jit.cpu import compiled as compiled_for_cpu
from glp_rapids.jit.parallel import ParallelKernel, together
from glp_rapids.propagation.compile_program import Compiled
from glp_rapids.propagation.engines.cpu import CpuArrays, CpuEngine
from glp_rapids.propagation.engines.stepped import SteppedEngine, SweptEngine
from glp_rapids.propagation.kernels.cpu import hash_votes
from glp_rapids.propagation.kernels.cpu.atomics import take_one
from glp_rapids.propagation.schedule import Rule, class_lists, merged, spans_of
from glp_rapids.propagation.workload import Workload

BUFFER, BUFFER_A_VERTEX = 1 << 22, 2  # entries decoded at a time, at the most: the larger one
SMALL = hash_votes.PARALLEL_FROM  # entries: a graph that has fewer is decoded once and for all
EVALUATE, UPDATE, RECOUNT = hash_votes.ONE_AFTER_ANOTHER


def compressed_engine(
    workload: Workload, compiled: Compiled, fields: dict[str, Any]
) -> SweptEngine:
    """Return the engine of compressed rows; for few entries decode these, and return CpuEngine."""
    rows, readers = workload.rows, workload.readers
    if rows.number_of_edges >= SMALL:
        return CompressedCpuEngine(workload, compiled, fields)
    plain_rows = _plain(rows)
    plain_readers = plain_rows if readers is rows else _plain(readers)
    workload = replace(workload, rows=plain_rows, readers=plain_readers)
    return CpuEngine(workload, compiled, fields)


class CompressedCpuEngine(CpuArrays, SteppedEngine):
    """The engine of compressed rows: a class, or a piece of one, at a time."""

    def __init__(self, workload: Workload, compiled: Compiled, fields: dict[str, Any]):
        super().__init__(workload, compiled, fields)
        rows = workload.rows
        self.classes = workload.classes
        self._class_indptr, vertices = class_lists(
            workload.id_words, rows.number_of_vertices, workload.classes
        )
        self._vertices = vertices.astype(self._index_type)
        # as many as the fewest classes may hold
        most = merged(self._class_indptr, max(spans_of(workload.classes)))
        largest_class = int(np.diff(most).max())
        self._selected = np.empty(largest_class, self._index_type)
        self._starts = np.empty(largest_class + 1, np.int64)
        self._degrees, self._reader_degrees = rows.degrees, workload.readers.degrees
        most = max(BUFFER, BUFFER_A_VERTEX * rows.number_of_vertices)
        longest = max(workload.largest_degree, int(self._reader_degrees.max()))
        self._room = max(min(rows.number_of_edges, most), longest)
        self._buffer = np.empty(self._room, self._index_type)
        self._weights = None if rows.weights is None else np.empty(self._room, rows.weights.dtype)
        self._none = np.empty(0, np.int64)  # in the place of weights
        self._make_lists(largest_class)

    def begin(self, rule: Rule) -> None:
        """Get ready for a sweep."""
        self._fields["sweep"] = np.int64(rule.sweep)
        self._changed = 0

    def groups(self, rule: Rule, number: int) -> list[_Piece]:
        """Return the active vertices of a class, in pieces that the buffer holds."""
        first, last = merged(self._class_indptr, rule.span)[number : number + 2]
        selected = _select(
            self._threads, self._vertices[first:last], self._degrees, not self._skips(rule),
            rule.revisit_tied, self._slack, self._tied, self._selected, self._starts,
            *np.zeros((2, self._threads + 1), np.int64),
        )  # fmt: skip
        cuts = _cuts(self._starts[: selected + 1], self._room)
        self._pieces = [self._piece(first, last) for first, last in pairwise(cuts)]
        return self._pieces

    def evaluate(self, rule: Rule, number: int, group: _Piece) -> None:
        """Decode the rows of a piece and evaluate it; if it is the whole class, update it too."""
        read_lists(self._workload.rows, group.vertices, group.starts, self._buffer, self._weights)
        whole = len(self._pieces) == 1
        self._class_changed = self._run(hash_votes.EVERYTHING if whole else EVALUATE, rule, group)

    def update(self, rule: Rule, number: int) -> None:
        """Update a class in pieces, and mark the readers of changes active."""
        pieces = self._pieces
        if not pieces:
            return
        whole = len(pieces) == 1
        for phase in () if whole else (UPDATE, RECOUNT):
            for piece in pieces:
                self._class_changed += self._run(phase, rule, piece)
        self._changed += self._class_changed
        if self._class_changed and self._skips(rule):
            if whole and self._workload.readers is self._workload.rows:
                _activate_neighbours(
                    self._threads, hash_votes.CHUNK, *pieces[0], self._buffer,
                    self._fields["labels"], self._slack,
                )  # fmt: skip
            else:
                self._activate_readers(np.concatenate([self._list_changed(one) for one in pieces]))

    def report(self) -> int:
        """Return how many labels the sweep changed."""
        return self._changed

    def _piece(self, first: int, last: int) -> _Piece:
        """Return the selected vertices from ``first`` to ``last``, with room for their winners."""
        starts = self._starts[first : last + 1]
        return _Piece(
            self._selected[first:last],
            starts if first == 0 else starts - starts[0],
            tuple(array[first:last] for array in self._winners),
            self._old[first:last],
            np.empty((last - first) // hash_votes.CHUNK + 1, np.int64),
        )

    def _run(self, phases: tuple, rule: Rule, piece: _Piece) -> int:
        """Sweep the piece in the buffer, or do what follows its evaluation."""
        vertices, starts, winners, old, counts = piece
        return int(self._kernel(
            self._threads, phases, np.array([0, vertices.size]), vertices, starts, self._buffer,
            self._none if self._weights is None else self._weights, starts, self._buffer,
            tuple(self._fields.values()), (False, rule.revisit_tied), self._settings(rule),
            self._tables, self._slack, self._tied, winners, old, counts, self._errors,
        ))  # fmt: skip

    def _list_changed(self, piece: _Piece) -> np.ndarray:
        """List the vertices of a piece whose labels changed."""
        changed = np.empty(piece.vertices.size, self._index_type)
        labels, winner = self._fields["labels"], piece.winners[0]
        number = _list_changed(hash_votes.CHUNK, winner, piece.old, piece.counts, labels, changed)
        return changed[:number]

    def _activate_readers(self, changed: np.ndarray) -> None:
        """Mark the readers of vertices active; their lists are decoded for that."""
        starts = np.zeros(changed.size + 1, np.int64)
        np.cumsum(self._reader_degrees[changed], out=starts[1:])
        for first, last in pairwise(_cuts(starts, self._room)):
            part = starts[first : last + 1] - starts[first]
            read_lists(self._workload.readers, changed[first:last], part, self._buffer, None)
            _activate(self._threads, self._buffer, part[-1], self._slack)


class _Piece(NamedTuple):
    """Vertices of one class whose rows the buffer holds together, and what becomes of them."""

    vertices: np.ndarray
    starts: np.ndarray  # of their rows in the buffer
    winners: tuple[np.ndarray, ...]
    old: np.ndarray  # labels before
    counts: np.ndarray  # winners of each chunk


def _plain(rows: CompressedCSR) -> CSR:
    """Decode everything; in a graph stored in another order the entries of a row do not ascend."""
    starts = np.zeros(rows.number_of_vertices + 1, np.int64)
    np.cumsum(rows.degrees, out=starts[1:])
    indices = np.empty(rows.number_of_edges, rows.index_dtype)
    weights = None if rows.weights is None else np.empty(indices.size, rows.weights.dtype)
    vertices = np.arange(rows.number_of_vertices, dtype=rows.index_dtype)
    read_lists(rows, vertices, starts, indices, weights)
    return CSR(starts, indices, weights)


def _cuts(starts: np.ndarray, room: int) -> list[int]:
    """Cut rows into runs of at most ``room`` entries; no row is longer."""
    cuts = [0]
    while cuts[-1] < starts.size - 1:
        cuts.append(int(np.searchsorted(starts, starts[cuts[-1]] + room, side="right")) - 1)
    return cuts


@compiled_for_cpu(error_model="numpy")
def _count_some(
    thread, threads, listed, degrees, all_active, revisit_tied, slack, tied, numbers, entries
):
    """Count one thread's vertices to be evaluated, and their entries."""
    number, entry = 0, 0
    first = listed.size * thread // threads
    for position in range(first, listed.size * (thread + 1) // threads):
        v = np.uint64(listed[np.uint64(position)])
        if all_active or slack[v] < 0 or (revisit_tied and tied[v] != 0):
            number += np.int64(degrees[v] > 0)
            entry += np.int64(degrees[v])
    numbers[thread + 1], entries[thread + 1] = number, entry


@compiled_for_cpu(error_model="numpy")
def _select_some(
    thread, threads, listed, degrees, all_active, revisit_tied, slack, tied, numbers, entries,
    selected, starts,
):  # fmt: skip
    """List one thread's vertices to be evaluated, and where their rows start."""
    number, entry = numbers[thread], entries[thread]
    first = listed.size * thread // threads
    for position in range(first, listed.size * (thread + 1) // threads):
        v = np.uint64(listed[np.uint64(position)])
        if all_active or slack[v] < 0 or (revisit_tied and tied[v] != 0):
            if not all_active:
                slack[v] = 0
            if degrees[v] > 0:
                selected[np.uint64(number)] = v
                starts[np.uint64(number)] = entry
                number += 1
                entry += np.int64(degrees[v])


@ParallelKernel
def _select(
    team, listed, degrees, all_active, revisit_tied, slack, tied, selected, starts, numbers,
    entries,
):  # fmt: skip
    """List the vertices to be evaluated and where their rows start; return their number.

    ``numbers`` and ``entries`` are zeros, one more than threads.
    """
    threads = team.threads
    given = threads, listed, degrees, all_active, revisit_tied, slack, tied, numbers, entries
    together(team, _count_some, given)
    for thread in range(threads):
        numbers[thread + 1] += numbers[thread]
        entries[thread + 1] += entries[thread]
    together(team, _select_some, (*given, selected, starts))
    starts[numbers[threads]] = entries[threads]
    return numbers[threads]


@compiled_for_cpu(error_model="numpy")
def _activate_some_neighbours(
    thread, threads, chunk, vertices, starts, winner, old, counts, buffer, labels, slack
):
    chunks = (vertices.size + chunk - 1) // chunk
    for number in range(thread, chunks, threads):
        low = number * chunk
        row = low
        for position in range(low, low + counts[number]):
            v = winner[np.uint64(position)]
            if labels[np.uint64(v)] == old[np.uint64(position)]:
                continue
            while vertices[np.uint64(row)] != v:  # both are in one order
                row += 1
            for j in range(starts[np.uint64(row)], starts[np.uint64(row + 1)]):
                take_one(slack, np.uint64(buffer[np.uint64(j)]))


@ParallelKernel
def _activate_neighbours(
    team, chunk, vertices, starts, winners, old, counts, buffer, labels, slack
):
    """Mark the neighbours of vertices whose labels changed active; the rows are in the buffer."""
    together(team, _activate_some_neighbours, (
        team.threads, chunk, vertices, starts, winners[0], old, counts, buffer, labels, slack,
    ))  # fmt: skip


@kept(error_model="numpy")
def _list_changed(chunk, winner, old, counts, labels, changed):
    number = 0
    for low in range(0, winner.size, chunk):
        for position in range(low, low + counts[low // chunk]):
            v = winner[position]
            if labels[v] != old[position]:
                changed[number] = v
                number += 1
    return number


@compiled_for_cpu(error_model="numpy")
def _activate_some(thread, threads, vertices, size, slack):
    for j in range(size * thread // threads, size * (thread + 1) // threads):
        take_one(slack, np.uint64(vertices[np.uint64(j)]))


@ParallelKernel
def _activate(team, vertices, size, slack):
    together(team, _activate_some, (team.threads, vertices, size, slack))
