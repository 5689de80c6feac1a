"""What cores, trusses and triangles of a whole graph have in common, as cuGraph names them."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from glp_rapids.cohesion.engines import engine_for
from glp_rapids.cohesion.memory import check_memory
from glp_rapids.common.sizes import as_bytes
from glp_rapids.device import array_module, memory_in_use
from glp_rapids.frames.facts import set_attributes
from glp_rapids.frames.kinds import to_frame
from glp_rapids.graph.simple import simple, weights
from glp_rapids.ingest.read import as_graph

if TYPE_CHECKING:
    from glp_rapids.frames.kinds import Frame
    from glp_rapids.graph.graph import Graph
    from glp_rapids.graph.rows import CSR
    from glp_rapids.ingest.options import EdgeOptions

Array = Any


class WholeGraph:
    """One call: the graph, its simple CSR and an engine for it, and the frame that comes out."""

    def __init__(
        self, function: str, graph: Any, symmetrize: bool, memory_limit: int | str | None,
        edges: EdgeOptions,
    ) -> None:  # fmt: skip
        limit = as_bytes("memory_limit", memory_limit)
        self.graph: Graph = as_graph(graph, **edges)
        check_memory(function, self.graph, limit)
        self._begin = time.perf_counter()
        self.csr: CSR = simple(self.graph, symmetrize)
        self.engine = engine_for(self.graph, self.csr)
        self.xp = array_module(self.csr.indptr)
        self._batches = self.engine.batches

    def reported(self, frame: Frame, **facts: Any) -> Frame:
        """Attach facts to the result, and those that all calls have in common."""
        device = self.graph.device
        facts |= {
            "device": device,
            "seconds": time.perf_counter() - self._begin,
            "batches": self.engine.batches - self._batches,
            "peak_memory": memory_in_use(device),
        }
        return set_attributes(frame, facts)

    def edge_frame(
        self,
        least: int = 0,
        *,
        weighted: bool = False,
        columns: dict[str, Array] | None = None,
        **values: Array,
    ) -> Frame:
        """Make a frame ``src, dst`` of edges, each once, the smaller end first.

        Parameters
        ----------
        least, values
            Which ones, as ``edges`` of the engine takes it; by default all.
        weighted
            Add the column ``weight`` if the graph has weights.
        columns
            Further columns, one value an entry, of which that of the smaller end counts.
        """
        columns = dict(columns or {})
        if weighted and self.graph.weights is not None:
            columns["weight"] = weights(self.graph)
        source, destination, entry = self.engine.edges(least, **values, place=bool(columns))
        external = self.graph.external_columns
        return to_frame(
            {
                **external(source, "src"),
                **external(destination, "dst"),
                **{name: of_entry[entry] for name, of_entry in columns.items()},
            },
            self.graph.vertices.kind,
            copy=False,
        )

    def level(self, k: int) -> int:
        """Clamp k to just beyond what a graph of this size can have."""
        return min(int(k), self.graph.number_of_vertices + 1)
