"""How good a partition of a graph is: modularity, the constant Potts model, and coverage.

Weights are added as integers: for modularity in fixed point, and only the last few numbers, on the
host, as floats; for the others in as many limbs as they need, so that light communities count
beside heavy edges elsewhere, and only the value is rounded. So it is the same to the last bit on
CPU and GPU and in any order of rows.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, Unpack

import numpy as np

from glp_rapids.common.calls import guarded
from glp_rapids.common.checks import as_float, is_number, shown
from glp_rapids.common.fixed_point import as_fixed_point, fixed_point_exponent, sums_by_group
from glp_rapids.common.scans import integer_sum, number_where, places_where
from glp_rapids.common.segments import exact_sum, integer_sums, occurrences
from glp_rapids.device import any_true, array_module, to_device, to_host
from glp_rapids.frames.kinds import ids_as_text, kind_of, null_count, to_array, to_frame
from glp_rapids.frames.partitions import label_codes, numbered_columns, read_columns
from glp_rapids.graph.graph import BaseGraph
from glp_rapids.graph.rows import Rows
from glp_rapids.graph.vertex_ids import within
from glp_rapids.ingest.options import EdgeOptions
from glp_rapids.ingest.read import as_any_graph


@guarded
def modularity(
    graph: Any, partition: Any, *, resolution: float = 1.0, **edges: Unpack[EdgeOptions]
) -> float:
    """Compute the modularity of a partition.

    The share of the edge weight that lies inside communities, less ``resolution`` times the share
    expected if edges were drawn at random with the same degrees.

    Parameters
    ----------
    graph : graph-like
        Anything that `as_graph` takes. Directed graphs use out- times in-degree, weighted ones
        the weights; an undirected self-loop adds 2 to a degree, as in networkx.
    partition : frame, dict or list of sets
        Each vertex of the graph once, in any order. A frame has the columns ``vertex`` (or
        ``0_vertex``, ``1_vertex``, ... for ids of several columns) and ``partition``: what
        `label_propagation` returns. A dict has a community for each vertex, and sets are the
        communities: what functions of NetworkX return, in a list or as an iterator.
    resolution : float, default 1.0
        Above 1 favours smaller communities, below 1 larger ones.
    **edges
        How to read ``graph``; see `as_graph`. A graph of this library is judged where it lies,
        unless ``device`` says where.

    Returns
    -------
    float
        At most 1; NaN for a graph whose weights sum to nothing.

    Raises
    ------
    ValueError
        If a vertex is missing from ``partition``, is there twice, is no vertex of the graph, or
        has a null partition; if ``resolution`` is negative or not finite.
    TypeError
        If ``partition`` is none of these, or its ids are of another type than those of ``graph``.

    Notes
    -----
    O(n + m) time, O(n) memory beyond the graph.

    Newman, "Analysis of weighted networks", Phys. Rev. E 70 (2004), eq. 5; directed: Leicht and
    Newman, Phys. Rev. Lett. 100 (2008), eq. 2; resolution: Reichardt and Bornholdt, Phys. Rev. E
    74 (2006).

    Examples
    --------
    >>> import pandas as pd
    >>> from glp_rapids import modularity
    >>> edges = pd.DataFrame({"src": [0, 1, 2, 3, 4, 5, 2], "dst": [1, 2, 0, 4, 5, 3, 3]})
    >>> found = pd.DataFrame({"vertex": range(6), "partition": [0, 0, 0, 1, 1, 1]})
    >>> round(modularity(edges, found), 4)
    0.3571
    >>> round(modularity(edges, [{0, 1, 2}, {3, 4, 5}]), 4)
    0.3571
    """
    _check_resolution(resolution)
    graph = _read(graph, edges)
    inside, outgoing, incoming = _community_weights(graph, labels_of(graph, partition))
    total = int(outgoing.sum())
    if total == 0:
        return math.nan
    # fsum, because how communities are numbered must not show in the last bit
    expected = math.fsum((outgoing / total) * (incoming / total))
    return inside / total - as_float(resolution) * expected


@guarded
def cpm(
    graph: Any, partition: Any, *, resolution: float = 1.0, **edges: Unpack[EdgeOptions]
) -> float:
    """Compute the quality of a partition by the constant Potts model.

    The edge weight inside communities, less ``resolution`` times the pairs of vertices inside.

    Parameters
    ----------
    graph : graph-like
        Anything that `as_graph` takes. Without weights, edges are counted; in directed graphs each
        direction of a pair.
    partition : frame, dict or list of sets
        Each vertex once, as for `modularity`.
    resolution : float, default 1.0
        The density that a community has to exceed.
    **edges
        How to read ``graph``; see `as_graph`.

    Returns
    -------
    float
        In the unit of the weights.

    Raises
    ------
    ValueError, TypeError
        As `modularity`; or the weights, or ``resolution`` times the pairs, add up beyond float64.

    Notes
    -----
    O(n + m) time, O(n) memory beyond the graph. Traag, Van Dooren and Nesterov, "Narrow scope for
    resolution-limit-free community detection", Phys. Rev. E 84 (2011), eq. 5.

    Examples
    --------
    >>> import pandas as pd
    >>> from glp_rapids import cpm
    >>> edges = pd.DataFrame({"src": [0, 1, 2, 3, 4, 5, 2], "dst": [1, 2, 0, 4, 5, 3, 3]})
    >>> found = pd.DataFrame({"vertex": range(6), "partition": [0, 0, 0, 1, 1, 1]})
    >>> cpm(edges, found, resolution=0.5)
    3.0
    """
    _check_resolution(resolution)
    graph = _read(graph, edges)
    labels = labels_of(graph, partition)
    inside, _ = _weights_inside_and_between(graph, labels)
    sizes = to_host(occurrences(labels, int(labels.max()) + 1)).tolist() if labels.size else []
    pairs = sum(size * (size - 1) for size in sizes)
    value = inside - Fraction(as_float(resolution)) * pairs
    try:
        return float(value if graph.directed else value / 2)
    except OverflowError:
        raise ValueError(
            "weight, resolution: the sums are beyond float64; divide the weights, or give a "
            "smaller resolution"
        ) from None


@guarded
def coverage(graph: Any, partition: Any, **edges: Unpack[EdgeOptions]) -> float:
    """Compute the share of the edge weight that lies inside communities.

    Parameters
    ----------
    graph : graph-like
        Anything that `as_graph` takes. Without weights, edges are counted.
    partition : frame, dict or list of sets
        Each vertex once, as for `modularity`.
    **edges
        How to read ``graph``; see `as_graph`.

    Returns
    -------
    float
        From 0 to 1; NaN for a graph whose weights sum to nothing.

    Raises
    ------
    ValueError, TypeError
        As `modularity`.

    Notes
    -----
    O(n + m) time, O(n) memory beyond the graph. Fortunato, "Community detection in graphs", Phys.
    Rep. 486 (2010), section 3.3.2.

    Examples
    --------
    >>> import pandas as pd
    >>> from glp_rapids import coverage
    >>> edges = pd.DataFrame({"src": [0, 1, 2], "dst": [1, 2, 3]})
    >>> found = pd.DataFrame({"vertex": range(4), "partition": [0, 0, 1, 1]})
    >>> round(coverage(edges, found), 4)
    0.6667
    """
    graph = _read(graph, edges)
    inside, between = _weights_inside_and_between(graph, labels_of(graph, partition))
    total = inside + between
    return float(inside / total) if total else math.nan


def _check_resolution(resolution: Any) -> None:
    if not is_number(resolution) or not 0 <= as_float(resolution) < math.inf:
        raise ValueError(f"resolution must be a number of at least 0, not {shown(resolution)}")


def _community_weights(graph: BaseGraph, labels: Any) -> tuple[int, np.ndarray, np.ndarray]:
    """Sum the weight inside communities, and what leaves and enters each, in fixed point."""
    xp = array_module(labels)
    communities = int(labels.max()) + 1 if labels.size else 0
    stored = graph.rows("out")
    labels, exponent = stored.by_place(labels), _exponent(stored)
    inside = 0
    outgoing = xp.zeros(communities, xp.int64)
    incoming = xp.zeros(communities, xp.int64)
    for first, last, chunk in stored.chunks(stored.few_at_once()):
        rows, columns = chunk.row_indices(), chunk.indices
        if first:
            rows += rows.dtype.type(first)
        # a loop is stored once, every other edge of an undirected graph in both its rows
        loops = columns[:0] if graph.directed else places_where(rows == columns)
        together, looped = labels[rows] == labels[columns], labels[columns[loops]]
        if chunk.weights is None:
            of_rows, of_loops = chunk.degree, xp.ones(loops.size, xp.int64)
            inside += number_where(together)
        else:
            weights = as_fixed_point(chunk.weights, exponent)
            of_rows, of_loops = integer_sums(weights, chunk.indptr), weights[loops]
            inside += integer_sum(xp.where(together, weights, 0))
        inside += integer_sum(of_loops)
        outgoing += sums_by_group(labels[first:last], of_rows, communities)
        outgoing += sums_by_group(looped, of_loops, communities)
        if graph.directed:
            weights = xp.ones(columns.size, xp.int64) if chunk.weights is None else weights
            incoming += sums_by_group(labels[columns], weights, communities)
    outgoing = to_host(outgoing)
    return inside, outgoing, to_host(incoming) if graph.directed else outgoing


def _weights_inside_and_between(graph: BaseGraph, labels: Any) -> tuple[Fraction, Fraction]:
    """Sum the weights of the entries inside communities and of those between two, exactly.

    An undirected edge has two entries, and a loop counts as two.
    """
    stored = graph.rows("out")
    labels, inside, between = stored.by_place(labels), Fraction(0), Fraction(0)
    for first, _, chunk in stored.chunks(stored.few_at_once()):
        rows, columns = chunk.row_indices() + first, chunk.indices
        together = labels[rows] == labels[columns]
        inside += _weight_where(together, chunk.weights)
        between += _weight_where(~together, chunk.weights)
        if not graph.directed:
            inside += _weight_where(rows == columns, chunk.weights)
    return inside, between


def _weight_where(mask: Any, weights: Any) -> Fraction:
    """Sum the weights of some entries, or count these, exactly."""
    return Fraction(number_where(mask)) if weights is None else exact_sum(weights[mask])


def _exponent(rows: Rows) -> int | None:
    """Find the e for which all weights times 2^e, loops doubled, sum to less than 2^62.

    None when they are integers that do so as they are.
    """
    largest, entries = rows.largest_weight(), rows.number_of_edges
    if rows.weights is None or largest == 0:
        return 0
    if rows.weights.dtype.kind in "iu" and 2 * largest * entries <= 2**62:
        return None
    return fixed_point_exponent(largest, 2 * entries)


def _read(graph: Any, edges: EdgeOptions) -> BaseGraph:
    """Read a graph. One that is made already stays where it is: a GPU may not hold it."""
    if isinstance(graph, BaseGraph) and edges.get("device") is None:
        edges = {**edges, "device": graph.device}
    return as_any_graph(graph, **edges)


def labels_of(graph: BaseGraph, partition: Any) -> Any:
    """Look up each vertex's community, as a small integer, on the graph's device."""
    columns, index = partition_rows(graph, partition)
    labels = array_module(index).empty(graph.number_of_vertices, np.int64)
    labels[index] = to_device(_codes(columns["partition"], labels.size), graph.device)
    return labels


def _codes(labels: Any, bound: int) -> Any:
    """Name labels by integers; small ones, as `label_propagation` gives them, are names already."""
    whole = isinstance(labels.dtype, np.dtype) and labels.dtype.kind in "iu"
    if whole and len(labels) and not null_count(labels):
        values = to_array(labels)
        if not any_true(~within(values, 0, bound - 1)):
            return values
    return label_codes(labels, "partition")


def partition_rows(
    graph: BaseGraph, partition: Any, one_label: bool = True
) -> tuple[dict[str, Any], Any]:
    """Check a partition; return its columns, and the vertex of each row on the graph's device."""
    columns = read_columns(partition, "partition", one_label)
    keys = numbered_columns(columns, "vertex")
    ids = columns[keys[0]] if len(keys) == 1 else _frame_of([columns[key] for key in keys])
    index = to_device(graph.vertex_index(ids, argument="partition"), graph.device)
    rows = occurrences(index, graph.number_of_vertices)
    if not any_true(rows != 1):
        return columns, index
    if any_true(rows > 1):
        raise ValueError(
            f"partition has several rows for {number_where(rows > 1)} vertices, or has them in "
            f"several sets, among them {_some(graph, rows > 1)}; "
            "give each vertex one community (a cover that overlaps has no modularity)"
        )
    raise ValueError(
        f"partition lacks {number_where(rows == 0)} vertices of the graph, among them "
        f"{_some(graph, rows == 0)}; give each one a community"
    )


def _frame_of(columns: list[Any]) -> Any:
    """Put the columns of ids side by side, to be looked up in."""
    by_name = {str(place): one for place, one in enumerate(columns)}
    return to_frame(by_name, kind_of(*columns), copy=False)


def _some(graph: BaseGraph, those: Any) -> str:
    """Name the first few of the vertices for which a mask is true."""
    return ids_as_text(graph.external(array_module(those).flatnonzero(those)[:5]))
