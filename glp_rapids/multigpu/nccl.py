"""Exchanges of GPUs: arrays go by NCCL; those of one process tell small words by its threads.

Communicators are made once a process and set of GPUs, which takes about a second, and kept; a run
that fails aborts them, so that no kernel of NCCL spins on, and the next run makes others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

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


class Words(NamedTuple):
    """What is sent, or the room for what comes: an address on the GPU."""

    place: int
    bytes: int


class NcclMeeting(Meeting):
    """Where the ranks of some GPUs meet, with a communicator each once `connect` was called."""

    def __init__(self, devices: tuple[int, ...], patience: float | None = None):
        super().__init__(len(devices), patience)
        self._devices = devices
        self.communicators: list[Any] = []

    def connect(self) -> None:
        """Take the communicators that are there now: another run may have aborted the last ones.

        Whoever calls this holds `in_turn`, and until it lets go of it nobody else uses them.
        """
        self.communicators = _communicators(self._devices)

    def abort(self, error: BaseException) -> None:
        """Let all ranks fail; kernels of NCCL that wait for one another end."""
        first = self.error is None
        super().abort(error)
        if first and self.communicators and _kept.get(self._devices) is self.communicators:
            del _kept[self._devices]
            for communicator in self.communicators:
                communicator.abort()


class NcclArrays:
    """What an exchange of GPUs does with arrays; it says how ranks tell numbers, and which NCCL.

    All ranks have arrays of the same types in a call.
    """

    rank: int
    ranks: int
    bytes: int
    numbers: Callable[[Sequence[int]], list[Sequence[int]]]

    def _communicator(self) -> Any:
        """Return this rank's communicator, unless it is alone."""
        raise NotImplementedError

    def allgather(
        self, arrays: Sequence[Array], into: Callable[[int], Sequence[Array]] | None = None
    ) -> list[Array]:
        sizes = [size for (size,) in self.numbers([arrays[0].size])]
        return self._gathered(sizes, arrays, into)

    def _gathered(
        self, sizes: Sequence[int], arrays: Sequence[Array],
        into: Callable[[int], Sequence[Array]] | None,
    ) -> list[Array]:  # fmt: skip
        """Gather so many elements from each rank."""
        import cupy

        total = sum(sizes)
        arrays = [array[: sizes[self.rank]] for array in arrays]
        if into is None:
            rooms = [cupy.empty(total, array.dtype) for array in arrays]
        else:
            rooms = list(into(total))
        messages = []
        for array, room in zip(arrays, rooms, strict=True):
            sent, place = Words(array.data.ptr, array.nbytes), room.data.ptr
            for rank, size in enumerate(sizes):
                messages.append((rank, sent, Words(place, size * array.itemsize)))
                place += size * array.itemsize
        if total:
            self._send_arrays(messages)
        self.bytes += (self.ranks - 1) * sum(array.nbytes for array in arrays)
        return [room[:total] for room in rooms] if into is None else rooms

    def alltoall(self, parts: Sequence[Array]) -> list[Array]:
        import cupy

        sizes = [told[self.rank] for told in self.numbers([part.size for part in parts])]
        rooms = [cupy.empty(size, parts[0].dtype) for size in sizes]
        self._send_arrays([
            (rank, Words(part.data.ptr, part.nbytes), Words(room.data.ptr, room.nbytes))
            for rank, (part, room) in enumerate(zip(parts, rooms, strict=True))
        ])  # fmt: skip
        self.bytes += sum(part.nbytes for to, part in enumerate(parts) if to != self.rank)
        return rooms

    def _send_arrays(self, messages: list[tuple[int, Words, Words]]) -> None:
        """Send something to each rank and receive something from it; what is its own is copied."""
        from cupy.cuda import get_current_stream, nccl, runtime

        stream = get_current_stream().ptr
        for rank, sent, room in messages:
            if rank == self.rank and sent.bytes:
                runtime.memcpyAsync(
                    room.place, sent.place, sent.bytes, runtime.memcpyDeviceToDevice, stream
                )
        if self.ranks == 1:
            return
        communicator = self._communicator()
        nccl.groupStart()
        try:
            for rank, sent, room in messages:
                if rank == self.rank:
                    continue
                if sent.bytes:
                    communicator.send(sent.place, sent.bytes, nccl.NCCL_INT8, rank, stream)
                if room.bytes:
                    communicator.recv(room.place, room.bytes, nccl.NCCL_INT8, rank, stream)
        finally:
            nccl.groupEnd()


class NcclExchange(NcclArrays, ThreadExchange):
    """The exchange of a GPU with others of its process; its thread has made the GPU current."""

    _meeting: NcclMeeting

    def _communicator(self) -> Any:
        return self._meeting.communicators[self.rank]


def _communicators(devices: tuple[int, ...]) -> list[Any]:
    """Return a communicator for each GPU, kept from an earlier run or made."""
    if devices not in _kept:
        from cupy.cuda import nccl

        if len(devices) == 1:
            return [None]
        _kept[devices] = nccl.NcclCommunicator.initAll(list(devices))
    return _kept[devices]
