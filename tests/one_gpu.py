"""Ranks that share one GPU: the kernels and engines of several without several, and without NCCL.

``patched(monkeypatch)`` lets ``devices=[0, 0, 0]`` be that many ranks on GPU 0.
"""

from glp_rapids.multigpu import exchange
from glp_rapids.propagation import options
from glp_rapids.propagation.engines import partitioned_gpu


class SharingExchange(exchange.ThreadExchange):
    """An exchange by copies on the one GPU, each settled before it is told."""

    def allgather(self, arrays, into=None):
        import cupy

        copies = [array.copy() for array in arrays]
        cupy.cuda.get_current_stream().synchronize()
        given = list(zip(*self.tell(copies), strict=True))
        size = sum(part.size for part in given[0])
        rooms = [cupy.empty(size, a.dtype) for a in arrays] if into is None else into(size)
        for room, parts in zip(rooms, given, strict=True):
            room[:size] = cupy.concatenate(parts)
        self.bytes += (self.ranks - 1) * sum(array.nbytes for array in arrays)
        return list(rooms)


def patched(monkeypatch):
    def connected(engine):
        engine._meeting = exchange.Meeting(len(engine._devices))
        return [SharingExchange(engine._meeting, rank) for rank in range(len(engine._devices))]

    monkeypatch.setattr(partitioned_gpu, "chosen", "nccl")
    monkeypatch.setattr(options, "devices_of", lambda devices: devices and tuple(devices))
    monkeypatch.setattr(partitioned_gpu.PartitionedGpuEngine, "_connected", connected)
