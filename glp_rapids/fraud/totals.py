"""What the accounts of a graph trade: the sum of each row's weights, without self-loops."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from glp_rapids.common.scans import integer_sum, number_where
from glp_rapids.common.segments import integer_sums, segment_ids, segment_offsets, segment_sums
from glp_rapids.device import array_module
from glp_rapids.graph.graph import Graph
from glp_rapids.graph.subgraph import induced, inside, masked
from glp_rapids.jit.parallel import threads_available

Array = Any
PARALLEL_FROM = 1 << 15  # entries


def row_weights(graph: Graph) -> Array:
    """Sum the weights of each row as the graph does, in less time where it can; kept.

    Of 5.5 million integers on two busy cores: 16 ms, the graph's way 42.
    """
    return graph.keep("row weights", lambda: _integer_sums(graph))


def row_weights_of(graph: Graph, rows: Array) -> Array:
    """Sum the weights of some rows, as `row_weights` does for all."""
    weights = graph.weights
    if graph.device == "cpu" and (weights is None or weights.dtype.kind in "iu"):
        # Numba takes longer to import than a small graph takes to build
        from glp_rapids.fraud.kernels import cpu_residuals

        sums = np.empty(rows.size)
        if cpu_residuals.totals_of(rows, *_arrays(graph), sums):
            return sums
    xp = array_module(graph.indptr)
    of, entry, offsets = entries_of(graph, rows)
    other = rows[of] != graph.indices[entry]
    amounts = other if weights is None else xp.where(other, weights[entry], 0)
    return segment_sums(amounts, offsets)


def mean_traded(totals: Array, fixed: Array) -> float:
    """Return the mean of what is above 0 of vertices that are not fixed, or 0.

    It is the same in any order, and on any device, as it is added up in integers.
    """
    xp, bits = array_module(totals), 62 - totals.size.bit_length()
    if xp is np:
        # Numba takes longer to import than a small graph takes to build
        from glp_rapids.fraud.kernels import cpu_residuals

        threads = threads_available() if totals.size >= PARALLEL_FROM else 1
        largest, (count, sums) = np.zeros(threads), np.zeros((2, threads), np.int64)
        root = cpu_residuals.survey(threads, totals, fixed, bits, largest, count, sums)
        return int(sums.sum()) / max(int(count.sum()), 1) / root / root
    free = xp.where(fixed, 0.0, totals)
    largest = float(free.max()) if free.size else 0.0
    root = math.ldexp(1.0, (bits - math.frexp(largest)[1]) // 2)
    total = integer_sum((free * root * root).astype(np.int64))
    return total / max(number_where(free > 0), 1) / root / root


def _integer_sums(graph: Graph) -> Array:
    weights = graph.weights
    if weights is not None and weights.dtype.kind == "f":
        return graph.row_weights()
    if graph.device == "gpu":
        return _by_a_gpu(graph) if sums_are_of_64_bits(graph) else graph.row_weights()
    # Numba takes longer to import than a small graph takes to build
    from glp_rapids.fraud.kernels import cpu_residuals

    threads = threads_available() if graph.indices.size >= PARALLEL_FROM else 1
    sums, beyond = np.empty(graph.number_of_vertices), np.zeros(threads, bool)
    cpu_residuals.totals(threads, *_arrays(graph), sums, beyond)
    return graph.row_weights() if beyond.any() else sums


def _arrays(graph: Graph) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the arrays of a graph as kernels of integer weights take them."""
    indices, weights = np.ascontiguousarray(graph.indices), graph.weights
    return (
        np.ascontiguousarray(graph.indptr, np.int64),
        indices.view(np.dtype(f"u{indices.dtype.itemsize}")),
        np.empty(0, np.int64) if weights is None else np.ascontiguousarray(weights),
    )


def sums_are_of_64_bits(graph: Graph) -> bool:
    """Tell whether 64 bits hold what the integer weights of any row add up to; kept."""
    if graph.weights is None or not graph.weights.size:
        return True
    return graph.keep(
        "row sums are of 64 bits",
        lambda: int(graph.weights.max()) * graph.largest_degree() < 2**63,
    )


def _by_a_gpu(graph: Graph) -> Array:
    # Numba takes longer to import than a small graph takes to build
    from glp_rapids.fraud.kernels import gpu_residuals
    from glp_rapids.jit.launch import launch

    xp = array_module(graph.indptr)
    weights = xp.empty(0, np.int64) if graph.weights is None else graph.weights
    sums, first_row = xp.zeros(graph.number_of_vertices, np.int64), gpu_residuals.first_rows(graph)
    threads = gpu_residuals.THREADS
    launch(
        gpu_residuals.build_totals(), -(-first_row.size // threads), threads, graph.indptr,
        graph.indices, weights, first_row, sums,
    )  # fmt: skip
    return sums.astype(np.float64)


def traded_inside(graph: Graph, rows: Array, group: Array) -> Array:
    """Sum, of some rows, the weights of entries to others of the same group; rows ascend.

    Weights are integers, and 64 bits hold all of them together.
    """
    if graph.device == "gpu":
        # Numba takes longer to import than a small graph takes to build
        from glp_rapids.fraud.kernels import gpu_traded

        return gpu_traded.traded_inside(graph, rows, group)
    # rows of hubs are long, and what is outside is not to take memory
    among = induced(graph, rows)
    return integer_sums(masked(among, inside(among, group)).weights, among.indptr)


def entries_of(graph: Graph, rows: Array) -> tuple[Array, Array, Array]:
    """List the entries of some rows: each one's row, as a place in ``rows``, the entry, offsets."""
    xp = array_module(graph.indptr)
    starts = graph.indptr[rows]
    offsets = segment_offsets(graph.indptr[rows + 1] - starts)
    of = segment_ids(offsets, np.int64, int(offsets[-1]))
    return of, xp.arange(of.size) - (offsets[:-1] - starts)[of], offsets
