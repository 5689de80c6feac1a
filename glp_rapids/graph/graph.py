"""What everything runs on: `Graph`, a CSR with external vertex ids, and what all graphs share."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any, Self

import numpy as np

from glp_rapids.common.calls import guarded
from glp_rapids.common.checks import check_choice
from glp_rapids.common.keeper import Keeper
from glp_rapids.common.reused_memory import lasting
from glp_rapids.common.scans import places_where
from glp_rapids.common.types import Direction
from glp_rapids.device import DeviceName, array_module, choose, refuse_elsewhere, to_device
from glp_rapids.frames.kinds import Column, Frame, Kind, for_frame, joined, to_frame
from glp_rapids.graph import build, other_libraries
from glp_rapids.graph.id_words import IdWords, id_words
from glp_rapids.graph.rows import CSR, Rows
from glp_rapids.graph.vertex_ids import VertexIds

Array = Any


class BaseGraph(Keeper):
    """What graphs have in common however their rows are kept: ids, directions, frames.

    A vertex is an index, the rank of its external id in sorted order. A graph is never changed;
    what is derived from it is kept on it.
    """

    directed: bool
    vertices: VertexIds
    weights: Any
    number_of_vertices: int
    number_of_edges: int
    device: DeviceName
    index_dtype: np.dtype
    degree: Array
    scheme: str | None = None  # how the rows are compressed
    lists_apart = False  # each of several ranks has those of its range

    def __repr__(self) -> str:
        facts = (
            f"{self.number_of_vertices} vertices",
            f"{self.number_of_edges} entries",
            "directed" if self.directed else "undirected",
            "unweighted" if self.weights is None else f"{self.weights.dtype} weights",
            *([self.scheme] if self.scheme else []),
            self.device,
        )
        return f"{type(self).__name__}({', '.join(facts)})"

    def to(self, device: DeviceName | None) -> Self:
        """Return the graph on ``device`` ("cpu", "gpu"; None: the GPU if there is one).

        A graph that is there already is itself; a moved one is kept, so moving twice costs once.
        """
        device = choose(device)
        return self if device == self.device else self.keep(device, partial(self._moved, device))

    def refuse_elsewhere(self, label: str) -> None:
        """Raise if the graph lies on another GPU than the current one."""
        refuse_elsewhere(self._arrays()[0], label)

    def to_graph(self) -> Graph:
        """Return the plain graph."""
        raise NotImplementedError

    def transpose(self) -> Self:
        """Return the graph with every edge reversed; kept. Undirected: itself."""
        return self if not self.directed else self.keep("transpose", self._transposed)

    def rows(self, direction: Direction = "in") -> Rows:
        """Return the rows whose entries are the neighbours whose labels a vertex reads.

        Parameters
        ----------
        direction : {"in", "out", "both"}
            "in": labels flow along the edges, so row v holds the sources of the edges into v;
            "out": the destinations of those out of v; "both": both, sorted, where the other end of
            a reciprocal pair is there twice and v itself, if it has a self-loop, once.
            An undirected graph has one answer.

        Returns
        -------
        Rows
            Kept on the graph.
        """
        check_choice("direction", direction, ("in", "out", "both"), "'in', 'out' or 'both'")
        if not self.directed or direction == "out":
            return self._out_rows()
        if direction == "in":
            return self.transpose().rows("out")
        return self.keep("both", self._both)

    def readers(self, direction: Direction = "in", make: bool = True) -> Rows | None:
        """Return the transpose of ``rows(direction)``: row u holds who reads the label of u.

        Parameters
        ----------
        direction : {"in", "out", "both"}
            As for `rows`.
        make : bool
            False: None where the graph would have to be decompressed for it.
        """
        check_choice("direction", direction, ("in", "out", "both"))
        return self.rows({"in": "out", "out": "in", "both": "both"}[direction])

    def id_words(self, hashed: bool = True) -> IdWords:
        """Return what is hashed in the place of a vertex: words made of the ids; kept.

        Where nothing will be ``hashed``, the words are not worth making: any will do.
        """
        if not hashed:
            return IdWords.range(0, self.device)
        return self.keep("id words", partial(id_words, self.vertices, self.device))

    def frame(
        self, columns: dict[str, Column], vertex: Array | None = None, kind: Kind | None = None,
        copy: bool = True,
    ) -> Frame:  # fmt: skip
        """Make a result: the external vertex ids first, then ``columns``, in the caller's kind.

        Parameters
        ----------
        columns : dict of name to array or Series
            NumPy or CuPy, wherever the caller wants them in the end; all of one length.
        vertex : int array, optional
            The vertex index of every row; None: all vertices in the order of their indices.
        kind : {"pandas", "cudf", "cudf.pandas"}, optional
            Another kind of frame than the caller's.
        copy : bool, default True
            False: nobody else has ``columns``, and the frame may be of their memory.

        Returns
        -------
        frame
            ``vertex`` (``0_vertex``, ``1_vertex``, ... for ids of several columns), then
            ``columns``.
        """
        kind = kind or self.vertices.kind
        ids = self.vertices.for_frame(vertex, "vertex", kind)  # copies already
        return joined(ids | for_frame(columns, kind, copy), kind)

    def vertex_index(self, ids: Any, argument: str = "vertices") -> Array:
        """Look up the indices of external ids, in their order, where the graph lives.

        Parameters
        ----------
        ids : list, array, Series, or frame with the id columns in order
            External ids; for ids of several columns also a list of tuples.
        argument : str
            What the caller's caller named them, for the messages.

        Returns
        -------
        int32 or int64 array
            Of ``index_dtype``.

        Raises
        ------
        ValueError
            Some are no vertex of the graph, or null.
        TypeError
            They are of another type than the vertices.
        """
        index = self.vertices.lookup(ids, argument)
        return to_device(index.astype(self.index_dtype), self.device)

    def external(self, index: Array | None = None) -> Any:
        """The external ids at ``index`` (None: all): a Series; a frame if several columns."""
        ids = self.vertices.take(index)
        return next(iter(ids.values())) if len(ids) == 1 else to_frame(ids, self.vertices.kind)

    def own(self, values: Array) -> Array:
        """Return the values, by vertex, that a `frame` shows: all, but on one of several ranks."""
        return values

    def external_columns(self, index: Array | None, name: str) -> dict[str, Any]:
        """The external ids at ``index`` for `frame`: column ``name``, or ``0_name``, ..."""
        return self.vertices.take(index, name)

    @guarded
    def adjacency(self) -> Any:
        """Return the adjacency matrix, as SciPy has it, or for a graph on a GPU CuPy.

        Returns
        -------
        scipy.sparse.csr_array or cupyx.scipy.sparse.csr_matrix
            A row and a column a vertex, in the order of `external`; weights, or ones, in float64. A
            self-loop is one entry. Its arrays are copies.

        Raises
        ------
        ImportError
            SciPy is not installed.

        Notes
        -----
        O(entries) time; 12 bytes an entry.

        Examples
        --------
        >>> import pandas as pd
        >>> from glp_rapids import as_graph
        >>> graph = as_graph(pd.DataFrame({"src": ["b", "c"], "dst": ["a", "b"]}), device="cpu")
        >>> graph.adjacency().toarray().tolist()
        [[0.0, 1.0, 0.0], [1.0, 0.0, 1.0], [0.0, 1.0, 0.0]]
        """
        return other_libraries.adjacency(self.to_graph())

    @guarded
    def to_networkx(self) -> Any:
        """Return the graph as NetworkX has it, vertices without an edge included.

        Returns
        -------
        networkx.Graph or networkx.DiGraph
            Nodes are the external ids, in their order, of several columns tuples; edges have an
            attribute ``weight`` if the graph has weights.

        Raises
        ------
        ImportError
            NetworkX is not installed.

        Notes
        -----
        O(entries) time, on the host: some seconds a million edges, and 240 bytes each.

        Examples
        --------
        >>> import pandas as pd
        >>> from glp_rapids import as_graph
        >>> graph = as_graph(pd.DataFrame({"src": ["b", "c"], "dst": ["a", "b"]}))
        >>> sorted(graph.to_networkx().edges)
        [('a', 'b'), ('b', 'c')]
        """
        return other_libraries.to_networkx(self.to_graph())

    def _moved(self, device: DeviceName) -> Self:
        moved = self._copied(device)
        moved._derived[self.device] = self
        return moved

    def _transposed(self) -> Self:
        transposed = self._reversed()
        transposed._derived["transpose"] = self
        return transposed


@dataclass(frozen=True, eq=False, repr=False)
class Graph(BaseGraph, CSR):
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

    def to_graph(self) -> Graph:
        """Return the graph: it is a plain one."""
        return self

    @guarded
    def edges(self) -> Frame:
        """Return the edges as a table, as for cuGraph, or a file: `contract` makes a graph alone.

        Returns
        -------
        frame
            ``src`` and ``dst``, external ids (``0_src``, ..., ``0_dst``, ... for ids of several
            columns), and ``weight`` if there are weights: a row an edge, by source and then by
            destination; of an undirected one the smaller id is the source. Of the caller's kind.

        Notes
        -----
        O(entries) time and memory. Vertices without an edge are in no row: to read the graph back
        pass them, ``as_graph(graph.edges(), vertices=graph.external())``, with ``weight="weight"``;
        with ids of several columns also ``source=["0_src", "1_src"], destination=[...]``.

        Examples
        --------
        >>> import pandas as pd
        >>> from glp_rapids import as_graph
        >>> graph = as_graph(pd.DataFrame({"src": ["b", "c"], "dst": ["a", "b"]}))
        >>> graph.edges().to_numpy().tolist()
        [['a', 'b'], ['b', 'c']]
        """
        source, destination, weights = self.row_indices(), self.indices, self.weights
        if not self.directed:
            once = places_where(source <= destination)
            source, destination = source[once], destination[once]
            weights = None if weights is None else weights[once]
        kind = self.vertices.kind
        columns = self.vertices.for_frame(source, "src", kind)
        columns |= self.vertices.for_frame(destination, "dst", kind)
        if weights is not None:
            columns |= for_frame({"weight": weights}, kind, copy=self.directed)
        return joined(columns, kind)

    def _arrays(self):
        return self.indptr, self.indices, self.weights

    def _copied(self, device):
        arrays = (None if array is None else to_device(array, device) for array in self._arrays())
        return Graph(*arrays, self.directed, self.vertices)

    def _reversed(self):
        return Graph(*build.transpose(*self._arrays()), True, self.vertices)

    def _out_rows(self):
        return self

    def _both(self):
        return CSR(*build.both_directions(*self._arrays()))


def lasting_graph(graph: Graph) -> Graph:
    """Return a graph of which no array lies in a pool of the call that goes on."""
    arrays = (None if array is None else lasting(array) for array in graph._arrays())
    return Graph(*arrays, graph.directed, graph.vertices.lasting())


def is_symmetric(graph: Graph) -> bool:
    """Tell whether a directed graph has every edge in both directions, with equal weights."""
    if graph.device == "cpu":
        # Numba takes longer to import than a small graph takes to build
        from glp_rapids.graph import check_rows

        return check_rows.is_symmetric(graph.indptr, graph.indices, graph.weights)
    other = graph.transpose()
    xp = array_module(graph.indptr)
    pairs = [(graph.indptr, other.indptr), (graph.indices, other.indices)]
    if graph.weights is not None:
        pairs.append((graph.weights, other.weights))
    return all(bool(xp.array_equal(one, another)) for one, another in pairs)
