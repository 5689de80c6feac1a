"""Vertices without an entry: they stay alone, so a run goes without them, and they are told after.

Kronecker graphs have four in ten of them. They would go through every level, keep small ones from
being done together on a GPU, and count among the vertices of which few move.
"""

from __future__ import annotations

from typing import Any

from glp_rapids.communities.objective import Network
from glp_rapids.device import array_module

Array = Any


def without_isolated(network: Network, isolated: int | None) -> tuple[Network, Array | None]:
    """Return the network of the vertices that have entries, and which these are; None: all.

    ``isolated``: how many have none, if that is known.
    """
    xp, size = array_module(network.indptr), network.size
    if isolated == 0:
        return network, None
    has_entries = network.indptr[1:] > network.indptr[:-1]
    kept = xp.flatnonzero(has_entries)
    if kept.size == size:
        return network, None
    rank = xp.cumsum(has_entries, dtype=network.indices.dtype)
    rank -= 1
    return network._replace(
        indptr=network.indptr[xp.append(kept, size)], indices=rank[network.indices],
        volume=network.volume[kept], words=network.words[kept],
    ), kept  # fmt: skip


def among_all(labels: Array, first: Array, kept: Array, size: int) -> Array:
    """Number communities of some vertices anew, the others of ``size`` vertices each being one.

    ``labels`` of those that are ``kept`` are numbers in the order of their ``first`` vertices; so
    are those returned.
    """
    xp = array_module(labels)
    alone = xp.ones(size, bool)
    alone[kept] = False
    others, leads = xp.flatnonzero(alone), kept[first]
    found = xp.empty(size, labels.dtype)
    found[kept] = (xp.arange(leads.size) + leads - first)[labels]
    found[others] = xp.arange(others.size) + xp.searchsorted(leads, others)
    return found
