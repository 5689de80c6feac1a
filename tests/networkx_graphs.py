"""The NetworkX backend as NetworkX finds and calls it, graphs for it, and what answers must be."""

import importlib.metadata
import math
import random
import tomllib
import warnings
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import networkx as nx
import numpy as np
import pytest

from glp_rapids.networkx.backend import BackendInterface
from glp_rapids.networkx.info import info

LABELS = ("fast_label_propagation_communities", "asyn_lpa_communities")
NAMES = ("label_propagation_communities", *LABELS)
CLASSES = (nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph)
# with the arguments behind the graph and the node
FROM_A_NODE = (
    ("single_source_shortest_path_length",),
    ("single_source_shortest_path_length", 1.5),
    ("single_source_shortest_path",),
    ("single_source_shortest_path", 2),
    ("single_target_shortest_path_length",),
    ("single_target_shortest_path", math.inf),
    ("single_source_dijkstra",),
    ("single_source_dijkstra", None, 2),
    ("single_source_dijkstra", None, 1.75, "weight"),
    ("single_source_dijkstra", None, -1),
    ("single_source_dijkstra", None, True),
    ("single_source_dijkstra_path_length", False),
    ("single_source_dijkstra", None, math.nan),
    ("single_source_dijkstra", None, 2.5, None),
    ("single_source_dijkstra_path", 3),
    ("single_source_dijkstra_path_length",),
    ("single_source_dijkstra_path_length", None, "absent"),
    ("bfs_edges",),
    ("bfs_edges", True),
    ("bfs_edges", False, 2),
    ("bfs_edges", False, 0),
    ("bfs_tree",),
    ("bfs_tree", True, 1),
    ("bfs_predecessors",),
    ("bfs_predecessors", 1),
    ("bfs_successors",),
    ("bfs_layers",),
    ("descendants_at_distance", 2),
    ("descendants_at_distance", 0),
    ("descendants_at_distance", -1),
    ("descendants_at_distance", 1.5),
)
ROOT = Path(__file__).parents[1]


def entry_points():
    """The entry points for NetworkX that pyproject.toml declares: group to name to value."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    groups = project["entry-points"].items()
    return {group: names for group, names in groups if group.startswith("networkx.")}


@pytest.fixture(scope="module", autouse=True)
def registered():
    """Register the backend as NetworkX does when it is imported, installed or not."""
    machinery = nx.utils.backends
    declared = importlib.metadata.EntryPoint(
        "glp_rapids", entry_points()["networkx.backends"]["glp_rapids"], "networkx.backends"
    )
    before = nx.config.backends
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(machinery.backends, "glp_rapids", declared)
        patch.setitem(machinery.backend_info, "glp_rapids", info())
        call = machinery._dispatchable._call_if_any_backends_installed
        patch.setattr(machinery._dispatchable, "__call__", call)
        nx.config.backends = nx.utils.Config(**{**before, "glp_rapids": nx.utils.Config()})
        with nx.config(warnings_to_ignore={"cache"}):
            yield
        nx.config.backends = before


def function(name):
    return getattr(nx.community, name)


def find(name, graph, **options):
    """The communities as a set of frozensets, by this backend."""
    return {frozenset(nodes) for nodes in function(name)(graph, backend="glp_rapids", **options)}


def convert(graph, *attributes):
    return BackendInterface.convert_from_nx(graph, edge_attrs=dict.fromkeys(attributes, 1))


def awkward(create_using, seed, nodes=60, edges=110):
    """Nodes and weights of many types, loops, parallel edges, isolated nodes."""
    draw = random.Random(seed)
    kinds = (
        int,
        str,
        lambda i: (i,),
        lambda i: (i, "x"),
        lambda i: frozenset({i}),
        lambda i: i + 0.5,
    )
    names = [kinds[i % len(kinds)](i) for i in range(nodes)]
    draw.shuffle(names)
    graph = create_using()
    graph.add_nodes_from(names)
    for _ in range(edges):
        ends = draw.choice(names[5:]), draw.choice(names[5:])
        weight = draw.choice([1, 2, 5, 0.5, 0.25, 0, True, np.float64(1.5), None])
        graph.add_edge(*ends, **({} if weight is None else {"weight": weight}))
    graph.add_edge(names[5], names[5], weight=3)
    return graph


def plain(value):
    """A result as lists and tuples, so that order counts."""
    if isinstance(value, Mapping):
        return [(key, plain(one)) for key, one in value.items()]
    if isinstance(value, nx.Graph):
        return list(value), list(value.edges(data=True))
    if isinstance(value, tuple | list):
        return type(value)(plain(one) for one in value)
    return [plain(one) for one in value] if hasattr(value, "__next__") else value


def outcome(call, *arguments, **options):
    """What a function returns, in its order, or what it raises, and in which words."""
    try:
        with warnings.catch_warnings():  # NetworkX 3.7 deprecates some of its functions
            warnings.simplefilter("ignore", DeprecationWarning)
            return plain(call(*arguments, **options))
    except (nx.NetworkXException, ValueError, TypeError, KeyError) as error:
        return type(error), error.args


def agree(graph, there, name, *arguments):
    ours = outcome(getattr(BackendInterface, name), there, *arguments)
    assert ours == outcome(getattr(nx, name).orig_func, graph, *arguments), (name, arguments)


def agree_on_structure(graph, there):
    kind = "weakly_connected" if graph.is_directed() else "connected"
    agree(graph, there, f"{kind}_components")
    agree(graph, there, f"number_{kind}_components")
    agree(graph, there, f"is_{kind}")
    for options in ((), (None, False), (None, True, None, True), (2, True, None, False, 5)):
        theirs = nx.betweenness_centrality(graph, *options) if len(graph) > 2 else {}
        if theirs:
            ours = BackendInterface.betweenness_centrality(there, *options)
            assert list(ours) == list(theirs)
            assert ours == pytest.approx(theirs, rel=1e-12, abs=1e-12, nan_ok=True)


def parts(graph, count, seed):
    """A random partition of the nodes."""
    draw = random.Random(seed)
    found = [set() for _ in range(count)]
    for node in graph:
        draw.choice(found).add(node)
    return found


def votes(graph, node, labels, weight, everything):
    """What a node hears, as NetworkX defines it; ``everything``: against the edges too."""
    if weight is None and not everything:
        return Counter(labels[other] for other in graph[node])
    heard = Counter()
    attribute = {"data": "no such attribute" if weight is None else weight, "default": 1}
    for _, other, amount in graph.edges(node, **attribute):
        heard[labels[other]] += amount
    if everything and graph.is_directed():
        for other, _, amount in graph.in_edges(node, **attribute):
            heard[labels[other]] += amount
    return heard


def unsettled(graph, found, weight=None, everything=False):
    """The nodes whose label is not among the most frequent around them."""
    labels = {node: number for number, nodes in enumerate(found) for node in nodes}
    heard = {node: votes(graph, node, labels, weight, everything) for node in graph}
    return [
        node for node, count in heard.items() if count and count[labels[node]] < max(count.values())
    ]
