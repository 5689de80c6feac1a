"""Stand-ins for what pools of calls ask of CuPy, for machines without a GPU."""

import contextlib
import sys
from types import SimpleNamespace

from glp_rapids.common import reused_memory as reused


class Pool:
    """As CuPy's: memory on each GPU, of which what is used and what is kept is told apart."""

    def __init__(self, allocator):
        self.allocator, self.used, self.kept = allocator, {}, {}

    def malloc(self, size):
        self.allocator(size)
        self.used[Gpu.current] = self.used.get(Gpu.current, 0) + size

    def drop(self, size, gpu):
        self.used[gpu] -= size
        self.kept[gpu] = self.kept.get(gpu, 0) + size

    def used_bytes(self):
        return self.used.get(Gpu.current, 0)

    def free_bytes(self):
        return self.kept.get(Gpu.current, 0)

    def free_all_blocks(self):
        self.kept[Gpu.current] = 0


class Block:
    """As CuPy's memory of a pool."""

    def __init__(self, size):
        self.size = size


class Array:
    """As CuPy's array, of memory of some kind."""

    def __init__(self, memory):
        self.data = SimpleNamespace(mem=memory)

    def copy(self):
        sys.modules["cupy"].cuda.get_allocator()(self.data.mem.size)
        return Array(SimpleNamespace(size=self.data.mem.size))


class Gpu:
    """As CuPy's Device."""

    current = 0

    def __init__(self, number=None):
        self.id = self.current if number is None else number

    def __enter__(self):
        self.before, Gpu.current = Gpu.current, self.id

    def __exit__(self, *error):
        Gpu.current = self.before


def stand_ins(monkeypatch):
    """Stand-ins for CuPy and an allocator that fails when told to; what it was asked for."""
    sizes = []

    def allocate(size):
        sizes.append(size)
        if size in lacking:
            lacking.remove(size)
            raise lack[0]

    lacking, lack = [], [MemoryError()]
    set_now = [allocate]

    @contextlib.contextmanager
    def using(allocator):
        set_now.append(allocator)
        try:
            yield
        finally:
            set_now.pop()

    default = Pool(allocate)
    cuda = SimpleNamespace(
        get_allocator=lambda: set_now[-1],
        MemoryPool=Pool,
        Device=Gpu,
        using_allocator=using,
        runtime=SimpleNamespace(getDevice=lambda: Gpu.current),
        memory=SimpleNamespace(PooledMemory=Block),
    )
    stand_in = SimpleNamespace(cuda=cuda, get_default_memory_pool=lambda: default, ndarray=Array)
    monkeypatch.setitem(sys.modules, "cupy", stand_in)
    monkeypatch.setattr(reused, "_pools", [])
    monkeypatch.setattr(reused, "_give_back_in_the_end", lambda: None)
    monkeypatch.setattr(reused, "gpu_available", lambda: True)
    most = SimpleNamespace(kept=5000)
    monkeypatch.setattr(reused, "_total_on", lambda gpu: most.kept * reused.KEPT)
    return SimpleNamespace(
        sizes=sizes, lacking=lacking, lack=lack, cupy=stand_in, set_now=set_now, most=most
    )
