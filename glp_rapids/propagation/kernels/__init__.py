"""The engines by device and strategy: the same calls and results, in CPU code and in CUDA."""

from __future__ import annotations

from functools import partial
from typing import Any


def _cpu() -> tuple[Any, Any]:
    from glp_rapids.propagation.compilation import cpu_target
    from glp_rapids.propagation.kernels.cpu_engine import CpuEngine

    return CpuEngine, cpu_target()


def _auto() -> tuple[Any, Any]:
    from glp_rapids.propagation.kernels.auto import AutoEngine, gpu_target

    return AutoEngine, gpu_target()


def _baseline(strategy: str) -> tuple[Any, Any]:
    from glp_rapids.propagation.kernels.baselines import STRATEGIES, BaselineEngine, gpu_target

    return partial(BaselineEngine, STRATEGIES[strategy]), gpu_target()


GPU_ENGINES = {
    "auto": _auto,
    "shared+warp": partial(_baseline, "shared+warp"),
    "shared": partial(_baseline, "shared"),
    "global": partial(_baseline, "global"),
    "sort": partial(_baseline, "sort"),
}


def engine_of(device: str, strategy: str = "auto") -> tuple[Any, Any]:
    """Give what makes a device's engine, and the target that compiles for it.

    Nothing is imported before. A CPU has one engine, whatever the strategy.
    """
    return GPU_ENGINES[strategy]() if device == "gpu" else _cpu()
