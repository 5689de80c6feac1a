"""Rows of a CSR sorted in place, weights along, on all cores: no second array of entries.

A row is sorted by quicksort (Hoare, 1962) with the median of three as its pivot; what is short by
insertion, and what has been cut unevenly too often by heapsort, so that no row takes longer than
O(d log d). Long rows without weights are left to NumPy, whose sort is vectorized and in place, too:
five times as fast from some thousand entries on.
"""

from __future__ import annotations

import numpy as np

from glp_rapids.jit.cache import kept
from glp_rapids.jit.cpu import compiled
from glp_rapids.jit.interrupts import parts_of_rows
from glp_rapids.jit.parallel import ParallelKernel, threads_available, together

SHORT = 24  # entries that insertion sorts faster
LONG = 1 << 10  # entries that NumPy sorts faster, calling it included
SHARES = 16  # parts of the rows for each thread: rows of as many entries may take different times
WORTH_THREADS = 1 << 14  # entries

u64 = np.uint64


def sort_rows(
    indptr: np.ndarray, indices: np.ndarray, weights: np.ndarray | None, first: int, last: int
) -> None:
    """Sort the entries of rows ``first`` to ``last`` - 1 by index; weights move with them."""
    most = np.int64(LONG if weights is None else indices.size)
    for begin, end in parts_of_rows(indptr[first : last + 1]):
        if begin < end:
            _sort_part(indptr, indices, weights, first + begin, first + end, most)


def _sort_part(indptr, indices, weights, first, last, most):
    entries = int(indptr[last] - indptr[first])
    threads = threads_available() if entries >= WORTH_THREADS else 1
    cuts = np.linspace(indptr[first], indptr[last], SHARES * threads + 1).astype(np.int64)
    cuts = first + np.searchsorted(indptr[first : last + 1], cuts)
    cuts[0], cuts[-1] = first, last
    _sort(threads, cuts, indptr, indices, weights, most)
    if weights is None:
        for row in _rows_longer_than(most, indptr, first, last, entries // most + 1):
            indices[indptr[row] : indptr[row + 1]].sort()


@kept(allocates=True)
def _rows_longer_than(most, indptr, first, last, limit):
    found = np.empty(limit, np.int64)
    number = 0
    for row in range(first, last):
        if indptr[row + 1] - indptr[row] > most:
            found[number] = row
            number += 1
    return found[:number]


@ParallelKernel
def _sort(team, cuts, indptr, indices, weights, most):
    """Sort rows of at most so many entries; ``cuts`` are the first rows of the shares."""
    together(team, _sort_shares, (team.threads, cuts, indptr, indices, weights, most))


@compiled(error_model="numpy", allocates=True)
def _sort_shares(thread, threads, cuts, indptr, indices, weights, most):
    ahead = np.empty(128, np.int64)
    for share in range(thread, cuts.size - 1, threads):
        for row in range(cuts[share], cuts[share + 1]):
            begin, end = indptr[row], indptr[row + 1]
            if 1 < end - begin <= most:
                _sort_row(indices, weights, begin, end, ahead)


@compiled(error_model="numpy")
def _sort_row(keys, values, first, last, ahead):
    waiting = 0
    uneven = 0
    size = last - first
    while size > 0:
        size >>= 1
        uneven += 2  # so many bad cuts are allowed
    while True:
        while last - first > SHORT:
            if uneven == 0:
                _heapsort(keys, values, first, last)
                first = last
                break
            i, j = _cut(keys, values, first, last)
            left, right = j + 1 - first, last - i
            if min(left, right) < (last - first) >> 3:
                uneven -= 1
            # the larger side waits, so that few do
            if left < right:
                ahead[waiting], ahead[waiting + 1] = i, last
                last = j + 1
            else:
                ahead[waiting], ahead[waiting + 1] = first, j + 1
                first = i
            waiting += 2
        _insertion_sort(keys, values, first, last)
        if waiting == 0:
            return
        waiting -= 2
        first, last = ahead[waiting], ahead[waiting + 1]


@compiled(error_model="numpy")
def _cut(keys, values, first, last):
    """Move what is less than a pivot before what is more: ``[first, j]`` and ``[i, last)``."""
    a, b, c = keys[u64(first)], keys[u64((first + last) >> 1)], keys[u64(last - 1)]
    pivot = max(min(a, b), min(max(a, b), c))
    i, j = first, last - 1
    while i <= j:
        while keys[u64(i)] < pivot:
            i += 1
        while keys[u64(j)] > pivot:
            j -= 1
        if i <= j:
            _swap(keys, values, i, j)
            i += 1
            j -= 1
    return i, j


@compiled(error_model="numpy")
def _swap(keys, values, i, j):
    keys[u64(i)], keys[u64(j)] = keys[u64(j)], keys[u64(i)]
    if values is not None:
        values[u64(i)], values[u64(j)] = values[u64(j)], values[u64(i)]


@compiled(error_model="numpy")
def _insertion_sort(keys, values, first, last):
    for i in range(first + 1, last):
        key = keys[u64(i)]
        j = i
        if values is None:
            while j > first and keys[u64(j - 1)] > key:
                keys[u64(j)] = keys[u64(j - 1)]
                j -= 1
        else:
            value = values[u64(i)]
            while j > first and keys[u64(j - 1)] > key:
                keys[u64(j)] = keys[u64(j - 1)]
                values[u64(j)] = values[u64(j - 1)]
                j -= 1
            values[u64(j)] = value
        keys[u64(j)] = key


@compiled(error_model="numpy")
def _heapsort(keys, values, first, last):
    size = last - first
    for top in range((size >> 1) - 1, -1, -1):
        _sift_down(keys, values, first, top, size)
    for end in range(size - 1, 0, -1):
        _swap(keys, values, first, first + end)
        _sift_down(keys, values, first, 0, end)


@compiled(error_model="numpy")
def _sift_down(keys, values, first, top, size):
    """Let an entry of a heap of so many sink below all that are larger."""
    while True:
        child = 2 * top + 1
        if child >= size:
            return
        if child + 1 < size and keys[u64(first + child)] < keys[u64(first + child + 1)]:
            child += 1
        if keys[u64(first + child)] <= keys[u64(first + top)]:
            return
        _swap(keys, values, first + top, first + child)
        top = child
