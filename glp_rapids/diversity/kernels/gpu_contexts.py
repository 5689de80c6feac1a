"""Contexts of large ego-networks, as the sets of a union-find over all nodes of a batch.

The ego-networks of a batch are one graph, whose nodes are the entries of their vertices' rows. An
edge unites its ends if it is in the core or truss asked for; the sets that are left are the
contexts. All kernels here serve any degrees and need no shared memory.

Contexts: Huang, Cheng, Li, Qin and Yu, "Top-k structural diversity search in large networks",
VLDB Journal 24 (2015), and, of trusses, Huang, Huang and Xu, "Truss-based structural diversity
search in large graphs" (TKDE 2020).
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from glp_rapids.jit.cuda import cuda, kernel
from glp_rapids.jit.primitives import row_of, union

THREADS = 256


@functools.cache
def build_ends(threads: int) -> Any:
    """Make the kernel that unites the ends of the entries ``chosen``.

    For every two sets that become one it takes one from the score of their ego-network for
    ``level``. Launch: a thread an entry. Registers: 18.
    """

    def unite_ends(rows, indices, chosen, parent, ego_of, offsets, level, scores):
        i = np.int64(cuda.blockIdx.x) * threads + cuda.threadIdx.x
        if i < chosen.size:
            entry = chosen[i]
            node = np.int32(rows[entry])
            if union(parent, node, np.int32(indices[entry])):
                cuda.atomic.sub(scores, offsets[ego_of[node]] + level - 1, np.int32(1))

    return kernel(unite_ends, str(threads))


@functools.cache
def build_roots(threads: int) -> Any:
    """Make the kernel that leads every node to its root, and counts those a root stands for.

    ``size`` counts from 0 to ``enough`` at the least: a root that stands for millions has these add
    to one word, one after another. Launch: a thread a node, when nothing is united any more.
    Registers: 20.
    """

    def find_roots(parent, size, enough):
        node = np.int64(cuda.blockIdx.x) * threads + cuda.threadIdx.x
        if node < parent.size:
            # Nobody shortens another's way here: that could come after its root was written.
            root = np.int32(node)
            while parent[root] != root:
                root = parent[root]
            parent[node] = root
            if size[root] < enough:
                cuda.atomic.add(size, root, np.int32(1))

    return kernel(find_roots, str(threads))


@functools.cache
def build_count(threads: int) -> Any:
    """Make the kernel that adds roots of at least ``fewest`` nodes to ``scores[listed[ego]]``.

    Launch: a thread a node. Registers: 11.
    """

    def count_roots(size, fewest, ego_of, listed, scores):
        node = np.int64(cuda.blockIdx.x) * threads + cuda.threadIdx.x
        if node < size.size and size[node] >= fewest:
            cuda.atomic.add(scores, listed[ego_of[node]], np.int32(1))

    return kernel(count_roots, str(threads))


@functools.cache
def build_rows(threads: int) -> Any:
    """Make the kernel that finds the row of every place of rows that begin at ``offsets``.

    Launch: a thread a place. Registers: 15.
    """

    def find_rows(offsets, rows):
        place = np.int64(cuda.blockIdx.x) * threads + cuda.threadIdx.x
        if place < rows.size:
            rows[place] = row_of(offsets, place)

    return kernel(find_rows, str(threads))
