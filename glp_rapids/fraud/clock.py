"""Times of transactions: read, checked for wrong units and clocks, compared with a window.

A window moves with the newest time it sees and never back, so a wrong unit or a wrong clock is
refused where it shows, before the window moves.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd

from glp_rapids.device import array_module
from glp_rapids.frames import kinds

Array = Any
PER_DAY = {"D": 1, "h": 24, "m": 1440, "s": 86_400, "ms": 86_400_000, "us": 86_400_000_000}
# Where such a count since 1970 was in 2001; at five times that it will be 2128.
SINCE_1970 = {"s": 10**9, "ms": 10**12, "us": 10**15}
NUMBERS, DATES, ZONED = "numbers", "datetime64", "datetime64 with a time zone"
EXACT = 2**53
EARLIEST = -(2**63) + 1  # of datetime64; what is below stands for NaT


def refuse_nulls(column, label):
    """Raise if a column has nulls."""
    if nulls := kinds.null_count(column):
        raise ValueError(f"{label} holds {nulls} null(s) or NaN; drop those rows with dropna")


def times(column, label, time_unit, known=None):
    """Return times as int64 microseconds or float64, and their kind: ``known``, if one is."""
    refuse_nulls(column, label)
    kind = _kind(column.dtype, label)
    if known is not None and kind != known:
        mend = "; bring them to one with dt.tz_localize" if NUMBERS not in (kind, known) else ""
        raise TypeError(f"{label} held {known} so far, and now {kind}; keep to that{mend}")
    if kind == ZONED:
        column = column.dt.tz_convert("UTC").dt.tz_localize(None)
    if kind != NUMBERS:
        return kinds.to_array(column.astype("datetime64[us]").astype("int64")), kind
    time = kinds.to_array(column).astype(np.float64)
    if time.size:
        _check_numbers(time, label, time_unit)
    return time, kind


def _kind(dtype, label):
    if pd.api.types.is_datetime64_any_dtype(dtype):
        arrow = getattr(dtype, "pyarrow_dtype", None)
        return DATES if getattr(arrow or dtype, "tz", None) is None else ZONED
    if pd.api.types.is_bool_dtype(dtype) or not pd.api.types.is_numeric_dtype(dtype):
        raise TypeError(
            f"{label} holds {dtype}; times are datetime64 (pandas.to_datetime) or numbers"
        )
    return NUMBERS


def _check_numbers(time, label, time_unit):
    if not bool(array_module(time).isfinite(time).all()):
        raise ValueError(f"{label} holds infinite times; drop those rows")
    newest = float(time.max())
    largest = max(newest, -float(time.min()))
    if largest >= EXACT:
        raise ValueError(
            f"{label} holds {largest:.17g}; numbers from 2**53 on are not told apart. Nanoseconds "
            "since 1970 become dates by pandas.to_datetime(column, unit='ns')"
        )
    for unit, least in SINCE_1970.items():
        if PER_DAY[unit] > PER_DAY[time_unit] and least <= newest < 5 * least:
            raise ValueError(
                f"{label} holds {newest:.17g}, which looks like a time since 1970 in {unit!r}, not "
                f"in {time_unit!r}; pass time_unit={unit!r} (or dates, or smaller numbers)"
            )


def start_of(newest, days, kind, time_unit):
    """Return the time after which a window begins that ends with ``newest``."""
    if kind != NUMBERS:
        return max(newest - math.ceil(min(float(days) * PER_DAY["us"], 2.0**64)), EARLIEST)
    start = newest - float(days) * PER_DAY[time_unit]
    if not start < newest:
        raise ValueError(
            f"days={days} is less than times around {newest:.17g} (time_unit={time_unit!r}) can "
            "tell apart as float64; use dates, subtract an offset, or pass more days"
        )
    return start


def refuse_leap(time, start, newest, newest_before, held, label, shown):
    """Raise if a few rows of a batch lie so far ahead of all others that a window would lose these.

    ``time``: of the batch; ``held``: how many rows the window has; ``shown``: makes a time legible.
    """
    xp = array_module(time)
    ahead = time > start
    rows, few = time.size, int(ahead.sum())
    if not (0 < 2 * few < rows and 10 * few <= rows + held):
        return
    if newest_before is not None and newest_before > start:
        return
    others = xp.sort(time[~ahead])
    before = others[-1].item() if newest_before is None else max(others[-1].item(), newest_before)
    pause = time[ahead].min().item() - before
    # nights and weekends come again
    usual = (others[1:] - others[:-1]).max().item() if others.size > 1 else 0
    if pause > max(newest - start, 2 * usual):
        row = int(xp.argmax(time))
        raise ValueError(
            f"{label}: {few} of {rows} rows are dated up to {shown(newest)} (row {row}), farther "
            f"than the window is long from all others, which end with {shown(before)} and would "
            "leave it for good; drop those rows, or, if they are right, append them on their own"
        )
