"""Cores and trusses of one graph, sequentially: of an ego-network or of the whole.

A graph is given twice: *oriented*, every edge once, in the row of the end that comes first in some
order (``starts``, ``ends``; an edge's number is its place in ``ends``), and *symmetric*, every edge
in the rows of both its ends (``indptr``, ``indices``, ``edge``: the number of each entry's edge).
Rows ascend in both. Triangles are listed as by Chiba and Nishizeki, Arboricity and subgraph listing
algorithms (SIAM Journal on Computing 14, 1985).

Cores and trusses are peeled level by level: what falls short of the level goes into a queue, and
takes with it what then falls short, too. What is left is read once a level to find the next; all
those readings together are no more than the edges of a core, or the triangles of a truss, and cost
less than the buckets in which decompositions are usually kept (Batagelj and Zaversnik, 2003; Wang
and Cheng, Truss decomposition in massive networks, PVLDB 5, 2012). One level alone is the same
loop, run once. In a small graph with many edges triangles are listed from a matrix of bits, 64
vertices at a time.

Vertex numbers are unsigned where 32 bits hold them: that spares a test of each for being negative.
What may take long returns early once ``stop[0]`` is not 0, and what it returns then means nothing.
"""

from __future__ import annotations

import numpy as np

from glp_rapids.jit import search
from glp_rapids.jit.cache import kept

jit = kept(error_model="numpy")
lower_bound = jit(search.lower_bound)

ALL = -1  # in the place of a level: all of them
LOPSIDED = 16  # a row this many times as long as another is searched, not read
ONE = np.uint64(1)
LARGEST_MATRIX = 1024  # vertices: 4 MB of edge numbers


@jit
def orient(indptr, indices, stop):
    """Orient edges from the end of lower degree to that of higher, ties by number: starts, ends.

    No row is then longer than the square root of twice the edges, not even a hub's.
    """
    starts = np.zeros(indptr.size, np.int64)
    ends = np.empty(indices.size // 2, indices.dtype)
    e = 0
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
    cursor = indptr[:-1].copy()
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
    indptr = np.zeros(n + 1, np.int64)
    for u in range(n):
        indptr[u + 1] = starts[u + 1] - starts[u]
    for e in range(ends.size):
        indptr[np.int64(ends[e]) + 1] += 1
    for u in range(n):
        indptr[u + 1] += indptr[u]
    # First in any order, then once more row by row, which lets every row ascend.
    mixed = np.empty(2 * ends.size, ends.dtype)
    mixed_edge = np.empty(2 * ends.size, np.uint32)
    cursor = indptr[:-1].copy()
    for u in range(n):
        for e in range(starts[u], starts[u + 1]):
            v = ends[e]
            mixed[cursor[u]] = v
            mixed_edge[cursor[u]] = e
            cursor[u] += 1
            mixed[cursor[v]] = u
            mixed_edge[cursor[v]] = e
            cursor[v] += 1
    indices, edge = np.empty_like(mixed), np.empty_like(mixed_edge)
    cursor[:] = indptr[:-1]
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
    support = np.zeros(ends.size, np.int32)
    place = np.zeros(n, np.int32)
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
    tail = np.empty_like(ends)
    for u in range(starts.size - 1):
        tail[starts[u] : starts[u + 1]] = u
    return tail


@jit
def core(indptr, indices, k, stop):
    """Find every vertex's core number, and the order of peeling.

    Unless k is ALL, only one level is peeled: k for vertices inside the k-core, k - 1 elsewhere.
    """
    n = indptr.size - 1
    degree = np.empty(n, np.int32)
    for v in range(n):
        degree[v] = indptr[v + 1] - indptr[v]
    number = np.full(n, k, np.int32)
    order, left = np.empty(n, indices.dtype), np.arange(n).astype(indices.dtype)
    size, level, head, tail = n, 0, 0, 0
    while size:
        size, level, tail = _queue_below(degree, left, size, level, k, order, tail)
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
def truss(starts, ends, rows, matrix, k, stop):
    """Find every edge's trussness, and the order of peeling.

    Unless k is ALL, only one level is peeled: k for edges inside the k-truss, k - 1 elsewhere.
    The graph comes in another form too: ``rows``, by `symmetric`, or ``matrix``, by `as_matrix`.
    """
    indptr, _, edge = rows
    dense = matrix[0].size > 0
    first = tails(starts, ends)
    if dense:
        support = _common_bits(first, ends, matrix[0])
    else:
        support = triangles_of_edges(starts, ends, stop)
    longest = starts.size - 1 if dense else _longest(indptr)
    one, other = np.empty(longest, edge.dtype), np.empty(longest, edge.dtype)
    place = np.zeros(0 if dense else starts.size - 1, np.int32)
    gone = np.zeros(ends.size, np.bool_)
    number = np.full(ends.size, k, np.int32)
    order, left = np.empty(ends.size, edge.dtype), np.arange(ends.size).astype(edge.dtype)
    wanted = ALL if k == ALL else k - 2
    size, level, head, tail = ends.size, 0, 0, 0
    while size:
        size, level, tail = _queue_below(support, left, size, level, wanted, order, tail)
        while head < tail:
            if stop[0]:
                return number, order
            e = order[head]
            head += 1
            number[e] = level + 1
            gone[e] = True
            if dense:
                found = _triangles_of_matrix(first[e], ends[e], matrix, one, other)
            else:
                found = _triangles(first[e], ends[e], rows, place, one, other)
            for t in range(found):
                if not (gone[one[t]] or gone[other[t]]):
                    tail = _decrement(one[t], support, level, order, tail)
                    tail = _decrement(other[t], support, level, order, tail)
        if k != ALL:
            break
    return number, order


@jit
def _queue_below(value, left, size, level, k, order, tail):
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


@jit
def _longest(indptr):
    longest = 0
    for v in range(indptr.size - 1):
        longest = max(longest, indptr[v + 1] - indptr[v])
    return longest


@jit
def _triangles(u, v, rows, place, one, other):
    """List the other two edges of the triangles over edge (u, v); return how many there are."""
    indptr, indices, edge = rows
    if indptr[np.int64(u) + 1] - indptr[u] > indptr[np.int64(v) + 1] - indptr[v]:
        u, v = v, u
    begin, end = indptr[u], indptr[np.int64(u) + 1]
    low, high = indptr[v], indptr[np.int64(v) + 1]
    found = 0
    if high - low > LOPSIDED * (end - begin):
        for p in range(begin, end):
            low = lower_bound(indices, low, high, indices[p])
            if low < high and indices[low] == indices[p]:
                one[found] = edge[p]
                other[found] = edge[low]
                found += 1
        return found
    for p in range(begin, end):
        place[indices[p]] = p - begin + 1
    for q in range(low, high):
        p = place[indices[q]]
        if p:
            one[found] = edge[begin + p - 1]
            other[found] = edge[q]
            found += 1
    for p in range(begin, end):
        place[indices[p]] = 0
    return found


@jit
def as_matrix(starts, ends):
    """Turn a graph into a matrix of bits and one of the numbers of the edges."""
    n = starts.size - 1
    bits = np.zeros((n, (n + 63) >> 6), np.uint64)
    number = np.empty((n, n), np.uint32)
    for u in range(n):
        for e in range(starts[u], starts[u + 1]):
            v = ends[e]
            _flip(bits, u, v)
            number[u, v] = number[v, u] = e
    return bits, number


@jit
def _flip(bits, u, v):
    bits[u, v >> 6] ^= ONE << np.uint64(v & 63)
    bits[v, u >> 6] ^= ONE << np.uint64(u & 63)


@jit
def _common_bits(first, ends, bits):
    support = np.empty(ends.size, np.int32)
    for e in range(ends.size):
        count = np.uint64(0)
        for word in range(bits.shape[1]):
            count += _popcount(bits[first[e], word] & bits[ends[e], word])
        support[e] = count
    return support


@jit
def _triangles_of_matrix(u, v, matrix, one, other):
    """List triangles as `_triangles` does; then take the edge out of the matrix of bits."""
    bits, number = matrix
    found = 0
    for word in range(bits.shape[1]):
        common = bits[u, word] & bits[v, word]
        while common:
            w = (word << 6) + np.int64(_popcount((common & (~common + ONE)) - ONE))
            one[found] = number[u, w]
            other[found] = number[v, w]
            found += 1
            common &= common - ONE
    _flip(bits, u, v)
    return found


@jit
def _popcount(word):
    """Count the bits of a word; LLVM makes one instruction of it."""
    word -= (word >> ONE) & np.uint64(0x5555555555555555)
    word = (word & np.uint64(0x3333333333333333)) + (
        (word >> np.uint64(2)) & np.uint64(0x3333333333333333)
    )
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return (word * np.uint64(0x0101010101010101)) >> np.uint64(56)
