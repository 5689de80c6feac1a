"""What moves vertices, refines communities and contracts a level: an engine a device."""

from __future__ import annotations

from typing import Any


def _cpu() -> Any:
    from glp_rapids.communities.engines.cpu import CpuEngine

    return CpuEngine


def _gpu() -> Any:
    from glp_rapids.communities.engines.gpu import GpuEngine

    return GpuEngine


# By device; nothing is imported before it is asked for.
ENGINES = {"cpu": _cpu, "gpu": _gpu}


def engine_of(device: str) -> Any:
    """Return the class of the engine of a device."""
    return ENGINES[device]()
