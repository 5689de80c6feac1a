"""External vertex ids: an index is the rank of the id in sorted order; `ingest.rank` finds it."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from glp_rapids.common.checks import errors_named
from glp_rapids.common.reused_memory import lasting
from glp_rapids.common.scans import number_where
from glp_rapids.device import (
    DeviceName,
    any_true,
    array_module,
    device_of,
    module_on,
    to_device,
    to_host,
)
from glp_rapids.frames import kinds
from glp_rapids.frames.kinds import Column, Kind
from glp_rapids.graph import id_types
from glp_rapids.graph.find_gpu import find_ids

Array = Any
# Ids that a table spans for each that is asked for. Up to 4, of 10,000 to 4 million ids, it took .6
# to 1.2 of the time of a search for ids that ascend, and a third to a twentieth for others; with 8
# 1.6 for those that ascend.
DENSE = 4
# Texts for each that is asked for, from where on each is looked up alone: `lookup` of one among a
# million took 170 ms by a merge, and 0.4 so.
FEW = 1 << 9


@dataclass(frozen=True, eq=False)
class IdColumn:
    """Sorted ids of one column: an array if they are integers, else a Series."""

    values: Column
    family: str  # "integer", "string", "datetime64[ns]", ...: what compares with what
    dtype: Any  # as the caller had it; None where no cast is needed
    _kept: dict[str, Any] = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        return len(self.values)

    @property
    def device(self) -> DeviceName:
        """Where the ids live."""
        return device_of_column(self.values)

    @property
    def id_dtype(self) -> Any:
        """The dtype of the ids, which is not always the caller's."""
        return self.values.dtype

    @property
    def ends(self) -> tuple[int, int]:
        """The first and the last of integers, of which there must be some."""
        if "ends" not in self._kept:  # a look at a GPU takes longer than a small search there
            two = to_host(self.values[:: max(len(self) - 1, 1)])
            self._kept["ends"] = int(two[0]), int(two[-1])
        return self._kept["ends"]

    def lasting(self) -> IdColumn:
        """Return the ids in memory that is not of a pool of the call that goes on."""
        return replace(self, values=lasting(self.values)) if self.family == "integer" else self

    def at(self, index: Array) -> Column:
        """The ids at ``index``, which lies where they live."""
        plain = self.family == "integer"
        return self.values[index] if plain else kinds.taken(self.values, index)

    def search(self, asked: Array) -> Array:
        """Find integers among the ids, if these are integers: positions, -1 where not there."""
        asked = to_device(asked, self.device)
        xp = array_module(asked)
        if not len(self):
            return xp.full(asked.size, -1, dtype=np.int64)
        if xp is not np:
            return find_ids(self.values, asked)
        inside = within(asked, *self.ends)
        if self.ends == (0, len(self) - 1):  # each id is its index
            return xp.where(inside, asked.astype(np.int64), -1)
        asked = asked.astype(self.values.dtype, copy=False)
        if self.ends[1] - self.ends[0] < DENSE * asked.size:
            return self._search_by_table(asked, inside)
        place = xp.searchsorted(self.values, asked)
        place = xp.minimum(place, len(self) - 1)
        found = inside & (self.values[place] == asked)
        return xp.where(found, place, -1)

    def _search_by_table(self, asked: np.ndarray, inside: np.ndarray) -> np.ndarray:
        least, unsigned = self.values[0], f"u{self.values.dtype.itemsize}"  # a span may need that
        table = np.full(self.ends[1] - self.ends[0] + 1, -1, dtype=np.int64)
        table[(self.values - least).view(unsigned)] = np.arange(len(self))
        offset = (np.where(inside, asked, least) - least).view(unsigned)
        return np.where(inside, table[offset], -1)

    def search_few(self, asked: Column) -> np.ndarray | None:
        """Find a few texts among the ids of a host; None: merge them with all, for they are many.

        Also if one is not there: it may be one that only a cast makes equal to an id.
        """
        known = self.values
        if self.family != "string" or kinds.is_cudf(known, "Series"):
            return None
        if kinds.is_cudf(asked, "Series") or len(asked) * FEW > len(known):
            return None
        index = np.empty(len(asked), np.int64)
        for row, text in enumerate(asked):
            if not isinstance(text, str):
                return None
            index[row] = place = bisect_left(known.array, text)
            if place == len(known) or known.array[place] != text:
                return None
        return index

    def take(self, index: Array | None, kind: Kind) -> Any:
        """Make the ids at ``index`` (None: all) a Series of the caller's kind and dtype."""
        if index is None:
            return self._all(kind)
        taken = self.at(to_device(index, self.device))
        return self._as_series(taken, kind, copy=False)  # what was taken is a copy

    def for_frame(self, index: Array | None, kind: Kind) -> Any:
        """Take ids as `take` does, or as an array, which a frame of cuDF takes in sooner."""
        if kind == "pandas" or self.family != "integer" or self.dtype is not None:
            return self.take(index, kind)
        if index is None:
            return kinds.for_cudf(self.values, kind)
        return kinds.for_cudf(self.at(to_device(index, self.device)), kind, copy=False)

    @property
    def can_mark(self) -> bool:
        """Tell whether -1 can stand for no id: it fits in among them, and is none of them."""
        if self.family != "integer" or self.id_dtype.kind != "i":
            return False
        if self.dtype is not None and not pd.api.types.is_signed_integer_dtype(self.dtype):
            return False
        if not len(self) or not self.ends[0] <= -1 <= self.ends[1]:
            return True
        return int(self.search(np.array([-1]))[0]) < 0

    def with_marks(self, index: Array, kind: Kind, copy: bool = True) -> Any:
        """Make the ids at ``index`` a Series, -1 where it is negative; they are integers."""
        index = to_device(index, self.device)
        xp = array_module(self.values)
        if len(self) and self.ends == (0, len(self) - 1):  # each id is its index
            return self._as_series(index.astype(self.id_dtype, copy=copy), kind, copy=False)
        marks = xp.full(1, -1).astype(self.id_dtype)
        return self._as_series(xp.concatenate([self.values, marks])[index], kind, copy=False)

    def _all(self, kind: Kind) -> Any:
        if kind != "pandas":  # a copy on the GPU takes no time, but memory if it stays
            return self._as_series(self.values, kind)
        if kind not in self._kept:
            self._kept[kind] = self._as_series(self.values, kind)
        return kinds.to_series(self._kept[kind], kind)

    def _as_series(self, values: Column, kind: Kind, copy: bool = True) -> Any:
        series = kinds.to_series(values, kind, copy)
        return series if self.dtype is None else series.astype(self.dtype)


@dataclass(frozen=True, eq=False)
class VertexIds:
    """The external ids in the order of their indices, distinct and sorted."""

    columns: tuple[IdColumn, ...]
    kind: Kind

    @classmethod
    def numbers(cls, n: int, device: DeviceName, kind: Kind = "pandas") -> VertexIds:
        """Return the ids 0 to n - 1, for results of a kind."""
        return cls((IdColumn(module_on(device).arange(n, dtype=np.int64), "integer", None),), kind)

    def __len__(self) -> int:
        return len(self.columns[0])

    def names(self, name: str = "vertex") -> list[str]:
        """Name the id columns of a result: as cuGraph, numbered if there are several."""
        if len(self.columns) == 1:
            return [name]
        return [f"{i}_{name}" for i in range(len(self.columns))]

    def take(self, index: Array | None, name: str = "vertex", kind: Kind | None = None) -> dict:
        """Take the ids at ``index`` (None: all), as Series by column name."""
        return {
            column_name: column.take(index, kind or self.kind)
            for column_name, column in zip(self.names(name), self.columns, strict=True)
        }

    def for_frame(self, index: Array | None, name: str, kind: Kind) -> dict:
        """Take the ids at ``index`` (None: all) for `kinds.joined`, by column name."""
        return {
            column_name: column.for_frame(index, kind)
            for column_name, column in zip(self.names(name), self.columns, strict=True)
        }

    def take_some(self, index: Array, name: str, marked: bool, copy: bool = True) -> dict:
        """Take the ids at ``index``, as Series by column name, where it is not negative.

        Elsewhere there is a null; or, if ``marked``, -1 where ids are of one column of signed
        integers of which none is -1. ``copy=False``: nobody else has ``index``, and the Series may
        be of its memory.
        """
        ids = self.columns[0]
        if marked and len(self.columns) == 1 and ids.can_mark:
            return {name: ids.with_marks(index, self.kind, copy)}
        none = index < 0
        taken = self.take(array_module(index).where(none, 0, index), name)
        return {name: kinds.null_where(none, ids, self.kind) for name, ids in taken.items()}

    def lasting(self) -> VertexIds:
        """Return ids of which no array lies in a pool of the call that goes on."""
        return replace(self, columns=tuple(one.lasting() for one in self.columns))

    def lookup(
        self, ids: Any, argument: str, absent: bool = False, mend: str = "make the graph with them"
    ) -> Array:
        """Look up the indices of external ids, as int64 on the host or where the ids live.

        Those of ids that are no vertex are -1 if they may be ``absent``, else an error, which says
        what to do but to drop them: the ``mend``.
        """
        parts = id_types.split_columns(ids, len(self.columns), argument)
        labels = [argument] * len(parts)
        for part, column, label in zip(parts, self.columns, labels, strict=True):
            family = id_types.id_family(part, label)
            known = column.family
            if family == "date" and id_types.is_arrow_date(column.id_dtype):
                known = family  # as its items are
            if len(part) and family != known and len(self):
                raise TypeError(
                    f"{argument} holds {id_types.shown_type(part)} but the vertices are "
                    f"{column.dtype or column.id_dtype}; cast {argument} to that"
                )
        if len(parts) == 1 and self.columns[0].family == "integer" and len(parts[0]):
            index = self.columns[0].search(id_types.integers(parts[0], argument))
        else:
            with errors_named(argument):
                index = self._merge(parts)
        if not absent:
            refuse_missing(index, parts, argument, mend=f"drop them, or {mend}")
        return index

    def _merge(self, parts: list[Column]) -> Array:
        few = self.columns[0].search_few(parts[0]) if len(parts) == 1 else None
        if few is not None:
            return few
        lib = kinds.library(self.kind)
        names = [str(i) for i in range(len(parts))]
        kind: Kind = "pandas" if lib is pd else "cudf"
        known = lib.DataFrame(
            {
                name: kinds.to_series(column.values, kind)
                for name, column in zip(names, self.columns, strict=True)
            }
        )
        # a range is filled in where the frame lies
        known["index"] = lib.Series(range(len(self)))
        asked = lib.DataFrame(
            {
                name: kinds.to_series(id_types.plain(part)[0], kind)
                for name, part in zip(names, parts, strict=True)
            }
        )
        asked["row"] = lib.Series(range(len(asked)))
        strangers = []  # marks of ids that a cast has changed
        for name in names:
            if asked[name].dtype != known[name].dtype:
                known[name], asked[name], lost = _of_one_dtype(known[name], asked[name])
                strangers += lost
            if lib is pd and known[name].dtype == object:
                # a merge takes texts for strings, which lone surrogates are not
                codes, _ = pd.concat([known[name], asked[name]]).factorize()
                known[name], asked[name] = codes[: len(known)], codes[len(known) :]
        merged = asked.merge(known, on=names, how="left").sort_values("row")
        index = kinds.to_array(merged["index"].fillna(-1).astype(np.int64))
        for lost in strangers:
            index = array_module(index).where(lost, -1, index)
        return index


def _of_one_dtype(known: Any, asked: Any) -> tuple[Any, Any, list[Array]]:
    """Cast ids to the dtype of those that are known, and mark those whose value may change so."""
    try:
        cast = asked.astype(known.dtype)
        if pd.api.types.is_string_dtype(known.dtype):  # objects, too
            return known, cast, []
        lost = cast.astype(asked.dtype) != asked
        if pd.api.types.is_integer_dtype(known.dtype):  # -1 and 2**64 - 1 are one another's cast
            lost |= (cast < 0) != (asked < 0)
        return known, cast, [kinds.to_array(lost).astype(bool)]
    except (TypeError, ValueError, OverflowError):  # beyond what the other dtype holds
        return known.astype(object), asked.astype(object), []


def refuse_missing(
    index: Array, parts: list[Column], argument: str, what: str = "are no vertex of the graph",
    mend: str = "drop them, or make the graph with them",
) -> None:  # fmt: skip
    """Raise if some of the ids that were looked up are no vertex: their index is -1."""
    missing = index < 0
    if not any_true(missing):
        return
    number = number_where(missing)
    rows = to_host(array_module(index).flatnonzero(missing)[:5])
    shown = [tuple(id_types.item(part, row) for part in parts) for row in rows]
    shown = ", ".join(repr(ids[0] if len(ids) == 1 else ids) for ids in shown)
    raise ValueError(
        f"{argument} holds {number} id(s) that {what}: {shown}"
        f"{', ...' if number > 5 else ''}; {mend}"
    )


def within(integers: Array, first: int, last: int) -> Array:
    """Tell which integers are from ``first`` to ``last``, whatever their type can hold."""
    least, most = held_between(integers.dtype, first, last)
    return (integers >= least) & (integers <= most)


def held_between(dtype: Any, first: int, last: int) -> tuple[Any, Any]:
    """Return the least and the largest integers from ``first`` to ``last`` that a type can hold.

    They are of the type; if it holds none of them, the least is above the largest.
    """
    can, to_type = np.iinfo(dtype), np.dtype(dtype).type
    if first > can.max or last < can.min:
        return to_type(1), to_type(0)
    return to_type(max(first, can.min)), to_type(min(last, can.max))


def device_of_column(column: Column) -> DeviceName:
    """Tell where a column lives."""
    return "gpu" if kinds.is_cudf(column, "Series") else device_of(column)
