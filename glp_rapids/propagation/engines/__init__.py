"""The engines by device and strategy: the same calls and results, in CPU code and in CUDA."""

from __future__ import annotations

from functools import partial
from typing import Any


def _cpu() -> tuple[Any, Any]:
    from glp_rapids.jit.target import cpu_target
    from glp_rapids.propagation.engines.cpu import CpuEngine

    return CpuEngine, cpu_target()


def _auto() -> tuple[Any, Any]:
    from glp_rapids.propagation.engines.gpu import AutoEngine, gpu_target

    return AutoEngine, gpu_target()


def _baseline(strategy: str) -> tuple[Any, Any]:
    from glp_rapids.propagation.baselines.engine import STRATEGIES, BaselineEngine, gpu_target

    return partial(BaselineEngine, STRATEGIES[strategy]), gpu_target()


def _compressed_on_cpu() -> tuple[Any, Any]:
    from glp_rapids.jit.target import cpu_target
    from glp_rapids.propagation.engines.cpu_compressed import compressed_engine

    return compressed_engine, cpu_target()


def _compressed_auto() -> tuple[Any, Any]:
    from glp_rapids.propagation.engines.gpu_compressed import CompressedEngine, gpu_target

    return CompressedEngine, gpu_target()


def _compressed_decode() -> tuple[Any, Any]:
    from glp_rapids.propagation.engines.gpu_compressed import DecodeEngine, gpu_target

    return DecodeEngine, gpu_target()


GPU_ENGINES = {
    "auto": _auto,
    "shared+warp": partial(_baseline, "shared+warp"),
    "shared": partial(_baseline, "shared"),
    "global": partial(_baseline, "global"),
    "sort": partial(_baseline, "sort"),
}


# Those for compressed graphs: "auto" decodes what a sweep needs, "decode" everything beforehand.
COMPRESSED_GPU_ENGINES = {"auto": _compressed_auto, "decode": _compressed_decode}


def engine_of(device: str, strategy: str = "auto", compressed: bool = False) -> tuple[Any, Any]:
    """Give what makes a device's engine, and the target that compiles for it.

    Nothing is imported before. A CPU has one engine for plain and one for compressed graphs,
    whatever the strategy.
    """
    if device == "cpu":
        return _compressed_on_cpu() if compressed else _cpu()
    engines = COMPRESSED_GPU_ENGINES if compressed else GPU_ENGINES
    if strategy not in engines:
        sort = "a compressed" if compressed else "a plain"
        choices = ", ".join(repr(choice) for choice in engines)
        raise ValueError(f"strategy of {sort} graph must be one of {choices}, not {strategy!r}")
    return engines[strategy]()
