"""Edges of large ego-networks: peeled to a truss, and what is left united to contexts.

The ego-networks of a batch are one graph, whose nodes are their members. An edge is the entry of
its smaller end. The candidates of an edge are the neighbours of that of its ends that has fewer,
each looked up among those of the other end.

Contexts: Huang, Huang and Xu, "Truss-based structural diversity search in large graphs" (TKDE
2020).
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np

from glp_rapids.diversity.kernels import gpu_lazy
from glp_rapids.diversity.kernels.gpu_ego_rows import note_rows, row_between
from glp_rapids.diversity.kernels.gpu_lazy import NEVER, Limits, count_off
from glp_rapids.jit.cuda import cuda, kernel
from glp_rapids.jit.primitives import lower_bound, row_of, union

Array = Any


class Egos(NamedTuple):
    """The CSR of ego-networks side by side."""

    indptr: Array
    indices: Array


@cuda.jit(device=True)
def ends_by_degree(graph, one, other):
    """Return the one of two nodes that has fewer neighbours, of equals the smaller; and the other.

    ``one`` is the smaller.
    """
    if graph.indptr[other + 1] - graph.indptr[other] < graph.indptr[one + 1] - graph.indptr[one]:
        return other, one
    return one, other


@cuda.jit(device=True)
def candidates(graph, edge, row):
    """Return how many candidates an edge has, and where the rows of its ends lie.

    ``row``: that of the edge, or -1.
    """
    if row < 0:
        row = np.int64(row_of(graph.indptr, edge))
    short, long = ends_by_degree(graph, row, np.int64(graph.indices[edge]))
    first, last = np.int64(graph.indptr[short]), np.int64(graph.indptr[short + 1])
    other, end = np.int64(graph.indptr[long]), np.int64(graph.indptr[long + 1])
    return last - first, first, other, end, short, long


@cuda.jit(device=True)
def is_hit(graph, removed, rows, candidate, turn):
    """Tell whether a candidate is a triangle that was there when this round began."""
    _, first, other, end, _, _ = rows
    if removed[first + candidate] < turn:
        return False
    w = graph.indices[first + candidate]
    place = lower_bound(graph.indices, other, end, w)
    return place < end and graph.indices[place] == w and removed[place] >= turn


@cuda.jit(device=True)
def entry_of(graph, one, other):
    """Return the entry of one node in the row of another."""
    return lower_bound(graph.indices, graph.indptr[one], graph.indptr[one + 1], other)


@cuda.jit(device=True)
def remove(graph, removed, edge, rows, turn):
    """Note the round in which an edge went, at both of its entries."""
    _, _, _, _, short, long = rows
    removed[edge] = turn
    removed[entry_of(graph, max(short, long), min(short, long))] = turn


@cuda.jit(device=True)
def smaller_entry(graph, entry, node, other):
    """Return the entry at the smaller end of the edge of an entry in the row of a node."""
    return entry if node < other else np.int64(entry_of(graph, other, node))


@cuda.jit(device=True)
def was_looked_at(graph, state, edge, one, other, third):
    """Tell whether an edge between two nodes has looked at its triangle with a third."""
    position = np.int64(state.position[edge])
    short, _ = ends_by_degree(graph, min(one, other), max(one, other))
    return position > 0 and graph.indices[graph.indptr[short] + position - 1] >= third


@cuda.jit(device=True)
def take(graph, state, control, edge, lane, lanes, need, turn):
    """Count an edge off from the others of all its triangles.

    Of two edges of a triangle that went in this round the smaller is counted off.
    """
    number, first, other, end, short, long = candidates(graph, edge, np.int64(-1))
    removed = state.removed
    for entry in range(first + lane, first + number, lanes):
        if removed[entry] < turn:
            continue
        w = np.int64(graph.indices[entry])
        place = lower_bound(graph.indices, other, end, w)
        if place == end or graph.indices[place] != w or removed[place] < turn:
            continue
        f_stays, g_stays = removed[entry] == NEVER, removed[place] == NEVER
        if not f_stays and not g_stays:
            continue
        f = smaller_entry(graph, np.int64(entry), short, w)
        g = smaller_entry(graph, np.int64(place), long, w)
        if f_stays and (g_stays or edge < g) and was_looked_at(graph, state, f, short, w, long):
            count_off(state, control, f, need, turn)
        if g_stays and (f_stays or edge < f) and was_looked_at(graph, state, g, long, w, short):
            count_off(state, control, g, need, turn)


@functools.cache
def build_look(threads: int, limits: Limits) -> Any:
    """Make the kernel that takes the first look at all edges; see `gpu_lazy`.

    Launch: a thread an entry. Degrees: any. Shared memory: 16 bytes. Registers: 43.
    """
    alone, _ = gpu_lazy.build_look(limits, candidates, is_hit, remove)

    def look_at_edges(graph, state, control, need):
        bounds = cuda.shared.array(2, np.int64)
        first = np.int64(cuda.blockIdx.x) * threads
        note_rows(graph.indptr, first, threads, bounds)
        edge = first + cuda.threadIdx.x
        if edge < graph.indices.size:
            row = row_between(graph.indptr, bounds, edge)
            if row < graph.indices[edge]:
                alone(graph, state, control, edge, row, need, np.int64(0))

    return kernel(look_at_edges, f"{threads} {limits}")


@functools.cache
def build_truss(threads: int, lanes: int, limits: Limits) -> Any:
    """Make the kernel that peels edges in fewer than ``need`` triangles; see `gpu_lazy`.

    Registers: 82.
    """
    peel = gpu_lazy.build_peel(threads, lanes, limits, candidates, is_hit, remove, take)

    def peel_edges(graph, state, control, need):
        cuda.cg.this_grid()
        peel(graph, state, control, need)

    return kernel(peel_edges, f"{threads} {lanes} {limits}")


@functools.cache
def build_unite(threads: int) -> Any:
    """Make the kernel that unites the ends of all edges that were not peeled.

    Launch: a thread an entry. Shared memory: 16 bytes. Registers: 24.
    """

    def unite_edges(graph, removed, parent):
        bounds = cuda.shared.array(2, np.int64)
        first = np.int64(cuda.blockIdx.x) * threads
        note_rows(graph.indptr, first, threads, bounds)
        edge = first + cuda.threadIdx.x
        if edge < graph.indices.size and removed[edge] == NEVER:
            node, other = row_between(graph.indptr, bounds, edge), np.int64(graph.indices[edge])
            if node < other and parent[node] != parent[other]:
                union(parent, np.int32(node), np.int32(other))

    return kernel(unite_edges, str(threads))
