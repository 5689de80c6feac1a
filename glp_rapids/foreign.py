"""Data of other libraries, as pandas or cuDF: polars, pyarrow, dask and dask-cuDF.

What is on several machines or not yet computed is gathered, on the one GPU of the caller if it is
cuDF's. Only columns that are asked for are computed, gathered and converted. A library is
recognized only if the caller has imported it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


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


def _from_arrow(data):
    # no metadata: a column that was an index would become one, and be no column any more;
    # with nulls integers become objects, not floats, so that the message will be about nulls
    options = {"integer_object_nulls": True}
    if hasattr(data, "column_names"):
        options |= {"ignore_metadata": True, "split_blocks": True}
    return data.to_pandas(**options)


def _from_polars(data):
    try:
        return _from_arrow(data.to_arrow())
    except ModuleNotFoundError as error:
        raise TypeError(
            f"a polars.{type(data).__name__} is read through pyarrow, which is missing: pip "
            "install pyarrow"
        ) from error


LIBRARIES = (
    Library(
        instance_of("pyarrow", "Table", "RecordBatch"),
        instance_of("pyarrow", "Array", "ChunkedArray"),
        lambda table: table.schema.names,
        lambda table, names: table.select(names),
        _from_arrow,
    ),
    Library(
        instance_of("polars", "DataFrame"),
        instance_of("polars", "Series"),
        lambda frame: frame.columns,
        lambda frame, names: frame.select(names),
        _from_polars,
    ),
    Library(
        instance_of("polars", "LazyFrame"),
        lambda data: False,
        lambda frame: frame.collect_schema().names(),
        lambda frame, names: frame.select(names),
        lambda frame: _from_polars(frame.collect()),
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
    """Give the library whose frame this is."""
    return next((library for library in LIBRARIES if library.is_frame(data)), None)


def native(data: Any) -> Any:
    """Give a frame or column of any of the libraries as pandas' or cuDF's; all else as it is."""
    for library in LIBRARIES:
        if library.is_frame(data) or library.is_column(data):
            return library.native(data)
    return data
