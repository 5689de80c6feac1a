"""The one launcher: any kernel, from any thread, on the caller's current stream and current GPU.

Numba launches on the legacy default stream unless told otherwise, while arrays are prepared and
read on CuPy's current one; under a non-blocking stream nothing would order the two. Numba would
also look at the type of every array again at every launch, which takes longer than a small graph;
here a kernel is looked up by the types that a `DeviceArray` notes.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from glp_rapids.jit.cuda import SIMULATED, DeviceArray, array_type, bound, compiling, cuda
from glp_rapids.jit.diagnosis import explain


@dataclass
class Loaded:
    """A kernel compiled for arguments of some types, loaded on one GPU."""

    compiled: Any
    function: Any  # as the driver knows it
    together: dict[int, int] = field(default_factory=dict)  # blocks at once, by threads a block


def launch(kernel: Any, blocks: int, threads: int, *arguments: Any) -> None:
    """Launch ``blocks`` blocks of ``threads`` threads; nothing if there are none."""
    if blocks < 1:
        return
    if SIMULATED:
        kernel[int(blocks), threads](*arguments)
        return
    kinds, words = _described(arguments)
    _start(_loaded(kernel, kinds, arguments), int(blocks), threads, words)


def launch_together(kernel: Any, wanted: int, threads: int, *arguments: Any) -> None:
    """Launch blocks that wait for one another: ``wanted``, or as many as there is room for."""
    if SIMULATED:
        kernel[1, threads](*arguments)
        return
    kinds, words = _described(arguments)
    loaded = _loaded(kernel, kinds, arguments)
    most = _most_together(loaded, threads)
    _start(loaded, max(1, min(int(wanted), most)), threads, words)


def _most_together(loaded: Loaded, threads: int) -> int:
    """Return how many blocks of so many threads the current GPU holds at once."""
    most = loaded.together.get(threads)
    if most is None:
        most = loaded.together[threads] = loaded.compiled.max_cooperative_grid_blocks(threads)
    return most


def prepared_together(
    kernel: Any, wanted: int, threads: int, arguments: tuple, last: Any
) -> Callable[[Any], None]:
    """Return what launches as `launch_together` does, given the last argument, again and again.

    Of all others types and words are looked up once, which takes longer than a launch: a kernel
    has some eighty. ``last``: one of its kind. The GPU that is current must be the same each time.
    """
    if SIMULATED:
        return lambda last: kernel[1, threads](*arguments, last)
    arguments = bound(arguments)
    kinds, _ = _described((*arguments, last))
    loaded = _loaded(kernel, kinds, (*arguments, last))
    blocks = max(1, min(int(wanted), _most_together(loaded, threads)))
    _, words = _described(arguments)

    def again(last: Any) -> None:
        _start(loaded, blocks, threads, words + _described((last,))[1])

    return again


def _start(loaded: Loaded, blocks: int, threads: int, words: list[Any]) -> None:
    from numba.cuda import dispatcher

    config = _config(blocks, threads, loaded.compiled.cooperative)
    dispatcher.launch(_current_stream(), config, loaded.function, *words)


@functools.lru_cache(maxsize=1024)
def _config(blocks: int, threads: int, together: bool) -> Any:
    from numba.cuda import dispatcher

    name = "is_cooperative" if dispatcher.CUDA_CORE_GE_1_0 else "cooperative_launch"
    return dispatcher.LaunchConfig(grid=blocks, block=threads, shmem_size=0, **{name: together})


def _described(arguments: tuple) -> tuple[tuple, list[Any]]:
    """Return a key of the types of arguments, and a kernel's parameters, as compiled code has them.

    At once, for a launch goes through eighty arguments, while a GPU may have nothing to do.
    """
    kinds: list[Any] = []
    words: list[Any] = []
    _describe(arguments, kinds, words)
    return tuple(kinds), words


def _describe(arguments: tuple, kinds: list[Any], words: list[Any]) -> None:
    for argument in arguments:
        if isinstance(argument, DeviceArray):
            kinds.append(argument.kind)
            words.extend(argument.words)
            continue
        kind = type(argument)
        if isinstance(argument, tuple):
            kinds.append((kind, len(argument)))
            _describe(argument, kinds, words)
        elif kind in _NUMBERS:
            kinds.append(kind)
            words.append(_NUMBERS[kind](argument.item()))
        elif isinstance(argument, complex):
            kinds.append(kind)
            words.extend([argument.real, argument.imag])
        elif isinstance(argument, array_type()):
            _describe((DeviceArray(argument),), kinds, words)
        else:
            kinds.append(kind)
            words.append(argument)


# Numbers are handed over with the size they have; a plain int or float has 8 bytes, as for Numba.
_NUMBERS = {
    np.bool_: bool, np.int8: ctypes.c_int8, np.uint8: ctypes.c_uint8, np.int16: ctypes.c_int16,
    np.uint16: ctypes.c_uint16, np.int32: ctypes.c_int32, np.uint32: ctypes.c_uint32,
    np.int64: ctypes.c_int64, np.uint64: ctypes.c_uint64, np.longlong: ctypes.c_int64,
    np.ulonglong: ctypes.c_uint64, np.float32: ctypes.c_float, np.float64: ctypes.c_double,
}  # fmt: skip


def _loaded(kernel: Any, kinds: tuple, arguments: tuple) -> Loaded:
    """Compile and load a kernel for these arguments on the current GPU, unless that was done."""
    import cupy

    key = cupy.cuda.runtime.getDevice(), kinds
    if key not in kernel.loaded:
        with compiling():  # two threads that load one kernel would each unload it at the end
            if key not in kernel.loaded:
                compiled = _compiled(kernel, bound(arguments))
                compiled.bind()
                kernel.loaded[key] = Loaded(compiled, compiled._codelibrary.get_cufunc().kernel)
    return kernel.loaded[key]


def _compiled(kernel: Any, arguments: tuple) -> Any:
    from numba.core.errors import NumbaError
    from numba.cuda.core import errors

    types = tuple(kernel.typeof_pyval(argument) for argument in arguments)
    try:
        return kernel.compile(types)
    # for CUDA Numba has a family of errors of its own, and none for NumPy's functions it lacks
    except (NumbaError, errors.NumbaError, KeyError) as error:
        program = kernel.program
        if program is None or (isinstance(error, KeyError) and not _lacks_function(error)):
            raise
        # Each function compiled for the CPU before, so the cause is what a GPU cannot do.
        reason = explain(error, kernel.py_func, program.state_type._fields)
        raise TypeError(f"{program.name} does not compile for the GPU: {reason}") from None


def _lacks_function(error: KeyError) -> bool:
    return isinstance(error.args[0], np.ufunc)


def _current_stream() -> Any:
    import cupy

    return _stream(cupy.cuda.runtime.getDevice(), cupy.cuda.get_current_stream().ptr)


@functools.lru_cache(maxsize=256)
def _stream(gpu: int, pointer: int) -> Any:
    """Return a stream of CuPy's as Numba's launch takes it; 0 is the default stream of both."""
    from numba.cuda.cudadrv import driver

    stream = cuda.external_stream(pointer) if pointer else 0
    return getattr(driver, "_to_core_stream", lambda same: same)(stream)
