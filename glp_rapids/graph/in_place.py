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
from glp_rapids.graph.build import Multigraph, merge_duplicates
from glp_rapids.graph.sort_gpu import index_dtype
from glp_rapids.graph.sort_rows import sort_rows
from glp_rapids.jit.cache import kept
from glp_rapids.jit.cpu import compiled
from glp_rapids.jit.interrupts import parts_of_rows
from glp_rapids.jit.parallel import ParallelKernel, threads_available, together

ROOM = 0.25  # for duplicates that are not merged yet, of the entries in the end
SMALL = 1 << 22  # entries of a strip
MOST_STRIPS = 16
MERGED = 1 << 20  # entries whose weights are added up at a time
SAMPLE = 1 << 13  # hashes
STRIPE = 4  # rows are divided by this bit of their number and those above: 128 bytes of indptr
MOST_STRIPES = 4  # of the bits: so many threads read all pairs as fast as they write entries
WORTH_THREADS = 1 << 14  # pairs
_WORD = (1 << 64) - 1
u64 = np.uint64

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
    multigraph : {"merge", "keep", "min"}
        What becomes of equal entries: see `build.csr_of_pairs`.
    """

    def __init__(
        self, vertices: int, *, symmetric: bool, weights: Any, multigraph: Multigraph
    ) -> None:
        self._symmetric, self._multigraph = symmetric, multigraph
        self._counted = weights is None and multigraph == "keep"
        self._indptr = np.zeros(vertices + 1, np.int64)
        self._indices = np.empty(0, index_dtype(vertices))
        if self._counted:
            weights = np.int64
        self._weights = None if weights is None else np.empty(0, weights)
        self._pairs, self._seen = _Distinct(), Pairs()
        self._done = self._before = 0  # where the strip begins: in the end, and with duplicates

    def count(self, source: np.ndarray, destination: np.ndarray) -> None:
        """Count the entries of every row."""
        self._pairs.add(source, destination, self._symmetric)
        _count(_stripes(source.size), source, destination, self._indptr[1:], self._symmetric)

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
        self._seen = Pairs()

    def place(
        self, source: np.ndarray, destination: np.ndarray, weights: np.ndarray | None
    ) -> None:
        """Put the entries of this strip where they belong."""
        self._seen.note(source, destination, self._symmetric)
        _place(
            _stripes(source.size), source, destination, weights, self._first, self._last,
            self._indptr, self._end, self._indices, None if weights is None else self._weights,
            self._symmetric,
        )  # fmt: skip

    def close(self) -> None:
        """Sort the rows of this strip and merge their duplicates."""
        self._seen.compare(self._pairs)
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
            distinct = sum(
                _distinct(self._first + first, self._first + last, indptr, indices)
                for first, last in parts_of_rows(indptr[self._first : self._last + 1])
            )
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
                None if self._counted else self._weights[begin:after], self._multigraph,
            )  # fmt: skip
            indices[end : end + entries.size] = entries
            self._weights[end : end + entries.size] = sums
            indptr[first + 1 : last + 1] = merged[1:] + end
            begin, end = after, end + entries.size
        return end


class Pairs:
    """How many pairs were seen, and the sum of their hashes, which tells others from them."""

    def __init__(self) -> None:
        self.number = self._hashes = 0

    def note(self, source: np.ndarray, destination: np.ndarray, symmetric: bool) -> None:
        """See pairs."""
        total, _ = _note(source, destination, symmetric, np.uint64(0), np.empty(1, np.uint64))
        self._see(source.size, total)

    def compare(self, before: Pairs) -> None:
        """Raise unless these are the pairs seen before."""
        if self.number != before.number:
            raise Changed(f"{self.number:,} edges where there were {before.number:,}")
        if self._hashes != before._hashes:
            raise Changed("other edges than before")

    def _see(self, pairs, hashes):
        self.number += pairs
        self._hashes = (self._hashes + int(hashes)) & _WORD


class _Distinct(Pairs):
    """Beside that, an estimate of how many of the pairs are different."""

    def __init__(self) -> None:
        super().__init__()
        self._smallest, self._limit = np.empty(0, np.uint64), _WORD

    def add(self, source: np.ndarray, destination: np.ndarray, symmetric: bool) -> None:
        """See pairs, and keep the smallest of their hashes."""
        found = np.empty(source.size, np.uint64)
        total, number = _note(source, destination, symmetric, np.uint64(self._limit), found)
        self._see(source.size, total)
        smallest = np.concatenate([self._smallest, found[:number]])
        smallest.sort()
        smallest = smallest[np.diff(smallest, prepend=~smallest[:1]) != 0]
        while smallest.size > SAMPLE:
            self._limit >>= 1
            smallest = smallest[: np.searchsorted(smallest, np.uint64(self._limit), "right")]
        self._smallest = smallest.copy()

    def repeated(self) -> float:
        """Estimate how many pairs there are for one of the distinct ones."""
        distinct = self._smallest.size * ((_WORD + 1) / (self._limit + 1))
        return self.number / max(distinct, 1)


def _resized(array: np.ndarray, size: int) -> np.ndarray:
    """Change the size of an array nobody else has: pages are moved or given back, not copied."""
    if not array.size:
        return np.empty(size, array.dtype)
    array.resize(size, refcheck=False)
    return array


def _stripes(pairs: int) -> int:
    """Choose among how many threads rows are divided, a power of two: each reads all pairs."""
    threads = threads_available() if pairs >= WORTH_THREADS else 1
    return 1 << min(threads.bit_length() - 1, MOST_STRIPES)


@kept(error_model="numpy")
def _note(source, destination, symmetric, limit, found):
    """Return the sum of the hashes of pairs, and how many up to a limit are ``found``."""
    total, number = np.uint64(0), 0
    for i in range(source.size):
        row, column = source[i], destination[i]
        if symmetric and row > column:
            row, column = column, row
        hashed = _mix(column, row)
        total += hashed
        if hashed <= limit and number < found.size:
            found[number] = hashed
            number += 1
    return total, number


@ParallelKernel
def _count(team, source, destination, counts, symmetric):
    together(team, _count_stripe, (team.threads, source, destination, counts, symmetric))


@compiled(error_model="numpy")
def _count_stripe(thread, threads, source, destination, counts, symmetric):
    for i in range(source.size):
        row, column = np.int64(source[u64(i)]), np.int64(destination[u64(i)])
        if (row >> STRIPE) & (threads - 1) == thread:
            counts[u64(row)] += 1
        if symmetric and row != column and (column >> STRIPE) & (threads - 1) == thread:
            counts[u64(column)] += 1


@ParallelKernel
def _place(
    team, source, destination, weights, first, last, cursor, end, indices, values, symmetric
):  # fmt: skip
    """Put entries into rows ``first`` to ``last`` - 1.

    Pairs that are not those counted may come into the wrong row, but never behind ``end``.
    """
    strip = first, last, end
    together(team, _place_stripe, (
        team.threads, source, destination, weights, strip, cursor, indices, values, symmetric,
    ))  # fmt: skip


@compiled(error_model="numpy")
def _place_stripe(
    thread, threads, source, destination, weights, strip, cursor, indices, values, symmetric
):  # fmt: skip
    first, last, end = strip
    for i in range(source.size):
        row, column = np.int64(source[u64(i)]), np.int64(destination[u64(i)])
        if first <= row < last and (row >> STRIPE) & (threads - 1) == thread:
            to = cursor[u64(row)]
            if to < end:
                cursor[u64(row)] = to + 1
                indices[u64(to)] = column
                if values is not None:
                    values[u64(to)] = weights[u64(i)]
        if (
            symmetric
            and row != column
            and first <= column < last
            and (column >> STRIPE) & (threads - 1) == thread
        ):
            to = cursor[u64(column)]
            if to < end:
                cursor[u64(column)] = to + 1
                indices[u64(to)] = row
                if values is not None:
                    values[u64(to)] = weights[u64(i)]


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
