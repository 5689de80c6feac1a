"""The entry point ``networkx.backends``: what NetworkX asks of a backend."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Hashable
from typing import Any

from glp_rapids.networkx import communities
from glp_rapids.networkx.graph import Graph, convert_from_nx, convert_to_nx, weights_of


def _weights(G: Any, weight: Hashable | None) -> bool | str:
    """Tell whether edges can be weighed by an attribute, or why not."""
    if weight is None:
        return True
    if callable(weight):
        return f"weight must be an edge attribute, not the function {weight!r}"
    if isinstance(G, Graph):
        if weight in G.weights:
            return True
        return f"the graph was converted without the edge attribute {weight!r}"
    # To look at every edge in every call would cost more than the call: what was converted before
    # is good, and a conversion with another attribute raises what is wrong with it.
    if (getattr(G, "__networkx_cache__", None) or {}).get("backends", {}).get("glp_rapids"):
        return True
    try:
        weights_of(G, weight)
    except NotImplementedError as reason:
        return str(reason)
    return True


def _modularity(
    G: Any, communities: Any = None, weight: Any = "weight", resolution: Any = 1, **others: Any
) -> bool | str:
    if not isinstance(resolution, numbers.Real) or not 0 <= resolution < math.inf:
        return f"resolution must be a finite number of at least 0, not {resolution!r}"
    return _weights(G, weight)


def _labels(G: Any, weight: Any = None, seed: Any = None, **others: Any) -> bool | str:
    return _weights(G, weight)


_CAN_RUN: dict[str, Callable[..., bool | str]] = {
    "label_propagation_communities": lambda G, **others: True,
    "fast_label_propagation_communities": _labels,
    "asyn_lpa_communities": _labels,
    "modularity": _modularity,
}


class BackendInterface:
    """The functions that NetworkX finds under their names, and what surrounds a call."""

    convert_from_nx = staticmethod(convert_from_nx)
    convert_to_nx = staticmethod(convert_to_nx)
    label_propagation_communities = staticmethod(communities.label_propagation_communities)
    fast_label_propagation_communities = staticmethod(
        communities.fast_label_propagation_communities
    )
    asyn_lpa_communities = staticmethod(communities.asyn_lpa_communities)
    modularity = staticmethod(communities.modularity)

    @staticmethod
    def can_run(name: str, args: tuple, kwargs: dict[str, Any]) -> bool | str:
        """Tell whether a call can be served: True, or the reason why not.

        Parameters
        ----------
        name : str
            A function of NetworkX.
        args, kwargs
            Its arguments; the graph may be of networkx or of this backend.

        Notes
        -----
        O(m) for a networkx graph with weights that was not converted before, else O(1).
        """
        if name not in _CAN_RUN:
            return f"{name} is not served"
        return _CAN_RUN[name](*args, **kwargs)

    @staticmethod
    def should_run(name: str, args: tuple, kwargs: dict[str, Any]) -> bool:
        """Return True: a user who puts this backend first wants it for small graphs, too."""
        return True
