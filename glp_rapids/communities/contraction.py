"""Quotient graphs: the communities of a partition as vertices."""

from __future__ import annotations

from functools import partial
from typing import Any, Unpack

from glp_rapids.common.calls import guarded
from glp_rapids.common.segments import segment_sums
from glp_rapids.common.sizes import as_bytes
from glp_rapids.device import array_module, choose
from glp_rapids.frames.partitions import numbered_columns
from glp_rapids.graph.build import csr_of_pairs
from glp_rapids.graph.call_memory import check_call
from glp_rapids.graph.graph import BaseGraph, Graph, lasting_graph
from glp_rapids.graph.rows import CSR
from glp_rapids.ingest.options import EdgeOptions
from glp_rapids.ingest.rank import rank_ids
from glp_rapids.ingest.within import graph_within, unless_memory_lacks
from glp_rapids.metrics.quality import partition_rows

Array = Any


@guarded
def contract(
    graph: Any, partition: Any, *, memory_limit: int | str | None = None,
    **edges: Unpack[EdgeOptions],
) -> Graph:  # fmt: skip
    """Make a graph whose vertices are the communities of a partition.

    Parameters
    ----------
    graph : graph-like
        Anything that `as_graph` takes, directed or not.
    partition : frame, dict or list of sets
        Columns ``vertex`` and ``partition``, each vertex of the graph once, in any order: what
        `label_propagation` returns; or, as for `modularity`, a dict, or sets, which are numbered.
        Labels are integers, strings, or any ids that can be sorted; of several columns
        (``0_partition``, ``1_partition``, ...) where those of the graph are.
    memory_limit : int or str, optional
        Bytes, or a text such as "8GB", that the call may take, the graph included. What may take
        more on a GPU, or does where there is no limit, is done in host memory, and the result is
        brought there; on a CPU it is refused before it begins. None: what is free.
    **edges
        How to read ``graph``; see `as_graph`.

    Returns
    -------
    Graph
        Its vertices are the labels. The weight of an edge is the sum of the weights of all edges
        between the two communities (without weights: their number), and that of a self-loop the
        sum of those inside, each counted once. So the degree of a community, where a self-loop
        counts twice, is the sum of those of its vertices, and `modularity` of the contracted
        graph, every vertex alone, is that of the partition. Integers stay integers, real weights
        become float64.

    Raises
    ------
    ValueError
        As in `modularity`, or integer weights add up to more than int64 can hold.
    TypeError
        ``partition`` is none of these, or its labels are floats or bools, or cannot be sorted.
    MemoryError
        On the CPU it may take more than ``memory_limit``, or than is free; it says by how much.

    Notes
    -----
    O(n + m) time; at most 15 bytes a vertex and 42 an entry, 68 of one with an integer weight, 92
    with another, the result included, most where nearly all edges become one with others; on a GPU
    20 a vertex and 64 an entry, 88 of one whose weight is no integer. It works on the device where
    the graph lives. Sums of integers are exact; those of real numbers are rounded once, so that
    they don't depend on any order.

    Examples
    --------
    >>> import pandas as pd
    >>> from glp_rapids import contract
    >>> edges = pd.DataFrame({"src": [0, 1, 2, 3, 4, 5, 2], "dst": [1, 2, 0, 4, 5, 3, 3]})
    >>> found = pd.DataFrame({"vertex": range(6), "partition": [7, 7, 7, 9, 9, 9]})
    >>> small = contract(edges, found)
    >>> small.external().to_numpy().tolist(), small.indices.tolist(), small.weights.tolist()
    ([7, 9], [0, 1, 0, 1], [3, 1, 1, 3])
    """
    given, limit = graph_within("contract", graph, edges, as_bytes("memory_limit", memory_limit))
    if given.device == "gpu":
        found = unless_memory_lacks(partial(_contracted, given, partition))
        if found is not None:
            return found
        given, limit = given.to("cpu"), None
    check_call("contract", given, limit)
    return _contracted(given, partition).to(choose(edges.get("device")))


def _contracted(graph: BaseGraph, partition: Any) -> Graph:
    columns, index = partition_rows(graph, partition, one_label=False)
    plain = graph.to_graph()
    names = numbered_columns(columns, "partition")
    (codes,), communities = rank_ids(
        [[columns[name] for name in names]],
        [[f"partition: the column {name!r}" for name in names]], graph.vertices.kind, graph.device,
    )  # fmt: skip
    labels = array_module(index).empty(graph.number_of_vertices, codes.dtype)
    labels[index] = codes
    rows = plain.rows("out")
    arrays = csr_of_pairs(
        *PAIRS[plain.device](rows, labels, len(communities), graph.directed), len(communities),
        symmetric=False, multigraph="keep",
    )  # fmt: skip
    return lasting_graph(Graph(*arrays, graph.directed, communities))


def _pairs(
    rows: CSR, labels: Array, number: int, directed: bool
) -> tuple[Array, Array, Array | None]:
    """Return the labels at both ends of every edge, once, and its weight."""
    of_rows, columns, weights = rows.row_indices(), rows.indices, rows.weights
    source, destination = labels[of_rows], labels[columns]
    if not directed:
        once = (source != destination) | (of_rows <= columns)
        source, destination = source[once], destination[once]
        weights = None if weights is None else weights[once]
    if weights is not None and weights.dtype.kind == "f":
        weights = weights.astype("float64")
    return source, destination, weights


def _pairs_on_gpu(
    rows: Graph, labels: Array, number: int, directed: bool
) -> tuple[Array, Array, Array | None]:
    """Return the same, integers added up before they are sorted."""
    from glp_rapids.communities.engines.merging import quotient

    if rows.weights is not None:
        xp = array_module(labels)
        ends = xp.asarray([0, rows.weights.size])
        if rows.weights.dtype.kind == "f" or float(segment_sums(rows.weights, ends)[0]) >= 2.0**62:
            return _pairs(rows, labels, number, directed)
    if not rows.indices.size:
        return _pairs(rows, labels, number, directed)
    return quotient(rows, labels, number, directed)


PAIRS = {"cpu": _pairs, "gpu": _pairs_on_gpu}
