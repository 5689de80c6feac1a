"""The sums of pairs, a CSR, merged row by row with transactions that joined and left.

Vertices have three numbers: the old one of the CSR, the one among all ids old and new ("union"),
and the one among those that are left. Each ascends with the others, so rows stay sorted while they
are renamed, and what nothing touched is copied. Counting goes first, so that all threads know where
to write; of rows that nothing touched it only reads where they begin and end.

Memory that is new costs more than merging: a page takes longer to get than to fill. So the arrays
of the sums before the last ones are written to again, if nobody has them any more.
"""

from __future__ import annotations

import sys
from typing import NamedTuple

import numpy as np

from glp_rapids.jit.cache import kept
from glp_rapids.jit.cpu import compiled
from glp_rapids.jit.interrupts import parts_of_rows
from glp_rapids.jit.parallel import ParallelKernel, threads_available, together

SHARES = 16  # parts of the rows for each thread: rows of as many entries may take different times
WORTH_THREADS = 1 << 14  # entries
SLACK = 8  # arrays are longer than they must be by one part in so many
u64 = np.uint64


class Sums(NamedTuple):
    """A CSR with what the transactions of each pair add up to: their number, their amounts."""

    indptr: np.ndarray
    indices: np.ndarray
    transfers: np.ndarray
    units: np.ndarray

    @classmethod
    def empty(cls, vertices: int) -> Sums:
        """Return vertices without transactions."""
        none = np.empty(0, dtype=np.int64)
        return cls(np.zeros(vertices + 1, dtype=np.int64), none.astype(np.int32), none, none)


class Entries(NamedTuple):
    """Transactions sorted by pair, in the numbers of the union."""

    indptr: np.ndarray
    column: np.ndarray
    row: np.ndarray  # of the table with the amounts: those that joined, then those that left
    units: np.ndarray
    joined: int


class Faded(NamedTuple):
    """What pairs count by the age of their transactions, and what each transaction of a table."""

    of_pairs: np.ndarray
    of_rows: np.ndarray


class Names(NamedTuple):
    """The old vertices among the union, and those of the union among the old (-1: it is new)."""

    to_union: np.ndarray
    to_old: np.ndarray


class _Out(NamedTuple):
    """Where to write, and the vertices that are left among the union and the old."""

    indices: np.ndarray
    transfers: np.ndarray
    units: np.ndarray
    starts: np.ndarray
    to_new: np.ndarray
    old_to_new: np.ndarray


def merged(
    base: Sums, entries: Entries, names: Names, directed: bool, spare: list[Sums],
    faded: Faded | None = None,
) -> tuple[Sums, np.ndarray, np.ndarray | None]:  # fmt: skip
    """Add and subtract transactions, and drop pairs and vertices that have none left.

    Returns the sums by the vertices that are left, which of the union these are, and what the pairs
    count by age, if asked. Sums that are ``spare``, if any, are taken out of that list and may be
    overwritten.
    """
    length = np.empty(names.to_old.size, dtype=np.int64)
    work = np.empty(length.size + 1, dtype=np.int64)
    _bound(base.indptr, entries.indptr, names.to_old, length, work)
    present = np.zeros(length.size, dtype=np.uint8)
    same = names.to_union.size == length.size
    for threads, cuts in _shares(work):
        _count(threads, cuts, base, entries, names, same, directed, length, present)
    to_new, left = np.empty(length.size, np.int32), np.empty(length.size, np.int64)
    starts, indptr = np.empty_like(work), np.empty_like(work)
    stay = _number(length, present, to_new, left, starts, indptr)
    left, indptr = left[:stay], indptr[: stay + 1]
    columns = _columns(int(starts[-1]), spare)
    out = _Out(*columns, starts, to_new, to_new[names.to_union])
    all_stay = same and left.size == length.size
    for threads, cuts in _shares(work):
        _fill(threads, cuts, base, entries, names, same, all_stay, out)
    sums = Sums(indptr, *columns)
    if faded is None:
        return sums, left, None
    # the same again with other units
    base, entries = base._replace(units=faded.of_pairs), entries._replace(units=faded.of_rows)
    out = out._replace(units=np.empty(int(starts[-1]), np.int64))
    for threads, cuts in _shares(work):
        _fill(threads, cuts, base, entries, names, same, all_stay, out)
    return sums, left, out.units


def _columns(size: int, spare: list[Sums]) -> list[np.ndarray]:
    """Return three arrays to write to: spare ones that nobody else has, or new ones."""
    columns = []
    before = list(spare.pop()[1:]) if spare else []
    for dtype in (np.int32, np.int64, np.int64):
        held = [_whole(before.pop(0))] if before else [None]
        if held[0] is not None and size <= held[0].size <= 2 * size + 64 and _is_alone(held):
            columns.append(held[0][:size])
        else:
            columns.append(np.empty(size + size // SLACK, dtype=dtype)[:size])
    return columns


def _whole(array: np.ndarray) -> np.ndarray:
    return array.base if isinstance(array.base, np.ndarray) else array


def _is_alone(held: list[np.ndarray]) -> bool:
    """Tell whether an array is in this list only; any view of it, or memory lent, would have it."""
    known = [np.empty(0)]
    alone = sys.getrefcount(held[0]) == sys.getrefcount(known[0])
    # memory that belongs to something else, as of a pickle out of band, is not ours to write to
    return alone and held[0].flags.writeable and held[0].flags.owndata


def _shares(work):
    for first, last in parts_of_rows(work):
        entries = int(work[last] - work[first])
        threads = threads_available() if entries >= WORTH_THREADS else 1
        cuts = np.linspace(work[first], work[last], SHARES * threads + 1).astype(np.int64)
        cuts = first + np.searchsorted(work[first : last + 1], cuts)
        cuts[0], cuts[-1] = first, last
        yield threads, cuts


@kept
def _bound(indptr, starts, to_old, length, work):
    """Fill in how long rows were, and what all up to each and what came for them add up to."""
    work[0] = 0
    for row in range(length.size):
        old = to_old[u64(row)]
        was = indptr[u64(old + 1)] - indptr[u64(old)] if old >= 0 else 0
        came = starts[u64(row + 1)] - starts[u64(row)]
        length[u64(row)], work[u64(row + 1)] = was, work[u64(row)] + was + came


@kept
def _number(length, present, to_new, left, starts, indptr):
    """Number the vertices that are left; fill in where rows are to begin. Returns how many are."""
    entries, number = np.int64(0), 0
    for row in range(length.size):
        starts[u64(row)], to_new[u64(row)] = entries, number
        if present[u64(row)] != 0 or length[u64(row)] > 0:
            left[u64(number)], indptr[u64(number)] = row, entries
            number += 1
        entries += length[u64(row)]
    starts[length.size], indptr[number] = entries, entries
    return number


@ParallelKernel
def _count(team, cuts, base, entries, names, same, directed, length, present):
    together(
        team, _count_shares,
        (team.threads, cuts, base, entries, names, same, directed, length, present),
    )  # fmt: skip


@compiled(error_model="numpy")
def _count_shares(thread, threads, cuts, base, entries, names, same, directed, length, present):
    """Count the entries of the rows that something touched; directed: mark all columns.

    Arrays are not handed to further functions, which would take longer than adding up a pair.
    """
    indptr, indices, transfers_of, _ = base
    starts, columns, table_rows, _, joined = entries
    to_union, to_old = names
    for share in range(thread, cuts.size - 1, threads):
        for row in range(cuts[share], cuts[share + 1]):
            old = to_old[row]
            i, end_i = (indptr[old], indptr[old + 1]) if old >= 0 else (np.int64(0), np.int64(0))
            j, end_j = starts[row], starts[row + 1]
            if j == end_j and not directed:
                continue
            number = 0
            while j < end_j:
                column, transfers = columns[u64(j)], np.int64(0)
                while j < end_j and columns[u64(j)] == column:
                    transfers += 1 if table_rows[u64(j)] < joined else -1
                    j += 1
                while i < end_i:
                    here = indices[u64(i)] if same else to_union[u64(indices[u64(i)])]
                    if here >= column:
                        if here == column:
                            transfers += transfers_of[u64(i)]
                            i += 1
                        break
                    if directed:
                        present[u64(here)] = 1  # by all threads the same
                    number += 1
                    i += 1
                if transfers != 0:
                    if directed:
                        present[u64(column)] = 1
                    number += 1
            length[row] = number + (end_i - i)
            if directed:
                for k in range(i, end_i):
                    present[to_union[u64(indices[u64(k)])]] = 1


@ParallelKernel
def _fill(team, cuts, base, entries, names, same, all_stay, out):
    together(team, _fill_shares, (team.threads, cuts, base, entries, names, same, all_stay, out))


@compiled(error_model="numpy")
def _fill_shares(thread, threads, cuts, base, entries, names, same, all_stay, out):
    """Write rows: ``same`` if all ids are old, ``all_stay`` if they are also all left."""
    indptr, indices, transfers_of, units_of = base
    starts, columns, table_rows, table_units, joined = entries
    to_union, to_old = names
    out_indices, out_transfers, out_units, out_starts, to_new, old_to_new = out
    for share in range(thread, cuts.size - 1, threads):
        row, last = cuts[share], cuts[share + 1]
        while row < last:
            to, old = out_starts[row], to_old[row]
            j, end_j = starts[row], starts[row + 1]
            i, end_i = (indptr[old], indptr[old + 1]) if old >= 0 else (np.int64(0), np.int64(0))
            row += 1
            if j == end_j and old >= 0:
                # so are rows behind it that nothing touched either
                while row < last and starts[row + 1] == end_j and to_old[row] == old + 1:
                    old += 1
                    row += 1
                end_i = indptr[old + 1]
            while j < end_j:
                column, transfers, units = columns[u64(j)], np.int64(0), np.int64(0)
                while j < end_j and columns[u64(j)] == column:
                    at = table_rows[u64(j)]
                    if at < joined:
                        transfers += 1
                        units += table_units[u64(at)]
                    else:
                        transfers -= 1
                        units -= table_units[u64(at)]
                    j += 1
                while i < end_i:
                    mine = indices[u64(i)]
                    here = mine if same else to_union[u64(mine)]
                    if here >= column:
                        if here == column:
                            transfers += transfers_of[u64(i)]
                            units += units_of[u64(i)]
                            i += 1
                        break
                    out_indices[u64(to)] = mine if all_stay else old_to_new[u64(mine)]
                    out_transfers[u64(to)] = transfers_of[u64(i)]
                    out_units[u64(to)] = units_of[u64(i)]
                    i += 1
                    to += 1
                if transfers != 0:
                    out_indices[u64(to)] = to_new[u64(column)]
                    out_transfers[u64(to)] = transfers
                    out_units[u64(to)] = units
                    to += 1
            left = end_i - i
            if all_stay:
                for k in range(left):
                    out_indices[u64(to + k)] = indices[u64(i + k)]
            else:
                for k in range(left):
                    out_indices[u64(to + k)] = old_to_new[u64(indices[u64(i + k)])]
            for k in range(left):
                out_transfers[u64(to + k)] = transfers_of[u64(i + k)]
            for k in range(left):
                out_units[u64(to + k)] = units_of[u64(i + k)]
