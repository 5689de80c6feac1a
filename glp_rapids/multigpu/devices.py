"""``devices=``: what it may be where the devices of a call hold parts of one graph."""

from __future__ import annotations

from typing import Any

from glp_rapids.common.checks import is_integer, is_sequence, shown
from glp_rapids.device import DeviceName, gpu_available

Devices = tuple[int | str, ...]


def devices_of(devices: Any) -> Devices | None:
    """Check ``devices=``: numbers of GPUs, or "cpu" for each rank on the host.

    Raises
    ------
    TypeError
        It is no list, or names something that is neither.
    ValueError
        It is empty, mixes the two, names a GPU twice, or one that does not exist.
    """
    if devices is None:
        return None
    if not is_sequence(devices):
        raise TypeError(
            "devices must be a list, of numbers of GPUs or with a 'cpu' for each rank on the host, "
            f"not {shown(devices)}"
        )
    devices = list(devices)
    if not devices:
        raise ValueError("devices must name one at least, not []; None takes what there is")
    for device in devices:
        if not is_integer(device) and not (isinstance(device, str) and device == "cpu"):
            raise TypeError(f"devices must be numbers of GPUs, or 'cpu', not {shown(device)}")
    if all(device == "cpu" for device in devices):
        return tuple(devices)
    if "cpu" in devices:
        raise ValueError(f"devices must all be GPUs or all be 'cpu', not {shown(devices)}")
    if not gpu_available():
        raise ValueError(
            f"devices={devices}: no GPU can be used here (glp-rapids doctor says why); take 'cpu' "
            "for each rank on the host, or leave devices=None"
        )
    import cupy

    there = cupy.cuda.runtime.getDeviceCount()
    for device in devices:
        if not 0 <= device < there:
            raise ValueError(f"devices must be numbers of GPUs, in 0..{there - 1}, not {device}")
    if len(set(devices)) < len(devices):
        raise ValueError(f"devices must name each GPU once, not {devices}")
    return tuple(int(device) for device in devices)


def kind_of(devices: Devices) -> DeviceName:
    """Return the kind of device that they are: all are of one kind."""
    return "cpu" if devices[0] == "cpu" else "gpu"
