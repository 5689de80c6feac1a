"""What the ego-network of a vertex costs an engine, estimated before it is looked at."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from glp_rapids.common.segments import integer_sums
from glp_rapids.device import array_module
from glp_rapids.graph.graph import Graph
from glp_rapids.graph.rows import CSR
from glp_rapids.multigpu.workers import Costs

Array = Any

ENTRIES_READ = "entries read"  # kept under this name
AT_ONCE = {"cpu": 1 << 20, "gpu": 1 << 25}  # entries, each of which takes some 12 bytes meanwhile
# What a unit should cost at the least, for a call not to be what costs most.
LEAST_COST = {"cpu": 1 << 16, "gpu": 1 << 22}
# What edges ** 1.5 make up of the cost of all trusses, for every part of the linear terms.
POWER_TO_LINEAR = {"cpu": 1.0, "gpu": 0.25}
# What a unit of those that are worked on together costs: so much, and so many times what `costs`
# estimates. Two H200 took 4.2, 7.8 and 19.8 ms for the 875 of the 4 M vertices of social, of which
# 1.5, 2 and 3.5 are the host's (k = 4); a unit of others 1.5, 1.6 and 3.0 ms and for every 10 ** 9
# of its costs 21.7, 24.9 and 27.9 ms.
TOGETHER = {"component": (7e7, 2.5), "core": (8e7, 4.6), "truss": (1.25e8, 6.5)}


def costs(
    graph: Graph, csr: CSR, vertices: Array, model: str, most_alone: int | None = None
) -> Costs:
    """Estimate what the vertices cost; those of more than ``most_alone`` members share a launch.

    Linear terms, for trusses also edges ** 1.5. The edges among the neighbours of u are found by
    reading, for each neighbour, the shorter of its row and that of u; so they are at most half of
    what is read. How the terms compare differs from graph to graph: with half of the whole for
    each, no unit is far too large by either.
    """
    read = entries_read(graph, csr)[vertices].astype(np.float64)
    degree = (csr.indptr[vertices + 1] - csr.indptr[vertices]).astype(np.float64)
    each = 10 + 8 * degree + read  # as measured on a CPU, in units of about 3 ns
    if model == "truss":
        xp = array_module(degree)
        power = (xp.minimum(degree * (degree - 1), read) / 2) ** 1.5
        share = POWER_TO_LINEAR[graph.device]
        each = each + power * (share * each.sum() / xp.maximum(power.sum(), 1))

    def together() -> Array:
        return csr.degree[vertices] > most_alone

    several = None if most_alone is None else together
    return Costs(each, LEAST_COST[graph.device], several, *TOGETHER[model])


def entries_read(graph: Graph, csr: CSR) -> Array:
    """Count for every vertex the entries read to find its ego-network; kept on the graph."""
    return graph.keep(ENTRIES_READ, partial(entries_read_of_rows, csr, csr.degree))


def entries_read_of_rows(rows: CSR, degree: Array) -> Array:
    """Count them for those vertices whose rows are there; ``degree``: of all vertices."""
    xp = array_module(rows.indptr)
    degree, sums = degree.astype(rows.indices.dtype), xp.zeros(rows.indptr.size - 1, np.int64)
    for first, last, some in rows.chunks(AT_ONCE[rows.device]):
        shorter = degree[first:last][some.row_indices()]
        xp.minimum(shorter, degree[some.indices], out=shorter)
        sums[first:last] = integer_sums(shorter, some.indptr)
    return sums
