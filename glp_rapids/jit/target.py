"""Plain functions compiled for one kind of processor, with all that they call, cached on disk.

Numba caches a function that closes over other compiled functions under a key that changes with
every process, so such a cache never hits. ``DigestCache`` puts a digest of everything the code is
made of in that place (``made_of``).
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from dataclasses import dataclass, is_dataclass
from typing import Any

import numpy as np
from numba.core import config

from glp_rapids.common import fixed_point
from glp_rapids.jit.cache import KeptCpuCode, text_of_types
from glp_rapids.jit.cpu import compiled
from glp_rapids.jit.fingerprint import (
    content_of,
    digest_of,
    fingerprint,
    global_names,
    names_of,
    of_library,
    of_package,
    plain_function,
    source_fingerprint,
    source_of_program,
)


def made_of(function: Callable, *further: Any) -> str:
    """Return the digest of a kernel: of all that it is compiled from, and of ``further`` texts."""
    switches = str(config.BOUNDSCHECK), str(config.CUDA_DEBUGINFO_DEFAULT)
    return digest_of([fingerprint(function), *switches, *map(str, further)])


def source_of(function: Callable, beside: Any) -> str | None:
    """Return a digest of a kernel's sources and of what stands beside them, or None."""
    source = source_fingerprint(function)
    told = source_of_program(beside) if is_dataclass(beside) else beside
    return None if source is None or told is None else f"{source} {told}"


class DigestCache(KeptCpuCode):
    """Numba's cache on disk, keyed by a digest of our own instead of pickled closures."""

    def __init__(
        self, function: Callable, digest: str, source: Callable[[], str | None] | None = None
    ) -> None:
        super().__init__(function)
        self._digest, self._source_of = digest, source

    @classmethod
    def of(cls, function: Callable, beside: Any) -> DigestCache:
        """Return the cache of a kernel that is made of a function and of something beside it.

        ``beside``: a program that is compiled, or a text.
        """
        digest = made_of(function, getattr(beside, "digest", beside))
        return cls(function, digest, functools.partial(source_of, function, beside))

    def _index_key(self, sig: Any, codegen: Any) -> tuple:
        return (text_of_types(sig), codegen.magic_tuple(), self._digest)

    def _source(self) -> str | None:
        return self._source_of and self._source_of()


@dataclass(frozen=True)
class Target:
    """How one kind of processor compiles a scalar function, and what stands for ``round_even``."""

    name: str
    device_function: Callable[[Callable], Any]
    round_even: Callable

    def compile(self, function: Callable) -> Any:
        """Compile a plain function together with the plain functions that it calls."""
        return _compile(self, function, fingerprint(function))


@functools.cache
def _compile(target: Target, function: Callable, meaning: str) -> Any:
    # A constant of the module may change between two runs, and the meaning with it.
    if function is fixed_point.round_even:
        return target.device_function(target.round_even)
    own = dict(function.__globals__)
    names = names_of(function.__code__)
    for name in global_names(function.__code__):
        if name in own:
            own[name] = _replaced(target, own[name], names)
    enclosed = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    cells = tuple(
        types.CellType(_replaced(target, content_of(cell, name, function), names))
        for name, cell in enclosed
    )
    copy = types.FunctionType(
        function.__code__, own, function.__name__, function.__defaults__, cells or None
    )
    copy.__qualname__, copy.__module__ = function.__qualname__, function.__module__
    return target.device_function(copy)


def _replaced(
    target: Target, value: Any, names: frozenset[str], around: tuple[types.ModuleType, ...] = ()
) -> Any:
    """Compile a function that another one refers to, by itself or as a module's attribute.

    One that the user compiled before is compiled anew: by the target's rules, not by its own.
    """
    function = plain_function(value)
    if function is not None and (function is value or not of_package(function)):
        return target.compile(function)
    if not isinstance(value, types.ModuleType) or of_library(value) or value in around:
        return value
    held = {name: getattr(value, name) for name in names if hasattr(value, name)}
    new = {
        name: _replaced(target, one, names, (*around, value))
        for name, one in held.items()
        if not isinstance(one, types.FunctionType)
    }
    if all(new[name] is held[name] for name in new):
        return value
    module = types.ModuleType(value.__name__)
    vars(module).update({**vars(value), **new})
    return module


@functools.cache
def cpu_target() -> Target:
    """Return the target that compiles for the CPU."""

    def rint(value):
        return np.rint(value)

    # Contraction is off unless fastmath is asked for, so a*b+c rounds twice here as on the GPU. A
    # user's function that makes arrays compiles, so that what is said of it is that it may raise.
    return Target("cpu", compiled(error_model="numpy", allocates=True), rint)
