"""Slow, obvious twins of cores, trusses, ego-networks and their social contexts.

A graph is a list of neighbour sets, a subgraph a dict from vertex to neighbour set; no loops.
"""

from itertools import pairwise

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph


def neighbour_sets(indptr, indices):
    """Each vertex's set of neighbours, whichever way the entries point, without itself."""
    rows = [set() for _ in indptr[1:]]
    for v, (start, end) in enumerate(pairwise(map(int, indptr))):
        for u in map(int, indices[start:end]):
            if u != v:
                rows[v].add(u)
                rows[u].add(v)
    return rows


def ego_network(neighbours, v):
    """The subgraph that the neighbours of v induce; v is not in it."""
    return {u: neighbours[u] & neighbours[v] for u in sorted(neighbours[v])}


def connected_components(graph):
    """Sorted lists of vertices, by their smallest."""
    found, seen = [], set()
    for start in sorted(graph):
        if start not in seen:
            reached = frontier = {start}
            while frontier:
                frontier = set().union(*(graph[v] for v in frontier)) - reached
                reached = reached | frontier
            seen |= reached
            found.append(sorted(reached))
    return found


def core(graph, k):
    """The k-core: vertices with fewer than k neighbours go until there are none."""
    while any(len(row) < k for row in graph.values()):
        left = {v for v, row in graph.items() if len(row) >= k}
        graph = {v: graph[v] & left for v in left}
    return graph


def truss(graph, k):
    """The k-truss: edges in fewer than k - 2 triangles go until there are none."""
    while True:
        strong = {v: {u for u in row if len(row & graph[u]) >= k - 2} for v, row in graph.items()}
        if strong == graph:
            return {v: row for v, row in graph.items() if row}
        graph = strong


def social_contexts(ego, k, model):
    """The contexts of an ego-network, sorted lists of members by their smallest."""
    if model == "component":
        return [members for members in connected_components(ego) if len(members) >= k]
    return connected_components({"core": core, "truss": truss}[model](ego, k))


def core_numbers(neighbours):
    """Per vertex the largest k whose k-core it is in."""
    graph = dict(enumerate(neighbours))
    numbers = [0] * len(graph)
    for k in range(len(graph)):
        graph = core(graph, k)
        for v in graph:
            numbers[v] = k
    return numbers


def trussness(neighbours):
    """Per edge (u, v), u < v, the largest k whose k-truss it is in."""
    graph, numbers, k = dict(enumerate(neighbours)), {}, 2
    while graph := truss(graph, k):
        numbers |= {(u, v): k for u, row in graph.items() for v in row if u < v}
        k += 1
    return numbers


def triangle_counts(neighbours):
    """Per vertex how many triangles it is a corner of."""
    return [sum(len(row & neighbours[u]) for u in row) // 2 for row in neighbours]


def matrix_truss(graph, k):
    """The k-truss of a graph as a 0/1 sparse matrix."""
    before = None
    while k > 2 and before != graph.nnz:
        before = graph.nnz
        graph = ((graph @ graph).multiply(graph) >= k - 2).astype(graph.dtype)
    return graph


def matrix_contexts(ego, largest, model):
    """What `social_contexts` gives for k = 1 .. largest, for large ego-networks and many k.

    ``ego`` is a 0/1 sparse matrix. Per k an array: for every vertex the first member of the
    context it is in, -1 if it is in none. Truss: all -1 for k = 1.
    """
    members, found = np.full(ego.shape[0], True), []
    for k in range(1, largest + 1):
        while model == "core" and (weak := members & (ego.sum(axis=1) < k)).any():
            members &= ~weak
            left = sparse.diags_array(members.astype(ego.dtype))
            ego = left @ ego @ left
            ego.eliminate_zeros()
        if model == "truss":
            ego = matrix_truss(ego, k)
            members = (ego.sum(axis=1) > 0) & (k > 1)
        _, labels = csgraph.connected_components(ego, directed=False)
        _, first, group, sizes = np.unique(labels, True, True, True)
        large = sizes[group] >= (k if model == "component" else 1)
        found.append(np.where(members & large, first[group], -1))
    return found
