"""A graph that nobody has as a whole, as each of several ranks sees it.

A rank has the rows and the ids of its range of vertices. What is asked of all vertices, it asks of
the other ranks: so all must ask the same, in the same order. Results are frames of its own range.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from glp_rapids.device import array_module, to_host
from glp_rapids.frames.kinds import joined, library, taken, to_frame, to_series
from glp_rapids.graph import id_types
from glp_rapids.graph.graph import BaseGraph
from glp_rapids.graph.vertex_ids import refuse_missing

if TYPE_CHECKING:
    from glp_rapids.frames.kinds import Column, Frame, Kind
    from glp_rapids.graph.rows import CSR
    from glp_rapids.ingest.shuffle import Part
    from glp_rapids.multigpu.exchange import Exchange
    from glp_rapids.propagation.options import Direction

Array = Any

class SharedIds:
    """The ids of all vertices, of which every rank has those of its range."""

    def __init__(self, exchange: Exchange, part: Part) -> None:
        self._exchange, self._own = exchange, part.vertices
        self.kind: Kind = part.vertices.kind
        self._first, self._last = part.first, part.last
        self._number, self._bounds = part.rows.number_of_vertices, part.bounds

    def __len__(self) -> int:
        return self._number

    @property
    def columns(self) -> tuple:
        """The columns of this rank's ids."""
        return self._own.columns

    def names(self, name: str = "vertex") -> list[str]:
        """Return the names of the columns that the ids take in a frame."""
        return self._own.names(name)

    def take(self, index: np.ndarray, name: str = "vertex", kind: Kind | None = None) -> dict:
        """Return the ids of a few vertices by column, on every rank."""
        index = to_host(index)
        places = np.flatnonzero((index >= self._first) & (index < self._last))
        own = pd.DataFrame(self._own.take(index[places] - self._first, name, "pandas"))
        told = self._exchange.tell((places, own))
        ids = pd.concat([ids for places, ids in told if places.size or not index.size])
        order = np.argsort(np.concatenate([places for places, _ in told]))
        ids = ids.iloc[order].reset_index(drop=True)
        return {name: to_series(column, kind or self.kind) for name, column in ids.items()}

    def take_any(self, index: Array, name: str) -> dict:
        """Return ids of any vertices, by column; each rank asks for some of its own choice."""
        exchange, xp = self._exchange, array_module(index)
        distinct, place = index, index  # where there are none
        if index.size:
            distinct, place = xp.unique(index, return_inverse=True)
        owner = xp.searchsorted(xp.asarray(self._bounds[1:]), distinct, side="right")
        asked = exchange.alltoall([distinct[owner == rank] for rank in range(exchange.ranks)])
        told = exchange.alltoall(
            [joined(self._own.take(one - self._first, name), self.kind) for one in asked]
        )
        parts = [one for one in told if len(one)] or told[:1]
        ids = library(self.kind).concat(parts, ignore_index=True)
        return {name: taken(ids[name], place) for name in ids.columns}

    def take_own(self, index: Array | None, name: str, kind: Kind) -> dict:
        """Return ids of this rank's vertices, which count from the first of its range."""
        return self._own.take(index, name, kind)

    def lookup(
        self, ids: Any, argument: str, absent: bool = False, mend: str = "make the graph with them"
    ) -> np.ndarray:
        """Return the index of every id, which is the same list on every rank; see `VertexIds`."""
        found = np.empty(0, np.int64)
        if len(self._own):
            found = to_host(self._own.lookup(ids, argument, absent=True))
        places = np.flatnonzero(found >= 0)
        places, own = self._exchange.allgather([places, found[places] + self._first])
        parts = id_types.split_columns(ids, len(self._own.columns), argument)
        index = np.full(len(parts[0]), -1, np.int64)
        index[places] = own
        if not absent:
            refuse_missing(index, parts, argument, mend=f"drop them, or {mend}")
        return index


class SharedRows:
    """What a program may ask of rows that ranks share: sums and lengths, of all vertices.

    ``rows`` returns this rank's, which may have to be made for it, and are not kept.
    """

    def __init__(self, exchange: Exchange, rows: Callable[[], CSR], part: Part) -> None:
        self._exchange, self._rows = exchange, rows
        self._range = slice(part.first, part.last)
        self.number_of_vertices = part.rows.number_of_vertices
        self.index_dtype, self.device = part.rows.index_dtype, part.rows.device

    @property
    def degree(self) -> Array:
        """Entries of the row of every vertex, int64."""
        return self._of_all(self._rows().degree)

    def row_weights(self) -> Array:
        """Sum the weights of each row without its self-loop: exact, then rounded once."""
        return self._of_all(self._rows().row_weights())

    def largest_degree(self) -> int:
        """Count the entries of the longest row."""
        told = self._exchange.numbers([self._rows().largest_degree()])
        return max(degree for (degree,) in told)

    def largest_weight(self) -> int | float:
        """Return the largest weight, 1 where there are none."""
        rows = self._rows()
        own = rows.largest_weight() if rows.number_of_edges else None
        return max((one for one in self._exchange.tell(own) if one is not None), default=1)

    def _of_all(self, values: Array) -> Array:
        xp = array_module(values)
        (of_all,) = self._exchange.allgather([xp.ascontiguousarray(values[self._range])])
        return of_all


class RankGraph(BaseGraph):
    """A rank's part of a graph, and what others tell of theirs.

    Parameters
    ----------
    exchange : Exchange
        What all ranks tell one another by.
    part : Part
        What this rank has.
    directed : bool
        Whether (u, v) and (v, u) are different edges.
    direction : {"in", "out", "both"}
        Of the rows in the part.
    threads : int
        That its runs work with.
    """

    lists_apart = True

    def __init__(
        self, exchange: Exchange, part: Part, directed: bool, direction: Direction, threads: int
    ) -> None:
        self.exchange, self.part, self.threads = exchange, part, threads
        self.directed, self._direction = directed, direction
        self.vertices = SharedIds(exchange, part)
        self.weights, self.device = part.rows.weights, part.rows.device
        self.number_of_vertices = part.rows.number_of_vertices
        self.index_dtype = part.rows.index_dtype
        self.number_of_edges = exchange.sum(part.rows.number_of_edges)
        self._derived: dict[Any, Any] = {}

    @property
    def degree(self) -> Array:
        """Entries of the row of every vertex, int64; directed: of those that leave it."""
        return self.rows("out").degree

    def rows(self, direction: Direction = "in") -> SharedRows:
        """Return what may be asked of the rows, see `BaseGraph.rows`."""
        return self.keep(("rows", self._way(direction)), partial(self._shared, direction))

    def readers(self, direction: Direction = "in", make: bool = True) -> SharedRows:
        """Return what may be asked of the transpose of ``rows(direction)``."""
        return self.rows({"in": "out", "out": "in", "both": "both"}[direction])

    def frame(
        self, columns: dict[str, Column], vertex: Any = None, kind: Kind | None = None,
        copy: bool = True,
    ) -> Frame:  # fmt: skip
        """Make a frame of this rank's vertices; see `BaseGraph.frame`.

        ``columns``: of all vertices, or of this rank's. ``vertex``: the vertex of every row; None:
        all vertices, in order.
        """
        first, last, kind = self.part.first, self.part.last, self.vertices.kind
        if vertex is None:
            own, index = slice(first, last), None
        else:
            own = array_module(vertex).flatnonzero((vertex >= first) & (vertex < last))
            index = vertex[own] - first
        ids = self.vertices.take_own(index, "vertex", kind)
        rows = self.number_of_vertices if vertex is None else len(vertex)
        chosen = {
            name: getattr(values, "iloc", values)[own] if len(values) == rows else values
            for name, values in columns.items()
        }
        return to_frame({**ids, **chosen}, kind)

    def own(self, values: Array) -> Array:
        """Take those of this rank's vertices from values of all; see `BaseGraph.own`."""
        return values[self.part.first : self.part.last]

    def external_columns(self, index: Array, name: str) -> dict[str, Any]:
        """Return the external ids at ``index``, of which each rank has its own."""
        return self.vertices.take_any(index, name)

    def _way(self, direction: Direction) -> Direction:
        return direction if self.directed else self._direction

    def _shared(self, direction: Direction) -> SharedRows:
        wanted, given = self._way(direction), self._direction
        if wanted == given:
            part = self.part  # not the graph, which would hold itself, and the GPU's memory
            return SharedRows(self.exchange, lambda: part.rows, part)
        if "both" in (wanted, given):
            raise ValueError(
                f"a part of a graph whose rows are those of direction={given!r} has none of "
                f"{wanted!r}, nor, if its edges are directed, a degree; choose the direction of "
                "the run"
            )
        from glp_rapids.ingest.shuffle import reversed_rows

        make = partial(reversed_rows, self.exchange, self.part.rows, self.part.bounds)
        return SharedRows(self.exchange, make, self.part)
