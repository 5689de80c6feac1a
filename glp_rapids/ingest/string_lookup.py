"""The ranks of strings that come in chunks, among sorted strings: a hash table of their bytes.

The strings stay where Arrow has them; the table, of linear probing, holds their ranks and is at
most two thirds full: 6 to 12 bytes a string (12 to 24 from 2^31 strings on). A hash table of pandas
would hold a Python object for each, 60 bytes and more beside the string.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from glp_rapids.graph import id_types
from glp_rapids.graph.sort_gpu import index_dtype
from glp_rapids.graph.string_hash import hashes_of_bytes
from glp_rapids.jit.cache import kept
from glp_rapids.jit.cpu import compiled
from glp_rapids.jit.parallel import ParallelKernel, threads_available, together

WORTH_THREADS = 1 << 12  # strings


class StringLookup:
    """Finds strings among sorted ones, given as `bytes_of` returns them."""

    def __init__(self, data: np.ndarray, ends: np.ndarray) -> None:
        self._data, self._ends, number = data, ends, ends.size - 1
        self._dtype = index_dtype(number)
        self._slots = np.full(1 << (number + number // 2).bit_length(), -1, self._dtype)
        _fill(hashes_of_bytes(data, ends), self._slots)

    @classmethod
    def of(cls, values: Any) -> StringLookup | None:
        """Make one of a column; None if the strings cannot be had as bytes."""
        found = bytes_of(values)
        return None if found is None else cls(*found)

    def __call__(self, column: Any, label: str) -> np.ndarray:
        """Return the ranks, -1 for what is not there; ``label`` is what messages call the ids."""
        found = bytes_of(id_types.plain(column)[0])
        if found is None:
            return np.full(len(column), -1, self._dtype)
        data, ends = found
        ranks = np.empty(ends.size - 1, self._dtype)
        threads = threads_available() if ranks.size >= WORTH_THREADS else 1
        _find(
            threads, data, ends, hashes_of_bytes(data, ends), self._data, self._ends, self._slots,
            ranks,
        )  # fmt: skip
        return ranks


def bytes_of(column: Any) -> tuple[np.ndarray, np.ndarray] | None:
    """Return the bytes of strings in UTF-8, and where each begins and the last one ends.

    None where there is no pyarrow, or a string has no form in UTF-8, as a lone surrogate.
    """
    try:
        import pyarrow as pa
    except ImportError:
        return None
    try:
        array = pa.array(column, pa.large_string(), from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError, UnicodeEncodeError):
        return None
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    _, offsets, data = array.buffers()
    ends = np.frombuffer(offsets, np.int64)[array.offset : array.offset + len(array) + 1]
    empty = data is None or not data.size
    return np.zeros(1, np.uint8) if empty else np.frombuffer(data, np.uint8), ends


@kept(error_model="numpy")
def _fill(hashes, slots):
    last = np.uint64(slots.size - 1)
    for i in range(hashes.size):
        slot = np.uint64(hashes[i]) & last
        while slots[slot] >= 0:
            slot = (slot + np.uint64(1)) & last
        slots[slot] = i


@ParallelKernel
def _find(team, data, ends, hashes, known, known_ends, slots, ranks):
    arguments = team.threads, data, ends, hashes, known, known_ends, slots, ranks
    together(team, _find_some, arguments)


@compiled(error_model="numpy")
def _find_some(thread, threads, data, ends, hashes, known, known_ends, slots, ranks):
    first, end = ranks.size * thread // threads, ranks.size * (thread + 1) // threads
    last = np.uint64(slots.size - 1)
    for i in range(first, end):
        slot = np.uint64(hashes[i]) & last
        rank = np.int64(slots[slot])
        while rank >= 0 and not _same(data, ends[i], ends[i + 1], known, known_ends, rank):
            slot = (slot + np.uint64(1)) & last
            rank = np.int64(slots[slot])
        ranks[i] = rank


@compiled(error_model="numpy")
def _same(data, begin, end, known, known_ends, rank):
    start = known_ends[rank]
    if known_ends[rank + 1] - start != end - begin:
        return False
    for i in range(end - begin):
        if data[np.uint64(begin + i)] != known[np.uint64(start + i)]:
            return False
    return True
