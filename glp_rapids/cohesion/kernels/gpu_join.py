"""Joining the ends of edges into contexts, and how many there are of these."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from glp_rapids.jit.cuda import cuda, kernel
from glp_rapids.jit.primitives import union

THREADS = 256


@functools.cache
def build(threads: int) -> Any:
    """Make the kernel that joins the ends of the entries ``chosen``; a thread an entry.

    With ``ego_of`` it takes one from ``scores``, ``level`` - 1 places after ``offsets[ego]``, for
    every two sets that become one. Any degrees.
    """

    def join_ends(rows, indices, chosen, parent, ego_of, offsets, level, scores):
        i = np.int64(cuda.blockIdx.x) * threads + cuda.threadIdx.x
        if i < chosen.size:
            entry = chosen[i]
            node = np.int32(rows[entry])
            if union(parent, node, np.int32(indices[entry])) and ego_of.size > 0:
                cuda.atomic.sub(scores, offsets[ego_of[node]] + level - 1, np.int32(1))

    return kernel(join_ends, str(threads))


@functools.cache
def build_inside(threads: int) -> Any:
    """Make the kernel that joins the ends of all edges whose level is at least ``least``.

    Launch: a thread an entry. ``level`` is of entries, and counts at the smaller end's; or with
    ``of_nodes`` of nodes, both of which must reach it. Any degrees.
    """

    def join_inside(rows, indices, level, of_nodes, least, parent):
        entry = np.int64(cuda.blockIdx.x) * threads + cuda.threadIdx.x
        if entry < indices.size:
            node, other = rows[entry], indices[entry]
            if node < other:
                if of_nodes:
                    inside = level[node] >= least and level[other] >= least
                else:
                    inside = level[entry] >= least
                if inside:
                    union(parent, np.int32(node), np.int32(other))

    return kernel(join_inside, str(threads))


@functools.cache
def build_roots(threads: int) -> Any:
    """Make the kernel that leads every node to its root, and counts those a root stands for.

    Launch: a thread a node, when nothing is joined any more. ``size`` counts from 0 to ``enough``
    at the least: a root that stands for millions has these add to one word, one after another.
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

    Launch: a thread a node.
    """

    def count_roots(size, fewest, ego_of, listed, scores):
        node = np.int64(cuda.blockIdx.x) * threads + cuda.threadIdx.x
        if node < size.size and size[node] >= fewest:
            cuda.atomic.add(scores, listed[ego_of[node]], np.int32(1))

    return kernel(count_roots, str(threads))
