"""The ids of a window's vertices: some of them kept, and those of a batch taken in."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from glp_rapids.common.segments import segment_offsets
from glp_rapids.device import DeviceName, array_module, to_device
from glp_rapids.frames import kinds
from glp_rapids.graph.sort_gpu import index_dtype
from glp_rapids.graph.vertex_ids import IdColumn, VertexIds
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

    The index of the old ones is None if it would change nothing. ``label``: which ids of the window
    the old ones are, and of a batch the new ones, for messages.
    """
    if _can_be_merged(old, new, device):
        return _merged(old, new)
    parts = [[column.values for column in vertices.columns] for vertices in (old, new)]
    labels = [[f"the {whose} ({label})"] * len(parts[0]) for whose in ("window", "batch")]
    codes, together = rank_ids(parts, labels, old.kind, device)
    columns = []
    for column, one, other in zip(together.columns, old.columns, new.columns, strict=True):
        dtype = one.dtype if one.dtype == other.dtype or not len(new) else None
        dtype = other.dtype if not len(old) else dtype
        columns.append(replace(column, dtype=dtype))
    union = VertexIds(tuple(columns), old.kind)
    return union, None if len(union) == len(old) else codes[0], codes[1]


def places_in(
    held: VertexIds, asked: VertexIds, device: DeviceName, label: str = "source and destination"
) -> Array:
    """Find ids among others: where each is there, -1 if it is not."""
    found = places_of_integers(held, asked)
    if found is not None:
        return found
    together, old, new = joined(held, asked, device, label)
    xp = array_module(new)
    place = xp.full(max(len(together), 1), -1, dtype=np.int64)
    place[slice(len(held)) if old is None else old] = xp.arange(len(held))
    return place[new]


def places_of_integers(held: VertexIds, asked: VertexIds) -> Array | None:
    """Find ids as `places_in`, on the device of those held; None: not integers of one type."""
    if not _same_integers(held, asked) or not len(held):
        return None
    one, other = held.columns[0], asked.columns[0]
    values, wanted = one.values, to_device(other.values, one.device)
    xp = array_module(values)
    place = xp.minimum(xp.searchsorted(values, wanted), values.size - 1)
    return xp.where(values[place] == wanted, place, -1)


def _can_be_merged(old: VertexIds, new: VertexIds, device: DeviceName) -> bool:
    """Tell whether both are integers of one column and one type, and lie there."""
    if not _same_integers(old, new) or not len(old) or not len(new):
        return False
    return old.columns[0].device == new.columns[0].device == device


def _same_integers(*lists: VertexIds) -> bool:
    """Tell whether all are integers of one column and one type."""
    columns = [column for vertices in lists for column in vertices.columns]
    whole = all(column.family == "integer" for column in columns)
    return len(columns) == len(lists) and whole and len({one.id_dtype for one in columns}) == 1


def _merged(old: VertexIds, new: VertexIds) -> tuple[VertexIds, Array | None, Array]:
    """Merge sorted integers."""
    one, other = old.columns[0], new.columns[0]
    values, asked = one.values, other.values
    index, new_index, size = merged_places(values, asked)
    code = index_dtype(size)
    dtype = one.dtype if one.dtype == other.dtype else None
    new_index, together = new_index.astype(code), values
    if index is not None:
        index = index.astype(code)
        together = array_module(values).empty(size, values.dtype)
        together[index], together[new_index] = values, asked
    return VertexIds((IdColumn(together, "integer", dtype),), old.kind), index, new_index


def merged_places(one: Array, other: Array) -> tuple[Array | None, Array, int]:
    """Merge ascending lists of distinct numbers: where those of each go, and how many there are.

    Those of the second are looked for, and what is new moves the others up. None: all of the first
    stay where they are.
    """
    xp = array_module(one)
    if xp is not np:
        # Numba takes longer to import than a small batch takes
        from glp_rapids.fraud.kernels import gpu_transactions

        return gpu_transactions.merged_places(one, other)
    place, fresh = xp.searchsorted(one, other), xp.ones(other.size, dtype=bool)
    if one.size:
        fresh = one[xp.minimum(place, one.size - 1)] != other
    # how many are new before each of the second: since both ascend, these come before it
    before = segment_offsets(fresh)
    size = one.size + int(before[-1])
    if size == one.size:
        return None, place, size
    own = xp.arange(one.size)
    index = own + before[xp.searchsorted(place, own, side="right")]
    return index, place + before[:-1], size
