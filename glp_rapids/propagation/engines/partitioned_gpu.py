"""One run on several GPUs of this process: a thread a GPU, and how they exchange winners.

Where each can write into the memory of all others, kernels do so themselves (`rank_peers`);
elsewhere NCCL carries winners from class to class (`rank_gpu`), or the driver copies them where
there is no NCCL. The report of a run says which.

Each GPU gets its rows once a graph, which are kept there for the next run: those of the graph's own
GPU are the graph's; of a graph in host memory each gets its own from there, so no GPU has to hold
the whole. Where winners are carried, each keeps besides who of its vertices reads each vertex: 4
bytes for every entry of its rows, and 8 a vertex. Where kernels write to one another's memory, each
knows who reads its own vertices: of an undirected graph its rows.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from glp_rapids.device import gpu_of, settle
from glp_rapids.graph.id_words import IdWords
from glp_rapids.graph.rows import CSR
from glp_rapids.jit.cuda import current_gpu
from glp_rapids.multigpu.copies import CopyExchange, CopyMeeting
from glp_rapids.multigpu.exchange import Exchange
from glp_rapids.multigpu.nccl import NcclExchange, NcclMeeting, in_turn, nccl_problem
from glp_rapids.multigpu.partition import (
    AT_ONCE,
    ranges_kept,
    readers_in_range,
    rows_of_range,
)
from glp_rapids.multigpu.peers import PeerMeeting, reach_one_another
from glp_rapids.outofcore.peak import Peak, watched
from glp_rapids.propagation.compile_program import Compiled
from glp_rapids.propagation.engines.partitioned import PartitionedEngine
from glp_rapids.propagation.engines.rank_gpu import GpuRankEngine
from glp_rapids.propagation.engines.rank_peers import INBOX, PeerExchange, PeerRankEngine
from glp_rapids.propagation.gpu_memory import bytes_on_gpu, entries_at_once
from glp_rapids.propagation.schedule import Schedule
from glp_rapids.propagation.workload import Workload

# How winners get to the others: where the threads meet, the exchange and the engine of a rank.
EXCHANGES: dict[str, tuple[Any, Any, Any]] = {
    "peer stores": (PeerMeeting, PeerExchange, PeerRankEngine),
    "nccl": (NcclMeeting, NcclExchange, GpuRankEngine),
    "copies": (CopyMeeting, CopyExchange, GpuRankEngine),
}
COUNTED = "ranges", "arrays of ranges"  # what is kept of them takes no memory
chosen: str | None = None  # of these, for `glp-rapids bench several`; None: what the GPUs can do


def how_of(devices: tuple[int | str, ...]) -> str:
    """Return how winners get to the others, see `EXCHANGES`."""
    if chosen not in (None, "peer stores"):
        return chosen
    if reach_one_another(devices):
        return "peer stores"
    if chosen is not None:
        raise RuntimeError(f"the GPUs {devices} cannot write to one another's memory")
    return "copies" if nccl_problem() else "nccl"


class PartitionedGpuEngine(PartitionedEngine):
    """Run one program on one graph with several GPUs of this process."""

    _how, _rank_engine = "nccl", GpuRankEngine  # see `EXCHANGES`

    def __init__(
        self, workload: Workload, compiled: Compiled, fields: dict[str, Any],
        devices: tuple[int | str, ...],
    ):  # fmt: skip
        self._home = gpu_of(fields["labels"])
        self._peaks = [Peak() for _ in devices]
        settle()  # what the caller's stream has begun is what the ranks read
        for device in devices:  # Numba lists the GPUs when the first is asked for, in one thread
            with current_gpu(device):
                pass
        self._find_parts(workload, devices)
        super().__init__(workload, compiled, fields, devices)

    def _find_parts(self, workload: Workload, devices: tuple[int | str, ...]) -> None:
        """Find what an earlier run with these GPUs has kept on them, or forget that of others."""
        self._on_host = gpu_of(workload.rows.indptr) is None
        self._how = how_of(devices)
        key = "parts", devices, workload.skip, workload.classes, self._how
        self._kept = workload.kept.get(key)
        if self._kept is None:
            for other in [other for other in workload.kept if other[0] not in COUNTED]:
                workload.kept.pop(other, None)
            self._kept = workload.kept[key] = [None] * len(devices)

    def _connected(self) -> list[Exchange]:
        meeting, exchange, self._rank_engine = EXCHANGES[self._how]
        with in_turn:  # what it allocates could wait for kernels of another run, one of two begun
            self._meeting = meeting(self._devices)
        return [exchange(self._meeting, rank) for rank in range(len(self._devices))]

    def _ranges(self) -> list[int]:
        return ranges_kept(self._workload.kept, self._workload.rows.indptr, self._devices)

    def _together(self, do: Callable[[int], Any]) -> list[Any]:
        with in_turn:
            self._meeting.connect()
            return super()._together(do)

    @contextlib.contextmanager
    def _scope(self, rank: int) -> Iterator[None]:
        with current_gpu(self._devices[rank]), watched("gpu", self._peaks[rank]):
            yield

    def _engine(self, rank: int) -> Any:
        fields = self._fields
        if not self._works_on_given(rank):
            fields = {name: copied(value) for name, value in fields.items()}
        if self._kept[rank] is None:
            self._kept[rank] = self._parts(rank)
        else:
            there = self._kept[rank][2]
            inboxes = [value for key, value in there.items() if key[0] == INBOX]
            # which `bytes_of_inbox` counts
            self._peaks[rank].start(bytes_on_gpu(self._kept[rank]) - bytes_on_gpu(inboxes))
        rows, readers, kept = self._kept[rank]
        # not kept with the parts: a run that hashes nothing has none
        id_words = self._workload.id_words
        if gpu_of(id_words.words) != self._devices[rank]:
            id_words = IdWords(id_words.first, copied(id_words.words))
        workload = replace(
            self._workload, rows=rows, readers=readers, id_words=id_words, kept=kept,
            active=copied(self._workload.active),
        )  # fmt: skip
        first, last = self._bounds[rank : rank + 2]
        return self._rank_engine(
            workload, self._compiled, fields, self._exchanges[rank], first, last
        )

    def _parts(self, rank: int) -> tuple[CSR, CSR, dict]:
        """Return a rank's rows and readers on its GPU, and what runs are to keep there."""
        workload, (first, last) = self._workload, self._bounds[rank : rank + 2]
        rows = self._brought(rank, workload.rows)
        if not workload.skip:
            return rows, rows, {}
        if self._how != "peer stores":
            return rows, self._readers_inside(rank, first, last, rows.number_of_edges), {}
        if workload.readers is workload.rows:
            return rows, CSR(rows.indptr, rows.indices, None), {}
        readers = CSR(workload.readers.indptr, workload.readers.indices, None)
        return rows, self._brought(rank, readers), {}

    def _brought(self, rank: int, rows: CSR) -> CSR:
        """Bring the rows of a range to a rank's GPU; those of the graph's own GPU are views."""
        with current_gpu(None if self._on_host else self._home):
            part = rows_of_range(rows, *self._bounds[rank : rank + 2])
            settle()
        if not self._on_host and self._devices[rank] == self._home:
            return part
        return CSR(*map(copied, (part.indptr, part.indices, part.weights)))

    def _readers_inside(self, rank: int, first: int, last: int, entries: int) -> CSR:
        """Find who of a rank's range reads each vertex; a host's lists pass through its GPU."""
        import cupy

        readers = self._workload.readers
        with current_gpu(None if self._on_host else self._home):
            at_once = entries_at_once(last - first) if self._on_host else AT_ONCE
            found = readers_in_range(readers, first, last, entries, cupy, at_once)
            settle()
        if self._on_host or self._devices[rank] == self._home:
            return found
        return CSR(copied(found.indptr), copied(found.indices), None)

    def facts(self) -> dict[str, Any]:
        """Return what the report of a run says besides; of parts from a host what a GPU held."""
        facts = super().facts()
        if not self._on_host:
            return facts
        for rank, told, peak, engine in zip(
            range(len(self._devices)), facts["ranks"], self._peaks, self._engines, strict=True
        ):
            told["peak"] = peak.most + engine.bytes_of_inbox() + self._bytes_of_fields(rank)
        return {**facts, "peak": max(told["peak"] for told in facts["ranks"])}

    def _bytes_of_fields(self, rank: int) -> int:
        """Count the labels and the state, of the rank that works on those of the caller."""
        if not self._works_on_given(rank):
            return 0
        return sum(value.nbytes for value in self._fields.values() if getattr(value, "ndim", 0))

    def _works_on_given(self, rank: int) -> bool:
        """Tell whether a rank works on the labels and the state of the caller, not on copies."""
        return self._devices[rank] == self._home and rank == self._devices.index(self._home)

    def advance(self, schedule: Schedule, sweeps: int) -> None:
        """Do up to so many sweeps, and record how many labels each changed."""
        super().advance(schedule, sweeps)
        if self._home in self._devices or not (schedule.over or self.failure()):
            return
        for name, value in self._fields.items():  # the graph is on a GPU that took no part
            if getattr(value, "ndim", 0):
                value[...] = copied(self._engines[0].fields[name])


def copied(value: Any) -> Any:
    """Copy an array to the current GPU from any; another value is itself."""
    if not getattr(value, "ndim", 0):
        return value
    import cupy

    copy = cupy.array(value)
    cupy.cuda.get_current_stream().synchronize()
    return copy
