"""Contraction on CPU cores: the row of a part is gathered from its vertices in a table.

Threads take parts in turn. Rows are written where all entries of the vertices would have room, then
moved together.
"""

from __future__ import annotations

import numpy as np

from glp_rapids.communities.kernels.moving import CHUNK
from glp_rapids.jit.cpu import compiled
from glp_rapids.jit.parallel import ParallelKernel, together

jit = compiled(error_model="numpy", _nrt=False)


@jit
def _gather_some(
    thread, threads, offsets, members, level, parts, begins, indices, weights, sizes, totals
):
    """Write the rows of a thread's parts; ``totals`` has a zero for each part and thread."""
    total = totals[thread]
    weighted = level.weights.size > 0
    number = offsets.size - 1
    for chunk in range(thread, (number + CHUNK - 1) // CHUNK, threads):
        for part in range(chunk * CHUNK, min((chunk + 1) * CHUNK, number)):
            begin = begins[np.uint64(part)]
            end = begin
            weight = level.unit
            for position in range(offsets[np.uint64(part)], offsets[np.uint64(part + 1)]):
                v = members[np.uint64(position)]
                for j in range(level.indptr[np.uint64(v)], level.indptr[np.uint64(v + 1)]):
                    other = parts[np.uint64(level.indices[np.uint64(j)])]
                    if other == part:
                        continue
                    if weighted:
                        weight = level.weights[np.uint64(j)]
                    if weight > 0:
                        if total[np.uint64(other)] == 0:
                            indices[np.uint64(end)] = other
                            end += 1
                        total[np.uint64(other)] += weight
            for j in range(begin, end):
                other = np.uint64(indices[np.uint64(j)])
                weights[np.uint64(j)] = total[other]
                total[other] = 0
            sizes[np.uint64(part)] = end - begin


@jit
def _close_some(thread, threads, begins, indptr, indices, weights, new_indices, new_weights):
    number = indptr.size - 1
    for part in range(number * thread // threads, number * (thread + 1) // threads):
        shift = begins[np.uint64(part)] - indptr[np.uint64(part)]
        for j in range(indptr[np.uint64(part)], indptr[np.uint64(part + 1)]):
            new_indices[np.uint64(j)] = indices[np.uint64(j + shift)]
            new_weights[np.uint64(j)] = weights[np.uint64(j + shift)]


@ParallelKernel
def gather_rows(team, offsets, members, level, parts, begins, indices, weights, sizes, totals):
    """Write the row of every part from ``begins`` on, and how long it is."""
    together(team, _gather_some, (
        team.threads, offsets, members, level, parts, begins, indices, weights, sizes, totals,
    ))  # fmt: skip


@ParallelKernel
def close_up(team, begins, indptr, indices, weights, new_indices, new_weights):
    """Move the rows together."""
    together(team, _close_some, (
        team.threads, begins, indptr, indices, weights, new_indices, new_weights,
    ))  # fmt: skip
