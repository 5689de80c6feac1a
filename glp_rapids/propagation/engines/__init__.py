"""The engines by device, form of rows and strategy: the same calls, the same results."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

# What makes an engine, and the target that compiles for it.
Found = tuple[Callable[..., Any], Any]


def _cpu() -> Found:
    from glp_rapids.jit.target import cpu_target
    from glp_rapids.propagation.engines.cpu import CpuEngine

    return CpuEngine, cpu_target()


def _cpu_compressed() -> Found:
    from glp_rapids.jit.target import cpu_target
    from glp_rapids.propagation.engines.cpu_compressed import compressed_engine

    return compressed_engine, cpu_target()


def _gpu() -> Found:
    from glp_rapids.jit.cuda import gpu_target
    from glp_rapids.propagation.engines.gpu import PersistentEngine

    return PersistentEngine, gpu_target()


def _gpu_compressed() -> Found:
    from glp_rapids.jit.cuda import gpu_target
    from glp_rapids.propagation.engines.gpu_compressed import CompressedPersistentEngine

    return CompressedPersistentEngine, gpu_target()


def _decode_first() -> Found:
    from glp_rapids.jit.cuda import gpu_target
    from glp_rapids.propagation.baselines.decode_first import DecodeEngine

    return DecodeEngine, gpu_target()


def _baseline(strategy: str) -> Found:
    from glp_rapids.jit.cuda import gpu_target
    from glp_rapids.propagation.baselines.engine import STRATEGIES, BaselineEngine

    return partial(BaselineEngine, STRATEGIES[strategy]), gpu_target()


BASELINES = ("shared+warp", "shared", "global", "sort")

# By device and form of rows; nothing is imported before it is asked for. A CPU has one engine for
# each form, whatever the strategy.
ENGINES: dict[tuple[str, str], dict[str, Callable[[], Found]]] = {
    ("cpu", "plain"): {"auto": _cpu},
    ("cpu", "compressed"): {"auto": _cpu_compressed},
    ("gpu", "plain"): {"auto": _gpu, **{name: partial(_baseline, name) for name in BASELINES}},
    ("gpu", "compressed"): {"auto": _gpu_compressed, "decode": _decode_first},
}


def engine_of(device: str, form: str, strategy: str = "auto") -> Found:
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
    return engines[strategy]()
