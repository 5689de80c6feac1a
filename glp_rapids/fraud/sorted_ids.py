"""Sets of sorted ids on the host, each with a number: found in, merged, in runs of growing length.

A set that grows by small ones is kept as runs, each at least twice as long as the next: an id is
merged as often as its run has doubled, and looked for in as many runs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from glp_rapids.fraud.ids import joined, taken
from glp_rapids.graph.vertex_ids import IdColumn, VertexIds

MANY = 32  # a search takes about as many steps: if that is more than all ids, they are sorted
Run = TypeVar("Run")


@dataclass(frozen=True)
class SortedIds:
    """Sorted distinct ids, each with a number."""

    ids: VertexIds
    value: np.ndarray

    def __post_init__(self) -> None:
        columns = tuple(_in_one_piece(column) for column in self.ids.columns)
        if any(one is not other for one, other in zip(columns, self.ids.columns, strict=True)):
            object.__setattr__(self, "ids", VertexIds(columns, self.ids.kind))

    def __len__(self) -> int:
        return len(self.ids)

    def of_type(self, like: VertexIds) -> SortedIds:
        """Return the same with ids of the types of others, which hold them."""
        return SortedIds(of_type(self.ids, like), self.value)

    def chosen(self, index: np.ndarray) -> SortedIds:
        """Return the ids at ``index``, which ascends."""
        return SortedIds(taken(self.ids, index), self.value[index])


def _in_one_piece(column: IdColumn) -> IdColumn:
    """Put together what Arrow has in pieces: it does so anew for every look at a few values."""
    array = _arrow(column)
    if array is None or array.num_chunks == 1:
        return column
    values = pd.array(array.combine_chunks(), dtype=column.values.dtype)
    return replace(column, values=pd.Series(values), _kept={})


def _arrow(column: IdColumn) -> Any:
    """Return what Arrow has of a column, in its pieces; None if it has nothing of it."""
    if not isinstance(getattr(column.values, "array", None), pd.arrays.ArrowExtensionArray):
        return None
    return column.values.array.__arrow_array__()


def stacked(
    runs: tuple[Run, ...], run: Run, join: Callable[[Run, Run], Run], size: Callable[[Run], int]
) -> tuple[Run, ...]:
    """Put a run on others, and join those that are no longer than twice what lies on them."""
    while runs and size(runs[-1]) <= 2 * size(run):
        run = join(runs[-1], run)
        runs = runs[:-1]
    return (*runs, run)


def lower_bound(ids: VertexIds, asked: VertexIds) -> np.ndarray:
    """Find for each asked id the first that is no less; both ascend, and are of one type."""
    if not len(ids) or not len(asked):
        return np.zeros(len(asked), dtype=np.int64)
    columns = list(zip(ids.columns, asked.columns, strict=True))
    if len(columns) == 1 and ids.columns[0].family == "integer":
        return np.searchsorted(columns[0][0].values, columns[0][1].values)
    if MANY * len(asked) < len(ids):
        return _by_halves(ids, asked)
    if len(columns) == 1:
        return _by_sorting(*(column.values for column in columns[0]))
    old, new = joined(ids, asked, "cpu")[1:]
    return new.astype(np.int64) if old is None else np.searchsorted(old, new)


def _by_halves(ids, asked):
    low = np.zeros(len(asked), dtype=np.int64)
    high = np.full(len(asked), len(ids))
    while (searched := np.flatnonzero(low < high)).size:
        middle = (low[searched] + high[searched]) >> 1
        less = _compared(ids, middle, asked, searched)[0]
        low[searched[less]] = middle[less] + 1
        high[searched[~less]] = middle[~less]
    return low


def _by_sorting(values, asked):
    # a stable sort of two sorted lists takes linear time
    order = pd.concat([asked, values], ignore_index=True).argsort(kind="stable").to_numpy()
    place = np.empty(order.size, dtype=np.int64)
    place[order] = np.arange(order.size)
    return place[: len(asked)] - np.arange(len(asked))


def _compared(ids, index, asked, which):
    """Tell whether ids are less than those asked for, and whether they are the same."""
    less, same = np.zeros(which.size, dtype=bool), np.ones(which.size, dtype=bool)
    for one, other in zip(ids.columns, asked.columns, strict=True):
        mine, wanted = _at(one, index), _at(other, which)
        less |= same & np.asarray(mine < wanted, dtype=bool)
        same &= np.asarray(mine == wanted, dtype=bool)
    return less, same


def _at(column, index):
    # a Series has an index to take along, and pieces of Arrow are looked for: most of a search
    values = column.values
    if column.family == "integer":
        return values[index]
    array = _arrow(column)
    if array is not None and array.num_chunks == 1:
        return pd.array(array.chunk(0).take(index), dtype=values.dtype)
    return values.array.take(index)


def found(ids: VertexIds, asked: VertexIds) -> tuple[np.ndarray, np.ndarray]:
    """Look for ids: which of those asked for are there, and where each of these is."""
    place = lower_bound(ids, asked)
    inside = np.flatnonzero(place < len(ids))
    there = inside[_compared(ids, place[inside], asked, inside)[1]]
    return there, place[there]


def merged(one: SortedIds, other: SortedIds) -> SortedIds:
    """Merge two sets; of an id that both have, the larger number stays."""
    there, place = found(one.ids, other.ids)
    value = one.value
    if there.size:
        value = value.copy()
        value[place] = np.maximum(value[place], other.value[there])
        fresh = np.ones(len(other), dtype=bool)
        fresh[there] = False
        other = other.chosen(np.flatnonzero(fresh))
    place = lower_bound(one.ids, other.ids)
    return SortedIds(inserted(one.ids, other.ids, place), np.insert(value, place, other.value))


def inserted(
    ids: VertexIds, more: VertexIds, place: np.ndarray, left: np.ndarray | None = None
) -> VertexIds:
    """Insert ids before ``place`` in others; ``left``: which of all these to keep (None: all)."""
    if not len(more):
        return ids if left is None or left.size == len(ids) else taken(ids, left)
    # Numba takes longer to import than a small graph takes to build
    from glp_rapids.fraud.kernels import matching

    left = np.arange(len(ids) + len(more)) if left is None else left

    def among(one: np.ndarray, other: np.ndarray) -> np.ndarray:
        values = np.empty(left.size, np.result_type(one, other))
        bits = np.dtype(f"u{values.itemsize}")  # of whatever type they are, by one kernel
        old, new = (np.ascontiguousarray(each, values.dtype).view(bits) for each in (one, other))
        matching.insert(place, old, new, left, values.view(bits))
        return values

    columns = []
    for one, other in zip(ids.columns, more.columns, strict=True):
        if one.family == "integer":
            values = among(one.values, other.values)
        else:
            order = among(np.arange(len(ids)), len(ids) + np.arange(len(more)))
            values = pd.concat([one.values, other.values], ignore_index=True)
            values = values.take(order).reset_index(drop=True)
        columns.append(IdColumn(values, one.family, one.dtype))
    return VertexIds(tuple(columns), ids.kind)


def alike(old: VertexIds, new: VertexIds) -> VertexIds | None:
    """Say of what types ids are that new ones join, as no ids; None: that depends on the ids.

    As `ids.joined` has it: integers are widened; ids that the caller has in columns of different
    types are given back in that of the ids.
    """
    columns = []
    for one, other in zip(old.columns, new.columns, strict=True):
        if one.family != other.family:
            return None
        dtype = one.id_dtype
        if one.family == "integer":
            dtype = np.result_type(one.values, other.values)
            if dtype.kind == "f":
                return None
        elif dtype != other.id_dtype:
            return None
        shown = one.dtype if one.dtype == other.dtype else None
        columns.append(IdColumn(one.values[:0].astype(dtype), one.family, shown))
    return VertexIds(tuple(columns), old.kind)


def of_type(ids: VertexIds, like: VertexIds) -> VertexIds:
    """Return ids as ids of the types of others, which hold them."""
    columns = []
    for one, other in zip(ids.columns, like.columns, strict=True):
        if one.id_dtype != other.id_dtype:
            one = replace(one, values=one.values.astype(other.id_dtype), _kept={})
        if one.dtype is not other.dtype:
            one = replace(one, dtype=other.dtype, _kept={})
        columns.append(one)
    return VertexIds(tuple(columns), ids.kind)


def like_joined(old: VertexIds, new: VertexIds, *label: str) -> VertexIds:
    """Say of what types ids are that others join, as no ids; raises if none holds both."""
    together = joined(old, new, "cpu", *label)[0]
    return taken(together, np.empty(0, dtype=np.int64))
