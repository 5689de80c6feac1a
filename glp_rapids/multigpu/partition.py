"""A graph cut for ranks: each has the rows of a range of vertices, and who of these reads whom.

Rows keep their numbers, and so do neighbours: of the vertices elsewhere a rank has empty rows. So
whatever works on the rows of a graph works on those of a rank. Ranges are balanced by entries.
"""

from __future__ import annotations

from itertools import pairwise
from types import ModuleType
from typing import Any

import numpy as np

from glp_rapids.common.segments import segment_offsets
from glp_rapids.device import array_module, to_host
from glp_rapids.graph.rows import CSR
from glp_rapids.multigpu.exchange import Exchange

AT_ONCE = 1 << 27  # entries that are looked at together: a GPU takes some milliseconds for so many
A_VERTEX = 4  # entries that a vertex costs besides its own, about


def ranges_of(indptr: Any, ranks: int) -> list[int]:
    """Return where the ranges of so many ranks begin, and the end of the last.

    A range may be empty: where there are more ranks than vertices, or a hub is worth several.
    """
    xp, number = array_module(indptr), indptr.size - 1
    costs = indptr + A_VERTEX * xp.arange(number + 1, dtype=np.int64)
    total = int(costs[-1])
    wanted = xp.asarray([total * rank // ranks for rank in range(1, ranks)], dtype=np.int64)
    cuts = to_host(xp.searchsorted(costs, wanted)).tolist()
    return [0, *cuts, number]


def ranges_kept(kept: dict[tuple, Any], indptr: Any, devices: tuple) -> list[int]:
    """Return the ranges of a graph's rows for some devices, which are ``kept`` with it."""
    key = "ranges", devices
    if key not in kept:
        kept[key] = ranges_of(indptr, len(devices))
    return kept[key]


def rows_of_range(rows: CSR, first: int, last: int) -> CSR:
    """Return rows of which those outside the range are empty; entries are views."""
    begin, end = int(rows.indptr[first]), int(rows.indptr[last])
    indptr = array_module(rows.indptr).clip(rows.indptr, begin, end) - begin
    weights = None if rows.weights is None else rows.weights[begin:end]
    return CSR(indptr, rows.indices[begin:end], weights)


def readers_in_range(
    readers: CSR, first: int, last: int, entries: int, xp: ModuleType | None = None,
    at_once: int = AT_ONCE,
) -> CSR:  # fmt: skip
    """Return who of a range reads each vertex: of all rows the entries in the range, copied.

    There are so many ``entries``: those of the rows of the range. ``xp``: where they are to be;
    None: where the readers are. What is looked at together takes 32 bytes an entry.
    """
    xp = array_module(readers.indptr) if xp is None else xp
    if (first, last) == (0, readers.number_of_vertices):
        return CSR(xp.asarray(readers.indptr), xp.asarray(readers.indices), None)
    indptr = xp.zeros(readers.indptr.size, np.int64)
    indices = xp.empty(entries, readers.indices.dtype)
    filled = 0
    for begin, end, rows in readers.chunks(at_once):
        given = xp.asarray(rows.indices)
        inside = (given >= first) & (given < last)
        counted = xp.zeros(inside.size + 1, np.int64)
        xp.cumsum(inside, dtype=np.int64, out=counted[1:])
        indptr[begin + 1 : end + 1] = xp.diff(counted[xp.asarray(rows.indptr)])
        found = given[inside]
        indices[filled : filled + found.size] = found
        filled += found.size
    return CSR(xp.cumsum(indptr), indices, None)


def rows_of_all(
    exchange: Exchange, rows: CSR, bounds: np.ndarray, at_once: int = AT_ONCE // 8
) -> CSR:
    """Return the rows of all ranks, on each of them: those of their ranges, without weights.

    Entries come so many of a rank at once, beside which nothing is held but the result.
    """
    xp, rank = array_module(rows.indptr), exchange.rank
    own = rows.degree[int(bounds[rank]) : int(bounds[rank + 1])]
    (degree,) = exchange.allgather([xp.ascontiguousarray(own)])
    indptr = segment_offsets(degree)
    begins = to_host(indptr[xp.asarray(bounds)])
    indices = xp.empty(int(begins[-1]), rows.indices.dtype)
    sizes = np.diff(begins)
    for done in range(0, int(sizes.max()), at_once):
        (come,) = exchange.allgather([rows.indices[done : done + at_once]])
        ends = segment_offsets(np.clip(sizes - done, 0, at_once)).tolist()
        for begin, (first, last) in zip(begins.tolist(), pairwise(ends), strict=False):
            indices[begin + done : begin + done + last - first] = come[first:last]
    return CSR(indptr, indices, None)
