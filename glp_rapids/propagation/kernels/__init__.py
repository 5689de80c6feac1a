"""The engines by device: the same two calls, in CPU code and in CUDA."""

from __future__ import annotations

from typing import Any


def engine_of(device: str, strategy: str = "auto") -> tuple[type, Any]:
    """Give a device's engine and the target that compiles for it; nothing is imported before."""
    if device == "gpu":
        from glp_rapids.propagation.kernels.gpu import GpuEngine, gpu_target

        return GpuEngine, gpu_target()
    from glp_rapids.propagation.compilation import cpu_target
    from glp_rapids.propagation.kernels.cpu_engine import CpuEngine

    return CpuEngine, cpu_target()
