"""The t best of all vertices without evaluating all: those that may have most first, in batches.

A vertex and its score are one integer, a *rank*, smaller for better ones: the score falls, the
index breaks ties. A vertex and an upper bound make a rank, too, which is at most that of the vertex
and its score. So vertices are evaluated in the order of the latter, and once the t-th best of the
former is below all that are left, none of these can be among the best.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from glp_rapids.common.scans import number_where
from glp_rapids.common.segments import segment_offsets
from glp_rapids.device import array_module, device_of
from glp_rapids.graph.rows import CSR
from glp_rapids.graph.simple import rows_of_vertices

Array = Any

# A batch should keep a device busy; one that is too large evaluates what the next would not have
# to. On a GPU it takes a millisecond whatever its size.
FIRST_BATCH = {"cpu": 1024, "gpu": 16384}


def best_vertices(
    upper_bound: Array, t: int, scores: Callable[[Array], Array], *, prune: bool = True
) -> tuple[Array, Array, int]:
    """Find the t best vertices.

    Parameters
    ----------
    upper_bound : int array
        The most that each vertex can score.
    t : int
        How many, at most all.
    scores : callable
        Returns the scores of the vertices of an array.
    prune : bool
        False: evaluate all.

    Returns
    -------
    vertices, scores : arrays of t
        The best first.
    evaluated : int
        How many vertices were.
    """
    xp = array_module(upper_bound)
    n = upper_bound.size
    vertex = xp.arange(n, dtype=np.int64)
    left = xp.sort(_rank(upper_bound, vertex, n))
    size = n
    if prune:  # whose upper bound is 0 scores 0, and is needed only to fill up
        size = max(
            t,
            min(
                max(4 * t, FIRST_BATCH[device_of(upper_bound)]), number_where(upper_bound)
            ),
        )
    best = left[:0]
    evaluated = 0
    while left.size:
        batch, left = left[:size] % n, left[size:]
        found = _rank(scores(batch), batch, n)
        evaluated += batch.size
        best = xp.sort(xp.concatenate([best, found]))[:t]
        if left.size:
            left = left[: int(xp.searchsorted(left, best[-1:])[0])]
        size *= 2
    return best % n, (n - best // n).astype(np.int32), evaluated


def _rank(score: Array, vertex: Array, n: int) -> Array:
    return (n - score.astype(np.int64)) * n + vertex


def contexts_of(csr: CSR, vertices: Array, members: Array) -> tuple[Array, Array, Array]:
    """List the members of all contexts: of which vertex, in which context, who.

    ``members``: of every entry of the vertices' rows the place of the first member of its context,
    or -1. The contexts of a vertex are numbered by these; the rows follow vertices, contexts,
    members.
    """
    xp = array_module(members)
    offsets, row, entry = rows_of_vertices(csr, vertices)
    place = xp.arange(row.size) - offsets[row]
    # A context has the number of its first member among all first members, before and in this row.
    number = segment_offsets(members == place)
    inside = xp.flatnonzero(members >= 0)
    row = row[inside]
    context = number[offsets[row] + members[inside]]
    order = xp.argsort(context, kind="stable")
    row, inside, context = row[order], inside[order], context[order]
    return vertices[row], context - number[offsets[row]], csr.indices[entry[inside]]
