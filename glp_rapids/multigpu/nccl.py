"""The exchange of GPUs of one process: arrays go by NCCL, small words between the host's threads.

Communicators are made once a process and set of GPUs, which takes about a second, and kept; a run
that fails aborts them, so that no kernel of NCCL spins on, and the next run makes others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from glp_rapids.jit import forks
from glp_rapids.multigpu.exchange import Meeting, ThreadExchange

Array = Any

in_turn = forks.Lock()  # calls of NCCL must come in one order on all GPUs: one run at a time
_kept: dict[tuple[int, ...], list[Any]] = {}


def nccl_problem() -> str | None:
    """Say why GPUs cannot exchange arrays, or None when they can."""
    try:
        from cupy.cuda import nccl
    except ImportError as error:
        return f"CuPy has no NCCL: {error}"
    if not getattr(nccl, "available", True):
        return "CuPy finds no NCCL (pip install nvidia-nccl-cu13, or -cu12)"
    return None


class NcclMeeting(Meeting):
    """Where the ranks of some GPUs meet, with a communicator each."""

    def __init__(self, devices: tuple[int, ...], patience: float | None = None):
        super().__init__(len(devices), patience)
        self._devices = devices
        self.communicators = _communicators(devices)

    def abort(self, error: BaseException) -> None:
        """Let all ranks fail; kernels of NCCL that wait for one another end."""
        first = self.error is None
        super().abort(error)
        if first and _kept.pop(self._devices, None) is not None:
            for communicator in self.communicators:
                communicator.abort()


class NcclExchange(ThreadExchange):
    """The exchange of a GPU with others of its process; its thread has made the GPU current."""

    def __init__(self, meeting: NcclMeeting, rank: int):
        super().__init__(meeting, rank)
        self._communicator = meeting.communicators[rank]

    def allgather(
        self, arrays: Sequence[Array], into: Callable[[int], Sequence[Array]] | None = None
    ) -> list[Array]:
        import cupy

        sizes = self.tell(arrays[0].size)
        ends = [sum(sizes[: rank + 1]) for rank in range(self.ranks)]
        if into is None:
            rooms = [cupy.empty(ends[-1], array.dtype) for array in arrays]
        else:
            rooms = list(into(ends[-1]))
        pairs = []
        for array, room in zip(arrays, rooms, strict=True):
            parts = [room[end - size : end] for end, size in zip(ends, sizes, strict=True)]
            pairs.append(([array] * self.ranks, parts))
            _copy(array, parts[self.rank])
        self._send(pairs)
        self.bytes += (self.ranks - 1) * sum(array.nbytes for array in arrays)
        return rooms

    def alltoall(self, parts: Sequence[Array]) -> list[Array]:
        import cupy

        sizes = [told[self.rank] for told in self.tell([part.size for part in parts])]
        rooms = [cupy.empty(size, parts[0].dtype) for size in sizes]
        _copy(parts[self.rank], rooms[self.rank])
        self._send([(list(parts), rooms)])
        self.bytes += sum(part.nbytes for to, part in enumerate(parts) if to != self.rank)
        return rooms

    def _send(self, pairs: list[tuple[list[Array], list[Array]]]) -> None:
        """Send an array to each rank and receive one from each; its own is there already."""
        if self.ranks == 1:
            return
        import cupy
        from cupy.cuda import nccl

        stream = cupy.cuda.get_current_stream().ptr
        nccl.groupStart()
        try:
            for given, rooms in pairs:
                for peer in range(self.ranks):
                    sent, room = given[peer], rooms[peer]
                    if peer == self.rank:
                        continue
                    if sent.size:
                        self._communicator.send(
                            sent.data.ptr, sent.nbytes, nccl.NCCL_INT8, peer, stream
                        )
                    if room.size:
                        self._communicator.recv(
                            room.data.ptr, room.nbytes, nccl.NCCL_INT8, peer, stream
                        )
        finally:
            nccl.groupEnd()


def _copy(array: Array, room: Array) -> None:
    if array.size:
        room.data.copy_from_device_async(array.data, array.nbytes)


def _communicators(devices: tuple[int, ...]) -> list[Any]:
    """Return a communicator for each GPU, kept from an earlier run or made."""
    if devices not in _kept:
        from cupy.cuda import nccl

        if len(devices) == 1:
            return [None]
        _kept[devices] = nccl.NcclCommunicator.initAll(list(devices))
    return _kept[devices]
