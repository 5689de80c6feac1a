"""The engines of cores, trusses and triangles: the same methods on a CPU and on a GPU."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from glp_rapids.cohesion.engines.cpu import CpuEngine
    from glp_rapids.cohesion.engines.gpu import GpuEngine
    from glp_rapids.graph.graph import Graph
    from glp_rapids.graph.rows import CSR


def engine_for(graph: Graph, csr: CSR) -> CpuEngine | GpuEngine:
    """Return the engine for a graph and its simple CSR, which the graph keeps."""
    # Numba takes longer to import than a small graph takes to read, so each waits for its call.
    options = {}
    if graph.device == "cpu":
        from glp_rapids.cohesion.engines.cpu import CpuEngine as Engine
        from glp_rapids.cohesion.engines.cpu import oriented_of

        options["oriented"] = oriented_of(graph, csr)
    else:
        from glp_rapids.cohesion.engines.gpu import GpuEngine as Engine
    return graph.keep("cohesion engine", partial(Engine, csr.indptr, csr.indices, **options))
