"""NetworkX's searches by number of edges: arguments, results, their order and errors are its own.

A generator of NetworkX is one here, and raises, as there, when it is asked first. It searches a
little farther than it is asked to, at most as far again; where it gives levels, to the end of one.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable, Iterator
from itertools import pairwise
from typing import Any

import networkx as nx
import numpy as np

from glp_rapids.networkx.graph import FROM_3_7, Graph
from glp_rapids.networkx.searches import (
    NO_LIMIT,
    Tree,
    between,
    breadth_first,
    found_by_and_by,
    layers,
    levels,
    steps_below,
)

Sorting = Callable | None


def _from(G: Graph, node: Hashable, cutoff: Any, what: str, *, reverse: bool = False) -> Tree:
    if node not in G:
        raise nx.NodeNotFound(f"{what} in G")
    return breadth_first(G, [node], steps_below(cutoff), reverse=reverse)


def single_source_shortest_path_length(
    G: Graph, source: Hashable, cutoff: float | None = None
) -> dict:
    """Find how many edges away from a node all others are, as NetworkX does.

    Examples
    --------
    >>> import networkx as nx
    >>> from glp_rapids.networkx.backend import BackendInterface
    >>> G = BackendInterface.convert_from_nx(nx.DiGraph(["ab", "bc", "dc"]))
    >>> BackendInterface.single_source_shortest_path_length(G, "a")
    {'a': 0, 'b': 1, 'c': 2}
    """
    return _from(G, source, cutoff, f"Source {source} is not").lengths()


def single_source_shortest_path(G: Graph, source: Hashable, cutoff: float | None = None) -> dict:
    """Find a path of fewest edges from a node to every other, NetworkX's choice of several.

    Examples
    --------
    >>> import networkx as nx
    >>> from glp_rapids.networkx.backend import BackendInterface
    >>> G = BackendInterface.convert_from_nx(nx.cycle_graph(4))
    >>> BackendInterface.single_source_shortest_path(G, 0)
    {0: [0], 1: [0, 1], 3: [0, 3], 2: [0, 1, 2]}
    """
    return _from(G, source, cutoff, f"Source {source} not").paths()


def single_target_shortest_path_length(
    G: Graph, target: Hashable, cutoff: float | None = None
) -> dict:
    """Find how many edges all nodes are away from a target."""
    return _from(G, target, cutoff, f"Target {target} is not", reverse=True).lengths()


def single_target_shortest_path(G: Graph, target: Hashable, cutoff: float | None = None) -> dict:
    """Find a path of fewest edges from every node to a target."""
    return _from(G, target, cutoff, f"Target {target} not", reverse=True).paths(reverse=True)


def all_pairs_shortest_path_length(
    G: Graph, cutoff: float | None = None
) -> Iterator[tuple[Any, dict]]:
    """Search from one node after the other; each search is made when it is asked for."""
    return ((node, single_source_shortest_path_length(G, node, cutoff)) for node in G)


def all_pairs_shortest_path(G: Graph, cutoff: float | None = None) -> Iterator[tuple[Any, dict]]:
    """Search from one node after the other; each search is made when it is asked for."""
    return ((node, single_source_shortest_path(G, node, cutoff)) for node in G)


def bidirectional_shortest_path(G: Graph, source: Hashable, target: Hashable) -> list:
    """Find a path of fewest edges between two nodes, NetworkX's choice of several.

    Examples
    --------
    >>> import networkx as nx
    >>> from glp_rapids.networkx.backend import BackendInterface
    >>> G = BackendInterface.convert_from_nx(nx.cycle_graph(5))
    >>> BackendInterface.bidirectional_shortest_path(G, 0, 3)
    [0, 4, 3]
    """
    return between(G, source, target)


def _found(
    G: Graph, source: Hashable, depth_limit: float | None, reverse: bool = False
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Search for what is a generator in NetworkX."""
    if source not in G.position:
        kind = "digraph" if G.is_directed() else "graph"
        raise nx.NetworkXError(f"The node {source} is not in the {kind}.")
    return found_by_and_by(G, source, steps_below(depth_limit), reverse=reverse)


def _refuse(sort_neighbors: Sorting) -> None:
    if sort_neighbors is not None:
        raise NotImplementedError("sort_neighbors is not served")


def bfs_edges(
    G: Graph,
    source: Hashable,
    reverse: bool = False,
    depth_limit: float | None = None,
    sort_neighbors: Sorting = None,
) -> Iterator[tuple]:
    """Iterate over the edges of a breadth-first search, in NetworkX's order.

    Examples
    --------
    >>> import networkx as nx
    >>> from glp_rapids.networkx.backend import BackendInterface
    >>> G = BackendInterface.convert_from_nx(nx.cycle_graph(4))
    >>> list(BackendInterface.bfs_edges(G, 0))
    [(0, 1), (0, 3), (1, 2)]
    """
    _refuse(sort_neighbors)
    return _edges(G, source, depth_limit, bool(reverse))


def _edges(
    G: Graph, source: Hashable, depth_limit: float | None, reverse: bool = False
) -> Iterator[tuple]:
    for found, found_by in _found(G, source, depth_limit, reverse):
        yield from zip(G.objects[found_by].tolist(), G.objects[found].tolist(), strict=True)


def bfs_tree(
    G: Graph,
    source: Hashable,
    reverse: bool = False,
    depth_limit: float | None = None,
    sort_neighbors: Sorting = None,
) -> nx.DiGraph:
    """Make a graph of the edges of a breadth-first search; it is one of networkx."""
    _refuse(sort_neighbors)
    tree = nx.DiGraph()
    tree.add_node(source)
    tree.add_edges_from(_edges(G, source, depth_limit, bool(reverse)))
    return tree


def bfs_predecessors(
    G: Graph,
    source: Hashable,
    depth_limit: float | None = None,
    sort_neighbors: Sorting = None,
) -> Iterator[tuple]:
    """Iterate over nodes and who found them in a breadth-first search, in NetworkX's order."""
    _refuse(sort_neighbors)
    return _predecessors(G, source, depth_limit)


def _predecessors(G: Graph, source: Hashable, depth_limit: float | None) -> Iterator[tuple]:
    if FROM_3_7:  # when the first is asked for, as in NetworkX, and in its words
        warnings.warn(
            "\n\nbfs_predecessors is deprecated and will be removed in NetworkX 3.9\n"
            "Use ``(t, s) for (s, t) in bfs_edges`` instead",
            DeprecationWarning, stacklevel=2,
        )  # fmt: skip
    for parent, child in _edges(G, source, depth_limit):
        yield child, parent


def bfs_successors(
    G: Graph,
    source: Hashable,
    depth_limit: float | None = None,
    sort_neighbors: Sorting = None,
) -> Iterator[tuple[Any, list]]:
    """Iterate over nodes and those that they found in a breadth-first search, in its order."""
    _refuse(sort_neighbors)
    return _families(G, source, depth_limit)


def _families(G: Graph, source: Hashable, depth_limit: float | None) -> Iterator[tuple[Any, list]]:
    last, parent, children = G.position.get(source), source, []
    for found, found_by in _found(G, source, depth_limit):
        firsts = (np.flatnonzero(found_by[1:] != found_by[:-1]) + 1).tolist()
        cuts, nodes = [0, *firsts, found.size], G.objects[found].tolist()
        for place, cut in zip(found_by[cuts[:-1]].tolist(), pairwise(cuts), strict=True):
            those = nodes[slice(*cut)]
            if place != last:
                yield parent, children
                children = []
            last, parent = place, G.nodes[place]
            children += those
    yield parent, children


def bfs_layers(G: Graph, sources: Any) -> Iterator[list]:
    """Iterate over the nodes at each distance from some, in NetworkX's order.

    Examples
    --------
    >>> import networkx as nx
    >>> from glp_rapids.networkx.backend import BackendInterface
    >>> G = BackendInterface.convert_from_nx(nx.path_graph(4))
    >>> list(BackendInterface.bfs_layers(G, 1))
    [[1], [0, 2], [3]]
    """
    first = list({sources} if sources in G else set(sources))
    for source in first:
        if source not in G:
            raise nx.NetworkXError(f"The node {source} is not in the graph.")
    if first:
        yield from layers(G, first, NO_LIMIT)


def descendants_at_distance(G: Graph, source: Hashable, distance: int) -> set:
    """Find the nodes that are exactly so many edges away from one.

    Examples
    --------
    >>> import networkx as nx
    >>> from glp_rapids.networkx.backend import BackendInterface
    >>> G = BackendInterface.convert_from_nx(nx.path_graph(4))
    >>> BackendInterface.descendants_at_distance(G, 1, 2)
    {3}
    """
    if source not in G:
        raise nx.NetworkXError(f"The node {source} is not in the graph.")
    order, _, ends = levels(G, [source], steps_below(distance))
    if ends.size - 1 != distance:  # nobody is so far away
        return set()
    return set(G.objects[order[ends[-2] if distance else 0 :]].tolist())
