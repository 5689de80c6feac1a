"""What a run reads of a compressed graph: neighbour lists with weights, as a `CSR` has them plain.

The bit stream holds lists by place. Where an order was given, the list of vertex v is at
``place[v]`` and holds places, ``order[p]`` being the vertex of place p. What runs on the lists
speaks of vertices only: it asks for the lists of some vertices, and gets vertices, in no special
order if there is an order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from glp_rapids.common.keeper import Keeper
from glp_rapids.common.segments import segment_offsets, segment_ranges
from glp_rapids.compressed.weights import part_of
from glp_rapids.device import DeviceName, module_on
from glp_rapids.graph import rows
from glp_rapids.graph.rows import CSR, Chunk, Rows
from glp_rapids.graph.vertex_order import positions

if TYPE_CHECKING:
    from glp_rapids.compressed.format.layout import CompressedRows

Array = Any


@dataclass(frozen=True, eq=False)
class CompressedCSR(Keeper, Rows):
    """Compressed neighbour lists with their weights and order: what a run reads.

    Parameters
    ----------
    lists : CompressedRows
        The bit stream, by place.
    weights : array, coded weights or None
        In the order of the entries of ``lists``; ``weights.dtype`` is that of a plain graph.
    order : int array of n, or None
        The vertex of every place; None: its number.
    """

    lists: CompressedRows
    weights: Any
    order: Array | None = None
    _derived: dict[Any, Any] = field(default_factory=dict, repr=False)

    @property
    def number_of_vertices(self) -> int:
        return self.lists.number_of_vertices

    @property
    def number_of_edges(self) -> int:
        return self.lists.number_of_edges

    @property
    def device(self) -> DeviceName:
        return self.lists.device

    @property
    def index_dtype(self) -> np.dtype:
        return np.dtype(self.lists.index_dtype)

    @property
    def ascends(self) -> bool:
        return self.order is None

    @property
    def scheme(self) -> str:
        return self.lists.layout.scheme

    @property
    def place(self) -> Array | None:
        """The place of every vertex in the bit stream; None: its number."""
        if self.order is None:
            return None
        return self.keep("place", lambda: positions(self.order, self.index_dtype))

    @property
    def degree(self) -> Array:
        return self.degrees.astype(np.int64)

    @property
    def degrees(self) -> Array:
        """Entries in the list of every vertex, in ``index_dtype``."""
        return self.by_vertex(self.lists.degrees)

    @property
    def entry_starts(self) -> Array:
        """Where the weights of every place begin, int64, n + 1; kept."""
        return self.keep("entry_starts", lambda: segment_offsets(self.lists.degrees))

    def arrays(self, made: bool = True) -> list[Array]:
        held = [self.lists.words, self.lists.block_bytes, self.lists.tables, self.order]
        coded = (getattr(self.weights, name, None) for name in ("codes", "values"))
        held += coded if hasattr(self.weights, "values") else [self.weights]
        for kept in (*self.lists._derived.values(), *self._derived.values()) if made else ():
            held += kept if isinstance(kept, tuple) else [kept]
        return [array for array in held if array is not None]

    def by_place(self, values: Array) -> Array:
        return values if self.order is None else values[self.order]

    def by_vertex(self, values: Array) -> Array:
        return values if self.order is None else values[self.place]

    def chunks(self, entries: int | None = None) -> Iterator[Chunk]:
        from glp_rapids.compressed.decode import decode_rows

        xp = module_on(self.device)
        # not kept: unless weights are read, nothing else of a run asks for them
        kept = self.has("entry_starts")
        starts = self.entry_starts if kept else segment_offsets(self.lists.degrees)
        for first, last, begin, end in segment_ranges(starts, entries or rows.ENTRIES_AT_ONCE):
            indptr = starts[first : last + 1] - begin
            indices = xp.empty(end - begin, self.index_dtype)
            places = xp.arange(first, last, dtype=self.index_dtype)
            decode_rows(self.lists, places, indices, indptr)
            yield Chunk(first, last, CSR(indptr, indices, part_of(self.weights, begin, end)))

    def neighbours_of(self, vertices: Array, most: int) -> Array | None:
        """Return the entries of the lists of some vertices, one list after the other.

        None: they are more than ``most``. As `chunks` on both devices, by the same kernels;
        `decode_some.read_lists` costs less of few lists in host memory.
        """
        from glp_rapids.compressed.decode import decode_rows

        places = vertices if self.order is None else self.place[vertices]
        starts = segment_offsets(self.lists.degrees[places])
        entries = int(starts[-1])
        if entries > most:
            return None
        found = module_on(self.device).empty(entries, self.index_dtype)
        decode_rows(self.lists, places.astype(self.index_dtype, copy=False), found, starts)
        return found if self.order is None else self.order[found]
