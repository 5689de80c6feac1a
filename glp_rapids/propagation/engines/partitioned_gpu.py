"""One run on several GPUs of this process: a thread a GPU, and how they exchange winners.

Where each can write into the memory of all others, kernels do so themselves (`rank_peers`);
elsewhere NCCL carries winners from class to class (`rank_gpu`). The report of a run says which.

Each GPU gets its rows once a graph, which are kept there for the next run: those of the graph's own
GPU are the graph's. Beside them each keeps who of its vertices reads each vertex: 4 bytes for every
entry of its rows, and 8 a vertex.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from glp_rapids.device import gpu_of, settle
from glp_rapids.graph.id_words import IdWords
from glp_rapids.graph.rows import CSR
from glp_rapids.jit.cuda import current_gpu
from glp_rapids.multigpu.exchange import Exchange
from glp_rapids.multigpu.nccl import NcclExchange, NcclMeeting, in_turn
from glp_rapids.multigpu.peers import PeerMeeting, reach_one_another
from glp_rapids.propagation.compile_program import Compiled
from glp_rapids.propagation.engines.partitioned import PartitionedEngine
from glp_rapids.propagation.engines.rank_gpu import GpuRankEngine
from glp_rapids.propagation.engines.rank_peers import PeerExchange, PeerRankEngine
from glp_rapids.propagation.schedule import Schedule
from glp_rapids.propagation.workload import Workload

# How winners get to the others: where the threads meet, the exchange and the engine of a rank.
EXCHANGES: dict[str, tuple[Any, Any, Any]] = {
    "peer stores": (PeerMeeting, PeerExchange, PeerRankEngine),
    "nccl": (NcclMeeting, NcclExchange, GpuRankEngine),
}
chosen: str | None = None  # of these, for `glp-rapids bench several`; None: what the GPUs can do


class PartitionedGpuEngine(PartitionedEngine):
    """Run one program on one graph with several GPUs of this process."""

    _how, _rank_engine = "nccl", GpuRankEngine

    def __init__(
        self, workload: Workload, compiled: Compiled, fields: dict[str, Any],
        devices: tuple[int | str, ...],
    ):  # fmt: skip
        self._home = gpu_of(workload.rows.indptr)
        settle()  # what the caller's stream has begun is what the ranks read
        for device in devices:  # Numba lists the GPUs when the first is asked for, in one thread
            with current_gpu(device):
                pass
        key = "parts", devices, workload.skip, workload.classes
        self._kept = workload.kept.get(key)
        if self._kept is None:
            workload.kept.clear()
            self._kept = workload.kept[key] = [None] * len(devices)
        super().__init__(workload, compiled, fields, devices)

    def _connected(self) -> list[Exchange]:
        self._how = chosen or "peer stores"
        if self._how == "peer stores" and not reach_one_another(self._devices):
            if chosen is not None:
                raise RuntimeError(f"the GPUs {self._devices} cannot write to one another's memory")
            self._how = "nccl"
        meeting, exchange, self._rank_engine = EXCHANGES[self._how]
        with in_turn:  # what it allocates could wait for kernels of another run, one of two begun
            self._meeting = meeting(self._devices)
        return [exchange(self._meeting, rank) for rank in range(len(self._devices))]

    def _ranges(self) -> list[int]:
        key, kept = ("ranges", self._devices), self._workload.kept
        if key not in kept:
            kept[key] = super()._ranges()
        return kept[key]

    def _together(self, do: Callable[[int], Any]) -> list[Any]:
        with in_turn:
            self._meeting.connect()
            return super()._together(do)

    def _scope(self, rank: int) -> contextlib.AbstractContextManager:
        return current_gpu(self._devices[rank])

    def _engine(self, rank: int) -> Any:
        fields = self._fields
        if self._devices[rank] != self._home or rank != self._devices.index(self._home):
            fields = {name: _copied(value) for name, value in fields.items()}
        if self._kept[rank] is None:
            self._kept[rank] = self._parts(rank)
        rows, readers, kept = self._kept[rank]
        # not kept with the parts: a run that hashes nothing has none
        id_words = self._workload.id_words
        if self._devices[rank] != self._home:
            id_words = IdWords(id_words.first, _copied(id_words.words))
        workload = replace(
            self._workload, rows=rows, readers=readers, id_words=id_words, kept=kept,
            active=_copied(self._workload.active),
        )  # fmt: skip
        first, last = self._bounds[rank : rank + 2]
        return self._rank_engine(
            workload, self._compiled, fields, self._exchanges[rank], first, last
        )

    def _parts(self, rank: int) -> tuple[Any, ...]:
        import cupy

        with current_gpu(self._home):
            rows, readers = super()._parts(rank)
            cupy.cuda.get_current_stream().synchronize()
        if self._devices[rank] != self._home:
            same = readers is rows
            rows = CSR(*map(_copied, (rows.indptr, rows.indices, rows.weights)))
            readers = rows if same else CSR(*map(_copied, (readers.indptr, readers.indices, None)))
        return rows, readers, {}

    def advance(self, schedule: Schedule, sweeps: int) -> None:
        """Do up to so many sweeps, and record how many labels each changed."""
        super().advance(schedule, sweeps)
        if self._home in self._devices or not (schedule.over or self.failure()):
            return
        for name, value in self._fields.items():  # the graph is on a GPU that took no part
            if getattr(value, "ndim", 0):
                value[...] = _copied(self._engines[0].fields[name])


def _copied(value: Any) -> Any:
    """Copy an array to the current GPU from any; another value is itself."""
    if not getattr(value, "ndim", 0):
        return value
    import cupy

    copy = cupy.array(value)
    cupy.cuda.get_current_stream().synchronize()
    return copy
