"""The frames that a tick of a monitor consists of."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from glp_rapids.common.scans import places_where
from glp_rapids.device import to_host
from glp_rapids.frames import kinds
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
_CLUSTERS = {
    "cluster": np.int64, "size": np.int64, "seeds": np.int64, "score": np.float64,
    "value": np.float64, "density": np.float64, "share": np.float64,
}  # fmt: skip


class Tick(NamedTuple):
    """What an update of a `Monitor` found; frames are of the kind of the batches."""

    number: int
    change: Change
    alerts: Frame
    changes: Frame
    clusters: Frame
    members: Frame


def frames_of(
    graph: Graph, found: Clusters, state: State, score: Array, is_seed: Array,
    changed: tuple[Array, Array],
) -> dict[str, Frame]:  # fmt: skip
    """Make the frames of scores that have changed, of clusters and of their members."""
    index, previous = places_where(changed[0]), changed[1]
    register, member, kind = state.register, found.member, graph.vertices.kind
    changes = {"score": score[index], "previous": previous[index]}
    changes |= state.scores.kind_columns(index, kind)
    cluster_id = pd.Series(_names(register)[register.cluster], dtype=object)
    columns = {"score": score[member], "is_seed": is_seed[member]}
    columns |= state.scores.kind_columns(member, kind)
    return {
        "changes": graph.frame(changes, vertex=index),
        "clusters": _clusters(register, found, kind),
        "members": graph.frame({"cluster_id": cluster_id, **columns}, vertex=member),
    }


def empty_frames(no_vertices: VertexIds, kind: Kind, state: State) -> dict[str, Frame]:
    """Make the same of a window without transactions."""
    none, texts = np.empty(0), pd.Series([], dtype=object)
    vertex = no_vertices.take(None)
    columns = {name: none.astype(dtype) for name, dtype in _CLUSTERS.items()}
    if state.merchants is not None:
        columns["merchants"] = none.astype(np.int64)
    names = [name for name in state.seeds if name is not None]
    of_kind = {"kind": pd.Series(names[:0])} if names else {}
    members = {"cluster_id": texts, "score": none, "is_seed": none.astype(bool), **of_kind}
    return {
        "changes": kinds.to_frame({**vertex, "score": none, "previous": none, **of_kind}, kind),
        "clusters": _clusters(Register(), Clusters(none.astype(np.int64), none, columns), kind),
        "members": kinds.to_frame({**vertex, **members}, kind),
    }


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
        if column.dtype == object:
            columns[name] = pd.Series(column[order], dtype=object)
    return kinds.to_frame(columns, kind)


def _clusters(register: Register, found: Clusters, kind: Kind) -> Frame:
    """Make the frame of clusters, in the order in which they were found."""
    names = np.full(len(register.names), "", dtype=object)
    if found.member.size:
        names[to_host(found.cluster)] = _names(register)[register.cluster]
    columns = {"cluster_id": pd.Series(names, dtype=object), **found.columns}
    del columns["cluster"]
    return kinds.to_frame(columns, kind)


def _names(register: Register) -> np.ndarray:
    names = np.empty(len(register.names), dtype=object)
    names[:] = register.names
    return names
