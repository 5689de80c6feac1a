"""What NetworkX is told about the backend when it is imported: plain text, nothing is loaded.

This is where differences from NetworkX are written down; NetworkX shows them in its docstrings.
"""

from __future__ import annotations

from typing import Any

DEVICE = {
    "device : {'cpu', 'gpu'} or None, optional": (
        "Where to compute; None (default): on a GPU if there is one. The result is the same."
    )
}

RANDOM = """\
Nodes are updated in 32 classes by a hash of their place among the nodes, not one by one, and ties
are settled by an order of the labels drawn from `seed`, not node by node. Communities are others
than NetworkX's; two small neighbouring ones come out as one more often. A result depends on the
graph, the order of its nodes, and `seed`; not on the device, threads, or the order of edges.
`seed=None`, and the global generator of `random`, stand for one fixed seed: the same communities
every time. Any other generator is drawn from once.
No weight may be negative, infinite or NaN; NetworkX runs such graphs itself."""

SAME = """\
Results are NetworkX's to the letter, their order included.
Computed on a core of the CPU."""

PATHS = """\
Paths are those that NetworkX chooses, in its order.
Computed on a core of the CPU."""

WEIGHTS = """
Of parallel edges the lightest counts, as in NetworkX. Lengths are Python's numbers, also where
weights are NumPy's; if weights are both int and float, all but the 0 of the sources are float.
Needs weights that are the values of an edge attribute, not of a function, and neither negative,
infinite nor NaN; NetworkX searches other graphs itself."""

SEARCH = """\
Edges and their order are NetworkX's. The search goes a little farther than is asked for.
Computed on a core of the CPU. Needs `sort_neighbors=None`."""

COMPONENTS = """\
Components are NetworkX's, in its order. Computed on a core of the CPU."""

MULTILEVEL = """\
Communities are others than NetworkX's, about as good, and depend on the graph, the order of its
nodes, and `seed` alone. Nodes move in classes one after the other.
`seed=None`, and the global generator of `random`, stand for one fixed seed: the same communities
every time. Any other generator is drawn from once.
The levels of a dendrogram, and `max_level`, are of parts of the communities, parts of these parts,
and so on, the finest first; the last level is the communities.
Computed on the CPU. Needs an undirected graph, a `resolution` of at least 1e-6, and weights that
are neither negative, infinite nor NaN; NetworkX finds the communities of others itself, if it can.
"""
LEIDEN = (
    MULTILEVEL
    + """\
What is made large is what this version of NetworkX says: modularity up to 3.6, and from 3.7 on
`metric`, the constant Potts model unless told otherwise. By that NetworkX may find more at high
resolutions of small graphs. Needs `theta` as it is by default.
"""
)

UNWEIGHTED = {
    **dict.fromkeys(
        (
            "all_pairs_shortest_path_length",
            "bfs_layers",
            "bidirectional_shortest_path",
            "descendants_at_distance",
            "has_path",
            "single_source_shortest_path_length",
            "single_target_shortest_path_length",
        ),
        SAME,
    ),
    **dict.fromkeys(
        (
            "all_pairs_shortest_path",
            "single_source_shortest_path",
            "single_target_shortest_path",
        ),
        PATHS,
    ),
    **dict.fromkeys(("bfs_edges", "bfs_predecessors", "bfs_successors"), SEARCH),
    "bfs_tree": SEARCH + "\nThe tree is a graph of networkx.",
    **dict.fromkeys(
        (
            "connected_components",
            "is_connected",
            "is_weakly_connected",
            "node_connected_component",
            "number_connected_components",
            "number_weakly_connected_components",
            "weakly_connected_components",
        ),
        COMPONENTS,
    ),
}

WEIGHTED = {
    **dict.fromkeys(
        (
            "all_pairs_dijkstra_path_length",
            "dijkstra_path",
            "dijkstra_path_length",
            "multi_source_dijkstra_path_length",
            "shortest_path_length",
            "single_source_dijkstra_path_length",
        ),
        SAME + WEIGHTS,
    ),
    **dict.fromkeys(
        (
            "all_pairs_dijkstra",
            "all_pairs_dijkstra_path",
            "multi_source_dijkstra",
            "multi_source_dijkstra_path",
            "single_source_dijkstra",
            "single_source_dijkstra_path",
        ),
        PATHS + WEIGHTS,
    ),
    "shortest_path": PATHS
    + WEIGHTS
    + """
With weights, the path between two nodes is that of `dijkstra_path`; NetworkX searches from both
ends, and may choose another of several. Bellman and Ford's method is left to NetworkX.""",
}

BETWEENNESS = """\
Equal to NetworkX's but for rounding, and scaled as by NetworkX 3.6; `k` nodes are those that
NetworkX draws from `seed`. Computed on all cores of the CPU. Needs `weight=None`."""

FUNCTIONS = {
    "label_propagation_communities": {
        "additional_docs": """\
Semi-synchronous with Prec-Max, as in NetworkX, but the nodes that are updated together are not a
colour of a greedy colouring but one of 32 classes by a hash of their place among the nodes. So
communities may be others, though as stable (a node's label is among the most frequent of its
neighbours), and the same every time.""",
        "additional_parameters": DEVICE,
    },
    "fast_label_propagation_communities": {
        "additional_docs": RANDOM
        + """
There is no queue: in at most ten sweeps ties are drawn, then a node keeps a label that is among the
best, until all do. Communities are larger than those of `asyn_lpa_communities`.""",
        "additional_parameters": DEVICE,
    },
    "asyn_lpa_communities": {
        "additional_docs": RANDOM
        + """
Directed graphs: labels come from the successors, as in NetworkX, but a run ends where NetworkX may
go on for ever.""",
        "additional_parameters": DEVICE,
    },
    "modularity": {
        "additional_docs": """\
Weights are added in 64-bit fixed point: the value does not depend on the order of edges or on the
device, and is equal to NetworkX's but for rounding.
Needs `resolution` of at least 0, and weights that are neither negative, infinite nor NaN; NetworkX
computes the others itself.""",
        "additional_parameters": DEVICE,
    },
    **{
        name: {"additional_docs": text}
        for name, text in (UNWEIGHTED | WEIGHTED | {"betweenness_centrality": BETWEENNESS}).items()
    },
    "louvain_communities": {"additional_docs": MULTILEVEL},
    "louvain_partitions": {"additional_docs": MULTILEVEL},
    "leiden_communities": {
        "additional_docs": LEIDEN + "Every community is connected, and so is every part."
    },
    "leiden_partitions": {
        "additional_docs": LEIDEN
        + "Levels are the well-connected parts that communities are refined to, the last those."
    },
}

def info() -> dict[str, Any]:
    """Return the entry ``networkx.backend_info``: what is served and how it differs.

    Returns
    -------
    dict
        As NetworkX wants it; ``functions`` has an entry for every function that is served.

    Notes
    -----
    Runs at every ``import networkx``, so it costs microseconds and imports nothing.

    Examples
    --------
    >>> from glp_rapids.networkx.info import info
    >>> sorted(info()["functions"])[:2]
    ['all_pairs_dijkstra', 'all_pairs_dijkstra_path']
    """
    return {
        "backend_name": "glp_rapids",
        "project": "glp-rapids",
        "package": "glp_rapids",
        "short_summary": "Communities, shortest paths and searches, compiled and deterministic.",
        "functions": FUNCTIONS,
    }
