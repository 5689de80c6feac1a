"""What a monitor knows from tick to tick, and how that of one is found again in the next."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from glp_rapids.common.scans import places_where
from glp_rapids.device import array_module, device_of, to_device, to_host
from glp_rapids.frames import kinds
from glp_rapids.frames.kinds import Column, Kind
from glp_rapids.fraud import sorted_ids
from glp_rapids.fraud.clusters import Clusters
from glp_rapids.fraud.engines import Batch
from glp_rapids.fraud.ids import places_in, taken
from glp_rapids.fraud.moved import moved
from glp_rapids.fraud.names import Register, carried
from glp_rapids.fraud.parts import Parts
from glp_rapids.fraud.seeds import Blacklists
from glp_rapids.graph.graph import Graph
from glp_rapids.graph.vertex_ids import VertexIds

Array = Any
NOISE = 2  # scores that are each within tol may differ by so many for no reason


class State(NamedTuple):
    """All of a monitor that changes; replaced as a whole."""

    tick: int = 0
    seeds: Blacklists = {}  # noqa: RUF012  (never written to)
    good: VertexIds | None = None
    merchants: VertexIds | None = None
    mark: int = 0  # of the window, when it was last looked at
    vertices: VertexIds | None = None
    places: Array | None = None  # see `engines.Engine.places`
    scores: Parts | None = None
    period: int = 0  # of length `refresh`, in which scores were last computed from nothing
    epoch: int = 0  # of what transactions count by age
    register: Register = Register()


class Delivery(NamedTuple):
    """What a tick is given, read and checked; a batch is None if there is none."""

    batch: Batch | None = None
    kind: Kind | None = None
    times: str | None = None
    add: Blacklists = {}  # noqa: RUF012  (never written to)
    drop: VertexIds | None = None
    merchants: VertexIds | None = None


def index_since(
    before: tuple[VertexIds, Array | None], now: tuple[VertexIds, Array | None], touched: Array
) -> Array | None:
    """Find where the vertices of before are now, -1 for those that have left; None: all stayed.

    ``before``, ``now``: vertices and their places (see `engines.Engine.places`). ``touched``: the
    vertices of now that are others than they were, all that have come among them.
    """
    (old, old_places), (new, new_places) = before, now
    if old is new:
        return None
    if not _holds(new, old):  # the window has been empty meanwhile
        return array_module(touched).full(len(old), -1, dtype=np.int64)
    if old_places is None or new_places is None:
        return places_in(new, old, device_of(touched))
    if len(old.columns) == 1 and old.columns[0].family == "integer":
        # Numba takes longer to import than a small graph takes to build
        from glp_rapids.fraud.kernels.matching import places_of

        place, values = np.empty(len(old), np.int64), new.columns[0].values
        places_of(old.columns[0].values.astype(values.dtype, copy=False), values, place)
        return place
    size = max(int(places.max(initial=-1)) for places in (old_places, new_places)) + 1
    rank, former = np.full(size, -1, dtype=np.int64), np.full(size, -1, dtype=np.int64)
    rank[new_places] = np.arange(new_places.size)
    former[old_places] = np.arange(old_places.size)
    place = rank[old_places]
    # who has come may have the place of somebody who has left
    index = former[new_places[touched]]
    index, touched = index[index >= 0], touched[index >= 0]
    others = np.zeros(index.size, dtype=bool)
    for one, other in zip(old.columns, new.columns, strict=True):
        others |= np.asarray(one.at(index) != other.at(touched), dtype=bool)
    place[index[others]] = -1
    # and who has left and come again has another
    came = np.ones(len(new), dtype=bool)
    came[place[place >= 0]] = False
    came = np.flatnonzero(came)
    there, former = sorted_ids.found(sorted_ids.of_type(old, new), taken(new, came))
    place[former] = came[there]
    return place


def score_changes(
    before: Parts | None, place: Array | None, now: Parts, tol: float
) -> tuple[Array, Array]:
    """Mark the accounts whose scores have changed; return all their former scores, too."""
    score = now.scores
    xp = array_module(score)
    if before is None:
        previous = xp.zeros(score.size)
    elif place is None:
        previous = before.scores
    else:
        previous = moved(before.scores, place, score.size)
    apart = xp.abs(score - previous)
    changed = apart > NOISE * tol
    few = places_where(changed)
    changed[few] = apart[few] > NOISE * tol * now.states[0].system.times_as_far(few)
    return changed, previous


def _holds(ids: VertexIds, others: VertexIds) -> bool:
    """Tell whether the types of ids hold all values of those of others."""
    return all(
        one.family == other.family
        and (one.family != "integer" or np.can_cast(other.id_dtype, one.id_dtype))
        for one, other in zip(ids.columns, others.columns, strict=True)
    )


class Laps:
    """Seconds by stage."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._last = time.perf_counter()

    def lap(self, stage: str) -> None:
        """Note how long it took since the last stage."""
        now = time.perf_counter()
        self.seconds[stage] = now - self._last
        self._last = now


def named(
    state: State, graph: Graph, found: Clusters
) -> tuple[State, VertexIds, dict[str, list]]:
    """Name the clusters that were found after those of the tick before; give members' ids, too."""
    member = to_device(found.member, graph.device)
    ids = replace(graph.vertices, columns=tuple(
        replace(one, values=_on_host(one.at(member)), _kept={}) for one in graph.vertices.columns
    ))  # fmt: skip
    columns = pd.DataFrame({i: pd.Series(one.values) for i, one in enumerate(ids.columns)})
    score = found.columns["score"]
    register, changes = carried(state.register, columns, found.cluster, score, state.tick)
    return state._replace(register=register), ids, changes.alerts


def _on_host(ids: Column) -> Column:
    """Bring ids to host memory: integers as an array."""
    return kinds.on_host(ids) if hasattr(ids, "index") else to_host(ids)
