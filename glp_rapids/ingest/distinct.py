"""The distinct ids of a column that comes in chunks, sorted once all have been seen.

Integers that fill their range well are noted in a table of bits, which grows with the range; with n
of them and a range of up to four times the ids seen, it has a byte for every two ids, and at most
twice that after it has grown. Other integers are kept sorted, and a table of any other ids without
duplicates; what is new waits until it is half as much as what is known, so at its peak, while they
are merged, that takes three times the distinct ids.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from glp_rapids.frames import chunks
from glp_rapids.frames.kinds import Column
from glp_rapids.graph import id_types
from glp_rapids.graph.vertex_ids import IdColumn
from glp_rapids.ingest.rank import column_of, sorted_ids
from glp_rapids.jit.cache import kept

WORD = 64  # bits
FEW = 1 << 16  # ids, whose range may be larger


class DistinctIds:
    """The ids of one column of vertices: of the sources, the destinations and further vertices.

    ``expected``: how many there will be with duplicates, if that is known.
    """

    def __init__(self, expected: int | None = None) -> None:
        self._families: dict[str, str] = {}
        self._dtypes: dict[str, list[Any]] = {}  # by end: what pandas has for such a column
        self.integers = DistinctIntegers(expected)
        self._known, self._waiting = None, []

    def add(self, column: Column, label: str, end: str, first_row: int = 0) -> None:
        """Add ids of an end; ``label`` and ``first_row`` are for messages."""
        family = id_types.id_family(column, label, first_row)
        if family is None:
            return
        self._families.setdefault(family, label)
        id_types.refuse_several(self._families)
        self._note(column.dtype, self._dtypes.setdefault(end, []))
        if family == "integer":
            self.integers.add(id_types.integers(column, label), label)
            return
        self._waiting.append(pd.Series(id_types.plain(column)[0]).drop_duplicates())
        if sum(map(len, self._waiting)) > max(chunks.CHUNK, self._number() // 2):
            self._merge()

    @property
    def family(self) -> str | None:
        """What sort of ids they are; None before there is one."""
        return next(iter(self._families), None)

    @property
    def dtypes(self) -> list[Any]:
        """What the caller's columns have, each once."""
        dtypes = []
        for dtype in (dtype for of_end in self._dtypes.values() for dtype in of_end):
            if dtype not in dtypes:
                dtypes.append(dtype)
        return dtypes

    def column(self) -> IdColumn:
        """Return the ids, sorted, with the dtype that the caller's have."""
        dtypes = self.dtypes
        ((family, label),) = self._families.items()
        if family == "integer":
            values = self.integers.sorted()
        else:
            self._merge()
            known, self._known = self._known, None
            values = sorted_ids(known, [label])
        return column_of(values, family, dtypes)

    def _note(self, dtype, dtypes):
        if id_types.is_categorical(dtype) and dtypes and id_types.is_categorical(dtypes[-1]):
            dtypes[-1] = _joined(dtypes[-1], dtype)
        elif dtype not in dtypes:
            dtypes.append(dtype)

    def _number(self):
        return 0 if self._known is None else len(self._known)

    def _merge(self):
        """Bring those that wait to those that are known."""
        if self._waiting:
            parts = self._waiting if self._known is None else [self._known, *self._waiting]
            self._known, self._waiting = None, []
            joined = pd.concat(parts, ignore_index=True)
            del parts
            self._known = joined.drop_duplicates(ignore_index=True)


class DistinctIntegers:
    """Integers that come in arrays of any integer dtypes; ``expected``: how many, if known."""

    def __init__(self, expected: int | None = None) -> None:
        self._dtypes: set[np.dtype] = set()
        self._least = self._largest = 0
        self._of_least = self._of_largest = ""  # what messages call the ids of which these are
        self._seen, self._expected = 0, expected or 0
        self._base = 0  # of the first bit
        self._bits: np.ndarray | None = np.zeros(0, np.uint64)  # None: too sparse
        self._known, self._waiting = np.empty(0, np.int64), []

    def add(self, array: np.ndarray, label: str) -> None:
        """Add integers; ``label`` is what messages call them."""
        if not array.size:
            return
        least, largest = int(array.min()), int(array.max())
        if not self._seen or least < self._least:
            self._least, self._of_least = least, label
        if not self._seen or largest > self._largest:
            self._largest, self._of_largest = largest, label
        self._dtypes.add(array.dtype)
        if self._largest >= 2**63:
            self._of_64_bits()
        self._seen += array.size
        if self._bits is None:
            self._wait(array)
        elif self._is_dense():
            self._mark(array)
        else:
            self._known, self._bits = self._marked(), None
            self._wait(array)

    def sorted(self) -> np.ndarray:
        """Return them, each once, in the one dtype that holds all; no more can be added."""
        dtype = np.result_type(*self._dtypes)
        if dtype.kind == "f":
            dtype = self._of_64_bits()
        if self._bits is None:
            self._merge()
        if self._bits is not None:
            return self._marked(dtype)
        known, self._known = self._known, np.empty(0, np.int64)
        return known.astype(dtype, copy=False)

    def _of_64_bits(self):
        """Choose a dtype that holds all, or raise."""
        labels = list(dict.fromkeys([self._of_largest, self._of_least]))
        return id_types.of_64_bits(self._least, self._largest, labels)

    def _is_dense(self):
        ids = max(self._seen, self._expected)
        return self._largest - self._least < 4 * ids + FEW

    def _cover(self, least, largest):
        """Make the table reach from the least to the largest, and further than it did."""
        size = self._bits.size
        if size and self._base <= least and largest < self._base + WORD * size:
            return
        base = least // WORD * WORD
        before = 0
        if size:
            base = min(base, self._base)
            before = (self._base - base) // WORD
        needed = (largest - base) // WORD + 1
        bits = np.zeros(max(needed, before + size, 2 * size if size else 0), np.uint64)
        bits[before : before + size] = self._bits
        self._base, self._bits = base, bits

    def _marked(self, dtype=None):
        """List what is in the table of bits."""
        wide = np.uint64 if self._base + WORD * self._bits.size > 2**63 else np.int64
        out = np.empty(int(np.bitwise_count(self._bits).sum()), wide if dtype is None else dtype)
        _list(self._bits, np.uint64(self._base % 2**64), out)
        return out

    def _wait(self, array):
        wide = np.uint64 if self._largest >= 2**63 else np.int64
        self._waiting.append(_each_once_sorted(array.astype(wide)))
        if sum(array.size for array in self._waiting) > max(chunks.CHUNK, self._known.size // 2):
            self._merge()

    def _merge(self):
        """Bring those that wait to those that are known; note them in bits if they are dense."""
        wide = np.uint64 if self._largest >= 2**63 else np.int64
        parts = [array.astype(wide, copy=False) for array in (self._known, *self._waiting)]
        self._known, self._waiting = np.empty(0, wide), []
        joined = np.concatenate(parts)
        del parts
        joined = _each_once_sorted(joined)
        if self._is_dense():
            self._base, self._bits = 0, np.zeros(0, np.uint64)
            self._mark(joined)
        else:
            self._known = joined

    def _mark(self, array):
        self._cover(self._least, self._largest)
        _mark(words_of(array), np.uint64(self._base % 2**64), self._bits)


def _joined(one, other):
    """Put the categories of a chunk behind those of the chunks before, as joining them does."""
    if one == other:
        return one
    new = other.categories[~other.categories.isin(one.categories)]
    return pd.CategoricalDtype(one.categories.append(new), ordered=one.ordered and other.ordered)


def _each_once_sorted(array: np.ndarray) -> np.ndarray:
    """Sort an array that nobody else has, in its place; NumPy's unique takes ten times as long."""
    array.sort()
    array.resize(_each_once(array), refcheck=False)
    return array


def words_of(array: np.ndarray) -> np.ndarray:
    """Return integers of any dtype as words of 64 bits; those equal modulo 2^64 are the same."""
    wide = np.uint64 if array.dtype.kind == "u" else np.int64
    return array.astype(wide, copy=False).view(np.uint64)


@kept(error_model="numpy")
def _mark(words, base, bits):
    for word in words:
        place = word - base
        bits[place >> np.uint64(6)] |= np.uint64(1) << (place & np.uint64(63))


@kept(error_model="numpy")
def _list(bits, base, out):
    filled = 0
    for i in range(bits.size):
        word, value = bits[i], base + np.uint64(64 * i)
        while word != 0:
            if word & np.uint64(1):
                out[filled] = value
                filled += 1
            word >>= np.uint64(1)
            value += np.uint64(1)


@kept
def _each_once(values):
    """Move the distinct ones of sorted values to the front; return how many they are."""
    filled = 0
    for i in range(values.size):
        if i == 0 or values[i] != values[i - 1]:
            values[filled] = values[i]
            filled += 1
    return filled
