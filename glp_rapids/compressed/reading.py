"""Some lists of a compressed graph at a time, decoded: those a sweep asks for, or all in turn."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numba
import numpy as np
from numba import njit, prange

from glp_rapids.compressed.csr import CompressedCSR
from glp_rapids.compressed.decode import decode_rows
from glp_rapids.compressed.weights import CodedWeights
from glp_rapids.device import module_on, to_host
from glp_rapids.graph import CSR

Array = Any
ENTRIES_AT_ONCE = 1 << 24
PARALLEL_FROM = 1 << 14  # entries: fewer are copied before other threads are awake


def read_lists(
    rows: CompressedCSR, vertices: Array, starts: Array, indices: Array, weights: Array | None
) -> None:
    """Write the neighbours of ``vertices[i]`` to ``indices[starts[i]:starts[i + 1]]``, on the CPU.

    And their weights to the same places of ``weights``, unless that is None.
    """
    entries = int(starts[-1])
    threads = numba.get_num_threads() if entries >= PARALLEL_FROM else 1
    places = vertices if rows.place is None else rows.place[vertices]
    decode_rows(rows.lists, places, indices, starts)
    if rows.order is not None:
        _look_up(threads, rows.order, indices, entries)
    if weights is None:
        return
    word = f"u{weights.itemsize}"  # weights of one size are copied by the same code
    given, copy = rows.weights, weights.view(word)
    if isinstance(given, CodedWeights):
        codes, values = given.codes, given.values.view(word)
        _copy_coded(threads, places, rows.entry_starts, codes, values, starts, copy)
    else:
        _copy(threads, places, rows.entry_starts, given.view(word), starts, copy)


def pieces(rows: CompressedCSR) -> Iterator[tuple[int, int, CSR]]:
    """Give all lists that have entries, some at a time: the first place, the last, the lists.

    Entries are places too; row 0 of a piece is that of the first place.
    """
    xp = module_on(rows.device)
    starts, entries = rows.entry_starts, rows.number_of_edges
    cuts = xp.searchsorted(starts, xp.arange(ENTRIES_AT_ONCE, entries, ENTRIES_AT_ONCE))
    ends = [0, *to_host(cuts).tolist(), rows.number_of_vertices]
    for first, last in pairwise(ends):
        begin, end = int(starts[first]), int(starts[last])
        if begin == end:
            continue
        indptr = starts[first : last + 1] - begin
        indices = xp.empty(end - begin, rows.index_dtype)
        decode_rows(rows.lists, xp.arange(first, last, dtype=rows.index_dtype), indices, indptr)
        weights = rows.weights
        if isinstance(weights, CodedWeights):
            weights = weights.values[weights.codes[begin:end]]
        elif weights is not None:
            weights = weights[begin:end]
        yield first, last, CSR(indptr, indices, weights)


@njit(parallel=True, nogil=True, cache=True, error_model="numpy")
def _look_up(threads, table, numbers, size):
    for thread in prange(threads):
        for j in range(size * thread // threads, size * (thread + 1) // threads):
            numbers[np.uint64(j)] = table[np.uint64(numbers[np.uint64(j)])]


@njit(parallel=True, nogil=True, cache=True, error_model="numpy")
def _copy(threads, places, from_starts, entries, starts, copy):
    for thread in prange(threads):
        first = places.size * thread // threads
        last = places.size * (thread + 1) // threads
        for position in range(first, last):
            k = starts[np.uint64(position)]
            end = starts[np.uint64(position + 1)]
            j = from_starts[np.uint64(places[np.uint64(position)])]
            while k < end:
                copy[np.uint64(k)] = entries[np.uint64(j)]
                k += 1
                j += 1


@njit(parallel=True, nogil=True, cache=True, error_model="numpy")
def _copy_coded(threads, places, from_starts, codes, values, starts, copy):
    for thread in prange(threads):
        first = places.size * thread // threads
        last = places.size * (thread + 1) // threads
        for position in range(first, last):
            k = starts[np.uint64(position)]
            end = starts[np.uint64(position + 1)]
            j = from_starts[np.uint64(places[np.uint64(position)])]
            while k < end:
                copy[np.uint64(k)] = values[np.uint64(codes[np.uint64(j)])]
                k += 1
                j += 1
