"""Read the columns of frames of any kind: which hold the vertex, and labels as integers."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd

from glp_rapids.device import array_module


def is_frame(value: Any) -> bool:
    """Tell a data frame from a series, an array or a list."""
    return hasattr(value, "columns") or hasattr(value, "column_names")


def as_frame(value: Any, argument: str) -> Any:
    """Take a pandas or cuDF frame as it is and turn an Arrow table into a pandas one."""
    if not is_frame(value):
        raise TypeError(
            f"{argument} must be a frame with the columns 'vertex' and 'partition', "
            f"not {type(value).__name__}"
        )
    frame = value if hasattr(value, "merge") else value.to_pandas()
    if "partition" not in frame.columns:
        raise ValueError(
            f"{argument} has no column 'partition'; its columns are {list(frame.columns)}"
        )
    return frame


def same_kind(a: Any, b: Any) -> tuple[Any, Any]:
    """Bring a cuDF frame to the host when the other is a pandas one."""
    if hasattr(a, "to_pandas") != hasattr(b, "to_pandas"):
        return tuple(x.to_pandas() if hasattr(x, "to_pandas") else x for x in (a, b))
    return a, b


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
    if not hasattr(labels, "factorize") and array_module(labels) is np:
        labels = np.asarray(labels)
        if labels.ndim != 1:
            raise ValueError(f"{argument} must be one-dimensional, not of shape {labels.shape}")
        labels = pd.Series(labels)
    if hasattr(labels, "factorize"):
        codes, _ = labels.factorize()
        null = bool((codes < 0).any())
    else:
        xp = array_module(labels)
        null = labels.dtype.kind == "f" and bool(xp.isnan(labels).any())
        _, codes = xp.unique(labels, return_inverse=True)
    if null:
        raise ValueError(f"{argument} holds a null label; drop those rows or give them a label")
    return codes.astype("int64")


def some(ids: Any) -> str:
    """Write out a few ids for a message."""
    if hasattr(ids, "to_pandas"):
        ids = ids.to_pandas()
    if getattr(ids, "ndim", 1) == 2:
        ids = np.asarray(ids)[:, 0] if ids.shape[1] == 1 else np.asarray(ids)
    ids = ids if hasattr(ids, "tolist") else np.asarray(ids)
    return ", ".join(map(repr, ids.tolist()))
