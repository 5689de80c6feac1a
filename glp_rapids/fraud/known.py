"""What is known of accounts: those on a blacklist, of several kinds perhaps, and honest ones."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np

from glp_rapids.common.checks import (
    check_choice,
    check_integer,
    is_integer,
    is_sequence,
    shown,
)
from glp_rapids.common.scans import number_where, places_where
from glp_rapids.device import array_module, module_on, to_device, to_host
from glp_rapids.frames.kinds import ids_as_text
from glp_rapids.fraud.system import Fixed
from glp_rapids.graph.graph import Graph
from glp_rapids.graph.id_types import of_labels_by_id

Array = Any
OR_DROPPED = "pass absent='drop'"


class Known(NamedTuple):
    """The vertices that are known, and how many ids of the blacklist are no vertex.

    ``kinds``: of a blacklist of several kinds, the vertices of each by its name, in their order.
    """

    fixed: Fixed
    absent: int
    kinds: dict[Any, Array] | None = None

    def to(self, graph: Graph) -> Known:
        """Return the same where a graph lives."""
        seeds, good, *parts = (
            to_device(index, graph.device)
            for index in (*self.fixed, *(self.kinds or {}).values())
        )  # fmt: skip
        kinds = None if self.kinds is None else dict(zip(self.kinds, parts, strict=True))
        return Known(Fixed(seeds, good), self.absent, kinds)


def known_accounts(
    graph: Graph, seeds: Any, good: Any, absent: str, hubs: int | None = None
) -> Known:
    """Look up a blacklist, and accounts known to be honest (None: none is); see `with_hubs`."""
    if hubs is not None:
        check_integer("hubs", hubs, 1)
    check_choice("absent", absent, ("raise", "drop"), "'raise' or 'drop'")
    labels = None
    if isinstance(seeds, dict):
        labels = list(seeds.values())
        names = kind_names(labels)
        seeds = list(seeds)
    if isinstance(seeds, set | frozenset):
        seeds = list(seeds)
    if not is_sequence(seeds) or not hasattr(seeds, "__len__"):
        raise TypeError(f"seeds must be a list, array or Series of ids, not {shown(seeds)}")
    if absent == "raise" and not len(seeds):
        raise ValueError("seeds are empty: name at least one account")
    try:
        found = graph.vertices.lookup(seeds, "seeds", absent == "drop", OR_DROPPED)
    except (TypeError, ValueError) as error:
        if mend := of_labels_by_id(seeds, "kinds"):
            raise type(error)(f"{error}; {mend}") from error
        raise
    index = _vertices(graph, found)
    honest = _honest(graph, good, absent)
    xp = array_module(index)
    if honest.size and (both := number_where(clash := xp.isin(index, honest))):
        shown_ids = ids_as_text(graph.external(index[clash][:5]))
        raise ValueError(
            f"good and seeds both hold {both} account(s): {shown_ids}{', ...' if both > 5 else ''}"
            "; keep each in one of them"
        )
    if not index.size:
        asked = f"none of the {len(seeds)} seeds is a vertex" if len(seeds) else "seeds are empty"
        warnings.warn(f"{asked}: every score is 0", UserWarning, stacklevel=4)
    kinds = None
    if labels is not None:
        place = to_host(found)
        kinds = {
            name: _vertices(graph, place[[label == name for label in labels]]) for name in names
        }
    return Known(with_hubs(graph, Fixed(index, honest), hubs), number_where(found < 0), kinds)


def with_hubs(graph: Graph, fixed: Fixed, hubs: int | None) -> Fixed:
    """Let accounts with more than so many partners pass nothing on, unless they are seeds."""
    if hubs is None:
        return fixed
    xp, degree = array_module(graph.indptr), graph.degree
    hubs = min(int(hubs), graph.number_of_vertices)  # nobody has more partners
    stops = degree > hubs
    one_more = places_where(degree == hubs + 1)
    if one_more.size:  # nobody is a partner of its own
        entries = graph.indptr[one_more][:, None] + xp.arange(hubs + 1)
        own = places_where((graph.indices[entries] == one_more[:, None]).ravel())
        stops[one_more[own // (hubs + 1)]] = False
    stops[fixed.good] = True
    stops[fixed.seeds] = False
    return fixed._replace(good=places_where(stops).astype(graph.index_dtype))


def marked(graph: Graph, ids: Any, argument: str) -> Array | None:
    """Mark the vertices that are in a list, some of which may be none; None: there is no list."""
    if isinstance(ids, set | frozenset):
        ids = list(ids)
    if ids is None:
        return None
    if isinstance(ids, dict) or not is_sequence(ids) or not hasattr(ids, "__len__"):
        raise TypeError(f"{argument} must be a list, array or Series of ids, not {shown(ids)}")
    there = module_on(graph.device).zeros(graph.number_of_vertices, dtype=bool)
    if len(ids):
        there[_vertices(graph, graph.vertices.lookup(ids, argument, absent=True))] = True
    return there


def _vertices(graph: Graph, found: Array) -> Array:
    """Return the vertices that were found, each once."""
    index = array_module(found).unique(found[found >= 0])
    return to_device(index.astype(graph.index_dtype), graph.device)


def _honest(graph: Graph, good: Any, absent: str) -> Array:
    if isinstance(good, set | frozenset):
        good = list(good)
    if good is None or (is_sequence(good) and hasattr(good, "__len__") and not len(good)):
        good = np.zeros(0, np.int64)
        return to_device(good.astype(graph.index_dtype), graph.device)
    if isinstance(good, dict) or not is_sequence(good) or not hasattr(good, "__len__"):
        raise TypeError(f"good must be a list, array or Series of ids, not {shown(good)}")
    return _vertices(graph, graph.vertices.lookup(good, "good", absent == "drop", OR_DROPPED))


def kind_names(labels: list[Any]) -> list[Any]:
    """Return the different kinds in their order."""
    strings = all(isinstance(label, str) for label in labels)
    if not strings and not all(is_integer(label) for label in labels):
        other = next((one for one in labels if not isinstance(one, str) and not is_integer(one)),
                     labels[0])  # fmt: skip
        raise TypeError(
            f"seeds: kinds must be all strings or all integers, and one is {shown(other)}; pass a "
            "list of ids if they are all of one kind"
        )
    return sorted({str(label) if strings else int(label) for label in labels})
