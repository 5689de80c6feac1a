"""What a run reads of a compressed graph: neighbour lists with weights, as a `CSR` has them plain.

The stream holds lists by place. Where an order was given, the list of vertex v is at ``place[v]``
and holds places, ``order[p]`` being the vertex of place p. What runs on the lists speaks of
vertices only: it asks for the lists of some vertices, and gets vertices, in no special order if
there is an order.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from glp_rapids.common.keeper import Keeper
from glp_rapids.device import DeviceName, array_module, module_on

if TYPE_CHECKING:
    from glp_rapids.compressed.format.layout import CompressedRows
    from glp_rapids.compressed.graph import CompressedGraph
    from glp_rapids.graph.graph import CSR, Graph

Array = Any


@dataclass(frozen=True, eq=False)
class CompressedCSR(Keeper):
    """Compressed neighbour lists with their weights and order: what a run reads.

    Parameters
    ----------
    lists : CompressedRows
        The stream, by place.
    weights : array, coded weights or None
        In the order of the stream's entries; ``weights.dtype`` is that of a plain graph.
    order : int array of n, or None
        The vertex of every place; None: its number.
    """

    form: ClassVar[str] = "compressed"
    lists: CompressedRows
    weights: Any
    order: Array | None = None
    _derived: dict[Any, Any] = field(default_factory=dict, repr=False)

    @property
    def number_of_vertices(self) -> int:
        """The number of lists."""
        return self.lists.number_of_vertices

    @property
    def number_of_edges(self) -> int:
        """The number of entries."""
        return self.lists.number_of_edges

    @property
    def device(self) -> DeviceName:
        """Where the arrays live."""
        return self.lists.device

    @property
    def index_dtype(self) -> np.dtype:
        """The type of a vertex index, as in a plain graph: int32, or int64 where needed."""
        return np.dtype(self.lists.index_dtype)

    @property
    def ascends(self) -> bool:
        """Whether the decoded neighbours of a vertex ascend."""
        return self.order is None

    @property
    def place(self) -> Array | None:
        """The place of every vertex in the stream; None: its number."""
        return None if self.order is None else self.keep("place", self._places)

    @property
    def degree(self) -> Array:
        """Entries in the list of every vertex, int64."""
        return self.degrees.astype(np.int64)

    @property
    def degrees(self) -> Array:
        """Entries in the list of every vertex, in ``index_dtype``."""
        degrees = self.lists.degrees
        return degrees if self.order is None else degrees[self.place]

    @property
    def entry_starts(self) -> Array:
        """Where the weights of every place begin, int64, n + 1; kept."""
        return self.keep("entry_starts", self._entry_starts)

    def _places(self):
        xp = array_module(self.order)
        place = xp.empty(self.order.size, dtype=self.index_dtype)
        place[self.order] = xp.arange(self.order.size, dtype=self.index_dtype)
        return place

    def _entry_starts(self):
        xp = module_on(self.device)
        starts = xp.zeros(self.number_of_vertices + 1, np.int64)
        xp.cumsum(self.lists.degrees, dtype=np.int64, out=starts[1:])
        return starts


def heaviest(weights: Any) -> float:
    """Give the largest weight of an array, of coded weights, or of none."""
    values = getattr(weights, "values", weights)
    return 1.0 if values is None or values.size == 0 else float(values.max())


def is_compressed(graph: Any) -> bool:
    """Tell a `CompressedGraph` from everything else, without an import that others would pay."""
    # while another thread imports the module the class is not there yet, nor is any instance
    kind = getattr(sys.modules.get("glp_rapids.compressed.graph"), "CompressedGraph", None)
    return kind is not None and isinstance(graph, kind)


def rows_of(graph: Graph | CompressedGraph, direction: str) -> CSR | CompressedCSR:
    """Give the rows whose entries are the neighbours whose labels a vertex reads.

    A `CompressedCSR` of a compressed graph, except for ``direction="both"`` of a directed one: its
    rows hold a neighbour twice, which the stream cannot say, so they are decoded; kept on the graph
    in each case. The transpose is made by way of the plain graph, once.
    """
    if not is_compressed(graph):
        return graph.rows(direction)
    if direction not in ("in", "out", "both"):
        raise ValueError(f"direction must be 'in', 'out' or 'both', not {direction!r}")
    if not graph.directed or direction == "out":
        return graph.keep("rows", partial(_lists, graph))
    if direction == "in":
        return rows_of(graph.transpose(), "out")
    return graph.keep("rows both", lambda: graph.to_graph().rows("both"))


def readers_of(
    graph: Graph | CompressedGraph, direction: str, make: bool = True
) -> CSR | CompressedCSR | None:
    """Give the transpose of `rows_of`: row u holds who reads the label of u.

    Parameters
    ----------
    make : bool
        False: None where a compressed graph would have to be transposed for it.
    """
    if not is_compressed(graph):
        return graph.readers(direction)
    if not graph.directed or direction == "both":
        return rows_of(graph, direction)
    if direction == "in":
        return rows_of(graph, "out")
    if not make and "transpose" not in graph._derived:
        return None
    return rows_of(graph, "in")


def _lists(graph):
    return CompressedCSR(graph.lists, graph.weights, graph.order)
