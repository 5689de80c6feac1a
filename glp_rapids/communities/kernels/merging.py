"""Contraction on CPU cores: the row of a part is listed from its vertices and added up in a table.

Threads take chunks of parts in turn. The rows of a chunk are written one after the other, from
where there would be room for all entries of its vertices; then all chunks are moved together.
"""

from __future__ import annotations

import numpy as np

from glp_rapids.communities.kernels.moving import CHUNK, fetch_rows
from glp_rapids.jit.cache import kept
from glp_rapids.jit.cpu import compiled
from glp_rapids.jit.parallel import ParallelKernel, together

jit = compiled(error_model="numpy", _nrt=False)


@kept(error_model="numpy")
def sort_by_part(parts, indptr, volume, offsets, members, begins, volumes):
    """List the vertices of each part in ascending order; add up their entries and their volumes.

    ``offsets`` and ``begins``, of zeros before, tell where the vertices of each part begin, and
    where its entries would.
    """
    for v in range(parts.size):
        part = np.uint64(parts[v])
        offsets[part + np.uint64(1)] += 1
        begins[part + np.uint64(1)] += indptr[v + 1] - indptr[v]
        volumes[part] += volume[v]
    for part in range(volumes.size):
        offsets[part + 1] += offsets[part]
        begins[part + 1] += begins[part]
    for v in range(parts.size):
        part = np.uint64(parts[v])
        members[np.uint64(offsets[part])] = v
        offsets[part] += 1
    for part in range(volumes.size, 0, -1):
        offsets[part] = offsets[part - 1]
    offsets[0] = 0


@jit
def _gather_some(
    thread, threads, offsets, members, level, parts, begins, indices, weights, sizes, totals
):
    """Write the rows of a thread's parts; ``totals`` has a zero for each part and thread."""
    total = totals[thread]
    weighted = level.weights.size > 0
    number = offsets.size - 1
    for chunk in range(thread, (number + CHUNK - 1) // CHUNK, threads):
        end = begins[np.uint64(chunk * CHUNK)]
        for part in range(chunk * CHUNK, min((chunk + 1) * CHUNK, number)):
            begin = end
            weight = level.unit
            for position in range(offsets[np.uint64(part)], offsets[np.uint64(part + 1)]):
                fetch_rows(position, members.size, members, level)
                v = members[np.uint64(position)]
                for j in range(level.indptr[np.uint64(v)], level.indptr[np.uint64(v + 1)]):
                    other = parts[np.uint64(level.indices[np.uint64(j)])]
                    indices[np.uint64(end)] = other
                    outside = other != part
                    if weighted:
                        weight = level.weights[np.uint64(j)]
                        weights[np.uint64(end)] = weight
                        outside &= weight > 0
                    end += outside
            listed, end = end, begin
            for j in range(begin, listed):
                other = indices[np.uint64(j)]
                if weighted:
                    weight = weights[np.uint64(j)]
                before = total[np.uint64(other)]
                indices[np.uint64(end)] = other
                end += before == 0
                total[np.uint64(other)] = before + weight
            for j in range(begin, end):
                other = np.uint64(indices[np.uint64(j)])
                weights[np.uint64(j)] = total[other]
                total[other] = 0
            sizes[np.uint64(part)] = end - begin


@jit
def _close_some(thread, threads, begins, indptr, indices, weights, new_indices, new_weights):
    number = indptr.size - 1
    for chunk in range(thread, (number + CHUNK - 1) // CHUNK, threads):
        first, last = chunk * CHUNK, min((chunk + 1) * CHUNK, number)
        shift = begins[np.uint64(first)] - indptr[np.uint64(first)]
        for j in range(indptr[np.uint64(first)], indptr[np.uint64(last)]):
            new_indices[np.uint64(j)] = indices[np.uint64(j + shift)]
            new_weights[np.uint64(j)] = weights[np.uint64(j + shift)]


@ParallelKernel
def gather_rows(team, offsets, members, level, parts, begins, indices, weights, sizes, totals):
    """Write the rows of every chunk of parts from ``begins`` on, and how long each is."""
    together(team, _gather_some, (
        team.threads, offsets, members, level, parts, begins, indices, weights, sizes, totals,
    ))  # fmt: skip


@ParallelKernel
def close_up(team, begins, indptr, indices, weights, new_indices, new_weights):
    """Move the rows together."""
    together(team, _close_some, (
        team.threads, begins, indptr, indices, weights, new_indices, new_weights,
    ))  # fmt: skip
