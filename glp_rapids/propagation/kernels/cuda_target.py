"""The one place that imports Numba's CUDA: how a kernel is compiled, cached and launched.

A GPU would contract a*b+c into one rounding where a CPU does two, and a user's score could differ
in the last bit; so kernels are compiled with contraction off, an option of NVVM that Numba has no
keyword for.
"""

from __future__ import annotations

import contextlib
import functools
import weakref
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import numba
import numpy as np
from numba import cuda
from numba.core import config

from glp_rapids.propagation.compilation import Compiled, Target, give_own_files
from glp_rapids.propagation.diagnosis import explain

SIMULATED = bool(config.ENABLE_CUDASIM)


def unload_once(driver: ModuleType) -> None:
    """Let a library that several GPUs have loaded be unloaded once.

    GPUs of one compute capability share a kernel's cubin in numba-cuda 0.30, and so the handle of
    its library; but each has a module with a finalizer that unloads the handle. At its exit a
    process that ran more than ten kernels on two GPUs died of that (fewer are never unloaded). So
    only the first module of a handle keeps its finalizer.
    """
    load = getattr(driver, "load_module_image", None)
    if load is None:  # a version that loads otherwise
        return
    loaded: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()

    @functools.wraps(load)
    def load_module_image(*arguments: Any, **options: Any) -> Any:
        module = load(*arguments, **options)
        with contextlib.suppress(AttributeError, TypeError):  # likewise
            if loaded.setdefault(int(module.handle), module) is not module:
                module._finalizer.detach()
        return module

    driver.load_module_image = load_module_image


if SIMULATED:

    def load_fresh(array, index):
        """Read an element; a simulated grid has one block."""
        return array[index]
else:
    from llvmlite import ir
    from numba.cuda import types as cuda_types
    from numba.cuda.cudadrv import driver as cuda_driver
    from numba.cuda.extending import intrinsic

    unload_once(cuda_driver)

    @intrinsic
    def load_fresh(typingctx, array, index):
        """Read an int64 anew each time, as other blocks wrote it.

        Numba's ``ldcv`` may be moved out of a loop: it is not marked as having side effects.
        """
        if array.dtype != cuda_types.int64:
            raise TypeError(f"load_fresh reads int64, not {array.dtype}")

        def generate(context, builder, signature, arguments):
            whole = context.make_array(signature.args[0])(context, builder, value=arguments[0])
            pointer = builder.gep(whole.data, [arguments[1]])
            function = ir.FunctionType(ir.IntType(64), [pointer.type])
            load = ir.InlineAsm(
                function, "ld.acquire.gpu.b64 $0, [$1];", "=l,l,~{memory}", side_effect=True
            )
            return builder.call(load, [pointer])

        return cuda_types.int64(array, cuda_types.int64), generate


@cuda.jit(device=True)
def meet(words, barrier, goal):
    """Wait for all blocks of the grid; what they wrote is then seen by all."""
    cuda.syncthreads()
    if cuda.threadIdx.x == 0:
        cuda.threadfence()
        cuda.atomic.add(words, barrier, np.int64(1))
        while load_fresh(words, barrier) < goal:
            pass
        cuda.threadfence()
    cuda.syncthreads()


@functools.cache
def gpu_target() -> Target:
    """Give the target that compiles for CUDA."""
    if SIMULATED:

        def rint(value):
            return np.rint(value)
    else:
        from numba.cuda import libdevice

        def rint(value):
            return libdevice.rint(value)

    return Target("gpu", cuda.jit(device=True), rint)


@contextlib.contextmanager
def without_contraction() -> Iterator[None]:
    """Compile with ``-fma=0`` inside the block, so that products and sums round as on a CPU."""
    if SIMULATED:
        yield
        return
    from numba.cuda import compiler, dispatcher

    original = compiler.compile_cuda

    def compile_cuda(*args, **options):
        options["nvvm_options"] = {**(options.get("nvvm_options") or {}), "fma": False}
        return original(*args, **options)

    compiler.compile_cuda = dispatcher.compile_cuda = compile_cuda
    try:
        yield
    finally:
        compiler.compile_cuda = dispatcher.compile_cuda = original


def kernel(function: Callable, digest: str, **options: Any) -> Any:
    """Make a kernel whose compiled form is kept on disk under ``digest``."""
    if SIMULATED:
        return cuda.jit(function)
    from numba.cuda.dispatcher import CUDACache

    class DigestCache(CUDACache):
        def _index_key(self, sig: Any, codegen: Any) -> tuple:
            capability = cuda.get_current_device().compute_capability
            give_own_files(self, f"{digest} {capability}")
            return (str(sig), codegen.magic_tuple(), capability, digest, numba.__version__)

    # Link-time optimisation would decide about contraction anew, after NVVM.
    compiled = cuda.jit(function, lto=False, **options)
    compiled._cache = DigestCache(function)
    return compiled


def bound(array: Any) -> Any:
    """Wrap an array once for many launches: without this every launch would synchronize."""
    if SIMULATED or isinstance(array, np.generic):
        return array
    return cuda.as_cuda_array(array, sync=False)


@contextlib.contextmanager
def small_grids_allowed() -> Iterator[None]:
    """Keep Numba from warning of small grids: a class of few vertices is no mistake."""
    if SIMULATED:
        yield
        return
    from numba.cuda.core import config as cuda_config

    before = cuda_config.CUDA_LOW_OCCUPANCY_WARNINGS
    cuda_config.CUDA_LOW_OCCUPANCY_WARNINGS = 0
    try:
        yield
    finally:
        cuda_config.CUDA_LOW_OCCUPANCY_WARNINGS = before


def _compile_errors() -> tuple[type[Exception], ...]:
    """Give the errors by which Numba refuses code; for CUDA it has a family of its own."""
    if SIMULATED:
        return ()
    from numba.core.errors import NumbaError
    from numba.cuda.core import errors

    return NumbaError, errors.NumbaError


class Launcher:
    """Launch kernels; a kernel's first launch compiles it, so contraction is off for that one."""

    def __init__(self, program: Compiled) -> None:
        self._program = program
        self._compiled: set[int] = set()
        self._configured: dict[tuple[int, int, int], Any] = {}
        self._resident: dict[tuple[int, int], tuple[Any, int]] = {}

    def __call__(self, kernel: Any, blocks: int, threads: int, *arguments: Any) -> None:
        """Launch ``blocks`` blocks of ``threads`` threads; nothing if there are none."""
        if blocks < 1:
            return
        key = id(kernel), blocks, threads
        if key not in self._configured:
            with small_grids_allowed():
                self._configured[key] = kernel[blocks, threads]
        if id(kernel) in self._compiled:
            self._configured[key](*arguments)
            return
        with self._compiling(kernel):
            self._configured[key](*arguments)
        self._compiled.add(id(kernel))

    def together(self, kernel: Any, wanted: int, threads: int, *arguments: Any) -> None:
        """Launch blocks that wait for one another: ``wanted``, or as many as there is room for.

        Numba would look at the type of each array again at every launch, which takes longer than a
        small graph; here it is looked at once, so a kernel of one digest has one signature.
        """
        key = id(kernel), threads
        if key not in self._resident:
            with self._compiling(kernel):
                types = tuple(kernel.typeof_pyval(argument) for argument in arguments)
                compiled = kernel.compile(types)
            self._resident[key] = compiled, compiled.max_cooperative_grid_blocks(threads)
        compiled, most = self._resident[key]
        blocks = max(1, min(wanted, most))
        shape = id(kernel), blocks, threads
        if shape not in self._configured:
            with small_grids_allowed():
                self._configured[shape] = kernel[blocks, threads]
        launch = self._configured[shape]
        compiled.launch(arguments, launch.griddim, launch.blockdim, launch.stream, 0)

    @contextlib.contextmanager
    def _compiling(self, kernel: Any) -> Iterator[None]:
        """Compile with contraction off, and say what a GPU cannot do with the program."""
        try:
            with without_contraction():
                yield
        except _compile_errors() as error:
            # Each function compiled for the CPU before, so the cause is what a GPU cannot do.
            fields = self._program.state_type._fields
            raise TypeError(
                f"{self._program.name} does not compile for the GPU: "
                f"{explain(error, kernel.py_func, fields)}"
            ) from None


def multiprocessors() -> int:
    """Give the number of multiprocessors of the current device."""
    return 2 if SIMULATED else cuda.get_current_device().MULTIPROCESSOR_COUNT
