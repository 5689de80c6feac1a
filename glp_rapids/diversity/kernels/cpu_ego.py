"""Ego-networks one after another: each is listed, cut down to its contexts, and forgotten.

Member j of an ego-network is the j-th neighbour of its vertex. A call has one array over all
vertices, ``mark``, which says where in the row of the vertex at hand a neighbour stands (0: it is
none, j + 1 otherwise). The whole graph is oriented from lower to higher degree, and so is every
ego-network of it: the edges between the neighbours of u are found by reading the short oriented
rows of those neighbours, or, where these are longer, by searching them for the neighbours of u.

The contexts of every k at once: what was peeled comes back in reverse, from the highest level (core
number or trussness) down; the contexts of level k are the members that came up to then, less the
edges that joined two parts.
"""

from __future__ import annotations

import numpy as np

from glp_rapids.cohesion.kernels import cpu, cpu_truss
from glp_rapids.cohesion.kernels.cpu import jit

COMPONENT, CORE, TRUSS = 0, 1, 2
BYTES = 56  # for a member or an edge when a truss is peeled: both forms, supports, queue
DENSE = 4  # words of a matrix of bits for an edge: up to there it beats rows


@jit
def first_above(limit, vertices, graph):
    """Find the place of the first vertex whose ego-network may need more bytes; -1 for none."""
    for i in range(vertices.size):
        if bytes_needed(vertices[i], graph) > limit:
            return i
    return -1


@jit
def bytes_needed(u, graph):
    """Bound the memory for the ego-network of a vertex."""
    indptr, indices, starts, _ = graph
    degree = indptr[u + 1] - indptr[u]
    matrix = 5 * min(degree, cpu_truss.LARGEST_MATRIX) ** 2
    return BYTES * (degree + _most_edges(u, indptr, indices, starts)) + matrix


@jit
def _most_edges(u, indptr, indices, starts):
    degree = indptr[u + 1] - indptr[u]
    most = 0
    for p in range(indptr[u], indptr[u + 1]):
        v = indices[p]
        most += min(starts[np.int64(v) + 1] - starts[v], degree - 1)
    return min(most, degree * (degree - 1) // 2)


@jit
def ego_network(u, graph, mark, stop):
    """Build the ego-network of u: oriented, over the members 0 .. degree - 1."""
    indptr, indices, whole_starts, whole_ends = graph
    begin, end = indptr[u], indptr[u + 1]
    degree = end - begin
    starts = np.empty(degree + 1, np.int64)
    ends = np.empty(_most_edges(u, indptr, indices, whole_starts), np.uint32)
    for p in range(begin, end):
        mark[indices[p]] = p - begin + 1
    e = 0
    for p in range(begin, end):
        starts[p - begin] = e
        if stop[0]:
            continue
        v = indices[p]
        low, high = whole_starts[v], whole_starts[np.int64(v) + 1]
        if high - low <= cpu.LOPSIDED * degree:
            for q in range(low, high):
                other = mark[whole_ends[q]]
                if other:
                    ends[e] = other - 1
                    e += 1
        else:
            for other in range(begin, end):
                low = cpu.lower_bound(whole_ends, low, high, indices[other])
                if low < high and whole_ends[low] == indices[other]:
                    ends[e] = other - begin
                    e += 1
    starts[degree] = e
    for p in range(begin, end):
        mark[indices[p]] = 0
    return starts, ends[:e]


@jit
def scores(vertices, graph, mark, k, model, result, stop):
    """Count the contexts of every vertex."""
    for i in range(vertices.size):
        if stop[0]:
            return
        context = _contexts(vertices[i], graph, mark, k, model, stop)
        count = 0
        for j in range(context.size):
            count += context[j] == j
        result[i] = count


@jit
def members(vertices, graph, mark, k, model, result, stop):
    """Name the context of every neighbour by its first member, -1 for none."""
    at = 0
    for i in range(vertices.size):
        if stop[0]:
            return
        u = vertices[i]
        context = _contexts(u, graph, mark, k, model, stop)
        for j in range(graph[0][u + 1] - graph[0][u]):
            result[at + j] = context[j] if j < context.size else -1
        at += graph[0][u + 1] - graph[0][u]


@jit
def _contexts(u, graph, mark, k, model, stop):
    """Name every member's context by its first member, or -1; empty where there cannot be any."""
    nothing = cpu.all_same(0, 0)
    degree = graph[0][u + 1] - graph[0][u]
    fewest = k + 1 if model == CORE else k
    if degree < max(fewest, 1):
        return nothing
    starts, ends = ego_network(u, graph, mark, stop)
    if model == COMPONENT:
        first = _components(starts, ends)
        sizes = _sizes(first)
        for j in range(degree):
            if sizes[first[j]] < k:
                first[j] = -1
        return first
    if ends.size < fewest * (fewest - 1) // 2:
        return nothing
    first = cpu.all_same(degree, -1)
    if model == CORE:
        indptr, indices, _ = cpu.symmetric(starts, ends)
        number, _ = cpu.core(indptr, indices, k, stop)
        for j in range(degree):
            for e in range(starts[j], starts[j + 1]):
                if min(number[j], number[ends[e]]) >= k:
                    _union(first, j, ends[e])
    else:
        number, _ = _truss(starts, ends, k, stop)
        for j in range(degree):
            for e in range(starts[j], starts[j + 1]):
                if number[e] >= k:
                    _union(first, j, ends[e])
    for j in range(degree):
        if first[j] >= 0:
            first[j] = _find_root(first, j)
    return first


@jit
def _truss(starts, ends, k, stop):
    """Peel an ego-network in the form that suits it."""
    members = starts.size - 1
    words = (members + 63) >> 6
    if members <= cpu_truss.LARGEST_MATRIX and words * members <= DENSE * ends.size:
        return cpu_truss.truss_of_matrix(starts, ends, cpu_truss.as_matrix(starts, ends), k, stop)
    return cpu_truss.truss(starts, ends, cpu.symmetric(starts, ends), k, stop)


@jit
def _components(starts, ends):
    """Name every member's component by its first member."""
    first = cpu.numbered(starts.size - 1, np.int32)
    for j in range(first.size):
        for e in range(starts[j], starts[j + 1]):
            _union(first, j, ends[e])
    for j in range(first.size):
        first[j] = _find_root(first, j)
    return first


@jit
def _sizes(first):
    """Count the members of every component, at the place of its first member."""
    sizes = cpu.all_same(first.size, 0)
    for j in range(first.size):
        sizes[first[j]] += 1
    return sizes


@jit
def every_score(vertices, graph, mark, model, offsets, result, stop):
    """Count the contexts of every vertex for k = 1 .. degree."""
    for i in range(vertices.size):
        if stop[0]:
            return
        row = result[offsets[i] : offsets[i + 1]]
        for j in range(row.size):
            row[j] = 0
        starts, ends = ego_network(vertices[i], graph, mark, stop)
        if model == COMPONENT:
            for size in _sizes(_components(starts, ends)):
                if size:
                    row[size - 1] += 1
        elif model == CORE:
            _count_cores(starts, ends, row, stop)
        else:
            _count_trusses(starts, ends, row, stop)
        for j in range(row.size - 2, -1, -1):
            row[j] += row[j + 1]
        if model == TRUSS and row.size:
            row[0] = 0


@jit
def _count_cores(starts, ends, row, stop):
    """Count what every level adds to the contexts: members that come, less edges that join."""
    indptr, indices, _ = cpu.symmetric(starts, ends)
    number, order = cpu.core(indptr, indices, cpu.ALL, stop)
    if stop[0]:  # the order is not whole
        return
    first = cpu.all_same(order.size, -1)
    for i in range(order.size - 1, -1, -1):
        j = order[i]
        if number[j] == 0:
            break
        first[j] = root = j
        joined = 0
        for p in range(indptr[j], indptr[j + 1]):
            other = first[indices[p]]
            if other >= 0 and other != root:  # in a dense one most have this root already
                other = _find_root(first, other)
                joined += other != root
                first[max(other, root)] = min(other, root)
                first[indices[p]] = root = min(other, root)
        row[number[j] - 1] += 1 - joined


@jit
def _count_trusses(starts, ends, row, stop):
    """Count what every level adds to the contexts: members that come, less edges that join."""
    number, order = _truss(starts, ends, cpu.ALL, stop)
    if stop[0]:  # the order is not whole
        return
    first = cpu.all_same(starts.size - 1, -1)
    tail = cpu.tails(starts, ends)
    for i in range(order.size - 1, -1, -1):
        e = order[i]
        row[number[e] - 1] += _union(first, tail[e], ends[e])


@jit
def _find_root(first, j):
    while first[j] != j:
        first[j] = first[first[j]]
        j = first[j]
    return j


@jit
def _union(first, one, other):
    """Unite two sets under the smaller root; return by how much that raises their number.

    Members with -1 are in none yet, and become sets of their own first.
    """
    if first[one] >= 0 and first[one] == first[other]:  # as in dense ones most
        return 0
    more = 0
    for j in (np.int64(one), np.int64(other)):
        if first[j] < 0:
            first[j] = j
            more += 1
    a, b = _find_root(first, np.int64(one)), _find_root(first, np.int64(other))
    first[max(a, b)] = min(a, b)
    return more - (a != b)


@jit
def ego_degrees(vertices, graph, mark, indptr, stop):
    """Fill in the degree of every node, one place further on, so that sums turn it into starts."""
    at = 1
    for i in range(vertices.size):
        if stop[0]:
            return
        starts, ends = ego_network(vertices[i], graph, mark, stop)
        for j in range(starts.size - 1):
            indptr[at + j] += starts[j + 1] - starts[j]
        for e in range(ends.size):
            indptr[at + ends[e]] += 1
        at += starts.size - 1


@jit
def ego_entries(vertices, graph, mark, indptr, result, stop):
    """Fill in the rows of all nodes, the nodes of an ego-network numbered from where it starts."""
    at = 0
    for i in range(vertices.size):
        if stop[0]:
            return
        starts, ends = ego_network(vertices[i], graph, mark, stop)
        _, indices, _ = cpu.symmetric(starts, ends)
        to = indptr[at]
        for p in range(indices.size):
            result[to + p] = at + indices[p]
        at += starts.size - 1
