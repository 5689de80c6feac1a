"""Where a graph is searched under a limit of memory: where it was asked for, as far as it fits."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from glp_rapids.device import LackOfMemory, choose
from glp_rapids.graph.graph import Graph
from glp_rapids.ingest.read import as_graph
from glp_rapids.traversal.engines import engine_for, where_searched

if TYPE_CHECKING:
    from glp_rapids.graph.graph import Direction
    from glp_rapids.traversal.engines import Engine

# Bytes a vertex that a search takes beside neighbour lists, offsets and result included.
BESIDE_LISTS = {"bfs": 48, "sssp": 72, "rows_in_order": 48}


class Place(NamedTuple):
    """A graph, the engine that searches it, and the limit if its lists lie in host memory."""

    graph: Graph
    engine: Engine
    streams: int | None


def place_within(
    graph: Any, direction: Direction, edges: dict[str, Any], methods: tuple[str, ...], limit: int
) -> Place:
    """Find a place for a search that takes at most so many bytes there.

    Raises
    ------
    LackOfMemory
        There is none: not even what there is a vertex fits, or the lists cannot be pinned.
    """
    device = choose(edges.get("device"))
    stays = isinstance(graph, Graph) and graph.device == "gpu" and device == "gpu"
    made = as_graph(graph, **edges if stays else {**edges, "device": "cpu"})
    rows = made.rows(direction)
    parts = (rows.indices, rows.weights)
    lists = sum(part.nbytes for part in parts if part is not None)
    beside = made.number_of_vertices * max(BESIDE_LISTS.get(method, 0) for method in methods)
    if lists + beside <= limit:
        here = where_searched(made.to(device), *methods)
        return Place(here, engine_for(here, direction), None)
    pinnable = device == "gpu" and not stays and beside <= limit
    if pinnable:
        from glp_rapids.traversal.engines.gpu_pinned import PinnedGpuEngine

        if PinnedGpuEngine.serves(made):
            make = partial(PinnedGpuEngine, made, direction)
            engine = made.keep(("pinned traversal engine", direction), make)
            return Place(made, engine, limit)
    needed = beside if device == "gpu" and not stays else lists + beside
    mend = ", or pass graph.to('cpu'), whose lists are read from there" if stays else ""
    raise LackOfMemory(
        f"graph: memory_limit={limit:,} bytes is {needed - limit:,} too little to search "
        f"{made.number_of_vertices:,} vertices and {made.number_of_edges:,} entries on the "
        f"{device}: {beside:,} by vertex, {lists:,} for neighbour lists; raise it{mend}"
    )
