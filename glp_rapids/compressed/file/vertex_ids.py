"""External vertex ids to sections of a file and back, exactly, whatever their type; no pickle.

A column of ids is a table entry (``kind`` and what that needs) and one or two sections. The dtype
that the caller had is a name, or, if it was categorical, the categories, a column of their own.
"""

from __future__ import annotations

import importlib.util
import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from glp_rapids.compressed import packed_ids
from glp_rapids.compressed.file import id_values
from glp_rapids.compressed.file.id_values import Sections
from glp_rapids.compressed.packed_ids import PackedColumn, PackedIds, RangeOfIds
from glp_rapids.device import DeviceName, gpu_available, to_device
from glp_rapids.frames import kinds
from glp_rapids.frames.kinds import Kind
from glp_rapids.graph import id_types
from glp_rapids.graph.vertex_ids import IdColumn, VertexIds

Array = Any

_INTEGERS = ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8")


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
    kind = kind_here(entry.get("frame"))
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


def kind_here(kind: Any) -> Kind:
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
        entry = id_values.saved_values(column.values, column.family, name, sections)
    dtype = column.dtype
    if dtype is not None:
        dtype = dtype.to_pandas() if hasattr(dtype, "to_pandas") else dtype
        if isinstance(dtype, pd.CategoricalDtype) and dtype.categories is not None:
            categories = pd.Series(dtype.categories)
            family = id_types.id_family(categories, "the categories") or "empty"
            values = kinds.to_array(categories) if family == "integer" else categories
            saved = id_values.saved_values(values, family, f"{name}.categories", sections)
            if family == "string" and not all(map(_is_unicode, categories)):
                id_values.refuse("category, with a lone surrogate in the text of one,")
            entry["caller"] = saved | {"ordered": bool(dtype.ordered)}
        else:
            entry["caller"] = id_values.name_of(dtype)
    return entry


def _restored_column(entry: Any, name: str, sections: Sections, size: int) -> IdColumn:
    held = None
    if entry["kind"] in ("range", "packed"):
        held = _restored_integers(entry, name, sections, size)
    else:
        values, family = id_values.restored_values(entry, name, sections)
    caller = entry.get("caller")
    if isinstance(caller, dict):
        categories, _ = id_values.restored_values(caller, f"{name}.categories", sections)
        dtype = pd.CategoricalDtype(categories, caller["ordered"] is True)
    else:
        dtype = None if caller is None else id_values.dtype_of(caller)
    return IdColumn(values, family, dtype) if held is None else PackedColumn(held, dtype)


def _saved_integers(held: RangeOfIds | PackedIds, name: str, sections: Sections) -> dict[str, Any]:
    """Do what `id_values.saved_values` does, for integers in the room that they need."""
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
    firsts = _numbers(sections, name, blocks, packed_ids.dtype_of_64_bits(dtype))
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


def _is_unicode(text: str) -> bool:
    """Tell whether a text has no lone surrogate, which pandas can have no category with."""
    return text.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in text)
