"""Contraction on CPU cores: the row of a part is listed from its vertices and added up in a table.

Threads take chunks of parts in turn. The rows of a chunk are written one after the other, from
where there would be room for all entries of its vertices; then all chunks are moved together.
"""

from __future__ import annotations

from glp_rapids.communities.kernels.moving import CHUNK, ONE, U64, fetch_rows
from glp_rapids.jit.cache import kept
from glp_rapids.jit.cpu import compiled
from glp_rapids.jit.parallel import ParallelKernel, together

TWO = U64(2)
jit = compiled(error_model="numpy")


@kept(error_model="numpy")
def sort_by_part(parts, indptr, volume, offsets, members, begins, volumes):
    """List the vertices of each part in ascending order; add up their entries and their volumes.

    ``offsets`` and ``begins``, of zeros before, then tell where the vertices of each part begin,
    and where its entries would; ``offsets`` has one more at the end.
    """
    number = volumes.size
    for v in range(parts.size):
        part = U64(parts[v])
        offsets[part + TWO] += 1
        begins[part + ONE] += indptr[v + 1] - indptr[v]
        volumes[part] += volume[v]
    for part in range(number):
        offsets[part + 2] += offsets[part + 1]
        begins[part + 1] += begins[part]
    for v in range(parts.size):
        part = U64(parts[v]) + ONE
        members[U64(offsets[part])] = v
        offsets[part] += 1


@jit
def _gather_some(
    thread, threads, offsets, members, level, parts, begins, indices, weights, sizes, totals
):
    """Write the rows of a thread's parts; ``totals`` has a zero for each part and thread."""
    indptr, neighbours, of_entries, unit, _, _, _ = level
    total, number = totals[thread], sizes.size
    for chunk in range(thread, (number + CHUNK - 1) // CHUNK, threads):
        end = begins[U64(chunk * CHUNK)]
        for part in range(chunk * CHUNK, min((chunk + 1) * CHUNK, number)):
            begin, weight = end, unit
            for position in range(offsets[U64(part)], offsets[U64(part + 1)]):
                fetch_rows(position, members.size, members, level)
                v = U64(members[U64(position)])
                for j in range(indptr[v], indptr[v + ONE]):
                    other, place = parts[U64(neighbours[U64(j)])], U64(end)
                    indices[place] = other
                    outside = other != part
                    if of_entries.size > 0:
                        weight = of_entries[U64(j)]
                        weights[place] = weight
                        outside &= weight > 0
                    end += outside
            listed, end = end, begin
            for j in range(begin, listed):
                other = indices[U64(j)]
                if of_entries.size > 0:
                    weight = weights[U64(j)]
                before = total[U64(other)]
                indices[U64(end)] = other
                end += before == 0
                total[U64(other)] = before + weight
            for j in range(begin, end):
                other = U64(indices[U64(j)])
                weights[U64(j)] = total[other]
                total[other] = 0
            sizes[U64(part)] = end - begin


@jit
def _close_some(thread, threads, begins, indptr, indices, weights, new_indices, new_weights):
    number = indptr.size - 1
    for chunk in range(thread, (number + CHUNK - 1) // CHUNK, threads):
        first, last = U64(chunk * CHUNK), U64(min((chunk + 1) * CHUNK, number))
        shift = begins[first] - indptr[first]
        for j in range(indptr[first], indptr[last]):
            new_indices[U64(j)] = indices[U64(j + shift)]
            new_weights[U64(j)] = weights[U64(j + shift)]


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
