"""`Rows`: what can be asked of neighbour lists however they are kept, and `CSR`, the plain ones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from glp_rapids.common.segments import segment_ids, segment_ranges, segment_sums
from glp_rapids.device import DeviceName, any_true, array_module, device_of, module_on

Array = Any
ENTRIES_AT_ONCE, FEWEST_AT_ONCE = 1 << 24, 1 << 14  # of a chunk
IN_CACHE = 1 << 16  # entries of a chunk whose intermediates stay in a core's cache


class Rows(Protocol):
    """Neighbour lists, one a vertex, on one device: plain, compressed, or read as they are needed.

    They are stored by *place*, which is the vertex itself unless the rows have an order; then their
    chunks, and the entries in these, speak of places.

    Attributes
    ----------
    weights : array-like or None
        Weights of the entries, of whatever form, with a ``dtype``; None where each weighs one.
    scheme : str or None
        How the lists are compressed; None: they are not.
    """

    weights: Any
    scheme: str | None = None

    @property
    def form(self) -> str:
        """How rows are kept, by which engines are chosen: "plain" or "compressed"."""
        return "plain" if self.scheme is None else "compressed"

    @property
    def number_of_vertices(self) -> int:
        """The number of rows."""

    @property
    def number_of_edges(self) -> int:
        """The number of entries; an undirected edge counts twice, a self-loop once."""

    @property
    def device(self) -> DeviceName:
        """Where the arrays live: "cpu" (NumPy) or "gpu" (CuPy)."""

    @property
    def index_dtype(self) -> np.dtype:
        """The type of a vertex index: int32, or int64 where needed."""

    @property
    def degree(self) -> Array:
        """Entries of the row of every vertex, int64."""

    @property
    def ascends(self) -> bool:
        """Whether the entries of a row ascend."""

    def chunks(self, entries: int | None = None) -> Iterator[Chunk]:
        """Read all rows that have entries, about so many entries at a time, a longer row alone."""

    def arrays(self, made: bool = True) -> list[Array]:
        """List the arrays that hold the rows, and those that were ``made`` of them and are kept."""

    def by_place(self, values: Array) -> Array:
        """Put values of the vertices in the order of the places."""
        return values

    def by_vertex(self, values: Array) -> Array:
        """Put values of the places in the order of the vertices."""
        return values

    def largest_degree(self) -> int:
        """Count the entries of the longest row."""
        degree = self.degree
        return int(degree.max()) if degree.size else 0

    def largest_weight(self) -> int | float:
        """Return the largest weight, 1 where there are none."""
        values = getattr(self.weights, "values", self.weights)  # of coded weights the distinct ones
        return 1 if values is None or values.size == 0 else values.max().item()

    def few_at_once(self) -> int | None:
        """Return how many entries a chunk may have to take little beside a run; None: the usual."""
        few = max(FEWEST_AT_ONCE, self.number_of_vertices // 2)
        return few if self.device == "cpu" else None

    def row_weights(self) -> Array:
        """Sum the weights of each row without its self-loop: exact, then rounded once."""
        sums = module_on(self.device).zeros(self.number_of_vertices, np.float64)
        at_once = IN_CACHE if self.device == "cpu" else None
        if self.scheme is not None:  # to decode little takes as long as to decode more
            at_once = self.few_at_once()
        for first, last, rows in self.chunks(at_once):
            xp = array_module(rows.indices)
            owner = rows.row_indices()
            if first:
                owner += owner.dtype.type(first)
            loop = owner == rows.indices
            if rows.weights is None:
                amounts = ~loop
            else:  # to look takes a fifteenth of a copy, and most graphs have no self-loops
                amounts = xp.where(loop, 0, rows.weights) if any_true(loop) else rows.weights
            sums[first:last] = segment_sums(amounts, rows.indptr)
        if sums.size and not bool(array_module(sums).isfinite(sums.max())):
            raise ValueError(
                "weight: the weights at a vertex add up to more than float64 can hold; divide them"
            )
        return self.by_vertex(sums)


@dataclass(frozen=True, eq=False)
class CSR(Rows):
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

    indptr: Array
    indices: Array
    weights: Array | None

    @property
    def number_of_vertices(self) -> int:
        return self.indptr.size - 1

    @property
    def number_of_edges(self) -> int:
        return self.indices.size

    @property
    def device(self) -> DeviceName:
        return device_of(self.indptr)

    @property
    def index_dtype(self) -> np.dtype:
        return self.indices.dtype

    @property
    def degree(self) -> Array:
        return self.indptr[1:] - self.indptr[:-1]

    def largest_degree(self) -> int:
        if array_module(self.indptr) is not np:
            return super().largest_degree()
        firsts = range(0, self.number_of_vertices, IN_CACHE)
        degrees = (np.diff(self.indptr[first : first + IN_CACHE + 1]) for first in firsts)
        return max((int(some.max()) for some in degrees), default=0)

    @property
    def ascends(self) -> bool:
        return True

    def arrays(self, made: bool = True) -> list[Array]:
        held = self.indptr, self.indices, self.weights
        return [array for array in held if array is not None]

    def row_indices(self) -> Array:
        """Return the row of every entry, of the type of ``indices``: with these a COO matrix."""
        return segment_ids(self.indptr, self.indices.dtype, self.indices.size)

    def chunks(self, entries: int | None = None) -> Iterator[Chunk]:
        for first, last, begin, end in segment_ranges(self.indptr, entries or ENTRIES_AT_ONCE):
            weights = None if self.weights is None else self.weights[begin:end]
            indptr = self.indptr[first : last + 1] - begin
            yield Chunk(first, last, CSR(indptr, self.indices[begin:end], weights))


class Chunk(NamedTuple):
    """Some rows that follow one another: from place ``first`` up to place ``last``."""

    first: int
    last: int
    rows: CSR
