"""Where a graph is searched under a limit of memory: where it was asked for, or on the host."""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from glp_rapids.common.checks import shown
from glp_rapids.common.types import Direction
from glp_rapids.device import LackOfMemory, choose, memory_taken
from glp_rapids.graph.graph import Graph
from glp_rapids.ingest.read import as_graph
from glp_rapids.outofcore.double_buffer import SLOTS
from glp_rapids.traversal.engines import engine_for, where_searched

if TYPE_CHECKING:
    from glp_rapids.device import DeviceName
    from glp_rapids.traversal.engines import Engine

BYTES_A_VERTEX = 72  # that a search takes beside neighbour lists, offsets and result included
OF_FILES = 48  # the same on a CPU where layers are in files; measured: 25 to 34 to make them


class Place(NamedTuple):
    """A graph, its engine, and the device that works.

    ``streams``: bytes that layers and what works on them may take where they come in strips, None
    where they are there as a whole; ``folder``: where their files are made, None if in memory.
    """

    graph: Graph
    engine: Engine
    device: DeviceName
    streams: int | None = None
    folder: str | None = None


def checked_folder(folder: Any) -> str | None:
    """Return the path of a folder that there is, as text; None stays None."""
    if folder is None:
        return None
    if not isinstance(folder, str | os.PathLike):
        raise TypeError(f"folder must be a str, a path or None, not {shown(folder)}")
    path = os.fsdecode(folder)
    if not os.path.isdir(path):
        raise ValueError(f"folder must be a folder that there is, not {shown(path)}; make it")
    return path


def place_within(
    graph: Any, direction: Direction, edges: dict[str, Any], methods: tuple[str, ...], limit: int,
    folder: str | None,
) -> Place:  # fmt: skip
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
    parts = [part for part in (rows.indices, rows.weights) if part is not None]
    copied = sum(part.nbytes for part in parts)
    # lists in a mapped file take no memory where they are searched
    own = memory_taken(*parts) if device == "cpu" else copied
    # layers hold them once more, in the order of the search
    lists = own + copied if "rows_in_order" in methods else own
    beside = made.number_of_vertices * BYTES_A_VERTEX
    if lists + beside <= limit:
        here = where_searched(made.to(device), *methods)
        return Place(here, engine_for(here, direction), here.device)
    if device == "gpu" and not stays:
        if "rows_in_order" not in methods:
            return Place(made, engine_for(made, direction), made.device)
        # the host searches; what relaxes its layers there takes less by vertex
        from glp_rapids.traversal.engines.gpu_layers import OF_RELAXING
        from glp_rapids.traversal.engines.gpu_pinned import PinnedLayersEngine

        beside = made.number_of_vertices * OF_RELAXING
        if beside <= limit:
            make = partial(PinnedLayersEngine, made, direction)
            engine = made.keep(("pinned layers engine", direction), make)
            return Place(made, engine, "gpu", limit)
        lists = 0  # they come in strips
    mend = ", or pass graph.to('cpu')" if stays else ""
    if device == "cpu" and "rows_in_order" in methods:
        beside = made.number_of_vertices * OF_FILES
        # a row is read as a whole, one ahead of the other
        longest = SLOTS * rows.largest_degree() * sum(part.dtype.itemsize for part in parts)
        lists, mend = own + longest, ", or pass folder= to layered_edges, for files"
        if folder is not None:
            if lists + beside <= limit:
                return Place(made, engine_for(made, direction), "cpu", limit - own, folder)
            mend = ", or pass a graph whose lists lie in mapped files" if own else ""
    needed = lists + beside
    raise LackOfMemory(
        f"graph: memory_limit={limit:,} bytes is {needed - limit:,} too little to search "
        f"{made.number_of_vertices:,} vertices and {made.number_of_edges:,} entries on the "
        f"{device}: {beside:,} by vertex, {lists:,} for neighbour lists; raise it{mend}"
    )
