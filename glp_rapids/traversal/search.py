"""What every search does around its engine: read the graph, look up vertices, make the frame."""

from __future__ import annotations

import copy
import math
import os
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from glp_rapids.common.checks import (
    as_float,
    check_choice,
    check_integer,
    is_number,
    is_sequence,
    shown,
)
from glp_rapids.common.scans import number_where
from glp_rapids.common.sizes import as_bytes
from glp_rapids.common.types import Direction, Unreachable
from glp_rapids.device import array_module, memory_in_use, to_host
from glp_rapids.frames.facts import set_attributes
from glp_rapids.frames.kinds import null_where
from glp_rapids.graph.graph import BaseGraph
from glp_rapids.ingest.edges import refuse_to_merge
from glp_rapids.ingest.read import as_graph
from glp_rapids.traversal.engines import (
    Lists,
    engine_for,
    largest,
    order_by_level,
    where_searched,
)
from glp_rapids.traversal.limits import Place, checked_folder, place_within

if TYPE_CHECKING:
    from glp_rapids.frames.kinds import Frame
    from glp_rapids.graph.vertex_ids import VertexIds
    from glp_rapids.ingest.options import EdgeOptions
    from glp_rapids.traversal.engines import Found

Array = Any
UNREACHABLE = ("max", "null", "drop")


def refuse_multigraph(graph: Any, edges: Mapping[str, Any]) -> None:
    """Refuse to say of a graph that is built what becomes of duplicates."""
    if isinstance(graph, BaseGraph) and "multigraph" in edges:
        refuse_to_merge(graph)


class Search:
    """One call: the graph where it is searched, its engine, and the frame that comes out."""

    def __init__(
        self, graph: Any, direction: Direction, edges: EdgeOptions | dict, *methods: str,
        memory_limit: int | str | None = None, folder: str | os.PathLike[str] | None = None,
    ) -> None:  # fmt: skip
        """``methods``: what will be asked of the engine; ``folder``: for lists that do not fit."""
        check_choice("direction", direction, ("out", "in", "both"), "'out', 'in' or 'both'")
        limit = as_bytes("memory_limit", memory_limit)
        path = checked_folder(folder)
        if limit is None:
            here = where_searched(as_graph(graph, **edges), *methods)
            self._begin = time.perf_counter()
            place = Place(here, engine_for(here, direction), here.device)
        else:
            place = place_within(graph, direction, dict(edges), methods, limit, path)
            self._begin = time.perf_counter()
        self.graph, self.engine, self.device, self.streams, self.folder = place

    def again(self) -> Search:
        """Begin another call on the same graph, whose time counts from now."""
        other = copy.copy(self)
        other._begin = time.perf_counter()
        return other

    def vertices(self, ids: Any, argument: str) -> Array:
        """Look up vertices, one id or several, each once and in the order of their indices."""
        index = self.graph.vertex_index(as_ids(self.graph.vertices, ids), argument)
        if not index.size:
            raise ValueError(f"{argument} is empty; name at least one vertex")
        # of one there is nothing to sort, for which a GPU takes as long as for a small search
        return index if index.size == 1 else array_module(index).unique(index)

    def result(
        self, found: Found, unreachable: Unreachable, copy: bool = False, **facts: Any
    ) -> Frame:
        """Make the frame ``vertex, distance, predecessor``.

        Without a ``copy`` it may be of the memory of what was found, which nobody else may have.
        """
        distance, predecessor, vertex = found.distance, found.predecessor, None
        if self.streams is not None:
            distance = to_host(distance)
            predecessor = None if predecessor is None else to_host(predecessor)
        silent = distance == largest(distance.dtype)
        xp = array_module(distance)
        reached = distance.size - number_where(silent)
        if unreachable == "drop":
            vertex = xp.flatnonzero(~silent)
            distance = distance[vertex]
            predecessor = None if predecessor is None else predecessor[vertex]
        elif unreachable == "null":
            distance = null_where(silent, distance, self.graph.vertices.kind)
        columns = {"distance": distance}
        if predecessor is not None:
            marked = unreachable != "null"
            columns |= self.graph.vertices.take_some(predecessor, "predecessor", marked, copy)
        frame = self.graph.frame(columns, vertex, copy=copy)
        return self.reported(frame, reached=reached, **facts)

    def reported(self, frame: Frame, **facts: Any) -> Frame:
        """Attach facts to a result, and those that all calls have in common."""
        return set_attributes(frame, self.facts(**facts))

    def facts(self, **facts: Any) -> dict[str, Any]:
        """Return facts, and those that all calls have in common."""
        return facts | {
            "device": self.device,
            "seconds": time.perf_counter() - self._begin,
            "peak_memory": memory_in_use(self.device),
        }


def lists_of(search: Search, level: Found) -> Lists:
    """Store the edges by the distance of their sources."""
    order, first_row = order_by_level(level.distance, level.rounds)
    where = () if search.folder is None else (search.folder,)
    rows = search.engine.rows_in_order(order, *where)
    if search.streams is not None:
        order = to_host(order)
    return Lists(order, *rows, first_row, search.streams)


def as_ids(vertices: VertexIds, ids: Any) -> Any:
    """Make a list of a single id: a value, or a tuple where ids have several columns or are such.

    What is a list, array, Series or frame already is returned as it is.
    """
    columns = vertices.columns
    if isinstance(ids, tuple) and (len(columns) > 1 or columns[0].family == "tuple"):
        several = len(columns) > 1 and ids and all(isinstance(one, tuple | list) for one in ids)
        return list(ids) if several else [ids]
    if is_sequence(ids) or hasattr(ids, "columns"):
        return ids
    return [ids]


def check_unreachable(unreachable: Any) -> None:
    """Raise unless it is one of the three treatments."""
    check_choice("unreachable", unreachable, UNREACHABLE, "'max', 'null' or 'drop'")


def depth_of(depth_limit: Any) -> int:
    """Return the depth of a search; that of no limit is more than any graph has."""
    if depth_limit is None:
        return 1 << 40
    check_integer("depth_limit", depth_limit, 0, or_none=" or None")
    return min(int(depth_limit), 1 << 40)


def cutoff_of(cutoff: Any, dtype: np.dtype) -> Any:
    """Return a cutoff in the type of the distances; of integers, the integer below it."""
    most = largest(dtype)
    if cutoff is None:
        return most
    if not is_number(cutoff):
        raise TypeError(f"cutoff must be a number or None, not {shown(cutoff)}")
    if not as_float(cutoff) >= 0:
        raise ValueError(f"cutoff must be at least 0, not {shown(cutoff)}")
    if dtype.kind == "i":
        return int(most) if as_float(cutoff) >= 2.0**63 else min(math.floor(cutoff), int(most))
    with np.errstate(over="ignore"):
        return min(dtype.type(as_float(cutoff)), most)
