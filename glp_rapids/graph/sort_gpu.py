"""Edge lists to sorted CSR by sorting 64-bit keys: the form for a GPU, where sorting is cheap.

A pair (row, column) is one unsigned key, row in the high bits, so that one radix sort orders the
rows and the columns inside them. `sort_cpu` has the same functions by counting, for the CPU.
Both give the same arrays; nothing here checks its input.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from glp_rapids.common.segments import segment_ids
from glp_rapids.device import any_true, array_module

Array = Any


def index_dtype(number_of_vertices: int) -> type[np.signedinteger]:
    """The type of a vertex index: int32 where it can number all the vertices, else int64."""
    return np.int32 if number_of_vertices <= np.iinfo(np.int32).max else np.int64


def merged_entries(
    source: Array, destination: Array, number_of_vertices: int, symmetric: bool
) -> tuple[Array, Array]:
    """Sort pairs into indptr and indices, each once; ``symmetric`` adds the reverse of each."""
    xp = array_module(source)
    bits = _bits(number_of_vertices)
    keys = xp.empty(source.size * (2 if symmetric else 1), dtype=np.uint64)
    _keys(source, destination, bits, keys[: source.size])
    if symmetric:
        _keys(destination, source, bits, keys[source.size :])
    keys.sort()
    repeated = keys[1:] == keys[:-1]
    if any_true(repeated):  # what another library symmetrized holds no duplicates
        fresh = xp.ones(keys.size, dtype=bool)
        xp.logical_not(repeated, out=fresh[1:])
        keys = keys[fresh]
    return _split(keys, bits, number_of_vertices)


def sorted_entries(
    source: Array, destination: Array, number_of_vertices: int, symmetric: bool
) -> tuple[Array, Array, Array]:
    """Sort pairs into indptr, indices and each entry's edge row; duplicates stay in their order.

    ``symmetric`` adds the reverse of every pair but of self-loops.
    """
    xp = array_module(source)
    bits = _bits(number_of_vertices)
    keys = _keys(source, destination, bits)
    edge = xp.arange(source.size, dtype=index_dtype(source.size))
    if symmetric:
        # each edge beside its reverse, so that equal entries stay in the order of the edges
        keys = xp.stack([keys, _keys(destination, source, bits)], axis=1).ravel()
        there = xp.ones(keys.size, dtype=bool)
        there[1::2] = source != destination
        keys = keys[there]
        edge = xp.repeat(edge, 2)[there]
    order = xp.argsort(keys, kind="stable")
    return *_split(keys[order], bits, number_of_vertices), edge[order]


def transposed(indptr: Array, indices: Array) -> tuple[Array, Array, Array]:
    """Transpose a CSR: indptr, indices and each entry's old position."""
    rows = segment_ids(indptr, indices.dtype, indices.size)
    return sorted_entries(indices, rows, indptr.size - 1, False)


def factorize(arrays: list[Array]) -> tuple[list[Array], Array]:
    """Rank every value among the sorted distinct ones of all arrays; these come second."""
    xp = array_module(*arrays)
    distinct, ranks = xp.unique(xp.concatenate(arrays), return_inverse=True)
    ends = np.cumsum([array.size for array in arrays])
    ranks = ranks.astype(index_dtype(distinct.size))
    return xp.split(ranks, ends[:-1].tolist()), distinct


def _bits(number_of_vertices: int) -> int:
    return max(1, (number_of_vertices - 1).bit_length())


# Each step below reads and writes an array once: at 100 M entries that, and the allocations of what
# lies between, cost as much as the sort.
def _keys(row: Array, column: Array, bits: int, out: Array | None = None) -> Array:
    shift = array_module(row).left_shift
    keys = shift(_unsigned(row), np.uint64(bits), out=out, dtype=np.uint64)
    keys |= _unsigned(column)
    return keys


def _unsigned(indices: Array) -> Array:
    return indices.view(f"u{indices.dtype.itemsize}")


def _split(keys: Array, bits: int, number_of_vertices: int) -> tuple[Array, Array]:
    xp = array_module(keys)
    indices = xp.empty(keys.size, dtype=index_dtype(number_of_vertices))
    xp.bitwise_and(keys, np.uint64((1 << bits) - 1), out=indices, casting="unsafe")
    indptr = xp.empty(number_of_vertices + 1, dtype=np.int64)
    first = xp.left_shift(xp.arange(number_of_vertices, dtype=np.uint64), np.uint64(bits))
    indptr[:-1] = xp.searchsorted(keys, first)
    indptr[-1] = keys.size
    return indptr, indices
