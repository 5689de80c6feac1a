"""A window on the CPU: rows in buckets of time, and sums that are merged when they are asked for.

A vertex has a place, a number that it keeps as long as it is inside, so no row is ever renamed. A
batch costs what it holds: its ids are looked for among those known, its rows go into their
buckets, old buckets leave as a whole, and what joined and what left is noted. Asked for the sums,
it merges what was noted into those of the last time, in one pass over these; or, if more was noted
than there are rows, it adds up the rows. Places of ids without rows are then given to others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any

import numpy as np

from glp_rapids.fraud import sorted_ids
from glp_rapids.fraud.decay import Decay
from glp_rapids.fraud.deliveries import contained
from glp_rapids.fraud.engines import ID, Batch, Window
from glp_rapids.fraud.engines.places import Places
from glp_rapids.fraud.ids import taken
from glp_rapids.fraud.kernels import merging
from glp_rapids.fraud.pairs import Rows
from glp_rapids.fraud.sorted_ids import SortedIds, stacked
from glp_rapids.graph.build import ordering
from glp_rapids.graph.vertex_ids import VertexIds

BUCKETS = 64  # of a window; what leaves with an append is cut from one
SPARE = 1 << 16  # so much may be noted beside a small window
Buckets = dict[int, tuple[Rows, ...]]


@dataclass(frozen=True)
class _Held:
    """All that a window on the CPU holds. Nothing of it is ever written to."""

    places: Places
    sums: merging.Sums  # by the ranks of the ids that `places` has sorted
    added: tuple[Rows, ...] = ()  # what these sums lack
    left: tuple[Rows, ...] = ()  # what they have too much
    buckets: Buckets = field(default_factory=dict)
    rows: int = 0
    total: int = 0
    origin: float = 0.0  # where bucket 0 begins
    width: float = 1.0
    ids: tuple[SortedIds, ...] = ()  # of transactions, with their times; some have left
    changes: tuple[np.ndarray, ...] = ()  # places and when they changed, in their order
    faded: np.ndarray | None = None  # beside `sums`: what pairs count by age
    epoch: int = 0  # of ages now
    faded_in: int | None = None  # the epoch of `faded`
    spare: list[merging.Sums] = field(default_factory=list)  # at most one: who takes it has it

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "spare": []}

    @property
    def noted(self) -> int:
        return sum(run.time.size for run in (*self.added, *self.left))


class BucketEngine:
    """Transactions in buckets; see `glp_rapids.fraud.engines.Engine`."""

    def __init__(
        self, directed: bool, decay: Decay | None = None, held: _Held | None = None,
        version: int = 0,
    ) -> None:  # fmt: skip
        self.directed, self.decay, self.version = directed, decay, version
        self._held = held

    def __len__(self) -> int:
        return 0 if self._held is None else self._held.rows

    def total(self) -> int:
        return 0 if self._held is None else self._held.total

    def known(self, batch: Batch, start: int | float) -> np.ndarray:
        known = np.zeros(len(batch.ids), dtype=bool)
        for run in () if self._held is None else self._ids_like(batch, start):
            there, place = sorted_ids.found(run.ids, batch.ids)
            known[there] |= run.value[place] > start
        return known

    def holds(self, batch: Batch) -> bool:
        if not len(self):
            return False
        held = self._of_one_type(self._held, batch.vertices)
        rows = batch.rows.renamed(held.places.known(batch.vertices))
        if (rows.source < 0).any() or (rows.destination < 0).any():
            return False
        first, last = _bucket_of(np.array([rows.time.min(), rows.time.max()]), held).tolist()
        near = [runs for key, runs in held.buckets.items() if first <= key <= last]
        near = [run for runs in near for run in runs]
        return bool(near) and contained(rows, reduce(Rows.joined, near))

    def advanced(
        self, batch: Batch | None, start: int | float, length: int | float
    ) -> tuple[BucketEngine, int, int | float]:
        held = self._held
        if batch is not None and (held is None or not held.rows):
            held = _nothing(batch, held, start, length)
        if batch is not None:
            held = self._of_one_type(held, batch.vertices)
        buckets, leaving = _without(held, start)
        expired = sum(run.time.size for run in leaving)
        units = sum(int(run.units.sum()) for run in leaving)
        epoch = 0 if self.decay is None else self.decay.epoch(start + length)
        if batch is None or not len(batch):
            if not leaving:
                if held is not None and held.epoch != epoch:
                    held = replace(held, epoch=epoch)
                return self if held is self._held else self._with(held, self.version), 0, 0
            places, fresh, ids = held.places, [], held.ids
        else:
            places, rows = _taken_in(held.places, batch)
            fresh, ids = [rows], _ids_with(held.ids, batch, start)
            _put(buckets, rows, held)
        version = self.version + 1
        changed = [end for run in (*fresh, *leaving) for end in (run.source, run.destination)]
        joining = sum(run.time.size for run in fresh)
        held = replace(
            held,
            places=places,
            added=_with(held.added, fresh),
            left=_with(held.left, leaving),
            buckets=buckets,
            rows=held.rows + joining - expired,
            total=held.total + sum(int(run.units.sum()) for run in fresh) - units,
            ids=_ids_left(ids, held.rows + joining - expired, start),
            changes=_changes_with(held.changes, changed, version, places.capacity),
            epoch=epoch,
        )
        new = self._with(held, version)
        if held.noted > 2 * held.rows + SPARE or places.fresh > places.old + SPARE:
            new.window()
        return new, expired, units

    def window(self) -> Window:
        held = self._held
        aged = self.decay is not None and held.faded_in != held.epoch
        if held.noted or held.places.fresh or aged:
            self._held = held = _settled(held, self.directed, self.decay)
        return Window(held.places.sorted.ids, *held.sums, held.faded)

    def runs(self) -> Iterator[Rows]:
        self.window()
        rank = self._held.places.ranks()
        for runs in self._held.buckets.values():
            for run in runs:
                yield run.renamed(rank)

    def ids(self) -> tuple[VertexIds, np.ndarray] | None:
        if not self._held.ids:
            return None
        together = _ids_joined(self._held.ids)
        return together.ids, together.value

    def knowing(self, ids: VertexIds, times: np.ndarray) -> BucketEngine:
        return self._with(replace(self._held, ids=(SortedIds(ids, times),)), self.version)

    def fading(self, decay: Decay, newest: int | float) -> BucketEngine:
        held = replace(self._held, epoch=decay.epoch(newest), faded_in=None)
        return BucketEngine(self.directed, decay, held, self.version)

    def places(self) -> np.ndarray:
        self.window()
        return self._held.places.sorted.value

    def changed_since(self, version: int) -> np.ndarray:
        window = self.window()
        here = np.zeros(len(window.vertices), dtype=bool)
        for places, when in self._held.changes:
            here[self._held.places.ranks_of(places[when > version])] = True
        return np.flatnonzero(here)

    def _with(self, held: _Held, version: int) -> BucketEngine:
        return BucketEngine(self.directed, self.decay, held, version)

    def _of_one_type(self, held: _Held, vertices: Any) -> _Held:
        """Let the ids of vertices be of types that hold those of a batch, too."""
        like = sorted_ids.alike(held.places.sorted.ids, vertices)
        if like is None:  # it depends on what ids are inside, and no others
            held = _settled(held, self.directed, self.decay)
            like = sorted_ids.like_joined(held.places.sorted.ids, vertices)
        return replace(held, places=held.places.of_type(like))

    def _ids_like(self, batch: Batch, start: int | float) -> tuple[SortedIds, ...]:
        return _ids_of_type(self._held.ids, batch, start)[0]


def _nothing(batch: Batch, before: _Held | None, start, length) -> _Held:
    """Return a window without rows, whose buckets begin with this batch."""
    capacity, changes = (0, ()) if before is None else (before.places.capacity, before.changes)
    places = Places.none(taken(batch.vertices, np.empty(0, dtype=np.int64)), capacity)
    origin, width = float(start), float(length) / BUCKETS
    return _Held(places, merging.Sums.empty(0), origin=origin, width=width, changes=changes)


def _bucket_of(time: np.ndarray, held: _Held) -> np.ndarray:
    # each step ascends with the time, so a bucket's rows are later than those of the one before
    key = np.floor((time.astype(np.float64) - held.origin) / held.width)
    return np.clip(key, -(2.0**62), 2.0**62).astype(np.int64)


def _put(buckets: Buckets, rows: Rows, held: _Held) -> None:
    key = _bucket_of(rows.time, held)
    first = key.min()
    if first == key.max():
        parts = [(int(first), rows)]
    else:
        # few and small, so sorting them is counting them
        key = (key - first).astype(np.uint16 if key.max() - first < 2**16 else np.int64)
        order = np.argsort(key, kind="stable")
        ends = np.flatnonzero(np.diff(key[order])) + 1
        parts = [(int(first + key[part[0]]), rows[part]) for part in np.split(order, ends)]
    for number, part in parts:
        buckets[number] = _with(buckets.get(number, ()), [part])


def _without(held: _Held, start: int | float) -> tuple[Buckets, list[Rows]]:
    """Return the buckets without rows that are not later than ``start``, and these."""
    if not held.rows:
        return {}, []
    border = int(_bucket_of(np.array([start]), held)[0])
    staying, leaving = {}, []
    for number, runs in held.buckets.items():
        if number > border:
            staying[number] = runs
        elif number < border:
            leaving += runs
        else:
            inside = [run.time > start for run in runs]
            if all(mask.all() for mask in inside):
                staying[number] = runs
                continue
            pairs = list(zip(runs, inside, strict=True))
            leaving += [run[~mask] for run, mask in pairs if not mask.all()]
            if kept := [run[mask] for run, mask in pairs if mask.any()]:
                staying[number] = tuple(kept)
    return staying, leaving


def _size(run: Rows) -> int:
    return run.time.size


def _with(runs: tuple[Rows, ...], more: Iterable[Rows]) -> tuple[Rows, ...]:
    for run in more:
        runs = stacked(runs, run, Rows.joined, _size)
    return runs


def _taken_in(places: Places, batch: Batch) -> tuple[Places, Rows]:
    """Give every vertex of a batch that has rows a place."""
    vertices, rows = batch.vertices, batch.rows
    used = np.zeros(len(vertices), dtype=bool)
    used[rows.source] = True
    used[rows.destination] = True
    if not used.all():
        vertices = taken(vertices, np.flatnonzero(used))
        rows = rows.renamed((np.cumsum(used) - 1).astype(np.int32))
    places, place = places.joined(vertices)
    return places, rows.renamed(place)


def _ids_of_type(ids, batch, start):
    """Bring ids of transactions and those of a batch to one type."""
    if not ids:
        return ids, batch.ids
    like = sorted_ids.alike(ids[0].ids, batch.ids)
    if like is None:
        inside = _ids_joined(ids)
        inside = inside.chosen(np.flatnonzero(inside.value > start))
        like = sorted_ids.like_joined(inside.ids, batch.ids, ID)
        ids = (inside,)
    return tuple(run.of_type(like) for run in ids), sorted_ids.of_type(batch.ids, like)


def _ids_joined(runs: tuple[SortedIds, ...]) -> SortedIds:
    return reduce(lambda one, other: sorted_ids.merged(other, one), reversed(runs))


def _ids_with(runs, batch, start):
    if batch.ids is None:
        return runs
    runs, ids = _ids_of_type(runs, batch, start)
    time = np.full(len(ids), start, dtype=batch.rows.time.dtype)
    time[batch.index] = batch.rows.time
    inside = np.flatnonzero(time > start)  # rows that were not taken are forgotten
    run = SortedIds(ids, time).chosen(inside)
    return stacked(runs, run, sorted_ids.merged, len)


def _ids_left(runs, rows, start):
    if sum(map(len, runs)) <= 2 * rows + SPARE:
        return runs
    together = _ids_joined(runs)
    return (together.chosen(np.flatnonzero(together.value > start)),)


def _changes_with(changes, ends, version, capacity):
    """Note which places changed, each once; of older changes the last of each is enough."""
    size = sum(end.size for end in ends)
    if 8 * size > capacity:
        there = np.zeros(capacity, dtype=bool)
        for end in ends:
            there[end] = True
        places = np.flatnonzero(there)
    else:
        places = np.unique(np.concatenate(ends))
    run = np.stack([places.astype(np.int64), np.full(places.size, version)])
    changes = stacked(changes, run, _changes_joined, lambda run: run.shape[1])
    if sum(run.shape[1] for run in changes) <= 4 * capacity + SPARE:
        return changes
    return (_last_changes(reduce(_changes_joined, changes), capacity),)


def _changes_joined(one, other):
    return np.concatenate([one, other], axis=1)


def _last_changes(changes, capacity):
    last = np.zeros(max(capacity, int(changes[0].max()) + 1), dtype=np.int64)
    np.maximum.at(last, changes[0], changes[1])
    places = np.flatnonzero(last)
    return np.stack([places, last[places]])


def _settled(held: _Held, directed: bool, decay: Decay | None) -> _Held:
    """Merge what was noted into the sums, and forget the vertices without rows."""
    sums, added, left, faded = held.sums, held.added, held.left, held.faded
    aged = decay is not None and held.faded_in != held.epoch
    if held.noted > held.rows or aged:
        sums, faded = merging.Sums.empty(held.places.old), np.empty(0, dtype=np.int64)
        added, left = tuple(run for runs in held.buckets.values() for run in runs), ()
    union = held.places.together()
    rank = union.rank_of_place
    runs = (*added, *left)
    source, destination, units = (
        np.concatenate([getattr(run, name) for run in runs] or [np.empty(0, dtype=dtype)])
        for name, dtype in (("source", np.int32), ("destination", np.int32), ("units", np.int64))
    )
    entries = ordering(source).sorted_entries(
        rank[source], rank[destination], union.size, not directed
    )
    number = sum(run.time.size for run in added)
    entries = merging.Entries(*entries, units, number)
    aging = None
    if decay is not None:
        counts = [decay.counts(run.time, run.units, held.epoch) for run in runs]
        aging = merging.Faded(faded, np.concatenate([np.empty(0, dtype=np.int64), *counts]))
    sums, inside, faded = merging.merged(sums, entries, union.names, directed, held.spare, aging)
    places = held.places.settled(union, inside)
    return replace(held, places=places, sums=sums, added=(), left=(), spare=[held.sums],
                   faded=faded, faded_in=held.epoch)  # fmt: skip
