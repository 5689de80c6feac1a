"""Trusses of the whole graph: the trussness of every edge, and the k-truss."""

from __future__ import annotations

from typing import Any, Unpack

import numpy as np

from glp_rapids.cohesion.whole_graph import WholeGraph
from glp_rapids.common.calls import guarded
from glp_rapids.common.checks import check_integer
from glp_rapids.common.types import Frame
from glp_rapids.ingest.options import EdgeOptions


@guarded
def trussness(
    graph: Any, *, symmetrize: bool = False,
    memory_limit: int | str | None = None, **edges: Unpack[EdgeOptions],
) -> Frame:  # fmt: skip
    """Find the trussness of every edge: the largest k for which it is in the k-truss.

    The k-truss is the largest subgraph every edge of which is in at least k - 2 of its triangles.

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
        ``src, dst, trussness``, each edge once, ``src`` before ``dst`` in the order of the ids,
        sorted; 2 for an edge in no triangle. ``.attrs["glp"]`` holds ``device``, ``seconds``,
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
    O(m ** 1.5) time, O(m) memory. Wang and Cheng, "Truss decomposition in massive networks", PVLDB
    5 (2012).

    Examples
    --------
    >>> import pandas as pd
    >>> from glp_rapids import trussness
    >>> trussness(pd.DataFrame({"src": [0, 0, 1, 2], "dst": [1, 2, 2, 3]}))
       src  dst  trussness
    0    0    1          3
    1    0    2          3
    2    1    2          3
    3    2    3          2
    """
    whole = WholeGraph("trussness", graph, symmetrize, memory_limit, edges)
    found = whole.xp.empty(0, dtype=np.int32)
    if whole.csr.indices.size:
        found = whole.engine.trussness(once=True)
    return whole.reported(whole.edge_frame(columns={"trussness": found}))


@guarded
def k_truss(
    graph: Any, k: int, *, symmetrize: bool = False,
    memory_limit: int | str | None = None, **edges: Unpack[EdgeOptions],
) -> Frame:  # fmt: skip
    """Extract the edges of the k-truss, every one in at least k - 2 of its triangles.

    Parameters
    ----------
    graph : graph-like
        Anything that `as_graph` takes. Self-loops and duplicates don't matter.
    k : int
        At least 2; the 2-truss is the whole graph.
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
        ``src, dst``, each edge once, ``src`` before ``dst`` in the order of the ids, sorted; and
        ``weight`` if the graph has weights (the sum of both directions if it was directed).
        ``.attrs["glp"]`` holds ``k``, ``device``, ``seconds``, ``batches``, ``peak_memory``.

    Raises
    ------
    ValueError
        If ``k`` is below 2, or the graph is directed and ``symmetrize`` is not set.
    TypeError
        If an argument is of another type than described.
    MemoryError
        If that takes more than ``memory_limit``, or than is free; it says by how much.

    Notes
    -----
    O(m ** 1.5) time, O(m) memory; less than all of `trussness` takes. Cohen, "Trusses: cohesive
    subgraphs for social network analysis" (2008).

    Examples
    --------
    >>> import pandas as pd
    >>> from glp_rapids import k_truss
    >>> k_truss(pd.DataFrame({"src": [0, 0, 1, 2], "dst": [1, 2, 2, 3]}), 3)
       src  dst
    0    0    1
    1    0    2
    2    1    2
    """
    check_integer("k", k, 2)
    whole = WholeGraph("k_truss", graph, symmetrize, memory_limit, edges)
    if k <= 2 or not whole.csr.indices.size:  # every edge, or none
        frame = whole.edge_frame(weighted=True)
    else:
        level = whole.level(k)
        found = whole.engine.trussness(level, once=True)
        frame = whole.edge_frame(level, entries=found, weighted=True)
    return whole.reported(frame, k=int(k))
