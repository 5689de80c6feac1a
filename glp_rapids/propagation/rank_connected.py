"""Communities cut into connected pieces, of a graph that ranks share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from glp_rapids.device import to_device, to_host
from glp_rapids.graph.connected import connected_parts, join_pairs, name_roots
from glp_rapids.graph.rows import CSR

if TYPE_CHECKING:
    from glp_rapids.multigpu.exchange import Exchange
    from glp_rapids.propagation.rank_graph import RankGraph

FEWEST_AT_ONCE = 1 << 16  # vertices


def pieces_of_ranks(graph: RankGraph, labels: Any) -> Any:
    """Name every vertex by the smallest it is connected to inside its community; on the host."""
    rows = graph.part.rows
    weights = None if rows.weights is None else to_host(rows.weights)
    own = CSR(to_host(rows.indptr), to_host(rows.indices), weights)
    pieces = connected_parts_of_ranks(graph.exchange, own, to_host(labels))
    return to_device(pieces.astype(labels.dtype), graph.device)


def connected_parts_of_ranks(exchange: Exchange, own: CSR, labels: np.ndarray) -> np.ndarray:
    """Do what `connected_parts` does with rows that ranks share: the same comes out on all.

    ``own``: the rows of this rank; others are empty. Each rank finds what its rows connect, and all
    join what all found, some vertices at a time.
    """
    parent = connected_parts(own, labels)
    found, size = parent.astype(own.index_dtype), labels.size
    step = max(-(-size // exchange.ranks), FEWEST_AT_ONCE)
    for first in range(0, size, step):
        (told,) = exchange.allgather([found[first : first + step]])
        for others in told.reshape(exchange.ranks, -1):
            join_pairs(first, others, parent)
    name_roots(parent)
    return parent
