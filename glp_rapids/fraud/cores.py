"""Cores of graphs and of their communities by kernels: on a GPU in one launch each, or on a core.

What they are, and how operations on whole arrays find them, is in `graph.subgraph`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from glp_rapids.common.scans import places_where
from glp_rapids.common.segments import integer_sums, segment_sums
from glp_rapids.device import array_module
from glp_rapids.fraud.totals import sums_are_of_64_bits
from glp_rapids.graph import subgraph
from glp_rapids.graph.graph import Graph
from glp_rapids.graph.subgraph import induced, inside, masked
from glp_rapids.jit.interrupts import call, interruptible

Array = Any
MOST = 1 << 62  # partners: nobody has as many


class Pieces(NamedTuple):
    """The community of every vertex, -1 for none, and of members what they have inside.

    ``partners``: how many; ``trade``: what the entries there weigh, without self-loops. Of others
    these mean nothing.
    """

    community: Array
    partners: Array
    trade: Array


def largest_core(
    graph: Graph, total: Array, minimum_share: float, minimum_partners: int
) -> tuple[Graph, Array]:
    """Cut a graph down to its core; see `subgraph.largest_core`."""
    if not _for_kernel(graph):
        return subgraph.largest_core(graph, total, minimum_share, minimum_partners)
    xp = array_module(total)
    nobody = xp.empty(0, bool)
    community, *_ = _cut(graph, nobody, minimum_share * total, minimum_partners)
    left = places_where(community >= 0)
    return (graph if left.size == total.size else induced(graph, left)), left


def connected_core(
    graph: Graph, agreed: Array, total: Array, minimum_share: float, minimum_partners: int
) -> Pieces:
    """Find components over the agreed entries, cut to cores; see `subgraph.connected_core`."""
    if not _for_kernel(graph) or not agreed.size:
        found = subgraph.connected_core(graph, agreed, total, minimum_share, minimum_partners)
        same = inside(graph, found)
        trade = segment_sums(masked(graph, same).weights, graph.indptr)
        return Pieces(found, integer_sums(same, graph.indptr), trade)
    return _cut(graph, agreed, minimum_share * total, minimum_partners)


def _for_kernel(graph: Graph) -> bool:
    """Tell whether sums are of integers that 64 bits hold, and on a GPU vertices of 31."""
    if not graph.indices.size or (graph.device == "gpu" and graph.index_dtype != np.int32):
        return False
    whole = graph.weights is None or graph.weights.dtype.kind in "iu"
    return whole and sums_are_of_64_bits(graph)


def _cut(graph: Graph, agreed: Array, least_trade: Array, least_partners: int) -> Pieces:
    xp, size = array_module(graph.indptr), graph.number_of_vertices
    weights = xp.empty(0, np.int64) if graph.weights is None else graph.weights
    found = Pieces(xp.zeros(size, np.int64), xp.empty(size, np.int64), xp.empty(size, np.int64))
    limits = np.int64(min(least_partners, MOST)), least_trade
    KERNELS[graph.device](graph.indptr, graph.indices, weights, *limits, agreed, *found)
    return found


def _cut_on_cpu(*arguments: Any) -> None:
    # Numba takes longer to import than a small graph takes to build
    from glp_rapids.fraud.kernels import cpu_cores

    interruptible(call)(cpu_cores.cut_cores, *arguments)


def _cut_on_gpu(*arguments: Any) -> None:
    # Numba takes longer to import than a small graph takes to build
    from glp_rapids.fraud.kernels import gpu_cores
    from glp_rapids.jit.cuda import multiprocessors
    from glp_rapids.jit.launch import launch_together

    community = arguments[-3]
    xp, size = array_module(community), community.size
    launch_together(
        gpu_cores.build(gpu_cores.THREADS, gpu_cores.LANES), multiprocessors(), gpu_cores.THREADS,
        *arguments, xp.empty(size, np.int64), xp.empty(size, np.int32),
        xp.zeros(gpu_cores.CONTROL, np.int64),
    )  # fmt: skip


KERNELS = {"cpu": _cut_on_cpu, "gpu": _cut_on_gpu}
