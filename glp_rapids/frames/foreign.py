"""Data of other libraries, as pandas or cuDF: polars, pyarrow, dask and dask-cuDF.

What is on several machines or not yet computed is gathered, on the one GPU of the caller if it is
cuDF's. Only columns that are asked for are computed, gathered and converted. A library is
recognized only if the caller has imported it.
"""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pandas as pd


def instance_of(module: str, *names: str) -> Callable[[Any], bool]:
    """Recognize instances of classes of a module that may not be imported."""

    def recognized(data: Any) -> bool:
        loaded = sys.modules.get(module)
        classes = tuple(getattr(loaded, name) for name in names if hasattr(loaded, name))
        return bool(classes) and isinstance(data, classes)

    return recognized


@dataclass(frozen=True)
class Library:
    """How the frames and columns of a library are told and turned into those of pandas or cuDF."""

    is_frame: Callable[[Any], bool]
    is_column: Callable[[Any], bool]
    names: Callable[[Any], list]
    select: Callable[[Any, list], Any]
    native: Callable[[Any], Any]
    native_column: Callable[[Any], Any] | None = None  # if it is another
    # what it has where messages advise a method of pandas, in the order in which it is looked for
    instead: dict[str, str] = field(default_factory=dict)


def _from_arrow(data):
    # no metadata: a column that was an index would become one, and be no column any more;
    # with nulls integers become objects, not floats, so that the message will be about nulls
    options = {"integer_object_nulls": True}
    if not hasattr(data, "column_names"):
        return _workable(data).to_pandas(**options)
    options |= {"ignore_metadata": True, "split_blocks": True}
    columns = [_workable(column) for column in data.columns]
    table = sys.modules["pyarrow"].table(columns, names=data.schema.names)
    return table.to_pandas(**options)


def _from_arrow_frame(data):
    return _converted(_from_arrow, data, data.schema.names)


def _workable(data):
    """Cast an array of Arrow to a type that pandas has kernels for, itself if it is."""
    import pyarrow as pa
    import pyarrow.compute

    kind = data.type
    if pa.types.is_run_end_encoded(kind):
        return _workable(pa.compute.run_end_decode(data))
    if pa.types.is_dictionary(kind) and _is_view(kind.value_type):
        # decoded by hand: Arrow casts no dictionary of views
        chunks = data.chunks if isinstance(data, pa.ChunkedArray) else [data]
        plain = [_workable(chunk.dictionary).take(chunk.indices) for chunk in chunks]
        return pa.chunked_array(plain, _plain_type(kind.value_type)).dictionary_encode()
    return data.cast(_plain_type(kind)) if _is_view(kind) else data


def _is_view(kind):
    return str(kind) in ("string_view", "binary_view")


def _plain_type(kind):
    pa = sys.modules["pyarrow"]
    return pa.large_string() if pa.types.is_string_view(kind) else pa.large_binary()


def workable_arrow(column: pd.Series) -> pd.Series:
    """Cast a pandas column of Arrow to a type that can be ranked: dictionaries as categories."""
    import pyarrow as pa

    kind = column.dtype.pyarrow_dtype
    if pa.types.is_dictionary(kind):
        return _workable(pa.chunked_array(pa.array(column))).to_pandas()
    if _is_view(kind) or pa.types.is_run_end_encoded(kind):
        column = _workable(pa.array(column))
        return pd.Series(column, dtype=pd.ArrowDtype(column.type))
    return column


def _from_polars_frame(frame):
    return _converted(_from_polars, frame, frame.columns)


def _converted(convert, frame, names):
    """Convert a frame, or say which of its columns cannot be."""
    try:
        return convert(frame)
    except (TypeError, ValueError, NotImplementedError):
        for name in names:
            try:
                convert(frame.select([name]))
            except (TypeError, ValueError, NotImplementedError) as error:
                raise TypeError(f"column {name!r} cannot be read: {error!s:.200}") from error
        raise


def _from_polars(data):
    try:
        return _from_arrow(data.to_arrow())
    except ModuleNotFoundError as error:
        raise TypeError(
            f"a polars.{type(data).__name__} is read through pyarrow, which is missing: pip "
            "install pyarrow"
        ) from error


_OF_POLARS = {
    r"(null\(s\) or NaN\b.*) with dropna\b": r"\1 with drop_nulls and drop_nans",
    r"\bwith dropna\b": "with drop_nulls",
    r"\bastype\('int64'\)": "cast(polars.Int64)",
    r"\bastype\('float64'\)": "cast(polars.Float64)",
    r"\bastype\('str'\)": "cast(polars.String)",
    r"\bwith astype\b": "with polars.Expr.cast",
}

LIBRARIES = (
    Library(
        instance_of("pyarrow", "Table", "RecordBatch"),
        instance_of("pyarrow", "Array", "ChunkedArray"),
        lambda table: table.schema.names,
        lambda table, names: table.select(names),
        _from_arrow_frame,
        _from_arrow,
    ),
    Library(
        instance_of("polars", "DataFrame"),
        instance_of("polars", "Series"),
        lambda frame: frame.columns,
        lambda frame, names: frame.select(names),
        _from_polars_frame,
        _from_polars,
        instead=_OF_POLARS,
    ),
    Library(
        instance_of("polars", "LazyFrame"),
        lambda data: False,
        lambda frame: frame.collect_schema().names(),
        lambda frame, names: frame.select(names),
        lambda frame: _from_polars_frame(frame.collect()),
        instead=_OF_POLARS,
    ),
    # dask-cuDF's classes are subclasses of these
    Library(
        instance_of("dask.dataframe", "DataFrame"),
        instance_of("dask.dataframe", "Series", "Index"),
        lambda frame: list(frame.columns),
        lambda frame, names: frame[names],
        lambda data: data.compute(),
    ),
)


def library_of_frame(data: Any) -> Library | None:
    """Find the library whose frame this is."""
    return next((library for library in LIBRARIES if library.is_frame(data)), None)


@contextlib.contextmanager
def advising(frame: Any) -> Iterator[None]:
    """Advise what the library of a frame has, where an error advises a method of pandas."""
    try:
        yield
    except (TypeError, ValueError) as error:
        library = library_of_frame(frame)
        said = str(error)
        for method, own in (library.instead if library else {}).items():
            said = re.sub(method, own, said)
        if said == str(error):
            raise
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(said) from None  # which advises otherwise


def native(data: Any) -> Any:
    """Turn a frame or column of any of the libraries into pandas' or cuDF's; all else stays."""
    for library in LIBRARIES:
        if library.is_frame(data):
            return library.native(data)
        if library.is_column(data):
            return (library.native_column or library.native)(data)
    return data
