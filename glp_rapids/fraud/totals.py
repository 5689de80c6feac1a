"""What the accounts of a graph trade: the sum of each row's weights, without self-loops."""

from __future__ import annotations

from typing import Any

import numpy as np

from glp_rapids.graph.graph import Graph
from glp_rapids.jit.parallel import threads_available

Array = Any
PARALLEL_FROM = 1 << 15  # entries


def row_weights(graph: Graph) -> Array:
    """Sum the weights of each row as the graph does, in less time where it can; kept.

    Of 5.5 million integers on two busy cores: 16 ms, the graph's way 42.
    """
    return graph.keep("row weights", lambda: _integer_sums(graph))


def _integer_sums(graph: Graph) -> Array:
    weights = graph.weights
    if graph.device == "gpu" or (weights is not None and weights.dtype.kind == "f"):
        return graph.row_weights()
    # Numba takes longer to import than a small graph takes to build
    from glp_rapids.fraud.kernels import cpu_residuals

    threads = threads_available() if graph.indices.size >= PARALLEL_FROM else 1
    sums, beyond = np.empty(graph.number_of_vertices), np.zeros(threads, bool)
    indices = np.ascontiguousarray(graph.indices)
    cpu_residuals.totals(
        threads, np.ascontiguousarray(graph.indptr, np.int64),
        indices.view(np.dtype(f"u{indices.dtype.itemsize}")),
        np.empty(0, np.int64) if weights is None else np.ascontiguousarray(weights), sums, beyond,
    )  # fmt: skip
    return graph.row_weights() if beyond.any() else sums
