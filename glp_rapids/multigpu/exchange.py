"""What ranks that work on parts of one graph tell one another: the `Exchange`, and its thread body.

A rank is a thread with arrays of its own, on a CPU or on a GPU; all ranks call the same methods in
the same order. Whoever fails aborts the exchange: all others that wait, or come to wait, raise
`RankFailed` at once. Nobody waits for ever: a wait ends after `PATIENCE` seconds; and of NCCL
between processes whoever runs the ranks sees to it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from glp_rapids.device import to_host

Array = Any
PATIENCE = 600.0  # seconds that a rank waits for others: more than a step of a sweep ever takes


class RankFailed(RuntimeError):
    """Another rank failed, or did not come: this one cannot go on."""


class Exchange(Protocol):
    """One rank's end of an exchange among ``ranks``; it is number ``rank`` of them.

    What is handed over must not be written to afterwards: the others may read it where it lies.

    Attributes
    ----------
    bytes : int
        Sent to other ranks so far, each copy counted; small words that ranks tell one another do
        not count.
    waiting : float
        Seconds spent in these methods so far.
    """

    rank: int
    ranks: int
    bytes: int
    waiting: float

    def tell(self, value: Any) -> list[Any]:
        """Return the small values of all ranks, in their order."""

    def allgather(
        self, arrays: Sequence[Array], into: Callable[[int], Sequence[Array]] | None = None
    ) -> list[Array]:
        """Return arrays with those of all ranks one after the other.

        ``arrays`` of a rank have one length. ``into``: makes the room for so many elements of each,
        or more, of which the first are written; None: there is none yet.
        """

    def allgather_first(
        self, number: Array, arrays: Sequence[Array], into: Callable[[int], Sequence[Array]]
    ) -> list[Array]:
        """Do as `allgather` with so many first elements of arrays as an array of one integer says.

        On a GPU the host need not read that integer before the ranks tell one another.
        """

    def alltoall(self, parts: Sequence[Array]) -> list[Array]:
        """Return what each rank has for this one; ``parts`` are what this one has for each."""

    def numbers(self, values: Sequence[int]) -> list[Sequence[int]]:
        """Return the integers of all ranks, in their order; each tells as many."""

    def sum(self, number: int) -> int:
        """Add up the numbers of all ranks."""

    def barrier(self) -> None:
        """Wait until all ranks are here."""

    def refuse_failed(self) -> None:
        """Raise `RankFailed` if another rank failed: for who works long without waiting."""

    def abort(self, error: BaseException) -> None:
        """Let all ranks fail, for the sake of an error of this one."""


def joined(
    given: Sequence[Sequence[np.ndarray]], into: Callable[[int], Sequence[np.ndarray]] | None
) -> list[np.ndarray]:
    """Join the parts of each array, in the room that there is."""
    if into is None:
        return [np.concatenate(parts) for parts in given]
    size = sum(part.size for part in given[0])
    rooms = [room[:size] for room in into(size)]
    return [np.concatenate(parts, out=room) for parts, room in zip(given, rooms, strict=True)]


def bytes_of(part: Any) -> int:
    """Return the bytes of an array, or of a frame or column of pandas."""
    if hasattr(part, "nbytes"):
        return int(part.nbytes)
    return int(np.sum(part.memory_usage(index=False)))


class Meeting:
    """Where the threads of one process meet; each has a `ThreadExchange` of it."""

    def __init__(self, ranks: int, patience: float | None = None):
        self.ranks = ranks
        self.patience = PATIENCE if patience is None else patience
        self._barrier = threading.Barrier(ranks)
        # Two sets in turn: one is written again only after all have read it and met once more.
        self._slots: list[list[Any]] = [[None] * ranks, [None] * ranks]
        self._lock = threading.Lock()
        self.error: BaseException | None = None

    def connect(self) -> None:
        """Get ready for a run, when nobody else of the process exchanges arrays of GPUs."""

    def abort(self, error: BaseException) -> None:
        """Let all that wait fail, and all that come; the first error is the one that counts."""
        with self._lock:
            if self.error is None:
                self.error = error
        self._barrier.abort()

    def share(self, turn: int, rank: int, value: Any) -> list[Any]:
        """Lay down a value; return those of all ranks once they are there."""
        slots = self._slots[turn & 1]
        slots[rank] = value
        try:
            self._barrier.wait(self.patience)
        except threading.BrokenBarrierError:
            raise RankFailed(self._said(rank)) from self.error
        return list(slots)

    def refuse_failed(self, rank: int) -> None:
        """Raise if a rank failed."""
        if self.error is not None:
            raise RankFailed(self._said(rank)) from self.error

    def _said(self, rank: int) -> str:
        if self.error is None:
            return f"rank {rank} waited {self.patience:g} seconds for others that did not come"
        kind = type(self.error).__name__
        return f"rank {rank} stopped, as another one failed: {kind}: {self.error}"


class ByTelling:
    """What an exchange does by telling small values."""

    def tell(self, value: Any) -> list[Any]:
        raise NotImplementedError

    def allgather(
        self, arrays: Sequence[Array], into: Callable[[int], Sequence[Array]] | None = None
    ) -> list[Array]:
        raise NotImplementedError

    def allgather_first(
        self, number: Array, arrays: Sequence[Array], into: Callable[[int], Sequence[Array]]
    ) -> list[Array]:
        size = int(to_host(number)[0])
        return self.allgather([array[:size] for array in arrays], into)

    def numbers(self, values: Sequence[int]) -> list[Sequence[int]]:
        return self.tell(values)

    def sum(self, number: int) -> int:
        return sum(told for (told,) in self.numbers([number]))

    def barrier(self) -> None:
        self.tell(None)


class ThreadExchange(ByTelling):
    """The exchange of a thread with others of its process, of NumPy arrays or small values."""

    def __init__(self, meeting: Meeting, rank: int):
        self._meeting, self.rank, self.ranks = meeting, rank, meeting.ranks
        self.bytes, self.waiting, self._turn = 0, 0.0, 0

    def tell(self, value: Any) -> list[Any]:
        begin, self._turn = time.perf_counter(), self._turn + 1
        values = self._meeting.share(self._turn, self.rank, value)
        self.waiting += time.perf_counter() - begin
        return values

    def allgather(
        self, arrays: Sequence[Array], into: Callable[[int], Sequence[Array]] | None = None
    ) -> list[Array]:
        told = self.tell(tuple(arrays))
        self.bytes += (self.ranks - 1) * sum(array.nbytes for array in arrays)
        given = list(zip(*told, strict=True))
        return joined(given, into)

    def alltoall(self, parts: Sequence[Array]) -> list[Array]:
        told = self.tell(list(parts))
        self.bytes += sum(bytes_of(part) for to, part in enumerate(parts) if to != self.rank)
        return [given[self.rank] for given in told]

    def refuse_failed(self) -> None:
        self._meeting.refuse_failed(self.rank)

    def abort(self, error: BaseException) -> None:
        self._meeting.abort(error)


def exchanges(ranks: int, patience: float | None = None) -> list[ThreadExchange]:
    """Make the exchanges of so many threads of this process, in the order of their ranks."""
    meeting = Meeting(ranks, patience)
    return [ThreadExchange(meeting, rank) for rank in range(ranks)]


def as_ranks(works: Sequence[Callable[[], Any]], abort: Callable[[BaseException], None]) -> list:
    """Do the work of each rank in a thread of its own; return what each returned.

    ``abort`` lets ranks that wait for one another fail. The error that is raised is the first one
    that a rank had of its own; a Ctrl-C stops all of them, too.
    """
    results: list[Any] = [None] * len(works)
    errors: list[BaseException] = []  # in the order in which they came

    def do(rank: int) -> None:
        try:
            results[rank] = works[rank]()
        except BaseException as error:  # whatever it is, the others would wait for this rank
            errors.append(error)
            abort(error)

    threads = [
        threading.Thread(target=do, args=(rank,), name=f"rank {rank}", daemon=True)
        for rank in range(len(works))
    ]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            while thread.is_alive():
                thread.join(0.05)  # signals are looked at in between
    except BaseException as error:
        abort(error)
        for thread in threads:
            if thread.ident is not None:
                thread.join()
        raise
    own = [error for error in errors if not isinstance(error, RankFailed)]
    first = next(iter(own or errors), None)
    try:
        if first is not None:
            raise first
    finally:  # else a cycle of error, frame and list would keep what the ranks held, memory too
        errors.clear()
        del own, first
    return results
