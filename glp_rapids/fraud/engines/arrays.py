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

from glp_rapids.common.scans import places_where
from glp_rapids.device import DeviceName, any_true, array_module, device_of, to_host
from glp_rapids.fraud.decay import Decay
from glp_rapids.fraud.deliveries import contained
from glp_rapids.fraud.engines import ID, Batch, Window
from glp_rapids.fraud.ids import joined, places_in, taken
from glp_rapids.fraud.pairs import Pairs, Rows, added_up, merged, on_gpu, subtracted
from glp_rapids.graph.sort_gpu import index_dtype
from glp_rapids.graph.vertex_ids import VertexIds

Array = Any
WAITING = 16  # batches, beyond which they are merged though nobody asks


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


@dataclass(frozen=True)
class _Came:
    """A batch that is not merged yet, and the change that brought it.

    All rows that are not later than ``start`` had left then. Without a batch, some only left.
    """

    batch: Batch | None
    start: int | float
    version: int


class ArrayEngine:
    """Transactions as arrays; see `glp_rapids.fraud.engines.Engine`.

    ``size``, ``units``: of all rows, those that are not merged among them.
    """

    def __init__(
        self, directed: bool, decay: Decay | None = None, held: _Held | None = None,
        version: int = 0, epoch: int = 0, came: tuple[_Came, ...] = (), size: int = 0,
        units: int = 0,
    ) -> None:  # fmt: skip
        self.directed, self.decay, self.version = directed, decay, version
        self._epoch = epoch
        # one after the other, so that another thread never sees merged and unmerged twice
        self._parts: tuple[_Held | None, tuple[_Came, ...]] = held, came
        self._size, self._units = size, units
        self._window: Window | None = None

    def __len__(self) -> int:
        return self._size

    def total(self) -> int:
        return self._units

    def known(self, batch: Batch, start: int | float) -> Array:
        xp = array_module(batch.rows.time)
        known = xp.zeros(len(batch.ids), dtype=bool)
        held = self._settled()
        if held is None:
            return known
        place = places_in(held.ids, batch.ids, held.device, ID)
        there = places_where(place >= 0)
        known[there] = held.id_time[place[there]] > start
        return known

    def holds(self, batch: Batch) -> bool:
        held = self._settled()
        if held is None:
            return False
        _, old, new = joined(held.vertices, batch.vertices, held.device)
        return contained(batch.rows.renamed(new), held.rows.renamed(old))

    def advanced(
        self, batch: Batch | None, start: int | float, length: int | float
    ) -> tuple[ArrayEngine, int, int | float]:
        held, came = self._parts
        before = came[-1].start if came else None
        runs = [] if held is None else [held.rows]
        runs += [one.batch.rows for one in came if one.batch is not None]
        expired, units = _between(runs, before, start)
        epoch = 0 if self.decay is None else self.decay.epoch(start + length)
        joining = 0 if batch is None else len(batch)
        if not joining and not expired and batch is None and epoch == self._epoch:
            return self, 0, 0
        version = self.version + bool(joining or expired)
        came = (*came, _Came(batch, start, version))
        size = self._size + joining - expired
        worth = self._units - units + (int(batch.rows.units.sum()) if joining else 0)
        new = ArrayEngine(self.directed, self.decay, held, version, epoch, came, size, worth)
        waiting = sum(len(one.batch) for one in came if one.batch is not None)
        # ids of transactions are looked for in one list; and what waits is read again and again
        if held is None or (batch is not None and batch.ids is not None) or (
            len(came) > WAITING or 4 * waiting > size
        ):
            new._settled()
        return new, expired, units

    def _settled(self) -> _Held | None:
        """Merge what came since the last time."""
        held, came = self._parts
        if came:
            held = self._merged(held, came)
            self._parts = held, ()
        return held

    def _merged(self, held: _Held | None, came: tuple[_Came, ...]) -> _Held:
        batch = _together([one.batch for one in came if one.batch is not None], self._device)
        start, versions = came[-1].start, [one.version for one in came]
        if held is None:
            held = _nothing(batch, self.directed, self.decay is not None)
        if batch is None:
            batch = _no_rows(held)
        xp = array_module(held.rows.time)
        staying, leaving = _split(held.rows, start)
        together, old_index, new_index = joined(held.vertices, batch.vertices, held.device)
        pairs, number = held.pairs, len(held.vertices)
        if leaving.time.size:
            pairs = subtracted(pairs, self._added_up(leaving, number, held.epoch))
        changed = xp.zeros(len(together), dtype=np.int64)
        changed[slice(None) if old_index is None else old_index] = held.changed
        sizes = [0 if one.batch is None else len(one.batch) for one in came]
        joined_in = xp.asarray(np.repeat(np.arange(len(came)), sizes))
        starts = xp.asarray(np.array([one.start for one in came]))
        every, gone = batch.rows.renamed(new_index), leaving.renamed(old_index)
        fresh, passing = _split(every, start)
        for rows, number in (
            (every, joined_in),
            (gone, xp.searchsorted(starts, gone.time)),
            (passing, xp.searchsorted(starts, passing.time)),
        ):
            _note(changed, rows, number, versions)
        kept = staying.renamed(old_index).joined(fresh)
        if self._epoch == held.epoch:
            joining = self._added_up(fresh, len(together), self._epoch)
            pairs = merged(pairs.renamed(old_index), joining)
        else:
            pairs = self._added_up(kept, len(together), self._epoch)
        present = xp.zeros(len(together), dtype=bool)
        present[pairs.row] = True
        present[pairs.column] = True
        if any_true(~present):
            index = (xp.cumsum(present) - 1).astype(np.int32)
            pairs, kept = pairs.renamed(index), kept.renamed(index)
            together, changed = taken(together, places_where(present)), changed[present]
        return _Held(
            together, kept, pairs, changed, *_ids_after(held, batch, start), self._epoch
        )

    @property
    def _device(self) -> DeviceName:
        held, came = self._parts
        some = held.rows if held is not None else came[0].batch.rows
        return device_of(some.time)

    def fading(self, decay: Decay, newest: int | float) -> ArrayEngine:
        held = self._settled()
        new = self._with(held)
        new.decay, new._epoch = decay, decay.epoch(newest)
        pairs = new._added_up(held.rows, len(held.vertices), new._epoch)
        new._parts = replace(held, pairs=pairs, epoch=new._epoch), ()
        return new

    def _with(self, held: _Held) -> ArrayEngine:
        facts = self.directed, self.decay, held, self.version, self._epoch, ()
        return ArrayEngine(*facts, self._size, self._units)

    def _added_up(self, rows: Rows, number: int, epoch: int) -> Pairs:
        counts = None
        if self.decay is not None:
            counts = self.decay.counts(rows.time, rows.units, epoch)
        return added_up(rows, number, self.directed, counts)

    def window(self) -> Window:
        if self._window is None:
            held = self._settled()
            pairs, vertices = held.pairs, held.vertices
            xp, number = array_module(pairs.key), len(vertices)
            rows = xp.arange(number + 1, dtype=np.int64) << np.int64(32)
            indptr = xp.searchsorted(pairs.key, rows).astype(np.int64)
            indices = pairs.column.astype(index_dtype(number))
            sums = pairs.transfers, pairs.units, pairs.faded
            self._window = Window(vertices, indptr, indices, *sums)
        return self._window

    def runs(self) -> Iterator[Rows]:
        yield self._settled().rows

    def ids(self) -> tuple[VertexIds, Array] | None:
        held = self._settled()
        return None if held.ids is None else (held.ids, held.id_time)

    def knowing(self, ids: VertexIds, times: Array) -> ArrayEngine:
        return self._with(replace(self._settled(), ids=ids, id_time=times))

    def places(self) -> None:
        return None

    def changed_since(self, version: int) -> Array:
        changed = self._settled().changed
        return places_where(changed > version)


def _between(
    runs: list[Rows], after: int | float | None, until: int | float
) -> tuple[int, int]:
    """Count rows, and add up their units, of times that are later than one and not than another."""
    number = units = 0
    for rows in runs:
        if not rows.time.size:
            continue
        xp = array_module(rows.time)
        there = rows.time <= until
        if after is not None:
            there &= rows.time > after
        # sums of 64 bits, for which CuPy compiles nothing; one wait for both
        sums = there.astype(np.int64).sum(), xp.where(there, rows.units, 0).sum()
        one, other = to_host(xp.stack(sums)).tolist()
        number, units = number + one, units + other
    return number, units


def _together(batches: list[Batch], device: DeviceName) -> Batch | None:
    """Make one batch of several, in their order; those with ids of transactions come alone."""
    if not batches:
        return None
    first, *others = batches
    for other in others:
        vertices, old, new = joined(first.vertices, other.vertices, device)
        rows = first.rows.renamed(old).joined(other.rows.renamed(new))
        first = Batch(rows, vertices)
    return first


def _note(changed: Array, rows: Rows, number: Array, versions: list[int]) -> None:
    """Note the version at which something became of the ends of rows, the last if several did."""
    xp = array_module(changed)
    if xp is not np:
        on_gpu().note(rows.source, rows.destination, number, xp.asarray(versions), changed)
        return
    for i, version in enumerate(versions) if rows.time.size else ():
        some = slice(None) if len(versions) == 1 else places_where(number == i)
        for end in (rows.source[some], rows.destination[some]):
            changed[end] = np.maximum(changed[end], version)


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
    leaving = places_where(~inside)
    return (rows[places_where(inside)] if leaving.size else rows), rows[leaving]


def _ids_after(
    held: _Held, batch: Batch, start: int | float
) -> tuple[VertexIds | None, Array | None]:
    """Return the ids of the transactions that are inside then, and their times."""
    if held.ids is None:
        return None, None
    xp = array_module(held.id_time)
    together, old, new = joined(held.ids, batch.ids, held.device, ID)
    time = xp.full(len(together), start, dtype=held.id_time.dtype)
    time[slice(None) if old is None else old] = held.id_time
    time[new[batch.index]] = batch.rows.time
    inside = places_where(time > start)
    return taken(together, inside), time[inside]
