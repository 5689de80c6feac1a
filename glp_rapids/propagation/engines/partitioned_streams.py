"""One run on several GPUs of this process, to which the lists of a graph come strip by strip.

For graphs in host memory of which the GPUs together cannot hold the lists (those that they can,
they do: `partitioned_gpu`). Labels and state are on each of them, and the order of all rows.
Engines are made by a thread each; the caller's then leads them all.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, ClassVar

from glp_rapids.multigpu.exchange import Exchange
from glp_rapids.multigpu.nccl import in_turn
from glp_rapids.multigpu.rounds import Rounds, in_rounds
from glp_rapids.propagation.engines.partitioned import PartitionedEngine
from glp_rapids.propagation.engines.partitioned_gpu import PartitionedGpuEngine, copied, how_of
from glp_rapids.propagation.engines.rank_streamed import (
    BARE,
    FULL,
    StreamedPackedRankEngine,
    StreamedRankEngine,
)
from glp_rapids.propagation.workload import Workload


class _Launching:
    """The scope of a GPU without what Numba needs to load a kernel, and without a watch.

    A sweep enters it for every class and rank; a generator that also tells Numba takes longer than
    what is done in it.
    """

    __slots__ = ("_device", "_stream")

    def __init__(self, device: int) -> None:
        from cupy import cuda

        self._device, self._stream = cuda.Device(device), cuda.Stream.null

    def __enter__(self) -> None:
        self._device.__enter__()
        self._stream.__enter__()

    def __exit__(self, *error: object) -> None:
        self._stream.__exit__(*error)
        self._device.__exit__(*error)


class PartitionedStreamsEngine(PartitionedGpuEngine):
    """Run one program on one graph in host memory with several GPUs of this process."""

    _rank_engine: ClassVar[type[StreamedRankEngine]] = StreamedRankEngine

    def _find_parts(self, workload: Workload, devices: tuple[int | str, ...]) -> None:
        """Leave the lists where they are: none is kept on a GPU from run to run."""
        self._how = "peer loads" if how_of(devices) == "peer stores" else "copies"
        self._rounds = Rounds(len(devices))

    def _connected(self) -> list[Exchange]:
        return PartitionedEngine._connected(self)

    def _together(self, do: Callable[[int], Any]) -> list[Any]:
        with in_turn:  # kernels of another run may wait for one another, and ours in between
            return PartitionedEngine._together(self, do)

    def _ranges(self) -> list[int]:
        """Return ranges without vertices: ranks have parts of classes, not of the vertices."""
        return [0] * (len(self._devices) + 1)

    def _engine(self, rank: int) -> StreamedRankEngine:
        fields = self._fields
        if not self._works_on_given(rank):
            fields = {name: copied(value) for name, value in fields.items()}
        workload = replace(self._workload, active=None)
        return self._rank_engine(
            workload, self._compiled, fields, self._exchanges[rank], self._rounds,
            self._how == "peer loads",
        )  # fmt: skip

    def _advance_ranks(self, sweeps: int) -> None:
        over = True
        works = [
            engine.sweeps(schedule, sweeps)
            for engine, schedule in zip(self._engines, self._schedules, strict=True)
        ]
        with in_turn, contextlib.ExitStack() as settling:
            try:
                in_rounds(works, {FULL: self._leading, BARE: self._launching}, FULL)
                over = self._schedules[0].over or bool(self.failure())
            finally:
                for rank in range(len(works) if over else 0):  # all, even if one cannot
                    settling.callback(self._settle, rank)

    def _settle(self, rank: int) -> None:
        with self._leading(rank):
            self._engines[rank].settle()

    def _launching(self, rank: int) -> contextlib.AbstractContextManager[None]:
        """Likewise, for launches of what is loaded, copies and events: nothing is allocated."""
        return _Launching(int(self._devices[rank]))

    @contextlib.contextmanager
    def _leading(self, rank: int) -> Iterator[None]:
        """Make a rank's GPU the current one, with the stream that its engine was made on."""
        import cupy

        with self._scope(rank), cupy.cuda.Stream.null:
            yield

    def facts(self) -> dict[str, Any]:
        """Return what the report of a run says besides: of each GPU, and of all together."""
        facts = PartitionedEngine.facts(self)
        found = [engine.facts() for engine in self._engines]
        for rank, (told, one, engine) in enumerate(
            zip(facts["ranks"], found, self._engines, strict=True)
        ):
            del told["seconds_waiting"]  # GPUs wait for one another, unseen by the host
            held = engine.bytes_of_messages() + self._bytes_of_fields(rank)
            told |= {
                "vertices": engine.number_of_vertices, "bytes_over_bus": one["bytes_over_bus"],
                "peak": self._peaks[rank].most + held,
            }  # fmt: skip
        return {
            **facts,
            "predicted": max(one["predicted"] for one in found),
            "bytes_over_bus": sum(one["bytes_over_bus"] for one in found),
            "share_cached": sum(one["share_cached"] for one in found),
            "pinned": all(one["pinned"] for one in found),
            "peak": max(told["peak"] for told in facts["ranks"]),
        }


class PartitionedPackedStreamsEngine(PartitionedStreamsEngine):
    """Likewise, of a packed graph, whose lists come as they are."""

    _rank_engine = StreamedPackedRankEngine
