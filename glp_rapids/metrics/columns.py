"""Read the columns of frames of any kind: which hold the vertex, and labels as integers."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import numpy as np
import pandas as pd

from glp_rapids.common.checks import errors_named
from glp_rapids.device import array_module
from glp_rapids.frames import foreign, kinds
from glp_rapids.graph import id_types


def is_frame(value: Any) -> bool:
    """Tell a data frame from a series, an array or a list."""
    return foreign.library_of_frame(value) is not None or hasattr(value, "columns")


def as_frame(value: Any, argument: str) -> Any:
    """Read the columns of the vertex and ``partition`` into a frame of pandas or cuDF."""
    if not is_frame(value):
        raise TypeError(
            f"{argument} must be a frame with the columns 'vertex' and 'partition', "
            f"not {type(value).__name__}"
        )
    with errors_named(argument):
        value, _ = kinds.without_proxy(value)
    there = Counter(value.columns)
    if "partition" not in there:
        raise ValueError(f"{argument} has no column 'partition'; its columns are {list(there)}")
    keys = vertex_columns(value, argument)
    if repeated := [name for name in (*keys, "partition") if there[name] > 1]:
        raise ValueError(f"{argument} has several columns named {repeated[0]!r}")
    kind = "cudf" if kinds.is_cudf(value, "DataFrame") else "pandas"
    columns = {
        name: kinds.as_column(value[name], f"{argument}: the column {name!r}")
        for name in (*keys, "partition")
    }
    return kinds.to_frame(columns, kind, copy=False)  # only read


def same_kind(a: Any, b: Any) -> tuple[Any, Any]:
    """Bring a cuDF frame to the host when the other is a pandas one."""
    if hasattr(a, "to_pandas") != hasattr(b, "to_pandas"):
        return tuple(x.to_pandas() if hasattr(x, "to_pandas") else x for x in (a, b))
    return a, b


def refuse_ids_apart(a: Any, b: Any, keys: list[str]) -> None:
    """Refuse two frames whose vertices are no ids, or of types that never compare equal."""
    for name in keys:
        families = {}
        for argument, frame in (("a", a), ("b", b)):
            family = id_types.id_family(frame[name], f"{argument}: the column {name!r}")
            if family is not None:
                families[family] = argument
        if len(families) > 1:
            (one, first), (other, second) = families.items()
            raise TypeError(
                f"{first} and {second} name their vertices differently: column {name!r} holds "
                f"{one} ids in {first} and {other} ids in {second}; cast one of them"
            )


def vertex_columns(frame: Any, argument: str) -> list[str]:
    """Name the columns that hold the vertex."""
    columns = [name for name in frame.columns if re.fullmatch(r"(\d+_)?vertex", str(name))]
    if not columns:
        raise ValueError(
            f"{argument} has no column 'vertex'; its columns are {list(frame.columns)}"
        )
    return sorted(columns, key=lambda name: (len(name), name))


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
