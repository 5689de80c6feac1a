"""What rows of indices are worth, on the CPU: in range, ascending, symmetric; O(n) of memory.

Rows are read one after the other, 16 million entries a call, so that a Ctrl-C need not wait long.
One thread keeps up with the memory.
"""

from __future__ import annotations

import numpy as np

from glp_rapids.jit.cache import kept
from glp_rapids.jit.interrupts import parts_of_rows

ASCENDING, UNSORTED, OUT_OF_RANGE = range(3)


def worst_of(indptr: np.ndarray, indices: np.ndarray) -> int:
    """Tell whether rows ascend without duplicates, or do not, or hold an index that is no row.

    ``indptr`` must be right: ascending, from 0 up to at most the size of ``indices``.
    """
    worst = ASCENDING
    for first, last in parts_of_rows(indptr):
        worst = max(worst, int(_worst(first, last, indptr, indices)))
    return worst


def is_symmetric(
    indptr: np.ndarray, indices: np.ndarray, weights: np.ndarray | None, apart: float = 0.0
) -> bool:
    """Tell whether every entry (u, v) has an equal one (v, u).

    Weights may be ``apart`` by such a share of the larger one. Rows must ascend without duplicates.
    They are gone through from the first to the last, so what is asked of a row comes in its order:
    one cursor a row finds it. O(n + m), 4 or 8 bytes a row.
    """
    cursor = np.zeros(indptr.size - 1, dtype=indices.dtype)
    if weights is None:
        weights = np.empty(0, dtype=np.int64)
    return all(
        _is_symmetric(first, last, indptr, indices, weights, np.float64(apart), cursor)
        for first, last in parts_of_rows(indptr)
    )


@kept
def _worst(first, last, indptr, indices):
    rows = indptr.size - 1
    unsorted = outside = False
    for row in range(first, last):
        before = np.int64(-1)
        for i in range(indptr[row], indptr[row + 1]):
            column = np.int64(indices[i])
            unsorted |= column <= before
            outside |= column < 0
            outside |= column >= rows
            before = column
    return OUT_OF_RANGE if outside else UNSORTED if unsorted else ASCENDING


@kept
def _is_symmetric(first, last, indptr, indices, weights, apart, cursor):
    for row in range(first, last):
        i, end = indptr[row] + cursor[row], indptr[row + 1]
        # all entries before the diagonal were asked for by the rows before
        if i < end and indices[i] < row:
            return False
        if i < end and indices[i] == row:
            i += 1
        for j in range(i, end):
            column = indices[j]
            other = indptr[column] + cursor[column]
            if other >= indptr[column + 1] or indices[other] != row:
                return False
            if weights.size > 0 and weights[other] != weights[j]:
                one, another = np.float64(weights[j]), np.float64(weights[other])
                if apart == 0 or not abs(one - another) <= apart * max(one, another):
                    return False
            cursor[column] += 1
    return True
