"""NetworkX's Louvain and Leiden communities, by `glp_rapids.multilevel_label_propagation`.

The dendrogram, and with it a limit of levels, is made of these communities: of the parts that each
falls into, and the parts of these.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Hashable, Iterator
from itertools import islice
from typing import Any

import numpy as np
import pandas as pd
from networkx.utils import not_implemented_for

from glp_rapids import metrics
from glp_rapids.communities.multilevel import multilevel_label_propagation
from glp_rapids.networkx.communities import drawn_seed, modularity_without_weight, sets_of
from glp_rapids.networkx.graph import FROM_3_7, Graph

THRESHOLD = 0.0000001  # of NetworkX's Louvain, unless told otherwise
# What NetworkX's Leiden makes large unless told otherwise, and how much chance there is in it.
METRIC, THETA = "cpm" if FROM_3_7 else "modularity", 0.01


def louvain_communities(
    G: Graph,
    weight: Hashable | None = "weight",
    resolution: float = 1,
    threshold: float = THRESHOLD,
    max_level: int | None = None,
    seed: Any = None,
) -> list[set]:
    """Find communities of high modularity, as Louvain's method does.

    Examples
    --------
    >>> import networkx as nx
    >>> from glp_rapids.networkx.backend import BackendInterface
    >>> G = BackendInterface.convert_from_nx(nx.barbell_graph(3, 0))
    >>> BackendInterface.louvain_communities(G, weight=None)
    [{0, 1, 2}, {3, 4, 5}]
    """
    _refuse_directed(G)
    if max_level is not None or threshold != THRESHOLD:  # levels end by it, as NetworkX's
        return _last(louvain_partitions(G, weight, resolution, threshold, seed), max_level)
    return _communities(
        G, weight, refine=False, resolution=resolution, tol=threshold, seed=drawn_seed(seed)
    )


def louvain_partitions(
    G: Graph,
    weight: Hashable | None = "weight",
    resolution: float = 1,
    threshold: float = THRESHOLD,
    seed: Any = None,
) -> Iterator[list[set]]:
    """Iterate over the levels of Louvain's method, from small communities to large ones.

    Examples
    --------
    >>> import networkx as nx
    >>> from glp_rapids.networkx.backend import BackendInterface
    >>> G = BackendInterface.convert_from_nx(nx.path_graph(30))
    >>> [len(found) for found in BackendInterface.louvain_partitions(G, weight=None)]
    [12, 6, 5]
    """
    _refuse_directed(G)
    return _dendrogram(
        G, weight, threshold, refine=False, resolution=resolution, seed=drawn_seed(seed)
    )


@not_implemented_for("directed")
def leiden_communities(
    G: Graph,
    weight: Hashable | None = "weight",
    resolution: float = 1,
    max_level: int | None = None,
    seed: Any = None,
    *,
    metric: str = METRIC,
    theta: float = THETA,
) -> list[set]:
    """Find connected communities of high modularity, or by the constant Potts model, as Leiden's.

    Examples
    --------
    >>> import networkx as nx
    >>> from glp_rapids.networkx.backend import BackendInterface
    >>> G = BackendInterface.convert_from_nx(nx.barbell_graph(3, 0))
    >>> BackendInterface.leiden_communities(G, weight=None, metric="modularity")
    [{0, 1, 2}, {3, 4, 5}]
    """
    if max_level is not None:
        return _last(leiden_partitions(G, weight, resolution, seed, metric=metric), max_level)
    return _communities(
        G, weight, objective=metric, resolution=resolution, seed=drawn_seed(seed)
    )  # fmt: skip


@not_implemented_for("directed")
def leiden_partitions(
    G: Graph,
    weight: Hashable | None = "weight",
    resolution: float = 1,
    seed: Any = None,
    *,
    metric: str = METRIC,
    theta: float = THETA,
) -> Iterator[list[set]]:
    """Iterate over the levels of Leiden's method: its refined parts, and last the communities."""
    return _dendrogram(
        G, weight, None, objective=metric, resolution=resolution, seed=drawn_seed(seed)
    )


def _refuse_directed(G: Graph) -> None:
    if G.is_directed():
        raise NotImplementedError("directed modularity is not served")


def _last(partitions: Iterator[list[set]], max_level: int | None) -> list[set]:
    if max_level is not None and max_level <= 0:
        raise ValueError("max_level argument must be a positive integer or None")
    return deque(islice(partitions, max_level), maxlen=1).pop()


def _communities(G: Graph, weight: Hashable | None, **options: Any) -> list[set]:
    graph = G.csr(weight, count=True, device="cpu")
    if options.get("objective") != "cpm":
        _alone(G, graph, of_leiden="objective" in options)
    found = multilevel_label_propagation(graph, **options)
    return list(sets_of(G, found["partition"].to_numpy()))


def _alone(G: Graph, graph: Any, resolution: float = 1, *, of_leiden: bool) -> float:
    """Return the modularity of nodes on their own; where it is undefined, do as NetworkX."""
    places = np.arange(len(G))
    alone = pd.DataFrame({"vertex": places, "partition": places})
    value = metrics.modularity(graph, alone, resolution=float(resolution))
    if not math.isnan(value):
        return value
    if not graph.number_of_edges:
        return 0.0
    if of_leiden:  # it divides by the weight, which modularity itself no longer does
        raise ZeroDivisionError("Leiden's method with edge weights that sum to 0")
    return modularity_without_weight()


def _dendrogram(
    G: Graph, weight: Hashable | None, threshold: float | None, resolution: float,
    objective: str = "modularity", **options: Any,
) -> Iterator[list[set]]:  # fmt: skip
    # a generator, as NetworkX's: nothing is done before the first level is asked for
    graph = G.csr(weight, count=True, device="cpu")
    before, number = 0.0, 0
    if objective != "cpm":
        before = _alone(G, graph, resolution, of_leiden=threshold is None)
    options |= {"objective": objective, "resolution": resolution}
    found = multilevel_label_propagation(graph, levels=True, **options)
    if not len(found):
        yield [{node} for node in G]
    for _, level in found.groupby("level"):
        labels = level["partition"].to_numpy()
        if labels.max() + 1 == number:
            return  # the last level may be that before once more
        number = labels.max() + 1
        yield list(sets_of(G, labels))
        if threshold is None:
            continue
        partition = pd.DataFrame({"vertex": level["vertex"], "partition": labels})
        value = metrics.modularity(graph, partition, resolution=float(resolution))
        if not value - before > threshold:
            return
        before = value
