"""The engines by device, form of rows and strategy: the same calls, the same results."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

Build = Callable[..., Any]  # what makes an engine of a workload, a compiled program and the state


def _cpu() -> Build:
    from glp_rapids.propagation.engines.cpu import CpuEngine

    return CpuEngine


def _cpu_compressed() -> Build:
    from glp_rapids.propagation.engines.cpu_compressed import compressed_engine

    return compressed_engine


def _gpu() -> Build:
    from glp_rapids.propagation.engines.gpu import PersistentEngine

    return PersistentEngine


def _gpu_compressed() -> Build:
    from glp_rapids.propagation.engines.gpu_compressed import CompressedPersistentEngine

    return CompressedPersistentEngine


def _decode_first() -> Build:
    from glp_rapids.propagation.baselines.decode_first import DecodeEngine

    return DecodeEngine


def _baseline(strategy: str) -> Build:
    from glp_rapids.propagation.baselines.engine import STRATEGIES, BaselineEngine

    return partial(BaselineEngine, STRATEGIES[strategy])


BASELINES = ("shared+warp", "shared", "global", "sort")

# By device and form of rows; nothing is imported before it is asked for. A CPU has one engine for
# each form, whatever the strategy.
ENGINES: dict[tuple[str, str], dict[str, Callable[[], Build]]] = {
    ("cpu", "plain"): {"auto": _cpu},
    ("cpu", "compressed"): {"auto": _cpu_compressed},
    ("gpu", "plain"): {"auto": _gpu, **{name: partial(_baseline, name) for name in BASELINES}},
    ("gpu", "compressed"): {"auto": _gpu_compressed, "decode": _decode_first},
}


def engine_of(device: str, form: str, strategy: str = "auto") -> tuple[Build, Any]:
    """Return what makes a device's engine for rows of a form, and the target that compiles for it.

    Raises
    ------
    ValueError
        There is no such strategy for this form of rows on a GPU.
    """
    engines = ENGINES[device, form]
    if device == "cpu":
        strategy = "auto"
    if strategy not in engines:
        choices = ", ".join(repr(choice) for choice in engines)
        raise ValueError(f"strategy of a {form} graph must be one of {choices}, not {strategy!r}")
    if device == "cpu":
        from glp_rapids.jit.target import cpu_target as target
    else:
        from glp_rapids.jit.cuda import gpu_target as target
    return engines[strategy](), target()
