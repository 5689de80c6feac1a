"""Weights as a caller has them to weights as a graph has them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from glp_rapids.device import array_module
from glp_rapids.frames import kinds
from glp_rapids.frames.kinds import Column

Array = Any


def checked_weights(column: Column, label: str) -> Array:
    """Turn weights into int64, float32 or float64, finite and not negative."""
    mend = "cast them with astype('float64')"
    if nulls := kinds.null_count(column):
        raise ValueError(
            f"{label} holds {nulls} null(s) or NaN; drop those rows with dropna, or fill them"
        )
    dtype = column.dtype
    # those of Arrow and cuDF count as numeric
    decimal = not isinstance(dtype, np.dtype) and str(getattr(dtype, "name", "")).startswith("dec")
    if decimal or pd.api.types.is_bool_dtype(dtype) or not pd.api.types.is_numeric_dtype(dtype):
        raise TypeError(f"{label} holds {dtype}, not numbers; {mend}")
    weights = kinds.to_array(column)
    if weights.dtype.kind not in "iuf" or weights.dtype.itemsize > 8:
        raise TypeError(f"{label} holds {dtype}, not real numbers of at most 64 bits; {mend}")
    _refuse_where(weights < 0, weights, label, "negative", "weights are how much an edge counts")
    if weights.dtype.kind == "f":
        xp = array_module(weights)
        _refuse_where(~xp.isfinite(weights), weights, label, "infinite", "drop or cap them")
        return weights.astype(np.float32) if weights.dtype == np.float16 else weights
    if weights.dtype == np.uint64:
        beyond = weights > np.uint64(2**63 - 1)
        _refuse_where(
            beyond, weights, label, "too large", "the limit is 2**63 - 1; cast to float64"
        )
    return weights.astype(np.int64, copy=False)


def _refuse_where(bad: Array, weights: Array, label: str, what: str, mend: str) -> None:
    if bool(bad.any()):
        row = int(bad.argmax())
        raise ValueError(
            f"{label} holds {int(bad.sum())} {what} weight(s), the first {weights[row].item()} at "
            f"row {row}; {mend}"
        )
