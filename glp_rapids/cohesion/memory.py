"""How much memory a call on a whole graph takes: said before it begins, by how much it is too much.

Figures from above of bytes beside the graph's own. On a GPU, the peak of CuPy's pool, calls on
com-dblp, cnr-2000, kron-18-16 and road-800 took 16.0 an entry, trusses 22.0, and structural
diversity 16.0 to 16.8, its batches of ego-networks apart. On a CPU, by which the resident set of a
process grew, those on rmat-17-16, web-300000 and road-700 took, beside 16 a vertex, 3 to 5 an entry
for core numbers, 8 to 18 for a core, 21 to 25 for triangles, 31 to 46 for trusses, 16 to 24 for
structural diversity.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from glp_rapids.device import LITTLE, memory_taken
from glp_rapids.graph.call_memory import check_room

if TYPE_CHECKING:
    from glp_rapids.graph.graph import Graph

AN_ENTRY = {
    "cpu": {
        "core_number": 6, "k_core": 19, "triangle_count": 26, "trussness": 48, "k_truss": 42,
        "structural_diversity": 26,
    },
    "gpu": {
        "core_number": 17, "k_core": 17, "triangle_count": 17, "trussness": 23, "k_truss": 23,
        "structural_diversity": 18,
    },
}  # fmt: skip
A_VERTEX = 16


def check_memory(function: str, graph: Graph, limit: int | None) -> None:
    """Raise if a call on a graph takes more than ``limit``, or than is free where it is None.

    Raises
    ------
    LackOfMemory
        It does; the message says by how much.
    """
    device, entries = graph.device, graph.number_of_edges * (2 if graph.directed else 1)
    weights = 0 if graph.weights is None else graph.weights.dtype.itemsize
    an_entry = AN_ENTRY[device][function] * graph.index_dtype.itemsize // 4
    needed = entries * (an_entry + weights) + A_VERTEX * graph.number_of_vertices
    if limit is not None:
        needed += memory_taken(*graph.rows("out").arrays())
    elif needed < LITTLE or graph.has("cohesion engine"):  # which another call could make
        return
    check_room(function, graph, device, needed, limit)
