"""Neighbour lists on the host in as few bits an entry as the largest vertex needs, side by side.

What comes over a bus is then `bits` / 32 of what an array takes: of 2^24 vertices three quarters.
A GPU reads entries as they are, see `kernels.gpu.entries`; so all that is copied are whole words.
32 entries take as many words of 32 bits as an entry has bits: such a line begins at a word.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from glp_rapids.jit.cpu import compiled as compiled_for_cpu
from glp_rapids.jit.parallel import ParallelKernel, threads_available, together
from glp_rapids.outofcore import pinned
from glp_rapids.outofcore.pinned import HostArray

LINE = 32  # entries that begin and end with a word


def word_of(index_dtype: Any) -> np.dtype:
    """Return the type of the words in which entries lie, as wide as an index is."""
    return np.dtype(f"u{np.dtype(index_dtype).itemsize}")


def words_of(entries: int, bits: int, word: np.dtype) -> int:
    """Return how many words so many entries take, in whole lines."""
    return -(-entries // LINE) * (LINE * bits // (8 * word.itemsize))


@dataclass
class BitPacked(HostArray):
    """Entries of ``bits`` each in the words of ``array``, which has one more than they take."""

    bits: int

    @property
    def bits_an_entry(self) -> int:
        """How many bits an entry takes."""
        return self.bits

    def copies(self, shift: int, first: int, last: int) -> Iterator[tuple[int, np.ndarray]]:
        """Yield whole lines with the entries, and at which word they begin ``shift`` further on."""
        line, end = first // LINE, -(-last // LINE)
        a_line = words_of(LINE, self.bits, self.array.dtype)
        yield (line + shift // LINE) * a_line, self.array[line * a_line : end * a_line]


@compiled_for_cpu(error_model="numpy")
def _pack_some(thread, threads, vertices, indptr, starts, indices, bits, words):
    width = np.int64(8 * words.itemsize)
    total = starts[-1]
    lines = (total + LINE - 1) // LINE
    entry = lines * thread // threads * LINE
    end = min(lines * (thread + 1) // threads * LINE, total)
    if entry >= end:
        return
    low, high = np.int64(0), np.int64(vertices.size - 1)
    while low < high:  # the last row that begins by then
        middle = (low + high + 1) // 2
        if starts[middle] <= entry:
            low = middle
        else:
            high = middle - 1
    place, filled, several = entry * bits // width, np.int64(0), np.uint64(0)
    while entry < end:
        j = indptr[vertices[low]] + entry - starts[low]
        stop = min(starts[low + 1], end)
        while entry < stop:
            value = np.uint64(indices[np.uint64(j)])
            several |= value << np.uint64(filled)
            filled += bits
            if filled >= width:
                words[np.uint64(place)] = several
                place += 1
                filled -= width
                several = np.uint64(0)
                if filled > 0:
                    several = value >> np.uint64(bits - filled)
            entry += 1
            j += 1
        low += 1
    if filled > 0:
        words[np.uint64(place)] = several


@ParallelKernel
def pack_rows(team, vertices, indptr, starts, indices, bits, words):
    """Write the rows of some vertices, which then begin at ``starts``, each thread some lines."""
    together(team, _pack_some, (team.threads, vertices, indptr, starts, indices, bits, words))


def packed_rows(
    vertices: np.ndarray, indptr: np.ndarray, starts: np.ndarray, indices: np.ndarray, bits: int,
    device: Any,
) -> BitPacked:  # fmt: skip
    """Pack the rows of some vertices, one after the other, into pinned memory."""
    word = word_of(indices.dtype)
    host = pinned.empty(words_of(int(starts[-1]), bits, word) + 1, word, device)
    if vertices.size:
        pack_rows(
            threads_available(), vertices, indptr, starts, np.asarray(indices), np.int64(bits),
            host.array,
        )  # fmt: skip
    return BitPacked(host.array, host.pinned, bits)
