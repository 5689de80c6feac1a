"""What is done about a class of vertices around its evaluation, if rows come strip by strip.

The vertices to be evaluated are listed first, with where their rows start if these follow one
another; a strip is some of them. Winners of all strips of a class are kept side by side.
How many entries a row has is ``ends[v] - starts[v]``, or ``ends[v]`` where ``starts`` is None.
"""

from __future__ import annotations

import numpy as np

from glp_rapids.jit.cache import kept
from glp_rapids.jit.cpu import compiled as compiled_for_cpu
from glp_rapids.jit.parallel import ParallelKernel, together
from glp_rapids.propagation.kernels.cpu.atomics import take_one


@compiled_for_cpu(error_model="numpy")
def _degree(v, ends, starts):
    if starts is None:
        return np.int64(ends[np.uint64(v)])
    return np.int64(ends[np.uint64(v)]) - np.int64(starts[np.uint64(v)])


@compiled_for_cpu(error_model="numpy")
def _count_some(
    thread, threads, listed, row_ends, row_starts, all_active, revisit_tied, slack, tied, numbers,
    entries,
):  # fmt: skip
    """Count one thread's vertices to be evaluated, and their entries."""
    number, entry = 0, 0
    first = listed.size * thread // threads
    for position in range(first, listed.size * (thread + 1) // threads):
        v = np.uint64(listed[np.uint64(position)])
        if all_active or slack[v] < 0 or (revisit_tied and tied[v] != 0):
            degree = _degree(v, row_ends, row_starts)
            number += np.int64(degree > 0)
            entry += degree
    numbers[thread + 1], entries[thread + 1] = number, entry


@compiled_for_cpu(error_model="numpy")
def _select_some(
    thread, threads, listed, row_ends, row_starts, all_active, revisit_tied, slack, tied, numbers,
    entries, selected, starts,
):  # fmt: skip
    """List one thread's vertices to be evaluated, and where their rows start.

    Who has no row is settled without.
    """
    number, entry = numbers[thread], entries[thread]
    first = listed.size * thread // threads
    for position in range(first, listed.size * (thread + 1) // threads):
        v = np.uint64(listed[np.uint64(position)])
        if all_active or slack[v] < 0 or (revisit_tied and tied[v] != 0):
            degree = _degree(v, row_ends, row_starts)
            if degree > 0:
                selected[np.uint64(number)] = v
                starts[np.uint64(number)] = entry
                number += 1
                entry += degree
            elif not all_active:
                slack[v] = 0


@ParallelKernel
def select(
    team, listed, row_ends, row_starts, all_active, revisit_tied, slack, tied, selected, starts,
    numbers, entries,
):  # fmt: skip
    """List the vertices to be evaluated and where their rows start; return their number.

    ``numbers`` and ``entries`` are zeros, one more than threads.
    """
    threads = team.threads
    given = (threads, listed, row_ends, row_starts, all_active, revisit_tied, slack, tied, numbers,
             entries)  # fmt: skip
    together(team, _count_some, given)
    for thread in range(threads):
        numbers[thread + 1] += numbers[thread]
        entries[thread + 1] += entries[thread]
    together(team, _select_some, (*given, selected, starts))
    starts[numbers[threads]] = entries[threads]
    return numbers[threads]


@kept(error_model="numpy")
def close_up(chunk, size, counts, vertices, labels, scores):
    """Move the winners of each chunk of ``size`` vertices to those before; return their number."""
    number = 0
    for low in range(0, size, chunk):
        for position in range(low, low + counts[low // chunk]):
            vertices[number] = vertices[position]
            labels[number] = labels[position]
            scores[number] = scores[position]
            number += 1
    return number


@kept(error_model="numpy")
def changed_rows(chunk, size, winners, before, counts, labels, ends, starts, changed, row_starts):
    """List the vertices whose labels changed, and where their rows start; return their number.

    ``winners`` has so many chunks' as ``size`` vertices make.
    """
    number, entry = 0, 0
    for low in range(0, size, chunk):
        for position in range(low, low + counts[low // chunk]):
            v = winners[position]
            if labels[v] != before[position]:
                changed[number] = v
                row_starts[number] = entry
                number += 1
                entry += _degree(v, ends, starts)
    row_starts[number] = entry
    return number


@compiled_for_cpu(error_model="numpy")
def _activate_some_neighbours(
    thread, threads, chunk, vertices, starts, winners, before, counts, buffer, labels, slack
):
    chunks = (vertices.size + chunk - 1) // chunk
    for number in range(thread, chunks, threads):
        low = number * chunk
        row = low
        for position in range(low, low + counts[number]):
            v = winners[np.uint64(position)]
            if labels[np.uint64(v)] == before[np.uint64(position)]:
                continue
            while vertices[np.uint64(row)] != v:  # both are in one order
                row += 1
            for j in range(starts[np.uint64(row)], starts[np.uint64(row + 1)]):
                reader = np.uint64(buffer[np.uint64(j)])
                if slack[reader] >= 0:  # else it is active, which no change can undo
                    take_one(slack, reader)


@ParallelKernel
def activate_neighbours(
    team, chunk, vertices, starts, winners, before, counts, buffer, labels, slack
):
    """Mark the neighbours of vertices whose labels changed active; the rows are in the buffer."""
    together(team, _activate_some_neighbours, (
        team.threads, chunk, vertices, starts, winners, before, counts, buffer, labels, slack,
    ))  # fmt: skip


@compiled_for_cpu(error_model="numpy")
def _activate_some(thread, threads, vertices, size, slack):
    for j in range(size * thread // threads, size * (thread + 1) // threads):
        reader = np.uint64(vertices[np.uint64(j)])
        if slack[reader] >= 0:
            take_one(slack, reader)


@ParallelKernel
def activate(team, vertices, size, slack):
    """Mark readers active, each as often as it is listed."""
    together(team, _activate_some, (team.threads, vertices, size, slack))
