"""`CompressedGraph`: a graph in a tenth of the memory, for all that a graph is for.

From Boldi and Vigna's gaps and intervals (WWW 2004) to the CGR of Sha, Li and Tan (SIGMOD 2019) and
of CGLP+ (TKDE 2024): a list is runs of consecutive neighbours and gaps between the others. How
lists are laid out is said in `format.layout`, and in `file.graph_file` how they are stored.
"""

from __future__ import annotations

import os
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from glp_rapids.common.calls import guarded
from glp_rapids.common.checks import check_choice
from glp_rapids.common.types import Direction, Frame
from glp_rapids.compressed import reorder
from glp_rapids.compressed import weights as edge_weights
from glp_rapids.compressed.decode import decode
from glp_rapids.compressed.encode import encode
from glp_rapids.compressed.format.layout import CompressedRows, Layout
from glp_rapids.compressed.rows import CompressedCSR
from glp_rapids.compressed.weights import Weights
from glp_rapids.device import DeviceName, to_device
from glp_rapids.graph import build
from glp_rapids.graph.graph import BaseGraph, Graph, lasting_graph
from glp_rapids.graph.rows import CSR, Rows
from glp_rapids.graph.vertex_ids import VertexIds

Array = Any


@dataclass(frozen=True, eq=False, repr=False)
class CompressedGraph(BaseGraph):
    """A graph whose neighbour lists are compressed; `compress` makes one, `open` reads a file.

    Every function of this library takes it in the place of a graph and gives the same result; label
    propagation reads the lists as they are, the others decode them first.

    Parameters
    ----------
    lists : CompressedRows
        The neighbour lists: of a directed graph, the destinations of the edges out of a vertex.
    weights : array, EqualWeights, CodedWeights or None
        In the order of the entries of ``lists``; None where every edge weighs one.
    directed : bool
        Whether (u, v) and (v, u) are different edges.
    vertices : VertexIds
        The external ids, in the order of the vertex indices.
    order : int array of n, or None
        The vertex whose list lies at each place. Lists hold places too. None: its number.

    Examples
    --------
    >>> import pandas as pd
    >>> from glp_rapids import compress
    >>> edges = pd.DataFrame({"src": ["ann", "bob", "ann"], "dst": ["bob", "cy", "cy"]})
    >>> graph = compress(edges, device="cpu")
    >>> graph
    CompressedGraph(3 vertices, 6 entries, undirected, unweighted, packed, cpu)
    >>> graph.to_graph().indices.tolist()
    [1, 2, 0, 2, 0, 1]
    """

    lists: CompressedRows
    weights: Weights | None
    directed: bool
    vertices: VertexIds
    order: Array | None = None
    _derived: dict[Any, Any] = field(default_factory=dict, repr=False)

    # As they are of the lists that a run reads.
    number_of_vertices = CompressedCSR.number_of_vertices
    number_of_edges = CompressedCSR.number_of_edges
    device = CompressedCSR.device
    index_dtype = CompressedCSR.index_dtype

    @property
    def layout(self) -> Layout:
        """How the lists are compressed."""
        return self.lists.layout

    @property
    def scheme(self) -> str:
        """The scheme of the layout: "cgr", "packed" or "entropy"."""
        return self.lists.layout.scheme

    @property
    def degree(self) -> Array:
        """Entries of every vertex's list, int64."""
        degrees = self.lists.degrees.astype(np.int64)
        if self.order is None:
            return degrees
        by_vertex = degrees.copy()
        by_vertex[self.order] = degrees
        return by_vertex

    @property
    def nbytes(self) -> int:
        """Bytes of lists, weights and order, without what is derived from them and without ids."""
        return self.lists.nbytes + sum(
            part.nbytes for part in (self.weights, self.order) if part is not None
        )

    @guarded
    def to_graph(self) -> Graph:
        """Return the plain graph: the same as was compressed, to the bit. O(m); not kept."""
        rows = reorder.restored(self._stored(), self.order)
        arrays = rows.indptr, rows.indices, rows.weights
        return lasting_graph(Graph(*arrays, self.directed, self.vertices))

    def edges(self) -> Frame:
        """Return the edges as a table, decompressed: as `Graph.edges` does."""
        return self.to_graph().edges()

    def readers(self, direction: Direction = "in", make: bool = True) -> Rows | None:
        """Return the transpose of ``rows(direction)``, which `BaseGraph.readers` describes."""
        check_choice("direction", direction, ("in", "out", "both"))
        decodes = self.directed and direction == "out" and "transpose" not in self._derived
        return super().readers(direction) if make or not decodes else None

    @guarded
    def stats(self) -> dict[str, Any]:
        """Say where the bits go.

        Returns
        -------
        dict
            ``bits_per_edge``: of all that the graph takes, an entry (an undirected edge is two):
            ``bits_of_lists``, and what is ``beside`` them.
            ``parts``: those of the lists by part, which add up to it: ``degrees``, ``interval
            counts``, ``intervals``, ``residuals``, ``raw``, ``directories``, ``blocks`` (their
            sizes, and what fills up their last bytes) and ``tables``.
            ``beside``: those of ``weights``, ``order`` and ``ids`` (as a file holds them).
            ``ratio``: the bytes of a plain CSR (indices of 4 or 8 bytes, 8 for every row) by those
            of the lists. ``bytes``: of the lists.
            ``histogram``: a dict for every class of degrees there is, ``degree`` (from, to),
            ``lists``, ``entries`` and ``bits_per_entry``.
            ``vertices``, ``edges`` (entries) and ``scheme``.
        """
        from glp_rapids.compressed.stats import statistics

        return deepcopy(self.keep("stats", partial(statistics, self)))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the graph to a file, ids, weights and order included.

        A file that is there already is replaced, and only when the new one is complete; so it may
        be the very one that this graph was opened from. It keeps its mode and owner, and a link
        that leads to it stays a link.

        Parameters
        ----------
        path : str or path
            Any name; ``.glp`` is a good ending.

        Raises
        ------
        TypeError
            The vertex ids are of a type that has no form in a file.
        OSError
            The file cannot be written, or is none but a folder, a device or a pipe.
        """
        from glp_rapids.compressed.file.graph_file import save

        save(self, path)

    @classmethod
    @guarded
    def open(
        cls,
        path: str | os.PathLike[str],
        mmap: bool = True,
        device: DeviceName | None = None,
        verify: bool = True,
    ) -> CompressedGraph:
        """Read a graph that `save` wrote.

        Parameters
        ----------
        path : str or path
            The file.
        mmap : bool
            On the CPU, leave the arrays in the file, from where they are read when they are looked
            at, and can be dropped from memory at any time. The file must then stay as it is: it may
            be deleted or replaced, but not be written into or cut off.
        device : {"cpu", "gpu"}, optional
            Where the graph shall live; None: on the GPU if there is one.
        verify : bool
            Read the whole file once, compare all checksums and walk through every list, so that
            whatever comes after cannot go wrong. False: only what tells what the file is gets
            checked, and opening a mapped file takes no time however large it is; for files that
            were verified before, since results from a damaged one may be wrong or a crash.

        Returns
        -------
        CompressedGraph
            Exactly the one that was saved. Its results are cuDF frames if those of the saved one
            were and cuDF is there.

        Raises
        ------
        FileNotFoundError
            There is no such file.
        ValueError
            It is no file of this kind, truncated, damaged, or of another version; the message says
            where.
        MemoryError
            The graph does not fit.
        """
        from glp_rapids.compressed.file.graph_file import load

        for name, value in (("mmap", mmap), ("verify", verify)):
            if not isinstance(value, bool):
                raise TypeError(f"{name} must be True or False, not {value!r:.80}")
        return load(path, mmap, device, verify)

    def _stored(self) -> CSR:
        indptr, indices = decode(self.lists)
        return CSR(indptr, indices, edge_weights.decoded(self.weights))

    def _arrays(self):
        return self.lists.words, self.lists.block_bytes, self.lists.tables

    def _copied(self, device):
        words, block_bytes, tables = (to_device(array, device) for array in self._arrays())
        lists = replace(
            self.lists, words=words, block_bytes=block_bytes, tables=tables, _derived={}
        )
        order = None if self.order is None else to_device(self.order, device)
        weights = edge_weights.moved(self.weights, device)
        return CompressedGraph(lists, weights, self.directed, self.vertices, order)

    def _reversed(self):
        rows = self._stored()
        rows = CSR(*build.transpose(rows.indptr, rows.indices, rows.weights))
        return encoded(rows, self.layout, True, self.vertices, self.order)

    def _out_rows(self):
        return self.keep("rows", lambda: CompressedCSR(self.lists, self.weights, self.order))

    def _both(self):
        return self.to_graph().rows("both")


def encoded(
    rows: CSR, layout: Layout, directed: bool, vertices: VertexIds, order: Array | None
) -> CompressedGraph:
    """Compress rows by place, and put what else makes a graph beside them."""
    weights = None if rows.weights is None else edge_weights.coded(rows.weights)
    return CompressedGraph(encode(rows, layout), weights, directed, vertices, order)
