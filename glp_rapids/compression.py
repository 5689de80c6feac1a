"""`compress`: any graph to a compressed one, its lists in the order that makes them small.

A list takes fewest bits where neighbours have near numbers, so vertices that share neighbours
belong side by side. Finding such an order takes label propagation, so this stands above it;
the graph that comes out, `CompressedGraph`, and the encoder stand below.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal, Unpack

import numpy as np

from glp_rapids.common.calls import guarded
from glp_rapids.common.checks import check_progress, errors_named
from glp_rapids.common.progress import Progress, reporting
from glp_rapids.compressed import packed_ids, reorder
from glp_rapids.compressed.choose_codes import best_codes
from glp_rapids.compressed.format.layout import Codes
from glp_rapids.compressed.graph import CompressedGraph, encoded
from glp_rapids.compressed.options import Scheme, checked_codes, layout_of
from glp_rapids.compressed.weights import own
from glp_rapids.device import LackOfMemory, all_true, array_module, memory_free, to_device, to_host
from glp_rapids.frames import kinds
from glp_rapids.graph.graph import Graph
from glp_rapids.graph.vertex_order import by_degree, positions
from glp_rapids.ingest.options import EdgeOptions
from glp_rapids.ingest.read import as_graph
from glp_rapids.jit.cache import kept
from glp_rapids.jit.interrupts import A_CALL
from glp_rapids.propagation.variants.layered import layered_label_propagation

Array = Any
ORDERS = ("llp", "degree", "bfs")


@guarded
def compress(
    graph: Any,
    scheme: Scheme = "auto",
    *,
    for_: Literal["speed", "size"] = "speed",
    min_interval: int | None = None,
    raw_below: int = 0,
    segment: int | None = None,
    codes: Codes | Mapping[str, str] | None = None,
    order: Any = None,
    progress: Progress = False,
    **options: Unpack[EdgeOptions],
) -> CompressedGraph:
    """Compress a graph: neighbour lists as runs and gaps, a few bits an entry instead of 32.

    Parameters
    ----------
    graph : frame, tuple of arrays, sparse matrix, networkx, cugraph or glp_rapids graph
        Whatever `as_graph` takes; its keywords (``source=``, ``destination=``, ``weight=``,
        ``directed=``, ``vertices=``, ``multigraph=``, ``device=``) are taken here too. A
        `CompressedGraph` is compressed anew.
    scheme : {"auto", "cgr", "packed", "entropy"}
        "packed": numbers of few widths, the fastest to read. "cgr": every number in the code that
        suits it, as CGR has them; about as small. "entropy": the smallest and the slowest. "auto":
        "packed" or "entropy", by ``for_``.
    for_ : {"speed", "size"}
        What "auto" looks at.
    min_interval : int, optional
        So many consecutive neighbours or more are kept as a run; 0: none are. None: 4; "entropy"
        takes no notice.
    raw_below : int
        Lists of up to so many neighbours are left as they are, each number in as many bits as the
        largest vertex needs; costs much room, since most lists are short.
    segment : int, optional
        Longer lists are cut into parts of so many entries, a power of two, which are decoded at
        the same time. None: 128, and only parts of so many does a GPU read with 32 threads, under
        "packed"; with 512 "entropy" takes 2 to 4% less, and a GPU longer, since it reads a part
        with one thread.
    codes : mapping or Codes, optional
        Of "cgr", the code ("gamma", "delta", "zeta2", ... "zeta8") of ``degree``, ``count``,
        ``start``, ``length``, ``first`` or ``gap``. What is not named gets the best one for this
        graph, by what its numbers take in each (of a large graph, those of one or two million
        entries).
    order : {"llp", "degree", "bfs"}, list of int, or None
        In which order lists are stored, which decides how small they get; results are the same and
        in the caller's ids in any case. None: by id, which is best where ids say what belongs
        together, as those of crawls do. "llp": as `layered_label_propagation` puts vertices side by
        side, the best otherwise. "degree": by falling degree. "bfs": as a breadth-first search
        finds them. Or a list of all vertex indices, the one to be first first.
    progress : bool or callable
        Show a bar, or call the function with a dict before every step.

    Returns
    -------
    CompressedGraph
        Where the graph lives, or on ``device``. The same on every device, to the bit.

    Raises
    ------
    ValueError, TypeError
        An option or the graph is not as described; the message says what and how to mend it.
    MemoryError
        The graph and its compressed form do not fit together.

    Notes
    -----
    O(m) on either device, every list or part of one in a thread of its own. Beside the graph and
    its compressed form it takes 16 bytes a vertex and 16 for each part of a longer list; 0.15 GB to
    choose codes or widths; with ``order``, some 16 bytes an entry. Weights stay beside the lists:
    by way of a table where few are different, else as they are, copied if they are those of the
    caller's matrix, but left in their file if they are mapped. Methods: Boldi and Vigna (WWW 2004,
    DCC 2004), CGR (Sha, Li, Tan, SIGMOD 2019).

    Examples
    --------
    >>> import pandas as pd
    >>> from glp_rapids import compress, label_propagation
    >>> chain = pd.DataFrame({"src": range(1000), "dst": range(1, 1001)})
    >>> graph = compress(chain, for_="size", device="cpu")
    >>> round(graph.stats()["ratio"]) > 3
    True
    >>> bool((label_propagation(graph) == label_propagation(chain)).all().all())
    True
    """
    if unknown := sorted(options.keys() - EdgeOptions.__annotations__.keys()):
        raise TypeError(f"unknown option {unknown[0]!r} of compress; see help(glp_rapids.compress)")
    named = checked_codes(codes)
    layout = layout_of(scheme, for_, min_interval, raw_below, segment, named)
    check_order(order)
    check_progress(progress)
    graph = as_graph(graph, **options)
    bar = {"desc": "compress", "bar_format": "{desc}: {postfix} {elapsed}"}

    def tell(step: str) -> None:
        if report is not None:
            report({"step": step})

    try:
        with reporting(progress, _show, **bar) as report:
            tell("order")
            places = order_of(graph, order)
            rows = reorder.stored(graph, places)
            if len(named) < len(Codes._fields) and layout.scheme == "cgr":
                tell("codes")
                layout = replace(layout, codes=best_codes(rows, layout)._replace(**named))
            tell("encode")
            vertices = packed_ids.compact(graph.vertices)
            compressed = encoded(rows, layout, graph.directed, vertices, places)
            return replace(compressed, weights=own(compressed.weights))
    except MemoryError as error:
        raise LackOfMemory(
            f"graph: there is too little memory to compress its {graph.number_of_edges:,} entries "
            f"on the {graph.device} ({memory_free(graph.device) / 2**30:.1f} GiB are free there): "
            f"{error}; free some, or compress it in host memory with device='cpu'"
        ) from error


def _show(bar: Any, facts: dict) -> None:
    bar.set_postfix_str(facts["step"])


def check_order(order: Any) -> None:
    """Refuse what no order can be, before any work."""
    if order is None or (isinstance(order, str) and order in ORDERS):
        return
    is_frame = hasattr(order, "columns")
    if isinstance(order, str) or not hasattr(order, "__len__") or is_frame:
        names = ", ".join(map(repr, ORDERS))
        given = "a frame; 'llp' is what layered_label_propagation finds"
        raise ValueError(
            f"order must be {names}, None or a list of all vertex indices, not "
            f"{given if is_frame else repr(order):.80}"
        )


def order_of(graph: Graph, order: Any) -> Array | None:
    """Find or check the vertex at every place, where the graph lives; None: its number."""
    if order is None:
        return None
    if isinstance(order, str):
        found = {"llp": by_layers, "degree": by_rows, "bfs": breadth_first}[order](graph)
    else:
        found = _checked(order, graph)
    found = found.astype(graph.indices.dtype, copy=False)
    xp = array_module(found)
    if all_true(found == xp.arange(found.size, dtype=found.dtype)):
        return None
    return found


def by_layers(graph: Graph) -> Array:
    """List the vertices as layered label propagation puts them, whatever edges weigh."""
    if graph.weights is not None:  # of which no sum has to fit anything here
        graph = replace(graph, weights=None, _derived={})
    frame = layered_label_propagation(graph, order=True, device=graph.device)
    place = to_device(kinds.to_array(frame["position"]), graph.device)
    return positions(place, graph.indices.dtype)


def by_rows(graph: Graph) -> Array:
    """List the vertices by falling degree, of equals the smaller index first."""
    return by_degree(graph.rows("both"))


def breadth_first(graph: Graph) -> Array:
    """List the vertices as a search finds them that begins with the smallest index, edge by edge.

    Each further component begins with its smallest index. On the CPU: a queue is served in order.
    """
    rows = graph.rows("both")
    indptr, indices = to_host(rows.indptr), to_host(rows.indices)
    found = np.empty(indptr.size - 1, indices.dtype)
    seen, state = np.zeros(found.size, np.bool_), np.zeros(3, np.int64)
    while state[0] < found.size:
        _breadth_first(indptr, indices, found, seen, state, A_CALL)
    return to_device(found, graph.device)


@kept
def _breadth_first(indptr, indices, found, seen, state, entries):
    """Go on from ``state`` (served, found, next start) until about so many entries are read."""
    served, filled, start = state
    while served < found.size and entries > 0:
        if served == filled:
            while seen[start]:
                start += 1
            seen[start] = True
            found[filled] = start
            filled += 1
        vertex = np.int64(found[served])
        served += 1
        entries -= indptr[vertex + 1] - indptr[vertex] + 1
        for neighbour in indices[indptr[vertex] : indptr[vertex + 1]]:
            if not seen[neighbour]:
                seen[neighbour] = True
                found[filled] = neighbour
                filled += 1
    state[0], state[1], state[2] = served, filled, start


def _checked(order: Any, graph: Graph) -> Array:
    n = graph.number_of_vertices
    column = kinds.as_column(order, "order")
    with errors_named("order"):
        nulls = kinds.null_count(column)
    if nulls:
        raise ValueError("order holds nulls; it must name every vertex index once")
    found = kinds.to_array(column)
    if found.dtype.kind not in "iu" and found.size:
        raise TypeError(f"order must hold vertex indices, integers, not {found.dtype}")
    if found.size != n:
        raise ValueError(f"order must name all {n:,} vertices, not {found.size:,}")
    if problem := reorder.misplaced(found):
        raise ValueError(f"order {problem}; it must name every vertex index, 0 to {n - 1:,}, once")
    return to_device(found.astype(np.int64), graph.device)
