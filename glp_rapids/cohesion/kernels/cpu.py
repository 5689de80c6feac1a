"""Cores and triangles of one graph, sequentially: of an ego-network or of the whole.

A graph is given twice: *oriented*, every edge once, in the row of the end that comes first in some
order (``starts``, ``ends``; an edge's number is its place in ``ends``), and *symmetric*, every edge
in the rows of both its ends (``indptr``, ``indices``, ``edge``: the number of each entry's edge).
Rows ascend in both. Triangles are listed as by Chiba and Nishizeki, Arboricity and subgraph listing
algorithms (SIAM Journal on Computing 14, 1985).

Cores and trusses are peeled level by level: what falls short of the level goes into a queue, and
takes with it what then falls short, too. What is left is read once a level to find the next; all
those readings together are no more than the edges of a core, or the triangles of a truss times the
logarithm of the levels, and cost less than the buckets in which decompositions are usually kept
(Batagelj and Zaversnik, 2003). One level alone is the same loop, run once.

Vertex numbers are unsigned where 32 bits hold them: that spares a test of each for being negative.
What may take long returns early once ``stop[0]`` is not 0, and what it returns then means nothing.

Arrays are copied and filled by loops: to compile what NumPy has for that takes Numba as long as all
else here (a slice assigned to a slice brings the text of its error with it: 1.8 s).
"""

from __future__ import annotations

import numpy as np

from glp_rapids.jit import search
from glp_rapids.jit.cache import kept

jit = kept(error_model="numpy", allocates=True)
lower_bound = jit(search.lower_bound)

ALL = -1  # in the place of a level: all of them
LOPSIDED = 16  # a row this many times as long as another is searched, not read


@jit
def orient(indptr, indices, stop):
    """Orient edges from the end of lower degree to that of higher, ties by number: starts, ends.

    No row is then longer than the square root of twice the edges, not even a hub's.
    """
    starts = np.empty(indptr.size, np.int64)
    ends = np.empty(indices.size // 2, indices.dtype)
    starts[0] = e = 0
    for u in range(indptr.size - 1):
        if stop[0]:
            break
        for p in range(indptr[u], indptr[u + 1]):
            if _comes_first(u, indices[p], indptr):
                ends[e] = indices[p]
                e += 1
        starts[u + 1] = e
    return starts, ends


@jit
def number_entries(indptr, indices, edge, stop):
    """Fill in ``edge``: the number that `orient` gave to the edge of every entry."""
    # The rows ascend: vertex v meets its neighbours in the order in which their rows are walked.
    cursor = first_of(indptr, indptr.size - 1)
    e = 0
    for u in range(indptr.size - 1):
        if stop[0]:
            break
        for p in range(indptr[u], indptr[u + 1]):
            reverse = cursor[indices[p]]
            cursor[indices[p]] += 1
            if _comes_first(u, indices[p], indptr):
                edge[p] = e
                edge[reverse] = e
                e += 1


@jit
def _comes_first(u, v, indptr):
    mine = indptr[u + 1] - indptr[u]
    other = indptr[np.int64(v) + 1] - indptr[v]
    return mine < other or (mine == other and u < v)


@jit
def symmetric(starts, ends):
    """Return indptr, indices and edge of an oriented graph."""
    n = starts.size - 1
    indptr = np.empty(n + 1, np.int64)
    indptr[0] = 0
    for u in range(n):
        indptr[u + 1] = starts[u + 1] - starts[u]
    for e in range(ends.size):
        indptr[np.int64(ends[e]) + 1] += 1
    for u in range(n):
        indptr[u + 1] += indptr[u]
    # First in any order, then once more row by row, which lets every row ascend.
    mixed = np.empty(2 * ends.size, ends.dtype)
    mixed_edge = np.empty(2 * ends.size, np.uint32)
    cursor = first_of(indptr, n)
    for u in range(n):
        for e in range(starts[u], starts[u + 1]):
            v = ends[e]
            mixed[cursor[u]] = v
            mixed_edge[cursor[u]] = e
            cursor[u] += 1
            mixed[cursor[v]] = u
            mixed_edge[cursor[v]] = e
            cursor[v] += 1
    indices, edge = np.empty(mixed.size, ends.dtype), np.empty(mixed.size, np.uint32)
    for u in range(n):
        cursor[u] = indptr[u]
    for u in range(n):
        for p in range(indptr[u], indptr[u + 1]):
            v = mixed[p]
            indices[cursor[v]] = u
            edge[cursor[v]] = mixed_edge[p]
            cursor[v] += 1
    return indptr, indices, edge


@jit
def triangles_of_edges(starts, ends, stop):
    """Count the triangles of every edge of an oriented graph."""
    n = starts.size - 1
    support, place = all_same(ends.size, 0), all_same(n, 0)
    for u in range(n):
        begin, end = starts[u], starts[u + 1]
        if end - begin < 2:
            continue
        for e in range(begin, end):
            place[ends[e]] = e - begin + 1
        if stop[0]:
            return support
        for e in range(begin, end):
            v = ends[e]
            for f in range(starts[v], starts[np.int64(v) + 1]):
                third = place[ends[f]]
                if third:
                    support[e] += 1
                    support[f] += 1
                    support[begin + third - 1] += 1
        for e in range(begin, end):
            place[ends[e]] = 0
    return support


@jit
def tails(starts, ends):
    """Name the first end of every edge of an oriented graph."""
    tail = np.empty(ends.size, ends.dtype)
    for u in range(starts.size - 1):
        for e in range(starts[u], starts[u + 1]):
            tail[e] = u
    return tail


@jit
def first_of(values, number):
    """Copy the first so many values."""
    copied = np.empty(number, values.dtype)
    for i in range(number):
        copied[i] = values[i]
    return copied


@jit
def numbered(size, dtype):
    """List the numbers from 0 on."""
    numbers = np.empty(size, dtype)
    for i in range(size):
        numbers[i] = i
    return numbers


@jit
def all_same(size, value):
    """List a number so many times."""
    values = np.empty(size, np.int32)
    for i in range(size):
        values[i] = value
    return values


@jit
def core(indptr, indices, k, stop):
    """Find every vertex's core number, and the order of peeling.

    Unless k is ALL, only one level is peeled: k for vertices inside the k-core, k - 1 elsewhere.
    """
    n = indptr.size - 1
    degree = np.empty(n, np.int32)
    for v in range(n):
        degree[v] = indptr[v + 1] - indptr[v]
    number = all_same(n, k)
    order, left = np.empty(n, indices.dtype), numbered(n, indices.dtype)
    size, level, head, tail = n, 0, 0, 0
    while size:
        size, level, tail = queue_below(degree, left, size, level, k, order, tail)
        while head < tail:
            if stop[0]:
                return number, order
            v = order[head]
            head += 1
            number[v] = level - 1
            for p in range(indptr[v], indptr[np.int64(v) + 1]):
                tail = _decrement(indices[p], degree, level, order, tail)
        if k != ALL:
            break
    return number, order


@jit
def queue_below(value, left, size, level, k, order, tail):
    """Queue what is below the next level, which is k, or for ALL just above the lowest value.

    ``left[:size]`` lists what there was before the last level, which was ``level``.
    """
    kept = 0
    lowest = 0x7FFFFFFF
    for i in range(size):
        if value[left[i]] >= level:
            lowest = min(lowest, value[left[i]])
            left[kept] = left[i]
            kept += 1
    level = lowest + 1 if k == ALL else k
    for i in range(kept):
        if value[left[i]] < level:
            order[tail] = left[i]
            tail += 1
    return kept, level, tail


@jit
def _decrement(item, value, level, order, tail):
    """Take one from an item that is not in the queue; queue it if it now falls short."""
    if value[item] >= level:
        value[item] -= 1
        if value[item] < level:
            order[tail] = item
            tail += 1
    return tail
