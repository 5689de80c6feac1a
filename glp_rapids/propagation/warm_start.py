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
from glp_rapids.device import DeviceName, any_true, array_module, module_on, to_device, to_host
from glp_rapids.frames import kinds
from glp_rapids.frames.partitions import (
    columns_of,
    label_codes,
    numbered_columns,
    read_columns,
)
from glp_rapids.graph.vertex_ids import within
from glp_rapids.propagation.pending import OF_ALL, Pending, pending_of, vertices_of
from glp_rapids.propagation.results import first_positions
from glp_rapids.propagation.schedule import UNKNOWN
from glp_rapids.propagation.warm_start_gpu import Active, active_of, beginning_of

if TYPE_CHECKING:
    from glp_rapids.graph.graph import BaseGraph
    from glp_rapids.graph.vertex_ids import VertexIds
    from glp_rapids.propagation.options import Options
    from glp_rapids.propagation.workload import Workload

MANY = 2  # where more than one in so many would be evaluated, all are


@dataclass(frozen=True)
class Start:
    """Where a warm run begins; arrays are on the device of the graph."""

    labels: Any
    new: Any  # vertices that the earlier result lacks, in any order
    # -1 for who is no vertex any more; None: nobody said whose neighbourhoods changed
    touched: Any = None
    pending: Pending | None = None


def changed_before(start: Start | None, options: Options) -> int:
    """Return how many labels changed before the first sweep, or `UNKNOWN`.

    A run that goes on, and settles, begins as after a sweep that changed the labels of who is new.
    """
    return UNKNOWN if start is None or options.explore else int(start.new.size)


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
    columns = _of_several(graph, _columns(initial, gamma))
    keys = keys_of(graph, columns)
    found = _at_once(graph, columns, may_be_silent)
    if found is None:
        communities = numbered_communities(graph, columns, may_be_silent, graph.device)
        found = _of_ascending(graph, columns[keys[0]], communities)
    if found is None:
        found = _of_any(graph, [columns[key] for key in keys], communities)
    index = None if touched is None else _touched(graph, touched)
    return Start(*found, index, pending)


def _of_several(graph: BaseGraph, columns: dict[str, Any]) -> dict[str, Any]:
    """Give ids of several columns a column each where they are tuples, as in sets."""
    number = len(graph.vertices.columns)
    if number == 1 or "vertex" not in columns:
        return columns
    ids = kinds.on_host(columns["vertex"])
    if not all(isinstance(one, tuple) and len(one) == number for one in ids):
        return columns
    label = "initial: its vertices"
    parts = {f"{place}_vertex": kinds.as_column([one[place] for one in ids], label)
             for place in range(number)}  # fmt: skip
    return {**parts, **{name: one for name, one in columns.items() if name != "vertex"}}


def _columns(initial: Any, gamma: float | None) -> dict[str, Any]:
    """Return the columns of a result; of one with layers, those of a layer."""
    columns, layer = columns_of_layer(initial, gamma)
    if layer is not None and len(layer) and not len(next(iter(columns.values()))):
        refuse_layer(gamma, layer.unique().tolist())
    return columns


def columns_of_layer(initial: Any, gamma: float | None) -> tuple[dict[str, Any], Any]:
    """Return the columns of a result, of one with layers those of a layer; and each row's layer."""
    if gamma is None or "gamma" not in getattr(initial, "columns", ()):
        return read_columns(initial, "initial", one_label=False), None
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
    graph: BaseGraph, given: dict[str, Any], may_be_silent: bool, device: DeviceName
) -> Any:
    """Number the communities from 0 on; -1 is silence.

    ``device``: where integers are numbered, and what cuDF has of texts; the rest is in host memory.
    """
    columns = [given[name] for name in numbered_columns(given, "partition")]
    label = "initial: the column 'partition'"
    if len(columns) > 1:  # ids of several columns
        parts = pd.DataFrame({place: _codes(kinds.on_host(one), label, may_be_silent)
                              for place, one in enumerate(columns)})  # fmt: skip
        codes = np.asarray(parts.groupby(list(parts), sort=False).ngroup())
        return np.where((parts < 0).any(axis=1), -1, codes)
    column = _readable(columns[0], device)
    codes = _as_numbers(column)
    if codes is None:
        codes = _codes(column, label, may_be_silent)
        if may_be_silent and pd.api.types.is_numeric_dtype(column.dtype):
            silent = _are_silent(column)
            if any_true(silent):
                _refuse_doubt(graph)
            codes = array_module(codes).where(silent, -1, codes)
        return codes
    if any_true(codes < 0):
        if not may_be_silent:  # a name as any other
            return codes.astype(np.int64) + 1
        _refuse_doubt(graph)
    return codes


def _readable(column: Any, device: DeviceName) -> Any:
    """Bring a column to where it is numbered; on a GPU that is an array, or texts of cuDF."""
    if device == "gpu":
        if _holds_integers(column) and not kinds.null_count(column):
            return to_device(kinds.to_array(column), device)
        if kinds.is_cudf(column, "Series") and pd.api.types.is_string_dtype(column.dtype):
            return column
    return kinds.on_host(column)


def _holds_integers(column: Any) -> bool:
    return isinstance(column.dtype, np.dtype) and column.dtype.kind in "iu"


def _as_numbers(column: Any) -> Any:
    """Take partitions that are numbers from 0 (or -1) on already, few of them unused."""
    if not _holds_integers(column):
        return None
    numbers = np.asarray(column) if isinstance(column, pd.Series) else column
    if any_true(~within(numbers, -1, _beyond(numbers.size) - 2)):
        return None
    return numbers.astype(np.int64) if numbers.dtype.kind == "u" else numbers


def _beyond(rows: int) -> int:
    """Return what the numbers of communities of so many rows are below."""
    return 2 * rows + 1025


def _are_silent(column: Any) -> Any:
    """Tell which numbers are -1, which stands for silence."""
    if array_module(column) is not np:
        return within(column, -1, -1)
    return np.asarray(pd.Series(column).eq(-1).fillna(False), dtype=bool)


def _codes(column: Any, label: str, may_be_silent: bool) -> Any:
    """Number distinct values; a null is -1 or refused."""
    # CuPy's arrays, which have no nulls, are numbered there
    if not may_be_silent or array_module(column) is not np:
        return label_codes(column, label)
    with errors_named(label):
        series = pd.Series(column) if isinstance(column, np.ndarray) else column
        return series.factorize()[0]


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


def _at_once(
    graph: BaseGraph, columns: dict[str, Any], may_be_silent: bool
) -> tuple[Any, Any] | None:
    """Return the labels and who is new, if all is as usual and on a GPU; None: look closer."""
    keys, ids = numbered_columns(columns, "vertex"), graph.vertices.columns[0]
    given = [columns[name] for name in (*keys, *numbered_columns(columns, "partition"))]
    if graph.device == "cpu" or len(given) > 2 or ids.family != "integer" or not len(ids):
        return None
    if not all(len(one) and _holds_integers(one) and not kinds.null_count(one) for one in given):
        return None
    asked, partition = (kinds.to_array(one) for one in given)
    partition = to_device(partition, graph.device)
    if ids.device == "gpu":  # those of a graph that was moved there may lie on the host
        asked = _sent(asked)
    labels = module_on(graph.device).empty(graph.number_of_vertices, graph.index_dtype)
    few = labels.size // OF_ALL
    index, beyond = to_device(ids.search(asked), graph.device), _beyond(asked.size)
    found = beginning_of(index, partition, beyond, may_be_silent, labels, few)
    if found is None:
        return None
    if may_be_silent and found.negative:
        _refuse_doubt(graph)
    return found.labels, found.new


def _sent(ids: Any) -> Any:
    """Bring ids to a GPU; a range is made there, since to look takes half as long as to send."""
    if array_module(ids) is np:
        first, last = int(ids[0]), int(ids[-1])
        dense = last - first == ids.size - 1 and first > -(2**62) and last < 2**62
        if dense and (ids[1:] > ids[:-1]).all():
            return module_on("gpu").arange(first, last + 1, dtype=ids.dtype)
    return to_device(ids, "gpu")


def _of_ascending(
    graph: BaseGraph, ids: Any, communities: Any
) -> tuple[np.ndarray, np.ndarray] | None:
    """Return the labels and the new vertices, if ids are integers in host memory that ascend."""
    column = graph.vertices.columns[0]
    if len(graph.vertices.columns) > 1 or column.family != "integer" or graph.device != "cpu":
        return None
    if not isinstance(ids, pd.Series | np.ndarray) or not _holds_integers(ids):
        return None
    common = np.result_type(ids.dtype, column.id_dtype)
    if common.kind not in "iu" or communities.min(initial=0) < 0:
        return None
    asked = np.asarray(ids)
    if not (asked[1:] > asked[:-1]).all():
        return None
    from glp_rapids.propagation.kernels.cpu.initial_labels import labels_of_ascending

    known = column.values.astype(common, copy=False)
    asked = asked.astype(common, copy=False)
    labels = np.empty(graph.number_of_vertices, graph.index_dtype)
    return labels, labels_of_ascending(known, asked, communities, labels)


def _of_any(graph: BaseGraph, ids: list[Any], communities: Any) -> tuple[Any, Any]:
    """Return the labels and the new vertices, whatever the ids and the order of rows."""
    xp, number = module_on(graph.device), graph.number_of_vertices
    held = xp.full(number + 1, -2)  # the last one, [-1], stands for all that are no vertices
    if communities.size and number:
        asked = ids[0] if len(ids) == 1 else kinds.to_frame(
            {str(place): one for place, one in enumerate(ids)}, kinds.kind_of(*ids), copy=False
        )  # fmt: skip
        index = graph.vertices.lookup(asked, "initial", absent=True)
        index, communities = to_device(index, graph.device), to_device(communities, graph.device)
        held[index] = communities
        if any_true((held[index] != communities) & (index >= 0)):
            index, communities = to_host(index), to_host(communities)
            there = index >= 0
            hold(graph.vertices, index[there], communities[there], np.full(number, -2))
    return labels_of(held[:number], _beyond(communities.size), graph.index_dtype)


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


def labels_of(held: Any, beyond: int, dtype: Any) -> tuple[Any, Any]:
    """Return labels by communities, -1 for silence, -2 for none; and who has none.

    ``beyond``: what all communities are below, at least 2.
    """
    xp = array_module(held)
    own = xp.arange(held.size)
    # what is looked up at -1 and -2, from the end, is not taken
    labels = xp.where(held >= 0, first_positions(held, beyond)[held], own)
    return xp.where(held == -1, -1, labels).astype(dtype), xp.flatnonzero(held == -2)


def _touched(graph: BaseGraph, touched: Any) -> Any:
    """Find the vertices that somebody named; -1 for who has left the graph."""
    if hasattr(touched, "__len__") and not len(touched) and not isinstance(touched, str | dict):
        return module_on(graph.device).empty(0, np.int64)
    return to_device(graph.vertices.lookup(touched, "touched", absent=True), graph.device)


def first_active(
    start: Start, rule: str | None, workload: Workload, options: Options
) -> Active | None:
    """Return the vertices that are to be evaluated at first, on the device; None: all.

    Fewer than all are only where it is certain that the others are settled. In host memory they
    ascend.
    """
    retains = options.retain and options.explore == 0
    if start.touched is None or not (retains and workload.skip):
        return None
    # of the engines of a GPU the others evaluate everybody
    if workload.graph.device == "gpu" and (options.devices, options.strategy) != (None, "auto"):
        return None
    if rule is None or start.pending is None or start.pending.rule != rule:
        return None
    graph = workload.graph
    number, words = graph.number_of_vertices, start.pending.words()
    if words is None or start.new.size > number // OF_ALL:
        return None
    lists = [start.touched, vertices_of(graph.vertices, words, graph.id_words)]
    most, readers = number // MANY, workload.readers
    if graph.device == "gpu":
        indptr = None
        if readers.form == "plain":
            indptr = workload.rows.indptr
        elif start.new.size:
            around = readers.neighbours_of(start.new, most=number)
            if around is None:
                return None
            lists, readers = [*lists, around], None
        return active_of(lists, start.new, readers, indptr, number, most)
    from glp_rapids.propagation.engines.cpu_streamed import neighbours_of

    wanted = np.zeros(number + 1, bool)  # the last one, [-1], stands for all that are no vertices
    lists += [start.new, neighbours_of(readers, start.new)] if start.new.size else []
    for vertices in lists:
        wanted[vertices] = True
    active = np.flatnonzero(wanted[:number])
    if active.size > most:
        return None
    entries = None
    if readers.form == "plain":
        indptr = np.asarray(workload.rows.indptr)
        entries = int((indptr[active + 1] - indptr[active]).sum())
    return Active(active, entries)
