"""Cores of the whole graph: the core number of every vertex, and the k-core."""

from __future__ import annotations

from typing import Any, Unpack

import numpy as np

from glp_rapids.cohesion.whole_graph import WholeGraph
from glp_rapids.common.calls import guarded
from glp_rapids.common.checks import check_integer
from glp_rapids.common.types import Frame
from glp_rapids.ingest.options import EdgeOptions


@guarded
def core_number(
    graph: Any, *, symmetrize: bool = False,
    memory_limit: int | str | None = None, **edges: Unpack[EdgeOptions],
) -> Frame:  # fmt: skip
    """Find the core number of every vertex: the largest k for which it is in the k-core.

    The k-core is the largest subgraph in which every vertex has at least k neighbours.

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
        ``vertex, core_number``, every vertex once, sorted; 0 for one without neighbours.
        ``.attrs["glp"]`` holds ``device``, ``seconds``, ``batches``, ``peak_memory``.

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
    O(n + m) time and memory. Batagelj and Zaversnik, "An O(m) algorithm for cores decomposition of
    networks" (2003).

    Examples
    --------
    >>> import pandas as pd
    >>> from glp_rapids import core_number
    >>> core_number(pd.DataFrame({"src": [0, 0, 1, 2], "dst": [1, 2, 2, 3]}))
       vertex  core_number
    0       0            2
    1       1            2
    2       2            2
    3       3            1
    """
    whole = WholeGraph("core_number", graph, symmetrize, memory_limit, edges)
    return whole.reported(whole.graph.frame({"core_number": _core_number(whole)}))


@guarded
def k_core(
    graph: Any, k: int | None = None, *, symmetrize: bool = False,
    memory_limit: int | str | None = None, **edges: Unpack[EdgeOptions],
) -> Frame:  # fmt: skip
    """Extract the edges of the k-core, the largest subgraph of vertices with k neighbours or more.

    Parameters
    ----------
    graph : graph-like
        Anything that `as_graph` takes. Self-loops and duplicates don't matter.
    k : int, optional
        At least 0. None: the largest for which there is one, the main core.
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
        Vertices without an edge are not to be seen here. ``.attrs["glp"]`` holds ``k``, ``device``,
        ``seconds``, ``batches``, ``peak_memory``.

    Raises
    ------
    ValueError
        If ``k`` is negative, or the graph is directed and ``symmetrize`` is not set.
    TypeError
        If an argument is of another type than described.
    MemoryError
        If that takes more than ``memory_limit``, or than is free; it says by how much.

    Notes
    -----
    O(n + m) time and memory; a given ``k`` takes less than all core numbers. Seidman, "Network
    structure and minimum degree", Social Networks 5 (1983).

    Examples
    --------
    >>> import pandas as pd
    >>> from glp_rapids import k_core
    >>> k_core(pd.DataFrame({"src": [0, 0, 1, 2], "dst": [1, 2, 2, 3]}), 2)
       src  dst
    0    0    1
    1    0    2
    2    1    2
    """
    if k is not None:
        check_integer("k", k, 0)
    whole = WholeGraph("k_core", graph, symmetrize, memory_limit, edges)
    if k is None:
        number = _core_number(whole)
        k = int(number.max()) if number.size else 0
        frame = whole.edge_frame(k, ends=number, weighted=True)
    elif k <= 1 or not whole.csr.indices.size:  # every edge, or none
        frame = whole.edge_frame(weighted=True)
    else:
        level = whole.level(k)
        frame = whole.edge_frame(level, ends=whole.engine.core_number(level), weighted=True)
    return whole.reported(frame, k=int(k))


def _core_number(whole: WholeGraph) -> Any:
    if not whole.csr.indices.size:
        return whole.xp.zeros(whole.graph.number_of_vertices, dtype=np.int32)
    return whole.engine.core_number()
