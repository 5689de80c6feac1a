"""Members of large ego-networks that a hub unites: found by one word of bits, without any lookup.

For every vertex some bits tell which of the hubs, the vertices of highest degree, it knows, and a
hub itself. Two neighbours know a common hub where both have its bit. So the hubs of an ego-network
that reach one another are one context (of those of its first hub), and whoever has a bit of theirs
is in it. In a skewed graph that is nearly everybody: of the members of ego-networks of more than
512 of kron-19-16 92% by the first 64 hubs and 95% by 256, where the first lookup that hits is the
sixth in the order of vertices. Those with most of the ego-network need nothing more; whom
no hub unites is listed for `gpu_members`.

The idea of a giant component whose members are skipped is that of Sutton, Ben-Nun and Barak,
"Optimizing parallel graph connectivity computation via subgraph sampling" (IPDPS 2018).
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np

from glp_rapids.diversity.kernels.gpu_members import is_there
from glp_rapids.jit.cuda import cuda, kernel
from glp_rapids.jit.primitives import lower_bound

Array = Any

THREADS = 256
PARTS = 8  # blocks that share the row of a hub
BITS = 64
WORDS = 4  # of bits a vertex: as many tables, the first of which a cache may hold
NUMBER = WORDS * BITS  # of hubs
# That a vertex knows of them, on average, for them to be worth it: kron-19-16 3.3, com-dblp 0.1.
LEAST_KNOWN = 1.0
MOST, OTHERS = range(2)  # lists of members: of ego-networks of which hubs unite most, and all else
ONE = np.uint64(1)
NOTHING = np.int32((1 << 31) - 1)
UNITED = np.int32(-1)  # in the place of a parent that is not known yet


class Hubs(NamedTuple):
    """Some vertices, and who knows them: ``known[word, vertex]``."""

    vertices: Array
    known: Array


@functools.cache
def build_mark(threads: int, parts: int) -> Any:
    """Make the kernel that notes for everybody which hubs they know; ``known`` is 0 before.

    Launch: ``parts`` blocks a hub. Degrees: any. Registers: 28.
    """

    def mark_hubs(indptr, indices, hubs):
        hub, part = np.int64(cuda.blockIdx.x) // parts, np.int64(cuda.blockIdx.x) % parts
        h = np.int64(hubs.vertices[hub])
        word, bit = hub // BITS, ONE << np.uint64(hub % BITS)
        if part == 0 and cuda.threadIdx.x == 0:
            cuda.atomic.or_(hubs.known, (word, h), bit)
        begin = np.int64(indptr[h]) + part * threads + cuda.threadIdx.x
        for place in range(begin, indptr[h + 1], parts * threads):
            cuda.atomic.or_(hubs.known, (word, np.int64(indices[place])), bit)

    return kernel(mark_hubs, f"{threads} {parts}")


@cuda.jit(device=True)
def knows_one(known, v, wanted, words):
    """Tell whether a vertex knows one of the hubs ``wanted``."""
    word = 0
    while word < words and (wanted[word] == 0 or known[word, v] & wanted[word] == 0):
        word += 1
    return word < words


@cuda.jit(device=True)
def reach_hubs(hubs, wanted, reached, joining, words, thread, threads):
    """Find those of the hubs ``wanted`` that the first of them reaches over the others."""
    if thread == 0:
        word = 0
        while word < words and wanted[word] == 0:
            word += 1
        if word < words:
            reached[word] = wanted[word] & (~wanted[word] + ONE)
    more = np.int32(1)
    while cuda.syncthreads_or(more):
        more = np.int32(0)
        for hub in range(thread, hubs.vertices.size, threads):
            word, bit = hub // BITS, ONE << np.uint64(hub % BITS)
            if (
                wanted[word] & bit
                and not reached[word] & bit
                and knows_one(hubs.known, hubs.vertices[hub], reached, words)
            ):
                cuda.atomic.or_(joining, word, bit)
                more = np.int32(1)
        cuda.syncthreads()
        if thread < words:
            reached[thread] |= joining[thread]


@functools.cache
def build_unite(threads: int, words: int) -> Any:
    """Make the kernel that unites whom hubs unite, and lists whom that is not enough for.

    Launch: a block for each ego-network. Degrees: any. Shared memory: 120 bytes. Registers: 43.

    Where hubs unite more than half of an ego-network (those that were not ``removed``), its ``top``
    is one of these, and the others are ``listed`` from the front. Of other ego-networks ``top`` is
    -1, and all are listed, from behind. ``counts``: how many there are of both.
    """

    def unite_by_hubs(graph, hubs, removed, parent, top, listed, counts):
        wanted = cuda.shared.array(words, np.uint64)
        reached = cuda.shared.array(words, np.uint64)
        joining = cuda.shared.array(words, np.uint64)
        begin = cuda.shared.array(1, np.int64)
        numbers = cuda.shared.array(3, np.int32)  # there, united, and written to the list
        first = cuda.shared.array(1, np.int32)
        thread = cuda.threadIdx.x
        ego = cuda.blockIdx.x
        u = graph.vertices[ego]
        base = np.int64(graph.offsets[ego])
        start = np.int64(graph.indptr[u])
        size = np.int64(graph.indptr[u + 1]) - start
        if thread < words:
            wanted[thread] = 0
            reached[thread] = 0
            joining[thread] = 0
        if thread < 3:
            numbers[thread] = 0
        if thread == 0:
            first[0] = NOTHING
        cuda.syncthreads()

        for hub in range(thread, hubs.vertices.size, threads):
            h, bit = hubs.vertices[hub], ONE << np.uint64(hub % BITS)
            if h != u and hubs.known[hub // BITS, u] & bit:
                node = base
                if removed.size > 0:
                    node += lower_bound(graph.indices, start, start + size, h) - start
                if is_there(removed, node):
                    cuda.atomic.or_(wanted, hub // BITS, bit)
        cuda.syncthreads()
        reach_hubs(hubs, wanted, reached, joining, words, thread, threads)

        there, united, smallest = np.int32(0), np.int32(0), NOTHING
        for place in range(thread, size, threads):
            if is_there(removed, base + place):
                there += np.int32(1)
                if knows_one(hubs.known, graph.indices[start + place], reached, words):
                    united += np.int32(1)
                    smallest = min(smallest, np.int32(place))
                    parent[base + place] = UNITED
        cuda.atomic.add(numbers, 0, there)
        cuda.atomic.add(numbers, 1, united)
        cuda.atomic.min(first, 0, smallest)
        cuda.syncthreads()
        most = 2 * numbers[1] > numbers[0]
        root = base + first[0]
        if thread == 0:
            top[ego] = root if most else -1
            number = numbers[0] - numbers[1] if most else numbers[0]
            begin[0] = cuda.atomic.add(counts, MOST if most else OTHERS, np.int64(number))
        cuda.syncthreads()
        for place in range(thread, size, threads):
            node = base + place
            if is_there(removed, node):
                is_united = parent[node] == UNITED
                if is_united:
                    parent[node] = root
                if not (is_united and most):
                    at = begin[0] + cuda.atomic.add(numbers, 2, np.int32(1))
                    listed[at if most else listed.size - 1 - at] = node

    return kernel(unite_by_hubs, f"{threads} {words}")
