"""Edge lists to sorted CSR by counting: the functions of `sort_gpu` for the CPU.

Two counting passes order a list of pairs in linear time: the first drops every row number into
the bucket of its column; the second walks the buckets in order of the columns and drops every
column number into its row, where the columns therefore arrive sorted, and equal ones next to each
other. On ten million edges that is half the time of the SIMD sort of NumPy, and a quarter of its
argsort.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from glp_rapids.graph.sort_gpu import index_dtype
from glp_rapids.jit.cache import kept
from glp_rapids.jit.interrupts import parts, parts_of_rows

FEW = 16  # vertices for each pair, from which on pairs are sorted by comparing


def merged_entries(
    source: np.ndarray, destination: np.ndarray, number_of_vertices: int, symmetric: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Sort pairs into indptr and indices, each once; ``symmetric`` adds the reverse of each."""
    by_row, by_column = _starts(source, destination, number_of_vertices, symmetric)
    index = index_dtype(number_of_vertices)
    bucket = np.empty(by_column[-1], dtype=index)
    cursor = by_column[:-1].copy()
    for first, last in parts(source.size):
        _fill_buckets(source[first:last], destination[first:last], cursor, bucket, symmetric)
    indices = np.empty_like(bucket)
    cursor = by_row[:-1].copy()
    for first, last in parts_of_rows(by_column):
        _fill_rows(first, last, by_column, bucket, cursor, indices)
    del bucket
    indptr = np.zeros(number_of_vertices + 1, dtype=np.int64)
    for first, last in parts_of_rows(by_row):
        _close_up(first, last, by_row, indices, indptr)
    indices.resize(indptr[-1], refcheck=False)
    return indptr, indices


def sorted_entries(
    source: np.ndarray, destination: np.ndarray, number_of_vertices: int, symmetric: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Sort pairs into indptr, indices and each entry's edge row; duplicates stay in their order.

    ``symmetric`` adds the reverse of every pair but of self-loops.
    """
    if source.size * FEW < number_of_vertices <= 1 << 32:
        # counting would go through all vertices four times
        return _few_entries(source, destination, number_of_vertices, symmetric)
    by_row, by_column = _starts(source, destination, number_of_vertices, symmetric)
    index = index_dtype(number_of_vertices)
    bucket = np.empty(by_column[-1], dtype=index)
    edge = np.empty(bucket.size, dtype=index_dtype(source.size))
    cursor = by_column[:-1].copy()
    for first, last in parts(source.size):
        _fill_buckets_with_edge(
            first, source[first:last], destination[first:last], cursor, bucket, edge, symmetric
        )
    indices = np.empty_like(bucket)
    order = np.empty_like(edge)
    cursor = by_row[:-1].copy()
    for first, last in parts_of_rows(by_column):
        _fill_rows_with_edge(first, last, by_column, bucket, edge, cursor, indices, order)
    return by_row.copy(), indices, order  # a part of what counts both rows and columns


def _few_entries(source, destination, number_of_vertices, symmetric):
    """Sort pairs by comparing them, in as many steps as there are; only ``indptr`` is longer."""
    edge = np.arange(source.size, dtype=index_dtype(source.size))
    pairs = np.stack([source, destination], axis=1).astype(np.uint64)
    if symmetric:
        # each edge beside its reverse, so that equal entries stay in the order of the edges
        there = np.ones((source.size, 2), dtype=bool)
        there[:, 1] = source != destination
        pairs = np.stack([pairs, pairs[:, ::-1]], axis=1)[there]
        edge = np.repeat(edge, 2)[there.ravel()]
    order = np.argsort(pairs[:, 0] << np.uint64(32) | pairs[:, 1], kind="stable")
    row, column = pairs[order].T
    indptr = np.zeros(number_of_vertices + 1, dtype=np.int64)
    rows, counts = np.unique(row, return_counts=True)
    indptr[rows.astype(np.int64) + 1] = counts
    np.cumsum(indptr, out=indptr)
    return indptr, column.astype(index_dtype(number_of_vertices)), edge[order]


def transposed(
    indptr: np.ndarray, indices: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Transpose a CSR: indptr, indices and each entry's old position."""
    starts = np.zeros(indptr.size, dtype=np.int64)
    np.cumsum(np.bincount(indices, minlength=indptr.size - 1), out=starts[1:])
    rows = np.empty_like(indices)
    order = np.empty(indices.size, dtype=index_dtype(indices.size))
    cursor = starts[:-1].copy()
    for first, last in parts_of_rows(indptr):
        _transpose(first, last, indptr, indices, cursor, rows, order)
    return starts, rows, order


def factorize(arrays: list[np.ndarray]) -> tuple[list[np.ndarray], np.ndarray]:
    """Rank every value among the sorted distinct ones of all arrays; these come second."""
    codes, distinct = pd.factorize(np.concatenate(arrays))
    order = np.argsort(distinct)
    ranks = np.empty(distinct.size, dtype=index_dtype(distinct.size))
    ranks[order] = np.arange(distinct.size, dtype=ranks.dtype)
    ends = np.cumsum([array.size for array in arrays])
    return np.split(ranks[codes], ends[:-1]), distinct[order]


def _starts(source, destination, number_of_vertices, symmetric):
    counts = np.zeros((2, number_of_vertices + 1), dtype=np.int64)
    of_row, of_column = counts[0, 1:], counts[1, 1:]
    for first, last in parts(source.size):
        _count(source[first:last], destination[first:last], of_row, of_column, symmetric)
    np.cumsum(counts, axis=1, out=counts)
    return (counts[1], counts[1]) if symmetric else (counts[0], counts[1])


@kept
def _count(source, destination, of_row, of_column, symmetric):
    for i in range(source.size):
        row, column = source[i], destination[i]
        of_column[column] += 1
        if not symmetric:
            of_row[row] += 1
        elif row != column:
            of_column[row] += 1


@kept
def _fill_buckets(source, destination, cursor, bucket, symmetric):
    for i in range(source.size):
        row, column = source[i], destination[i]
        bucket[cursor[column]] = row
        cursor[column] += 1
        if symmetric and row != column:
            bucket[cursor[row]] = column
            cursor[row] += 1


@kept
def _fill_buckets_with_edge(first, source, destination, cursor, bucket, edge, symmetric):
    for i in range(source.size):
        row, column = source[i], destination[i]
        bucket[cursor[column]] = row
        edge[cursor[column]] = first + i
        cursor[column] += 1
        if symmetric and row != column:
            bucket[cursor[row]] = column
            edge[cursor[row]] = first + i
            cursor[row] += 1


@kept
def _fill_rows(first, last, starts, bucket, cursor, indices):
    for column in range(first, last):
        for i in range(starts[column], starts[column + 1]):
            to = cursor[bucket[i]]
            cursor[bucket[i]] = to + 1
            indices[to] = column


@kept
def _fill_rows_with_edge(first, last, starts, bucket, edge, cursor, indices, order):
    for column in range(first, last):
        for i in range(starts[column], starts[column + 1]):
            to = cursor[bucket[i]]
            cursor[bucket[i]] = to + 1
            indices[to] = column
            order[to] = edge[i]


@kept
def _close_up(first, last, row_starts, indices, indptr):
    to = indptr[first]
    for row in range(first, last):
        begin = to
        for i in range(row_starts[row], row_starts[row + 1]):
            if to == begin or indices[to - 1] != indices[i]:
                indices[to] = indices[i]
                to += 1
        indptr[row + 1] = to


@kept
def _transpose(first, last, indptr, indices, cursor, rows, order):
    for row in range(first, last):
        for i in range(indptr[row], indptr[row + 1]):
            to = cursor[indices[i]]
            cursor[indices[i]] += 1
            rows[to] = row
            order[to] = i
