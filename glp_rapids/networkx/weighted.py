"""NetworkX's searches by Dijkstra's algorithm: arguments, results, their order and errors.

Lengths are Python's int or float: float everywhere but at the sources where some weight is a float.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator
from typing import Any

import networkx as nx

from glp_rapids.networkx.graph import Graph
from glp_rapids.networkx.searches import Tree, dijkstra, lengths_can_be_added


def _check_sources(G: Graph, sources: Collection) -> None:
    if not sources:
        raise ValueError("sources must not be empty")
    for source in sources:
        if source not in G:
            raise nx.NodeNotFound(f"Node {source} not found in graph")


def _from_all(G: Graph, sources: Collection, weight: Hashable | None, cutoff: Any) -> Tree:
    _check_sources(G, sources)
    return dijkstra(G, sources, weight, cutoff)


def multi_source_dijkstra(
    G: Graph,
    sources: Collection,
    target: Hashable | None = None,
    cutoff: float | None = None,
    weight: Hashable | None = "weight",
) -> tuple[Any, Any]:
    """Find lengths and paths from the nearest of some nodes, or those to a target.

    Examples
    --------
    >>> import networkx as nx
    >>> from glp_rapids.networkx.backend import BackendInterface
    >>> G = BackendInterface.convert_from_nx(nx.path_graph(5))
    >>> BackendInterface.multi_source_dijkstra(G, [0, 4], target=3, weight=None)
    (1, [4, 3])
    """
    if target is None:
        found = _from_all(G, sources, weight, cutoff)
        return found.lengths(), found.paths()
    _check_sources(G, sources)
    if target in sources:
        return 0, [target]
    found = dijkstra(G, sources, weight, cutoff, target)
    length = found.length(target)
    if length is None:
        raise nx.NetworkXNoPath(f"No path to {target}.")
    return length, found.path(target)


def multi_source_dijkstra_path(
    G: Graph,
    sources: Collection,
    cutoff: float | None = None,
    weight: Hashable | None = "weight",
) -> dict:
    """Find a shortest path from the nearest of some nodes to every node."""
    return _from_all(G, sources, weight, cutoff).paths()


def multi_source_dijkstra_path_length(
    G: Graph,
    sources: Collection,
    cutoff: float | None = None,
    weight: Hashable | None = "weight",
) -> dict:
    """Find the length of a shortest path from the nearest of some nodes to every node."""
    return _from_all(G, sources, weight, cutoff).lengths()


def single_source_dijkstra(
    G: Graph,
    source: Hashable,
    target: Hashable | None = None,
    cutoff: float | None = None,
    weight: Hashable | None = "weight",
) -> tuple[Any, Any]:
    """Find the lengths of shortest paths from a node, and the paths; or those to a target.

    Examples
    --------
    >>> import networkx as nx
    >>> from glp_rapids.networkx.backend import BackendInterface
    >>> G = nx.Graph()
    >>> G.add_weighted_edges_from([("a", "b", 7), ("a", "c", 2), ("c", "b", 3)])
    >>> there = BackendInterface.convert_from_nx(G, edge_attrs={"weight": 1})
    >>> BackendInterface.single_source_dijkstra(there, "a")
    ({'a': 0, 'c': 2, 'b': 5}, {'a': ['a'], 'c': ['a', 'c'], 'b': ['a', 'c', 'b']})
    """
    return multi_source_dijkstra(G, {source}, target, cutoff, weight)


def single_source_dijkstra_path(
    G: Graph,
    source: Hashable,
    cutoff: float | None = None,
    weight: Hashable | None = "weight",
) -> dict:
    """Find a shortest path from a node to every other, NetworkX's choice of several."""
    return multi_source_dijkstra_path(G, {source}, cutoff, weight)


def single_source_dijkstra_path_length(
    G: Graph,
    source: Hashable,
    cutoff: float | None = None,
    weight: Hashable | None = "weight",
) -> dict:
    """Find the length of a shortest path from a node to every other."""
    return multi_source_dijkstra_path_length(G, {source}, cutoff, weight)


def dijkstra_path(
    G: Graph, source: Hashable, target: Hashable, weight: Hashable | None = "weight"
) -> Any:
    """Find a shortest path between two nodes, NetworkX's choice of several."""
    return single_source_dijkstra(G, source, target, None, weight)[1]


def dijkstra_path_length(
    G: Graph, source: Hashable, target: Hashable, weight: Hashable | None = "weight"
) -> Any:
    """Find the length of a shortest path between two nodes.

    Examples
    --------
    >>> import networkx as nx
    >>> from glp_rapids.networkx.backend import BackendInterface
    >>> G = nx.Graph()
    >>> G.add_weighted_edges_from([(0, 1, 0.5), (1, 2, 0.25)])
    >>> there = BackendInterface.convert_from_nx(G, edge_attrs={"weight": 1})
    >>> BackendInterface.dijkstra_path_length(there, 0, 2)
    0.75
    """
    if source not in G:
        raise nx.NodeNotFound(f"Node {source} not found in graph")
    if source == target:
        return 0
    hash(target)  # raises as a dict of lengths does
    length = dijkstra(G, [source], weight, None, target).length(target)
    if length is None:
        raise nx.NetworkXNoPath(f"Node {target} not reachable from {source}")
    return length


def all_pairs_dijkstra(
    G: Graph, cutoff: float | None = None, weight: Hashable | None = "weight"
) -> Iterator[tuple[Any, tuple[dict, dict]]]:
    """Search from one node after the other; each search is made when it is asked for."""
    _check(G, weight)
    return ((node, single_source_dijkstra(G, node, None, cutoff, weight)) for node in G)


def all_pairs_dijkstra_path_length(
    G: Graph, cutoff: float | None = None, weight: Hashable | None = "weight"
) -> Iterator[tuple[Any, dict]]:
    """Search from one node after the other; each search is made when it is asked for."""
    _check(G, weight)
    return ((node, single_source_dijkstra_path_length(G, node, cutoff, weight)) for node in G)


def all_pairs_dijkstra_path(
    G: Graph, cutoff: float | None = None, weight: Hashable | None = "weight"
) -> Iterator[tuple[Any, dict]]:
    """Search from one node after the other; each search is made when it is asked for."""
    _check(G, weight)
    return ((node, single_source_dijkstra_path(G, node, cutoff, weight)) for node in G)


def _check(G: Graph, weight: Hashable | None) -> None:
    """Raise now what a search would raise later, when NetworkX cannot take over any more."""
    if weight is not None:
        lengths_can_be_added(G, weight)
