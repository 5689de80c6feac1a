"""The one launcher: any kernel, from any thread, on the caller's current stream and current GPU.

Numba launches on the legacy default stream unless told otherwise, while arrays are prepared and
read on CuPy's current one; under a non-blocking stream nothing would order the two. Numba would
also look at the type of every array again at every launch, which takes longer than a small graph;
here a kernel is looked up by the types that a `DeviceArray` notes. And it would hand over each of
the seven numbers of an array by itself: 54 us of a host for 80 arrays, where copying them as a
whole takes 18 (H200, a script).
"""

from __future__ import annotations

import ctypes
import struct
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from glp_rapids.jit.cuda import SIMULATED, DeviceArray, array_type, bound, compiling
from glp_rapids.jit.diagnosis import explain

PARAMETER = 8  # bytes that each parameter has here
MOST_PARAMETERS = 4096  # a kernel takes 32,764 bytes


@dataclass
class Loaded:
    """A kernel compiled for arguments of some types, loaded on one GPU."""

    compiled: Any
    function: int  # as the driver knows it
    together: dict[int, int] = field(default_factory=dict)  # blocks at once, by threads a block


def launch(kernel: Any, blocks: int, threads: int, *arguments: Any) -> None:
    """Launch ``blocks`` blocks of ``threads`` threads; nothing if there are none."""
    if blocks < 1:
        return
    if SIMULATED:
        kernel[int(blocks), threads](*arguments)
        return
    kinds, packed = _described(arguments)
    _start(_loaded(kernel, kinds, arguments), int(blocks), threads, packed)


def launch_together(kernel: Any, wanted: int, threads: int, *arguments: Any) -> None:
    """Launch blocks that wait for one another: ``wanted``, or as many as there is room for."""
    if SIMULATED:
        kernel[1, threads](*arguments)
        return
    kinds, packed = _described(arguments)
    loaded = _loaded(kernel, kinds, arguments)
    most = _most_together(loaded, threads)
    _start(loaded, max(1, min(int(wanted), most)), threads, packed)


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

    Of all others types and numbers are looked up once, which takes longer than a launch: a kernel
    has some eighty. ``last``: one of its kind. The GPU that is current must be the same each time.
    """
    if SIMULATED:
        return lambda last: kernel[1, threads](*arguments, last)
    arguments = bound(arguments)
    kinds, _ = _described((*arguments, last))
    loaded = _loaded(kernel, kinds, (*arguments, last))
    blocks = max(1, min(int(wanted), _most_together(loaded, threads)))
    _, packed = _described(arguments)

    def again(last: Any, _arrays: tuple = arguments) -> None:  # which hold what is pointed at
        _start(loaded, blocks, threads, packed + _described((last,))[1])

    return again


class _Parameters(threading.local):
    """Where a thread puts the parameters of a launch, and the address of each, for the driver."""

    def __init__(self) -> None:
        self._room = np.empty(MOST_PARAMETERS * PARAMETER, np.uint8)
        self.address = self._room.ctypes.data
        self._addresses = self.address + PARAMETER * np.arange(MOST_PARAMETERS, dtype=np.uint64)
        self.addresses = self._addresses.ctypes.data
        self.has_context = False


_parameters = _Parameters()


def _start(loaded: Loaded, blocks: int, threads: int, packed: bytes) -> None:
    """Launch a kernel with parameters of which each has eight bytes, however few of them count."""
    from cupy.cuda import driver, get_current_stream, runtime

    parameters, stream = _parameters, get_current_stream().ptr
    if not parameters.has_context:  # a new thread has none until it asks the runtime for something
        runtime.memGetInfo()
        parameters.has_context = True
    if len(packed) > PARAMETER * MOST_PARAMETERS:
        raise ValueError(f"a kernel takes at most {MOST_PARAMETERS} parameters")
    ctypes.memmove(parameters.address, packed, len(packed))
    shape = blocks, 1, 1, threads, 1, 1
    if loaded.compiled.cooperative:
        driver.launchCooperativeKernel(loaded.function, *shape, 0, stream, parameters.addresses)
    else:
        driver.launchKernel(loaded.function, *shape, 0, stream, parameters.addresses, 0)


def _described(arguments: tuple) -> tuple[tuple, bytes]:
    """Return a key of the types of arguments, and a kernel's parameters, as compiled code has them.

    At once, for a launch goes through eighty arguments, while a GPU may have nothing to do.
    """
    kinds: list[Any] = []
    packed: list[bytes] = []
    _describe(arguments, kinds, packed)
    return tuple(kinds), b"".join(packed)


def _describe(arguments: tuple, kinds: list[Any], packed: list[bytes]) -> None:
    for argument in arguments:
        if isinstance(argument, DeviceArray):
            kinds.append(argument.kind)
            packed.append(argument.packed)
            continue
        kind = type(argument)
        number = _NUMBERS.get(kind)
        if number is not None:
            kinds.append(kind)
            packed.append(number.pack(argument))
        elif isinstance(argument, tuple):
            kinds.append((kind, len(argument)))
            _describe(argument, kinds, packed)
        elif isinstance(argument, array_type()):
            _describe((DeviceArray(argument),), kinds, packed)
        elif isinstance(argument, complex):
            kinds.append(kind)
            packed.append(_COMPLEX.pack(argument.real, argument.imag))
        else:
            raise TypeError(f"a kernel takes arrays and numbers, not {kind.__name__}")


_COMPLEX, _SIGNED, _UNSIGNED = struct.Struct("<dd"), struct.Struct("<q"), struct.Struct("<Q")
_TRUTH, _SINGLE, _DOUBLE = struct.Struct("<?7x"), struct.Struct("<f4x"), struct.Struct("<d")
# A plain int or float has 8 bytes, as for Numba; of smaller integers the lower bytes are read.
_NUMBERS = {
    bool: _TRUTH, np.bool_: _TRUTH, int: _SIGNED, np.int8: _SIGNED, np.int16: _SIGNED,
    np.int32: _SIGNED, np.int64: _SIGNED, np.longlong: _SIGNED, np.uint8: _UNSIGNED,
    np.uint16: _UNSIGNED, np.uint32: _UNSIGNED, np.uint64: _UNSIGNED, np.ulonglong: _UNSIGNED,
    float: _DOUBLE, np.float32: _SINGLE, np.float64: _DOUBLE,
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
                function = compiled._codelibrary.get_cufunc()
                kernel.loaded[key] = Loaded(compiled, int(function.handle))
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
