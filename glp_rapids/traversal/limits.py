"""Where a graph is searched under a limit of memory: where it was asked for, or on the host."""

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

BYTES_A_VERTEX = 72  # that a search takes beside neighbour lists, offsets and result included


class Place(NamedTuple):
    """A graph, its engine, and the limit if a GPU gets its layers from the host."""

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
        There is none.
    """
    device = choose(edges.get("device"))
    stays = isinstance(graph, Graph) and graph.device == "gpu" and device == "gpu"
    made = as_graph(graph, **edges if stays else {**edges, "device": "cpu"})
    rows = made.rows(direction)
    parts = (rows.indices, rows.weights)
    lists = sum(part.nbytes for part in parts if part is not None)
    if "rows_in_order" in methods:
        lists *= 2  # layers hold them once more, in the order of the search
    beside = made.number_of_vertices * BYTES_A_VERTEX
    if lists + beside <= limit:
        here = where_searched(made.to(device), *methods)
        return Place(here, engine_for(here, direction), None)
    if device == "gpu" and not stays:
        if "rows_in_order" not in methods:
            return Place(made, engine_for(made, direction), None)
        if beside <= limit:
            from glp_rapids.traversal.engines.gpu_pinned import PinnedLayersEngine

            make = partial(PinnedLayersEngine, made, direction)
            engine = made.keep(("pinned layers engine", direction), make)
            return Place(made, engine, limit)
    needed = beside if device == "gpu" and not stays else lists + beside
    mend = ", or pass graph.to('cpu')" if stays else ""
    raise LackOfMemory(
        f"graph: memory_limit={limit:,} bytes is {needed - limit:,} too little to search "
        f"{made.number_of_vertices:,} vertices and {made.number_of_edges:,} entries on the "
        f"{device}: {beside:,} by vertex, {lists:,} for neighbour lists; raise it{mend}"
    )
