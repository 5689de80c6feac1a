"""Pairs of vertex indices to the arrays of a CSR: symmetrize, merge duplicates, add their weights.

Weights are added in 64-bit fixed point: the scale is a power of two, taken from the largest weight
and the largest number of duplicates, so the sum depends neither on the order of the rows nor on
the device. The algorithm is written once over the array module; ordering the pairs is the one
step with two forms (`sorting` for GPUs, `sorting_cpu`).
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np

from glp_rapids import sorting
from glp_rapids.device import array_module

Array = Any


def ordering(array: Array) -> ModuleType:
    """Give the module whose sorting suits the place where the array lives."""
    if array_module(array) is not np:
        return sorting
    # Numba takes longer to import than a small graph takes to build, so it waits for a first graph
    from glp_rapids import sorting_cpu

    return sorting_cpu


def compressed_rows(
    source: Array,
    destination: Array,
    weights: Array | None,
    number_of_vertices: int,
    *,
    symmetric: bool,
    count_duplicates: bool,
) -> tuple[Array, Array, Array | None]:
    """Give indptr, indices (sorted inside a row, no duplicates) and weights of pairs of indices."""
    order_pairs = ordering(source)
    pairs = source, destination, number_of_vertices, symmetric
    if weights is None and not count_duplicates:
        return *order_pairs.merged_entries(*pairs), None
    indptr, indices, edge = order_pairs.sorted_entries(*pairs)
    first = _first_of_each(indptr, indices)
    if weights is not None:
        weights = _merged_weights(weights, edge, first)
    else:
        weights = _multiplicities(first, indices.size).astype(np.int64)
    if first.size < indices.size:
        indptr = array_module(first).searchsorted(first, indptr).astype(np.int64)
        indices = indices[first]
    return indptr, indices, weights


def transpose(
    indptr: Array, indices: Array, weights: Array | None
) -> tuple[Array, Array, Array | None]:
    """Give the CSR of the reversed edges."""
    indptr, indices, position = ordering(indices).transposed(indptr, indices)
    return indptr, indices, None if weights is None else weights[position]


def both_directions(
    indptr: Array, indices: Array, weights: Array | None
) -> tuple[Array, Array, Array | None]:
    """Give the CSR of out- and in-neighbours: a reciprocal pair is twice in a row, a loop once."""
    rows = sorting.rows_of(indptr, indices)
    indptr, indices, edge = ordering(indices).sorted_entries(rows, indices, indptr.size - 1, True)
    return indptr, indices, None if weights is None else weights[edge]


def _first_of_each(indptr: Array, indices: Array) -> Array:
    """Give the position of the first entry of every group of equal entries of a row."""
    xp = array_module(indices)
    fresh = xp.ones(indices.size, dtype=bool)
    fresh[1:] = indices[1:] != indices[:-1]
    starts = indptr[:-1]
    fresh[starts[starts < indptr[1:]]] = True
    return xp.flatnonzero(fresh)


def _multiplicities(first: Array, entries: int) -> Array:
    xp = array_module(first)
    ends = xp.empty_like(first)
    ends[:-1] = first[1:]
    ends[-1:] = entries
    return ends - first


def _merged_weights(weights: Array, edge: Array, first: Array) -> Array:
    if first.size == edge.size:
        return weights[edge]
    if weights.dtype.kind == "i":
        return _integer_sums(weights[edge], first)
    return _fixed_point_sums(weights[edge], first)


def _group_sums(values: Array, first: Array) -> Array:
    """Sum groups of int64; the running sum may wrap around, its differences are exact."""
    xp = array_module(values)
    running = xp.cumsum(values)
    last = first + _multiplicities(first, values.size) - 1
    return running[last] - running[first] + values[first]


def _integer_sums(weights: Array, first: Array) -> Array:
    weights = weights.astype(np.int64)
    if int(weights.max()) * int(_multiplicities(first, weights.size).max()) >= 2**63:
        low = _group_sums(weights & 0xFFFFFFFF, first)
        high = _group_sums(weights >> 32, first) + (low >> 32)
        if int(high.max()) >= 2**31:
            raise ValueError(
                "weight: the integer weights of the duplicates of an edge add up to more than "
                "2**63 - 1; scale them down or pass them as float64"
            )
    return _group_sums(weights, first)


def _fixed_point_sums(weights: Array, first: Array) -> Array:
    xp = array_module(weights)
    multiplicity = _multiplicities(first, weights.size)
    _, weight_bits = np.frexp(float(weights.max()))
    shift = 62 - int(weight_bits) - int(multiplicity.max()).bit_length()
    fixed = xp.rint(xp.ldexp(weights.astype(np.float64), np.int32(shift))).astype(np.int64)
    with np.errstate(over="ignore"):
        sums = xp.ldexp(_group_sums(fixed, first).astype(np.float64), np.int32(-shift))
    if float(sums.max()) > float(np.finfo(weights.dtype).max):
        raise ValueError(
            f"weight: the {weights.dtype} weights of the duplicates of an edge add up to more than "
            f"{weights.dtype} can hold; scale them down"
            + (" or pass them as float64" if weights.dtype == np.float32 else "")
        )
    return xp.where(multiplicity == 1, weights[first], sums.astype(weights.dtype))
