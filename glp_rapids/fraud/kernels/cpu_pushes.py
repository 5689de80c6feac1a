"""Residuals of the equation of scores pushed to neighbours, on CPU cores.

Pushes go to where the residual is largest first, as Gauss and Southwell relaxed systems by hand;
by rounds, as in Berkhin, Bookmark-coloring algorithm for personalized PageRank computing (Internet
Mathematics 3, 2006). What is added are integers (`cpu_residuals`), so threads may add in any order.

What a round costs is waiting for memory: of 14.7 million entries, 2.2 million rows, a pushed one
took 20 ns on one core, 4 of them without the residual and the total at its other end.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from glp_rapids.jit.atomic import atomic_add
from glp_rapids.jit.cpu import compiled
from glp_rapids.jit.parallel import ParallelKernel, Team, together
from glp_rapids.jit.prefetch import prefetch

U64 = np.uint64
ONE = np.uint64(1)
CHUNK = 64  # rows that are looked at together
AHEAD = 8  # rows whose neighbours are fetched, of twice as many the rows
LINE = 8  # numbers of a cache line: what threads write for one another, one of them on each
ALONE_BELOW = 1 << 13  # entries that one thread pushes before others are awake

part = compiled(error_model="numpy")


@part
def _looked_at(thread, threads, residual, changed, largest, most):
    """Find the largest residual of every chunk that has changed, and of all chunks."""
    chunks, found = largest.size, np.int64(0)
    for number in range(chunks * thread // threads, chunks * (thread + 1) // threads):
        chunk = U64(number)
        if changed[chunk] != 0:
            changed[chunk], of_chunk = 0, np.int64(0)
            for row in range(number * CHUNK, min(residual.size, (number + 1) * CHUNK)):
                of_chunk = max(of_chunk, abs(residual[U64(row)]))
            largest[chunk] = of_chunk
        found = max(found, largest[chunk])
    most[thread * LINE] = found


@part
def _listed(thread, threads, indptr, residual, largest, level, rows, counts, works):
    """List the rows above a level, by index, from that of a thread's first; count their entries."""
    chunks = largest.size
    begin = chunks * thread // threads
    first = end = begin * CHUNK
    for number in range(begin, chunks * (thread + 1) // threads):
        if largest[U64(number)] > level:
            for row in range(number * CHUNK, min(residual.size, (number + 1) * CHUNK)):
                if abs(residual[U64(row)]) > level:
                    rows[U64(end)] = row
                    end += 1
    work = np.int64(0)
    # apart from the branches above, which a processor guesses wrong, so that reads overlap
    for i in range(first, end):
        row = U64(rows[U64(i)])
        work += indptr[row + ONE] - indptr[row]
    counts[thread * LINE], works[thread * LINE] = end - first, work


@part
def _taken(
    thread, threads, indptr, rows, counts, works, numbers, residual, changed,
    vertices, begins, offsets, before, after,
):  # fmt: skip
    """Add the residuals of listed rows to their numbers; put what is pushed into one list."""
    to, work = np.int64(0), np.int64(0)
    for other in range(thread):
        to += counts[other * LINE]
        work += works[other * LINE]
    first = (numbers.size + CHUNK - 1) // CHUNK * thread // threads * CHUNK
    for i in range(counts[thread * LINE]):
        row, place = U64(rows[U64(first + i)]), U64(to + i)
        number = numbers[row]
        following = number + residual[row]
        numbers[row], residual[row], changed[row // U64(CHUNK)] = following, 0, 1
        vertices[place], begins[place], offsets[place] = row, indptr[row], work
        before[place], after[place] = number, following
        work += indptr[row + ONE] - indptr[row]
    if thread == threads - 1:
        offsets[U64(to + counts[thread * LINE])] = work


@part
def _fetch_ahead(i, count, begins, offsets, indices, weights, total, residual):
    """Have what pushes will read and change soon brought near: rows first, then neighbours."""
    if i + 2 * AHEAD < count:
        p = U64(begins[U64(i + 2 * AHEAD)])
        prefetch(indices, p)
        prefetch(weights, p)
        prefetch(weights, p + U64(LINE))
    if i + AHEAD < count:
        place = U64(i + AHEAD)
        entries = offsets[place + ONE] - offsets[place]
        for p in range(begins[place], begins[place] + min(entries, 2 * AHEAD)):
            v = U64(indices[U64(p)])
            prefetch(residual, v)
            prefetch(total, v)


@part
def _given(
    thread, threads, indices, weights, total, damping, residual, changed,
    count, vertices, begins, offsets, before, after,
):  # fmt: skip
    """Push a thread's part of the entries of all listed rows, parts of a row at either end."""
    weighted = weights.size > 0
    work = offsets[U64(count)]
    begin, end = work * thread // threads, work * (thread + 1) // threads
    i = np.searchsorted(offsets[: count + 1], begin, side="right") - 1
    while i < count and offsets[U64(i)] < end:
        _fetch_ahead(i, count, begins, offsets, indices, weights, total, residual)
        place = U64(i)
        u = vertices[place]
        old, new = damping * np.float64(before[place]), damping * np.float64(after[place])
        shift = begins[place] - offsets[place]
        for p in range(
            max(begin, offsets[place]) + shift, min(end, offsets[place + ONE]) + shift
        ):
            v = U64(indices[U64(p)])
            if v == u:
                continue
            weight = np.float64(weights[U64(p)]) if weighted else 1.0
            share = weight / total[v]
            pushed = np.int64(share * new) - np.int64(share * old)
            if threads == 1:
                residual[v] += pushed
            else:
                atomic_add(residual, v, pushed)
            changed[v // U64(CHUNK)] = 1
        i += 1


@partial(ParallelKernel, allocates=True)
def push(
    team, indptr, indices, weights, total, damping, numbers, residual, allowed, entries, rounds,
    stop,
):  # fmt: skip
    """Push residuals to the neighbours, round after round, until none is above ``allowed``.

    A round is of the vertices whose residual is above a quarter of the largest one, too. It ends
    before a round whose rows have more than ``entries`` entries, or after so many rounds. Only
    chunks are looked at in which a residual has changed, or was too large already. The other
    arguments are those of `cpu_residuals.residuals`.

    Returns how many rounds were made, how many entries pushed, and whether a round was too large.
    """
    size, alone = numbers.size, Team(1, 0 * team.parallel_for)
    chunks, lines = (size + CHUNK - 1) // CHUNK, team.threads * LINE
    changed, largest = np.ones(chunks, np.uint8), np.zeros(chunks, np.int64)
    most, counts = np.zeros(lines, np.int64), np.zeros(lines, np.int64)
    works = np.zeros(lines, np.int64)
    # what no round comes to of these, but for `rows`, is never touched
    rows, vertices = np.empty(size, np.int64), np.empty(size, np.uint64)
    begins, offsets = np.empty(size, np.int64), np.empty(size + 1, np.int64)
    before, after = np.empty(size, np.int64), np.empty(size, np.int64)
    made = pushed = np.int64(0)
    awake = team
    while stop[0] == 0:
        threads = awake.threads
        together(awake, _looked_at, (threads, residual, changed, largest, most))
        above = most[: threads * LINE].max()
        if above <= allowed or made == rounds:
            break
        level = max(allowed, above >> 2)
        together(awake, _listed, (
            threads, indptr, residual, largest, level, rows, counts, works,
        ))  # fmt: skip
        count, work = counts[: threads * LINE].sum(), works[: threads * LINE].sum()
        if work > entries:
            return made, pushed, True
        together(awake, _taken, (
            threads, indptr, rows, counts, works, numbers, residual, changed,
            vertices, begins, offsets, before, after,
        ))  # fmt: skip
        awake = team if work >= ALONE_BELOW else alone
        together(awake, _given, (
            awake.threads, indices, weights, total, damping, residual, changed,
            count, vertices, begins, offsets, before, after,
        ))  # fmt: skip
        made += 1
        pushed += work
    return made, pushed, False
