"""Ego-networks themselves, as a frame of edges or as one batched CSR.

Every neighbour of every vertex asked for is a node of its own, and two nodes of one vertex are
joined if they know each other. So all ego-networks are one graph, written without locks: how many
edges a node has is counted first, and says where they go.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from glp_rapids.common.calls import guarded
from glp_rapids.common.checks import check_truth
from glp_rapids.common.segments import integer_sums, segment_ids
from glp_rapids.common.sizes import as_bytes
from glp_rapids.common.types import Frame
from glp_rapids.device import LackOfMemory, array_module, memory_free, memory_in_use, to_host
from glp_rapids.diversity.costs import entries_read
from glp_rapids.diversity.engines import engine_for
from glp_rapids.frames.facts import set_attributes
from glp_rapids.frames.kinds import ids_as_text, library, to_frame
from glp_rapids.graph.simple import rows_of_vertices, simple
from glp_rapids.ingest.options import EgoEdgeOptions
from glp_rapids.ingest.read import as_graph

if TYPE_CHECKING:
    from glp_rapids.graph.graph import Graph
    from glp_rapids.graph.rows import CSR

Array = Any

# What a batch takes until its edges are columns of a frame.
BYTES_A_NODE = 64
BYTES_AN_ENTRY = 32
COUNTED = 24  # bytes an entry of the graph to count the edges of all ego-networks
MOST_NODES = np.iinfo(np.int32).max  # that an engine can number at once


@dataclass(frozen=True)
class EgoNetworks:
    """Ego-networks side by side, in arrays where the graph lives.

    Parameters
    ----------
    vertices : int array
        Whose they are: vertex indices, the ranks of the ids.
    offsets : int64 array, one more than vertices
        Ego-network i has the nodes ``offsets[i]`` to ``offsets[i + 1] - 1``.
    members : int array
        The vertex index that each node stands for; ascending in each ego-network.
    indptr : int64 array, one more than nodes
        Where the row of each node begins.
    indices : int32 array (int64 if there are more nodes than that can number)
        The nodes adjacent to each node, ascending; an edge is in the rows of both its ends.
    """

    vertices: Array
    offsets: Array
    members: Array
    indptr: Array
    indices: Array


@guarded
def ego_networks(
    graph: Any,
    vertices: Any = None,
    *,
    symmetrize: bool = False,
    arrays: bool = False,
    memory_limit: int | str | None = None,
    **edges: Unpack[EgoEdgeOptions],
) -> Frame | EgoNetworks:
    """Extract ego-networks: for each vertex the edges among its neighbours, without itself.

    Parameters
    ----------
    graph : graph-like
        Anything that `as_graph` takes. Self-loops, duplicates and weights don't matter.
    vertices : list, array, Series or frame, optional
        Ids of the vertices whose ego-networks are wanted, each once; None: all. (Vertices without
        an edge, for which other functions have this name, have no ego-network to speak of; name
        them to `as_graph` if they should be asked for here.)
    symmetrize : bool, default False
        Take the edges of a directed graph as undirected ones. Without it such a graph is refused.
    arrays : bool, default False
        Return an `EgoNetworks` of arrays instead of a frame.
    memory_limit : int or str, optional
        Bytes to work in, or a text such as "8GB", besides the result and 120 bytes a vertex;
        None: half of what is free. The less there is, the more batches. Where degrees let a single
        ego-network be larger than that, all are counted first, which takes 24 bytes an entry of the
        graph.
    **edges
        How to read ``graph``; see `as_graph`.

    Returns
    -------
    frame or EgoNetworks
        ``ego, src, dst``: every edge of every ego-network once, ``src`` before ``dst`` in the order
        of the ids; sorted, the egos in the order of ``vertices``. An ego-network without edges has
        no row. ``.attrs["glp"]`` holds ``device``, ``seconds``, ``batches``, ``peak_memory``.
        With ``arrays`` the batched CSR, in which no member is missing.

    Raises
    ------
    ValueError
        If ``vertices`` has an id twice, or one that is no vertex; if ``memory_limit`` is not
        positive; if the graph is directed and ``symmetrize`` is not set.
    TypeError
        If an argument is of another type than described.
    MemoryError
        If a single ego-network is too large for ``memory_limit``.

    Notes
    -----
    An edge for each triangle and each of its corners: up to O(m ** 1.5). On a GPU a pandas frame
    takes there the memory of a batch only.

    Examples
    --------
    >>> import pandas as pd
    >>> from glp_rapids import ego_networks
    >>> friends = pd.DataFrame({"src": ["me", "me", "me", "ann", "bob"],
    ...                         "dst": ["ann", "bob", "cy", "bob", "cy"]})
    >>> ego_networks(friends, ["me"])
      ego  src  dst
    0  me  ann  bob
    1  me  bob   cy
    >>> mine = ego_networks(friends, ["me"], arrays=True, device="cpu")
    >>> mine.members.tolist(), mine.indptr.tolist(), mine.indices.tolist()
    ([0, 1, 2], [0, 1, 3, 4], [1, 0, 2, 1])
    """
    check_truth(arrays=arrays)
    memory_limit = as_bytes("memory_limit", memory_limit)
    graph = as_graph(graph, **edges)
    begin = time.perf_counter()
    csr = simple(graph, symmetrize)
    whose = _checked(graph, vertices)
    engine = engine_for(graph, csr)  # whose own limit is for peeling, too
    limit = memory_limit or memory_free(graph.device) // 2
    batches = _batches(graph, csr, whose, engine, limit)
    if arrays:
        return _side_by_side(csr, whose, batches)
    parts = [_edges(graph, csr, batch, *rows) for batch, rows in batches]
    join = library(graph.vertices.kind).concat
    columns = {
        name: join([part[name] for part in parts], ignore_index=True)
        if len(parts) > 1
        else parts[0][name]
        for name in parts[0]
    }
    facts = {
        "device": graph.device,
        "seconds": time.perf_counter() - begin,
        "batches": len(parts),
        "peak_memory": memory_in_use(graph.device),
    }
    return set_attributes(to_frame(columns, graph.vertices.kind), facts)


def _checked(graph: Graph, vertices: Any) -> Array:
    """Look up the indices of the vertices asked for."""
    xp = array_module(graph.indptr)
    if vertices is None:
        return xp.arange(graph.number_of_vertices, dtype=graph.indices.dtype)
    index = graph.vertex_index(vertices)
    ascending = xp.sort(index)
    twice = ascending[1:][ascending[1:] == ascending[:-1]]
    if twice.size:
        raise ValueError(
            "vertices must hold each id once, but holds several times "
            f"{ids_as_text(graph.external(xp.unique(twice)[:5]))}; drop the duplicates"
        )
    return index


def _batches(
    graph: Graph, csr: CSR, vertices: Array, engine: Any, limit: int
) -> Iterator[tuple[Array, tuple[Array, Array]]]:
    """Yield as many vertices at once as fit, and indptr and indices of their ego-networks."""
    degree = csr.indptr[vertices + 1] - csr.indptr[vertices]
    most = entries_read(graph, csr)[vertices]
    xp = array_module(degree)
    nodes = int(degree.sum())
    needed = BYTES_A_NODE * degree + BYTES_AN_ENTRY * xp.minimum(most, degree * (degree - 1))
    if not nodes:
        yield vertices, (xp.zeros(1, dtype=np.int64), xp.empty(0, dtype=np.int32))
        return
    if int(needed.sum()) <= limit and nodes <= MOST_NODES:
        yield vertices, engine.ego_rows(vertices)
        return
    needed = to_host(needed)
    if COUNTED * csr.indices.size <= limit or needed.max() > limit:
        # not by the most that there can be, then, but by what there is
        exact = integer_sums(engine.common_neighbors(), csr.indptr)[vertices]
        needed = to_host(BYTES_A_NODE * degree + BYTES_AN_ENTRY * exact)
        if needed.max() > limit:
            worst = int(needed.argmax())
            who = ids_as_text(graph.external(vertices[worst : worst + 1]))
            raise LackOfMemory(
                f"the ego-network of {who}, with {int(degree[worst])} members and "
                f"{int(exact[worst]) // 2} edges, needs {needed[worst]} bytes, more than "
                f"memory_limit={limit}; raise memory_limit, or leave it out of vertices"
            )
    ends, node_ends = np.cumsum(needed), np.cumsum(to_host(degree))
    first, bytes_before, nodes_before = 0, 0, 0
    while first < vertices.size:
        last = min(
            np.searchsorted(ends, bytes_before + limit, side="right"),
            np.searchsorted(node_ends, nodes_before + MOST_NODES, side="right"),
        )
        yield vertices[first:last], engine.ego_rows(vertices[first:last])
        first, bytes_before, nodes_before = last, ends[last - 1], node_ends[last - 1]


def _edges(
    graph: Graph, csr: CSR, vertices: Array, indptr: Array, indices: Array
) -> dict[str, Any]:
    """List the edges of a batch, by the names of their columns."""
    xp = array_module(indptr)
    _, row, entry = rows_of_vertices(csr, vertices)
    members = csr.indices[entry]
    source = segment_ids(indptr, np.int32, indices.size)
    upper = xp.flatnonzero(source < indices)
    source, end = source[upper], indices[upper]
    return {
        **graph.external_columns(vertices[row[source]], "ego"),
        **graph.external_columns(members[source], "src"),
        **graph.external_columns(members[end], "dst"),
    }


def _side_by_side(
    csr: CSR, vertices: Array, batches: Iterator[tuple[Array, tuple[Array, Array]]]
) -> EgoNetworks:
    """Put the ego-networks of all batches into one CSR."""
    xp = array_module(csr.indptr)
    offsets, _, entry = rows_of_vertices(csr, vertices)
    members = csr.indices[entry]
    dtype = np.int32 if members.size <= MOST_NODES else np.int64
    indptr, indices = [xp.zeros(1, dtype=np.int64)], []
    nodes, entries = 0, 0
    for _, (batch_indptr, batch_indices) in batches:
        indptr.append(batch_indptr[1:] + entries)
        indices.append(batch_indices.astype(dtype, copy=False) + nodes)
        nodes += batch_indptr.size - 1
        entries += batch_indices.size
    return EgoNetworks(vertices, offsets, members, xp.concatenate(indptr), xp.concatenate(indices))
