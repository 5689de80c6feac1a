"""A graph as other libraries have it: a sparse matrix, and a graph of NetworkX."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from glp_rapids.device import array_module, to_host

if TYPE_CHECKING:
    from glp_rapids.graph.graph import Graph


def adjacency(graph: Graph) -> Any:
    """Copy the arrays into a matrix of SciPy, or on a GPU of CuPy, whose values are floats."""
    xp, size = array_module(graph.indices), graph.number_of_vertices
    if xp is np:
        try:
            from scipy.sparse import csr_array as make
        except ImportError as error:
            raise ImportError(f"adjacency() needs SciPy ({error}): pip install scipy") from error
    else:
        from cupyx.scipy.sparse import csr_matrix as make
    if graph.weights is None:
        values = xp.ones(graph.indices.size)
    else:
        values = graph.weights.astype(np.float64)
    # SciPy asks that both have one type, and makes it the narrower one that holds them
    indptr = graph.indptr.astype(graph.indices.dtype if values.size < 1 << 31 else np.int64)
    return make((values, graph.indices.astype(indptr.dtype), indptr), shape=(size, size))


def to_networkx(graph: Graph) -> Any:
    """Make a graph of NetworkX, on the host."""
    try:
        import networkx as nx
    except ImportError as error:
        raise ImportError(
            f"to_networkx() needs NetworkX ({error}): pip install networkx"
        ) from error
    ids = graph.external()
    ids = ids.to_pandas() if hasattr(ids, "to_pandas") else ids
    nodes = ids.tolist() if ids.ndim == 1 else list(ids.itertuples(index=False, name=None))
    found = nx.DiGraph() if graph.directed else nx.Graph()
    found.add_nodes_from(nodes)
    source, destination = to_host(graph.row_indices()), to_host(graph.indices)
    once = slice(None) if graph.directed else source <= destination
    ends = ([nodes[v] for v in side[once].tolist()] for side in (source, destination))
    if graph.weights is None:
        found.add_edges_from(zip(*ends, strict=True))
    else:
        weights = to_host(graph.weights)[once].tolist()
        found.add_weighted_edges_from(zip(*ends, weights, strict=True))
    return found
