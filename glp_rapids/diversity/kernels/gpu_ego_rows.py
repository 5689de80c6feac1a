"""Rows of large ego-networks as a CSR: whom each member knows, marked in bits and then listed.

A word has a bit for each of 32 candidates of a member (see `gpu_members`). They ascend, and so do
those of the longer row that they are looked up in: each search begins where the last one ended and
steps out in doubled strides, which where rows are about as long is a step or two. Every word is a
thread's, so hubs and others share the work evenly; and what was found need not be looked up again
to be listed.

Bentley and Yao, "An almost optimal algorithm for unbounded searching", Information Processing
Letters 5 (1976).
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from glp_rapids.diversity.kernels.gpu_members import candidates
from glp_rapids.jit.cuda import cuda, kernel
from glp_rapids.jit.primitives import lower_bound, row_of, upper_bound

THREADS = 256
BITS = 32
ONE = np.uint32(1)


@cuda.jit(device=True)
def note_rows(offsets, first, threads, bounds):
    """Let all threads of a block know the rows of the first and last of its places."""
    thread = cuda.threadIdx.x
    if thread < 2:
        last = min(first + threads, np.int64(offsets[offsets.size - 1])) - np.int64(1)
        bounds[thread] = row_of(offsets, last if thread == 1 else first)
    cuda.syncthreads()


@cuda.jit(device=True)
def row_between(offsets, bounds, place):
    """Return the row of a place of this block."""
    return np.int64(upper_bound(offsets, bounds[0], bounds[1] + 1, place) - 1)


@cuda.jit(device=True)
def lower_bound_from(values, first, last, value):
    """Return what `lower_bound` does, sooner the nearer it is to ``first``."""
    step = np.int64(1)
    while first < last:
        probe = min(first + step, last) - np.int64(1)
        if values[probe] >= value:
            return lower_bound(values, first, probe, value)
        first = probe + np.int64(1)
        step += step
    return last


@functools.cache
def build_words(threads: int) -> Any:
    """Make the kernel that counts the words of every node.

    Launch: a thread a node. Degrees: any. Registers: 24.
    """

    def count_words(graph, words):
        node = np.int64(cuda.blockIdx.x) * threads + cuda.threadIdx.x
        if node < words.size:
            rows = candidates(graph, node, np.int64(-1))
            words[node] = (rows[0] + BITS - 1) // BITS

    return kernel(count_words, str(threads))


@functools.cache
def build_mark(threads: int) -> Any:
    """Make the kernel that marks whom every node knows, and counts them by words.

    Launch: a thread a word; those of a node begin at ``word_offsets``. Degrees: any. Shared memory:
    16 bytes. Registers: 38.
    """

    def mark_members(graph, word_offsets, marks, known):
        bounds = cuda.shared.array(2, np.int64)
        first = np.int64(cuda.blockIdx.x) * threads
        note_rows(word_offsets, first, threads, bounds)
        word = first + cuda.threadIdx.x
        if word < marks.size:
            node = row_between(word_offsets, bounds, word)
            number, _, short, size, long, degree = candidates(graph, node, np.int64(-1))
            if size >= degree:
                short, long, degree = long, short, size
            last = long + degree
            begin = (word - word_offsets[node]) * BITS
            bits = np.uint32(0)
            found = np.uint8(0)
            place = lower_bound(graph.indices, long, last, graph.indices[short + begin])
            for bit in range(min(number - begin, np.int64(BITS))):
                w = graph.indices[short + begin + bit]
                place = lower_bound_from(graph.indices, place, last, w)
                if place == last:
                    break
                if graph.indices[place] == w:
                    bits = np.uint32(bits | (ONE << np.uint32(bit)))
                    found += np.uint8(1)
            marks[word] = bits
            known[word] = found

    return kernel(mark_members, str(threads))


@functools.cache
def build_list(threads: int) -> Any:
    """Make the kernel that lists the nodes that are marked, those of a word from ``begins`` on.

    Launch: a thread a word. Degrees: any. Shared memory: 16 bytes. Registers: 38.
    """

    def list_members(graph, word_offsets, marks, begins, indices):
        bounds = cuda.shared.array(2, np.int64)
        first = np.int64(cuda.blockIdx.x) * threads
        note_rows(word_offsets, first, threads, bounds)
        word = first + cuda.threadIdx.x
        if word < marks.size and marks[word] != 0:
            node = row_between(word_offsets, bounds, word)
            _, base, start, size, other, degree = candidates(graph, node, np.int64(-1))
            begin = (word - word_offsets[node]) * BITS
            bits = marks[word]
            at = begins[word]
            place = start
            while bits:
                candidate = begin + cuda.ffs(bits) - 1
                bits = np.uint32(bits & (bits - ONE))
                if size < degree:
                    place = start + candidate
                else:
                    w = graph.indices[other + candidate]
                    if place == start:
                        place = lower_bound(graph.indices, start, start + size, w)
                    else:
                        place = lower_bound_from(graph.indices, place, start + size, w)
                indices[at] = base + place - start
                at += 1

    return kernel(list_members, str(threads))
