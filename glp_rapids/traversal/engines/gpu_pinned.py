"""Searches on a GPU in a graph whose neighbour lists stay in host memory.

They are pinned there, and kernels read a row when they come to it, over the bus: a breadth-first
search reads every row once, for `sssp` as often as a vertex is worked on. Nothing is searched from
the other side, which would read rows again, and predecessors take one pass over all lists in order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from glp_rapids.device import LackOfMemory, module_on, to_host
from glp_rapids.graph.rows import CSR
from glp_rapids.graph.simple import rows_of_vertices
from glp_rapids.outofcore import pinned
from glp_rapids.traversal.engines.gpu import GpuEngine

if TYPE_CHECKING:
    from glp_rapids.graph.graph import Graph

Array = Any


class PinnedGpuEngine(GpuEngine):
    """Searches in one graph in one direction, whose lists a GPU reads from host memory."""

    @staticmethod
    def serves(graph: Graph) -> bool:
        """Tell whether a graph on the host can be searched from a GPU."""
        return GpuEngine.serves(graph)

    def _placed(self, rows: CSR) -> CSR:
        xp = module_on("gpu")
        self._lists = [_pinned(part) for part in (rows.indices, rows.weights) if part is not None]
        if not all(part.pinned for part in self._lists):
            raise LackOfMemory(
                "graph: its lists do not fit memory_limit, and the system lets nobody pin so much "
                "host memory (ulimit -l?), from where a GPU would read them; use device='cpu'"
            )
        size = rows.indices.size
        parts = [part.on_device(xp)[:size] for part in self._lists]
        return CSR(xp.asarray(rows.indptr), parts[0], parts[1] if len(parts) > 1 else None)

    def _reverse(self) -> CSR | None:
        return None

    def rows_in_order(self, order: Array) -> tuple[Array, Array, Array | None]:
        """Copy the rows of some vertices one after another, in pinned memory of the host."""
        rows = self._graph().rows(self._direction)
        offsets, _, place = rows_of_vertices(rows, to_host(order))

        def copied(values: np.ndarray | None) -> np.ndarray | None:
            if values is None:
                return None
            room = pinned.empty(place.size, values.dtype).array[: place.size]
            np.take(values, place, out=room)
            return room

        return offsets, copied(rows.indices), copied(rows.weights)


def _pinned(values: np.ndarray) -> pinned.HostArray:
    """Copy an array into pinned memory, if there is some."""
    room = pinned.empty(values.size, values.dtype)
    room.array[: values.size] = values
    return room
