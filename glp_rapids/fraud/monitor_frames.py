"""The frames that a tick of a monitor consists of."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from glp_rapids.common.cached_property import cached_property
from glp_rapids.common.scans import places_where
from glp_rapids.device import to_device
from glp_rapids.frames import kinds
from glp_rapids.frames.facts import set_attributes
from glp_rapids.frames.kinds import Frame, Kind
from glp_rapids.fraud.clusters import Clusters
from glp_rapids.fraud.monitor_state import State
from glp_rapids.fraud.names import Register
from glp_rapids.fraud.window import Change
from glp_rapids.graph.graph import Graph
from glp_rapids.graph.vertex_ids import VertexIds

Array = Any
ALERTS = {
    "cluster_id": object, "event": object, "parents": object, "joined": np.int64,
    "left": np.int64, "score": np.float64, "delta": np.float64,
}  # fmt: skip
_ARROW = {"cluster_id": "string", "event": "string", "parents": "list<string>"}
_CLUSTERS = {
    "cluster": np.int64, "size": np.int64, "seeds": np.int64, "score": np.float64,
    "value": np.float64, "density": np.float64, "share": np.float64,
}  # fmt: skip


class Suspects(NamedTuple):
    """What frames of clusters and of their members are made of, once somebody looks at them.

    ``ids``: of the members, as the ids of a graph on the host; ``of_kind``: a column of them.
    """

    ids: VertexIds
    found: Clusters
    register: Register
    of_kind: dict[str, pd.Series]
    kind: Kind

    def clusters(self) -> Frame:
        """Make the frame of clusters, in the order in which they were found."""
        names = np.full(len(self.register.names), "", dtype=object)
        names[self.found.cluster] = self._names()
        columns = {"cluster_id": kinds.texts(names, self.kind), **self.found.columns}
        del columns["cluster"]
        return kinds.to_frame(columns, self.kind)

    def members(self) -> Frame:
        """Make the frame of their members, by vertex."""
        columns = {
            "cluster_id": kinds.texts(self._names(), self.kind),
            "score": self.found.score,
            "is_seed": self.found.is_seed,
            **self.of_kind,
        }
        return kinds.to_frame({**self.ids.take(None, kind=self.kind), **columns}, self.kind)

    def _names(self) -> np.ndarray:
        """Return the name of each member's cluster."""
        names = np.empty(len(self.register.names), dtype=object)
        names[:] = self.register.names
        return names[self.register.cluster]


@dataclass(frozen=True, eq=False)
class Tick:
    """What an update of a `Monitor` found; frames are of the kind of the batches."""

    number: int
    change: Change
    alerts: Frame
    changes: Frame
    _suspects: Suspects = field(repr=False)
    _facts: dict[str, Any] = field(repr=False)

    def __iter__(self) -> Iterator[Any]:
        """Yield the number, the change, and the four frames: alerts, changes, clusters, members."""
        yield from (self.number, self.change, self.alerts, self.changes)
        yield from (self.clusters, self.members)

    @property
    def number_of_clusters(self) -> int:
        """How many clusters there are; no frame is made for that."""
        return len(self._suspects.register.names)

    @cached_property
    def clusters(self) -> Frame:
        """The clusters, made when they are first looked at."""
        return self._with_facts(self._suspects.clusters())

    @cached_property
    def members(self) -> Frame:
        """The members of clusters, made when they are first looked at."""
        return self._with_facts(self._suspects.members())

    def _with_facts(self, frame: Frame) -> Frame:
        return set_attributes(frame, dict(self._facts))


def changes_frame(graph: Graph, state: State, changed: Array, previous: Array) -> Frame:
    """Make the frame of scores that have changed: of the accounts that are marked."""
    index = places_where(changed)
    columns = {"score": state.scores.scores[index], "previous": previous[index]}
    columns |= state.scores.kind_columns(index, graph.vertices.kind)
    return graph.frame(columns, vertex=index)


def suspects_of(graph: Graph, ids: VertexIds, found: Clusters, state: State) -> Suspects:
    """Keep what the frames of clusters and of their members take."""
    member = to_device(found.member, graph.device)
    of_kind = state.scores.kind_columns(member, "pandas")
    return Suspects(ids, found, state.register, of_kind, graph.vertices.kind)


def empty_frames(no_vertices: VertexIds, kind: Kind, state: State) -> tuple[Frame, Suspects]:
    """Make the same of a window without transactions: changes, and suspects."""
    none = np.empty(0)
    columns = {name: none.astype(dtype) for name, dtype in _CLUSTERS.items()}
    if state.merchants is not None:
        columns["merchants"] = none.astype(np.int64)
    nobody = none.astype(np.int64)
    found = Clusters(nobody, nobody, none, none.astype(bool), columns)
    names = [name for name in state.seeds if name is not None]
    of_kind = {"kind": pd.Series(names[:0])} if names else {}
    vertex, scores = no_vertices.take(None), {"score": none, "previous": none}
    changes = kinds.to_frame({**vertex, **scores, **of_kind}, kind)
    return changes, Suspects(no_vertices, found, Register(), of_kind, kind)


def alerts_frame(alerts: dict[str, list], kind: Kind) -> Frame:
    """Make the frame of alerts, by falling score, the older first."""
    if alerts["score"] or kind == "pandas":
        return _alerts(alerts, kind)
    # most ticks have none, and cuDF takes 4 ms to make a frame of texts and lists
    from cupy.cuda import runtime

    return _no_alerts(kind, runtime.getDevice()).copy(deep=False)


@functools.cache
def _no_alerts(kind: Kind, gpu: int) -> Frame:
    return _alerts({name: [] for name in ALERTS}, kind)


def _alerts(alerts: dict[str, list], kind: Kind) -> Frame:
    order = np.argsort(-np.array(alerts["score"], np.float64), kind="stable")  # null comes last
    columns = {}
    for name, values in alerts.items():
        column = np.fromiter(values, ALERTS[name], len(values))  # lists stay lists
        columns[name] = column[order]
    if kind != "pandas":
        return kinds.of_arrow(columns, _ARROW, kind)
    texts = {name: pd.Series(columns[name], dtype=object) for name in _ARROW}
    return kinds.to_frame(columns | texts, kind)
