"""Triangles of the whole graph, counted at every vertex."""

from __future__ import annotations

from typing import Any, Unpack

import numpy as np

from glp_rapids.cohesion.whole_graph import WholeGraph
from glp_rapids.common.calls import guarded
from glp_rapids.common.types import Frame
from glp_rapids.ingest.options import EdgeOptions


@guarded
def triangle_count(
    graph: Any, *, symmetrize: bool = False,
    memory_limit: int | str | None = None, **edges: Unpack[EdgeOptions],
) -> Frame:  # fmt: skip
    """Count the triangles that every vertex is a corner of.

    Parameters
    ----------
    graph : graph-like
        Anything that `as_graph` takes. Self-loops, duplicates and weights don't matter.
    symmetrize : bool, default False
        Take the edges of a directed graph as undirected ones. Without it such a graph is refused.
    memory_limit : int or str, optional
        Bytes, or a text such as "8GB", that the call may take, the graph included; None: what is
        free. What takes more is refused before it begins, by figures from above.
    **edges
        How to read ``graph``; see `as_graph`.

    Returns
    -------
    frame
        ``vertex, counts``, every vertex once, sorted. A third of the sum of ``counts`` is the
        number of triangles of the graph. ``.attrs["glp"]`` holds ``device``, ``seconds``,
        ``batches``, ``peak_memory``.

    Raises
    ------
    ValueError
        If the graph is directed and ``symmetrize`` is not set.
    TypeError
        If an argument is of another type than described.
    MemoryError
        If that takes more than ``memory_limit``, or than is free; it says by how much.

    Notes
    -----
    O(m ** 1.5) time, O(m) memory. Chiba and Nishizeki, "Arboricity and subgraph listing
    algorithms", SIAM Journal on Computing 14 (1985).

    Examples
    --------
    >>> import pandas as pd
    >>> from glp_rapids import triangle_count
    >>> triangle_count(pd.DataFrame({"src": [0, 0, 1, 2], "dst": [1, 2, 2, 3]}))
       vertex  counts
    0       0       1
    1       1       1
    2       2       1
    3       3       0
    """
    whole = WholeGraph("triangle_count", graph, symmetrize, memory_limit, edges)
    counts = whole.xp.zeros(whole.graph.number_of_vertices, dtype=np.int64)
    if whole.csr.indices.size:
        counts = whole.engine.triangle_counts()
    return whole.reported(whole.graph.frame({"counts": counts}))
