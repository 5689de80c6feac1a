"""What moves vertices, refines communities and contracts a level: an engine a device."""

from __future__ import annotations

from typing import Any


def _cpu() -> Any:
    from glp_rapids.communities.engines.cpu import CpuEngine

    return CpuEngine


def _gpu() -> Any:
    from glp_rapids.communities.engines.gpu import GpuEngine

    return GpuEngine


# By device; nothing is imported before it is asked for. A graph on a device that is not here is
# computed on the host.
ENGINES = {"cpu": _cpu}

# Not to be used yet: its kernels were mended after racecheck found hazards in shared memory, and
# have not run on a GPU since. To come here they must agree in test_multilevel.py and
# test_contract.py there, and tests/sanitize_multilevel.py must be clean.
WAITING = {"gpu": _gpu}


def engine_of(device: str) -> Any:
    """Return the class of the engine of a device."""
    return ENGINES[device]()
