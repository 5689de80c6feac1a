"""The engines of structural diversity: the same methods on a CPU and on a GPU."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from glp_rapids.common.segments import segment_offsets
from glp_rapids.device import DeviceName

if TYPE_CHECKING:
    from glp_rapids.diversity.engines.cpu import CpuEgoEngine
    from glp_rapids.diversity.engines.gpu import GpuEgoEngine
    from glp_rapids.graph.graph import Graph
    from glp_rapids.graph.rows import CSR

Array = Any


def engine_of(
    csr: CSR,
    device: DeviceName,
    number: int | None = None,
    memory_limit: int | None = None,
    **options: Any,
) -> CpuEgoEngine | GpuEgoEngine:
    """Make the engine for a simple undirected graph that lies on ``device`` (GPU ``number``).

    Numba takes longer to import than a small graph takes to read, so each is imported on demand.
    """
    if device == "cpu":
        from glp_rapids.diversity.engines.cpu import CpuEgoEngine as Engine
    else:
        from glp_rapids.diversity.engines.gpu import GpuEgoEngine as Engine
    options |= {"number": number, "memory_limit": memory_limit}
    return Engine(csr.indptr, csr.indices, **options)


def engine_for(
    graph: Graph, csr: CSR, number: int | None = None, memory_limit: int | None = None
) -> CpuEgoEngine | GpuEgoEngine:
    """Return an engine for a graph and its simple CSR: kept on the graph, or new with a limit."""
    options = {}
    if graph.device == "cpu":
        from glp_rapids.cohesion.engines.cpu import oriented_of

        options["oriented"] = oriented_of(graph, csr)
    make = partial(engine_of, csr, graph.device, number, memory_limit, **options)
    return make() if memory_limit else graph.keep(("diversity engine", number), make)


def ego_offsets(indptr: Array, vertices: Array) -> Array:
    """Number the members of ego-networks side by side: where each begins, one more than there are.

    Member j of the ego-network of u is the j-th entry of the row of u.
    """
    return segment_offsets(indptr[vertices + 1] - indptr[vertices])
