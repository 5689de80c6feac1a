"""Clocks: whole calls, runs and single sweeps of label propagation on a CPU or a GPU."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from statistics import median
from typing import Any

from glp_rapids.device import DeviceName

POOL_AT_FIRST = 1 << 30  # bytes; a pool grows
FEWEST_TO_HALVE = 10  # sweeps; of fewer, none is like the others


@dataclass(frozen=True)
class Timing:
    """Medians in milliseconds, and the last result."""

    run_ms: float  # the loop and what it sets up, as the result's report says
    call_ms: float  # from graph to frame
    sweeps: int
    found: Any


@dataclass(frozen=True)
class Sweeps:
    """Milliseconds of the first sweep (None: unknown), a median later one, and the whole run."""

    first_ms: float | None
    median_ms: float
    timing: Timing


def synchronise(device: DeviceName) -> None:
    """Wait until the device has nothing left to do."""
    if device == "gpu":
        import cupy

        cupy.cuda.Device().synchronize()


@contextlib.contextmanager
def memory_pool() -> Iterator[None]:
    """Take the GPU's memory from a pool meanwhile: all that comes by RMM, as CuPy's with cuDF."""
    import cudf  # noqa: F401  (makes CuPy ask RMM)
    import rmm

    usual = rmm.mr.get_current_device_resource()
    rmm.mr.set_current_device_resource(rmm.mr.PoolMemoryResource(usual, POOL_AT_FIRST))
    try:
        yield
    finally:
        rmm.mr.set_current_device_resource(usual)


def clocked(call: Callable[[], Any], repeats: int, device: DeviceName) -> tuple[float, Any]:
    """Return the median milliseconds of a call after one that warms up, and its last result.

    With no repeats the call is done once.
    """
    milliseconds, found = [], None
    for _ in range(repeats + 1):
        found = None  # two results at a time need not fit
        synchronise(device)
        start = time.perf_counter()
        found = call()
        synchronise(device)
        milliseconds.append(1e3 * (time.perf_counter() - start))
    return median(milliseconds[1:] or milliseconds), found


def fresh(
    make: Callable[[], Any], call: Callable[[Any], Any], repeats: int, device: DeviceName
) -> float:
    """Return the median milliseconds of a first call on something new; the making is not timed."""
    milliseconds = []
    for _ in range(max(repeats, 1)):
        subject = make()
        synchronise(device)
        start = time.perf_counter()
        found = call(subject)
        synchronise(device)
        milliseconds.append(1e3 * (time.perf_counter() - start))
        del subject, found
    return median(milliseconds)


def timed(call: Callable[[], Any], repeats: int, device: DeviceName) -> Timing:
    """Time a run of label propagation several times after one that warms up."""
    runs = []

    def reported() -> Any:
        found = call()
        runs.append(found.attrs["glp"]["seconds"])
        return found

    call_ms, found = clocked(reported, repeats, device)
    return Timing(1e3 * median(runs[1:]), call_ms, found.attrs["glp"]["sweeps"], found)


def timed_sweeps(call: Callable[..., Any], repeats: int, device: DeviceName) -> Sweeps:
    """Time whole runs, runs half as long, and others sweep by sweep.

    A later sweep is what the second half of a run takes, divided. Sweep by sweep is known only of
    a run that is watched (``call`` takes the option ``progress``) and waits for the host after
    every sweep; what that costs a median sweep is taken off the first as well.
    """
    timing = timed(call, repeats, device)
    rounds = [_watched(call, device) for _ in range(repeats)]
    firsts = [first for first, _ in rounds if first is not None]
    # medians sweep by sweep, so that what disturbed one round disturbs one number in it
    later = [median(times) for times in zip(*(later for _, later in rounds), strict=True)]
    first = median(firsts) if firsts else None
    middle = median(later) if later else first
    if middle is None:
        return Sweeps(first, timing.run_ms / timing.sweeps, timing)
    if timing.sweeps >= FEWEST_TO_HALVE:
        half = timed(partial(call, max_iter=timing.sweeps // 2), repeats, device)
        true = (timing.run_ms - half.run_ms) / (timing.sweeps - half.sweeps)
        if 0 < true < middle:
            first = None if first is None else max(first - (middle - true), true)
            middle = true
    return Sweeps(first, middle, timing)


def _watched(call: Callable[..., Any], device: DeviceName) -> tuple[float | None, list[float]]:
    """Return the milliseconds of the first sweep and of each later one."""
    watch = Watch(device)
    call(progress=watch)
    first, *later = watch.milliseconds() or (None,)
    return first, later


class Watch(contextlib.AbstractContextManager):
    """As ``progress`` of a run: notes when its engine is ready, and when each sweep ends."""

    def __init__(self, device: DeviceName) -> None:
        self.device = device
        self.stamps: list[float] = []

    def milliseconds(self) -> list[float]:
        """Return what each sweep took."""
        return [after - before for before, after in pairwise(self.stamps)]

    def __call__(self, _: Any = None) -> None:
        synchronise(self.device)
        self.stamps.append(1e3 * time.perf_counter())

    def __enter__(self) -> None:
        self()

    def __exit__(self, *_: Any) -> None:
        pass
