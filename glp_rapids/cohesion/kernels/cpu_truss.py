"""Trusses of one graph, sequentially: of an ego-network or of the whole.

Edges are peeled as in Wang and Cheng, Truss decomposition in massive networks (PVLDB 5, 2012):
those in fewer triangles than the level asks for go into a queue, and each takes one from the two
others of every triangle that it leaves. So that this costs a small multiple of the triangles:

- A triangle only matters to edges that *wait*, which is to say are neither queued nor peeled. An
  edge neither of whose ends has another that waits is peeled without a look at its triangles: the
  last level of a clique, which is the only one, costs nothing.
- Rows lose what was peeled once that is a fifth of them.
- Edges queued together follow one another by their end of higher degree. The row of one vertex
  stays marked while the queue has edges of it, and the rows of the other ends are read, so that
  an edge of a hub costs its shorter row. Where that does not pay the shorter is searched for.

In a small graph with many edges triangles are listed from a matrix of bits, 64 vertices at a time.
"""

from __future__ import annotations

import numpy as np

from glp_rapids.cohesion.kernels.cpu import (
    ALL,
    LOPSIDED,
    all_same,
    first_of,
    jit,
    numbered,
    queue_below,
    tails,
    triangles_of_edges,
)
from glp_rapids.jit.bits import popcount

_popcount = jit(popcount)
ONE = np.uint64(1)
LARGEST_MATRIX = 1024  # vertices: 4 MB of edge numbers
PEELED = -1  # in the place of a support


@jit
def truss(starts, ends, rows, k, stop):
    """Find every edge's trussness, and the order of peeling.

    Unless k is ALL, only one level is peeled: k for edges inside the k-truss, k - 1 elsewhere.
    ``rows``: the graph once more, as `symmetric` returns it, to be used up.
    """
    indptr, indices, edge = rows
    first = tails(starts, ends)
    support = triangles_of_edges(starts, ends, stop)
    n = indptr.size - 1
    last, left, place = np.empty(n, np.int64), np.empty(n, np.int32), np.empty(n, edge.dtype)
    most = 0
    for v in range(n):
        last[v] = indptr[v + 1]
        left[v] = indptr[v + 1] - indptr[v]
        place[v] = 0
        most = max(most, left[v])
    waiting, number = first_of(left, n), all_same(ends.size, k)
    order, others = np.empty(ends.size, edge.dtype), np.empty(2 * most, edge.dtype)
    unpeeled = _by_end(first, indptr, indices, edge)
    wanted = ALL if k == ALL else k - 2
    size, level, head, noted, tail, marked = ends.size, 0, 0, 0, 0, np.int64(-1)
    while size:
        size, level, tail = queue_below(support, unpeeled, size, level, wanted, order, tail)
        # No array is handed to a function in here: counting references to it takes half the time.
        while head < tail:
            if stop[0]:
                return number, order
            while noted < tail:
                waiting[first[order[noted]]] -= 1
                waiting[ends[order[noted]]] -= 1
                noted += 1
            e = order[head]
            head += 1
            number[e] = level + 1
            triangles, support[e] = support[e], PEELED
            u, v = np.int64(first[e]), np.int64(ends[e])
            if marked == u:
                place[v] = 0
            elif marked == v:
                place[u] = 0
            for end in (u, v):
                left[end] -= 1
                if 4 * (last[end] - indptr[end]) > 5 * left[end]:
                    kept = indptr[end]
                    for p in range(indptr[end], last[end]):
                        if support[edge[p]] >= 0:
                            indices[kept], edge[kept] = indices[p], edge[p]
                            kept += 1
                    last[end] = kept
            if triangles == 0 or (waiting[u] == 0 and waiting[v] == 0):
                continue
            short, long = (u, v) if left[u] < left[v] else (v, u)
            found, more = 0, False
            if marked != long:  # is it an end of enough that follows?
                ahead = head + left[long] // (LOPSIDED * max(left[short], 1))
                more = ahead < tail and (first[order[ahead]] == long or ends[order[ahead]] == long)
            if marked != long and not more and left[long] > LOPSIDED * left[short]:
                low = indptr[long]
                for p in range(indptr[short], last[short]):
                    high = last[long]
                    while low < high:
                        middle = (low + high) >> 1
                        if indices[middle] < indices[p]:
                            low = middle + 1
                        else:
                            high = middle
                    if low < last[long] and indices[low] == indices[p]:
                        others[found], others[found + 1] = edge[p], edge[low]
                        found += 2
            else:
                if marked != long and (more or marked != short):
                    if marked >= 0:
                        for p in range(indptr[marked], last[marked]):
                            place[indices[p]] = 0
                    marked = long if more else short
                    for p in range(indptr[marked], last[marked]):
                        place[indices[p]] = edge[p] + 1
                other = short if marked == long else long
                for p in range(indptr[other], last[other]):
                    f = place[indices[p]]
                    if f:
                        others[found], others[found + 1] = f - 1, edge[p]
                        found += 2
            for i in range(0, found, 2):
                if support[others[i]] >= 0 and support[others[i + 1]] >= 0:
                    for f in (others[i], others[i + 1]):
                        if support[f] >= level:
                            support[f] -= 1
                            if support[f] < level:
                                order[tail] = f
                                tail += 1
        if k != ALL:
            break
    return number, order


@jit
def _by_end(first, indptr, indices, edge):
    """List the edges by the end that comes last in the order of orientation."""
    listed = np.empty(first.size, edge.dtype)
    at = 0
    for v in range(indptr.size - 1):
        for p in range(indptr[v], indptr[v + 1]):
            if first[edge[p]] == indices[p]:
                listed[at] = edge[p]
                at += 1
    return listed


@jit
def truss_of_matrix(starts, ends, matrix, k, stop):
    """Do what `truss` does for a graph in the form of `as_matrix`, which is used up."""
    bits, number_of = matrix
    waiting = np.empty(bits.shape, np.uint64)
    for v in range(bits.shape[0]):
        for word in range(bits.shape[1]):
            waiting[v, word] = bits[v, word]
    first = tails(starts, ends)
    support = _common_bits(first, ends, bits)
    number = all_same(ends.size, k)
    order, unpeeled = np.empty(ends.size, np.uint32), numbered(ends.size, np.uint32)
    wanted = ALL if k == ALL else k - 2
    size, level, head, tail = ends.size, 0, 0, 0
    while size:
        size, level, tail = queue_below(support, unpeeled, size, level, wanted, order, tail)
        for i in range(head, tail):
            _flip(waiting, first[order[i]], ends[order[i]])
        while head < tail:
            if stop[0]:
                return number, order
            e = order[head]
            head += 1
            number[e] = level + 1
            u, v = first[e], ends[e]
            _flip(bits, u, v)
            if support[e] == 0:
                continue
            for word in range(bits.shape[1]):
                common = bits[u, word] & bits[v, word]
                for end in (u, v):
                    left = common & waiting[end, word]
                    while left:
                        w = (word << 6) + _lowest_bit(left)
                        left &= left - ONE
                        f = number_of[end, w]
                        support[f] -= 1
                        if support[f] < level:
                            order[tail] = f
                            tail += 1
                            _flip(waiting, end, w)
        if k != ALL:
            break
    return number, order


@jit
def as_matrix(starts, ends):
    """Turn a graph into a matrix of bits and one of the numbers of the edges."""
    n = starts.size - 1
    bits = np.empty((n, (n + 63) >> 6), np.uint64)
    for u in range(n):
        for word in range(bits.shape[1]):
            bits[u, word] = 0
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
def _lowest_bit(word):
    return np.int64(_popcount((word & (~word + ONE)) - ONE))
