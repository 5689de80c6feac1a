"""The engines by device, way and strategy: the same calls, the same results."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from glp_rapids.multigpu.devices import Devices, kind_of
from glp_rapids.propagation.ways import WAYS

Build = Callable[..., Any]  # what makes an engine of a workload, a compiled program and the state


def _cpu() -> Build:
    from glp_rapids.propagation.engines.cpu_frontier import engine_for

    return engine_for


def _cpu_packed() -> Build:
    from glp_rapids.propagation.engines.cpu_streamed import packed_engine

    return packed_engine


def _cpu_streamed() -> Build:
    from glp_rapids.propagation.engines.cpu_streamed import StreamedCpuEngine

    return StreamedCpuEngine


def _gpu() -> Build:
    from glp_rapids.propagation.engines.gpu_frontier import engine_for

    return engine_for


def _gpu_compressed() -> Build:
    from glp_rapids.propagation.engines.gpu_compressed import CompressedPersistentEngine

    return CompressedPersistentEngine


def _gpu_streamed() -> Build:
    from glp_rapids.propagation.engines.gpu_streamed import StreamedGpuEngine

    return StreamedGpuEngine


def _gpu_streamed_packed() -> Build:
    from glp_rapids.propagation.engines.gpu_streamed_packed import StreamedPackedGpuEngine

    return StreamedPackedGpuEngine


def _hybrid() -> Build:
    from glp_rapids.propagation.engines.hybrid import HybridEngine

    return HybridEngine


def _decode_first() -> Build:
    from glp_rapids.propagation.baselines.decode_first import DecodeEngine

    return DecodeEngine


def _baseline(strategy: str) -> Build:
    from glp_rapids.propagation.baselines.engine import STRATEGIES, BaselineEngine

    return partial(BaselineEngine, STRATEGIES[strategy])


BASELINES = ("shared+warp", "shared", "global", "sort")

# By device and way (`ways`); nothing is imported before it is asked for. A CPU has one engine for
# each way, whatever the strategy.
ENGINES: dict[tuple[str, str], dict[str, Callable[[], Build]]] = {
    ("cpu", "plain"): {"auto": _cpu},
    ("cpu", "packed"): {"auto": _cpu_packed},
    ("cpu", "streamed packed"): {"auto": _cpu_streamed},
    ("cpu", "streamed plain"): {"auto": _cpu_streamed},
    ("gpu", "plain"): {"auto": _gpu, **{name: partial(_baseline, name) for name in BASELINES}},
    ("gpu", "streamed plain"): {"auto": _gpu_streamed},
    ("gpu", "streamed packed"): {"auto": _gpu_streamed_packed},
    ("gpu", "hybrid"): {"auto": _hybrid},
    ("gpu", "packed"): {"auto": _gpu_compressed, "decode": _decode_first},
}


def _partitioned() -> Build:
    from glp_rapids.propagation.engines.partitioned import PartitionedEngine

    return PartitionedEngine


def _partitioned_gpu() -> Build:
    from glp_rapids.propagation.engines.partitioned_gpu import PartitionedGpuEngine

    return PartitionedGpuEngine


def _partitioned_streams() -> Build:
    from glp_rapids.propagation.engines.partitioned_streams import PartitionedStreamsEngine

    return PartitionedStreamsEngine


def _partitioned_packed_streams() -> Build:
    from glp_rapids.propagation.engines.partitioned_streams import PartitionedPackedStreamsEngine

    return PartitionedPackedStreamsEngine


# What lets several devices of a kind share a graph, by the way its lists are held.
SHARED: dict[tuple[str, str], Callable[[], Build]] = {
    ("cpu", "plain"): _partitioned,
    ("gpu", "plain"): _partitioned_gpu,
    ("gpu", "streamed plain"): _partitioned_streams,
    ("gpu", "streamed packed"): _partitioned_packed_streams,
}


def engine_on(devices: Devices, way: str) -> Build:
    """Return what makes the engine of a run on several devices."""
    return partial(SHARED[kind_of(devices), way](), devices=devices)


def engine_of(device: str, way: str, strategy: str = "auto") -> tuple[Build, Any]:
    """Return what makes a device's engine for a way, and the target that compiles for it.

    Raises
    ------
    ValueError
        There is no such strategy for this way on a GPU.
    """
    engines = ENGINES[device, way]
    if device == "cpu":
        strategy = "auto"
    if strategy not in engines:
        choices, form = ", ".join(repr(choice) for choice in engines), WAYS[way].form
        raise ValueError(f"strategy of a {form} graph must be one of {choices}, not {strategy!r}")
    if device == "cpu":
        from glp_rapids.jit.target import cpu_target as target
    else:
        from glp_rapids.jit.cuda import gpu_target as target
    return engines[strategy](), target()
