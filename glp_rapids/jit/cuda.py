"""The one place that imports Numba's CUDA: how a kernel is compiled, cached and handed arrays.

A GPU would contract a*b+c into one rounding where a CPU does two, and a user's score could differ
in the last bit; so kernels are compiled with contraction off, an option of NVVM that Numba has no
keyword for.
"""

from __future__ import annotations

import contextlib
import functools
import struct
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numba import cuda
from numba.core import config

from glp_rapids.jit import shipped_kernels
from glp_rapids.jit.cache import KeptCode, keep_on_disk, text_of_types
from glp_rapids.jit.signatures import found_once
from glp_rapids.jit.target import Target, made_of
from glp_rapids.jit.unload import unload_once

SIMULATED = bool(config.ENABLE_CUDASIM)


if SIMULATED:

    def load_fresh(array, index):
        """Read an element; a simulated grid has one block."""
        return array[index]

    def add_released(array, index, amount):
        """Add to an element; a simulated grid has one block, of which one thread does."""
        array[index] += amount

    @cuda.jit(device=True)
    def add_only(array, index, amount):
        """Add to an element."""
        cuda.atomic.add(array, index, amount)

    def add_in_order(array, index, amount):
        """Add to an element and return what it was."""
        return cuda.atomic.add(array, index, amount)

    def nanoseconds():
        """Return the time; a simulated grid has no clock."""
        return np.int64(0)

    def ask_for(array, index):
        """Ask for an element that will be read soon; a simulated grid has no caches."""
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

    @intrinsic
    def nanoseconds(typingctx):
        """Return the time of the GPU's clock that all multiprocessors share."""

        def generate(context, builder, signature, arguments):
            function = ir.FunctionType(ir.IntType(64), [])
            read = ir.InlineAsm(function, "mov.u64 $0, %globaltimer;", "=l", side_effect=True)
            return builder.call(read, [])

        return cuda_types.int64(), generate

    @intrinsic
    def ask_for(typingctx, array, index):
        """Have an element brought to the second-level cache, and don't wait for it."""

        def generate(context, builder, signature, arguments):
            whole = context.make_array(signature.args[0])(context, builder, value=arguments[0])
            pointer = builder.gep(whole.data, [arguments[1]])
            function = ir.FunctionType(ir.VoidType(), [pointer.type])
            fetch = ir.InlineAsm(function, "prefetch.global.L2 [$0];", "l", side_effect=True)
            builder.call(fetch, [pointer])
            return context.get_dummy_value()

        return cuda_types.void(array, cuda_types.int64), generate

    @intrinsic
    def add_released(typingctx, array, index, amount):
        """Add to an int64; who then loads it fresh sees what the block wrote before.

        That holds for all threads of the block that came to a barrier of the block before. A fence
        for all of memory's orders, as ``threadfence`` is, would take longer.
        """
        if array.dtype != cuda_types.int64:
            raise TypeError(f"add_released adds to int64, not {array.dtype}")

        def generate(context, builder, signature, arguments):
            whole = context.make_array(signature.args[0])(context, builder, value=arguments[0])
            pointer = builder.gep(whole.data, [arguments[1]])
            function = ir.FunctionType(ir.VoidType(), [pointer.type, ir.IntType(64)])
            add = ir.InlineAsm(
                function, "red.release.gpu.add.u64 [$0], $1;", "l,l,~{memory}", side_effect=True
            )
            builder.call(add, [pointer, arguments[2]])
            return context.get_dummy_value()

        return cuda_types.void(array, cuda_types.int64, cuda_types.int64), generate

    @intrinsic
    def add_only(typingctx, array, index, amount):
        """Add to an int64 in global memory, at once, and don't ask what it was.

        Numba's ``atomic.add`` has that sent back even where nobody reads it.
        """
        if array.dtype != cuda_types.int64:
            raise TypeError(f"add_only adds to int64, not {array.dtype}")

        def generate(context, builder, signature, arguments):
            whole = context.make_array(signature.args[0])(context, builder, value=arguments[0])
            pointer = builder.gep(whole.data, [arguments[1]])
            function = ir.FunctionType(ir.VoidType(), [pointer.type, ir.IntType(64)])
            text = "red.relaxed.gpu.global.add.u64 [$0], $1;"
            add = ir.InlineAsm(function, text, "l,l,~{memory}", side_effect=True)
            builder.call(add, [pointer, arguments[2]])
            return context.get_dummy_value()

        return cuda_types.void(array, cuda_types.int64, cuda_types.int64), generate

    @intrinsic
    def add_in_order(typingctx, array, index, amount):
        """Add to an int32 and return what it was; who adds later sees what was written before.

        That holds for the threads of a block between two of its barriers, as with `add_released`.
        """
        if array.dtype != cuda_types.int32:
            raise TypeError(f"add_in_order adds to int32, not {array.dtype}")

        def generate(context, builder, signature, arguments):
            whole = context.make_array(signature.args[0])(context, builder, value=arguments[0])
            pointer = builder.gep(whole.data, [arguments[1]])
            function = ir.FunctionType(ir.IntType(32), [pointer.type, ir.IntType(32)])
            text = "atom.acq_rel.gpu.add.s32 $0, [$1], $2;"
            add = ir.InlineAsm(function, text, "=r,l,r,~{memory}", side_effect=True)
            return builder.call(add, [pointer, arguments[2]])

        return cuda_types.int32(array, cuda_types.int64, cuda_types.int32), generate

    def _reduction(name: str, kind: Any) -> Any:
        """Make an instruction that reduces a number of 32 bits over the lanes of a mask."""

        @intrinsic
        def reduce(typingctx, mask, value):
            def generate(context, builder, signature, arguments):
                word = ir.IntType(32)
                function = ir.FunctionType(word, [word, word])
                text = f"redux.sync.{name} $0, $1, $2;"
                reduction = ir.InlineAsm(function, text, "=r,r,r", side_effect=True)
                given = [arguments[1], arguments[0]]
                return builder.call(reduction, given, attrs=("convergent",))

            return kind(cuda_types.uint32, kind), generate

        return reduce

    # From capability 8.0 on. Each lane of a mask calls it with that mask, and gets the result.
    max_of_lanes = _reduction("max.s32", cuda_types.int32)
    min_of_lanes = _reduction("min.s32", cuda_types.int32)
    sum_of_lanes = _reduction("add.s32", cuda_types.int32)
    unsigned_max_of_lanes = _reduction("max.u32", cuda_types.uint32)
    unsigned_min_of_lanes = _reduction("min.u32", cuda_types.uint32)


def reduces_lanes() -> bool:
    """Tell whether the current device has the instructions that reduce over lanes."""
    if SIMULATED:
        return False
    from numba.cuda import dispatcher

    return dispatcher.get_current_device().compute_capability >= (8, 0)


@functools.cache
def gpu_target() -> Target:
    """Return the target that compiles for CUDA."""
    if SIMULATED:

        def rint(value):
            return np.rint(value)
    else:
        from numba.cuda import libdevice

        def rint(value):
            return libdevice.rint(value)

    return Target("gpu", cuda.jit(device=True), rint)


@contextlib.contextmanager
def compiling() -> Iterator[None]:
    """Compile with ``-fma=0`` inside the block, so that products and sums round as on a CPU.

    And no function twice, for a constant and for the number that a variable becomes later on (see
    `jit.cpu.compiled`). Numba's own lock is held meanwhile: nobody else in the process, the user's
    kernels included, is compiled while its compiler is another, and none of ours while it is not.
    """
    if SIMULATED:
        yield
        return
    from numba.cuda import compiler, dispatcher
    from numba.cuda.core.compiler_lock import global_compiler_lock

    with global_compiler_lock, found_once():
        original, device_function = compiler.compile_cuda, dispatcher.CUDADispatcher
        template_of = device_function.get_call_template

        def compile_cuda(*args, **options):
            options["nvvm_options"] = {**(options.get("nvvm_options") or {}), "fma": False}
            return original(*args, **options)

        def get_call_template(self, args, kws):
            args = tuple(cuda_types.unliteral(one) for one in args)
            kws = {name: cuda_types.unliteral(one) for name, one in kws.items()}
            return template_of(self, args, kws)

        compiler.compile_cuda = dispatcher.compile_cuda = compile_cuda
        device_function.get_call_template = get_call_template
        try:
            yield
        finally:
            compiler.compile_cuda = dispatcher.compile_cuda = original
            device_function.get_call_template = template_of


def kernel(function: Callable, digest: str, program: Any = None, **options: Any) -> Any:
    """Make a kernel, to be launched, whose compiled form is kept on disk or comes with the package.

    ``digest`` says what its code does not. ``program``: of whose functions it is made, to name it
    where they do not compile. ``options``: Numba's, as ``launch_bounds``.
    """
    if SIMULATED:
        return cuda.jit(function)
    import numba_cuda
    from numba.cuda.dispatcher import CUDACache

    class DigestCache(KeptCode, CUDACache):
        def load_overload(self, sig: Any, target_context: Any) -> Any:
            return self._load_overload(sig, target_context)  # without what only compiling needs

        def _index_key(self, sig: Any, codegen: Any) -> tuple:
            capability = cuda.get_current_device().compute_capability
            return (text_of_types(sig), codegen.magic_tuple(), capability, digest)

        def _load_overload(self, sig: Any, target_context: Any) -> Any:
            found = super()._load_overload(sig, target_context)
            if found is None:
                found = shipped_kernels.load(recipe, sig, target_context)
                if found is not None:  # assembled for this GPU, which the next process is spared
                    self._save_overload(sig, found)
            return found

    recipe = shipped_kernels.Recipe(function, digest, program, options)
    digest = made_of(function, digest, numba_cuda.__version__, "-fma=0", sorted(options.items()))
    # Link-time optimisation would decide about contraction anew, after NVVM.
    compiled = keep_on_disk(cuda.jit(function, lto=False, **options), DigestCache, function)
    compiled.program, compiled.recipe, compiled.loaded = program, recipe, {}
    return compiled


def kernel_of(function: Callable, digest: str) -> Any:
    """Make a kernel that calls a compiled function of an item, with a thread for each."""

    # `cuda` is looked up in this module, where the simulator puts its own
    def all_items(items, work):
        item = np.int64(cuda.blockIdx.x) * np.int64(cuda.blockDim.x) + np.int64(cuda.threadIdx.x)
        if item < items:
            function(item, work)

    return kernel(all_items, digest)


# Of an array: nobody who owns it, as far as a kernel knows, its size, its address, its shape.
_ROW = struct.Struct("<7q")


def packed_row(pointer: int, size: int, itemsize: int) -> bytes:
    """Pack a contiguous array of one dimension as kernels take it."""
    return _ROW.pack(0, 0, size, itemsize, pointer, size, itemsize)


class DeviceArray:
    """A CuPy array as a kernel's arguments: its type, and the bytes of Numba's array structure.

    Numba's own wrapper looks at an array again at every launch, and a run has sixty of them: under
    a profiler they were 5 to 7 of the 17 to 25 ms of a first call. It would also synchronize.
    """

    __slots__ = ("_numba_type_", "array", "kind", "packed")

    def __init__(self, array: Any):
        self.array = array
        self._numba_type_, self.kind = type_of(array)
        pointer, shape = array.data.ptr, array.shape
        if len(shape) == 1:
            self.packed = _ROW.pack(0, 0, *shape, array.itemsize, pointer, *shape, *array.strides)
        else:
            layout = struct.Struct(f"<{5 + 2 * len(shape)}q")
            self.packed = layout.pack(
                0, 0, array.size, array.itemsize, pointer, *shape, *array.strides
            )

    @property
    def dtype(self) -> np.dtype:
        """Of the elements."""
        return self.array.dtype

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """What Numba asks for if it is to launch by itself."""
        return self.array.__cuda_array_interface__


_types: dict[tuple, tuple[Any, str]] = {}


def type_of(array: Any) -> tuple[Any, str]:
    """Return the type that Numba gives an array, and its name, which is quick to compare."""
    # what `flags` says of contiguity takes seven times as long to ask for
    key = array.dtype, array.ndim, array._c_contiguous, array._f_contiguous
    found = _types.get(key)
    if found is None:
        kind = cuda.as_cuda_array(array, sync=False)._numba_type_
        found = _types[key] = kind, str(kind)
    return found


def bound(value: Any) -> Any:
    """Wrap a CuPy array, or those of a named tuple, once for many launches; the rest is itself."""
    if SIMULATED:
        return value
    if isinstance(value, tuple):
        if not _any_array(value):
            return value
        parts = map(bound, value)
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    if not isinstance(value, array_type()):
        return value
    return DeviceArray(value)


@functools.cache
def array_type() -> type:
    """Return the class of CuPy's arrays."""
    import cupy

    return cupy.ndarray


def _any_array(values: tuple) -> bool:
    kind = array_type()
    for value in values:
        if isinstance(value, kind) or (isinstance(value, tuple) and _any_array(value)):
            return True
    return False


def multiprocessors() -> int:
    """Return the number of multiprocessors of the current device."""
    return 2 if SIMULATED else cuda.get_current_device().MULTIPROCESSOR_COUNT


@contextlib.contextmanager
def current_gpu(number: int | None) -> Iterator[None]:
    """Make a GPU the current one of this thread, for CuPy and for Numba; None: leave it."""
    if number is None:
        yield
        return
    import cupy

    with cupy.cuda.Device(number), cuda.gpus[number]:
        yield
