"""Whether undirected lists hold every edge at both of its ends, told in one pass by a sum.

Every entry says two vertices and a weight, and a hash of these in the order of the vertices does
not tell the two entries of an edge apart. Added where the neighbour is the larger vertex, and taken
away where it is the smaller one, the hashes come to nothing if and only if each entry has its
counterpart, but for one chance in 2**64: no entry is there twice, and the key of the hash is drawn
anew each time, so that no file can be made up to suit it.
"""

from __future__ import annotations

import functools
import secrets
from typing import Any, NamedTuple

import numpy as np

from glp_rapids.common.hashing import mix
from glp_rapids.compressed.encode import row_of_part
from glp_rapids.compressed.format.scheme import Function
from glp_rapids.compressed.rows import CompressedCSR
from glp_rapids.compressed.weights import EqualWeights
from glp_rapids.device import array_module
from glp_rapids.graph.rows import CSR
from glp_rapids.jit.parallel_for import each
from glp_rapids.jit.target import Target

Array = Any

ENTRIES_AT_ONCE = 1 << 22
SPAN = np.int64(512)  # entries of one item
ONE = np.int64(1)


class Summing(NamedTuple):
    """What `functions` work on: a chunk of the lists."""

    key: np.uint64
    first: np.int64  # the place of the first list
    indptr: Array
    indices: Array
    weights: Array  # as uint64; or none
    sums: Array  # of each item


def is_symmetric(rows: CompressedCSR) -> bool:
    """Tell whether lists that are in order hold each entry at both ends, with one weight."""
    if isinstance(rows.weights, EqualWeights):
        rows = CompressedCSR(rows.lists, None, rows.order)
    key, total = np.uint64(secrets.randbits(64)), 0
    for first, _, chunk in rows.chunks(ENTRIES_AT_ONCE):
        xp, items = array_module(chunk.indices), -(-chunk.indices.size // int(SPAN))
        sums = xp.zeros(items, np.uint64)
        work = Summing(key, np.int64(first), chunk.indptr, chunk.indices, _as_words(chunk), sums)
        each(functions, "any", "add_span", items, work, rows.device)
        total += int(sums.sum())
    return total % 2**64 == 0


def _as_words(chunk: CSR) -> Array:
    xp, weights = array_module(chunk.indices), chunk.weights
    if weights is None:
        return xp.empty(0, np.uint64)
    weights = weights + weights.dtype.type(0)  # -0.0 becomes 0.0, which is as heavy
    return weights.view(f"u{weights.itemsize}").astype(np.uint64, copy=False)


@functools.cache
def functions(_scheme: str, target: Target) -> dict[str, Function]:
    """Compile the function that takes an item, so many entries, and a `Summing`."""
    device = target.device_function
    find_row, keyed = device(row_of_part), device(mix)

    @device
    def add_span(item, work):
        total, begin = np.uint64(0), item * SPAN
        row = find_row(work.indptr, begin)
        for j in range(begin, min(begin + SPAN, work.indices.size)):
            while work.indptr[row + ONE] <= j:
                row += ONE
            here, there = work.first + row, np.int64(work.indices[j])
            if here == there:
                continue
            pair = keyed(np.uint64(min(here, there)), work.key)
            pair = keyed(np.uint64(max(here, there)), pair)
            if work.weights.size > 0:
                pair = keyed(work.weights[j], pair)
            if here < there:
                total += pair
            else:
                total -= pair
        work.sums[item] = total

    return {"add_span": add_span}
