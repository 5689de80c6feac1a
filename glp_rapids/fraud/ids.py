"""The ids of a window's vertices: some of them kept, and those of a batch taken in."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from glp_rapids.device import DeviceName, to_device
from glp_rapids.frames import kinds
from glp_rapids.graph.vertex_ids import VertexIds
from glp_rapids.ingest.rank import rank_ids

Array = Any


def taken(vertices: VertexIds, index: Array) -> VertexIds:
    """Return the ids at ``index``, which ascends."""
    columns = []
    for column in vertices.columns:
        values = column.values
        if column.family == "integer":
            values = values[index]
        else:
            place = "gpu" if kinds.is_cudf(values, "Series") else "cpu"
            values = kinds.taken(values, to_device(index, place))
        columns.append(replace(column, values=values, _kept={}))
    return VertexIds(tuple(columns), vertices.kind)


def joined(
    old: VertexIds, new: VertexIds, device: DeviceName, label: str = "source and destination"
):
    """Return the union of two sets of ids, and the ascending index there of the old and the new.

    The index of the old ones is None if it would change nothing. ``label``: of whose ids, for
    messages.
    """
    parts = [[column.values for column in vertices.columns] for vertices in (old, new)]
    codes, together = rank_ids(parts, [[label] * len(parts[0])] * 2, old.kind, device)
    columns = []
    for column, one, other in zip(together.columns, old.columns, new.columns, strict=True):
        dtype = one.dtype if one.dtype == other.dtype or not len(new) else None
        dtype = other.dtype if not len(old) else dtype
        columns.append(replace(column, dtype=dtype))
    union = VertexIds(tuple(columns), old.kind)
    return union, None if len(union) == len(old) else codes[0], codes[1]
