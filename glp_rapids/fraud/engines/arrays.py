"""A window as arrays that every batch is merged into, on whatever device they are.

All vertices are kept in the order of their ids, and pairs in the order of their vertices. New ids
move the indices of the old ones up but keep their order, so nothing that is sorted is ever sorted
again. A batch costs a few passes over the window.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from glp_rapids.device import DeviceName, any_true, array_module, device_of
from glp_rapids.fraud.decay import Decay
from glp_rapids.fraud.deliveries import contained
from glp_rapids.fraud.engines import ID, Batch, Window
from glp_rapids.fraud.ids import joined, taken
from glp_rapids.fraud.pairs import Pairs, Rows, added_up, merged, subtracted
from glp_rapids.graph.sort_gpu import index_dtype
from glp_rapids.graph.vertex_ids import VertexIds

Array = Any


@dataclass(frozen=True)
class _Held:
    """Transactions, their sums, their vertices; ``changed``: the last change of each vertex."""

    vertices: VertexIds
    rows: Rows
    pairs: Pairs
    changed: Array
    ids: VertexIds | None
    id_time: Array | None  # of the transaction with each id
    epoch: int = 0  # of what pairs count by age

    @property
    def device(self) -> DeviceName:
        return device_of(self.rows.time)


class ArrayEngine:
    """Transactions as arrays; see `glp_rapids.fraud.engines.Engine`."""

    def __init__(
        self, directed: bool, decay: Decay | None = None, held: _Held | None = None,
        version: int = 0,
    ) -> None:  # fmt: skip
        self.directed, self.decay, self.version = directed, decay, version
        self._held = held
        self._window: Window | None = None

    def __len__(self) -> int:
        return 0 if self._held is None else self._held.rows.time.size

    def total(self) -> float:
        return float(self._held.rows.units.sum(dtype=np.float64)) if len(self) else 0.0

    def known(self, batch: Batch, start: int | float) -> Array:
        xp = array_module(batch.rows.time)
        known = xp.zeros(len(batch.ids), dtype=bool)
        if self._held is None:
            return known
        together, old, new = joined(self._held.ids, batch.ids, self._held.device, ID)
        present = xp.zeros(len(together), dtype=bool)
        inside = self._held.id_time > start
        present[slice(None) if old is None else old] = inside
        return present[new]

    def holds(self, batch: Batch) -> bool:
        if self._held is None:
            return False
        _, old, new = joined(self._held.vertices, batch.vertices, self._held.device)
        return contained(batch.rows.renamed(new), self._held.rows.renamed(old))

    def advanced(
        self, batch: Batch | None, start: int | float, length: int | float
    ) -> tuple[ArrayEngine, int, int | float]:
        held = self._held or _nothing(batch, self.directed, self.decay is not None)
        staying, leaving = _split(held.rows, start)
        epoch = 0 if self.decay is None else self.decay.epoch(start + length)
        if batch is None:
            if not leaving.time.size and epoch == held.epoch:
                return self, 0, 0
            batch = _no_rows(held)
        xp = array_module(staying.time)
        together, old_index, new_index = joined(held.vertices, batch.vertices, held.device)
        pairs, number = held.pairs, len(held.vertices)
        if leaving.time.size:
            pairs = subtracted(pairs, self._added_up(leaving, number, held.epoch))
        version = self.version + bool(len(batch) or leaving.time.size)
        changed = xp.zeros(len(together), dtype=np.int64)
        changed[slice(None) if old_index is None else old_index] = held.changed
        fresh, staying = batch.rows.renamed(new_index), staying.renamed(old_index)
        for rows in (fresh, leaving.renamed(old_index)):
            changed[rows.source] = version
            changed[rows.destination] = version
        kept = staying.joined(fresh)
        if epoch == held.epoch:
            joining = self._added_up(fresh, len(together), epoch)
            pairs = merged(pairs.renamed(old_index), joining)
        else:
            pairs = self._added_up(kept, len(together), epoch)
        present = xp.zeros(len(together), dtype=bool)
        present[pairs.row] = True
        present[pairs.column] = True
        if any_true(~present):
            index = (xp.cumsum(present) - 1).astype(np.int32)
            pairs, kept = pairs.renamed(index), kept.renamed(index)
            together, changed = taken(together, xp.flatnonzero(present)), changed[present]
        new = _Held(together, kept, pairs, changed, *_ids_after(held, batch, start), epoch)
        left = float(leaving.units.sum(dtype=np.float64))
        engine = ArrayEngine(self.directed, self.decay, new, version)
        return engine, leaving.time.size, left

    def fading(self, decay: Decay, newest: int | float) -> ArrayEngine:
        epoch, held = decay.epoch(newest), self._held
        new = ArrayEngine(self.directed, decay, held, self.version)
        pairs = new._added_up(held.rows, len(held.vertices), epoch)
        new._held = replace(held, pairs=pairs, epoch=epoch)
        return new

    def _added_up(self, rows: Rows, number: int, epoch: int) -> Pairs:
        counts = None
        if self.decay is not None:
            counts = self.decay.counts(rows.time, rows.units, epoch)
        return added_up(rows, number, self.directed, counts)

    def window(self) -> Window:
        if self._window is None:
            pairs, vertices = self._held.pairs, self._held.vertices
            xp, number = array_module(pairs.key), len(vertices)
            indptr = xp.zeros(number + 1, dtype=np.int64)
            indptr[1:] = xp.cumsum(xp.bincount(pairs.row, minlength=number))
            indices = pairs.column.astype(index_dtype(number))
            sums = pairs.transfers, pairs.units, pairs.faded
            self._window = Window(vertices, indptr, indices, *sums)
        return self._window

    def runs(self) -> Iterator[Rows]:
        yield self._held.rows

    def ids(self) -> tuple[VertexIds, Array] | None:
        return None if self._held.ids is None else (self._held.ids, self._held.id_time)

    def knowing(self, ids: VertexIds, times: Array) -> ArrayEngine:
        held = replace(self._held, ids=ids, id_time=times)
        return ArrayEngine(self.directed, self.decay, held, self.version)

    def places(self) -> None:
        return None

    def changed_since(self, version: int) -> Array:
        changed = self._held.changed
        return array_module(changed).flatnonzero(changed > version)


def _nothing(batch: Batch, directed: bool, fades: bool) -> _Held:
    xp = array_module(batch.rows.time)
    none = xp.arange(0)
    rows = batch.rows[none]
    ids = None if batch.ids is None else taken(batch.ids, none)
    return _Held(
        taken(batch.vertices, none), rows,
        added_up(rows, 0, directed, rows.units if fades else None),
        xp.zeros(0, dtype=np.int64), ids, None if ids is None else rows.time,
    )  # fmt: skip


def _no_rows(held: _Held) -> Batch:
    none = array_module(held.rows.time).arange(0)
    ids = None if held.ids is None else taken(held.ids, none)
    return Batch(held.rows[none], taken(held.vertices, none), ids, none)


def _split(rows: Rows, start: int | float) -> tuple[Rows, Rows]:
    inside = rows.time > start
    if not any_true(~inside):
        return rows, rows[:0]
    xp = array_module(inside)
    return rows[xp.flatnonzero(inside)], rows[xp.flatnonzero(~inside)]


def _ids_after(
    held: _Held, batch: Batch, start: int | float
) -> tuple[VertexIds | None, Array | None]:
    """Return the ids of the transactions that are inside then, and their times."""
    if held.ids is None:
        return None, None
    xp = array_module(held.id_time)
    inside = xp.flatnonzero(held.id_time > start)
    together, old, new = joined(taken(held.ids, inside), batch.ids, held.device, ID)
    time = xp.full(len(together), start, dtype=held.id_time.dtype)
    time[slice(None) if old is None else old] = held.id_time[inside]
    time[new[batch.index]] = batch.rows.time
    inside = xp.flatnonzero(time > start)
    return taken(together, inside), time[inside]
