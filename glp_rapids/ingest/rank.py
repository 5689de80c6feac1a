"""External vertex ids to indices: an index is the rank of the id in sorted order.

Integers that fill their range well are ranked by a table of who is present and its running sum;
any others by hashing (`factorize`), and then only the distinct ones are sorted. Several id columns
are ranked one by one, and the ranks are packed into one integer that is ranked again.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from glp_rapids.device import DeviceName, array_module, to_device, to_host
from glp_rapids.frames import kinds
from glp_rapids.frames.kinds import Column, Kind
from glp_rapids.graph import id_types
from glp_rapids.graph.build import ordering
from glp_rapids.graph.sort_gpu import index_dtype
from glp_rapids.graph.vertex_ids import IdColumn, VertexIds, device_of_column

Array = Any
ON_HOST = 1 << 12  # ids; so many are ranked there before a GPU's sort has begun


def rank_ids(
    parts: list[list[Column]], labels: list[list[str]], kind: Kind, device: DeviceName,
    complete: bool = False,
) -> tuple[list[Array], VertexIds]:  # fmt: skip
    """Number the ids of every part by their rank among all; the ids come second.

    A part (the sources, the destinations, the further vertices) is a list of id columns, and a
    label names a column in the error messages. ``complete``: the last part has all ids.
    """
    encoded = [
        _rank_column(list(column), list(names), kind, device, complete)
        for column, names in zip(zip(*parts, strict=True), zip(*labels, strict=True), strict=True)
    ]
    if len(encoded) == 1:
        codes, column = encoded[0]
        return codes, VertexIds((column,), kind)
    return _rank_tuples(encoded, kind)


def _rank_tuples(encoded, kind):
    keys = encoded[0][0]
    sizes = sizes_of_tuples([column for _, column in encoded])
    keys = [key.astype(np.int64) for key in keys]
    for (codes, _), size in zip(encoded[1:], sizes[1:], strict=True):
        keys = [key * size + code for key, code in zip(keys, codes, strict=True)]
    codes, distinct = rank_integers(keys)
    return codes, VertexIds(columns_of_keys(distinct, [column for _, column in encoded]), kind)


def sizes_of_tuples(columns: list[IdColumn]) -> list[int]:
    """Count the ids of every column, whose tuples must have keys of 63 bits."""
    sizes = [len(column) for column in columns]
    if np.prod([float(max(size, 1)) for size in sizes]) >= 2**63:
        raise ValueError(
            f"source, destination: the id columns have {sizes} distinct values; their product "
            "must stay below 2**63; number the vertices by fewer columns"
        )
    return sizes


def columns_of_keys(keys: Array, columns: list[IdColumn]) -> tuple[IdColumn, ...]:
    """Turn keys of tuples back: for each the id in every column."""
    taken = []
    for column in reversed(columns):
        digit = keys % max(len(column), 1)
        keys = keys // max(len(column), 1)
        if column.family == "integer":
            values = column.values[digit]
        else:
            digit = to_device(digit, device_of_column(column.values))
            values = kinds.taken(column.values, digit)
        taken.append(IdColumn(values, column.family, column.dtype))
    return tuple(reversed(taken))


def _rank_column(parts, labels, kind, device, complete):
    families = [id_types.id_family(part, label) for part, label in zip(parts, labels, strict=True)]
    known = {family: label for family, label in zip(families, labels, strict=True) if family}
    id_types.refuse_several(known)
    family = next(iter(known), None)
    dtypes = []  # a list, since a categorical dtype of cuDF has no hash
    for part in parts:
        if (len(part) or not known) and part.dtype not in dtypes:
            dtypes.append(part.dtype)
    if family == "integer" or (family is None and id_types.all_numeric(parts)):
        arrays = [
            id_types.integers(part, label) for part, label in zip(parts, labels, strict=True)
        ]
        few = sum(array.size for array in arrays) <= ON_HOST
        arrays = [to_host(array) if few else to_device(array, device) for array in arrays]
        arrays = id_types.of_one_dtype(arrays, labels)
        codes, values = rank_integers(arrays, complete)
        codes, values = [to_device(code, device) for code in codes], to_device(values, device)
        return codes, column_of(values, "integer", dtypes)
    columns = [id_types.plain(part)[0] for part in parts]
    filled = [column for column in columns if len(column)] or [columns[0]]
    columns = [kinds.to_series(column, kind) for column in filled]
    try:
        joined = kinds.library(kind).concat(columns, ignore_index=True)
    except (pd.errors.OutOfBoundsDatetime, pd.errors.OutOfBoundsTimedelta) as error:
        raise ValueError(
            f"{' and '.join(dict.fromkeys(labels))}: times of different units do not fit the "
            f"finest of them ({error}); bring all to one, as with astype('datetime64[us]')"
        ) from None
    codes, values = _factorize(joined, labels)
    ends = np.cumsum([len(part) for part in parts])
    codes = [
        to_device(codes[end - len(part) : end], device)
        for part, end in zip(parts, ends.tolist(), strict=True)
    ]
    return codes, column_of(values, family or "empty", dtypes)


def column_of(values: Column, family: str, dtypes: list[Any]) -> IdColumn:
    """Make a column of sorted ids; ``dtypes``: all that the caller's columns of them have."""
    dtype = dtypes[0] if len(dtypes) == 1 else None
    if len(dtypes) > 1 and all(map(id_types.is_categorical, dtypes)):
        # all ids, so that a few of them have the same categories; cuDF makes its own
        if isinstance(dtypes[0], pd.CategoricalDtype):
            dtype = pd.CategoricalDtype(to_host(values) if family == "integer" else values)
        else:
            dtype = "category"
    elif family == "integer":
        dtype = None if id_types.is_float(dtype) else dtype
    return IdColumn(values, family, None if dtype == values.dtype else dtype)


def sorted_ids(column: Column, labels: list[str]) -> Column:
    """Sort ids that are not integers, each once."""
    return _factorize(column, labels)[1]


def _factorize(column, labels):
    try:
        codes, distinct = column.factorize()
        distinct = (pd.Series if isinstance(distinct, pd.Index) else type(column))(distinct)
        order = distinct.argsort()
    except (TypeError, NotImplementedError) as error:  # cuDF has no index of decimals
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
