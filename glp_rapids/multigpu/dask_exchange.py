"""The exchange of Dask workers: values go from worker to worker over Dask's own connections.

A plugin takes them in on every worker. Whoever runs the ranks looks whether all workers are there,
and lets the others fail as soon as one is not (`ExchangePlugin.fail`): nobody waits for the dead.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any

from distributed import WorkerPlugin, get_worker
from distributed.protocol import to_serialize
from distributed.utils import sync

from glp_rapids.multigpu import exchange
from glp_rapids.multigpu.exchange import RankFailed

NAME = "glp-rapids-exchange"
HANDLER = "glp_rapids_take"
REMEMBERED = 100  # runs that failed: what is still on its way to them is dropped


class ExchangePlugin(WorkerPlugin):
    """What a worker has taken in of the runs that its ranks are part of."""

    name = NAME
    idempotent = True

    def setup(self, worker: Any) -> None:
        """Begin to take values in."""
        self._news = threading.Condition()
        self._taken: dict[tuple[str, int], dict[int, Any]] = {}
        self._failed: dict[str, str] = {}
        self._sending: dict[str, Callable[[], Any]] = {}  # what ends it
        self._when_failed: dict[str, Callable[[], Any]] = {}
        self._running: set[str] = set()
        worker.handlers[HANDLER] = self.take

    def teardown(self, worker: Any) -> None:
        """Take nothing in any more."""
        worker.handlers.pop(HANDLER, None)
        if gpus := sys.modules.get("glp_rapids.multigpu.dask_gpu_exchange"):
            gpus.let_all_go()

    async def take(self, run: str, turn: int, rank: int, value: Any) -> None:
        """Take a value in that a rank has sent in one of its turns."""
        with self._news:
            if run not in self._failed:
                self._taken.setdefault((run, turn), {})[rank] = value
                self._news.notify_all()

    def fail(self, run: str, why: str) -> None:
        """Let the rank of a run fail, now or when it comes to send or wait."""
        with self._news:
            end = self._when_failed.get(run)
            self.forget(run)
            self._failed[run] = why
            for old in list(self._failed)[:-REMEMBERED]:
                del self._failed[old]
            self._news.notify_all()
            if run in self._sending:
                self._sending[run]()
        if end is not None:  # which may take long, or for ever: nobody waits for it
            threading.Thread(target=end, name=f"end of {run}", daemon=True).start()

    def on_failure(self, run: str, end: Callable[[], Any]) -> None:
        """Have something called, in a thread of its own, when a run fails; at once if it has."""
        with self._news:
            failed = run in self._failed
            if not failed:
                self._when_failed[run] = end
        if failed:
            end()
            self.refuse_failed(run)

    def begin(self, run: str) -> None:
        """Note that a rank is at work here."""
        self._running.add(run)

    def end(self, run: str) -> None:
        """Note that it is no more."""
        self._running.discard(run)

    def is_running(self, run: str) -> bool:
        """Tell whether a rank is at work here."""
        return run in self._running

    def refuse_failed(self, run: str) -> None:
        """Raise if a run has failed."""
        with self._news:
            if run in self._failed:
                raise RankFailed(self._failed[run])

    async def send(self, run: str, values: Awaitable[Any]) -> None:
        """Wait until a rank's values are sent, or the run fails: the dead take none."""
        sending = asyncio.ensure_future(values)
        end = partial(asyncio.get_running_loop().call_soon_threadsafe, sending.cancel)
        with self._news:
            self._sending[run] = end
            if run in self._failed:
                end()
        try:
            await sending
        except asyncio.CancelledError:
            if run not in self._failed:
                raise
            raise RankFailed(self._failed[run]) from None
        finally:
            with self._news:
                del self._sending[run]

    def wait_for(self, run: str, turn: int, number: int, patience: float) -> dict[int, Any]:
        """Wait for so many values of a turn, and hand them out."""
        until = time.monotonic() + patience
        with self._news:
            while True:
                if run in self._failed:
                    raise RankFailed(self._failed[run])
                if len(self._taken.get((run, turn), ())) >= number:
                    return self._taken.pop((run, turn), {})
                if not self._news.wait(min(until - time.monotonic(), 1.0)) and (
                    time.monotonic() >= until
                ):
                    raise RankFailed(f"others did not come within {patience:g} seconds")

    def forget(self, run: str) -> None:
        """Drop what is left of a run."""
        with self._news:
            for key in [key for key in self._taken if key[0] == run]:
                del self._taken[key]
            self._failed.pop(run, None)
            self._when_failed.pop(run, None)


class DaskExchange(exchange.ByTelling):
    """The exchange of a rank on a Dask worker; ``addresses`` are those of all ranks' workers."""

    def __init__(self, run: str, rank: int, addresses: Sequence[str]):
        self._worker = get_worker()
        self._plugin: ExchangePlugin = self._worker.plugins[NAME]
        self._run, self.rank, self.ranks = run, rank, len(addresses)
        self._addresses = list(addresses)
        self.bytes, self.waiting, self._turn = 0, 0.0, 0

    def tell(self, value: Any) -> list[Any]:
        return self._swap([value] * self.ranks)

    def allgather(
        self, arrays: Sequence[Any], into: Callable[[int], Sequence[Any]] | None = None
    ) -> list[Any]:
        given = list(zip(*self.tell(list(arrays)), strict=True))
        self.bytes += (self.ranks - 1) * sum(array.nbytes for array in arrays)
        return exchange.joined(given, into)

    def alltoall(self, parts: Sequence[Any]) -> list[Any]:
        self.bytes += sum(
            exchange.bytes_of(part) for to, part in enumerate(parts) if to != self.rank
        )
        return self._swap(list(parts))

    def abort(self, error: BaseException) -> None:
        self._plugin.fail(self._run, f"{type(error).__name__}: {error}")

    def refuse_failed(self) -> None:
        """Raise if another rank has failed, or the run was cancelled."""
        self._plugin.refuse_failed(self._run)

    def close(self) -> None:
        """Let the worker forget what is left of this run."""
        self._plugin.forget(self._run)

    def _swap(self, values: list[Any]) -> list[Any]:
        """Send each rank its value; return what each has for this one."""
        begin, self._turn = time.perf_counter(), self._turn + 1
        if self.ranks > 1:
            try:
                sync(self._worker.loop, self._send, values)
            except OSError as error:
                raise RankFailed(f"a worker cannot be reached: {error}") from error
        taken = self._plugin.wait_for(
            self._run, self._turn, self.ranks - 1, exchange.PATIENCE
        )  # fmt: skip
        taken[self.rank] = values[self.rank]
        self.waiting += time.perf_counter() - begin
        return [taken[rank] for rank in range(self.ranks)]

    async def _send(self, values: list[Any]) -> None:
        await self._plugin.send(self._run, asyncio.gather(*(
            getattr(self._worker.rpc(self._addresses[to]), HANDLER)(
                run=self._run, turn=self._turn, rank=self.rank, value=to_serialize(values[to])
            )
            for to in range(self.ranks)
            if to != self.rank
        )))  # fmt: skip
