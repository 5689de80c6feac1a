"""Sorted rows added to their transpose, on the CPU, in little more memory than the result takes.

First every entry that has its counterpart is marked, one bit an entry; so it is known how many each
row is to get, and all are put where they stay: the rows move apart, what is missing goes behind
them, and the two ascending parts of a row are merged.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from glp_rapids.graph.build import sum_too_large
from glp_rapids.jit.cache import kept
from glp_rapids.jit.interrupts import parts_of_rows


def symmetrized(
    indptr: np.ndarray,
    indices: np.ndarray,
    weights: np.ndarray | None = None,
    *,
    in_place: bool = False,
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Add rows to their transpose: (u, v) and (v, u) become one edge that weighs as much as both.

    Parameters
    ----------
    indptr : int64 array of n + 1
        Where the rows start.
    indices : int32 or int64 array of m
        Ascending inside a row, without duplicates, all below n.
    weights : int64, float32 or float64 array of m, or None
        Not negative. A self-loop keeps its own.
    in_place : bool
        Whether ``indices`` and ``weights``, which must own their memory, become the result.

    Returns
    -------
    indptr, indices, weights
        What `build.csr_of_pairs` makes of the pairs.

    Raises
    ------
    ValueError
        The sum of two weights is too large for their dtype.

    Notes
    -----
    O(n + m) time, a handful of random accesses an entry. Beside what is given and returned: a bit
    an entry, 4 bytes a vertex (8 where indices are int64), and as much as the longest row.
    """
    position = np.zeros(indptr.size - 1, dtype=indices.dtype)  # in each row
    matched = np.zeros((indices.size + 7) // 8, dtype=np.uint8)
    for first, last in parts_of_rows(indptr):
        _match(first, last, indptr, indices, position, matched)
    wider = np.zeros_like(indptr)
    for first, last in parts_of_rows(indptr):
        _count_missing(first, last, indptr, indices, matched, wider)
    most = int(wider.max())
    np.cumsum(wider, out=wider)
    wider += indptr

    entries, none = int(wider[-1]), np.empty(0, dtype=np.int64)
    placed = _with_room(indices, entries, in_place)
    heavy = none if weights is None else _with_room(weights, entries, in_place)
    # from the last to the first: where it is in place, nothing that is needed is overwritten
    for first, last in reversed([*parts_of_rows(indptr)]):
        _move_apart(first, last, indptr, wider, placed if in_place else indices, placed)
        if weights is not None:
            _move_apart(first, last, indptr, wider, heavy if in_place else weights, heavy)
    if weights is not None:
        position[:] = 0
        limits = _limits(heavy.dtype)
        for first, last in parts_of_rows(indptr):
            if _add_weights(first, last, indptr, wider, placed, heavy, position, *limits):
                raise sum_too_large(heavy.dtype)
    np.subtract(indptr[1:], indptr[:-1], out=position, casting="unsafe")
    for first, last in parts_of_rows(indptr):
        _add_missing(first, last, indptr, wider, placed, heavy, matched, position)
    apart = np.empty(most, placed.dtype), np.empty(most if heavy.size else 0, heavy.dtype)
    for first, last in parts_of_rows(wider):
        _merge(first, last, indptr, wider, placed, heavy, *apart)
    return wider, placed, None if weights is None else heavy


def _with_room(array: np.ndarray, size: int, in_place: bool) -> np.ndarray:
    if not in_place:
        return np.empty(size, dtype=array.dtype)
    array.resize(size, refcheck=False)
    return array


def _limits(dtype: np.dtype) -> tuple[Any, float]:
    """Return the largest sum of integers, in their dtype, and of floats, as float64."""
    if dtype.kind == "i":
        return dtype.type(np.iinfo(dtype).max), np.inf
    return dtype.type(np.inf), float(np.finfo(dtype).max)


@kept
def _find(row, start, end, indices, position, column):
    """Go on in the row of a column from its position up to an entry; tell where, or -1."""
    i = start + position[column]
    while i < end and indices[i] < row:
        i += 1
    position[column] = i - start
    return i if i < end and indices[i] == row else np.int64(-1)


@kept
def _mark(matched, i):
    matched[i >> 3] |= np.uint8(1 << (i & 7))


@kept
def _match(first, last, indptr, indices, position, matched):
    """Mark (u, v) and (v, u) where both are there, and self-loops."""
    # u ascends, so v's row is asked for one after the other
    for row in range(first, last):
        for i in range(indptr[row], indptr[row + 1]):
            column = indices[i]
            if column == row:
                _mark(matched, i)
            elif column > row:
                other = _find(row, indptr[column], indptr[column + 1], indices, position, column)
                if other >= 0:
                    _mark(matched, i)
                    _mark(matched, other)


@kept
def _count_missing(first, last, indptr, indices, matched, missing):
    """Count for every row v, at v + 1, the entries (u, v) that are not marked."""
    for i in range(indptr[first], indptr[last]):
        if matched[i >> 3] >> (i & 7) & 1 == 0:
            missing[indices[i] + 1] += 1


@kept
def _move_apart(first, last, indptr, wider, before, after):
    for row in range(last - 1, first - 1, -1):
        begin, to = indptr[row], wider[row]
        for i in range(indptr[row + 1] - begin - 1, -1, -1):
            after[to + i] = before[begin + i]


@kept
def _add_weights(first, last, indptr, wider, indices, weights, position, most, limit):
    """Let (u, v) and (v, u) each weigh as much as both; tell if that is too large."""
    for row in range(first, last):
        begin = wider[row]
        for i in range(begin, begin + indptr[row + 1] - indptr[row]):
            column = indices[i]
            if column <= row:
                continue
            start = wider[column]
            end = start + indptr[column + 1] - indptr[column]
            other = _find(row, start, end, indices, position, column)
            if other >= 0:
                one, two = weights[i], weights[other]
                if two > most - one or np.float64(one) + np.float64(two) > limit:
                    return True
                total = abs(one + two)  # of -0.0 and -0.0 it is 0.0, as of duplicates elsewhere
                weights[i] = total
                weights[other] = total
    return False


@kept
def _add_missing(first, last, indptr, wider, indices, weights, matched, filled):
    """Put the reverse of entries that are not marked behind their rows."""
    for row in range(first, last):
        begin, to_new = indptr[row], wider[row] - indptr[row]
        for i in range(begin, indptr[row + 1]):
            if matched[i >> 3] >> (i & 7) & 1 == 0:
                column = indices[i + to_new]
                to = wider[column] + filled[column]
                filled[column] += 1
                indices[to] = row
                if weights.size > 0:
                    weights[to] = weights[i + to_new]


@kept
def _merge(first, last, indptr, wider, indices, weights, later, later_weights):
    """Merge the two ascending parts of each row, from the back; the second is put aside."""
    for row in range(first, last):
        begin, end = wider[row], wider[row + 1]
        middle = begin + indptr[row + 1] - indptr[row]
        left = end - middle
        if left == 0 or middle == begin or indices[middle - 1] < indices[middle]:
            continue
        for i in range(left):
            later[i] = indices[middle + i]
            if weights.size > 0:
                later_weights[i] = weights[middle + i]
        i, to = middle - 1, end - 1
        while left > 0:
            if i >= begin and indices[i] > later[left - 1]:
                indices[to] = indices[i]
                if weights.size > 0:
                    weights[to] = weights[i]
                i -= 1
            else:
                left -= 1
                indices[to] = later[left]
                if weights.size > 0:
                    weights[to] = later_weights[left]
            to -= 1
