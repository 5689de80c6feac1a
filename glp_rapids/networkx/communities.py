"""The functions of NetworkX that are served, with its arguments, results and errors.

What is promised is what NetworkX promises: a partition of the nodes in which every node has a
label that is among the most frequent of its neighbours. The rule for ties is each function's own:
the largest label, or a random one, and whether a node keeps its label. How labels get there is this
library's semi-synchronous sweep; `info` says what differs.
"""

from __future__ import annotations

import math
import random
from collections.abc import Hashable, Iterable, Iterator, ValuesView
from typing import Any

import numpy as np
import pandas as pd
from networkx.algorithms.community.quality import NotAPartition
from networkx.utils import create_py_random_state, groups, not_implemented_for

from glp_rapids import metrics
from glp_rapids.device import DeviceName
from glp_rapids.graph.graph import Graph as CSRGraph
from glp_rapids.networkx.graph import FROM_3_7, Graph
from glp_rapids.propagation.variants.classic import Classic, propagate

# Numbers of classes, round by round. Two neighbours of one class may swap labels for ever; with
# another number of classes they are in different ones.
ROUNDS = (32, 37, 41, 43, 47, 53, 59, 61)
# A share of the vertices below 1 / n: a round ends when no label changes, or when it cycles.
UNTIL_NOTHING_CHANGES = 1e-15


class Resumed(Classic):
    """Classic label propagation that goes on from given labels."""

    def __init__(self, labels: np.ndarray):
        self.labels = labels

    def initial_state(self, graph: CSRGraph) -> dict[str, Any]:
        """Return the given labels."""
        return {"labels": self.labels}


def _labels(graph: CSRGraph, **options: Any) -> np.ndarray:
    """Propagate until every vertex has a label that is among the most frequent around it."""
    options |= {"renumber": False, "tol": UNTIL_NOTHING_CHANGES}
    program: Classic = Classic()
    for classes in ROUNDS:
        found = propagate(graph, program, classes=classes, **options)
        labels = found["partition"].to_numpy()
        if not any(found.attrs["glp"]["changed"][-1:]):
            break
        program = Resumed(labels)
        options["explore"] = 0
    return labels


def sets_of(G: Graph, labels: np.ndarray) -> ValuesView[set]:
    """Group the nodes by label, in the order of their first nodes."""
    return groups(dict(zip(G.nodes, labels.tolist(), strict=True))).values()


def drawn_seed(seed: Any) -> int:
    """Draw a seed from a generator; None, the global one, always means 0."""
    generator = create_py_random_state(seed)
    return 0 if generator is random._inst else int(generator.random() * 2**32)


@not_implemented_for("directed")
def label_propagation_communities(G: Graph, *, device: DeviceName | None = None) -> ValuesView[set]:
    """Find communities by semi-synchronous label propagation, ties by Prec-Max.

    Parameters
    ----------
    G : Graph
        Undirected; parallel edges count once, a loop is a vote for oneself.
    device : {"cpu", "gpu"}, optional
        Where to compute; None: on a GPU if there is one.

    Returns
    -------
    dict_values of set
        The nodes of each community, every node in one.

    Raises
    ------
    networkx.NetworkXNotImplemented
        The graph is directed.

    Notes
    -----
    O(m) a sweep. Cordasco and Gargano, "Community detection via semi-synchronous label
    propagation algorithms", BASNA 2010.

    Examples
    --------
    >>> import networkx as nx
    >>> from glp_rapids.networkx.backend import BackendInterface
    >>> G = BackendInterface.convert_from_nx(nx.barbell_graph(3, 0))
    >>> BackendInterface.label_propagation_communities(G)
    dict_values([{0, 1, 2}, {3, 4, 5}])
    """
    labels = _labels(G.csr(device=device), explore=0, tie_break="max")
    return sets_of(G, labels)


def fast_label_propagation_communities(
    G: Graph, *, weight: Hashable | None = None, seed: Any = None, device: DeviceName | None = None
) -> Iterator[set]:
    """Find communities by label propagation without regard to directions.

    Parameters
    ----------
    G : Graph
        Parallel edges and both directions count each; a loop of a directed graph has two ends.
    weight : hashable, optional
        The edge attribute with the weights of votes.
    seed : int, random.Random, numpy generator or None
        Of the order of labels in a tie. None: always the same.
    device : {"cpu", "gpu"}, optional
        Where to compute; None: on a GPU if there is one.

    Returns
    -------
    iterator of set
        The nodes of each community, every node in one.

    Raises
    ------
    KeyError
        The graph was converted without this attribute.

    Notes
    -----
    O(m) a sweep. Traag and Subelj, "Large network community detection by fast label propagation",
    Scientific Reports 13 (2023), in the sweeps of `glp_rapids.label_propagation`.

    Examples
    --------
    >>> import networkx as nx
    >>> from glp_rapids.networkx.backend import BackendInterface
    >>> G = BackendInterface.convert_from_nx(nx.DiGraph(["ab", "bc", "ca", "de"]))
    >>> [sorted(c) for c in BackendInterface.fast_label_propagation_communities(G, seed=1)]
    [['a', 'b', 'c'], ['d', 'e']]
    """
    graph = G.csr(weight, count=True, fold=True, device=device)
    # exploring sweeps draw from the best labels whether or not the current one is among them
    return (found for found in sets_of(G, _labels(graph, seed=drawn_seed(seed))))


def asyn_lpa_communities(
    G: Graph, weight: Hashable | None = None, seed: Any = None, *, device: DeviceName | None = None
) -> Iterator[set]:
    """Find communities by label propagation; in directed graphs labels come from successors.

    Parameters
    ----------
    G : Graph
        Parallel edges count once without weights, and are added with them.
    weight, seed, device
        As in `fast_label_propagation_communities`.

    Returns
    -------
    iterator of set
        The nodes of each community, every node in one.

    Raises
    ------
    KeyError
        As `fast_label_propagation_communities`.

    Notes
    -----
    O(m) a sweep. Raghavan, Albert and Kumara, Phys. Rev. E 76 (2007), in the sweeps of
    `glp_rapids.label_propagation`.

    Examples
    --------
    >>> import networkx as nx
    >>> from glp_rapids.networkx.backend import BackendInterface
    >>> G = BackendInterface.convert_from_nx(nx.caveman_graph(2, 3))
    >>> list(BackendInterface.asyn_lpa_communities(G, seed=1))
    [{0, 1, 2}, {3, 4, 5}]
    """
    graph = G.csr(weight, device=device)
    labels = _labels(graph, explore=0, tie_break="hash", direction="out", seed=drawn_seed(seed))
    return (found for found in sets_of(G, labels))


def modularity(
    G: Graph,
    communities: Iterable,
    weight: Hashable | None = "weight",
    resolution: float = 1,
    *,
    device: DeviceName | None = None,
) -> float:
    """Compute the modularity of a partition of the nodes.

    Parameters
    ----------
    G : Graph
        Directed or not; parallel edges are added.
    communities : iterable of collections of nodes
        A partition.
    weight : hashable or None
        The edge attribute with the weights.
    resolution : float
        At least 0; above 1 favours smaller communities.
    device : {"cpu", "gpu"}, optional
        Where to compute; None: on a GPU if there is one.

    Returns
    -------
    float

    Raises
    ------
    networkx.algorithms.community.quality.NotAPartition
        A node is missing, is there twice, or is not in the graph.
    ZeroDivisionError
        The graph has no edges, or their weights sum to 0, and NetworkX is older than 3.7; from
        then on it is 0. (Where weights are NumPy's numbers it was NaN.)
    KeyError
        The graph was converted without this attribute.

    Notes
    -----
    O(n + m); see `glp_rapids.modularity`.

    Examples
    --------
    >>> import networkx as nx
    >>> from glp_rapids.networkx.backend import BackendInterface
    >>> G = BackendInterface.convert_from_nx(nx.barbell_graph(3, 0))
    >>> round(BackendInterface.modularity(G, [{0, 1, 2}, {3, 4, 5}], weight=None), 4)
    0.3571
    """
    communities = list(communities)
    codes = [-1] * len(G)
    for code, community in enumerate(communities):
        for node in community:
            if node in G:
                codes[G.position[node]] = code
    if -1 in codes or len(G) != sum(len(community) for community in communities):
        raise NotAPartition(G, communities)
    graph = G.csr(weight, count=True, device=device)
    partition = pd.DataFrame({"vertex": np.arange(len(G)), "partition": np.array(codes, np.int64)})
    value = metrics.modularity(graph, partition, resolution=float(resolution))
    return value if not math.isnan(value) else modularity_without_weight(G.types.get(weight, ()))


def modularity_without_weight(types: Iterable[type] = ()) -> float:
    """Return the modularity where weights sum to 0, or raise, as NetworkX does.

    ``types``: of the weights; NumPy's numbers can be divided by 0.
    """
    if FROM_3_7:
        return 0.0
    if any(issubclass(kind, np.generic) for kind in types):
        return math.nan
    raise ZeroDivisionError("modularity of a graph whose edge weights sum to 0")
