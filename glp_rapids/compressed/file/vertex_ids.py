"""External vertex ids to sections of a file and back, exactly, whatever their type; no pickle.

A column of ids is a table entry (``kind`` and what that needs) and one or two sections. The dtype
that the caller had is a name, or, if it was categorical, the categories, a column of their own.
"""

from __future__ import annotations

import datetime
import decimal
import importlib.util
import re
import sys
from dataclasses import replace
from itertools import pairwise
from typing import Any, NoReturn

import numpy as np
import pandas as pd

from glp_rapids.compressed import packed_ids
from glp_rapids.compressed.packed_ids import PackedColumn, PackedIds, RangeOfIds
from glp_rapids.device import DeviceName, gpu_available, to_device
from glp_rapids.frames import kinds
from glp_rapids.frames.kinds import Kind
from glp_rapids.graph import id_types
from glp_rapids.graph.vertex_ids import IdColumn, VertexIds

Array = Any
Sections = dict[str, Array]

_UNITS = ("s", "ms", "us", "ns")
_EPOCH = datetime.date(1970, 1, 1).toordinal()
_POINTS = {"datetime": "M", "timedelta": "m"}
# The kind of each family that is written as text or bytes, and what is made of the texts again.
_TEXTS = {"string": "text", "decimal": "decimal", "bytes": "bytes", "moment": "moment"}
_OBJECTS = {"decimal": decimal.Decimal, "moment": datetime.datetime.fromisoformat}
_INTEGERS = ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8")
_NUMPY = re.compile(r"[<|]([iu][1248]|O|[mM]8\[(s|ms|us|ns)\])")
_DECIMAL = re.compile(r"(decimal(?:32|64|128|256))\((\d{1,3}), (-?\d{1,3})\)")
_EXTENSION = re.compile(
    r"U?Int(8|16|32|64)|category|str|string\[(python|pyarrow)\]|datetime64\[(s|ms|us|ns), [^]]+\]"
)


def saved_ids(ids: VertexIds) -> tuple[dict[str, Any], Sections]:
    """Make the table entry and the sections of the ids, or raise a TypeError: not of this type."""
    sections: Sections = {}
    columns = [_saved_column(column, f"ids{i}", sections) for i, column in enumerate(ids.columns)]
    return {"frame": ids.kind, "columns": columns}, sections


def restored_ids(
    entry: Any, sections: Sections, size: int, device: DeviceName, verify: bool
) -> VertexIds:
    """Restore the ids of a table entry, or raise a ValueError that says what is wrong with it.

    Ids are taken out of ``sections``, so that what is left is nobody's. ``verify``: see whether
    they ascend too.
    """
    if not isinstance(entry, dict) or not isinstance(entry.get("columns"), list):
        raise ValueError("there is no list of id columns")
    kind = _kind_here(entry.get("frame"))
    try:
        columns = [
            _restored_column(column, f"ids{i}", sections, size)
            for i, column in enumerate(entry["columns"])
        ]
        if not columns:
            raise ValueError("there is no column of them")
        if any(len(column) != size for column in columns):
            lengths = ", ".join(f"{len(column):,}" for column in columns)
            raise ValueError(f"there are {lengths}, and {size:,} vertices")
        if verify:
            _check(columns)
        return VertexIds(tuple(_placed(column, kind, device) for column in columns), kind)
    # what is asked of the libraries there fails in many ways when a file says nonsense
    except (
        ArithmeticError, AttributeError, ImportError, LookupError, NotImplementedError, TypeError
    ) as error:  # fmt: skip
        raise ValueError(f"they are not as they are said to be: {error!r:.200}") from error


def _check(columns: list[IdColumn]) -> None:
    """Raise a ValueError unless the ids ascend, none twice; of several columns the first decides.

    And unless they are what they are said to be, and are the same in the dtype of the caller.
    """
    rising, equal = False, True
    for column in columns:
        values = column.values
        if isinstance(column, PackedColumn):
            values = column.held.unbounded()
            _check_bounds(values, column.id_dtype)
        before, after = values[:-1], values[1:]
        if isinstance(values, pd.Series):
            if values.isna().any():
                raise ValueError("there is a null among them")
            before, after = (part.reset_index(drop=True) for part in (before, after))
        rising = rising | equal & np.asarray(after > before, dtype=bool)
        equal = equal & np.asarray(after == before, dtype=bool)
    if not np.all(rising):
        place = int(np.argmin(rising)) + 1
        raise ValueError(f"the one at {place:,} is out of order or there twice")
    for column in columns:
        if len(column) and column.dtype is not None:
            _check_types(column)


def _check_bounds(values: np.ndarray, dtype: np.dtype) -> None:
    can = np.iinfo(dtype)
    if int(values.min()) < can.min or int(values.max()) > can.max:
        raise ValueError(f"{dtype} cannot hold them")


def _check_types(column: IdColumn) -> None:
    """Raise a ValueError unless the ids are the same in the dtype of the caller."""
    values = column.values
    if column.family == "integer":  # then all are as the smallest and the largest are
        values = pd.Series(values[[int(values.argmin()), int(values.argmax())]])
    given = values.astype(column.dtype)
    families = [id_types.id_family(series, "one of them") for series in (values, given)]
    if families[0] != families[1] or not (given.astype(values.dtype) == values).all():
        raise ValueError(f"they cannot be given back as {column.dtype}")


def _placed(column: IdColumn, kind: Kind, device: DeviceName) -> IdColumn:
    """Put a column of the host where a graph on ``device`` would have it."""
    if isinstance(column, PackedColumn):
        return PackedColumn(column.held.to(device), column.dtype)
    if column.family == "integer":
        return replace(column, values=to_device(column.values, device), _kept={})
    values = column.values if kind == "pandas" else kinds.to_series(column.values, "cudf")
    # what a file says of that is not asked
    family = id_types.id_family(values, "one of them") or "empty"
    if family == "integer":
        raise ValueError(f"they cannot be held as {values.dtype}")
    return replace(column, values=values, family=family, _kept={})


def _kind_here(kind: Any) -> Kind:
    """The kind of frames that a result comes in, which is pandas wherever cuDF is not."""
    if kind not in ("pandas", "cudf", "cudf.pandas"):
        raise ValueError(f"there are no frames of the kind {kind!r:.40}")
    if not gpu_available() or importlib.util.find_spec("cudf") is None:
        return "pandas"
    return kind if kind != "cudf.pandas" or "cudf.pandas" in sys.modules else "pandas"


def _saved_column(column: IdColumn, name: str, sections: Sections) -> dict[str, Any]:
    if isinstance(column, PackedColumn):
        entry = _saved_integers(column.held, name, sections)
    else:
        entry = _saved_values(column.values, column.family, name, sections)
    dtype = column.dtype
    if dtype is not None:
        dtype = dtype.to_pandas() if hasattr(dtype, "to_pandas") else dtype
        if isinstance(dtype, pd.CategoricalDtype) and dtype.categories is not None:
            categories = pd.Series(dtype.categories)
            family = id_types.id_family(categories, "the categories") or "empty"
            values = kinds.to_array(categories) if family == "integer" else categories
            saved = _saved_values(values, family, f"{name}.categories", sections)
            if family == "string" and not all(map(_is_unicode, categories)):
                _refuse("category, with a lone surrogate in the text of one,")
            entry["caller"] = saved | {"ordered": bool(dtype.ordered)}
        else:
            entry["caller"] = _name_of(dtype)
    return entry


def _restored_column(entry: Any, name: str, sections: Sections, size: int) -> IdColumn:
    held = None
    if entry["kind"] in ("range", "packed"):
        held = _restored_integers(entry, name, sections, size)
    else:
        values, family = _restored_values(entry, name, sections)
    caller = entry.get("caller")
    if isinstance(caller, dict):
        categories, _ = _restored_values(caller, f"{name}.categories", sections)
        dtype = pd.CategoricalDtype(categories, caller["ordered"] is True)
    else:
        dtype = None if caller is None else _dtype_of(caller)
    return IdColumn(values, family, dtype) if held is None else PackedColumn(held, dtype)


def _saved_integers(held: RangeOfIds | PackedIds, name: str, sections: Sections) -> dict[str, Any]:
    """Do what `_saved_values` does, for integers in the room that they need."""
    entry = {"family": "integer", "type": held.dtype.str[1:]}
    if isinstance(held, RangeOfIds):
        return entry | {"kind": "range", "first": held.first}
    sections[name] = held.firsts
    sections[f"{name}.widths"] = held.widths
    sections[f"{name}.words"] = held.words
    return entry | {"kind": "packed"}


def _restored_integers(
    entry: dict, name: str, sections: Sections, size: int
) -> RangeOfIds | PackedIds:
    """Unpack such integers; one can be read of them."""
    if entry["family"] != "integer" or entry["type"] not in _INTEGERS:
        raise ValueError(f"there are no integers of the type {entry['type']!r:.40} in a range")
    dtype = np.dtype(entry["type"])
    if entry["kind"] == "range":
        first, can = entry["first"], np.iinfo(dtype)
        if type(first) is not int or not can.min <= first <= can.max + 1 - size or not size:
            raise ValueError(f"{dtype} cannot hold a range of {size:,} from {first!r:.40} on")
        return RangeOfIds(first, size, dtype, "cpu")
    blocks = -(-size // packed_ids.BLOCK)
    firsts = _numbers(sections, name, blocks, packed_ids.wide(dtype))
    widths = _numbers(sections, f"{name}.widths", blocks, np.uint8)
    if int(widths.max(initial=0)) > 64:
        raise ValueError(f"section {name}.widths holds {widths.max()}, and 64 bits are the most")
    words = _numbers(sections, f"{name}.words", packed_ids.words_of(widths), np.uint64)
    return PackedIds(firsts, widths, words, size, dtype)


def _numbers(sections: Sections, name: str, size: int, dtype: type) -> np.ndarray:
    found = sections.pop(name)
    if found.dtype != dtype or found.size != size:
        wanted = np.dtype(dtype)
        raise ValueError(
            f"section {name} has {found.size:,} numbers of {found.dtype}, not {size:,} of {wanted}"
        )
    return found


def _saved_values(values: Any, family: str, name: str, sections: Sections) -> dict[str, Any]:
    """Put values into sections; give what has to be known to read them."""
    if family == "integer":
        sections[name] = values
        return {"kind": "integer", "family": family}
    if hasattr(values, "to_pandas"):
        values = values.to_pandas()
    entry = {"family": family, "series": _name_of(values.dtype)}
    if family == "empty":
        return entry | {"kind": "empty"}
    if _are_python_datetimes(values):
        family = entry["kind"] = "moment"  # as text
    if family.startswith("datetime"):
        points = pd.DatetimeIndex(values)
        sections[name] = points.asi8
        zone = None if points.tz is None else str(points.tz)
        if zone is not None and points.tz_convert(zone).dtype != points.dtype:
            _refuse(family)
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
        _refuse(family)
    pieces = values.tolist()
    if family == "moment":
        pieces = [piece.isoformat().encode() for piece in pieces]
    elif family != "bytes":
        pieces = [str(piece).encode(errors="surrogatepass") for piece in pieces]
    offsets = np.zeros(len(pieces) + 1, dtype=np.int64)
    np.cumsum([len(piece) for piece in pieces], out=offsets[1:])
    sections[f"{name}.offsets"] = offsets
    sections[name] = np.frombuffer(b"".join(pieces), dtype=np.uint8)
    return entry | {"kind": _TEXTS[family]}


def _restored_values(entry: dict, name: str, sections: Sections) -> tuple[Any, str]:
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
    dtype = _dtype_of(entry["series"])
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


def _is_unicode(text: str) -> bool:
    """Tell whether a text has no lone surrogate, which pandas can have no category with."""
    return text.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in text)


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


def _name_of(dtype: Any) -> str:
    """Name a dtype so that `_dtype_of` makes it again."""
    if isinstance(dtype, np.dtype):
        name = f"numpy:{dtype.newbyteorder('<').str}"
    elif isinstance(dtype, pd.ArrowDtype):
        name = f"arrow:{dtype.pyarrow_dtype}"
    elif isinstance(dtype, pd.StringDtype):
        name = "pandas:" + ("str" if dtype.na_value is not pd.NA else f"string[{dtype.storage}]")
    else:
        name = f"pandas:{dtype}"
    try:
        known = _dtype_of(name) == dtype
    except (ValueError, TypeError, NotImplementedError):
        known = False
    if not known:
        _refuse(str(dtype))
    return name


def _dtype_of(name: Any) -> Any:
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


def _refuse(what: str) -> NoReturn:
    raise TypeError(
        f"vertex ids of the type {what} cannot be saved: integers, strings, bytes, decimals, dates "
        "and points in time can; cast them, as with astype('str'), before the graph is compressed"
    )
