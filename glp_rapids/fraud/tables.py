"""Frames of the caller's: the columns of the vertex, numbers, and truth values."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pandas as pd

from glp_rapids.common.checks import errors_named, shown
from glp_rapids.device import DeviceName, any_true, array_module, to_device, to_host
from glp_rapids.frames import kinds
from glp_rapids.graph import id_types
from glp_rapids.graph.vertex_ids import VertexIds

Array = Any


class Table:
    """A frame of the caller's with the columns of the vertex, and others.

    What is made of its rows lies on ``device``. A column that lies there already does not leave it,
    unless it holds nulls or ids have several.
    """

    def __init__(
        self, frame: Any, argument: str, *needed: str, keys: list[str] | None = None,
        device: DeviceName = "cpu",
    ) -> None:  # fmt: skip
        self.argument, self._device = argument, device
        with errors_named(argument):
            inside, proxy = kinds.without_proxy(frame)
        if not hasattr(inside, "columns"):
            raise TypeError(f"{argument} must be a frame, not {shown(frame)}")
        self.frame = inside
        there = Counter(inside.columns)
        if keys is None:
            keys = [name for name in there if name == "vertex"]
            keys = keys or sorted((str(c) for c in there if str(c).endswith("_vertex")), key=_place)
        for name in [*(keys or ["vertex"]), *needed]:
            if there[name] != 1:
                raise ValueError(
                    f"{argument} must have one column {name!r}; there are {list(map(str, there))}"
                )
        cudf = kinds.is_cudf(inside, "DataFrame")
        self.kind = ("cudf.pandas" if proxy else "cudf") if cudf else "pandas"
        self.keys, self.ids = keys, [self._column(name, len(keys) == 1) for name in keys]

    def _column(self, name: str, may_stay: bool = True) -> Any:
        column = self.frame[name]
        stays = may_stay and self._device == "gpu" and kinds.is_cudf(column, "Series")
        return column if stays and not column.has_nulls else on_host(column, self.argument)

    def numbers(self, name: str) -> Array:
        """Return a column of numbers."""
        column = self._column(name)
        if not (pd.api.types.is_numeric_dtype(column.dtype)) or (
            pd.api.types.is_bool_dtype(column.dtype) or pd.api.types.is_complex_dtype(column.dtype)
        ):
            raise TypeError(f"{self.argument}: column {name!r} holds {column.dtype}, not numbers")
        return to_device(_floats(column), self._device)

    def places(self, vertices: VertexIds) -> Array:
        """Return the indices of the rows' vertices, each of which is there once; -1: none."""
        return to_device(_places(self.ids, self.argument, vertices, True), self._device)

    def amounts(self) -> np.ndarray:
        """Return the amounts, which are finite and not negative."""
        amount = self.numbers("amount")
        if not bool(((amount >= 0) & (amount < np.inf)).all()):
            raise ValueError("amounts are null, infinite or negative in some rows; drop those")
        return amount

    def truths(self, name: str) -> np.ndarray:
        """Return a column of truth values, or of 0 and 1."""
        column = on_host(self.frame[name], self.argument)
        if pd.api.types.is_numeric_dtype(column.dtype):
            values = _floats(column)
            if bool(np.isin(values, (0, 1)).all()):
                return values == 1
        raise TypeError(
            f"{self.argument}: column {name!r} holds {column.dtype}, not truth values or 0 and 1"
        )


def places(ids: list[Any], argument: str, vertices: VertexIds, absent: bool = True) -> np.ndarray:
    """Return the indices of ids, given column by column, each of them once; -1: no vertex."""
    return to_host(_places(ids, argument, vertices, absent))


def _places(ids: list[Any], argument: str, vertices: VertexIds, absent: bool) -> Array:
    asked = ids[0] if len(ids) == 1 else pd.DataFrame(dict(enumerate(ids)))
    index = vertices.lookup(asked, argument, absent=absent)
    xp = array_module(index)
    row_of = xp.empty(len(vertices) + 1, dtype=np.int64)  # the last is of -1
    row = xp.arange(index.size)
    row_of[index] = row  # NumPy's unique would sort; one of several rows is what stays
    if any_true((row_of[index] != row) & (index >= 0)):
        raise ValueError(f"{argument} holds a vertex twice; keep one row a vertex")
    return index


def labelled(labels: Any, argument: str, keys: list[str]) -> tuple[list[Any], np.ndarray]:
    """Read ids, column by column, and which of them are fraud: in a list, all."""
    with errors_named(argument):
        inside, _ = kinds.without_proxy(labels)
    if hasattr(inside, "columns"):
        there = list(inside.columns)
        # a frame of nothing but ids needs no names, as for the functions that take a blacklist
        only_ids = len(there) == len(keys) and "fraud" not in there
        named = set(there) == set(keys)
        if "fraud" not in there and set(keys) < set(there):
            raise ValueError(
                f"{argument} has no column 'fraud'; there are {list(map(str, there))}: rename the "
                "one that tells who is fraud, or pass the ids of those who are, and nothing else"
            )
        table = Table(labels, argument, keys=there if only_ids and not named else keys)
        if "fraud" in inside.columns:
            return table.ids, table.truths("fraud")
        return table.ids, np.ones(len(table.ids[0]), dtype=bool)
    if isinstance(inside, dict):
        frame = pd.DataFrame({"fraud": list(inside.values())})
        parts = id_types.split_columns(list(inside), len(keys), argument)
        return labelled(frame.assign(**dict(zip(keys, parts, strict=True))), argument, keys)
    if isinstance(inside, set | frozenset):
        inside = list(inside)
    ids = [on_host(part, argument) for part in id_types.split_columns(inside, len(keys), argument)]
    return ids, np.ones(len(ids[0]), dtype=bool)


def _place(name: str) -> tuple[int, str]:
    return len(name), name


def on_host(column: Any, argument: str) -> Any:
    """Read a column, and bring it to the host."""
    with errors_named(argument):
        return kinds.on_host(kinds.as_column(column, argument))


def _floats(column: Any) -> Array:
    if isinstance(column, pd.Series):
        return column.to_numpy(dtype=np.float64, na_value=np.nan)
    return kinds.to_array(column).astype(np.float64, copy=False)
