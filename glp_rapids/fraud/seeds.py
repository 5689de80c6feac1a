"""Lists of ids that a monitor keeps: on the host, distinct and sorted, of vertices or of none."""

from __future__ import annotations

from typing import Any

import numpy as np

from glp_rapids.common.checks import is_sequence, shown
from glp_rapids.device import array_module, to_device
from glp_rapids.frames import kinds
from glp_rapids.fraud.ids import taken
from glp_rapids.graph import id_types
from glp_rapids.graph.graph import Graph
from glp_rapids.graph.vertex_ids import VertexIds
from glp_rapids.ingest.rank import rank_ids

Array = Any


def sorted_ids_of(columns: list[Any]) -> VertexIds:
    """Make ids of columns on the host; they ascend already, or are sorted."""
    return rank_ids([columns], [["ids"] * len(columns)], "pandas", "cpu")[1]


def read(ids: Any, columns: int, argument: str) -> VertexIds | None:
    """Read a list of ids; None: there are none."""
    if isinstance(ids, set | frozenset | dict):
        ids = list(ids)
    if not is_sequence(ids) or not hasattr(ids, "__len__"):
        raise TypeError(f"{argument} must be a list, array or Series of ids, not {shown(ids)}")
    if not len(ids):
        return None
    parts = [kinds.on_host(part) for part in id_types.split_columns(ids, columns, argument)]
    return rank_ids([parts], [[argument] * columns], "pandas", "cpu")[1]


def together(known: VertexIds | None, new: VertexIds | None) -> VertexIds | None:
    """Take ids in."""
    if known is None or new is None:
        return known or new
    parts = [[column.values for column in ids.columns] for ids in (known, new)]
    names = [[name] * len(parts[0]) for name in ("seeds", "add_seeds")]
    return rank_ids(parts, names, "pandas", "cpu")[1]


def without(known: VertexIds | None, gone: VertexIds | None) -> VertexIds | None:
    """Let ids go, each of which must be there."""
    if gone is None:
        return known
    if known is None:
        raise ValueError(f"drop_seeds names {len(gone)} ids, and there are no seeds")
    index = known.lookup(_frame(gone), "drop_seeds", absent=True)
    if (index < 0).any():
        missing = taken(gone, np.flatnonzero(index < 0)[:5])
        raise ValueError(
            f"drop_seeds holds {int((index < 0).sum())} id(s) that are no seed: "
            f"{kinds.ids_as_text(_frame(missing))}; drop them"
        )
    stays = np.ones(len(known), dtype=bool)
    stays[index] = False
    return taken(known, np.flatnonzero(stays)) if stays.any() else None


def refuse_common(seeds: VertexIds | None, good: VertexIds | None) -> None:
    """Raise if an id is in both lists."""
    if seeds is None or good is None:
        return
    index = seeds.lookup(_frame(good), "good", absent=True)
    if (both := np.flatnonzero(index >= 0)).size:
        raise ValueError(
            f"seeds and good share {both.size} id(s): "
            f"{kinds.ids_as_text(_frame(taken(good, both[:5])))}; name each in one of them"
        )


def index_of(ids: VertexIds | None, graph: Graph, argument: str) -> Array:
    """Find the vertices of a graph that are in a list; ids that are none are left out."""
    if ids is None:
        return to_device(np.empty(0, graph.index_dtype), graph.device)
    found = graph.vertices.lookup(_frame(ids), argument, absent=True)
    index = array_module(found).sort(found[found >= 0])
    return to_device(index.astype(graph.index_dtype), graph.device)


def _frame(ids: VertexIds) -> Any:
    columns = ids.take(None, "vertex", "pandas")
    return next(iter(columns.values())) if len(columns) == 1 else kinds.to_frame(columns, "pandas")
