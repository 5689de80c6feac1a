"""The edges of a graph layer by layer, as a breadth-first search meets them, to be used again.

After WolfPath (Zhu, He, Fu and Li, "WolfPath: accelerating iterative traversing-based graph
processing algorithms on GPU", International Journal of Parallel Programming 47, 2019), whose lists
leave out edges to a vertex that another one found first, and edges back. Here none is left out.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, NamedTuple, Unpack

import numpy as np
import pandas as pd

from glp_rapids.common.calls import guarded
from glp_rapids.common.segments import segment_ids
from glp_rapids.common.types import Direction, Frame, Unreachable
from glp_rapids.device import all_true, array_module, to_host
from glp_rapids.frames.facts import set_attributes
from glp_rapids.frames.kinds import to_frame
from glp_rapids.ingest.options import ByDefault, EdgeOptions
from glp_rapids.traversal.engines import TOO_MANY_PATHS, Found
from glp_rapids.traversal.search import (
    Search,
    check_unreachable,
    cutoff_of,
    lists_of,
    refuse_multigraph,
)
from glp_rapids.traversal.sssp import refuse_long_paths

Array = Any
KINDS = ("back", "same", "forward")  # by the layer of the destination: before, this, the next


class Layer(NamedTuple):
    """The edges whose sources are at one distance: indices of vertices, an edge each."""

    layer: int
    source: Array
    destination: Array
    kind: Array  # -1: back, 0: same, 1: forward
    weights: Array | None


@guarded
def layered_edges(
    graph: Any,
    start: Any,
    *,
    direction: Direction = "out",
    memory_limit: int | str | None = None,
    folder: str | os.PathLike[str] | None = None,
    **edges: Unpack[EdgeOptions],
) -> LayeredEdges:
    """Store the edges of a graph by the distance of their sources from a start.

    Parameters
    ----------
    graph : graph-like
        Anything that `as_graph` takes. Of duplicates in a frame or other data given here the
        shortest counts, as in `sssp`; a `Graph` is taken as it was built.
    start : id, or list, array, Series or frame of ids
        As in `bfs`.
    direction : {"out", "in", "both"}
        Follow the edges of a directed graph, go against them, or do not mind their direction. With
        "both", a pair of edges (a, b) and (b, a) is two edges from a to b, and two from b to a.
    memory_limit : int or str, optional
        Bytes, or a text such as "40GB", that the graph, or what works on its layers, may take. A
        graph from host memory that does not fit the GPU is searched there; its layers stay there,
        pinned, and `LayeredEdges.sssp` streams them in their order: as many of the first as fit
        stay on the GPU, the others come once a pass. On a CPU the same is done with files, if there
        is a ``folder`` for them; neighbour lists in mapped files count for nobody. None: no limit.
    folder : str or path, optional
        A folder, best on a fast disk, for files that hold the layers if they do not fit
        ``memory_limit`` on a CPU. They have no names, and go with the result. None: no files.
    **edges
        How to read ``graph``; see `as_graph`. ``multigraph`` is "min" by default here.

    Returns
    -------
    LayeredEdges
        Its method `LayeredEdges.edges` returns the frame ``src, dst, layer, kind``; others work on
        the layers. ``.about`` holds ``layers``, ``levels`` (of the search), ``edges``, ``reached``,
        ``in_files`` (bytes), ``device``, ``seconds``, ``peak_memory``.

    Raises
    ------
    ValueError
        If ``start`` is empty or has an id that is no vertex, there is no such ``folder``, or
        ``multigraph`` is given for a `Graph`, which was built before.
    TypeError
        If an argument is of another type than described.
    LackOfMemory
        If ``memory_limit`` is below what there is by vertex, or, on a CPU, without a ``folder``,
        below the graph and its layers.
    OSError
        If nothing can be written to the ``folder``, or its disk is full.

    Notes
    -----
    A search, a sort of the vertices by distance, and a copy of the rows in that order: O(m + n log
    n) time; 4 bytes an edge (12 with weights), and 12 a vertex, where the graph is.

    Examples
    --------
    >>> import pandas as pd
    >>> from glp_rapids import layered_edges
    >>> roads = pd.DataFrame({"src": ["a", "a", "b", "c"], "dst": ["b", "c", "c", "d"]})
    >>> layers = layered_edges(roads, "a")
    >>> layers.edges()
      src dst  layer     kind
    0   a   b      0  forward
    1   a   c      0  forward
    2   b   a      1     back
    3   b   c      1     same
    4   c   a      1     back
    5   c   b      1     same
    6   c   d      1  forward
    7   d   c      2     back
    >>> layers.path_counts()["paths"].tolist()
    [1.0, 1.0, 1.0, 1.0]
    """
    refuse_multigraph(graph, edges)
    edges = {"multigraph": ByDefault("min"), **edges}
    limits = {"memory_limit": memory_limit, "folder": folder}
    search = Search(graph, direction, edges, "bfs", "rows_in_order", **limits)
    starts = search.vertices(start, "start")
    found = search.engine.bfs(starts, 1 << 40, True)
    return LayeredEdges(search, direction, starts, found)


class LayeredEdges:
    """The edges of a graph by layers; `layered_edges` makes one.

    Layer l has all edges whose source is at distance l from the start, sorted by source and
    destination. Edges between vertices that cannot be reached are in none. An undirected edge is in
    the layers of both its ends. Nothing in it changes, so several threads may use it.

    Examples
    --------
    >>> from glp_rapids import layered_edges
    >>> layers = layered_edges(([0, 1, 2], [1, 2, 0]), 0, directed=True)
    >>> [layer.destination.tolist() for layer in layers.layers()]
    [[1], [2], [0]]
    """

    def __init__(self, search: Search, direction: Direction, starts: Any, found: Found) -> None:
        self._search, self._starts, self._found = search, starts, found
        self._direction: Direction = direction
        self._lists = lists_of(search, found)
        if search.streams is not None:  # what is beside the lists lies where they are
            self._found = Found(to_host(found.distance), to_host(found.predecessor), found.rounds)
        parts = [self._lists.indices, self._lists.weights]
        in_files = 0 if search.folder is None else sum(p.nbytes for p in parts if p is not None)
        facts = {
            "layers": self.number_of_layers, "edges": self.number_of_edges, "in_files": in_files,
        }  # fmt: skip
        self.about: dict[str, Any] = search.facts(
            levels=found.rounds, reached=self._lists.order.size, **facts
        )

    @property
    def number_of_layers(self) -> int:
        """The largest distance, and one."""
        return self._found.rounds + 1

    @property
    def number_of_edges(self) -> int:
        """The number of edges in all layers."""
        return self._lists.indices.size

    def __repr__(self) -> str:
        return f"LayeredEdges({self.number_of_layers} layers, {self.number_of_edges} edges)"

    def layers(self) -> Iterator[Layer]:
        """Read the layers in order, one at a time: each edge once, from arrays that follow."""
        for layer in range(self.number_of_layers):
            yield self._read(layer, layer + 1)

    def edges(self) -> Frame:
        """Return all edges as a frame of the caller's kind.

        Returns
        -------
        frame
            ``src, dst, layer, kind``, by layer, source and destination, and ``weight`` if the graph
            has weights. ``kind`` is a category: "forward" into the next layer, "same" within one,
            "back" into any before.
        """
        all_of_them = self._read(0, self.number_of_layers)
        graph = self._search.graph
        level = self._found.distance
        codes = to_host(all_of_them.kind).astype(np.int8) + 1
        kind = pd.Categorical.from_codes(codes, KINDS)
        columns = {
            **graph.external_columns(all_of_them.source, "src"),
            **graph.external_columns(all_of_them.destination, "dst"),
            "layer": level[all_of_them.source],
            "kind": pd.Series(kind),
        }
        if self._lists.weights is not None:
            columns["weight"] = self._lists.weights
        return to_frame(columns, graph.vertices.kind)

    def bfs(self, *, unreachable: Unreachable = "max") -> Frame:
        """Return what `bfs` from the same start returns, without a search."""
        check_unreachable(unreachable)
        search, found = self._search.again(), self._found
        return search.result(found, unreachable, copy=True, levels=found.rounds)

    def path_counts(self) -> Frame:
        """Count the shortest paths, in edges, from the start to every vertex.

        Returns
        -------
        frame
            ``vertex, paths``, float64: exact up to 2**53, infinite beyond 1e308, 0 where there is
            none. With several starts, paths from all that are nearest. With ``direction="both"``
            a pair of edges (a, b) and (b, a) is two ways from a to b.
        """
        search = self._search
        paths = search.engine.count_paths(self._lists, self._starts, self._found.distance)
        return search.graph.frame({"paths": paths})

    def dependencies(self) -> Frame:
        """Add up what shares of the shortest paths, in edges, lead through every vertex.

        Returns
        -------
        frame
            ``vertex, dependency``, float64: of the paths from the start to each other vertex the
            share that passes through this one on its way, added up over all ends; 0 at the start.
            That is the start's part of `betweenness_centrality`, to the bit. With several starts,
            paths from all that are nearest. Edges are read once, from the last layer to the first,
            after once for the path counts. Layers of a graph on a GPU are copied to the host for
            that; ``.attrs["glp"]["device"]`` says "cpu".

        Raises
        ------
        ValueError
            If there are more than 1e308 shortest paths between two vertices.
        """
        from glp_rapids.traversal.engines.cpu_strips import dependencies  # imports Numba

        search, level = self._search.again(), self._found.distance
        paths = search.engine.count_paths(self._lists, self._starts, level)
        if not all_true(array_module(paths).isfinite(paths)):
            raise ValueError(TOO_MANY_PATHS)
        values = dependencies(self._lists, self._starts, level, paths)
        del paths
        frame = search.graph.frame({"dependency": values})
        return set_attributes(frame, search.facts() | {"device": "cpu"})

    def sssp(self, *, cutoff: float | None = None, unreachable: Unreachable = "max") -> Frame:
        """Find lengths of shortest paths by relaxing layer after layer until nothing changes.

        Returns
        -------
        frame
            ``vertex, distance`` as of `sssp`, to the bit. ``.attrs["glp"]["sweeps"]`` says how
            often all layers were gone through: the paper's order of work takes few sweeps where
            shortest paths have few edges more than they need, and many elsewhere. Under a
            ``memory_limit`` ``layers_streamed`` says how many layers did not stay on the GPU (or
            in memory, if they are in files), and ``bytes_over_bus`` (``bytes_read``) what was
            copied; strips in which nothing changed are left out.
        """
        check_unreachable(unreachable)
        search = self._search.again()
        if self._lists.weights is None:
            raise ValueError("the graph has no weights; distances in edges are those of bfs()")
        cutoff = cutoff_of(cutoff, self._lists.weights.dtype)
        refuse_long_paths(search.graph, self._direction)
        done = search.engine.relax(self._lists, self._starts, cutoff)
        found = Found(done.distance, None, done.sweeps)
        copied = "bytes_over_bus" if search.folder is None else "bytes_read"
        facts = {copied: done.moved, "layers_streamed": done.streamed}
        return search.result(found, unreachable, sweeps=done.sweeps, **facts)

    def _read(self, first: int, last: int) -> Layer:
        """Read the edges of some layers that follow one another."""
        begin, end = self._lists.first_row[[first, last]]
        offsets = self._lists.offsets[begin : end + 1]
        part = slice(int(offsets[0]), int(offsets[-1]))
        row = segment_ids(offsets - offsets[0], np.int64)
        source, destination = self._lists.order[begin:end][row], self._lists.indices[part]
        level = self._found.distance
        kind = array_module(level).sign(level[destination] - level[source])
        weights = None if self._lists.weights is None else self._lists.weights[part]
        for array in (destination, weights):
            if isinstance(array, np.ndarray):  # of what all layers are read from
                array.flags.writeable = False
        return Layer(first, source, destination, kind, weights)
