"""The ranks of ids that come in chunks, among sorted ids of any family.

Integers in a range of up to eight times their number: a bit for every integer of the range, and
beside every 64 of them how many ids come before (Jacobson, FOCS 1989), so a rank costs one place
in memory. That takes a quarter of a byte for each integer of the range, so up to 2 an id, and
nothing where every integer of the range is there. Other integers: a table says for every piece of
the range, of which there are a quarter to half as many as ids, where its ids begin among the sorted
ones, and there they are found by bisection: 1 to 2 bytes an id (2 to 4 from 2^31 ids on). Strings
are in `string_lookup`; any other family is looked up in a hash table of pandas.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd

from glp_rapids.frames.kinds import Column
from glp_rapids.graph import id_types
from glp_rapids.graph.sort_gpu import index_dtype
from glp_rapids.graph.vertex_ids import IdColumn
from glp_rapids.ingest.string_lookup import StringLookup
from glp_rapids.jit.bits import popcount
from glp_rapids.jit.cache import kept
from glp_rapids.jit.cpu import compiled
from glp_rapids.jit.parallel import ParallelKernel, threads_available, together

DENSE = 8  # integers of the range for every one that is there
WORTH_THREADS = 1 << 14  # ids
_ONE = np.uint64(1)
_popcount = kept(error_model="numpy")(popcount)
Lookup = Callable[[Column, str], np.ndarray]


def lookup_of(column: IdColumn) -> Lookup:
    """Return what finds the ranks of ids; that of one which is not there is -1."""
    if column.family == "integer":
        return IntegerLookup(column.values)
    if column.family == "string" and (found := StringLookup.of(column.values)) is not None:
        return found
    return _OtherLookup(column.values)


class IntegerLookup:
    """Finds integers among sorted ones."""

    def __init__(self, values: np.ndarray) -> None:
        self._dtype = index_dtype(values.size)
        self._first = np.uint64(int(values[0]) % 2**64)
        self._span = int(values[-1]) - int(values[0])
        self._find: Callable[[int, np.ndarray, np.ndarray], None]
        if self._span < DENSE * values.size:
            bits = np.zeros((0, 2), np.uint64)
            if self._span >= values.size:
                bits = np.zeros((self._span // 64 + 1, 2), np.uint64)
                _fill_bits(values, self._first, bits)
            self._find, self._table = _find_by_bits, (bits,)
            return
        shift = (self._span // (values.size // 2 + 1)).bit_length()
        starts = np.zeros((self._span >> shift) + 2, self._dtype)
        _count_pieces(values, self._first, np.uint64(shift), starts[1:])
        np.cumsum(starts, dtype=self._dtype, out=starts)
        self._find, self._table = _find_in_pieces, (values, np.uint64(shift), starts)

    def __call__(self, column: Column, label: str) -> np.ndarray:
        """Return the ranks; ``label`` is what messages call the ids."""
        return self.find(id_types.integers(column, label))

    def find(self, asked: np.ndarray) -> np.ndarray:
        """Return the ranks of integers of any dtype."""
        ranks = np.empty(asked.size, self._dtype)
        wide = np.uint64 if asked.dtype.kind == "u" else np.int64
        threads = threads_available() if asked.size >= WORTH_THREADS else 1
        words = asked.astype(wide, copy=False).view(np.uint64)
        self._find(threads, words, self._first, np.uint64(self._span), *self._table, ranks)
        return ranks


class _OtherLookup:
    def __init__(self, values: pd.Series) -> None:
        self._index, self._dtype = pd.Index(values), index_dtype(len(values))

    def __call__(self, column: Column, label: str) -> np.ndarray:
        found = self._index.get_indexer(pd.Index(id_types.plain(column)[0]))
        return found.astype(self._dtype)


class TupleLookup:
    """Finds ids of several columns: the keys that the ranks in each make, among sorted keys."""

    def __init__(self, lookups: list[Lookup], sizes: list[int]) -> None:
        self._lookups, self._sizes = lookups, sizes
        self.keys: IntegerLookup | None = None

    def keys_of(self, columns: list[Column], labels: list[str]) -> np.ndarray:
        """Return the key of every tuple, -1 where one of its ids is not there."""
        keys, absent = np.int64(0), False
        for find, column, label, size in zip(
            self._lookups, columns, labels, self._sizes, strict=True
        ):
            ranks = find(column, label)
            keys = keys * size + ranks.astype(np.int64)
            absent |= ranks < 0
        return np.where(absent, np.int64(-1), keys)

    def __call__(self, columns: list[Column], labels: list[str]) -> np.ndarray:
        """Return the ranks of the tuples."""
        return self.keys.find(self.keys_of(columns, labels))


@kept(error_model="numpy")
def _fill_bits(values, first, bits):
    """Set the bits of sorted values, and count those before each word."""
    for value in values:
        place = np.uint64(value) - first
        bits[place >> np.uint64(6), 1] |= np.uint64(1) << (place & np.uint64(63))
    for i in range(1, bits.shape[0]):
        bits[i, 0] = bits[i - 1, 0] + _popcount(bits[i - 1, 1])


@ParallelKernel
def _find_by_bits(team, asked, first, span, bits, ranks):
    together(team, _find_some_by_bits, (team.threads, asked, first, span, bits, ranks))


@compiled(error_model="numpy")
def _find_some_by_bits(thread, threads, asked, first, span, bits, ranks):
    """Find one thread's part; no ``bits``: every integer of the range is there."""
    begin, end = asked.size * thread // threads, asked.size * (thread + 1) // threads
    for i in range(begin, end):
        place = asked[np.uint64(i)] - first
        rank = np.int64(-1)
        if place <= span:
            if bits.shape[0] == 0:
                rank = np.int64(place)
            else:
                word, bit = place >> np.uint64(6), np.uint64(1) << (place & np.uint64(63))
                if bits[word, 1] & bit:
                    rank = np.int64(bits[word, 0] + _popcount(bits[word, 1] & (bit - _ONE)))
        ranks[np.uint64(i)] = rank


@kept(error_model="numpy")
def _count_pieces(values, first, shift, counts):
    for value in values:
        counts[(np.uint64(value) - first) >> shift] += 1


@ParallelKernel
def _find_in_pieces(team, asked, first, span, values, shift, starts, ranks):
    arguments = team.threads, asked, first, span, values, shift, starts, ranks
    together(team, _find_some_in_pieces, arguments)


@compiled(error_model="numpy")
def _find_some_in_pieces(thread, threads, asked, first, span, values, shift, starts, ranks):
    begin, end = asked.size * thread // threads, asked.size * (thread + 1) // threads
    for i in range(begin, end):
        place = asked[np.uint64(i)] - first
        rank = np.int64(-1)
        if place <= span:
            piece = place >> shift
            low, high = np.int64(starts[piece]), np.int64(starts[piece + _ONE])
            while low < high:
                middle = (low + high) >> 1
                if np.uint64(values[np.uint64(middle)]) - first < place:
                    low = middle + 1
                else:
                    high = middle
            if low < values.size and np.uint64(values[np.uint64(low)]) - first == place:
                rank = low
        ranks[np.uint64(i)] = rank
