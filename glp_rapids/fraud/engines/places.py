"""The vertices of a window on the CPU: their ids, and the places that these have.

Those of the last merge are sorted as a whole; those that came since lie beside them in runs. An id
without transactions keeps its place until the next merge, so that what was noted still names it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import reduce
from typing import NamedTuple

import numpy as np

from glp_rapids.common.cached_property import cached_property
from glp_rapids.fraud import sorted_ids
from glp_rapids.fraud.kernels import matching
from glp_rapids.fraud.kernels.merging import Names
from glp_rapids.fraud.sorted_ids import SortedIds, stacked
from glp_rapids.graph.vertex_ids import VertexIds


class Union(NamedTuple):
    """All ids, sorted: the old ones, and the fresh ones and before which of those they belong."""

    fresh: SortedIds
    before: np.ndarray
    places: np.ndarray
    names: Names
    rank_of_place: np.ndarray

    @property
    def size(self) -> int:
        """The number of ids."""
        return self.places.size


@dataclass(frozen=True)
class Places:
    """Ids and their places, which are numbers below ``capacity``."""

    sorted: SortedIds
    runs: tuple[SortedIds, ...]
    capacity: int
    free: np.ndarray
    used: int = 0  # of those that were free
    # of every place the rank at the last merge, -1: none; and which of those stayed
    ranked: tuple[np.ndarray, np.ndarray] | None = field(default=None, compare=False, repr=False)

    def __getstate__(self) -> dict[str, object]:
        return {**vars(self), "ranked": None}  # `ranks_of` does without, in more time

    @classmethod
    def none(cls, ids: VertexIds, capacity: int) -> Places:
        """Return no ids, of the type of these, and so many places that are free."""
        free = np.arange(capacity, dtype=np.int32)
        return cls(SortedIds(ids, free[:0]), (), capacity, free)

    @property
    def old(self) -> int:
        """The number of ids that were there at the last merge."""
        return len(self.sorted)

    @property
    def fresh(self) -> int:
        """The number of ids that came since."""
        return sum(map(len, self.runs))

    def of_type(self, like: VertexIds) -> Places:
        """Return the same places of ids of another type, which holds them."""
        ids = self.sorted.ids
        if all(
            one.id_dtype == other.id_dtype and one.dtype is other.dtype
            for one, other in zip(ids.columns, like.columns, strict=True)
        ):
            return self
        one, *runs = (run.of_type(like) for run in (self.sorted, *self.runs))
        return replace(self, sorted=one, runs=tuple(runs))

    def known(self, ids: VertexIds) -> np.ndarray:
        """Find the places of ids, -1 of those that have none."""
        ids = sorted_ids.of_type(ids, self.sorted.ids)
        place = np.full(len(ids), -1, dtype=np.int32)
        for run in (self.sorted, *self.runs):
            there, where = sorted_ids.found(run.ids, ids)
            place[there] = run.value[where]
        return place

    def joined(self, ids: VertexIds) -> tuple[Places, np.ndarray]:
        """Give each id a place if it has none, and return all their places."""
        ids = sorted_ids.of_type(ids, self.sorted.ids)
        place = self.known(ids)
        new = np.flatnonzero(place < 0)
        if not new.size:
            return self, place
        again = self.free[self.used : self.used + new.size]
        more = new.size - again.size
        if self.capacity + more > np.iinfo(np.int32).max:
            raise ValueError("a window holds at most 2**31 - 1 vertices; append smaller batches")
        beyond = np.arange(self.capacity, self.capacity + more, dtype=np.int32)
        place[new] = np.concatenate([again, beyond])
        run = SortedIds(ids, place).chosen(new)
        runs = stacked(self.runs, run, sorted_ids.merged, len)
        used, capacity = self.used + again.size, self.capacity + more
        return replace(self, runs=runs, capacity=capacity, used=used), place

    def together(self) -> Union:
        """Sort the ids that came among the others."""
        fresh = SortedIds(self.sorted.ids, self.sorted.value).chosen(np.empty(0, dtype=np.int64))
        fresh = reduce(lambda one, other: sorted_ids.merged(other, one), reversed(self.runs), fresh)
        before = sorted_ids.lower_bound(self.sorted.ids, fresh.ids)
        old, size = self.old, self.old + len(fresh)
        to_union, to_old = np.empty(old, np.int32), np.empty(size, np.int32)
        places = np.empty(size, self.sorted.value.dtype)
        rank = np.full(self.capacity, -1, dtype=np.int32)
        matching.interleave(
            before, self.sorted.value, fresh.value, to_union, to_old, places, rank
        )  # fmt: skip
        return Union(fresh, before, places, Names(to_union, to_old), rank)

    def settled(self, union: Union, inside: np.ndarray) -> Places:
        """Keep some of all ids; what places the others had is free."""
        if inside.size == union.size == self.old:
            return self
        ids = sorted_ids.inserted(self.sorted.ids, union.fresh.ids, union.before, inside)
        places, free = union.places[inside], self.free[self.used :]
        if inside.size < union.size:
            gone = np.ones(union.size, dtype=bool)
            gone[inside] = False
            free = np.sort(np.concatenate([free, union.places[gone]])).astype(np.int32)
        ranked = union.rank_of_place, inside.astype(np.int32)
        return Places(SortedIds(ids, places), (), self.capacity, free, ranked=ranked)

    def ranks(self) -> np.ndarray:
        """Return the rank of the id at every place, -1 where none is; there are no fresh ids."""
        return self._kept_ranks

    @cached_property
    def _kept_ranks(self) -> np.ndarray:
        rank = np.full(self.capacity, -1, dtype=np.int32)
        rank[self.sorted.value] = np.arange(self.old, dtype=np.int32)
        return rank

    def ranks_of(self, places: np.ndarray) -> np.ndarray:
        """Return the ranks of the ids at some places that have any; there are no fresh ids.

        After a merge not all need be ranked for these.
        """
        if self.ranked is None:
            rank = self.ranks()[places]
            return rank[rank >= 0]
        of_union, inside = self.ranked
        before = of_union[places]
        before = before[before >= 0]
        rank = np.searchsorted(inside, before)
        stays = rank < inside.size
        stays[stays] = inside[rank[stays]] == before[stays]
        return rank[stays]
