"""The kinds of frame a caller can come with, and what has to be said differently to each.

Three kinds: "pandas", "cudf", and "cudf.pandas" (a pandas proxy whose data lies on the GPU; worked
on as the cuDF frame inside, and handed back as a proxy). Frames of other libraries become one of
the first two (`foreign`).
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import sys
from collections.abc import Mapping, Set, Sized
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd

from glp_rapids.common.checks import errors_named, shown
from glp_rapids.common.reused_memory import lasting
from glp_rapids.common.types import Column as Column
from glp_rapids.common.types import Frame as Frame
from glp_rapids.common.types import Kind as Kind
from glp_rapids.device import (
    any_nan,
    array_module,
    gpu_available,
    settle_with_default_stream,
    to_device,
    to_host,
)
from glp_rapids.frames import foreign


def library(kind: Kind) -> ModuleType:
    """Import the module, pandas or cudf, that makes the frames of a kind."""
    if kind == "pandas":
        return pd
    _cudf_imports()  # of a graph that was unpickled it may not be there
    import cudf

    return cudf


def kind_of(*columns: Column) -> Kind:
    """Choose the kind of frame to make of columns: cuDF's, if one lies on a GPU and it imports."""
    if any(is_cudf(column, "Series") for column in columns):
        return "cudf"
    return "cudf" if array_module(*columns) is not np and _cudf_imports() else "pandas"


@functools.cache
def _cudf_imports() -> bool:
    # It sets CuPy's allocator, which CuPy refuses to a thread that is inside `using_allocator`.
    with ThreadPoolExecutor(1) as thread:
        try:
            thread.submit(importlib.import_module, "cudf").result()
        except ImportError:
            return False
    return True


def cudf_inside(data: Any) -> tuple[Any, bool]:
    """Unwrap the cuDF object inside a cudf.pandas proxy; tell whether there was a proxy."""
    # a column of pandas takes long to say that it has no such attribute
    if "cudf" in sys.modules and hasattr(data, "as_gpu_object") and gpu_available():
        # what cuDF has no type for, such as mixed objects, stays in host memory
        with contextlib.suppress(TypeError, ValueError, NotImplementedError):
            inside = data.as_gpu_object()
            if _types_stay(data, inside):
                return inside, True
    # without a GPU a proxy does what pandas does, and is taken for a frame of it
    return data, False


def _types_stay(data: Any, inside: Any) -> bool:
    """Tell whether cuDF holds Python's objects as objects; it turns dates into points in time."""
    pairs = [(data, inside)]
    if hasattr(inside, "columns"):
        pairs = [(data[name], inside[name]) for name in inside.columns]
    return not any(
        str(getattr(one, "dtype", "")) == "object"
        and str(getattr(other, "dtype", "")) not in ("object", "str", "string")
        for one, other in pairs
    )


def without_proxy(data: Any) -> tuple[Any, bool]:
    """Unwrap data to what pandas or cuDF has; tell whether it was a proxy of cudf.pandas.

    Frames and columns of polars, pyarrow and dask are converted; anything else is itself.
    """
    data, proxy = cudf_inside(data)
    return foreign.native(data), proxy


def is_cudf(data: Any, *names: str) -> bool:
    """Tell whether data is an instance of one of the named classes of cuDF."""
    return foreign.instance_of("cudf", *names)(data)


def as_column(data: Any, label: str) -> Column:
    """Turn one-dimensional data into a Series or array, without a copy where there is a choice.

    Bytes are in the order of this machine, what a NumPy mask hides is null, and no type of Arrow
    is left that pandas cannot work with. ``label`` is what messages call the data.
    """
    with errors_named(label):
        data, _ = cudf_inside(data)
        if not isinstance(data, pd.Series | np.ndarray):
            data = foreign.native(data)
        if isinstance(data, pd.Series):
            return _of_pandas(data)
        if getattr(data, "ndim", 1) != 1:
            raise ValueError(f"{label} must have one dimension, not the shape {data.shape}")
        if isinstance(data, np.ma.MaskedArray):
            data = _without_mask(data)
        if isinstance(data, np.ndarray):
            return _of_numpy(data, label)
        if array_module(data) is not np or is_cudf(data, "Series"):
            return data
        if is_cudf(data, "Index"):
            return library("cudf").Series(data)
        if isinstance(data, pd.MultiIndex):
            raise TypeError(f"{label} must be one column, not a MultiIndex; use its to_frame()")
        if isinstance(data, pd.Index | pd.api.extensions.ExtensionArray):
            return _of_pandas(pd.Series(data))
        if not isinstance(data, Sized) or isinstance(data, str | bytes | Mapping | Set):
            hint = "; make a list of it" if isinstance(data, Set) else ""
            raise TypeError(f"{label} must be one column of values, not {shown(data)}{hint}")
        values = list(data)
        if values and isinstance(values[0], np.ndarray) and not values[0].ndim:
            values = [one[()] if isinstance(one, np.ndarray) else one for one in values]
        if values and isinstance(values[0], list | np.ndarray):
            what = "lists" if isinstance(values[0], list) else "arrays"
            raise ValueError(f"{label} must have one dimension, and its values are {what}")
        return _series_of(values)


def _without_mask(data: np.ma.MaskedArray) -> np.ndarray:
    """Turn a masked array into objects, None where it is masked, or into what is below a mask."""
    if data.dtype.names is None and not np.ma.is_masked(data):
        return data.data
    objects = np.empty(len(data), dtype=object)
    objects[:] = data.tolist()
    return objects


def _of_numpy(data: np.ndarray, label: str) -> Column:
    """Leave an array of this machine's numbers as it is, turn any other into a Series."""
    if data.dtype.kind == "V":
        raise TypeError(
            f"{label} holds records or raw bytes ({data.dtype}); pass the columns of a frame"
        )
    data = data.astype(native_dtype(data.dtype), copy=False)
    if data.dtype.kind == "S":
        return pd.Series(data.astype(object))  # pandas takes such bytes for texts
    return data if data.dtype.kind in "iufb" else pd.Series(data, copy=False)


def _of_pandas(data: pd.Series) -> pd.Series:
    if isinstance(data.dtype, pd.ArrowDtype):
        return foreign.workable_arrow(data)
    dtype = data.dtype
    if isinstance(dtype, np.dtype) and dtype.kind == "S":
        return data.astype(object)
    if isinstance(dtype, np.dtype) and not dtype.isnative:
        return data.astype(native_dtype(dtype))
    return data


def native_dtype(dtype: np.dtype) -> np.dtype:
    """Put the bytes of a dtype in the order of this machine."""
    return dtype if dtype.isnative else dtype.newbyteorder("=")


def _series_of(values: list) -> pd.Series:
    """Make a Series of Python objects that keeps tuples whole and integers exact."""
    if any(isinstance(value, tuple) for value in values):
        objects = np.empty(len(values), dtype=object)
        objects[:] = values
        return pd.Series(objects)
    if values and all(type(value) is int for value in values):
        return pd.Series(values, dtype=object).infer_objects()
    try:
        return pd.Series(values, dtype=None if values else np.int64)
    except UnicodeEncodeError:  # lone surrogates, which pandas has no strings for
        return pd.Series(values, dtype=object)


def null_count(column: Column) -> int:
    """Count the nulls of a column; NaN counts as one."""
    dtype = column.dtype if isinstance(column, pd.Series) else None
    if isinstance(dtype, np.dtype) and dtype.kind in "iub":  # where pandas would look
        return 0
    if hasattr(column, "isna"):
        if is_cudf(column, "Series"):  # which knows its nulls: to look takes it a millisecond
            if getattr(column.dtype, "kind", "f") != "f":
                return int(column.null_count)
            plain = isinstance(column.dtype, np.dtype) and not column.null_count
            if plain and not any_nan([to_array(column)]):
                return 0
        return int(column.isna().sum())
    if column.dtype.kind != "f" or (array_module(column) is not np and not any_nan([column])):
        return 0
    return int(array_module(column).isnan(column).sum())


def is_null(column: Column) -> Any:
    """Flag the nulls of a column; NaN counts as one."""
    return column.isna() if hasattr(column, "isna") else array_module(column).isnan(column)


def to_array(column: Column) -> Any:
    """Take the array behind a column of numbers that has no nulls, without a copy if it can."""
    if not hasattr(column, "isna"):
        return column
    plain = getattr(column.dtype, "numpy_dtype", None)  # of what may hold nulls, and holds none
    if isinstance(column, pd.Series):
        return column.to_numpy(dtype=plain)
    array = (column if plain is None else column.astype(plain)).to_cupy(copy=False)
    settle_with_default_stream()
    return array


def on_host(column: Column) -> Column:
    """Bring a column to host memory, as pandas or NumPy have it; one that is there is itself."""
    here = isinstance(column, pd.Series | np.ndarray)
    return column if here else to_series(column, "pandas")


def taken(column: Any, index: Any) -> Any:
    """Take the values of a Series at places, with the default index."""
    if isinstance(column, pd.Series):
        index = to_host(index)  # without cuDF the ids of a graph on a GPU may be texts of pandas
    settle_with_default_stream()
    made = column.take(index).reset_index(drop=True)
    settle_with_default_stream()  # the index may be of a pool, which has it back on this stream
    return made


def to_series(values: Column, kind: Kind, copy: bool = True) -> Any:
    """Turn a column into a Series of the library of ``kind``, with the default index.

    ``copy=False``: nobody else has the values, and the Series may be of their memory.
    """
    if kind == "pandas":
        if is_cudf(values, "Series"):
            values = values.to_pandas()
        if isinstance(values, pd.Series):
            return values.reset_index(drop=True)
        # What comes from a GPU is nobody else's; an array of the host may be part of the graph.
        return pd.Series(to_host(values), copy=copy and array_module(values) is np)
    if isinstance(values, np.ndarray):
        values = to_device(values, "gpu")
    # cuDF takes a CuPy array over as it is: without a copy the caller could write into the graph
    values = lasting(values, copy)
    settle_with_default_stream()
    # where NaN is to be null cuDF looks for some, which takes it a millisecond
    as_null = getattr(values.dtype, "kind", "") != "f" or null_count(values) > 0
    made = library(kind).Series(values, nan_as_null=as_null)
    return made if _has_default_index(made) else made.reset_index(drop=True)


def _has_default_index(column: Any) -> bool:
    index = column.index
    return type(index).__name__ == "RangeIndex" and (index.start, index.step) == (0, 1)


def to_frame(columns: dict[str, Column], kind: Kind, copy: bool = True) -> Frame:
    """Make a frame of the caller's kind; ``copy`` as `to_series` takes it."""
    return joined(for_frame(columns, kind, copy), kind)


def for_frame(columns: dict[str, Column], kind: Kind, copy: bool = True) -> dict[str, Any]:
    """Turn columns into what `joined` takes; ``copy`` as `to_series` takes it."""
    turn = to_series if kind == "pandas" else for_cudf
    return {name: turn(values, kind, copy) for name, values in columns.items()}


def for_cudf(values: Column, kind: Kind, copy: bool = True) -> Any:
    """Turn a column into what a frame of cuDF takes in: numbers into an array of the GPU."""
    if isinstance(values, pd.Series):
        if values.dtype == object and not values.hasnans:  # a frame would make it a Series twice
            return values.reset_index(drop=True)
        if isinstance(values.dtype, np.dtype) and values.dtype.kind in "iufb":
            values = values.to_numpy()
    if hasattr(values, "index"):
        return to_series(values, kind, copy)
    if isinstance(values, np.ndarray):
        values, copy = to_device(values, "gpu"), False
    return lasting(values, copy)


def joined(columns: dict[str, Any], kind: Kind) -> Frame:
    """Make a frame of new Series of one length, or for cuDF arrays of the GPU, without a copy."""
    if kind == "pandas" and columns:
        return _joined(columns)
    if kind == "pandas":
        return pd.DataFrame()
    settle_with_default_stream()
    # A column that is an array is made in 30 us, one that is a Series in 120: cuDF compares the
    # indexes. Where NaN is to be null, it looks for some in each, which takes it a millisecond.
    arrays = [one for one in columns.values() if not hasattr(one, "index")]
    holds_nan = any_nan(arrays)
    if columns and len(arrays) == len(columns) and not holds_nan:
        frame = _of_arrays(columns, kind)
    else:
        frame = library(kind).DataFrame(columns, nan_as_null=holds_nan)
    return _as_proxy(frame) if kind == "cudf.pandas" else frame


def _of_arrays(columns: dict[str, Any], kind: Kind) -> Frame:
    """Make a frame of cuDF of arrays of the GPU, which then are its columns.

    Its own way there makes an index of pandas of the names first, which takes as long again.
    """
    frames = library(kind).DataFrame
    import pylibcudf

    xp = array_module(*columns.values())
    table = pylibcudf.Table([
        pylibcudf.Column.from_cuda_array_interface(xp.ascontiguousarray(one))
        for one in columns.values()
    ])  # fmt: skip
    return frames.from_pylibcudf(table, {"columns": list(columns)})


def texts(values: np.ndarray, kind: Kind) -> Any:
    """Make a Series of texts without nulls, given as objects of the host."""
    if kind == "pandas":
        return pd.Series(values, dtype=object)
    import pyarrow

    return library(kind).Series(pyarrow.array(values, pyarrow.string()))


def of_arrow(columns: dict[str, np.ndarray], types: dict[str, str], kind: Kind) -> Frame:
    """Make a frame of cuDF of arrays of the host, as Arrow has them, which it takes in sooner.

    ``types``: of what are no numbers, "string" or "list<string>". NaN becomes null.
    """
    import pyarrow

    of = {"string": pyarrow.string(), "list<string>": pyarrow.list_(pyarrow.string())}
    table = {
        name: pyarrow.array(values, of.get(types.get(name, "")), from_pandas=True)
        for name, values in columns.items()
    }
    frame = library(kind).DataFrame.from_arrow(pyarrow.table(table))
    return _as_proxy(frame) if kind == "cudf.pandas" else frame


def _as_proxy(frame: Frame) -> Frame:
    from cudf.pandas import as_proxy_object

    return as_proxy_object(frame)


def _joined(series: dict[str, pd.Series]) -> pd.DataFrame:
    """Put new Series of one length side by side, without a copy and without comparing indexes."""
    index = next(iter(series.values())).index
    for column in series.values():
        column.index = index
    return pd.DataFrame(series, index=index, copy=False)


def null_where(silent: Any, values: Column, kind: Kind) -> Any:
    """Make a Series of a column, with nulls where an array is true; integers stay integers."""
    values = to_series(values, kind)
    if isinstance(values.dtype, pd.SparseDtype):
        values = values.sparse.to_dense()
    if isinstance(values.dtype, pd.IntervalDtype) and values.dtype.subtype.kind in "iu":
        values = values.astype(object)  # else their ends become floats
    if kind == "pandas" and isinstance(values.dtype, np.dtype) and values.dtype.kind in "iu":
        values = pd.Series(pd.array(values.to_numpy()))  # else whole numbers become floats
    return values.where(to_series(~silent, kind), None)


def ids_as_text(ids: Any) -> str:
    """Write out a few ids for a message."""
    if hasattr(ids, "to_pandas"):
        ids = ids.to_pandas()
    if getattr(ids, "ndim", 1) == 2:
        ids = np.asarray(ids)[:, 0] if ids.shape[1] == 1 else np.asarray(ids)
    ids = ids if hasattr(ids, "tolist") else np.asarray(ids)
    return ", ".join(map(repr, ids.tolist()))
