"""The weights of edges: which numbers may be some, and one clear error for what may not."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable
from itertools import islice
from typing import Any

import numpy as np
import pandas as pd

from glp_rapids.common.checks import errors_named
from glp_rapids.device import any_true, array_module
from glp_rapids.frames import kinds
from glp_rapids.frames.kinds import Column

Array = Any
_NOT_NEGATIVE = (
    "weights are how much an edge counts, or how long it is, and methods like Dijkstra's need "
    "non-negative lengths"
)
# by the kind of a dtype: what pandas casts to no float
_MENDS = {
    "m": "turn them into seconds with .dt.total_seconds()",
    "M": "subtract a date from them, and turn that into seconds with .dt.total_seconds()",
}
_TOO_SMALL = "a GPU takes float32 below 1.2e-38 for 0; cast to float64, or multiply all of them"
SUBNORMALS = np.uint32(0x7FFFFF)  # so many float32 are
LOOKED_THROUGH = 1 << 16  # items, for one to show in a message


def checked_weights(
    column: Column, label: str, first_row: int = 0, place_of: Callable[[int], str] | None = None
) -> Array:
    """Turn weights into int64, float32 or float64, finite and not negative.

    ``first_row``: what messages add to the number of a row. ``place_of``: says where a value of a
    matrix stands, which has no such rows.
    """
    with errors_named(label):
        return _checked(column, label, first_row, place_of)


def _checked(column, label, first_row, place_of):
    holds, drop = "holds", "drop those rows with dropna, or fill them"
    if place_of is not None:
        holds, drop = "hold", "fill them, or set them to 0 and call eliminate_zeros()"

    def at(row):
        return f"row {first_row + row}" if place_of is None else place_of(row)

    if not len(column) and column.dtype == np.dtype(object):
        column = column.astype(np.float64)  # what has no values has no type, as in a mere header
    if nulls := kinds.null_count(column):
        row = int(kinds.to_array(kinds.is_null(column)).argmax())
        raise ValueError(
            f"{label} {holds} {nulls} null(s) or NaN, the first at {at(row)}; {drop}"
        )
    dtype = column.dtype
    mend = _MENDS.get(getattr(dtype, "kind", ""), "cast them with astype('float64')")
    # those of Arrow and cuDF count as numeric
    decimal = not isinstance(dtype, np.dtype) and str(getattr(dtype, "name", "")).startswith("dec")
    if decimal or pd.api.types.is_bool_dtype(dtype) or not pd.api.types.is_numeric_dtype(dtype):
        row, item = _first_odd(column)
        if isinstance(item, int):
            raise ValueError(
                f"{label} {holds} whole numbers of 2**63 or more, the first {item} at {at(row)}; "
                "cast them with astype('float64')"
            )
        example = "" if item is None else f" (the first that is none: {item!r}, at {at(row)})"
        raise TypeError(f"{label} {holds} {dtype}, not numbers{example}; {mend}")
    weights = kinds.to_array(column)
    if weights.dtype.kind not in "iuf" or weights.dtype.itemsize > 8:
        raise TypeError(f"{label} {holds} {dtype}, not real numbers of at most 64 bits; {mend}")

    def refuse_where(bad, what, mend):
        if any_true(bad):
            row = int(bad.argmax())
            raise ValueError(
                f"{label} {holds} {int(bad.sum())} {what} weight(s), the first "
                f"{weights[row].item()} at {at(row)}; {mend}"
            )

    refuse_where(weights < 0, "negative", _NOT_NEGATIVE)
    if weights.dtype.kind == "f":
        refuse_where(~array_module(weights).isfinite(weights), "infinite", "drop or cap them")
        if weights.dtype == np.float32:
            refuse_where(_subnormal(weights), "too small", _TOO_SMALL)
        return weights.astype(np.float32) if weights.dtype == np.float16 else weights
    if weights.dtype == np.uint64:
        beyond = weights > np.uint64(2**63 - 1)
        refuse_where(beyond, "too large", "the limit is 2**63 - 1; cast to float64")
    return weights.astype(np.int64, copy=False)


def _first_odd(column: Column) -> tuple[int, Any]:
    """Find among the first what is no number, or one beyond int64, and its row."""
    texts = pd.api.types.is_string_dtype(column.dtype) or column.dtype == np.dtype(object)
    first = [] if kinds.is_cudf(column, "Series") or not texts else islice(column, LOOKED_THROUGH)
    for row, item in enumerate(first):
        if isinstance(item, int) and not isinstance(item, bool):
            odd = not -(2**63) <= item < 2**63
        elif isinstance(item, str):
            odd = not _is_number(item)
        else:
            odd = not isinstance(item, numbers.Real)
        if odd:
            return row, item
    return 0, None


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def any_subnormal(weights: np.ndarray) -> bool:
    """Tell whether there are float32 among weights that a GPU takes for 0."""
    return weights.dtype == np.float32 and bool(_subnormal(weights).any())


def _subnormal(weights: Array) -> Array:
    # read as integers, since CuPy's kernels take subnormal ones for 0; without their sign
    bits = weights.view(np.uint32) & np.uint32(0x7FFFFFFF)
    return bits - np.uint32(1) < SUBNORMALS
