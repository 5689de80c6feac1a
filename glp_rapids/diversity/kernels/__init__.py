"""The engines of structural diversity: the same methods on a CPU and on a GPU."""

from __future__ import annotations

from typing import TYPE_CHECKING

from glp_rapids.device import DeviceName
from glp_rapids.graph.graph import CSR

if TYPE_CHECKING:
    from glp_rapids.diversity.kernels.cpu_engine import CpuEngine
    from glp_rapids.diversity.kernels.gpu_engine import GpuEngine


def engine_of(
    csr: CSR, device: DeviceName, number: int | None = None, memory_limit: int | None = None
) -> CpuEngine | GpuEngine:
    """Give the engine for a simple undirected graph that lies on ``device`` (GPU ``number``).

    Numba takes longer to import than a small graph takes to read, so each is imported on demand.
    """
    if device == "cpu":
        from glp_rapids.diversity.kernels.cpu_engine import CpuEngine as Engine
    else:
        from glp_rapids.diversity.kernels.gpu_engine import GpuEngine as Engine
    return Engine(csr.indptr, csr.indices, number=number, memory_limit=memory_limit)
