"""Lists of ids that a monitor keeps: on the host, distinct and sorted, of vertices or of none."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np

from glp_rapids.common.checks import is_sequence, shown
from glp_rapids.device import array_module, to_device
from glp_rapids.frames import kinds
from glp_rapids.fraud.ids import places_of_integers, taken
from glp_rapids.fraud.known import kind_names
from glp_rapids.graph import id_types
from glp_rapids.graph.graph import Graph
from glp_rapids.graph.vertex_ids import VertexIds
from glp_rapids.ingest.rank import rank_ids

Array = Any
Blacklists = dict[Any, VertexIds]  # by kind; of seeds without kinds the one of None


def sorted_ids_of(columns: list[Any]) -> VertexIds:
    """Make ids of columns on the host; they ascend already, or are sorted."""
    return rank_ids([columns], [["ids"] * len(columns)], "pandas", "cpu")[1]


def read(ids: Any, columns: int, argument: str) -> VertexIds | None:
    """Read a list of ids; None: there are none."""
    if isinstance(ids, dict) and any(value is not None for value in ids.values()):
        raise TypeError(f"{argument} are ids alone, whose kinds are not looked at; pass list(it)")
    if isinstance(ids, set | frozenset | dict):
        ids = list(ids)
    if not is_sequence(ids) or not hasattr(ids, "__len__"):
        raise TypeError(f"{argument} must be a list, array or Series of ids, not {shown(ids)}")
    if not len(ids):
        return None
    parts = [kinds.on_host(part) for part in id_types.split_columns(ids, columns, argument)]
    return rank_ids([parts], [[argument] * columns], "pandas", "cpu")[1]


def read_kinds(ids: Any, columns: int, argument: str) -> Blacklists:
    """Read a list of ids, or a dict of id to kind: ids by kind; without kinds by None."""
    if not isinstance(ids, dict):
        found = read(ids, columns, argument)
        return {} if found is None else {None: found}
    labels = list(ids.values())
    return {
        kind: read([one for one, label in ids.items() if label == kind], columns, argument)
        for kind in kind_names(labels)
    }


def together(known: Blacklists, new: Blacklists) -> Blacklists:
    """Take ids in, each into the list of its kind."""
    if known and new and (None in known) != (None in new):
        has, wants = ("no kinds", "a list of ids") if None in known else ("kinds", "a dict")
        raise TypeError(f"add_seeds: the seeds of this monitor have {has}; pass {wants}")
    if len({type(kind) for kind in (*known, *new)}) > 1:
        kind, other = next(iter(known)), next(iter(new))
        raise TypeError(f"add_seeds: kinds must be of one type, not {other!r} and {kind!r}")
    lists = dict(known)
    for kind, ids in new.items():
        lists[kind] = joined(lists.get(kind), ids, "seeds", "add_seeds")
    for one, other in combinations(lists, 2):
        if both := _common(lists[one], lists[other]):
            raise ValueError(
                f"seeds: {both} would be of two kinds, {one!r} and {other!r}; drop them of one "
                "by drop_seeds first"
            )
    return {kind: lists[kind] for kind in sorted(lists, key=lambda kind: (kind is not None, kind))}


def joined(
    known: VertexIds | None, new: VertexIds | None, name: str, argument: str
) -> VertexIds | None:
    """Take ids into one list; both have names for messages."""
    if known is None or new is None:
        return known or new
    parts = [[column.values for column in ids.columns] for ids in (known, new)]
    names = [[title] * len(parts[0]) for title in (name, argument)]
    return rank_ids(parts, names, "pandas", "cpu")[1]


def without(known: Blacklists, gone: VertexIds | None) -> Blacklists:
    """Let ids go, each of which must be there."""
    if gone is None:
        return known
    if not known:
        raise ValueError(f"drop_seeds names {len(gone)} ids, and there are no seeds")
    missing, lists = np.ones(len(gone), dtype=bool), {}
    for kind, ids in known.items():
        index = ids.lookup(_frame(gone), "drop_seeds", absent=True)
        missing &= index < 0
        stays = np.ones(len(ids), dtype=bool)
        stays[index[index >= 0]] = False
        if stays.any():
            lists[kind] = taken(ids, np.flatnonzero(stays))
    if missing.any():
        raise ValueError(
            f"drop_seeds holds {int(missing.sum())} id(s) that are no seed: "
            f"{kinds.ids_as_text(_frame(taken(gone, np.flatnonzero(missing)[:5])))}; drop them"
        )
    return lists


def refuse_common(seeds: Blacklists, good: VertexIds | None) -> None:
    """Raise if an id is in both lists."""
    for ids in () if good is None else seeds.values():
        if both := _common(ids, good):
            raise ValueError(f"seeds and good share {both}; name each in one of them")


def _common(one: VertexIds, other: VertexIds) -> str:
    """Say which ids are in both lists; nothing if there are none."""
    both = np.flatnonzero(one.lookup(_frame(other), "good", absent=True) >= 0)
    if not both.size:
        return ""
    return f"{both.size} id(s): {kinds.ids_as_text(_frame(taken(other, both[:5])))}"


def index_of(ids: VertexIds | None, graph: Graph, argument: str) -> Array:
    """Find the vertices of a graph that are in a list; ids that are none are left out."""
    if ids is None:
        return to_device(np.empty(0, graph.index_dtype), graph.device)
    found = places_of_integers(graph.vertices, ids)  # which ascend, as both lists do
    if found is None:
        found = graph.vertices.lookup(_frame(ids), argument, absent=True)
        found = array_module(found).sort(found)
    index = found[found >= 0]
    return to_device(index.astype(graph.index_dtype), graph.device)


def _frame(ids: VertexIds) -> Any:
    columns = ids.take(None, "vertex", "pandas")
    return next(iter(columns.values())) if len(columns) == 1 else kinds.to_frame(columns, "pandas")
