"""What names a partition: which columns hold the vertex, dicts and sets, labels as integers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Set, ValuesView
from itertools import chain
from typing import Any

import numpy as np
import pandas as pd

from glp_rapids.common.checks import errors_named, shown
from glp_rapids.device import any_true, array_module
from glp_rapids.frames import foreign, kinds


def is_frame(value: Any) -> bool:
    """Tell a data frame from a series, an array or a list."""
    return foreign.library_of_frame(value) is not None or hasattr(value, "columns")


def names_vertices(value: Any) -> bool:
    """Tell what says to whom each label belongs from labels that stand one beside another."""
    return is_frame(value) or isinstance(value, Mapping) or _is_of_sets(value)


def _is_of_sets(value: Any, community: Any = Set) -> bool:
    """Tell communities from labels by the first one."""
    several = isinstance(value, list | tuple | Set | ValuesView)
    return several and isinstance(next(iter(value), None), community)


def kept(value: Any) -> Any:
    """Return a list in the place of what can be read only once, and anything else as it is."""
    return list(value) if isinstance(value, Iterator) else value


def as_frame(value: Any, argument: str) -> Any:
    """Read the vertices and their ``partition`` into a frame of pandas or cuDF."""
    columns = read_columns(value, argument)
    kind = "cudf" if any(kinds.is_cudf(one, "Series") for one in columns.values()) else "pandas"
    return kinds.to_frame(columns, kind, copy=False)  # only read


def read_columns(value: Any, argument: str, one_label: bool = True) -> dict[str, kinds.Column]:
    """Read the columns of the vertices and their ``partition``.

    They are those of a frame, a dict of vertices and communities, or the communities as sets.
    ``one_label``: communities that are ids of several columns get an integer each.
    """
    value = kept(value)
    if isinstance(value, Mapping):
        columns = _named(list(value), list(value.values()), argument)
    elif _is_of_sets(value, Set | list) or (isinstance(value, list | tuple) and not value):
        columns = _of_sets(value, argument)
    elif is_frame(value):
        columns = columns_of(value, argument, of_ids=True)
        if one_label:
            columns = _with_one_label(columns, argument)
    else:
        raise TypeError(
            f"{argument} must be a frame with the columns 'vertex' and 'partition', a dict of "
            f"vertices and communities or a list of sets of vertices, not {_described(value)}"
        )
    return columns


def _with_one_label(columns: dict[str, kinds.Column], argument: str) -> dict[str, kinds.Column]:
    """Name communities that are ids of several columns by one integer each."""
    names = numbered_columns(columns, "partition")
    if names == ["partition"]:
        return columns
    codes = label_codes(columns.pop(names[0]), argument)
    for name in names[1:]:
        more = label_codes(columns.pop(name), argument)
        size = int(more.max()) + 1 if more.size else 1
        codes = label_codes(codes * size + more, argument)  # fewer than rows: no product overflows
    return {**columns, "partition": kinds.as_column(codes, argument)}


def _of_sets(communities: Iterable[Set], argument: str) -> dict[str, kinds.Column]:
    """Number the communities in their order."""
    for number, members in enumerate(communities):
        if not isinstance(members, Set | list):
            raise TypeError(
                f"{argument}: every community must be a set or list of vertices, but number "
                f"{number} is {shown(members)}"
            )
    sizes = [len(members) for members in communities]
    labels = np.repeat(np.arange(len(sizes)), sizes)
    return _named(list(chain.from_iterable(communities)), labels, argument)


def _named(vertices: list, labels: Any, argument: str) -> dict[str, kinds.Column]:
    """Turn vertices and their labels into the columns of a frame."""
    return {
        "vertex": kinds.as_column(vertices, f"{argument}: its vertices"),
        "partition": kinds.as_column(labels, f"{argument}: its communities"),
    }


def columns_of(
    value: Any, argument: str, further: tuple[str, ...] = (), of_ids: bool = False
) -> dict[str, kinds.Column]:
    """Read the columns of the vertex, then ``partition``, then those named in ``further``.

    ``of_ids``: a partition may be an id of several columns, ``0_partition``, ``1_partition``, ...
    """
    if not is_frame(value):
        raise TypeError(
            f"{argument} must be a frame with the columns 'vertex' and 'partition', "
            f"not {_described(value)}"
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
        others = [name for name in there if name not in wanted]
        mend = ""
        if missing == ["partition"] and len(others) == 1:
            mend = f"; if that is {others[0]!r}, rename it, {{{others[0]!r}: 'partition'}}"
        raise ValueError(
            f"{argument} has no column {missing[0]!r}; its columns are {list(there)}{mend}"
        )
    if repeated := [name for name in wanted if there[name] > 1]:
        raise ValueError(f"{argument} has several columns named {repeated[0]!r}")
    return {
        name: kinds.as_column(value[name], f"{argument}: the column {name!r}") for name in wanted
    }


def _described(value: Any) -> str:
    """Say what was given in the place of a frame, and what to give."""
    name = type(value).__name__
    if isinstance(value, tuple) and value and is_frame(value[0]):
        return f"{name}; pass the frame in it, as the first of what leiden and louvain return"
    if isinstance(value, pd.Series) or kinds.is_cudf(value, "Series"):
        return f"{name}; of labels by vertex, pass dict(series)"
    return name


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
        null = any_true(codes < 0)
    else:
        xp = array_module(labels)
        null = labels.dtype.kind == "f" and any_true(xp.isnan(labels))
        _, codes = xp.unique(labels, return_inverse=True)
    if null:
        raise ValueError(f"{argument} holds a null label; drop those rows or give them a label")
    return codes.astype("int64")
