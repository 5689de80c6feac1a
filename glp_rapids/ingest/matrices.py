"""Sparse matrices: those that are a graph's CSR already are taken as they are, others as edges.

A matrix of SciPy is believed nothing: its arrays can be set to anything, and what lies in a file
may be damaged. It is looked through once, which takes memory for its rows, not for its entries.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from glp_rapids.common.checks import errors_named
from glp_rapids.common.mapping import for_kernels
from glp_rapids.common.segments import segment_ids
from glp_rapids.device import DeviceName, array_module, to_device
from glp_rapids.frames import kinds
from glp_rapids.graph.build import Multigraph
from glp_rapids.graph.graph import Graph, is_symmetric
from glp_rapids.graph.rows import CSR
from glp_rapids.graph.sort_gpu import index_dtype
from glp_rapids.graph.vertex_ids import VertexIds
from glp_rapids.ingest.edges import Edges, Options, refuse
from glp_rapids.ingest.weights import checked_weights

Array = Any
VALUES = "the values of the matrix"
AT_ONCE = 1 << 24  # values that are looked through between signals


@dataclass(frozen=True)
class Adjacency:
    """An adjacency matrix in host memory whose rows ascend without duplicates.

    Parameters
    ----------
    rows : CSR
        Its arrays, not copied where their dtypes are those of a graph; weights are checked.
    directed : bool
        If not, it is taken as it is if it is symmetric, and otherwise added to its transpose.
    """

    rows: CSR
    directed: bool

    @property
    def size(self) -> int:
        """How many entries there are."""
        return self.rows.number_of_edges

    def edges(self) -> Edges:
        """Return an edge an entry."""
        rows = self.rows
        pairs = rows.row_indices(), rows.indices
        return _edges(*pairs, rows.weights, rows.number_of_vertices, self.directed)


def read(matrix: Any, options: Options) -> Edges | Adjacency:
    """Read a sparse matrix of SciPy or CuPy."""
    refuse(options, "a sparse matrix", "vertices", "its rows are the vertices")
    refuse(options, "a sparse matrix", "weight", "its values are the weights")
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"graph: an adjacency matrix must be square, not {matrix.shape}")
    n = matrix.shape[0]
    if matrix.format in ("csr", "csc") and isinstance(matrix.data, np.ndarray):
        return _of_rows(matrix, n, options.directed)
    if matrix.format == "bsr":
        with errors_named("graph"):
            matrix.check_format(full_check=True)
    entries = matrix.tocoo()
    values = None if entries.data.dtype == bool else kinds.as_column(entries.data, VALUES)
    for name, ends in (("row", entries.row), ("col", entries.col)):
        if isinstance(ends, np.ndarray) and ends.size:
            _refuse_outside(name, ends, n)
    return _edges(entries.row, entries.col, values, n, options.directed)


def graph_of(matrix: Adjacency, multigraph: Multigraph, device: DeviceName) -> Graph | None:
    """Make the graph of rows as they are; None where their edges have to be merged.

    On the CPU it shares its arrays with the caller's matrix, unless that is not symmetric.
    """
    rows, n = matrix.rows, matrix.rows.number_of_vertices
    weights = rows.weights
    if weights is None and multigraph == "keep":
        weights = np.ones(matrix.size, dtype=np.int64)
    arrays = rows.indptr, rows.indices, weights
    if device == "gpu":
        arrays = tuple(None if array is None else to_device(array, device) for array in arrays)
    graph = Graph(*arrays, matrix.directed, VertexIds.numbers(n, device))
    if matrix.directed or is_symmetric(replace(graph, directed=True, _derived={})):
        return graph
    if device == "gpu" or multigraph == "min":
        return None
    from glp_rapids.graph.symmetrize import symmetrized

    return Graph(*symmetrized(*arrays), False, graph.vertices)


def _edges(row, column, values, n, directed):
    xp = array_module(row)
    return Edges(
        [row],
        [column],
        values,
        directed,
        kinds.kind_of(row),
        [xp.arange(n, dtype=np.int64)],
        positional=True,
        maybe_symmetric=not directed,
        vertices_labels=("the rows of the matrix",),
        weight_label=VALUES,
    )


def _of_rows(matrix, n, directed):
    """Read a matrix by rows; or by columns, which are the rows of its transpose."""
    # Numba takes longer to import than much else that imports this
    from glp_rapids.graph import check_rows

    indptr, indices = _starts(matrix.indptr, n), matrix.indices
    entries = int(indptr[-1])
    for name, array in (("indices", indices), ("data", matrix.data)):
        if array.ndim != 1 or array.size < entries:
            raise ValueError(
                f"graph: the matrix has {entries:,} entries by its indptr, but its {name} have the "
                f"shape {array.shape}; it is damaged"
            )
    if indices.dtype.kind not in "iu":
        raise ValueError(f"graph: the indices of the matrix must be integers, not {indices.dtype}")
    if indices.dtype not in (np.int32, np.int64):
        indices = indices.astype(np.int64)
    indices, values = for_kernels(indices[:entries]), matrix.data[:entries]
    worst = check_rows.worst_of(indptr, indices)
    if worst == check_rows.OUT_OF_RANGE:
        _refuse_outside("indices", indices, n)
    by_columns = matrix.format == "csc"
    # a matrix and its transpose are one undirected graph
    if worst == check_rows.ASCENDING and not (by_columns and directed):
        rows = CSR(indptr, indices.astype(index_dtype(n), copy=False), _weights(values))
        return Adjacency(rows, directed)
    pair = segment_ids(indptr, indices.dtype), indices
    values = None if values.dtype == bool else kinds.as_column(values, VALUES)
    return _edges(*(pair[::-1] if by_columns else pair), values, n, directed)


def _starts(indptr: np.ndarray, n: int) -> np.ndarray:
    if indptr.shape != (n + 1,) or indptr.dtype.kind not in "iu":
        raise ValueError(
            f"graph: the indptr of a matrix of {n:,} rows must be {n + 1:,} integers, not of shape "
            f"{indptr.shape} and {indptr.dtype}; it is damaged"
        )
    if indptr.dtype == np.int64 and indptr.flags.aligned:
        starts = for_kernels(indptr)
    else:
        starts = indptr.astype(np.int64)
    falls = starts[1:] < starts[:-1]
    if starts[0] or falls.any():
        row = int(falls.argmax()) if falls.any() else 0
        raise ValueError(
            f"graph: the indptr of the matrix must begin with 0 and never fall, but is "
            f"{indptr[row]} and {indptr[row + 1]} at row {row:,}; it is damaged"
        )
    return starts


def _refuse_outside(name: str, ends: np.ndarray, n: int) -> None:
    low, high = int(ends.min()), int(ends.max())
    if low < 0 or high >= n:
        raise ValueError(
            f"graph: the {name} of the matrix hold {low if low < 0 else high}, but it has {n:,} "
            "rows and columns; it is damaged"
        )


def _weights(values: np.ndarray) -> np.ndarray | None:
    """Check values and make weights of them, without a copy where they are of a dtype for it."""
    dtype = values.dtype
    if dtype.kind == "b":
        return None
    if dtype.kind not in "iuf" or dtype.itemsize not in (4, 8) or not _in_range(values):
        values = kinds.as_column(values, VALUES)
        with errors_named(VALUES):
            return checked_weights(values, VALUES)
    if dtype.kind == "f" or dtype.itemsize == 8:
        values = for_kernels(values)
        return values.view(np.int64) if dtype.kind == "u" else values
    return values.astype(np.int64)


def _in_range(values: np.ndarray) -> bool:
    """Tell whether no value is negative, infinite, NaN, or beyond int64."""
    most = np.finfo(values.dtype).max if values.dtype.kind == "f" else 2**63 - 1
    parts = (values[first : first + AT_ONCE] for first in range(0, values.size, AT_ONCE))
    # what is compared with NaN is not true
    return all(bool(part.min() >= 0 and part.max() <= most) for part in parts)
