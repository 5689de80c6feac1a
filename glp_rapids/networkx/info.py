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
    ['asyn_lpa_communities', 'fast_label_propagation_communities']
    """
    return {
        "backend_name": "glp_rapids",
        "project": "glp-rapids",
        "package": "glp_rapids",
        "short_summary": "Label propagation and modularity, compiled, on a GPU if there is one.",
        "functions": FUNCTIONS,
    }
