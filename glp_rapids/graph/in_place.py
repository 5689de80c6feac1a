"""A CSR filled in its own place, from pairs of indices that come in chunks and are read again.

`build` has all pairs at once and sorts them into new arrays. Here they come in chunks, again and
again: first they are counted, then each is put into its row, rows are sorted where they are, and
duplicates are merged towards the front. ``indptr`` holds the numbers, then the place where the next
entry of a row goes, then where rows begin, so it is the only array of n. The one of m is as long as
the entries with their duplicates; where those are many, rows are filled in *strips*, one after the
other, and the pairs are read once for each.

With F entries in the end and d F before duplicates are merged, S strips take F (1 + (d - 1) / S)
entries at their peak: at most 1.25 F, unless a strip would be smaller than `SMALL` entries or there
would be more than `MOST_STRIPS`. How many pairs are distinct is estimated while they are counted,
from the 4,096 to 8,192 with the smallest hashes (Bar-Yossef et al., RANDOM 2002, algorithm 2): to
within 2% or so. The sum of all hashes tells whether the pairs are the same in each reading.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from glp_rapids.common import hashing
from glp_rapids.graph.build import merge_duplicates
from glp_rapids.graph.sort_gpu import index_dtype
from glp_rapids.graph.sort_rows import sort_rows
from glp_rapids.jit.cache import kept
from glp_rapids.jit.interrupts import parts_of_rows

ROOM = 0.25  # for duplicates that are not merged yet, of the entries in the end
SMALL = 1 << 22  # entries of a strip
MOST_STRIPS = 16
MERGED = 1 << 20  # entries whose weights are added up at a time
SAMPLE = 1 << 13  # hashes
_WORD = (1 << 64) - 1

_mix = kept(error_model="numpy")(hashing.mix)


class Changed(Exception):
    """The pairs are not the same as when they were counted."""


class Filling:
    """A CSR on the host that is being filled.

    First `count` takes all pairs; then, for every strip of `strips`, `begin` it, `place` all pairs,
    and `close` it; then take `arrays`.

    Parameters
    ----------
    vertices : int
        The number of vertices; pairs are of indices below it.
    symmetric : bool
        Add the reverse of every pair but of self-loops.
    weights : dtype or None
        Of the weights that come with the pairs.
    count_duplicates : bool
        Without weights: make the number of equal entries the weight of one.
    """

    def __init__(
        self, vertices: int, *, symmetric: bool, weights: Any, count_duplicates: bool
    ) -> None:
        self._symmetric, self._counted = symmetric, weights is None and count_duplicates
        self._indptr = np.zeros(vertices + 1, np.int64)
        self._indices = np.empty(0, index_dtype(vertices))
        if self._counted:
            weights = np.int64
        self._weights = None if weights is None else np.empty(0, weights)
        self._pairs, self._seen = _Pairs(), (0, 0)
        self._done = self._before = 0  # where the strip begins: in the end, and with duplicates

    def count(self, source: np.ndarray, destination: np.ndarray) -> None:
        """Count the entries of every row."""
        room = self._pairs.room(source.size)
        found = _count(source, destination, self._indptr[1:], self._symmetric, *room)
        self._pairs.add(source.size, *found)

    def strips(self) -> list[tuple[int, int]]:
        """Choose how rows are cut into strips, once all pairs are counted."""
        np.cumsum(self._indptr, out=self._indptr)
        entries, repeated = int(self._indptr[-1]), self._pairs.repeated()
        number = 1
        if repeated - 1 > ROOM:
            number = min(int(np.ceil((repeated - 1) / ROOM)), -(-entries // SMALL), MOST_STRIPS)
        cuts = np.searchsorted(self._indptr, np.linspace(0, entries, number + 1)[1:-1])
        cuts = np.unique([0, *cuts, self._indptr.size - 1])
        return list(pairwise(cuts.tolist())) or [(0, 0)]

    def begin(self, first: int, last: int) -> None:
        """Make room for the entries of rows ``first`` to ``last`` - 1, duplicates and all."""
        self._first, self._last = first, last
        self._after = int(self._indptr[last])  # with duplicates
        if first:
            self._indptr[first] = self._before
        self._indptr[first:last] -= self._before - self._done
        self._end = self._done + self._after - self._before
        self._resize(self._end, weights=not self._counted)
        self._seen = (0, 0)

    def place(
        self, source: np.ndarray, destination: np.ndarray, weights: np.ndarray | None
    ) -> None:
        """Put the entries of this strip where they belong."""
        pairs, total = self._seen
        hashes = _place(
            source, destination, weights, self._first, self._last, self._indptr, self._end,
            self._indices, None if weights is None else self._weights, self._symmetric,
        )  # fmt: skip
        self._seen = pairs + source.size, (total + int(hashes)) & _WORD

    def close(self) -> None:
        """Sort the rows of this strip and merge their duplicates."""
        if self._seen != self._pairs.seen:
            raise Changed(
                f"{self._seen[0]:,} edges where there were {self._pairs.seen[0]:,}"
                if self._seen[0] != self._pairs.seen[0]
                else "other edges than before"
            )
        first, last, indptr, indices = self._first, self._last, self._indptr, self._indices
        _as_starts(first, last, self._done, indptr)
        indptr[last] = self._end
        sort_rows(indptr, indices, None if self._counted else self._weights, first, last)
        if self._weights is None:
            end = self._merge()
        else:
            end = self._merge_weights()
        self._done, self._before = end, self._after
        self._resize(end)

    def arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """Return indptr, indices and weights, complete."""
        return self._indptr, self._indices, self._weights

    def _resize(self, entries, weights=True):
        self._indices = _resized(self._indices, entries)
        if self._weights is not None and weights:
            self._weights = _resized(self._weights, entries)

    def _merge(self):
        """Leave one of equal entries; return where the last row ends."""
        begin = end = self._done
        for first, last in parts_of_rows(self._indptr[self._first : self._last + 1]):
            begin, end = _close_up(
                self._first + first, self._first + last, begin, end, self._indptr, self._indices
            )
        return end

    def _merge_weights(self):
        """Leave one of equal entries with the sum of their weights, or with their number."""
        indptr, indices = self._indptr, self._indices
        begin = end = self._done
        if self._counted:
            distinct = _distinct(self._first, self._last, indptr, indices)
            self._weights = _resized(self._weights, end + distinct)
        cuts = np.searchsorted(
            indptr[self._first : self._last + 1], np.arange(begin + MERGED, self._end, MERGED)
        )
        rows = np.unique([self._first, *(self._first + cuts), self._last]).tolist()
        for first, last in pairwise(rows):
            starts = indptr[first : last + 1] - begin
            starts[0] = 0  # where the row begins in the end is there already
            after = begin + int(starts[-1])
            merged, entries, sums = merge_duplicates(
                starts, indices[begin:after], None,
                None if self._counted else self._weights[begin:after],
            )  # fmt: skip
            indices[end : end + entries.size] = entries
            self._weights[end : end + entries.size] = sums
            indptr[first + 1 : last + 1] = merged[1:] + end
            begin, end = after, end + entries.size
        return end


class _Pairs:
    """What is noted of the pairs while they are counted: how many, which, how many different."""

    def __init__(self) -> None:
        self.seen = (0, 0)  # their number, and the sum of their hashes
        self._smallest = np.empty(0, np.uint64)
        self._limit, self._found = _WORD, np.empty(0, np.uint64)

    def room(self, pairs: int) -> tuple[np.uint64, np.ndarray]:
        """Return the limit of the hashes to be kept, and where they go."""
        if self._found.size < pairs:
            self._found = np.empty(pairs, np.uint64)
        return np.uint64(self._limit), self._found

    def add(self, pairs: int, total: int, found: int) -> None:
        """Take what `_count` found in so many pairs."""
        self.seen = self.seen[0] + pairs, (self.seen[1] + int(total)) & _WORD
        self._smallest = np.union1d(self._smallest, self._found[:found])
        while self._smallest.size > SAMPLE:
            self._limit >>= 1
            self._smallest = self._smallest[self._smallest <= np.uint64(self._limit)]

    def repeated(self) -> float:
        """Estimate how many pairs there are for one of the distinct ones."""
        distinct = self._smallest.size * ((_WORD + 1) / (self._limit + 1))
        return self.seen[0] / max(distinct, 1)


def _resized(array: np.ndarray, size: int) -> np.ndarray:
    """Change the size of an array nobody else has: pages are moved or given back, not copied."""
    if not array.size:
        return np.empty(size, array.dtype)
    array.resize(size, refcheck=False)
    return array


@kept(error_model="numpy")
def _hash(row, column, symmetric):
    if symmetric and row > column:
        row, column = column, row
    return _mix(column, row)


@kept(error_model="numpy")
def _count(source, destination, counts, symmetric, limit, found):
    """Count entries by row; return the sum of the hashes and how many up to a limit are found."""
    total, number = np.uint64(0), 0
    for i in range(source.size):
        row, column = np.int64(source[i]), np.int64(destination[i])
        counts[row] += 1
        if symmetric and row != column:
            counts[column] += 1
        hashed = _hash(row, column, symmetric)
        total += hashed
        if hashed <= limit:
            found[number] = hashed
            number += 1
    return total, number


@kept(error_model="numpy")
def _place(
    source, destination, weights, first, last, cursor, end, indices, values, symmetric
):  # fmt: skip
    """Put entries into rows ``first`` to ``last`` - 1; return the sum of the hashes of all pairs.

    Pairs that are not those counted may come into the wrong row, but never behind ``end``.
    """
    total = np.uint64(0)
    for i in range(source.size):
        row, column = np.int64(source[i]), np.int64(destination[i])
        total += _hash(row, column, symmetric)
        if first <= row < last and cursor[row] < end:
            to = cursor[row]
            cursor[row] = to + 1
            indices[to] = column
            if values is not None:
                values[to] = weights[i]
        if symmetric and row != column and first <= column < last and cursor[column] < end:
            to = cursor[column]
            cursor[column] = to + 1
            indices[to] = row
            if values is not None:
                values[to] = weights[i]
    return total


@kept
def _as_starts(first, last, start, cursor):
    """Turn where the rows end, which is where the next ones begin, into where they begin."""
    for row in range(last - 1, first, -1):
        cursor[row] = cursor[row - 1]
    if first < last:
        cursor[first] = start


@kept
def _close_up(first, last, begin, to, indptr, indices):
    """Merge equal entries of rows; ``begin`` was where the first began, and ``to`` where it will.

    Returns the same of the row behind the last.
    """
    for row in range(first, last):
        end, start = indptr[row + 1], to
        for i in range(begin, end):
            if to == start or indices[to - 1] != indices[i]:
                indices[to] = indices[i]
                to += 1
        indptr[row + 1] = to
        begin = end
    return begin, to


@kept
def _distinct(first, last, indptr, indices):
    number = 0
    for row in range(first, last):
        for i in range(indptr[row], indptr[row + 1]):
            if i == indptr[row] or indices[i] != indices[i - 1]:
                number += 1
    return number
