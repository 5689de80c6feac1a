"""What accounts trade within their groups, on a GPU: the accounts are few, in a graph of many.

Launch: a warp's worth of threads an account. Degrees: any. Shared memory: none. Registers: 31.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from glp_rapids.device import array_module
from glp_rapids.graph.graph import Graph
from glp_rapids.jit.cuda import cuda
from glp_rapids.jit.items import ItemKernel, item_of_thread
from glp_rapids.jit.primitives import lower_bound

Array = Any
LANES = 32


def traded_inside(graph: Graph, rows: Array, group: Array) -> Array:
    """Sum weights between rows of one group; see `totals.traded_inside`."""
    sums = array_module(rows).zeros(rows.size, np.int64)
    _add_inside(
        LANES * rows.size, graph.indptr, graph.indices, graph.weights, rows, group, sums
    )  # fmt: skip
    return sums


@ItemKernel
def _add_inside(indptr, indices, weights, rows, group, sums):
    item = item_of_thread()
    place, lane = item // LANES, item % LANES
    if place < rows.size:
        row, mine, total = rows[place], group[place], np.int64(0)
        for entry in range(indptr[row] + lane, indptr[row + 1], LANES):
            other = np.int64(indices[entry])
            found = lower_bound(rows, 0, rows.size, other)
            if (
                other != row
                and found < rows.size
                and rows[found] == other
                and group[found] == mine
            ):
                total += np.int64(weights[entry])
        if total != 0:
            cuda.atomic.add(sums, place, total)
