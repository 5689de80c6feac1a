"""The vertex ordering of layered label propagation (Boldi et al., WWW 2011, section 5).

Every layer sorts the vertices by cluster: a cluster comes where the vertex that its label started
from stands so far, and the vertices inside a cluster as they stand. Neighbours end up side by
side, so lists of neighbours are made of small gaps and long runs, which a code for graphs needs.

What differs from the paper is measured on shuffled graphs by the size of plain CGR (minimum
interval 4, zeta_3): bits an entry of cnr-2000 and of uk-2007-100k, with the paper's gammas. It
starts from a random order (4.13, 3.67); here vertices come by falling degree, which inside the
finest clusters sets the busy ones apart (3.68, 2.61). With degrees doing that, layers finer than
2**-3 only cost, and every other power of two will do (3.62, 2.46, by six layers for twelve). The
layers come finest first, so that the coarsest decides first; the other way round: 4.07, 3.13.
"""

from __future__ import annotations

from typing import Any

from glp_rapids.device import array_module, module_on
from glp_rapids.graph.rows import Rows

Array = Any


def by_degree(rows: Rows) -> Array:
    """List the vertices, most entries first; of equals the smaller index."""
    return module_on(rows.device).argsort(-rows.degree, kind="stable")


def with_layer(order: Array, labels: Array) -> Array:
    """List the vertices cluster after cluster, stable in both: `order` lists them so far.

    A label is the vertex that it came from, and a cluster comes where that vertex stands.
    """
    leader = positions(order, labels.dtype)[labels[order]]
    return order[array_module(order).argsort(leader, kind="stable")]


def positions(order: Array, dtype: Any) -> Array:
    """Invert a list of all vertices: the place of each."""
    xp = array_module(order)
    place = xp.empty(order.size, dtype=dtype)
    place[order] = xp.arange(order.size, dtype=dtype)
    return place
