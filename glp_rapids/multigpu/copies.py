"""Exchanges of the GPUs of one process by copies: each fetches what the others have for it.

The driver copies between any two GPUs, from memory of any allocator: over NVLink where they reach
one another, else through host memory. Events order the copies, and threads tell one another small
words; no GPU ever waits in a kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from glp_rapids.multigpu.exchange import Meeting, ThreadExchange

Array = Any


class CopyMeeting(Meeting):
    """Where the ranks of some GPUs meet."""

    def __init__(self, devices: tuple[int, ...], patience: float | None = None):
        super().__init__(len(devices), patience)


class Offer(NamedTuple):
    """What a rank has for others: arrays on its GPU, and when they are there."""

    arrays: Sequence[Array]
    device: int
    written: Any  # event


class CopyExchange(ThreadExchange):
    """The exchange of a GPU with others of its process; its thread has made the GPU current."""

    def allgather(
        self, arrays: Sequence[Array], into: Callable[[int], Sequence[Array]] | None = None
    ) -> list[Array]:
        import cupy

        offers = self._offered(arrays)
        total = sum(offer.arrays[0].size for offer in offers)
        if into is None:
            rooms = [cupy.empty(total, array.dtype) for array in arrays]
        else:
            rooms = list(into(total))
        for number, room in enumerate(rooms[: len(arrays)]):
            place = room.data.ptr
            for offer in offers:
                _fetch(place, offer.arrays[number], offer.device)
                place += offer.arrays[number].nbytes
        self._fetched()
        self.bytes += (self.ranks - 1) * sum(array.nbytes for array in arrays)
        return rooms

    def alltoall(self, parts: Sequence[Array]) -> list[Array]:
        import cupy

        offers = self._offered(parts)
        rooms = [cupy.empty(offer.arrays[self.rank].size, parts[0].dtype) for offer in offers]
        for offer, room in zip(offers, rooms, strict=True):
            _fetch(room.data.ptr, offer.arrays[self.rank], offer.device)
        self._fetched()
        self.bytes += sum(part.nbytes for to, part in enumerate(parts) if to != self.rank)
        return rooms

    def _offered(self, arrays: Sequence[Array]) -> list[Offer]:
        """Offer arrays; return what all offer, once this GPU's current stream may read it."""
        offers = self.tell(Offer(arrays, _gpu(), _event()))
        for rank, offer in enumerate(offers):
            if rank != self.rank:
                _wait(offer.written)
        return offers

    def _fetched(self) -> None:
        """Let the current stream wait until all have what they fetch: it may write there again."""
        for rank, event in enumerate(self.tell(_event())):
            if rank != self.rank:
                _wait(event)


def fetch(into: Array, array: Array, device: int | None) -> None:
    """Copy an array of a device to the begin of one on this GPU; None: both are the host's."""
    if device is None:
        into[: array.size] = array
    else:
        _fetch(into.data.ptr, array, device)


def _fetch(place: int, array: Array, device: int) -> None:
    """Copy an array of a GPU to an address on this one."""
    from cupy.cuda import get_current_stream, runtime

    if array.nbytes:
        stream = get_current_stream().ptr
        runtime.memcpyPeerAsync(place, _gpu(), array.data.ptr, device, array.nbytes, stream)


def _gpu() -> int:
    from cupy.cuda import runtime

    return runtime.getDevice()


def _event() -> Any:
    """Return an event of what the current stream has to do so far."""
    from cupy.cuda import Event

    event = Event(disable_timing=True)
    event.record()
    return event


def _wait(event: Any) -> None:
    from cupy.cuda import get_current_stream

    get_current_stream().wait_event(event)
