"""Times: of transactions, read and checked for wrong units and clocks; now; what is too far ahead.

A window moves with the newest time it sees and never back, so a wrong unit or a wrong clock is
refused where it shows, before the window moves.
"""

from __future__ import annotations

import math
from datetime import datetime
from typing import Any

import numpy as np
import pandas as pd

from glp_rapids.common.calls import warn_caller
from glp_rapids.common.checks import errors_named
from glp_rapids.common.scans import number_where
from glp_rapids.device import all_true, any_true, array_module
from glp_rapids.frames import kinds

Array = Any
PER_DAY = {"D": 1, "h": 24, "m": 1440, "s": 86_400, "ms": 86_400_000, "us": 86_400_000_000}
# Where such a count since 1970 was in 2001; at five times that it will be 2128.
SINCE_1970 = {"s": 10**9, "ms": 10**12, "us": 10**15}
# Dates written as whole numbers, of so many digits, and the units in which none means such a time.
CALENDAR = {8: ("%Y%m%d", ["D", "h"]), 12: ("%Y%m%d%H%M", ["D", "h", "m", "s"]),
            14: ("%Y%m%d%H%M%S", ["D", "h", "m", "s", "ms"])}  # fmt: skip
# Microseconds of a unit of dates, or units of a microsecond.
UNITS = {"datetime64[s]": (10**6, 1), "datetime64[ms]": (1000, 1), "datetime64[us]": (1, 1),
         "datetime64[ns]": (1, 1000)}  # fmt: skip
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
    if isinstance(column, pd.Series) and column.dtype in ("datetime64[ns]", "datetime64[us]"):
        # as pandas does it, which takes longer for a few rows
        counts = column.to_numpy().view(np.int64)
        return (counts // 1000 if column.dtype == "datetime64[ns]" else counts.copy()), kind
    if kind != NUMBERS:
        return _microseconds(column, label), kind
    time = kinds.to_array(column).astype(np.float64)
    if time.size:
        _check_numbers(time, label, time_unit)
    return time, kind


def _microseconds(column, label):
    """Return dates of cuDF, or of a pandas type that is not NumPy's, as int64 microseconds.

    To ask cuDF for nothing takes it a millisecond; so does another unit, as it looks whether all
    fit, and it would cut nanoseconds before 1970 towards 0, not down as NumPy does.
    """
    if str(column.dtype) in UNITS:
        times, parts = UNITS[str(column.dtype)]
        counts, most = kinds.to_array(column.astype("int64")), EARLIEST // times
        if times == 1:
            return counts if parts == 1 else counts // parts
        if all_true((counts > most) & (counts < -most)):
            return counts * times
    with errors_named(label):
        return kinds.to_array(column.astype("datetime64[us]").astype("int64"))


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
    if not all_true(array_module(time).isfinite(time)):
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
    _refuse_calendar(newest, label, time_unit)


def _refuse_calendar(newest, label, time_unit):
    """Raise if a time is a date as 20260131 has it: a day after that would be 70 days later."""
    text = f"{newest:.0f}"
    form, units = CALENDAR.get(len(text), ("", []))
    if time_unit not in units or not newest.is_integer() or not 1900 <= int(text[:4]) <= 2100:
        return
    try:
        datetime.strptime(text, form)
    except ValueError:
        return
    raise ValueError(
        f"{label} holds {text}, which looks like a date written as a number; make dates of them by "
        f"pandas.to_datetime(column.astype('str'), format={form!r})"
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


def refuse_leap(time, start, newest, newest_before, held, label, shown, place=None):
    """Raise if a few rows of a batch lie so far ahead of all others that a window would lose these.

    Where they are more than a tenth of all, but fewer than half of the batch, warn of it.
    ``time``: of the batch; ``held``: how many rows the window has; ``shown``: makes a time legible;
    ``place``: which rows of the frame these are, if not all.
    """
    xp = array_module(time)
    ahead = time > start
    rows, few = time.size, number_where(ahead)
    if not 0 < 2 * few < rows:
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
        row = row if place is None else int(place[row])
        far = (
            f"{label}: {few} of {rows} rows are dated up to {shown(newest)} (row {row}), farther "
            f"than the window is long from all others, which end with {shown(before)} and"
        )
        if 10 * few > rows + held:
            warn_caller(
                f"{far} left it for good; if a wrong clock said so, start a new window, and pass "
                "max_lead= to refuse such rows"
            )
            return
        raise ValueError(
            f"{far} would leave it for good; drop those rows, or, if they are right, append them "
            "on their own"
        )


def shown(time, kind):
    """Return a time as callers see it: a float, or a datetime64."""
    return time if time is None or kind == NUMBERS else np.datetime64(time, "us")


def _is_number(value):
    # NumPy takes lengths of time for integers
    return isinstance(value, int | float | np.number) and not isinstance(value, np.timedelta64)


def moment(value, label, time_unit, known=None):
    """Return one time as `times` has them, int microseconds or a float, and its kind."""
    text = f"{label}={value!r:.80}"
    if _is_number(value) and not isinstance(value, bool):
        if known not in (None, NUMBERS):
            raise TypeError(f"{text} is a number, but the times of the window are {known}")
        if value != value:
            raise ValueError(f"{text} is no point in time")
        time = np.array([value], dtype=np.float64)
        _check_numbers(time, label, time_unit)
        return time[0].item(), NUMBERS
    try:
        stamp = pd.Timestamp(value)
    except (TypeError, ValueError):
        raise TypeError(
            f"{text} is no time; pass a datetime, pandas.Timestamp or numpy.datetime64, or a "
            f"number for times that are numbers"
        ) from None
    if stamp is pd.NaT:
        raise ValueError(f"{text} is no point in time")
    kind = DATES if stamp.tz is None else ZONED
    if known == NUMBERS:
        raise TypeError(f"{text} is a date, but the times of the window are numbers; pass one")
    if known == DATES and kind == ZONED:
        raise TypeError(
            f"{text} has a time zone, but the times of the window have none; pass it without, as "
            "by tz_localize(None)"
        )
    if stamp.tz is not None:
        stamp = stamp.tz_convert("UTC").tz_localize(None)
    return int(stamp.to_datetime64().astype("datetime64[us]").astype(np.int64)), known or kind


def now_of(now, kind, time_unit):
    """Return when a batch came: ``now``, or what the system's clock says, in UTC."""
    if now is not None:
        return moment(now, "now", time_unit, kind)[0]
    if kind == NUMBERS:
        raise ValueError(
            "now: times are numbers, which no clock can be compared with; with max_lead, pass "
            "now= with each batch, or dates as times"
        )
    return int(np.datetime64("now", "us").astype(np.int64))


def span(value, label):
    """Return a length of time that is not negative: a number, of time units, or a Timedelta."""
    if isinstance(value, bool):
        raise TypeError(f"{label} must be a length of time, such as '1h', or a number, not {value}")
    if _is_number(value):
        length = float(value)
        if not 0 <= length < math.inf:
            raise ValueError(f"{label} must be a number from 0 up, not {value}")
        return length
    try:
        length = pd.Timedelta(value)
    except (TypeError, ValueError):
        raise TypeError(
            f"{label} must be a length of time, such as '1h' or a pandas.Timedelta, or a number, "
            f"not {value!r:.80}"
        ) from None
    if not length >= pd.Timedelta(0):
        raise ValueError(f"{label} must not be negative, and not {value!r:.80}")
    return length


def length_of(span, kind, time_unit):
    """Return a `span` in what times of a kind count."""
    if not isinstance(span, pd.Timedelta):
        return span if kind == NUMBERS else span * (PER_DAY["us"] // PER_DAY[time_unit])
    if kind == NUMBERS:
        return span / (pd.Timedelta(days=1) / PER_DAY[time_unit])
    return span // pd.Timedelta(microseconds=1)


def refuse_lead(time, now, lead, label, shown, given):
    """Raise if a row is dated more than ``lead`` after ``now``; ``given``: lead, as text."""
    ahead = time > now + lead
    if not any_true(ahead):
        return
    row = int(ahead.argmax())
    raise ValueError(
        f"{label}: {number_where(ahead)} row(s) are dated more than max_lead={given} after "
        f"{shown(now)}, when the batch came, the first {shown(time[row].item())} at row {row}; "
        "mend the clock that dated them, or drop them; a replay says by now= when a batch came"
    )
