"""External vertex ids to indices and back: an index is the rank of the id in sorted order.

Integers that fill their range well are ranked by a table of who is present and its running sum;
any others by hashing (`factorize`), and then only the distinct ones are sorted. Several id columns
are ranked one by one, and the ranks are packed into one integer that is ranked again.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from glp_rapids.common.checks import errors_named
from glp_rapids.device import DeviceName, array_module, device_of, to_device, to_host
from glp_rapids.frames import kinds
from glp_rapids.frames.kinds import Column, Kind
from glp_rapids.graph import id_types
from glp_rapids.graph.build import ordering
from glp_rapids.graph.sort_gpu import index_dtype

Array = Any


@dataclass(frozen=True, eq=False)
class IdColumn:
    """Sorted ids of one column: an array if they are integers, else a Series."""

    values: Column
    family: str  # "integer", "string", "datetime64[ns]", ...: what compares with what
    dtype: Any  # as the caller had it; None where no cast is needed
    _kept: dict[Kind, Any] = field(default_factory=dict, repr=False)

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

    def at(self, index: Array) -> Column:
        """The ids at ``index``, which lies where they live."""
        plain = self.family == "integer"
        return self.values[index] if plain else kinds.taken(self.values, index)

    def search(self, asked: Array) -> Array:
        """Find integers among the ids, if these are integers: positions, -1 where not there."""
        return _search(self.values, asked)

    def take(self, index: Array | None, kind: Kind) -> Any:
        """Make the ids at ``index`` (None: all) a Series of the caller's kind and dtype."""
        if index is None:
            return self._all(kind)
        taken = self.at(to_device(index, self.device))
        return self._as_series(taken, kind, copy=False)  # what was taken is a copy

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

    def lookup(self, ids: Any, argument: str, absent: bool = False) -> Array:
        """Look up the indices of external ids, as int64 on the host or where the ids live.

        Those of ids that are no vertex are -1 if they may be ``absent``, else an error.
        """
        parts = id_types.split_columns(ids, len(self.columns), argument)
        labels = [argument] * len(parts)
        for part, column, label in zip(parts, self.columns, labels, strict=True):
            family = id_types.id_family(part, label)
            if len(part) and family != column.family and len(self):
                raise TypeError(
                    f"{argument} holds {id_types.shown_type(part)} but the vertices are "
                    f"{column.dtype or column.id_dtype}; cast {argument} to that"
                )
        if len(parts) == 1 and self.columns[0].family == "integer" and len(parts[0]):
            index = self.columns[0].search(id_types.integers(parts[0], argument))
        else:
            with errors_named(argument):
                index = self._merge(parts)
        missing = index < 0
        if not absent and missing.any():
            number = int(missing.sum())
            rows = to_host(array_module(index).flatnonzero(missing)[:5])
            shown = [tuple(id_types.item(part, row) for part in parts) for row in rows]
            shown = ", ".join(repr(ids[0] if len(ids) == 1 else ids) for ids in shown)
            raise ValueError(
                f"{argument} holds {number} id(s) that are no vertex of the graph: {shown}"
                f"{', ...' if number > 5 else ''}; drop them, or name them in vertices="
            )
        return index

    def _merge(self, parts: list[Column]) -> Array:
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
        for name in names:
            if asked[name].dtype != known[name].dtype:
                asked[name] = asked[name].astype(known[name].dtype)
            if lib is pd and known[name].dtype == object:
                # a merge takes texts for strings, which lone surrogates are not
                codes, _ = pd.concat([known[name], asked[name]]).factorize()
                known[name], asked[name] = codes[: len(known)], codes[len(known) :]
        merged = asked.merge(known, on=names, how="left").sort_values("row")
        return kinds.to_array(merged["index"].fillna(-1).astype(np.int64))


def rank(
    parts: list[list[Column]], labels: list[list[str]], kind: Kind, device: DeviceName,
    complete: bool = False,
) -> tuple[list[Array], VertexIds]:  # fmt: skip
    """Number the ids of every part by their rank among all; the ids come second.

    A part (the sources, the destinations, the further vertices) is a list of id columns, and a
    label names a column in the error messages. ``complete``: the last part has all ids.
    """
    lengths = [len(part[0]) for part in parts]
    encoded = [
        _rank_column(list(column), list(names), kind, device, complete)
        for column, names in zip(zip(*parts, strict=True), zip(*labels, strict=True), strict=True)
    ]
    if len(encoded) == 1:
        codes, column = encoded[0]
        return codes, VertexIds((column,), kind)
    return _rank_tuples(encoded, lengths, kind)


def _rank_tuples(encoded, lengths, kind):
    keys = encoded[0][0]
    sizes = [len(column.values) for _, column in encoded]
    if np.prod([float(max(size, 1)) for size in sizes]) >= 2**63:
        raise ValueError(
            f"source, destination: the id columns have {sizes} distinct values; their product "
            "must stay below 2**63; number the vertices by fewer columns"
        )
    keys = [key.astype(np.int64) for key in keys]
    for (codes, _), size in zip(encoded[1:], sizes[1:], strict=True):
        keys = [key * size + code for key, code in zip(keys, codes, strict=True)]
    codes, distinct = rank_integers(keys)
    columns = []
    for (_, column), size in zip(reversed(encoded), reversed(sizes), strict=True):
        digit = distinct % max(size, 1)
        distinct = distinct // max(size, 1)
        if column.family == "integer":
            values = column.values[digit]
        else:
            digit = to_device(digit, device_of_column(column.values))
            values = kinds.taken(column.values, digit)
        columns.append(IdColumn(values, column.family, column.dtype))
    return codes, VertexIds(tuple(reversed(columns)), kind)


def _rank_column(parts, labels, kind, device, complete):
    families = [id_types.id_family(part, label) for part, label in zip(parts, labels, strict=True)]
    known = {family: label for family, label in zip(families, labels, strict=True) if family}
    if len(known) > 1:
        (one, one_label), (other, other_label) = list(known.items())[:2]
        raise TypeError(
            f"{one_label} holds {one} ids and {other_label} {other} ids; the ids of a graph must "
            "be of one type: cast one of them with astype"
        )
    family = next(iter(known), None)
    dtypes = []  # a list, since a categorical dtype of cuDF has no hash
    for part in parts:
        if (len(part) or not known) and part.dtype not in dtypes:
            dtypes.append(part.dtype)
    if family == "integer" or (family is None and id_types.all_numeric(parts)):
        arrays = [
            to_device(id_types.integers(part, label), device)
            for part, label in zip(parts, labels, strict=True)
        ]
        arrays = id_types.of_one_dtype(arrays, labels)
        codes, values = rank_integers(arrays, complete)
        dtype = dtypes[0] if len(dtypes) == 1 and dtypes[0] != values.dtype else None
        return codes, IdColumn(values, "integer", None if id_types.is_float(dtype) else dtype)
    columns, categorical = zip(*(id_types.plain(part) for part in parts), strict=True)
    filled = [column for column in columns if len(column)] or [columns[0]]
    joined = kinds.library(kind).concat(
        [kinds.to_series(column, kind) for column in filled], ignore_index=True
    )
    codes, values = _factorize(joined, labels)
    ends = np.cumsum([len(part) for part in parts])
    codes = [
        to_device(codes[end - len(part) : end], device)
        for part, end in zip(parts, ends.tolist(), strict=True)
    ]
    dtype = dtypes[0] if len(dtypes) == 1 else "category" if all(categorical) else None
    return codes, IdColumn(values, family or "empty", None if dtype == values.dtype else dtype)


def _factorize(column, labels):
    try:
        codes, distinct = column.factorize()
        distinct = (pd.Series if isinstance(distinct, pd.Index) else type(column))(distinct)
        order = distinct.argsort()
    except TypeError as error:
        raise TypeError(
            f"{labels[0]}: the ids cannot be sorted ({error}); cast them, as with astype('str')"
        ) from None
    order = kinds.to_array(order)
    xp = array_module(order)
    ranks = xp.empty(len(distinct), dtype=index_dtype(len(distinct)))
    ranks[order] = xp.arange(len(distinct), dtype=ranks.dtype)
    return ranks[codes], kinds.taken(distinct, order)


def rank_integers(arrays: list[Array], complete: bool = False) -> tuple[list[Array], Array]:
    """Rank every integer among the sorted distinct ones of all arrays; these come second.

    ``complete``: the last array has them all, so the others need not be looked through.
    """
    xp = array_module(*arrays)
    dtype = arrays[0].dtype
    filled = [array for array in arrays if array.size]
    total = sum(array.size for array in filled)
    if not filled:
        return [array.astype(np.int32) for array in arrays], xp.empty(0, dtype=dtype)
    if complete:
        filled = arrays[-1:]
    low = min(int(array.min()) for array in filled)
    high = max(int(array.max()) for array in filled)
    span = high - low + 1
    if span > 4 * total + 65536:
        return ordering(filled[0]).factorize(arrays)
    wide = np.uint64 if dtype == np.uint64 else np.int64
    offsets = [
        array if low == 0 else array.astype(wide, copy=False) - wide(low) for array in arrays
    ]
    present = xp.zeros(span, dtype=bool)
    for offset in offsets[-1:] if complete else offsets:
        present[offset] = True
    values = (xp.flatnonzero(present).astype(wide) + wide(low)).astype(dtype)
    if values.size == span:
        return [offset.astype(index_dtype(span)) for offset in offsets], values
    ranks = xp.cumsum(present, dtype=index_dtype(values.size))
    ranks -= 1
    return [ranks[offset] for offset in offsets], values


def _search(values: Array, asked: Array) -> Array:
    """Find integers in a sorted array of them: their positions, -1 for those not there."""
    asked = to_device(asked, device_of(values))
    xp = array_module(values)
    index = xp.full(asked.size, -1, dtype=np.int64)
    if not values.size:
        return index
    inside = within(asked, int(values[0]), int(values[-1]))
    place = xp.searchsorted(values, asked.astype(values.dtype))
    place = xp.minimum(place, values.size - 1)
    found = inside & (values[place] == asked.astype(values.dtype))
    index[found] = place[found]
    return index


def within(integers: Array, first: int, last: int) -> Array:
    """Tell which integers are from ``first`` to ``last``, whatever their type can hold."""
    can = np.iinfo(integers.dtype)
    if first > can.max or last < can.min:
        return array_module(integers).zeros(integers.size, dtype=bool)
    return (integers >= max(first, can.min)) & (integers <= min(last, can.max))


def device_of_column(column: Column) -> DeviceName:
    """Tell where a column lives."""
    return "gpu" if kinds.is_cudf(column, "Series") else device_of(column)
