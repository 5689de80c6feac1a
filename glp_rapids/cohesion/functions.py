"""Cores, trusses and triangles of the whole graph, named as cuGraph names them.

The kernels are those that cut ego-networks down: here the graph is the only one there is.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from glp_rapids.common.calls import guarded
from glp_rapids.common.checks import check_integer
from glp_rapids.device import array_module, memory_in_use
from glp_rapids.frames.kinds import set_attributes, to_frame
from glp_rapids.graph.simple import simple, weights
from glp_rapids.ingest.options import EdgeOptions
from glp_rapids.ingest.read import as_graph
from glp_rapids.multigpu.workers import engine_for

if TYPE_CHECKING:
    from glp_rapids.frames.kinds import Frame
    from glp_rapids.graph.graph import CSR, Graph

Array = Any


class _Run:
    """One call: the graph, its simple rows and an engine for them; and a report of it."""

    def __init__(self, graph: Any, symmetrize: bool, edges: EdgeOptions) -> None:
        self.graph: Graph = as_graph(graph, **edges)
        self._begin = time.perf_counter()
        self.csr: CSR = simple(self.graph, symmetrize)
        self.engine = engine_for(self.graph, self.csr)
        self.xp = array_module(self.csr.indptr)
        self._batches = self.engine.batches

    def reported(self, frame: Frame, **facts: Any) -> Frame:
        device = self.graph.device
        facts |= {
            "device": device,
            "seconds": time.perf_counter() - self._begin,
            "batches": self.engine.batches - self._batches,
            "peak_memory": memory_in_use(device),
        }
        return set_attributes(frame, facts)

    def edge_frame(
        self,
        least: int = 0,
        *,
        weighted: bool = False,
        columns: dict[str, Array] | None = None,
        **values: Array,
    ) -> Frame:
        """Give edges as ``src, dst``, each once, src before dst in the order of the vertices.

        Parameters
        ----------
        least, values
            Which ones, as ``edges`` of the engine takes it; by default all.
        weighted
            Add the column ``weight`` if the graph has weights.
        columns
            Further columns, one value an entry, of which that of the smaller end counts.
        """
        columns = dict(columns or {})
        if weighted and self.graph.weights is not None:
            columns["weight"] = weights(self.graph)
        source, destination, entry = self.engine.edges(least, **values, place=bool(columns))
        external = self.graph.external_columns
        return to_frame(
            {
                **external(source, "src"),
                **external(destination, "dst"),
                **{name: of_entry[entry] for name, of_entry in columns.items()},
            },
            self.graph.vertices.kind,
            copy=False,
        )

    def level(self, k: int) -> int:
        """Give k, or if it is beyond any graph of this size something that is so, too."""
        return min(int(k), self.graph.number_of_vertices + 1)


@guarded
def core_number(graph: Any, *, symmetrize: bool = False, **edges: Unpack[EdgeOptions]) -> Frame:
    """Find the core number of every vertex: the largest k for which it is in the k-core.

    The k-core is the largest subgraph in which every vertex has at least k neighbours.

    Parameters
    ----------
    graph : graph-like
        Anything that `as_graph` takes. Self-loops, duplicates and weights don't matter.
    symmetrize : bool, default False
        Take the edges of a directed graph as undirected ones. Without it such a graph is refused.
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
    run = _Run(graph, symmetrize, edges)
    return run.reported(run.graph.frame({"core_number": _core_number(run)}))


@guarded
def k_core(
    graph: Any, k: int | None = None, *, symmetrize: bool = False, **edges: Unpack[EdgeOptions]
) -> Frame:
    """Give the edges of the k-core, the largest subgraph of vertices with k neighbours or more.

    Parameters
    ----------
    graph : graph-like
        Anything that `as_graph` takes. Self-loops and duplicates don't matter.
    k : int, optional
        At least 0. None: the largest for which there is one, the main core.
    symmetrize : bool, default False
        Take the edges of a directed graph as undirected ones. Without it such a graph is refused.
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
    run = _Run(graph, symmetrize, edges)
    if k is None:
        number = _core_number(run)
        k = int(number.max()) if number.size else 0
        frame = run.edge_frame(k, ends=number, weighted=True)
    elif k <= 1 or not run.csr.indices.size:  # every edge, or none
        frame = run.edge_frame(weighted=True)
    else:
        level = run.level(k)
        frame = run.edge_frame(level, ends=run.engine.core_number(level), weighted=True)
    return run.reported(frame, k=int(k))


@guarded
def trussness(graph: Any, *, symmetrize: bool = False, **edges: Unpack[EdgeOptions]) -> Frame:
    """Find the trussness of every edge: the largest k for which it is in the k-truss.

    The k-truss is the largest subgraph every edge of which is in at least k - 2 of its triangles.

    Parameters
    ----------
    graph : graph-like
        Anything that `as_graph` takes. Self-loops, duplicates and weights don't matter.
    symmetrize : bool, default False
        Take the edges of a directed graph as undirected ones. Without it such a graph is refused.
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
    run = _Run(graph, symmetrize, edges)
    found = run.xp.empty(0, dtype=np.int32)
    if run.csr.indices.size:
        found = run.engine.trussness(once=True)
    return run.reported(run.edge_frame(columns={"trussness": found}))


@guarded
def k_truss(graph: Any, k: int, *, symmetrize: bool = False, **edges: Unpack[EdgeOptions]) -> Frame:
    """Give the edges of the k-truss, every one in at least k - 2 of its triangles.

    Parameters
    ----------
    graph : graph-like
        Anything that `as_graph` takes. Self-loops and duplicates don't matter.
    k : int
        At least 2; the 2-truss is the whole graph.
    symmetrize : bool, default False
        Take the edges of a directed graph as undirected ones. Without it such a graph is refused.
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
    run = _Run(graph, symmetrize, edges)
    if k <= 2 or not run.csr.indices.size:  # every edge, or none
        frame = run.edge_frame(weighted=True)
    else:
        level = run.level(k)
        found = run.engine.trussness(level, once=True)
        frame = run.edge_frame(level, entries=found, weighted=True)
    return run.reported(frame, k=int(k))


@guarded
def triangle_count(graph: Any, *, symmetrize: bool = False, **edges: Unpack[EdgeOptions]) -> Frame:
    """Count the triangles that every vertex is a corner of.

    Parameters
    ----------
    graph : graph-like
        Anything that `as_graph` takes. Self-loops, duplicates and weights don't matter.
    symmetrize : bool, default False
        Take the edges of a directed graph as undirected ones. Without it such a graph is refused.
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
    run = _Run(graph, symmetrize, edges)
    counts = run.xp.zeros(run.graph.number_of_vertices, dtype=np.int64)
    if run.csr.indices.size:
        counts = run.engine.triangle_counts()
    return run.reported(run.graph.frame({"counts": counts}))


def _core_number(run: _Run) -> Any:
    if not run.csr.indices.size:
        return run.xp.zeros(run.graph.number_of_vertices, dtype=np.int32)
    return run.engine.core_number()
