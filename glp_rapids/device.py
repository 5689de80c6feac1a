"""The one place that knows GPUs: is there one, which array module, how arrays travel.

Everything else asks here, so ``import glp_rapids`` loads no GPU library and a machine whose
libraries are installed but whose GPU is missing runs on the CPU.
"""

from __future__ import annotations

import contextlib
import functools
import mmap
import os
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, NamedTuple

import numpy as np

DeviceName = Literal["cpu", "gpu"]

# Bytes: what takes less does not look how much is free, which takes a sixth of a small run's time.
LITTLE = 64 << 20

_cuda_of_parent = False


@functools.cache
def _gpu_problem() -> str | None:
    """Say why no GPU can be used, or None when one can."""
    if _cuda_of_parent:
        return "CUDA does not work in a process forked after CUDA began; spawn processes instead"
    try:
        import cupy
    except ImportError as error:
        return f"CuPy does not import: {error}"
    try:
        if cupy.cuda.runtime.getDeviceCount() < 1:
            return "CuPy sees no CUDA device"
    except cupy.cuda.runtime.CUDARuntimeError as error:
        return f"CuPy finds no usable CUDA device: {error}"
    try:
        from numba import cuda
    except ImportError as error:
        return f"numba-cuda does not import: {error}"
    if not cuda.is_available():
        return "numba-cuda sees no CUDA device"
    return None


def _lose_cuda() -> None:
    """Note, in a forked process, that its parent used CUDA: calls here would fail or hang."""
    global _cuda_of_parent
    if _gpu_problem.cache_info().currsize and _gpu_problem() is None:
        _cuda_of_parent = True
        _gpu_problem.cache_clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_lose_cuda)


def gpu_available() -> bool:
    """Tell whether a CUDA device, CuPy and numba-cuda are all usable here.

    Returns
    -------
    bool
        True only if a device answers; that the libraries import is not enough.

    Examples
    --------
    >>> from glp_rapids.device import gpu_available
    >>> gpu_available() in (True, False)
    True
    """
    return _gpu_problem() is None


def choose(device: DeviceName | None) -> DeviceName:
    """Resolve a caller's ``device=``: None means the GPU where one is usable."""
    if device is None:
        return "gpu" if gpu_available() else "cpu"
    if not isinstance(device, str) or device not in ("cpu", "gpu"):
        raise ValueError(f"device must be 'cpu', 'gpu' or None, not {device!r:.80}")
    if device == "gpu" and (problem := _gpu_problem()):
        raise ValueError(
            f"device='gpu' but no GPU can be used ({problem}); "
            "run `glp-rapids doctor`, or leave device=None"
        )
    return device


def array_module(*arrays: Any) -> ModuleType:
    """Return numpy or cupy, by the type of the arrays; cupy is never imported for this."""
    cupy = sys.modules.get("cupy")
    kind = getattr(cupy, "ndarray", None)  # not there yet while another thread imports it
    if kind is not None:
        for array in arrays:  # hundreds of times a tick: without a generator
            if isinstance(array, kind):
                return cupy
    return np


def device_of(array: Any) -> DeviceName:
    """Tell where an array lives."""
    return "cpu" if array_module(array) is np else "gpu"


def module_on(device: DeviceName) -> ModuleType:
    """Return the module whose arrays live on a device: numpy or cupy."""
    if device == "cpu":
        return np
    import cupy

    return cupy


def to_host(array: Any) -> np.ndarray:
    """Bring an array to the host; one that is there already is not copied."""
    return array.get() if device_of(array) == "gpu" else np.asarray(array)


def to_device(array: Any, device: DeviceName) -> Any:
    """Bring an array to ``device``; one that is there already is not copied."""
    if device == "cpu":
        return to_host(array)
    import cupy

    return cupy.asarray(array)


def overwrite(array: Any, values: np.ndarray) -> None:
    """Write values of the host over all of an array, in the order of the current stream.

    On a GPU that is one copy: to bring them there first and then over takes twice as long.
    """
    if device_of(array) == "cpu":
        array[:] = values
        return
    import cupy

    array.set(values, stream=cupy.cuda.get_current_stream())


def any_true(condition: Any) -> bool:
    """Tell whether any of an array of bools is true.

    CuPy's own `any` is a reduction by CUB, which it compiles at the first use on a machine: in 3.8
    s, more than half of all that a first call has it compile; this took 0.2 s (both busy machines).
    """
    if device_of(condition) == "cpu":
        return bool(condition.any())
    import cupy

    found = cupy.zeros(1, dtype=np.int32)
    noted("bool", "value", "glp_any_true")(condition, found)
    return bool(found[0])


def all_true(condition: Any) -> bool:
    """Tell whether all of an array of bools are true, as `any_true` does."""
    if device_of(condition) == "cpu":
        return bool(condition.all())
    import cupy

    found = cupy.zeros(1, dtype=np.int32)
    noted("bool", "!value", "glp_any_false")(condition, found)
    return not bool(found[0])


def any_nan(arrays: list[Any]) -> bool:
    """Tell whether any of the arrays of a GPU holds NaN; several take one wait for the answer."""
    import cupy

    found = None
    for array in arrays:
        if array.dtype.kind == "f":
            found = cupy.zeros(1, dtype=np.int32) if found is None else found
            noted("T", "isnan(value)", "glp_any_nan")(array, found)
    return found is not None and bool(found[0])


@functools.cache
def noted(dtype: str, condition: str, name: str) -> Any:
    """Compile what sets ``found[0]`` to 1 if a condition holds of one ``value`` of an array."""
    import cupy

    operation = f"if ({condition}) found[0] = 1"
    return cupy.ElementwiseKernel(f"{dtype} value", "raw int32 found", operation, name)


def gpu_of(data: Any) -> int | None:
    """Return the number of the GPU that holds an array or column; None where it does not say."""
    # without a GPU, asking a proxy of cudf.pandas makes it look for one
    if "cupy" not in sys.modules or not gpu_available():
        return None
    try:
        pointer = data.__cuda_array_interface__["data"][0]
    except (AttributeError, NotImplementedError, RuntimeError, TypeError, ValueError):
        return None  # on the host, of strings, without any data, or a proxy of any of these
    if not pointer:
        return None
    import cupy

    return cupy.cuda.runtime.pointerGetAttributes(pointer).device


def refuse_elsewhere(data: Any, label: str) -> None:
    """Raise if data lies on another GPU than the current one, from where it cannot be read."""
    there = gpu_of(data)
    if there is None:
        return
    import cupy

    if there != (here := cupy.cuda.runtime.getDevice()):
        raise ValueError(
            f"{label} lies on GPU {there}, but the current one is GPU {here}; do this under "
            f"`with cupy.cuda.Device({there}):`"
        )


def settle() -> None:
    """Wait for the current stream of a GPU, so that what follows may run on any other."""
    cupy = sys.modules.get("cupy")
    if cupy is not None and gpu_available():
        cupy.cuda.get_current_stream().synchronize()


def settle_with_default_stream() -> None:
    """Wait for the current stream and for the default one, where cuDF works.

    Nothing orders the two if the current one is non-blocking; if it is the default one there is
    nothing to wait for. To be called where arrays pass between CuPy and cuDF.
    """
    cupy = sys.modules.get("cupy")
    if cupy is not None and gpu_available() and cupy.cuda.get_current_stream().ptr:
        settle()
        cupy.cuda.Stream.null.synchronize()


def is_mapped(array: Any) -> bool:
    """Tell whether an array lies in a mapped file, which the system drops and reads as it likes."""
    while array is not None:
        if isinstance(array, mmap.mmap):
            return True
        array = array.obj if isinstance(array, memoryview) else getattr(array, "base", None)
    return False


def memory_taken(*arrays: Any) -> int:
    """Add up the bytes of arrays that are in memory; those in mapped files take none."""
    return sum(array.nbytes for array in arrays if array is not None and not is_mapped(array))


class LackOfMemory(MemoryError):
    """There is too little memory; the message says for what, how much is free, and what to do."""


def lacks_memory(error: Exception) -> bool:
    """Tell whether an error says that there is too little memory, on the host or on a GPU."""
    # CUDA says so in errors of its own: where a kernel is loaded or launched, or asked directly
    return isinstance(error, MemoryError) or any(
        words in str(error) for words in ("CUDA_ERROR_OUT_OF_MEMORY", "cudaErrorMemoryAllocation")
    )


def release() -> None:
    """Return memory that CuPy's pool holds and nobody uses to the GPU."""
    cupy = sys.modules.get("cupy")
    if cupy is not None and gpu_available():
        cupy.get_default_memory_pool().free_all_blocks()


def is_of_pool(allocate: Any, pool: Any = None) -> bool:
    """Tell whether an allocator is that of a pool; None: CuPy's own."""
    import cupy

    pool = cupy.get_default_memory_pool() if pool is None else pool
    return getattr(allocate, "__self__", None) is pool or allocate == pool.malloc


class Allocator:
    """An allocator on top of another one, with a pool (`common.reused_memory`)."""

    pool: Any
    beneath: Any


def memory_in_use(device: DeviceName) -> int:
    """Return bytes: on a GPU, what all who share it hold now; on the host, the process's peak."""
    if device == "gpu":
        import cupy

        free, total = cupy.cuda.runtime.memGetInfo()
        return total - free
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def memory_total(device: DeviceName) -> int:
    """Return the bytes that a device has: the current GPU, or the host."""
    if device == "gpu":
        import cupy

        return cupy.cuda.runtime.memGetInfo()[1]
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def memory_free(device: DeviceName) -> int:
    """Return the bytes that are free: on the GPU and in CuPy's pool, or on the host.

    On a host with a limit for the control group of this process, as containers have: the less of
    what is left of that and what is free at all. What can be dropped of the page cache is free.
    """
    if device == "gpu":
        import cupy

        return cupy.cuda.runtime.memGetInfo()[0] + cupy.get_default_memory_pool().free_bytes()
    free = [_free_of_machine(), *(group.free() for group in CONTROL_GROUPS)]
    return max(min(one for one in free if one is not None), 0)


def free_on_gpu() -> int | None:
    """Return the bytes that are free on the GPU; None where nobody can tell.

    Another allocator than CuPy's own pool may hold what it could give. RMM's does not as it begins:
    with cuDF imported, it asks CUDA for every array.
    """
    import cupy

    allocate, held = cupy.cuda.get_allocator(), 0
    if isinstance(allocate, Allocator):
        allocate, held = allocate.beneath, allocate.pool.free_bytes()
    if is_of_pool(allocate):
        return memory_free("gpu")
    # what CuPy's pool holds from before is of no use to RMM
    return cupy.cuda.runtime.memGetInfo()[0] + held if _asks_cuda(allocate) else None


def _asks_cuda(allocate: Any) -> bool:
    """Tell whether an allocator is RMM's, and gives back to CUDA whatever is given back to it."""
    rmm = sys.modules.get("rmm")
    if rmm is None:
        return False
    from rmm.allocators.cupy import rmm_cupy_allocator

    if allocate is not rmm_cupy_allocator:
        return False
    resource = rmm.mr.get_current_device_resource()
    while type(resource) in (rmm.mr.StatisticsResourceAdaptor, rmm.mr.TrackingResourceAdaptor):
        resource = resource.get_upstream()
    return type(resource) is rmm.mr.CudaMemoryResource


class _ControlGroup(NamedTuple):
    """Files in which Linux says what the control group of this process may take, and does."""

    limit: str
    usage: str
    stat: str
    inactive: str  # what of the page cache can be had, as a line of ``stat`` begins

    def free(self) -> int | None:
        """Return the bytes left; None: there is no such group, or no limit below the machine's."""
        try:
            limit, usage = (int(Path(path).read_text()) for path in (self.limit, self.usage))
            found = re.search(rf"^{self.inactive} (\d+)$", Path(self.stat).read_text(), re.M)
        except (OSError, ValueError):  # ValueError: "max"
            return None
        if limit >= memory_total("cpu"):
            return None
        return limit - usage + (int(found[1]) if found else 0)


# A container sees its own group at the root of the file system of groups.
CONTROL_GROUPS = [
    _ControlGroup(
        "/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current",
        "/sys/fs/cgroup/memory.stat", "inactive_file",
    ),
    _ControlGroup(
        "/sys/fs/cgroup/memory/memory.limit_in_bytes",
        "/sys/fs/cgroup/memory/memory.usage_in_bytes",
        "/sys/fs/cgroup/memory/memory.stat", "total_inactive_file",
    ),
]  # fmt: skip


def _free_of_machine() -> int:
    # What the page cache holds can be had; only Linux says how much that is.
    with contextlib.suppress(OSError):
        if found := re.search(r"^MemAvailable: +(\d+) kB", Path("/proc/meminfo").read_text(), re.M):
            return int(found[1]) * 1024
    # macOS does not tell what is free.
    pages = "SC_AVPHYS_PAGES" if "SC_AVPHYS_PAGES" in os.sysconf_names else "SC_PHYS_PAGES"
    return os.sysconf(pages) * os.sysconf("SC_PAGE_SIZE")
