"""Pairs of vertex indices to the arrays of a CSR: symmetrize, merge duplicates and their weights.

Weights are added exactly and rounded once, so a sum depends neither on the order of the rows nor on
the device. The algorithm is written once over the array module; ordering the pairs is the one step
with two forms (`sort_gpu`, `sort_cpu`).
"""

from __future__ import annotations

from types import ModuleType
from typing import Any, Literal

import numpy as np

from glp_rapids.common.segments import integer_sums, segment_ids, segment_sums
from glp_rapids.device import array_module
from glp_rapids.graph import sort_gpu

Array = Any
Multigraph = Literal["merge", "keep", "min"]  # what becomes of duplicates
MULTIGRAPH = ("merge", "keep", "min")


def ordering(array: Array) -> ModuleType:
    """Choose the module whose sorting suits the place where the array lives."""
    if array_module(array) is not np:
        return sort_gpu
    # Numba takes longer to import than a small graph takes to build, so it waits for a first graph
    from glp_rapids.graph import sort_cpu

    return sort_cpu


def csr_of_pairs(
    source: Array, destination: Array, weights: Array | None, number_of_vertices: int, *,
    symmetric: bool, multigraph: Multigraph = "merge",
) -> tuple[Array, Array, Array | None]:  # fmt: skip
    """Build indptr, indices (sorted inside a row, without duplicates) and weights from pairs.

    The weight of duplicates is the sum of theirs, with "min" the least; without weights there is
    none, with "keep" their number.
    """
    order_pairs = ordering(source)
    pairs = source, destination, number_of_vertices, symmetric
    if weights is None and multigraph != "keep":
        return *order_pairs.merged_entries(*pairs), None
    return merge_duplicates(*order_pairs.sorted_entries(*pairs), weights, multigraph)


def merge_duplicates(
    indptr: Array, indices: Array, edge: Array | None, weights: Array | None,
    multigraph: Multigraph = "merge",
) -> tuple[Array, Array, Array]:  # fmt: skip
    """Make one entry of equal ones in a row, with the sum of their weights; None: their number.

    With "min" it has the least of their weights. ``edge``: where the weight of every entry is;
    None: they are in the order of the entries.
    """
    fresh = _first_of_its_kind(indptr, indices)
    duplicates = _Duplicates(fresh)
    if weights is None:
        weights = array_module(indices).ones(indices.size - duplicates.removed.size, dtype=np.int64)
        weights[duplicates.group] = duplicates.multiplicity
    elif duplicates.removed.size:
        several = _of_entries(duplicates.members, edge, weights)
        weights = _of_entries(fresh, edge, weights)
        if multigraph == "min":
            weights[duplicates.group] = _least(several, duplicates)
        elif several.dtype.kind == "i":
            weights[duplicates.group] = _integer_sums(several, duplicates)
        else:
            weights[duplicates.group] = _float_sums(several, duplicates)
    elif edge is not None:
        weights = weights[edge]
    if duplicates.removed.size:
        indptr = indptr - array_module(indptr).searchsorted(duplicates.removed, indptr)
        indices = indices[fresh]
    return indptr, indices, weights


def _of_entries(which: Array, edge: Array | None, weights: Array) -> Array:
    return weights[which if edge is None else edge[which]]


def transpose(
    indptr: Array, indices: Array, weights: Array | None
) -> tuple[Array, Array, Array | None]:
    """Reverse the edges of a CSR."""
    indptr, indices, position = ordering(indices).transposed(indptr, indices)
    return indptr, indices, None if weights is None else weights[position]


def both_directions(
    indptr: Array, indices: Array, weights: Array | None
) -> tuple[Array, Array, Array | None]:
    """Join out- and in-neighbours in one CSR: a reciprocal pair is twice in a row, a loop once."""
    order_pairs = ordering(indices)
    rows = segment_ids(indptr, indices.dtype, indices.size)
    indptr, indices, edge = order_pairs.sorted_entries(rows, indices, indptr.size - 1, True)
    return indptr, indices, None if weights is None else weights[edge]


def _first_of_its_kind(indptr: Array, indices: Array) -> Array:
    """Flag the first entry of every group of equal entries of a row."""
    fresh = array_module(indices).ones(indices.size, dtype=bool)
    fresh[1:] = indices[1:] != indices[:-1]
    starts = indptr[:-1]
    fresh[starts[starts < indptr[1:]]] = True
    return fresh


class _Duplicates:
    """The groups of two or more equal entries: few as a rule, so only they are added up.

    ``removed``: the entries to go; ``members``: these and the first of each group; ``offsets``:
    where the groups start and end among the members; ``group``: the place of each once the removed
    are gone.
    """

    def __init__(self, fresh: Array) -> None:
        xp = array_module(fresh)
        self.removed = xp.flatnonzero(~fresh)
        leaders = xp.flatnonzero(fresh[:-1] & ~fresh[1:])
        member = ~fresh
        member[leaders] = True
        self.members = xp.flatnonzero(member)
        self.offsets = xp.empty(leaders.size + 1, dtype=np.int64)
        self.offsets[:-1] = xp.searchsorted(self.members, leaders)
        self.offsets[-1] = self.members.size
        self.group = leaders - xp.searchsorted(self.removed, leaders)
        self.multiplicity = self.offsets[1:] - self.offsets[:-1]


def _least(several: Array, duplicates: _Duplicates) -> Array:
    """Find the least weight of each group: CuPy has no ``minimum.reduceat``, so by sorting."""
    xp = array_module(several)
    group = segment_ids(duplicates.offsets, np.int64, several.size)
    # groups stay together: the least of each is where the group begins
    least = several[xp.lexsort(xp.stack([several, group]))[duplicates.offsets[:-1]]]
    return least + least.dtype.type(0)  # of 0 and -0 it was the first


def _integer_sums(several: Array, duplicates: _Duplicates) -> Array:
    if int(several.max()) * int(duplicates.multiplicity.max()) >= 2**63:
        low = integer_sums(several & 0xFFFFFFFF, duplicates.offsets)
        high = integer_sums(several >> 32, duplicates.offsets) + (low >> 32)
        if int(high.max()) >= 2**31:
            raise sum_too_large(several.dtype)
    return integer_sums(several, duplicates.offsets)


def _float_sums(several: Array, duplicates: _Duplicates) -> Array:
    sums = segment_sums(several, duplicates.offsets)
    if float(sums.max()) > float(np.finfo(several.dtype).max):
        raise sum_too_large(several.dtype)
    return sums.astype(several.dtype)


def sum_too_large(dtype: np.dtype) -> ValueError:
    """Say that the weights of an edge are too large together."""
    integer = dtype.kind == "i"
    kind, most = ("integer", "2**63 - 1") if integer else (dtype, f"{dtype} can hold")
    mend = "" if dtype == np.float64 else " or pass them as float64"
    return ValueError(
        f"weight: the {kind} weights of the duplicates of an edge add up to more than {most}; "
        f"scale them down{mend}"
    )
