"""The exchange of the GPUs of Dask workers: arrays go by NCCL, all else over Dask's connections.

The workers' communicators know one another by an identifier that the first rank tells the others.
They are made once, which takes about a second, and kept on the workers for further runs of the same
ranks. When a run fails its communicators are aborted, so that no kernel of NCCL spins on for the
dead; whoever runs the ranks restarts workers where that does not help (`dask.cluster`).
"""

from __future__ import annotations

import contextlib
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from glp_rapids.device import device_of
from glp_rapids.multigpu.dask_exchange import DaskExchange
from glp_rapids.multigpu.exchange import RankFailed
from glp_rapids.multigpu.nccl import NcclArrays, Words

Array = Any
GRACE = 3.0  # seconds that a rank waits for NCCL to end


@contextlib.contextmanager
def _errors_of_nccl() -> Iterator[None]:
    """Say that other ranks failed where NCCL fails, which it does when one of them is gone."""
    from cupy.cuda import nccl

    try:
        yield
    except (nccl.NcclError, KeyError) as error:  # CuPy knows no name for some of NCCL's errors
        raise RankFailed(f"NCCL failed, as it does when another rank is gone: {error}") from error


class _Communicator:
    """One end of NCCL, which whoever sees a run fail may abort, once.

    One that is not aborted must not go: it would end together with all others, and wait for them.
    """

    def __init__(self, ranks: int, identifier: Any, rank: int) -> None:
        from cupy.cuda import nccl

        with _errors_of_nccl():
            self._end = nccl.NcclCommunicator(ranks, identifier, rank)
        self._changing, self._over = threading.Lock(), False

    @property
    def end(self) -> Any:
        """NCCL's own."""
        if self._over:
            raise RankFailed("NCCL was aborted, as another rank failed")
        return self._end

    def abort(self) -> None:
        """End all that waits here, and all that would; that may take for ever."""
        with self._changing:
            if not self._over:
                self._over = True
                self._end.abort()

    def let_go(self) -> None:
        """Abort in a thread of its own, and wait for that a while."""
        ending = threading.Thread(target=self.abort, name="end of NCCL", daemon=True)
        ending.start()
        ending.join(GRACE)


_kept: dict[tuple[str, ...], tuple[str, _Communicator]] = {}  # by the workers of the ranks


def let_all_go() -> None:
    """Abort all communicators that are kept."""
    while _kept:
        _, (_, end) = _kept.popitem()
        end.let_go()


class DaskGpuExchange(NcclArrays, DaskExchange):
    """The exchange of a rank on a Dask worker that has a GPU of its own, the current one."""

    def __init__(self, run: str, rank: int, addresses: Sequence[str]):
        super().__init__(run, rank, addresses)
        self._end: _Communicator | None = None
        if self.ranks > 1:
            self._end = self._connected(tuple(addresses))
            self._plugin.on_failure(run, self._forget_end)
        self._room: Array = None

    def allgather(
        self, arrays: Sequence[Array], into: Callable[[int], Sequence[Array]] | None = None
    ) -> list[Array]:
        how = NcclArrays if device_of(arrays[0]) == "gpu" else DaskExchange
        return how.allgather(self, arrays, into)

    def alltoall(self, parts: Sequence[Any]) -> list[Any]:
        on_gpu = hasattr(parts[0], "dtype") and device_of(parts[0]) == "gpu"
        return (NcclArrays if on_gpu else DaskExchange).alltoall(self, parts)

    def _connected(self, addresses: tuple[str, ...]) -> _Communicator:
        """Return the communicator of these ranks: the last one, if all have that, or another."""
        name, end = _kept.get(addresses, ("", None))
        names = set(self.tell(name))
        if names == {name} and end is not None:
            return end
        let_all_go()  # those of other ranks would never be used again
        identifier = None
        if self.rank == 0:
            from cupy.cuda import nccl

            identifier, name = nccl.get_unique_id(), uuid.uuid4().hex
        identifier, name = self.tell((identifier, name))[0]
        end = _Communicator(self.ranks, identifier, self.rank)
        _kept[addresses] = name, end
        return end

    def _forget_end(self) -> None:
        for addresses, (_, end) in list(_kept.items()):
            if end is self._end:
                del _kept[addresses]
        if self._end is not None:
            self._end.abort()

    def _communicator(self) -> Any:
        if self._end is None:
            raise RankFailed("a rank alone has no communicator")
        return self._end.end

    def allgather_first(
        self, number: Array, arrays: Sequence[Array], into: Callable[[int], Sequence[Array]]
    ) -> list[Array]:
        (sizes,) = self._words_of_all(number).T.tolist()
        return self._gathered(sizes, arrays, into)

    def _send_arrays(self, messages: list[tuple[int, Words, Words]]) -> None:
        self._plugin.refuse_failed(self._run)
        with _errors_of_nccl():
            super()._send_arrays(messages)

    def numbers(self, values: Sequence[int]) -> list[Sequence[int]]:
        """Tell integers by NCCL: over Dask's connections that takes milliseconds."""
        import cupy

        if self.ranks == 1:
            return [values]
        return self._words_of_all(cupy.asarray(np.array(values, np.int64))).tolist()

    def _words_of_all(self, words: Array) -> np.ndarray:
        """Return the words, int64, that all ranks have on their GPUs, a row a rank."""
        import cupy
        from cupy.cuda import nccl

        if self.ranks == 1:
            return words.get()[None]
        begin = time.perf_counter()
        self._plugin.refuse_failed(self._run)
        if self._room is None or self._room.size < self.ranks * words.size:
            self._room = cupy.empty(self.ranks * words.size, np.int64)
        room = self._room[: self.ranks * words.size]
        with _errors_of_nccl():
            self._communicator().allGather(
                words.data.ptr, room.data.ptr, words.size, nccl.NCCL_INT64,
                cupy.cuda.get_current_stream().ptr,
            )  # fmt: skip
        told = room.get().reshape(self.ranks, words.size)
        self._plugin.refuse_failed(self._run)  # what was aborted has told nothing
        self.waiting += time.perf_counter() - begin
        return told
