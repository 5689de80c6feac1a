"""Members of large ego-networks, straight from the graph: peeled to a core, and united to contexts.

A member of an ego-network is a node: an entry of the row of a vertex. Whom it knows is what its own
row and that of the vertex have in common, and the entries of the shorter of the two are its
candidates, each looked up in the other. No edge of an ego-network is ever written down.

A core counts whom a node knows until there are enough; hubs that it knows (see `gpu_hubs`) are
counted by bits, without a look at a candidate.

Components: after Sutton, Ben-Nun and Barak, "Optimizing parallel graph connectivity computation via
subgraph sampling" (IPDPS 2018): those of common hubs are united (see `gpu_hubs`), or where these
are few a few candidates of each; whoever is then with most of its ego-network needs nothing more,
and the others stop as soon as they get there.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np

from glp_rapids.diversity.kernels import gpu_lazy
from glp_rapids.diversity.kernels.gpu_lazy import NEVER, UNSEEN, Limits, count_off
from glp_rapids.jit.cuda import cuda, kernel, load_fresh
from glp_rapids.jit.primitives import find_root, grid_barrier, lower_bound, union, upper_bound

Array = Any

LANES = 8  # threads that unite a member with those it knows: as many candidates are tried first


class Members(NamedTuple):
    """A graph and nodes of it: those of each of the ``vertices`` begin at ``offsets``."""

    indptr: Array
    indices: Array
    vertices: Array
    offsets: Array
    ego_of: Array
    least_of_hubs: np.int64  # degree; less has none of the hubs of `gpu_hubs`


@cuda.jit(device=True)
def candidates(graph, node, row):
    """Return how many candidates a node has, and where its ego-network and both rows lie."""
    ego = graph.ego_of[node]
    u = graph.vertices[ego]
    base = np.int64(graph.offsets[ego])
    start = np.int64(graph.indptr[u])
    size = np.int64(graph.indptr[u + 1]) - start
    v = graph.indices[start + node - base]
    other = np.int64(graph.indptr[v])
    degree = np.int64(graph.indptr[v + 1]) - other
    return min(size, degree), base, start, size, other, degree


@cuda.jit(device=True)
def place_of(graph, rows, candidate):
    """Return the place of a candidate among the members if it is one that the node knows, or -1."""
    _, _, start, size, other, degree = rows
    if size < degree:
        w = graph.indices[start + candidate]
        place = lower_bound(graph.indices, other, other + degree, w)
        if place < other + degree and graph.indices[place] == w:
            return np.int64(candidate)
    else:
        w = graph.indices[other + candidate]
        place = lower_bound(graph.indices, start, start + size, w)
        if place < start + size and graph.indices[place] == w:
            return np.int64(place - start)
    return np.int64(-1)


@cuda.jit(device=True)
def is_hit(graph, removed, rows, candidate, turn):
    """Tell whether the node knows a candidate that was there when this round began."""
    place = place_of(graph, rows, candidate)
    return place >= 0 and removed[rows[1] + place] >= turn


@cuda.jit(device=True)
def remove(graph, removed, node, rows, turn):
    """Note the round in which a node went."""
    removed[node] = turn


@cuda.jit(device=True)
def was_looked_at(graph, state, rows, node, place):
    """Tell whether one member of an ego-network was looked at by another, at ``place``.

    Whoever has not looked counts hubs; a few others of the least hub's degree may be taken for one.
    """
    _, base, start, size, _, degree = rows
    position = state.position[base + place]
    if position == UNSEEN:
        return degree >= graph.least_of_hubs
    w = graph.indices[start + place]
    other = graph.indptr[w]
    if size < graph.indptr[w + 1] - other:
        return node - base < position
    return (
        position > 0 and graph.indices[other + position - 1] >= graph.indices[start + node - base]
    )


@cuda.jit(device=True)
def take(graph, state, control, node, lane, lanes, need, turn):
    """Count a node off from all that it knows."""
    rows = candidates(graph, node, np.int64(-1))
    for candidate in range(lane, rows[0], lanes):
        place = place_of(graph, rows, candidate)
        if (
            place >= 0
            and state.removed[rows[1] + place] == NEVER
            and was_looked_at(graph, state, rows, node, place)
        ):
            count_off(state, control, rows[1] + place, need, turn)


@cuda.jit(device=True)
def count_hubs(graph, known, node, enough):
    """Count hubs that a node knows in its ego-network, until there are ``enough``; never too many.

    A word is counted as a whole, so there may be more than enough. Member and vertex have the bits
    of themselves, too, which are no common neighbours.
    """
    ego = graph.ego_of[node]
    u = np.int64(graph.vertices[ego])
    start = np.int64(graph.indptr[u])
    v = np.int64(graph.indices[start + node - graph.offsets[ego]])
    count = np.int32(0)
    if graph.indptr[u + 1] - start >= graph.least_of_hubs:
        count -= np.int32(1)
    if graph.indptr[v + 1] - graph.indptr[v] >= graph.least_of_hubs:
        count -= np.int32(1)
    word = 0
    while word < known.shape[0] and count < enough:
        count += np.int32(cuda.popc(known[word, u] & known[word, v]))
        word += 1
    return count


@functools.cache
def build_look(threads: int, limits: Limits) -> Any:
    """Make the kernel that takes the first look at all members; see `gpu_lazy`.

    Launch: a thread a node. Degrees: any. Registers: 35.
    """
    alone, _ = gpu_lazy.build_look(limits, candidates, is_hit, remove)

    def look_at_members(graph, known, state, control, need):
        node = np.int64(cuda.blockIdx.x) * threads + cuda.threadIdx.x
        if node < state.removed.size:
            count = np.int32(0)
            if known.size > 0:
                count = count_hubs(graph, known, node, need)
            if count >= need:
                state.position[node] = UNSEEN
                state.found[node] = count
            else:
                alone(graph, state, control, node, np.int64(-1), need, np.int64(0))

    return kernel(look_at_members, f"{threads} {limits}")


@functools.cache
def build_core(threads: int, lanes: int, limits: Limits) -> Any:
    """Make the kernel that peels members who know fewer than ``need`` others; see `gpu_lazy`.

    Registers: 72.
    """
    peel = gpu_lazy.build_peel(threads, lanes, limits, candidates, is_hit, remove, take)

    def peel_members(graph, state, control, need):
        cuda.cg.this_grid()
        peel(graph, state, control, need)

    return kernel(peel_members, f"{threads} {lanes} {limits}")


@cuda.jit(device=True)
def is_there(removed, node):
    """Tell whether a node was not peeled; of no ``removed`` at all none was."""
    return removed.size == 0 or removed[node] == NEVER


@cuda.jit(device=True)
def unite_row(graph, removed, parent, node, rows, top, lane, lanes):
    """Unite a node with all that it knows, until it is where ``top`` is.

    Without such (-1) all members of the ego-network do this, so each looks at later ones only.
    """
    number, base, start, size, other, degree = rows
    first = np.int64(0)
    if top < 0:
        if size < degree:
            first = node - base + 1
        else:
            v = graph.indices[start + node - base]
            first = upper_bound(graph.indices, other, other + degree, v) - other
    for candidate in range(first + lane, number, lanes):
        root = find_root(parent, np.int32(node))
        if top >= 0 and root == find_root(parent, np.int32(top)):
            return
        if size < degree and root == find_root(parent, np.int32(base + candidate)):
            continue
        place = place_of(graph, rows, candidate)
        if place >= 0 and is_there(removed, base + place):
            union(parent, np.int32(node), np.int32(base + place))


@functools.cache
def build_unite(threads: int, lanes: int, long: int) -> Any:
    """Make the kernel that unites all members who know each other, those that were peeled aside.

    Launch: cooperative, as many blocks as there is room for; ``lanes`` threads a node, a block one
    of more than ``long`` candidates. Degrees: any. Shared memory: 4 bytes a thread and 4
    more. Registers: 53.

    ``parent``, ``top``, ``listed`` and ``numbers`` are what `gpu_hubs` leaves.
    """
    groups = threads // lanes

    def unite_members(graph, removed, parent, top, listed, numbers, heavy, control):
        roots = cuda.shared.array(threads, np.int32)
        best = cuda.shared.array(1, np.int32)
        cuda.cg.this_grid()
        thread = np.int64(cuda.threadIdx.x)
        block, blocks = np.int64(cuda.blockIdx.x), np.int64(cuda.gridDim.x)
        group, lane = block * groups + thread // lanes, thread % lanes
        of_most, of_others = numbers[0], numbers[1]
        behind = listed.size - of_most - of_others  # places between the two lists

        # where no hubs unite most: a few candidates each
        for place in range(group, of_others, blocks * groups):
            node = np.int64(listed[listed.size - 1 - place])
            rows = candidates(graph, node, np.int64(-1))
            if lane < rows[0]:
                other = place_of(graph, rows, lane)
                if other >= 0 and is_there(removed, rows[1] + other):
                    union(parent, np.int32(node), np.int32(rows[1] + other))
        grid_barrier(control.arrived, blocks)

        # and where more than half of these ego-networks' members are, by a sample
        for ego in range(block, top.size if of_others > 0 else 0, blocks):
            if top[ego] >= 0:
                continue
            first, size = graph.offsets[ego], graph.offsets[ego + 1] - graph.offsets[ego]
            sampled = min(size, np.int64(threads))
            root = np.int32(-1)
            if thread < sampled:
                node = first + thread * size // sampled
                if is_there(removed, node):
                    root = find_root(parent, np.int32(node))
            roots[thread] = root
            if thread == 0:
                best[0] = 0
            there = cuda.syncthreads_count(np.int32(root >= 0))
            votes = np.int32(0)
            if root >= 0:
                for i in range(sampled):
                    if roots[i] == root:
                        votes += 1
                cuda.atomic.max(best, 0, np.int32(votes * threads + thread))
            cuda.syncthreads()
            if thread == 0:
                chosen = best[0]
                top[ego] = roots[chosen % threads] if 2 * (chosen // threads) > there else -1
            cuda.syncthreads()
        grid_barrier(control.arrived, 2 * blocks)

        # the others in full
        for place in range(group, of_most + of_others, blocks * groups):
            begun = place >= of_most
            node = np.int64(listed[place + behind if begun else place])
            most = top[graph.ego_of[node]]
            if most < 0 or find_root(parent, np.int32(node)) != find_root(parent, most):
                rows = candidates(graph, node, np.int64(-1))
                if begun and rows[0] <= lanes:
                    continue  # these few were all that it has
                if rows[0] <= long:
                    unite_row(graph, removed, parent, node, rows, most, lane, lanes)
                elif lane == 0:
                    heavy[cuda.atomic.add(control.counts, 0, np.int64(1))] = node
        grid_barrier(control.arrived, 3 * blocks)
        for place in range(block, load_fresh(control.counts, 0), blocks):
            node = np.int64(heavy[place])
            rows = candidates(graph, node, np.int64(-1))
            most = top[graph.ego_of[node]]
            unite_row(graph, removed, parent, node, rows, most, thread, threads)

    return kernel(unite_members, f"{threads} {lanes} {long}")
