"""Memory of a GPU that serves one array after the other, where the allocator keeps none.

CuPy's own pool does so anyway. RMM by default asks CUDA for every array, which takes 0.1 ms, and as
long to give it back: on a graph of two million entries a third to half the time of many calls. So a
call has a pool of its own, on top of the allocator that is set, of which a little stays for the
next call. An array larger than that little comes from below, and goes back there at once. Where
much outlives calls, as the window of a monitor, the next takes as much anew: so more may stay.

A pool must not go while any array of its is there: before CuPy 14.1 its memory would go with it,
and since then blocks of which a part is in use would never be given back. So those that outlive
their call stay in a list, until nothing of theirs is in use. Frames, and graphs that are made of
edges, are not in a pool (`lasting`): what a caller lets go of is free for everybody. Compressed
graphs, and what is kept on a graph, are in one: their memory comes back with the next call.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from glp_rapids.device import (
    Allocator,
    DeviceName,
    array_module,
    gpu_available,
    is_of_pool,
    lacks_memory,
    memory_free,
    memory_total,
)

KEPT = 256  # of the memory of a GPU one part in so many stays with a pool that is not at work
# Or so many times what outlives its calls, at most so many times that part: a tick of a monitor
# takes 1.4 GB beside the .9 of its 10 million transactions.
TIMES_IN_USE, TIMES_KEPT = 3, 8
UNIT = 512  # bytes: pools of CuPy give multiples


@dataclass(eq=False)
class _Pool(Allocator):
    """A pool for arrays of one GPU up to some size; it is of no use in a forked process."""

    pool: Any
    beneath: Any
    device: int
    process: int
    largest: int  # bytes of an array that the pool has
    at_work: bool = True  # a call has it

    def __call__(self, size: int) -> Any:
        import cupy

        if size <= self.largest and cupy.cuda.runtime.getDevice() == self.device:
            return self.pool.malloc(size)
        return _asked(self.beneath, size)


_pools: list[_Pool] = []
_changing = threading.RLock()


@contextlib.contextmanager
def reused_memory(device: DeviceName, first: int = 0) -> Iterator[None]:
    """Let what arrays of this thread give back serve its next ones, until the work ends.

    ``first``: bytes that are asked for at once, if they are a quarter of what is free or less.
    Work within such work has the same pool. Arrays that outlive the work hold blocks that may be
    larger, such as all that was asked for at first, until `give_back` finds them gone.
    """
    if device == "cpu":
        yield
        return
    import cupy

    allocate = cupy.cuda.get_allocator()
    if is_of_pool(allocate):
        yield
        return
    own = None
    if not isinstance(allocate, _Pool):
        own = allocate = _pool_on(allocate)
    largest = allocate.largest
    try:
        if 0 < 4 * first <= memory_free(device):
            with contextlib.suppress(MemoryError):
                allocate.pool.malloc(first)  # held by nobody, so that it is there for smaller ones
                allocate.largest = max(largest, first)
        with cupy.cuda.using_allocator(allocate):
            yield
    finally:
        allocate.largest = largest
        if own is not None:
            own.at_work = False
            tidy()


@contextlib.contextmanager
def memory_of_caller() -> Iterator[None]:
    """Let arrays of this thread come from the allocator that the caller has set, and give back."""
    allocate = _allocator()
    give_back(at_work=True)
    if not isinstance(allocate, _Pool):
        yield
        return
    import cupy

    with cupy.cuda.using_allocator(allocate.beneath):
        yield


def memory_of_call(limited: bool) -> contextlib.AbstractContextManager[None]:
    """Return the context of a public call; ``limited``: there is a limit, so nothing is kept."""
    if _allocator() is None:  # the first call of a process that has no use for a GPU yet
        return contextlib.nullcontext()
    return memory_of_caller() if limited else reused_memory("gpu")


def lasting(array: Any, copy: bool = False) -> Any:
    """Return an array in memory of the caller's allocator: itself, or a copy of what a pool has.

    ``copy``: a copy in any case.
    """
    allocate, cupy = _allocator(), array_module(array)
    if cupy is np or not isinstance(allocate, _Pool):
        return array.copy() if copy else array
    memory = array.data.mem
    # what is larger is of a pool that the caller has set
    pooled = isinstance(memory, cupy.cuda.memory.PooledMemory)
    if not (copy or (pooled and memory.size < allocate.largest + UNIT)):
        return array
    with cupy.cuda.using_allocator(functools.partial(_asked, allocate.beneath)):
        return array.copy()


def _allocator() -> Any:
    """Return the allocator of this thread; None if CuPy is not there, or there is no GPU."""
    cupy = sys.modules.get("cupy")
    if getattr(cupy, "cuda", None) is None or not gpu_available():
        return None
    return cupy.cuda.get_allocator()


def _pool_on(allocate: Any) -> _Pool:
    """Return a pool on top of an allocator: one that an earlier call has left, or a new one."""
    import cupy

    here = cupy.cuda.Device().id, os.getpid()
    with _changing:
        for one in _pools:
            if not one.at_work and (one.device, one.process) == here and one.beneath == allocate:
                one.at_work = True
                return one
        pool = cupy.cuda.MemoryPool(functools.partial(_asked, allocate))
        own = _Pool(pool, allocate, *here, _most_kept())
        _pools.append(own)
    _give_back_in_the_end()
    return own


def _asked(allocate: Any, size: int) -> Any:
    """Ask an allocator, again if what pools keep may be what it lacks."""
    try:
        return allocate(size)
    except Exception as error:
        if not lacks_memory(error):
            raise
    give_back(at_work=True)
    return allocate(size)


def tidy() -> None:
    """Return what pools hold and nobody uses, of calls that have ended, but for a little."""
    _give_back(at_work=False, kept=True)


def give_back(at_work: bool = False) -> None:
    """Return what pools hold and nobody uses, of calls that have ended or of all."""
    _give_back(at_work, kept=False)


def _give_back(at_work: bool, kept: bool) -> None:
    if not any(one.process == os.getpid() for one in list(_pools)):
        return
    import cupy

    with _changing:
        spared = set()
        for one in list(_pools):
            if one.process != os.getpid() or (one.at_work and not at_work):
                continue
            with cupy.cuda.Device(one.device):
                # one a GPU is left for the next call, the first, as that call will look for it
                if kept and one.device not in spared and one.pool.free_bytes() <= _stays(one):
                    spared.add(one.device)
                    continue
                one.pool.free_all_blocks()
                if not one.at_work and not one.pool.used_bytes():
                    _pools.remove(one)


def _stays(own: _Pool) -> int:
    """Return how many bytes that nobody uses may stay with a pool."""
    lasting = min(TIMES_IN_USE * own.pool.used_bytes(), TIMES_KEPT * own.largest)
    return max(own.largest, lasting)


def _most_kept() -> int:
    """Return how many bytes of the current GPU any pool may hold between two calls."""
    import cupy

    return _total_on(cupy.cuda.Device().id) // KEPT


@functools.cache
def _total_on(device: int) -> int:
    return memory_total("gpu")


def _give_back_in_the_end() -> None:
    """Return what is kept before CUDA ends, and before RMM gets other resources."""
    _registered(atexit.register)
    if "rmm" in sys.modules:
        import rmm

        _registered(rmm.register_reinitialize_hook)


@functools.cache
def _registered(register: Callable) -> None:
    """Register once what gives back."""
    register(give_back)
