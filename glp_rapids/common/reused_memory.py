"""Memory of a GPU that serves one array of a call after the other, where the allocator keeps none.

CuPy's own pool does so anyway. RMM by default asks CUDA for every array, which takes 0.1 ms, and as
long to give it back. So a call has a pool of its own, on top of the allocator that is set.

A pool must not go while any array of its is there: before CuPy 14.1 its memory would go with it,
and since then blocks of which a part is in use would never be given back. So those that outlive
their call stay in a list, until nothing of theirs is in use.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from glp_rapids.device import DeviceName, is_of_pool, memory_free


@dataclass(eq=False)
class _Pool:
    """A pool, and where: one has an arena for each GPU, and is of no use in a forked process."""

    pool: Any
    device: int
    process: int
    at_work: bool = True  # its call goes on


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
    ours = (one.pool for one in list(_pools) if one.at_work)
    if is_of_pool(allocate) or any(is_of_pool(allocate, pool) for pool in ours):
        yield
        return

    def ask(size: int) -> Any:
        try:
            return allocate(size)
        except MemoryError:
            give_back(at_work=True)
            return allocate(size)

    own = _Pool(cupy.cuda.MemoryPool(ask), cupy.cuda.Device().id, os.getpid())
    with _changing:
        _pools.append(own)
    try:
        if 0 < 4 * first <= memory_free(device):
            with contextlib.suppress(MemoryError):
                own.pool.malloc(first)  # held by nobody, so that it is there for smaller arrays
        with cupy.cuda.using_allocator(own.pool.malloc):
            yield
    finally:
        own.at_work = False
        give_back()


def give_back(at_work: bool = False) -> None:
    """Return what pools hold and nobody uses, of calls that have ended or of all."""
    if not any(one.process == os.getpid() for one in list(_pools)):
        return
    import cupy

    with _changing:
        for one in list(_pools):
            if one.process != os.getpid() or (one.at_work and not at_work):
                continue
            with cupy.cuda.Device(one.device):
                one.pool.free_all_blocks()
                if not one.at_work and not one.pool.used_bytes():
                    _pools.remove(one)
