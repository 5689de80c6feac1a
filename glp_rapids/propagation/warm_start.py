"""A run that goes on from an earlier result: its first labels, and who is evaluated at first.

Labels are indices of vertices, so a community that comes in is named after the smallest of its
members that are there. New vertices say themselves: nobody else can be named after them.

Only some need to be evaluated if all others are settled, which a result says (`pending`), under
labels of any name, as long as ties keep the current one. Of the vertices that came the neighbours
are evaluated, too: rows may have been dropped from the result, and then labels changed around them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from glp_rapids.common.checks import errors_named
from glp_rapids.device import to_host
from glp_rapids.frames import kinds
from glp_rapids.frames.partitions import columns_of, label_codes, numbered_columns
from glp_rapids.propagation.pending import OF_ALL, Pending, pending_of, vertices_of

if TYPE_CHECKING:
    from glp_rapids.graph.graph import BaseGraph
    from glp_rapids.graph.vertex_ids import VertexIds
    from glp_rapids.propagation.options import Options
    from glp_rapids.propagation.workload import Workload

MANY = 2  # where more than one in so many would be evaluated, all are


@dataclass(frozen=True)
class Start:
    """Where a warm run begins; arrays are in host memory."""

    labels: np.ndarray
    new: np.ndarray  # vertices that the earlier result lacks
    touched: np.ndarray | None = None  # None: nobody said whose neighbourhoods changed
    pending: Pending | None = None


def start_of(
    graph: BaseGraph, initial: Any, touched: Any = None, gamma: float | None = None,
    may_be_silent: bool = False,
) -> Start:  # fmt: skip
    """Read an earlier result, and the ids of the vertices whose neighbourhoods have changed.

    ``gamma``: of the layer to be read, if the result has layers. ``may_be_silent``: a null, or -1,
    stands for a vertex that is silent.

    Raises
    ------
    ValueError, TypeError
        The result is no frame, lacks a column, holds nulls, names other ids than those of the
        graph, or a vertex twice with different partitions; or ``touched`` are no ids.
    """
    pending = pending_of(initial)
    columns = _columns(initial, gamma)
    keys = keys_of(graph, columns)
    communities = numbered_communities(graph, columns, may_be_silent)
    labels = np.empty(graph.number_of_vertices, graph.index_dtype)
    new = None
    if communities.min(initial=0) >= 0:
        new = _of_ascending(graph, columns[keys[0]], communities, labels)
    if new is None:
        new = _of_any(graph, [columns[key] for key in keys], communities, labels)
    index = None if touched is None else _touched(graph, touched)
    return Start(labels, new, index, pending)


def _columns(initial: Any, gamma: float | None) -> dict[str, Any]:
    """Return the columns of a result; of one with layers, those of a layer."""
    columns, layer = columns_of_layer(initial, gamma)
    if layer is not None and len(layer) and not len(next(iter(columns.values()))):
        refuse_layer(gamma, layer.unique().tolist())
    return columns


def columns_of_layer(initial: Any, gamma: float | None) -> tuple[dict[str, Any], Any]:
    """Return the columns of a result, of one with layers those of a layer; and each row's layer."""
    if gamma is None or "gamma" not in getattr(initial, "columns", ()):
        return columns_of(initial, "initial", of_ids=True), None
    columns = columns_of(initial, "initial", ("gamma",), of_ids=True)
    layer = columns.pop("gamma")
    rows = layer == gamma
    return {name: column[rows] for name, column in columns.items()}, layer


def refuse_layer(gamma: float | None, known: list[float]) -> None:
    """Raise, since a result has other layers only."""
    names = ", ".join(f"{one:g}" for one in known[:9])
    raise ValueError(f"initial has no rows of gamma={gamma:g}; there are {names}")


def keys_of(graph: BaseGraph, columns: Iterable[str]) -> list[str]:
    """Return the names of the columns that hold vertices; raise if they are no ids of the graph."""
    keys = numbered_columns(columns, "vertex")
    if len(keys) != len(graph.vertices.columns):
        raise ValueError(
            f"initial names vertices by the columns {keys}, but an id of this graph has "
            f"{len(graph.vertices.columns)}"
        )
    return keys


def numbered_communities(
    graph: BaseGraph, given: dict[str, Any], may_be_silent: bool
) -> np.ndarray:
    """Number the communities from 0 on, in host memory; -1 is silence."""
    columns = [kinds.on_host(given[name]) for name in numbered_columns(given, "partition")]
    column, label = columns[0], "initial: the column 'partition'"
    if len(columns) > 1:  # ids of several columns
        parts = pd.DataFrame({place: _codes(one, label, may_be_silent)
                              for place, one in enumerate(columns)})  # fmt: skip
        codes = np.asarray(parts.groupby(list(parts), sort=False).ngroup())
        return np.where((parts < 0).any(axis=1), -1, codes)
    codes = _as_numbers(column)
    if codes is None:
        codes = _codes(column, label, may_be_silent)
        if may_be_silent and pd.api.types.is_numeric_dtype(column.dtype):
            silent = np.asarray(pd.Series(column).eq(-1).fillna(False), dtype=bool)
            if silent.any():
                _refuse_doubt(graph)
            codes = np.where(silent, -1, codes)
        return codes
    if codes.min(initial=0) < 0:
        if may_be_silent and codes.min() == -1:
            _refuse_doubt(graph)
        codes = np.where(codes < 0, -1, codes) if may_be_silent else _codes(column, label, False)
    return codes


def _as_numbers(column: Any) -> np.ndarray | None:
    """Take partitions that are numbers from 0 (or -1) on already, few of them unused."""
    if not isinstance(column.dtype, np.dtype) or column.dtype.kind not in "iu":
        return None
    numbers = np.asarray(column)
    if numbers.dtype.kind == "u" and numbers.max(initial=0) < 1 << 62:
        numbers = numbers.astype(np.int64)
    if numbers.size and not (numbers.min() >= -1 and numbers.max() < 2 * numbers.size + 1024):
        return None
    return numbers


def _codes(column: Any, label: str, may_be_silent: bool) -> np.ndarray:
    """Number distinct values; a null is -1 or refused."""
    if not may_be_silent:
        return np.asarray(label_codes(column, label))
    with errors_named(label):
        return np.asarray(pd.Series(column).factorize()[0])


def _refuse_doubt(graph: BaseGraph) -> None:
    """Refuse -1 where it may be an id, and may be silence."""
    column = graph.vertices.columns[0]
    if len(graph.vertices.columns) > 1 or column.family != "integer" or not len(column):
        return
    if int(to_host(column.search(np.array([-1])))[0]) >= 0:
        raise ValueError(
            "initial: the partition -1 may stand for silent vertices or for the vertex -1; put a "
            "null where a vertex is silent, or another number in the place of the id"
        )


def _of_ascending(
    graph: BaseGraph, ids: Any, communities: np.ndarray, labels: np.ndarray
) -> np.ndarray | None:
    """Label the vertices and return the new ones, if ids are integers that ascend."""
    column = graph.vertices.columns[0]
    if len(graph.vertices.columns) > 1 or column.family != "integer" or column.device != "cpu":
        return None
    if not isinstance(ids, pd.Series | np.ndarray) or not isinstance(ids.dtype, np.dtype):
        return None
    common = np.result_type(ids.dtype, column.id_dtype)
    if ids.dtype.kind not in "iu" or common.kind not in "iu":
        return None
    asked = np.asarray(ids)
    if not (asked[1:] > asked[:-1]).all():
        return None
    from glp_rapids.propagation.kernels.cpu.initial_labels import labels_of_ascending

    known = column.values.astype(common, copy=False)
    asked = asked.astype(common, copy=False)
    return labels_of_ascending(known, asked, communities, labels)


def _of_any(
    graph: BaseGraph, ids: list[Any], communities: np.ndarray, labels: np.ndarray
) -> np.ndarray:
    """Label the vertices and return the new ones, whatever the ids and the order of rows."""
    held = np.full(labels.size, -2)
    if communities.size and labels.size:
        asked = ids[0] if len(ids) == 1 else kinds.to_frame(
            {str(place): one for place, one in enumerate(ids)}, kinds.kind_of(*ids), copy=False
        )  # fmt: skip
        index = to_host(graph.vertices.lookup(asked, "initial", absent=True))
        there = index >= 0
        hold(graph.vertices, index[there], communities[there].astype(np.int64), held)
    return labels_of(held, labels)


def hold(vertices: VertexIds, index: np.ndarray, communities: np.ndarray, held: np.ndarray) -> None:
    """Note the community of some vertices; raise if one of them has two."""
    before = held[index]
    held[index] = communities
    wrong = (held[index] != communities) | ((before != communities) & (before != -2))
    if wrong.any():
        vertex = vertices.take(index[wrong][:1], kind="pandas")
        named = tuple(one.tolist()[0] for one in vertex.values())
        raise ValueError(
            f"initial names the vertex {named if len(named) > 1 else named[0]!r} twice, with "
            "different partitions; keep one row a vertex"
        )


def labels_of(held: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Fill in labels by communities, -1 for silence, -2 for none; return those that have none."""
    labels[:] = np.arange(labels.size)
    smallest = np.full(int(held.max(initial=-1)) + 1, labels.size)
    said = held >= 0
    np.minimum.at(smallest, held[said], np.flatnonzero(said))
    labels[said] = smallest[held[said]]
    labels[held == -1] = -1
    return np.flatnonzero(held == -2)


def _touched(graph: BaseGraph, touched: Any) -> np.ndarray:
    """Find the vertices that somebody named; who has left the graph is not among them."""
    if hasattr(touched, "__len__") and not len(touched) and not isinstance(touched, str | dict):
        return np.empty(0, np.int64)
    found = to_host(graph.vertices.lookup(touched, "touched", absent=True))
    return found[found >= 0]


def first_active(
    start: Start, rule: str | None, workload: Workload, options: Options
) -> np.ndarray | None:
    """Return the vertices that are to be evaluated at first, ascending; None: all.

    Fewer than all do only where it is certain that the others are settled.
    """
    retains = options.retain and options.explore == 0
    if start.touched is None or not (retains and workload.skip) or workload.graph.device == "gpu":
        return None
    if rule is None or start.pending is None or start.pending.rule != rule:
        return None
    graph = workload.graph
    number, words = graph.number_of_vertices, start.pending.words()
    if words is None or start.new.size > number // OF_ALL:
        return None
    parts = [start.touched, vertices_of(graph.vertices, words, graph.id_words), start.new]
    if start.new.size:
        from glp_rapids.propagation.engines.cpu_streamed import neighbours_of

        parts.append(neighbours_of(workload.readers, start.new))
    wanted = np.zeros(number, bool)
    for part in parts:
        wanted[part] = True
    active = np.flatnonzero(wanted)
    return None if active.size * MANY > number else active
