"""Sparse matrices: those that are a graph's CSR already are taken as they are, others as edges.

A matrix of SciPy is believed nothing: its arrays can be set to anything, and what lies in a file
may be damaged. It is looked through once, which takes memory for its rows, not for its entries.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from glp_rapids.common.calls import warn_caller
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
from glp_rapids.ingest.edges import Edges, Options, refuse, refuse_ends
from glp_rapids.ingest.weights import any_subnormal, checked_weights

Array = Any
VALUES = "the values of the matrix"
ROUNDING = 1e-6  # of a value, that it may differ from the one across the diagonal
DAMAGED = "it is damaged"
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
        size, directed = rows.number_of_vertices, self.directed
        return _edges(*pairs, rows.weights, size, directed, adds_up=False)


def read(matrix: Any, options: Options) -> Edges | Adjacency:
    """Read a sparse matrix of SciPy or CuPy."""
    refuse(options, "a sparse matrix", "vertices", "its rows are the vertices")
    refuse(options, "a sparse matrix", "weight", "its values are the weights")
    refuse_ends(options, "a sparse matrix")
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"graph: an adjacency matrix must be square, not {matrix.shape}")
    n = matrix.shape[0]
    if matrix.format in ("csr", "csc") and array_module(matrix.data) is np:
        return _of_rows(matrix, n, options.directed)
    entries = (_checked_blocks(matrix, n) if matrix.format == "bsr" else matrix).tocoo()
    if array_module(entries.data) is np:
        row, column, values = _checked_entries(entries, n)
    else:
        row, column, values = entries.row, entries.col, entries.data
    if matrix.format == "bsr" and matrix.blocksize != (1, 1):  # what fills up blocks is no entry
        there = values != 0
        row, column, values = row[there], column[there], values[there]
    values = None if values.dtype == bool else kinds.as_column(values, VALUES)
    return _edges(row, column, values, n, options.directed)


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
    if multigraph != "min":
        _warn_of_rounding(rows)
    if device == "gpu" or multigraph == "min":
        return None
    from glp_rapids.graph.symmetrize import symmetrized

    return Graph(*symmetrized(*arrays), False, graph.vertices)


def _warn_of_rounding(rows: CSR) -> None:
    """Warn if a matrix is added to its transpose which but for rounding is that already."""
    # Numba takes longer to import than much else that imports this
    from glp_rapids.graph import check_rows

    arrays = rows.indptr, rows.indices, rows.weights
    if rows.weights is None or rows.weights.dtype.kind != "f":
        return
    if check_rows.is_symmetric(*arrays, ROUNDING):
        warn_caller(
            "graph: the matrix differs from its transpose by less than a millionth of its values, "
            "as by rounding; it is added to that, so that weights off the diagonal are twice as "
            "large, and those on it are not; pass (A + A.T) / 2, or directed=True"
        )


def _edges(row, column, values, n, directed, adds_up=True):
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
        adds_up=adds_up,  # as matrices have it
        vertices_labels=("the rows of the matrix",),
        weight_label=VALUES,
        weight_place=lambda place: _shown_place(row[place], column[place]),
    )


def _shown_place(row, column):
    return f"row {int(row)}, column {int(column)}"


def _of_rows(matrix, n, directed):
    """Read a matrix by rows; or by columns, which are the rows of its transpose."""
    # Numba takes longer to import than much else that imports this
    from glp_rapids.graph import check_rows

    indptr, indices, values = _by_starts(matrix, n, dimensions=1)
    if indices.dtype not in (np.int32, np.int64):
        indices = indices.astype(np.int64)
    indices = for_kernels(indices)
    worst = check_rows.worst_of(indptr, indices)
    if worst == check_rows.OUT_OF_RANGE:
        _refuse_outside("indices", indices, n, "rows and columns")
    by_columns = matrix.format == "csc"
    # a matrix and its transpose are one undirected graph
    if worst == check_rows.ASCENDING and not (by_columns and directed):

        def place_of(place: int) -> str:
            ends = int(indptr.searchsorted(place, side="right")) - 1, indices[place]
            return _shown_place(*(ends[::-1] if by_columns else ends))

        weights = _weights(values, place_of)
        return Adjacency(CSR(indptr, indices.astype(index_dtype(n), copy=False), weights), directed)
    pair = segment_ids(indptr, index_dtype(n)), indices
    values = None if values.dtype == bool else kinds.as_column(values, VALUES)
    return _edges(*(pair[::-1] if by_columns else pair), values, n, directed)


def _checked_entries(matrix, n):
    """Check the row, the column and the value of every entry."""
    row, column, values = (_array(matrix, name) for name in ("row", "col", "data"))
    if values.ndim != 1:
        raise ValueError(f"graph: the data of the matrix have the shape {values.shape}; {DAMAGED}")
    for name, ends in (("row", row), ("col", column)):
        if ends.shape != values.shape or ends.dtype.kind not in "iu":
            raise ValueError(
                f"graph: the {name} of a matrix of {values.size:,} values must be as many "
                f"integers, not of shape {ends.shape} and {ends.dtype}; {DAMAGED}"
            )
        _refuse_outside(name, ends, n, "rows and columns")
    return row, column, values


def _checked_blocks(matrix, n):
    """Check a matrix of blocks; return it, without what lies behind its last, as another."""
    shape = _array(matrix, "data").shape
    if len(shape) != 3 or 0 in shape[1:] or n % shape[1] or n % shape[2]:
        raise ValueError(
            f"graph: the data of a matrix of {n:,} rows and columns have the shape {shape}, which "
            f"are no blocks of it; {DAMAGED}"
        )
    rows, columns = n // shape[1], n // shape[2]
    indptr, indices, data = _by_starts(matrix, rows, dimensions=3)
    _refuse_outside("indices", indices, columns, "columns of blocks")
    checked = copy.copy(matrix)
    checked.indptr, checked.indices, checked.data = indptr, indices, data
    return checked


def _by_starts(matrix, rows, dimensions):
    """Check the form of the arrays of a matrix by rows, without what lies behind the last."""
    indptr = _starts(_array(matrix, "indptr"), rows)
    entries = int(indptr[-1])
    indices, values = _array(matrix, "indices"), _array(matrix, "data")
    for name, array, of in (("indices", indices, 1), ("data", values, dimensions)):
        if array.ndim != of or len(array) < entries:
            raise ValueError(
                f"graph: the matrix has {entries:,} entries by its indptr, but its {name} have the "
                f"shape {array.shape}; {DAMAGED}"
            )
    if indices.dtype.kind not in "iu":
        raise ValueError(
            f"graph: the indices of the matrix must be integers, not {indices.dtype}; {DAMAGED}"
        )
    return indptr, indices[:entries], values[:entries]


def _array(matrix: Any, name: str) -> np.ndarray:
    """Return what a matrix has by a name; a memmap as what it is a view of."""
    array = getattr(matrix, name)
    if not isinstance(array, np.ndarray):
        raise TypeError(
            f"graph: the {name} of the matrix must be an array of NumPy, not a "
            f"{type(array).__name__}; pass it through numpy.asarray"
        )
    # what is computed of a memmap would be one, without a map
    return np.asarray(array)


def _starts(indptr: np.ndarray, n: int) -> np.ndarray:
    if indptr.shape != (n + 1,) or indptr.dtype.kind not in "iu":
        raise ValueError(
            f"graph: the indptr of a matrix of {n:,} rows must be {n + 1:,} integers, not of shape "
            f"{indptr.shape} and {indptr.dtype}; {DAMAGED}"
        )
    if indptr.dtype == np.int64 and indptr.flags.aligned:
        starts = for_kernels(indptr)
    else:
        starts = indptr.astype(np.int64)
    falls = starts[1:] < starts[:-1]
    if starts[0] or falls.any():
        row = int(falls.argmax()) if falls.any() else 0
        found = " and ".join(str(start) for start in indptr[row : row + 2])
        raise ValueError(
            f"graph: the indptr of the matrix must begin with 0 and never fall, but is "
            f"{found} at row {row:,}; {DAMAGED}"
        )
    return starts


def _refuse_outside(name: str, ends: np.ndarray, n: int, of: str) -> None:
    if not ends.size:
        return
    low, high = int(ends.min()), int(ends.max())
    if low < 0 or high >= n:
        raise ValueError(
            f"graph: the {name} of the matrix hold {low if low < 0 else high}, but it has {n:,} "
            f"{of}; {DAMAGED}"
        )


def _weights(values: np.ndarray, place_of: Callable[[int], str]) -> np.ndarray | None:
    """Check values and make weights of them, without a copy where they are of a dtype for it.

    ``place_of``: says where one of them stands.
    """
    dtype = values.dtype
    if dtype.kind == "b":
        return None
    if dtype.kind not in "iuf" or dtype.itemsize not in (4, 8) or not _in_range(values):
        values = kinds.as_column(values, VALUES)
        with errors_named(VALUES):
            return checked_weights(values, VALUES, place_of=place_of)
    if dtype.kind == "f" or dtype.itemsize == 8:
        values = for_kernels(values)
        return values.view(np.int64) if dtype.kind == "u" else values
    return values.astype(np.int64)


def _in_range(values: np.ndarray) -> bool:
    """Tell whether no value is negative, infinite, NaN, subnormal float32, or beyond int64."""
    most = np.finfo(values.dtype).max if values.dtype.kind == "f" else 2**63 - 1
    parts = (values[first : first + AT_ONCE] for first in range(0, values.size, AT_ONCE))
    # what is compared with NaN is not true
    return all(
        bool(part.min() >= 0 and part.max() <= most) and not any_subnormal(part) for part in parts
    )
