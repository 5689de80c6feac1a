"""NetworkX's connected components and betweenness centrality."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import networkx as nx
import numpy as np
from networkx.utils import create_py_random_state, not_implemented_for

from glp_rapids.networkx.graph import Graph
from glp_rapids.networkx.searches import AT_FIRST, NO_LIMIT, levels, parts
from glp_rapids.traversal import betweenness


def _parts(G: Graph) -> Iterator[set]:
    # a generator, as NetworkX's: nothing is done before the first is asked for
    for found, ends in parts(G, AT_FIRST):
        nodes = G.objects[found].tolist()
        for first, last in pairwise([0, *ends.tolist()]):
            yield set(nodes[first:last])


def _number(G: Graph) -> int:
    # 1 M nodes: 80 ms; all cores took 40, and .4 s before, for a graph in another form
    return sum(ends.size for _, ends in parts(G, len(G)))


def _is_one(G: Graph) -> bool:
    if not len(G):
        raise nx.NetworkXPointlessConcept("Connectivity is undefined for the null graph.")
    search = parts(G, 1)
    first, _ = next(search)  # and no other, as NetworkX
    if first.size == len(G):
        next(search, None)  # so that it ends, and gives back what it was lent
    return first.size == len(G)


@not_implemented_for("directed")
def connected_components(G: Graph) -> Iterator[set]:
    """Iterate over the nodes of each component, in the order of their first nodes.

    Examples
    --------
    >>> import networkx as nx
    >>> from glp_rapids.networkx.backend import BackendInterface
    >>> G = BackendInterface.convert_from_nx(nx.Graph([(2, 1), (3, 4)]))
    >>> list(BackendInterface.connected_components(G))
    [{1, 2}, {3, 4}]
    """
    return _parts(G)


@not_implemented_for("directed")
def number_connected_components(G: Graph) -> int:
    """Count the components."""
    return _number(G)


@not_implemented_for("directed")
def is_connected(G: Graph) -> bool:
    """Tell whether all nodes hang together."""
    return _is_one(G)


@not_implemented_for("directed")
def node_connected_component(G: Graph, n: Any) -> set:
    """Find the nodes of the component that a node is in."""
    order, _, _ = levels(G, [n], NO_LIMIT)
    return set(G.objects[order].tolist())


@not_implemented_for("undirected")
def weakly_connected_components(G: Graph) -> Iterator[set]:
    """Iterate over the nodes of each component, without regard to directions."""
    return _parts(G)


@not_implemented_for("undirected")
def number_weakly_connected_components(G: Graph) -> int:
    """Count the components, without regard to directions."""
    return _number(G)


@not_implemented_for("undirected")
def is_weakly_connected(G: Graph) -> bool:
    """Tell whether all nodes hang together, without regard to directions."""
    return _is_one(G)


def betweenness_centrality(
    G: Graph,
    k: int | None = None,
    normalized: bool = True,
    weight: None = None,
    endpoints: bool = False,
    seed: Any = None,
) -> dict:
    """Find the share of shortest paths that lead through each node.

    With ``k`` the nodes where paths begin are those that NetworkX draws from the same seed.

    Examples
    --------
    >>> import networkx as nx
    >>> from glp_rapids.networkx.backend import BackendInterface
    >>> G = BackendInterface.convert_from_nx(nx.path_graph(3))
    >>> BackendInterface.betweenness_centrality(G)
    {0: 0.0, 1: 1.0, 2: 0.0}
    """
    if weight is not None:
        raise NotImplementedError("betweenness centrality by weights is not served")
    sources = None
    if k is not None and k != len(G):
        drawn = create_py_random_state(seed).sample(G.nodes, k)
        sources = np.array([G.position[node] for node in drawn])
    found = betweenness.betweenness_centrality(
        G.csr(device="cpu"), sources=sources, normalized=bool(normalized), endpoints=bool(endpoints)
    )
    return dict(zip(G.nodes, found["betweenness_centrality"].tolist(), strict=True))
