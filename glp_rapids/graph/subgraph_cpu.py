"""Rows cut out of a graph by all CPU cores: counted, then copied."""

from __future__ import annotations

import numpy as np

from glp_rapids.common.segments import segment_offsets
from glp_rapids.graph.rows import CSR
from glp_rapids.jit.cpu import compiled
from glp_rapids.jit.parallel import ParallelKernel, threads_available, together

WORTH_THREADS = 1 << 12  # rows
CHUNK = 256  # rows that a thread takes at a time
BITS = 64  # of a word of marks, which stay in a core's cache where new numbers would not

u64 = np.uint64
part = compiled(error_model="numpy")


def induced(graph: CSR, kept: np.ndarray) -> CSR:
    """Cut out the rows and columns ``kept``, which ascend; they become 0, 1, ..."""
    threads = threads_available() if kept.size >= WORTH_THREADS else 1
    number = np.empty(graph.indptr.size - 1, graph.indices.dtype)
    number[kept] = np.arange(kept.size, dtype=number.dtype)
    length = np.empty(kept.size, np.int64)
    marks = np.zeros(number.size // BITS + 1, np.uint64)
    _count(threads, graph.indptr, graph.indices, kept, marks, length)
    indptr = segment_offsets(length)
    indices = np.empty(int(indptr[-1]), graph.indices.dtype)
    weights = None if graph.weights is None else np.empty(indices.size, graph.weights.dtype)
    read, written = (np.empty(0),) * 2 if weights is None else (graph.weights, weights)
    _copy(threads, graph.indptr, graph.indices, read, kept, marks, number, indptr, indices, written)
    return CSR(indptr, indices, weights)


@part
def _is_marked(marks, v):
    return marks[v // u64(BITS)] >> v % u64(BITS) & u64(1)


@part
def _count_some(thread, threads, indptr, indices, kept, marks, length):
    for chunk in range(thread, (kept.size + CHUNK - 1) // CHUNK, threads):
        for row in range(chunk * CHUNK, min(kept.size, (chunk + 1) * CHUNK)):
            v, found = u64(kept[u64(row)]), 0
            for p in range(indptr[v], indptr[v + u64(1)]):
                found += np.int64(_is_marked(marks, u64(indices[u64(p)])))
            length[u64(row)] = found


@ParallelKernel
def _count(team, indptr, indices, kept, marks, length):
    """Mark what is kept, a bit each, and count the entries that each row keeps."""
    for i in range(kept.size):
        v = u64(kept[u64(i)])
        marks[v // u64(BITS)] |= u64(1) << v % u64(BITS)
    together(team, _count_some, (team.threads, indptr, indices, kept, marks, length))


@part
def _copy_some(
    thread, threads, indptr, indices, weights, kept, marks, number, starts, column, weight
):  # fmt: skip
    weighted = weights.size > 0
    for chunk in range(thread, (kept.size + CHUNK - 1) // CHUNK, threads):
        for row in range(chunk * CHUNK, min(kept.size, (chunk + 1) * CHUNK)):
            v, to = u64(kept[u64(row)]), starts[u64(row)]
            for p in range(indptr[v], indptr[v + u64(1)]):
                u = u64(indices[u64(p)])
                if _is_marked(marks, u):
                    column[u64(to)] = number[u]
                    if weighted:
                        weight[u64(to)] = weights[u64(p)]
                    to += 1


@ParallelKernel
def _copy(team, indptr, indices, weights, kept, marks, number, starts, column, weight):
    together(team, _copy_some, (
        team.threads, indptr, indices, weights, kept, marks, number, starts, column, weight,
    ))  # fmt: skip
