"""What may be an id: the family of a column of ids, and one clear error for what is none."""

from __future__ import annotations

import re
from collections.abc import Sequence, Sized
from typing import Any

import numpy as np
import pandas as pd

from glp_rapids.common.checks import errors_named, is_sequence, shown
from glp_rapids.frames import kinds
from glp_rapids.frames.kinds import Column

Array = Any


def split_columns(
    ids: Any, number: int, argument: str, *names: Sequence[Any]
) -> list[Column]:
    """Split ids of ``number`` columns, a frame or a list of tuples, into a list of columns.

    Those of a frame are in the order of one of the ``names``, if they are called so, or of the
    numbers in theirs, as in results; else by position.
    """
    with errors_named(argument):
        ids, _ = kinds.without_proxy(ids)
    if isinstance(ids, pd.DataFrame) or kinds.is_cudf(ids, "DataFrame"):
        if len(ids.columns) != number:
            raise ValueError(
                f"{argument} has {len(ids.columns)} columns {list(ids.columns)} but an id of this "
                f"graph has {number}"
            )
        # by position: two columns may have one name
        places = _places_by_name(list(ids.columns), names)
        return [kinds.as_column(ids.iloc[:, place], argument) for place in places]
    if isinstance(ids, dict) or not is_sequence(ids) or not isinstance(ids, Sized):
        raise TypeError(f"{argument} must be a list, array or Series of ids, not {shown(ids)}")
    if number == 1:
        return [kinds.as_column(ids, argument)]
    rows = [tuple(row) if isinstance(row, tuple | list) else (row,) for row in ids]
    if any(len(row) != number for row in rows):
        raise ValueError(
            f"{argument}: an id of this graph has {number} columns; pass a frame with {number} "
            f"columns or a list of tuples of {number}, not {rows[:1]}"
        )
    return [kinds.as_column([row[i] for row in rows], argument) for i in range(number)]


def _places_by_name(columns: list[Any], names: Sequence[Sequence[Any]]) -> list[int]:
    numbered = [re.fullmatch(r"(\d+)(_.+)", str(column)) for column in columns]
    suffixes = {match and match[2] for match in numbered}
    if len(suffixes) == 1 and None not in suffixes:
        suffix = suffixes.pop()
        names = [*names, [f"{number}{suffix}" for number in range(len(columns))]]
    for order in names:
        if len(set(order)) == len(columns) and set(order) == set(columns):
            return [columns.index(name) for name in order]
    return list(range(len(columns)))


def id_family(column: Column, label: str, first_row: int = 0) -> str | None:
    """Say what sort of ids a column holds (None if it is empty), or raise why it holds none.

    ``first_row``: what messages add to the number of a row.
    """
    if not len(column):
        return None
    with errors_named(label):
        return _family(column, label, first_row)


def _family(column, label, first_row):
    dtype = column.dtype
    cast = "cast them, as with astype('int64')"
    if nulls := kinds.null_count(column):
        row = first_row + int(kinds.to_array(kinds.is_null(column)).argmax())
        if is_float(dtype):
            cast = "then " + cast + " (nulls turn integers into floats)"
        raise ValueError(
            f"{label} holds {nulls} null(s), the first at row {row}; an id cannot be null: drop "
            f"those rows with dropna{', ' + cast if is_float(dtype) else ''}"
        )
    if is_categorical(dtype):
        return id_family(_some_plain(column), label, first_row)
    # before pandas is asked, which takes cuDF's dtype of lists for a class
    nested = str(getattr(dtype, "name", dtype)).lower()
    if nested.startswith(("list", "struct")):  # of cuDF or Arrow
        raise TypeError(
            f"{label} holds {nested} ids; an id is an integer, a string or a date: for ids of "
            "several columns, make them columns of the frame and name them in a list"
        )
    if pd.api.types.is_object_dtype(dtype) and isinstance(column, pd.Series):
        return _object_family(column, label)
    if pd.api.types.is_bool_dtype(dtype):
        raise TypeError(f"{label} holds booleans; ids are integers, strings or dates: {cast}")
    if is_float(dtype):
        raise TypeError(
            f"{label} holds {dtype} ids, such as {item(column, 0)!r}; floats are no ids: {cast}"
        )
    if pd.api.types.is_integer_dtype(dtype):
        return "integer"
    if pd.api.types.is_complex_dtype(dtype):
        raise TypeError(f"{label} holds {dtype} ids; they cannot be sorted: {cast}")
    if isinstance(dtype, pd.ArrowDtype) and (family := _of_arrow(dtype.pyarrow_dtype)):
        return family
    if isinstance(dtype, pd.IntervalDtype):
        return _of_interval(column.iloc[0])
    if pd.api.types.is_datetime64_any_dtype(dtype):
        zone = getattr(dtype, "tz", None)
        return f"datetime ({zone})" if zone is not None else "datetime"
    return "string" if pd.api.types.is_string_dtype(dtype) else str(dtype)


def _of_arrow(dtype: Any) -> str | None:
    """Name the family of the Python objects of a type of Arrow; None: that of NumPy's is right."""
    import pyarrow.types as of

    if of.is_timestamp(dtype) and dtype.tz is not None:
        return f"datetime ({dtype.tz})"
    if of.is_duration(dtype):
        return f"timedelta64[{dtype.unit}]"
    families = {"time": of.is_time, "decimal": of.is_decimal}
    families["bytes"] = lambda dtype: of.is_binary(dtype) or of.is_large_binary(dtype)
    return next((family for family, is_one in families.items() if is_one(dtype)), None)


def is_arrow_date(dtype: Any) -> bool:
    """Tell a dtype of days: its items are dates, and it compares with points in time."""
    if not isinstance(dtype, pd.ArrowDtype):
        return False
    import pyarrow.types as of

    return bool(of.is_date(dtype.pyarrow_dtype))


def _of_interval(value: pd.Interval) -> str:
    kind = np.array(value.left).dtype.kind.replace("u", "i")
    return f"Interval ({kind}, {value.closed})"


def _object_family(column, label):
    family = pd.api.types.infer_dtype(column, skipna=False)
    if family in ("integer", "string", "bytes", "date", "datetime", "decimal"):
        return family
    types = list(dict.fromkeys(type(value).__name__ for value in column))
    examples = [next(value for value in column if type(value).__name__ == name) for name in types]
    if len(types) > 1:
        shown = ", ".join(
            f"{name} ({value!r:.40})" for name, value in zip(types, examples, strict=True)
        )
        raise TypeError(
            f"{label} mixes types: {shown}; the ids of a graph must be of one type: cast them, as "
            "with astype('str')"
        )
    if types[0] in ("float", "bool", "complex"):
        raise TypeError(
            f"{label} holds ids of type {types[0]}, such as {examples[0]!r}; cast them, as with "
            "astype('int64')"
        )
    if types[0] in ("set", "frozenset"):
        raise TypeError(f"{label} holds sets, which cannot be sorted; use sorted tuples as ids")
    return _of_interval(examples[0]) if isinstance(examples[0], pd.Interval) else types[0]


def integers(column: Column, label: str) -> Array:
    """Turn a column of integers into an array of an integer dtype."""
    array = kinds.to_array(column)
    if array.dtype.kind in "iu":
        return array
    if not array.size:
        return array.astype(np.int64)
    for dtype in (np.int64, np.uint64):
        try:
            return array.astype(dtype)
        except OverflowError:
            continue
    least, largest = int(array.min()), int(array.max())
    if least >= -(2**63) and largest < 2**64:
        of_64_bits(least, largest, [label])  # which says that no type holds both
    worst = max(column, key=abs)
    raise ValueError(f"{label} holds {worst}, which is no 64-bit integer; cast to strings instead")


def of_one_dtype(arrays: list[Array], labels: list[str]) -> list[Array]:
    """Cast arrays of integers to the one dtype that holds them all."""
    filled = [array for array in arrays if array.size] or arrays[:1]
    dtype = np.result_type(*(array.dtype for array in filled))
    if dtype.kind == "f":  # int64 beside uint64
        least = min(int(array.min()) for array in filled)
        dtype = of_64_bits(least, max(int(array.max()) for array in filled), labels)
    return [array.astype(dtype, copy=False) for array in arrays]


def of_64_bits(least: int, largest: int, labels: list[str]) -> np.dtype:
    """Choose uint64 or int64 for integers of both; ``labels`` are what they are of."""
    if least >= 0:
        return np.dtype(np.uint64)
    if largest < 2**63:
        return np.dtype(np.int64)
    raise TypeError(
        f"{' and '.join(labels)} mix uint64 ids from 2**63 up with negative ids; no integer dtype "
        "holds both: cast them to strings"
    )


def plain(column: Column) -> tuple[Any, bool]:
    """Turn a categorical column into one of its categories' dtype; tell whether it was one."""
    if not is_categorical(column.dtype):
        return (pd.Series(column) if isinstance(column, np.ndarray) else column), False
    return column.astype(column.cat.categories.dtype), True


def is_categorical(dtype: Any) -> bool:
    """Tell a categorical dtype of either library."""
    return type(dtype).__name__ == "CategoricalDtype"


def is_float(dtype: Any) -> bool:
    """Tell a float dtype; None is none."""
    return dtype is not None and pd.api.types.is_float_dtype(dtype)


def _some_plain(column: Column) -> Any:
    """Take as many values of a categorical column, as it has them, as tell what it holds."""
    if isinstance(column, pd.Series) and column.cat.categories.dtype == object:
        return pd.Series(column.cat.remove_unused_categories().cat.categories)
    return plain(column[:1])[0]


def all_numeric(parts: list[Column]) -> bool:
    """Tell whether all columns are of numbers."""
    return all(pd.api.types.is_numeric_dtype(part.dtype) for part in parts)


def refuse_several(families: dict[str, str]) -> None:
    """Raise if ids are of several families; ``families`` has a label for each."""
    if len(families) > 1:
        (one, one_label), (other, other_label) = list(families.items())[:2]
        raise TypeError(
            f"{one_label} holds {one} ids and {other_label} {other} ids; the ids of a graph must "
            "be of one type: cast one of them with astype"
        )


def shown_type(column: Column) -> str:
    """Say what a column holds, for a message."""
    return id_family(column, "") + " ids" if len(column) else "nothing"


def item(column: Column, row: int) -> Any:
    """Take one id out of a column as a Python object, for a message."""
    value = column.iloc[int(row)] if hasattr(column, "iloc") else column[int(row)]
    return value.item() if isinstance(value, np.generic) or hasattr(value, "get") else value


def of_labels_by_id(seeds: Any, labels: str) -> str:
    """Say how labels by id are given, if a Series has an index that may be ids; else nothing."""
    if not isinstance(seeds, pd.Series) or seeds.index.equals(pd.RangeIndex(len(seeds))):
        return ""
    return f"a Series is a list of ids here; of {labels} by id, pass dict(series)"
