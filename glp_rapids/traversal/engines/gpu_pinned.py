"""Layers of a graph in host memory that a GPU works on, as far as they do not fit there.

The graph is searched on the host. Its layers are pinned there, and come to the GPU in strips when
they are relaxed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from glp_rapids.common.types import Direction
from glp_rapids.device import module_on, to_host
from glp_rapids.graph.simple import rows_of_vertices
from glp_rapids.outofcore import pinned
from glp_rapids.traversal.engines import Lists, Relaxed
from glp_rapids.traversal.engines.cpu import CpuEngine
from glp_rapids.traversal.engines.gpu_layers import relax

if TYPE_CHECKING:
    from glp_rapids.graph.graph import Graph


class PinnedLayersEngine:
    """Searches on the host, and relaxes layers on a GPU."""

    def __init__(self, graph: Graph, direction: Direction) -> None:
        self._host, self._rows = CpuEngine(graph, direction), graph.rows(direction)
        self.bfs, self.sssp = self._host.bfs, self._host.sssp

    def rows_in_order(self, order: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """Copy the rows of some vertices one after another, into pinned memory."""
        offsets, _, place = rows_of_vertices(self._rows, order)

        def copied(values: np.ndarray | None) -> np.ndarray | None:
            if values is None:
                return None
            room = pinned.empty(place.size, values.dtype).array[: place.size]
            np.take(values, place, out=room)
            return room

        return offsets, copied(self._rows.indices), copied(self._rows.weights)

    def count_paths(self, lists: Lists, starts: np.ndarray, level: np.ndarray) -> np.ndarray:
        """Count the paths of fewest edges to every vertex, on the host."""
        return self._host.count_paths(lists, starts, level)

    def relax(self, lists: Lists, starts: np.ndarray, cutoff: int | float) -> Relaxed:
        """Relax layer after layer until nothing changes."""
        xp = module_on("gpu")
        found = relax(xp, lists, self._rows.number_of_vertices, starts, cutoff)
        return found._replace(distance=to_host(found.distance))

    def predecessors(self, starts: np.ndarray, distance: Any) -> np.ndarray:
        """Find the predecessors of `sssp` for distances that are known, on the host."""
        return self._host.predecessors(starts, distance)
