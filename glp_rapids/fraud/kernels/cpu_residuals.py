"""Residuals of the equation of scores on CPU cores, read row by row.

What a vertex hears from a neighbour is one integer, a function of the neighbour's number
and of their edge alone; a residual is a sum of such integers. So it is the same whether all of it
is read, as here, or only what has changed is added (`cpu_pushes`), in any order.

A kernel returns early once ``stop[0]`` is not 0, and what it returns then means nothing.
"""

from __future__ import annotations

import math

import numpy as np

from glp_rapids.jit.cache import kept
from glp_rapids.jit.cpu import compiled
from glp_rapids.jit.parallel import ParallelKernel, together
from glp_rapids.jit.prefetch import prefetch

U64 = np.uint64
ONE = np.uint64(1)
CHUNK = 256  # rows that a thread takes at a time
AHEAD = 64  # entries: a row's end, guessed wrong, would stop reads; a fifth less, 14.7 million

jit = kept(error_model="numpy")
part = compiled(error_model="numpy")


@part
def _total(v, indptr, indices, weights):
    """Add up a row without its self-loop; -1: that is beyond int64."""
    weighted, total = weights.size > 0, np.int64(0)
    for p in range(indptr[v], indptr[v + ONE]):
        if U64(indices[U64(p)]) != v:
            total += weights[U64(p)] if weighted else 1
            if total < 0:
                return np.int64(-1)
    return total


@part
def _totals_some(thread, threads, indptr, indices, weights, totals, beyond):
    for chunk in range(thread, (totals.size + CHUNK - 1) // CHUNK, threads):
        for row in range(chunk * CHUNK, min(totals.size, (chunk + 1) * CHUNK)):
            total = _total(U64(row), indptr, indices, weights)
            if total < 0:
                beyond[thread] = 1
                return
            totals[U64(row)] = total


@ParallelKernel
def totals(team, indptr, indices, weights, totals, beyond):
    """Fill in what the entries of every row weigh, integers, without its self-loop.

    ``beyond``: of each thread whether a sum was beyond int64; the rest then means nothing.
    """
    together(team, _totals_some, (team.threads, indptr, indices, weights, totals, beyond))


@jit
def totals_of(rows, indptr, indices, weights, totals):
    """Fill in the same of some rows; tell whether all sums are below 2**63."""
    for i in range(rows.size):
        total = _total(U64(rows[i]), indptr, indices, weights)
        if total < 0:
            return False
        totals[i] = total
    return True


@part
def _surveyed(thread, threads, totals, fixed, largest, count):
    most, free = 0.0, 0
    for v in range(totals.size * thread // threads, totals.size * (thread + 1) // threads):
        total = 0.0 if fixed[U64(v)] else totals[U64(v)]
        most, free = max(most, total), free + (total > 0)
    largest[thread], count[thread] = most, free


@part
def _summed(thread, threads, totals, fixed, power, sums):
    found = np.int64(0)
    for v in range(totals.size * thread // threads, totals.size * (thread + 1) // threads):
        if not fixed[U64(v)]:
            found += np.int64(totals[U64(v)] * power * power)
    sums[thread] = found


@ParallelKernel
def survey(team, totals, fixed, bits, largest, count, sums):
    """Add up, for each thread, the totals of its vertices that are not fixed, in fixed point.

    The unit is such that the largest of all has ``bits`` bits, or one less; ``largest``, ``count``:
    for each thread the largest and how many are above 0. Returns the root of a unit's inverse.
    """
    together(team, _surveyed, (team.threads, totals, fixed, largest, count))
    most = 0.0
    for thread in range(team.threads):
        most = max(most, largest[thread])
    # twice a root, as the power itself may be beyond float64
    root = math.ldexp(1.0, (bits - math.frexp(most)[1]) // 2)
    together(team, _summed, (team.threads, totals, fixed, root, sums))
    return root


@part
def _residual(v, indptr, indices, weights, total, damping, numbers):
    heard = np.int64(0)
    if total[v] < np.inf:
        weighted = weights.size > 0
        share = 1.0 / total[v]
        last = indices.size - 1
        for p in range(indptr[v], indptr[v + ONE]):
            u = U64(indices[U64(p)])
            prefetch(numbers, U64(indices[U64(min(p + AHEAD, last))]))
            if u == v:
                continue
            if weighted:
                share = np.float64(weights[U64(p)]) / total[v]
            heard += np.int64(share * (damping * np.float64(numbers[u])))
        heard -= numbers[v]
    return heard


@part
def _residuals_some(
    thread, threads, indptr, indices, weights, total, damping, numbers, found, stop
):  # fmt: skip
    for chunk in range(thread, (total.size + CHUNK - 1) // CHUNK, threads):
        if stop[0] != 0:
            return
        for row in range(chunk * CHUNK, min(total.size, (chunk + 1) * CHUNK)):
            v = U64(row)
            found[v] = _residual(v, indptr, indices, weights, total, damping, numbers)


@ParallelKernel
def residuals(team, indptr, indices, weights, total, damping, numbers, found, stop):
    """Fill in ``found``, the residual of every vertex.

    ``weights`` of no elements: each entry weighs one. ``total``: what the entries of a row weigh
    without its self-loop; infinite for vertices without a residual, on whom nothing is pushed
    then.
    """
    together(team, _residuals_some, (
        team.threads, indptr, indices, weights, total, damping, numbers, found, stop,
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
def residuals_of(rows, indptr, indices, weights, total, damping, numbers, found, stop):
    """Fill in ``found``, the residuals of some vertices; the rest is as in `residuals`."""
    for i in range(rows.size):
        if stop[0] != 0:
            return
        found[i] = _residual(U64(rows[i]), indptr, indices, weights, total, damping, numbers)
