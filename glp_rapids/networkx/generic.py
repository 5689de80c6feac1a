"""NetworkX's `shortest_path`, `shortest_path_length` and `has_path`, which choose a search."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import networkx as nx

from glp_rapids.networkx import unweighted, weighted
from glp_rapids.networkx.graph import Graph
from glp_rapids.networkx.searches import NO_LIMIT, Tree, breadth_first, dijkstra

METHODS = ("dijkstra", "bellman-ford")


def shortest_path(
    G: Graph,
    source: Hashable | None = None,
    target: Hashable | None = None,
    weight: Hashable | None = None,
    method: str = "dijkstra",
) -> Any:
    """Find a shortest path between two nodes, or one or both ends of which may be any node.

    With weights and both ends it is that of `dijkstra_path`; NetworkX searches from both ends and
    may find another of several.

    Examples
    --------
    >>> import networkx as nx
    >>> from glp_rapids.networkx.backend import BackendInterface
    >>> G = BackendInterface.convert_from_nx(nx.DiGraph(["ab", "bc"]))
    >>> BackendInterface.shortest_path(G, "a", "c")
    ['a', 'b', 'c']
    >>> BackendInterface.shortest_path(G, target="b")
    {'b': ['b'], 'a': ['a', 'b']}
    """
    _check_method(weight, method)
    if source is not None and target is not None:
        if weight is None:
            return unweighted.bidirectional_shortest_path(G, source, target)
        return _weighted_path(G, source, target, weight)
    if source is not None:
        if weight is None:
            return unweighted.single_source_shortest_path(G, source)
        return weighted.single_source_dijkstra_path(G, source, weight=weight)
    if target is not None:
        return _to(G, target, weight).paths(reverse=True)
    if weight is None:
        return unweighted.all_pairs_shortest_path(G)
    return weighted.all_pairs_dijkstra_path(G, weight=weight)


def shortest_path_length(
    G: Graph,
    source: Hashable | None = None,
    target: Hashable | None = None,
    weight: Hashable | None = None,
    method: str = "dijkstra",
) -> Any:
    """Find the length of a shortest path; one or both ends may be any node.

    Examples
    --------
    >>> import networkx as nx
    >>> from glp_rapids.networkx.backend import BackendInterface
    >>> G = BackendInterface.convert_from_nx(nx.path_graph(5))
    >>> BackendInterface.shortest_path_length(G, 0, 4)
    4
    """
    _check_method(weight, method)
    if source is not None and target is not None:
        if weight is None:
            return len(unweighted.bidirectional_shortest_path(G, source, target)) - 1
        return weighted.dijkstra_path_length(G, source, target, weight)
    if source is not None:
        if weight is None:
            return unweighted.single_source_shortest_path_length(G, source)
        return weighted.single_source_dijkstra_path_length(G, source, weight=weight)
    if target is not None:
        return _to(G, target, weight, " is").lengths()
    if weight is None:
        return unweighted.all_pairs_shortest_path_length(G)
    return weighted.all_pairs_dijkstra_path_length(G, weight=weight)


def has_path(G: Graph, source: Hashable, target: Hashable) -> bool:
    """Tell whether there is a path from one node to another.

    Examples
    --------
    >>> import networkx as nx
    >>> from glp_rapids.networkx.backend import BackendInterface
    >>> G = BackendInterface.convert_from_nx(nx.DiGraph(["ab", "bc"]))
    >>> BackendInterface.has_path(G, "a", "c"), BackendInterface.has_path(G, "c", "a")
    (True, False)
    """
    try:
        shortest_path(G, source, target)
    except nx.NetworkXNoPath:
        return False
    return True


def _check_method(weight: Hashable | None, method: str) -> None:
    if method not in METHODS:
        raise ValueError(f"method not supported: {method}")
    if method != "dijkstra" and weight is not None:
        raise NotImplementedError(f"method {method!r} is not served")


def _weighted_path(G: Graph, source: Hashable, target: Hashable, weight: Hashable) -> list:
    for name, node in (("Source", source), ("Target", target)):
        if node not in G:
            raise nx.NodeNotFound(f"{name} {node} is not in G")
    if source == target:
        return [source]
    found = dijkstra(G, [source], weight, None, target)
    if found.length(target) is None:
        raise nx.NetworkXNoPath(f"No path between {source} and {target}.")
    return found.path(target)


def _to(G: Graph, target: Hashable, weight: Hashable | None, verb: str = "") -> Tree:
    """Search against directions; NetworkX reverses the graph, and calls the target a source."""
    if target not in G:
        found = f"Source {target}{verb} not in G"
        raise nx.NodeNotFound(found if weight is None else f"Node {target} not found in graph")
    if weight is None:
        return breadth_first(G, [target], NO_LIMIT, reverse=True)
    return dijkstra(G, [target], weight, reverse=True)
