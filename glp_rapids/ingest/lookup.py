"""The ranks of ids that come in chunks, among sorted ids of any family.

Integers: a table says for every piece of their range, of which there are a quarter to half as many
as ids, where its ids begin among the sorted ones; there they are found by bisection. That takes 1
to 2 bytes an id (2 to 4 from 2^31 ids on), and where no id is missing in the range, none. Any other
family is looked up in a hash table of pandas.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd

from glp_rapids.frames.kinds import Column
from glp_rapids.graph import id_types
from glp_rapids.graph.sort_gpu import index_dtype
from glp_rapids.graph.vertex_ids import IdColumn
from glp_rapids.jit.cache import kept
from glp_rapids.jit.cpu import compiled
from glp_rapids.jit.parallel import ParallelKernel, threads_available, together

WORTH_THREADS = 1 << 14  # ids
Lookup = Callable[[Column, str], np.ndarray]


def lookup_of(column: IdColumn) -> Lookup:
    """Return what finds the ranks of ids; that of one which is not there is -1."""
    return (IntegerLookup if column.family == "integer" else _OtherLookup)(column.values)


class IntegerLookup:
    """Finds integers among sorted ones."""

    def __init__(self, values: np.ndarray) -> None:
        self._values, self._dtype = values, index_dtype(values.size)
        self._first = np.uint64(int(values[0]) % 2**64)
        self._span = int(values[-1]) - int(values[0])
        self._shift = 0
        if self._span == values.size - 1:
            self._starts = np.empty(0, self._dtype)
            return
        while self._span >> self._shift > values.size // 2:
            self._shift += 1
        self._starts = np.zeros((self._span >> self._shift) + 2, self._dtype)
        _count_pieces(values, self._first, np.uint64(self._shift), self._starts[1:])
        np.cumsum(self._starts, dtype=self._dtype, out=self._starts)

    def __call__(self, column: Column, label: str) -> np.ndarray:
        """Return the ranks; ``label`` is what messages call the ids."""
        return self.find(id_types.integers(column, label))

    def find(self, asked: np.ndarray) -> np.ndarray:
        """Return the ranks of integers of any dtype."""
        ranks = np.empty(asked.size, self._dtype)
        wide = np.uint64 if asked.dtype.kind == "u" else np.int64
        threads = threads_available() if asked.size >= WORTH_THREADS else 1
        _find(
            threads, asked.astype(wide, copy=False).view(np.uint64), self._values, self._first,
            np.uint64(self._span), np.uint64(self._shift), self._starts, ranks,
        )  # fmt: skip
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
def _count_pieces(values, first, shift, counts):
    for value in values:
        counts[(np.uint64(value) - first) >> shift] += 1


@ParallelKernel
def _find(team, asked, values, first, span, shift, starts, ranks):
    together(team, _find_some, (team.threads, asked, values, first, span, shift, starts, ranks))


@compiled(error_model="numpy")
def _find_some(thread, threads, asked, values, first, span, shift, starts, ranks):
    """Find one thread's part; ``starts`` is empty where every integer of the range is there."""
    begin, end = asked.size * thread // threads, asked.size * (thread + 1) // threads
    for i in range(begin, end):
        place = asked[np.uint64(i)] - first
        rank = np.int64(-1)
        if place <= span:
            if starts.size == 0:
                rank = np.int64(place)
            else:
                piece = place >> shift
                low, high = np.int64(starts[piece]), np.int64(starts[piece + np.uint64(1)])
                while low < high:
                    middle = (low + high) >> 1
                    if np.uint64(values[np.uint64(middle)]) - first < place:
                        low = middle + 1
                    else:
                        high = middle
                if low < values.size and np.uint64(values[np.uint64(low)]) - first == place:
                    rank = low
        ranks[np.uint64(i)] = rank
