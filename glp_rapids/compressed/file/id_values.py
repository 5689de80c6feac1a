"""One column of external ids, not integers as a rule, to sections of a file and back; no pickle.

Dates and points in time are written as integers, texts, decimals and bytes as bytes and the offsets
between them. The dtype that holds them is a name.
"""

from __future__ import annotations

import datetime
import decimal
import re
from itertools import pairwise
from typing import Any, NoReturn

import numpy as np
import pandas as pd

from glp_rapids.common.segments import segment_offsets

Array = Any
Sections = dict[str, Array]

_UNITS = ("s", "ms", "us", "ns")
_EPOCH = datetime.date(1970, 1, 1).toordinal()
_POINTS = {"datetime": "M", "timedelta": "m"}
# The kind of each family that is written as text or bytes, and what is made of the texts again.
_TEXTS = {"string": "text", "decimal": "decimal", "bytes": "bytes", "moment": "moment"}
_OBJECTS = {"decimal": decimal.Decimal, "moment": datetime.datetime.fromisoformat}
_NUMPY = re.compile(r"[<|]([iu][1248]|O|[mM]8\[(s|ms|us|ns)\])")
_DECIMAL = re.compile(r"(decimal(?:32|64|128|256))\((\d{1,3}), (-?\d{1,3})\)")
_EXTENSION = re.compile(
    r"U?Int(8|16|32|64)|category|str|string\[(python|pyarrow)\]|datetime64\[(s|ms|us|ns), [^]]+\]"
)


def saved_values(values: Any, family: str, name: str, sections: Sections) -> dict[str, Any]:
    """Put values into sections; give what has to be known to read them."""
    if family == "integer":
        sections[name] = values
        return {"kind": "integer", "family": family}
    if hasattr(values, "to_pandas"):
        values = values.to_pandas()
    entry = {"family": family, "series": name_of(values.dtype)}
    if family == "empty":
        return entry | {"kind": "empty"}
    if _are_python_datetimes(values):
        family = entry["kind"] = "moment"  # as text
    if family.startswith("datetime"):
        points = pd.DatetimeIndex(values)
        sections[name] = points.asi8
        zone = None if points.tz is None else str(points.tz)
        if zone is not None and points.tz_convert(zone).dtype != points.dtype:
            refuse(family)
        return entry | {"kind": "datetime", "unit": points.unit, "zone": zone}
    if family.startswith("timedelta"):
        spans = pd.TimedeltaIndex(values)
        sections[name] = spans.asi8
        return entry | {"kind": "timedelta", "unit": spans.unit}
    if family == "date":
        days = np.fromiter((day.toordinal() for day in values), dtype=np.int32, count=len(values))
        sections[name] = days - np.int32(_EPOCH)
        return entry | {"kind": "date"}
    if _DECIMAL.match(family):
        family = "decimal"
    if family not in _TEXTS:
        refuse(family)
    pieces = values.tolist()
    if family == "moment":
        pieces = [piece.isoformat().encode() for piece in pieces]
    elif family != "bytes":
        pieces = [str(piece).encode(errors="surrogatepass") for piece in pieces]
    lengths = np.array([len(piece) for piece in pieces], dtype=np.int64)
    sections[f"{name}.offsets"] = segment_offsets(lengths)
    sections[name] = np.frombuffer(b"".join(pieces), dtype=np.uint8)
    return entry | {"kind": _TEXTS[family]}


def restored_values(entry: dict, name: str, sections: Sections) -> tuple[Any, str]:
    """Restore values, and their family, of an entry."""
    kind, family = entry["kind"], entry["family"]
    if not isinstance(family, str) or (kind == "integer") != (family == "integer"):
        raise ValueError(f"a column of the kind {kind!r:.40} cannot hold {family!r:.40} ids")
    if kind == "integer":
        values = sections.pop(name)
        if values.dtype.kind == "f":
            raise ValueError(f"section {name} holds {values.dtype}, not integers")
        return values, family
    if kind == "empty":
        values = pd.Series([], dtype=object)
    elif kind in _TEXTS.values():
        values = _split(sections.pop(name), sections.pop(f"{name}.offsets"), kind)
    elif kind == "date":
        days = sections.pop(name).tolist()
        values = _objects([datetime.date.fromordinal(day + _EPOCH) for day in days])
    elif kind in _POINTS and entry["unit"] in _UNITS:
        values = sections.pop(name).astype(np.int64, copy=False)
        values = pd.Series(values.view(f"{_POINTS[kind]}8[{entry['unit']}]"))
        if kind == "datetime" and entry["zone"] is not None:
            values = values.dt.tz_localize("UTC").dt.tz_convert(entry["zone"])
    else:
        raise ValueError(f"there is no column of the kind {kind!r:.40}")
    dtype = dtype_of(entry["series"])
    if family == "timedelta" and pd.api.types.is_object_dtype(dtype):  # of Python's class
        values = _objects(list(pd.TimedeltaIndex(values).to_pytimedelta()))
    return (values if values.dtype == dtype else values.astype(dtype)), family


def _are_python_datetimes(values: pd.Series) -> bool:
    """Tell objects of Python's class, in no zone or in one that the text can say, from others."""
    return values.dtype == object and all(
        type(value) is datetime.datetime
        and (value.tzinfo is None or type(value.tzinfo) is datetime.timezone)
        for value in values
    )


def _split(text: np.ndarray, offsets: np.ndarray, kind: str) -> pd.Series:
    """Cut bytes into ids."""
    offsets = offsets.astype(np.int64, copy=False)
    rising = bool((offsets[1:] >= offsets[:-1]).all())
    if not offsets.size or offsets[0] != 0 or offsets[-1] != text.size or not rising:
        raise ValueError("the offsets of the texts do not ascend from 0 to the end of the text")
    whole: Any = text.tobytes()
    places = offsets.tolist()
    if kind == "bytes":
        return _objects([whole[a:b] for a, b in pairwise(places)])
    if whole.isascii():
        whole = whole.decode()
        pieces = [whole[a:b] for a, b in pairwise(places)]
    else:
        pieces = [whole[a:b].decode(errors="surrogatepass") for a, b in pairwise(places)]
    made_of = _OBJECTS.get(kind)
    return _objects(pieces if made_of is None else [made_of(piece) for piece in pieces])


def _objects(values: list) -> pd.Series:
    return pd.Series(values, dtype=object)


def name_of(dtype: Any) -> str:
    """Name a dtype so that `dtype_of` makes it again."""
    if isinstance(dtype, np.dtype):
        name = f"numpy:{dtype.newbyteorder('<').str}"
    elif isinstance(dtype, pd.ArrowDtype):
        name = f"arrow:{dtype.pyarrow_dtype}"
    elif isinstance(dtype, pd.StringDtype):
        name = "pandas:" + ("str" if dtype.na_value is not pd.NA else f"string[{dtype.storage}]")
    else:
        name = f"pandas:{dtype}"
    try:
        known = dtype_of(name) == dtype
    except (ValueError, TypeError, NotImplementedError):
        known = False
    if not known:
        refuse(str(dtype))
    return name


def dtype_of(name: Any) -> Any:
    """Make the dtype of a name; where a library that it needs is missing, the nearest there is."""
    library, _, name = name.partition(":")
    if library == "numpy" and _NUMPY.fullmatch(name):
        return np.dtype(name)
    if library == "pandas" and _EXTENSION.fullmatch(name):
        try:
            return pd.api.types.pandas_dtype(name)
        except ImportError:
            return np.dtype(object)
    if library == "arrow":
        try:
            import pyarrow

            if found := _DECIMAL.fullmatch(name):
                of_digits = getattr(pyarrow, found[1])
                return pd.ArrowDtype(of_digits(int(found[2]), int(found[3])))
            return pd.ArrowDtype(pyarrow.type_for_alias(name))
        except ImportError:
            return np.dtype(object)
        except ValueError:
            return pd.ArrowDtype.construct_from_string(f"{name}[pyarrow]")
    raise ValueError(f"there is no dtype {name!r:.40} for them")


def refuse(what: str) -> NoReturn:
    """Raise what says that ids of a type have no form in a file."""
    raise TypeError(
        f"ids of the type {what} cannot be saved: integers, strings, bytes, decimals, dates and "
        "points in time can; cast them, as with astype('str'), before a graph or a window has them"
    )
