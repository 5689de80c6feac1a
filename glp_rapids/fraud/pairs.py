"""Transactions and what they add up to, pair by pair: reading, sorting, merging, subtracting.

Sums are of integers, so taking away what was once added leaves exactly what the rest adds up to.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd

from glp_rapids.common.scans import number_where, places_where
from glp_rapids.common.segments import segment_ids
from glp_rapids.device import any_true, array_module, device_of
from glp_rapids.frames import kinds
from glp_rapids.fraud.clock import refuse_nulls
from glp_rapids.fraud.ids import merged_places
from glp_rapids.graph.build import ordering

Array = Any
FEW = 4  # vertices a row, above which no list of all vertices is made
LARGEST_AMOUNT = 2**53  # units, beyond which float64 amounts are not exact


def on_gpu() -> ModuleType:
    """Return what does the same on a GPU; Numba takes longer to import than a small batch takes."""
    from glp_rapids.fraud.kernels import gpu_transactions

    return gpu_transactions


@dataclass(frozen=True)
class Rows:
    """Transactions: int32 indices of both ends, amount in int64 units, time."""

    source: Array
    destination: Array
    units: Array
    time: Array

    @property
    def columns(self) -> tuple[Array, ...]:
        """All of them."""
        return tuple(vars(self).values())

    def __getitem__(self, which: Array) -> Rows:
        if device_of(which) == "gpu":
            return Rows(*on_gpu().taken(self.columns, which))
        return Rows(*(column[which] for column in self.columns))

    def joined(self, other: Rows) -> Rows:
        pairs = list(zip(self.columns, other.columns, strict=True))
        if device_of(self.time) == "gpu" and all(one.dtype == two.dtype for one, two in pairs):
            return Rows(*on_gpu().joined(self.columns, other.columns))
        return Rows(*(array_module(self.time).concatenate(pair) for pair in pairs))

    def renamed(self, index: Array | None) -> Rows:
        if index is None:
            return self
        if device_of(index) == "gpu":
            ends = on_gpu().renamed(index, self.source, self.destination)
        else:
            ends = index[self.source], index[self.destination]
        return Rows(*ends, self.units, self.time)


@dataclass(frozen=True)
class Pairs:
    """What the transactions of every pair add up to, by ascending key = row << 32 | column."""

    key: Array
    transfers: Array
    units: Array
    faded: Array | None = None  # what they count by age

    @property
    def sums(self) -> tuple[str, ...]:
        """What is added up."""
        return ("transfers", "units") if self.faded is None else ("transfers", "units", "faded")

    @property
    def row(self) -> Array:
        return self.key >> np.int64(32)

    @property
    def column(self) -> Array:
        return self.key & np.int64(0xFFFFFFFF)

    def renamed(self, index: Array | None) -> Pairs:
        """Rename the vertices; ``index`` ascends, so the keys stay in order. None: no change."""
        if index is None:
            return self
        if device_of(index) == "gpu":
            return replace(self, key=on_gpu().renamed_keys(index, self.key))
        return replace(self, key=_key(index[self.row], index[self.column]))


def _key(row: Array, column: Array) -> Array:
    return row.astype(np.int64) << np.int64(32) | column


def added_up(
    rows: Rows, number_of_vertices: int, directed: bool, counts: Array | None = None
) -> Pairs:
    """Sort transactions by pair and add them up; undirected: both ways, a self-loop once.

    ``counts``: what each counts by age.
    """
    xp = array_module(rows.time)
    few = rows.time.size * FEW < number_of_vertices
    if few and xp is not np:
        values = (rows.units,) if counts is None else (rows.units, counts)
        return Pairs(*on_gpu().added_up(rows.source, rows.destination, not directed, values))
    if few:
        key, entry = _sorted_keys(rows, directed)
    else:
        indptr, column, entry = ordering(rows.source).sorted_entries(
            rows.source, rows.destination, number_of_vertices, not directed
        )
        key = _key(segment_ids(indptr, column.dtype, column.size), column)
    fresh = xp.ones(key.size, dtype=bool)
    fresh[1:] = key[1:] != key[:-1]
    first = places_where(fresh)
    end = xp.concatenate([first[1:], xp.full(min(key.size, 1), key.size, dtype=first.dtype)])
    sums = []
    for values in (rows.units, counts):
        if values is None:
            continue
        running = xp.concatenate([xp.zeros(1, dtype=np.int64), xp.cumsum(values[entry])])
        sums.append(running[end] - running[first])
    return Pairs(key[first], (end - first).astype(np.int64), *sums)


def _sorted_keys(rows: Rows, directed: bool) -> tuple[Array, Array]:
    """Sort the pairs of few rows, without a look at all vertices; and say which row has each."""
    xp = array_module(rows.time)
    key, entry = _key(rows.source, rows.destination), xp.arange(rows.time.size)
    if not directed:
        back = places_where(rows.source != rows.destination)
        key = xp.concatenate([key, _key(rows.destination[back], rows.source[back])])
        entry = xp.concatenate([entry, back])
    order = xp.argsort(key)
    return key[order], entry[order]


def merged(old: Pairs, new: Pairs) -> Pairs:
    """Merge two sorted lists of pairs in linear time, adding up what both have."""
    to_old, to_new, size = merged_places(old.key, new.key)
    if device_of(old.key) == "gpu":
        sums = ([getattr(pairs, name) for name in old.sums] for pairs in (old, new))
        one, other = map(tuple, sums)
        return Pairs(*on_gpu().merged(old.key, one, to_old, new.key, other, to_new, size))
    columns = []
    for name in ("key", *old.sums):
        column = np.zeros(size, dtype=np.int64)
        column[slice(None) if to_old is None else to_old] = getattr(old, name)
        if name == "key":
            column[to_new] = new.key
        else:
            column[to_new] += getattr(new, name)
        columns.append(column)
    return Pairs(*columns)


def subtracted(pairs: Pairs, leaving: Pairs) -> Pairs:
    """Take away what leaves; a pair without transactions is gone."""
    xp = array_module(pairs.key)
    place = xp.searchsorted(pairs.key, leaving.key)
    sums = []
    for name in pairs.sums:
        sums.append(getattr(pairs, name).copy())
        sums[-1][place] -= getattr(leaving, name)
    kept = places_where(sums[0])
    return Pairs(pairs.key[kept], *(values[kept] for values in sums))


def units(column, scale, label):
    """Return amounts in units of 1 / scale, as int64."""
    refuse_nulls(column, label)
    numbers = pd.api.types.is_numeric_dtype(column.dtype) and column.dtype.kind != "c"
    if pd.api.types.is_bool_dtype(column.dtype) or not numbers:
        odd = _first_of_no_number(column)
        raise TypeError(
            f"{label} holds {column.dtype}, not numbers{odd}; cast with astype('float64')"
        )
    amount = kinds.to_array(column).astype(np.float64)
    xp = array_module(amount)
    scaled = xp.rint(amount * np.float64(scale))
    bad = ~((amount >= 0) & (scaled <= LARGEST_AMOUNT))
    if any_true(bad):
        row = int(bad.argmax())
        raise ValueError(
            f"{label} holds {number_where(bad)} amount(s) that are negative or beyond "
            f"{LARGEST_AMOUNT / scale:.3g}, the first {amount[row].item()} at row {row}; drop "
            "them (a refund as a row from payee to payer is one more transfer), or lower decimals"
        )
    return scaled.astype(np.int64)


def _first_of_no_number(column):
    """Say which value of a column of pandas is no number, if one is."""
    if not isinstance(column, pd.Series):
        return ""
    odd = pd.to_numeric(column.astype(str), errors="coerce").isna().to_numpy()
    return f", such as {column.iloc[odd.argmax()]!r} at row {odd.argmax()}" if odd.any() else ""


def refuse_total(total: float, scale: float, growth: int = 1) -> None:
    """Raise if amounts, in units of 1 / scale, may add up to more than 64 bits hold.

    ``growth``: how many times its units an amount may count.
    """
    if total * growth >= 2**62:
        by_age = f", of which half_life= takes {growth} times as many" if growth > 1 else ""
        raise ValueError(
            f"amount: the amounts in the window add up to {total / scale:.3g}, too much "
            f"for 64 bits at {scale:.0e} units{by_age}; lower decimals"
        )
