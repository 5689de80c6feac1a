"""Forked processes: locks that are free there, and a compiler that is between two jobs.

Only the thread that forks lives on in the child. A lock that another one held would be held for
ever, and what it was compiling would stay half done.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable
from types import TracebackType

import numba
from llvmlite.binding.ffi import lib as llvm
from numba.core.compiler_lock import global_compiler_lock

from glp_rapids.common import forking

# Held while Numba starts its threads.
starting_threads = threading.Lock()


def in_child(function: Callable[[], object]) -> None:
    """Call a function in every process that is forked from here on."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=function)


class _LlvmLock:
    """The lock that llvmlite holds in each call of LLVM, of which some come outside a compiler's.

    A module that is collected as garbage is one. A forked process whose parent was in such a call
    waited for ever in its own first one.
    """

    def acquire(self) -> None:
        llvm._lock.__enter__()

    def release(self) -> None:
        llvm._lock.__exit__(None, None, None)


class Lock:
    """A lock that is free in a forked process, whoever held it."""

    def __init__(self) -> None:
        self._renew()
        in_child(self._renew)

    def _renew(self) -> None:
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._lock.release()


def forked() -> bool:
    """Tell whether threads of Numba's would be lost or fatal here, for they are the parent's."""
    return _forked


_forked = False


def threads_started() -> bool:
    """Tell whether Numba has started its threads."""
    try:
        numba.threading_layer()
    except ValueError:
        return False
    return True


def _openmp_loaded() -> bool:
    """Tell whether somebody else loaded the OpenMP that Numba would use: a fork breaks it."""
    if not hasattr(os, "RTLD_NOLOAD"):
        return False
    try:
        ctypes.CDLL("libgomp.so.1", mode=os.RTLD_NOLOAD)
    except OSError:
        return False
    return True


def _in_child() -> None:
    global _forked
    _forked = _forked or threads_started() or _openmp_loaded()


# Whoever compiles takes LLVM's lock inside the compiler's.
forking.LOCKS += [starting_threads, global_compiler_lock, _LlvmLock()]
in_child(_in_child)
