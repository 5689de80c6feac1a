"""Vertices given beside edges: a list of ids has no dtype, so it takes that of the others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from glp_rapids.frames import kinds
from glp_rapids.frames.kinds import Column
from glp_rapids.graph import id_types


def further_columns(
    vertices: Any, ends: Sequence[Sequence[Column]], names: Sequence[Sequence[Any]]
) -> list[Column]:
    """Split ``vertices=`` into columns; ``ends``: those of both ends of the edges.

    ``names``: what these are called, see `id_types.split_columns`.
    """
    columns = id_types.split_columns(vertices, len(ends[0]), "vertices", *names)
    if not is_without_dtype(vertices):
        return columns
    return [
        cast_to_one_of([other.dtype for other in others if has_dtype(other)], column)
        for column, *others in zip(columns, *ends, strict=True)
    ]


def is_without_dtype(vertices: Any) -> bool:
    """Tell ids that are only values from arrays and Series of them."""
    return isinstance(vertices, list | tuple | range)


def has_dtype(column: Column) -> bool:
    """Tell whether a column says what its ids are; one of objects says so by its values."""
    return len(column) > 0 or column.dtype != np.dtype(object)


def cast_to_one_of(dtypes: list[Any], column: Column) -> Column:
    """Cast ids to the first of the dtypes that holds them all; where none does they stay.

    What is no id, or of another type than the others, stays too, for those who refuse it.
    """
    if is_integer_dtype(column.dtype):
        ends = [int(column.min()), int(column.max())] if len(column) else []
        for dtype in filter(is_integer_dtype, dtypes):
            if all(np.iinfo(dtype).min <= end <= np.iinfo(dtype).max for end in ends):
                return column.astype(dtype)
    values = column.tolist()
    for dtype in dtypes:
        try:
            cast = _cast(column, dtype)
            kept = kinds.to_series(cast, "pandas").tolist()
            # texts of numbers are no numbers, and True is not 1
            if list(map(type, kept)) == list(map(type, values)) and kept == values:
                return cast
        except (ArithmeticError, RuntimeError, TypeError, ValueError):
            continue
    return column


def is_integer_dtype(dtype: Any) -> bool:
    """Tell NumPy's integers."""
    return isinstance(dtype, np.dtype) and dtype.kind in "iu"


def _cast(column: Column, dtype: Any) -> Column:
    if type(dtype).__module__.startswith("cudf"):
        column = kinds.to_series(column, "cudf")
    if not id_types.is_categorical(dtype):
        return column.astype(dtype)
    plain = column.astype(dtype.categories.dtype)
    return plain.astype(dtype if plain.isin(dtype.categories).all() else "category")
