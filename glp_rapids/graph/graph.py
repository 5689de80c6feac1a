"""What everything runs on: a CSR (indptr, indices, weights) and the external vertex ids."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, Literal

import numpy as np

from glp_rapids.common.checks import check_choice
from glp_rapids.common.keeper import Keeper
from glp_rapids.device import DeviceName, array_module, choose, device_of, to_device
from glp_rapids.frames.kinds import Column, Frame, Kind, to_frame
from glp_rapids.graph import build
from glp_rapids.graph.vertex_ids import VertexIds

Array = Any
Direction = Literal["in", "out", "both"]


@dataclass(frozen=True, eq=False)
class CSR:
    """Sorted neighbour lists: row v is ``indices[indptr[v]:indptr[v + 1]]``.

    Parameters
    ----------
    indptr : int64 array of n + 1
        Where the rows start.
    indices : int32 array of m (int64 if n is beyond int32)
        Neighbours, ascending inside a row.
    weights : int64, float32 or float64 array of m, or None
        Finite and not negative, in the order of ``indices``; None where every edge weighs one.
    """

    form: ClassVar[str] = "plain"
    indptr: Array
    indices: Array
    weights: Array | None

    @property
    def number_of_vertices(self) -> int:
        """The number of rows."""
        return self.indptr.size - 1

    @property
    def number_of_edges(self) -> int:
        """The number of entries; an undirected edge counts twice, a self-loop once."""
        return self.indices.size

    @property
    def device(self) -> DeviceName:
        """Where the arrays live: "cpu" (NumPy) or "gpu" (CuPy)."""
        return device_of(self.indptr)

    @property
    def index_dtype(self) -> np.dtype:
        """The type of a vertex index: int32, or int64 where needed."""
        return self.indices.dtype

    @property
    def degree(self) -> Array:
        """Entries of every row, int64."""
        return self.indptr[1:] - self.indptr[:-1]

    @property
    def ascends(self) -> bool:
        """Whether the entries of a row ascend: always."""
        return True


@dataclass(frozen=True, eq=False)
class Graph(Keeper, CSR):
    """A graph in CSR form with its external vertex ids; `as_graph` makes one.

    A vertex is an index, the rank of its external id in sorted order. Rows are sorted and hold no
    duplicate. The graph is never changed; what is derived from it is kept on it.

    Parameters
    ----------
    indptr, indices, weights
        As in `CSR`. Directed: row = source, entries = destinations. Undirected: symmetric, and a
        self-loop is one entry.
    directed : bool
        Whether (u, v) and (v, u) are different edges.
    vertices : VertexIds
        The external ids, in the order of the indices.

    Examples
    --------
    >>> import pandas as pd
    >>> from glp_rapids import as_graph
    >>> graph = as_graph(pd.DataFrame({"src": [10, 20], "dst": [20, 30]}), device="cpu")
    >>> graph.number_of_vertices, graph.number_of_edges, graph.indices.tolist()
    (3, 4, [1, 0, 2, 1])
    """

    directed: bool
    vertices: VertexIds
    _derived: dict[str, Any] = field(default_factory=dict, repr=False)

    def __repr__(self) -> str:
        sort = "directed" if self.directed else "undirected"
        weights = "unweighted" if self.weights is None else f"{self.weights.dtype} weights"
        return (
            f"Graph({self.number_of_vertices} vertices, {self.number_of_edges} entries, {sort}, "
            f"{weights}, {self.device})"
        )

    def to(self, device: DeviceName | None) -> Graph:
        """Give the graph on ``device`` ("cpu", "gpu"; None: the GPU if there is one).

        A graph that is there already is itself; a moved one is kept, so moving twice costs once.
        """
        device = choose(device)
        return self if device == self.device else self.keep(device, partial(self._moved, device))

    def transpose(self) -> Graph:
        """Give the graph with every edge reversed, in O(m); kept. Undirected: itself."""
        return self if not self.directed else self.keep("transpose", self._transposed)

    def rows(self, direction: Direction = "in") -> CSR:
        """Give the CSR whose row v holds the neighbours whose labels v reads.

        Parameters
        ----------
        direction : {"in", "out", "both"}
            "in": labels flow along the edges, so row v holds the sources of the edges into v;
            "out": the destinations of those out of v; "both": both, sorted, where the other end of
            a reciprocal pair is there twice and v itself, if it has a self-loop, once.
            An undirected graph has one answer: itself.

        Returns
        -------
        CSR
            A `Graph` for "in" and "out"; kept on the graph.
        """
        check_choice("direction", direction, ("in", "out", "both"), "'in', 'out' or 'both'")
        if not self.directed or direction == "out":
            return self
        if direction == "in":
            return self.transpose()
        return self.keep("both", self._both)

    def readers(self, direction: Direction = "in") -> CSR:
        """Give the transpose of ``rows(direction)``: row u holds who reads the label of u."""
        rows = self.rows(direction)
        return rows.transpose() if isinstance(rows, Graph) else rows

    def frame(
        self, columns: dict[str, Column], vertex: Array | None = None, kind: Kind | None = None
    ) -> Frame:
        """Make a result: the external vertex ids first, then ``columns``, in the caller's kind.

        Parameters
        ----------
        columns : dict of name to array or Series
            NumPy or CuPy, wherever the caller wants them in the end; all of one length.
        vertex : int array, optional
            The vertex index of every row; None: all vertices in the order of their indices.
        kind : {"pandas", "cudf", "cudf.pandas"}, optional
            Another kind of frame than the caller's.

        Returns
        -------
        frame
            ``vertex`` (``0_vertex``, ``1_vertex``, ... for ids of several columns), then
            ``columns``.
        """
        kind = kind or self.vertices.kind
        return to_frame({**self.vertices.take(vertex, "vertex", kind), **columns}, kind)

    def vertex_index(self, ids: Any, argument: str = "vertices") -> Array:
        """Give the indices of external ids, in their order, where the graph lives.

        Parameters
        ----------
        ids : list, array, Series, or frame with the id columns in order
            External ids; for ids of several columns also a list of tuples.
        argument : str
            What the caller's caller named them, for the messages.

        Returns
        -------
        int32 or int64 array
            As ``indices``.

        Raises
        ------
        ValueError
            Some are no vertex of the graph, or null.
        TypeError
            They are of another type than the vertices.
        """
        index = self.vertices.lookup(ids, argument)
        return to_device(index.astype(self.indices.dtype), self.device)

    def external(self, index: Array | None = None) -> Any:
        """Give the external ids at ``index`` (None: all): a Series; a frame if several columns."""
        ids = self.vertices.take(index)
        return next(iter(ids.values())) if len(ids) == 1 else to_frame(ids, self.vertices.kind)

    def external_columns(self, index: Array | None, name: str) -> dict[str, Any]:
        """Give the external ids at ``index`` for `frame`: column ``name``, or ``0_name``, ..."""
        return self.vertices.take(index, name)

    def _moved(self, device):
        arrays = (
            None if array is None else to_device(array, device)
            for array in (self.indptr, self.indices, self.weights)
        )
        moved = Graph(*arrays, self.directed, self.vertices)
        moved._derived[self.device] = self
        return moved

    def _transposed(self):
        arrays = build.transpose(self.indptr, self.indices, self.weights)
        transposed = Graph(*arrays, True, self.vertices)
        transposed._derived["transpose"] = self
        return transposed

    def _both(self):
        return CSR(*build.both_directions(self.indptr, self.indices, self.weights))


def is_symmetric(graph: Graph) -> bool:
    """Tell whether a directed graph has every edge in both directions, with equal weights."""
    other = graph.transpose()
    xp = array_module(graph.indptr)
    pairs = [(graph.indptr, other.indptr), (graph.indices, other.indices)]
    if graph.weights is not None:
        pairs.append((graph.weights, other.weights))
    return all(bool(xp.array_equal(one, another)) for one, another in pairs)
