"""Frames that name a partition: which columns hold the vertex, and labels as integers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd

from glp_rapids.common.checks import errors_named
from glp_rapids.device import array_module
from glp_rapids.frames import foreign, kinds


def is_frame(value: Any) -> bool:
    """Tell a data frame from a series, an array or a list."""
    return foreign.library_of_frame(value) is not None or hasattr(value, "columns")


def as_frame(value: Any, argument: str) -> Any:
    """Read the columns of the vertex and ``partition`` into a frame of pandas or cuDF."""
    columns = columns_of(value, argument)
    kind = "cudf" if any(kinds.is_cudf(one, "Series") for one in columns.values()) else "pandas"
    return kinds.to_frame(columns, kind, copy=False)  # only read


def columns_of(
    value: Any, argument: str, further: tuple[str, ...] = (), of_ids: bool = False
) -> dict[str, kinds.Column]:
    """Read the columns of the vertex, then ``partition``, then those named in ``further``.

    ``of_ids``: a partition may be an id of several columns, ``0_partition``, ``1_partition``, ...
    """
    if not is_frame(value):
        raise TypeError(
            f"{argument} must be a frame with the columns 'vertex' and 'partition', "
            f"not {type(value).__name__}"
        )
    with errors_named(argument):
        value, _ = kinds.without_proxy(value)
    if isinstance(value, pd.DataFrame):
        value = pd.DataFrame(value, copy=False)  # without attrs, which each column would copy
    names = list(value.columns)
    there = Counter(names)
    labels = ["partition"]
    if of_ids and "partition" not in there:
        labels = numbered_columns(names, "partition") or labels
    keys = numbered_columns(names, "vertex")
    if not keys:
        raise ValueError(f"{argument} has no column 'vertex'; its columns are {names}")
    wanted = (*keys, *labels, *further)
    if missing := [name for name in wanted if name not in there]:
        raise ValueError(f"{argument} has no column {missing[0]!r}; its columns are {list(there)}")
    if repeated := [name for name in wanted if there[name] > 1]:
        raise ValueError(f"{argument} has several columns named {repeated[0]!r}")
    return {
        name: kinds.as_column(value[name], f"{argument}: the column {name!r}") for name in wanted
    }


def numbered_columns(columns: Iterable[Any], name: str) -> list[str]:
    """Pick the columns called ``name``, or ``0_name``, ``1_name``, ..., in their order."""
    columns = [one for one in columns if re.fullmatch(rf"(\d+_)?{name}", str(one))]
    return sorted(columns, key=lambda one: (len(one), one))


def vertex_columns(frame: Any, argument: str) -> list[str]:
    """Name the columns that hold the vertex."""
    columns = numbered_columns(frame.columns, "vertex")
    if not columns:
        raise ValueError(
            f"{argument} has no column 'vertex'; its columns are {list(frame.columns)}"
        )
    return columns


def label_codes(labels: Any, argument: str) -> Any:
    """Name labels of any dtype by integers 0..k-1."""
    labels = kinds.as_column(labels, argument)
    if array_module(labels) is np:
        with errors_named(argument):
            labels = pd.Series(labels, copy=False) if isinstance(labels, np.ndarray) else labels
            codes, _ = labels.factorize()
        null = bool((codes < 0).any())
    else:
        xp = array_module(labels)
        null = labels.dtype.kind == "f" and bool(xp.isnan(labels).any())
        _, codes = xp.unique(labels, return_inverse=True)
    if null:
        raise ValueError(f"{argument} holds a null label; drop those rows or give them a label")
    return codes.astype("int64")
