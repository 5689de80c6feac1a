"""Residuals of the equation of scores on CPU cores: read row by row, or pushed to neighbours.

What a vertex hears from a neighbour is one integer, a function of the neighbour's number
and of their edge alone; a residual is a sum of such integers. So it is the same whether all of it
is read (`residuals`, on all cores) or only what has changed is added (`push`), in any order.
Pushes go to where the residual is largest first, as Gauss and Southwell relaxed systems by hand;
by rounds, as in Berkhin, Bookmark-coloring algorithm for personalized PageRank computing (Internet
Mathematics 3, 2006).

A kernel returns early once ``stop[0]`` is not 0, and what it returns then means nothing.
"""

from __future__ import annotations

import numpy as np

from glp_rapids.jit.cache import kept
from glp_rapids.jit.cpu import compiled
from glp_rapids.jit.parallel import ParallelKernel, together
from glp_rapids.jit.prefetch import prefetch

U64 = np.uint64
ONE = np.uint64(1)
CHUNK = 256  # rows that a thread takes at a time, or that are looked at together
AHEAD = 8  # rows whose neighbours are fetched, of twice as many the rows

jit = kept(error_model="numpy")
part = compiled(error_model="numpy", _nrt=False)


@part
def _residual(v, indptr, indices, weights, total, said, numbers):
    heard = np.int64(0)
    if total[v] < np.inf:
        weighted = weights.size > 0
        share = 1.0 / total[v]
        for p in range(indptr[v], indptr[v + ONE]):
            u = U64(indices[U64(p)])
            if u == v:
                continue
            if weighted:
                share = np.float64(weights[U64(p)]) / total[v]
            heard += np.int64(share * said[u])
        heard -= numbers[v]
    return heard


@part
def _residuals_some(thread, threads, indptr, indices, weights, total, said, numbers, found, stop):
    for chunk in range(thread, (total.size + CHUNK - 1) // CHUNK, threads):
        if stop[0] != 0:
            return
        for row in range(chunk * CHUNK, min(total.size, (chunk + 1) * CHUNK)):
            v = U64(row)
            found[v] = _residual(v, indptr, indices, weights, total, said, numbers)


@ParallelKernel
def residuals(team, indptr, indices, weights, total, said, numbers, found, stop):
    """Fill in ``found``, the residual of every vertex.

    ``weights`` of no elements: each entry weighs one. ``total``: what the entries of a row weigh
    without its self-loop; infinite for vertices without a residual, on whom nothing is pushed
    then. ``said``: what all neighbours hear of a vertex, the damping times its number.
    """
    together(team, _residuals_some, (
        team.threads, indptr, indices, weights, total, said, numbers, found, stop,
    ))  # fmt: skip


@part
def _step_some(
    thread, threads, fixed, clamp, most, factor, previous, numbers, residual, following
):  # fmt: skip
    size = numbers.size
    for v in range(size * thread // threads, size * (thread + 1) // threads):
        place = U64(v)
        if fixed[place]:
            following[place] = clamp[place]
            continue
        before = previous[place]
        step = np.int64(np.rint(factor * np.float64(residual[place] + numbers[place] - before)))
        following[place] = min(max(before + step, 0), most)


@ParallelKernel
def step(team, fixed, clamp, most, factor, previous, numbers, residual, following):
    """Fill in the numbers after a sweep, see `residual_engines.Engine.step`."""
    together(team, _step_some, (
        team.threads, fixed, clamp, most, factor, previous, numbers, residual, following,
    ))  # fmt: skip


@part
def _above_some(thread, threads, indptr, residual, allowed, works):
    size, work = residual.size, np.int64(0)
    for v in range(size * thread // threads, size * (thread + 1) // threads):
        place = U64(v)
        entries = indptr[place + ONE] - indptr[place]
        work += entries if abs(residual[place]) > allowed else 0
    works[thread] = work


@ParallelKernel
def above(team, indptr, residual, allowed, works):
    """Add up, for each thread, the entries of its vertices whose residual is above a level."""
    together(team, _above_some, (team.threads, indptr, residual, allowed, works))


@jit
def residuals_of(rows, indptr, indices, weights, total, said, numbers, found, stop):
    """Fill in ``found``, the residuals of some vertices; the rest is as in `residuals`."""
    for i in range(rows.size):
        if stop[0] != 0:
            return
        found[i] = _residual(U64(rows[i]), indptr, indices, weights, total, said, numbers)


@part
def _listed(indptr, residual, largest, level, vertices):
    """List the vertices above a level, by index; return their number, and that of their entries.

    ``largest``: of each chunk the largest residual, as far as it is above ``allowed``; else 0.
    """
    count = work = np.int64(0)
    for chunk in range(largest.size):
        if largest[chunk] > level:
            for row in range(chunk * CHUNK, min(residual.size, (chunk + 1) * CHUNK)):
                v = U64(row)
                if abs(residual[v]) > level:
                    vertices[count] = row
                    count += 1
                    work += indptr[v + ONE] - indptr[v]
    return count, work


@part
def _fetch_ahead(i, count, vertices, indptr, indices, weights, total, residual):
    """Have what pushes will read and change soon brought near: rows first, then neighbours."""
    if i + 2 * AHEAD < count:
        p = U64(indptr[U64(vertices[i + 2 * AHEAD])])
        prefetch(indices, p)
        prefetch(weights, p)
    if i + AHEAD < count:
        u = U64(vertices[i + AHEAD])
        for p in range(indptr[u], min(indptr[u + ONE], indptr[u] + 2 * AHEAD)):
            v = U64(indices[U64(p)])
            prefetch(residual, v)
            prefetch(total, v)


@jit
def push(
    indptr, indices, weights, total, damping, numbers, residual, allowed, entries, rounds, stop
):  # fmt: skip
    """Push residuals to the neighbours, round after round, until none is above ``allowed``.

    A round is of the vertices whose residual is above a quarter of the largest one, too. It ends
    before a round whose rows have more than ``entries`` entries, or after so many rounds. Only
    chunks are looked at in which a residual has changed, or was too large already.

    Returns how many rounds were made, how many entries pushed, and whether a round was too large.
    """
    weighted = weights.size > 0
    size = numbers.size
    chunks = (size + CHUNK - 1) // CHUNK
    changed, largest = np.ones(chunks, np.uint8), np.zeros(chunks, np.int64)
    vertices, before = np.empty(size, np.int64), np.empty(size, np.int64)
    made = pushed = np.int64(0)
    while stop[0] == 0:
        most = np.int64(0)
        for chunk in range(chunks):
            if changed[chunk] != 0:
                changed[chunk], of_chunk = 0, np.int64(0)
                for row in range(chunk * CHUNK, min(size, (chunk + 1) * CHUNK)):
                    of_chunk = max(of_chunk, abs(residual[U64(row)]))
                largest[chunk] = of_chunk
            most = max(most, largest[chunk])
        if most <= allowed or made == rounds:
            break
        level = max(allowed, most >> 2)
        count, work = _listed(indptr, residual, largest, level, vertices)
        if work > entries:
            return made, pushed, True
        for i in range(count):
            v = U64(vertices[i])
            before[i] = numbers[v]
            numbers[v] += residual[v]
            residual[v] = 0
            changed[v // U64(CHUNK)] = 1
        for i in range(count):
            _fetch_ahead(i, count, vertices, indptr, indices, weights, total, residual)
            u = U64(vertices[i])
            old, new = damping * np.float64(before[i]), damping * np.float64(numbers[u])
            for p in range(indptr[u], indptr[u + ONE]):
                v = U64(indices[U64(p)])
                if v == u:
                    continue
                weight = np.float64(weights[U64(p)]) if weighted else 1.0
                share = weight / total[v]
                residual[v] += np.int64(share * new) - np.int64(share * old)
                changed[v // U64(CHUNK)] = 1
        made += 1
        pushed += work
    return made, pushed, False
