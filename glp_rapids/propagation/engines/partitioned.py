"""One run on several devices: a rank for each, every one a thread with an engine of its own.

Each rank evaluates the vertices of a range, and all apply what all found (`rank_cpu`, `rank_gpu`);
each takes the same decisions from the same counts, by a schedule of its own.
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from glp_rapids.jit.parallel import threads_available
from glp_rapids.multigpu.exchange import Exchange, as_ranks, exchanges
from glp_rapids.multigpu.partition import ranges_of, readers_in_range, rows_of_range
from glp_rapids.propagation.compile_program import Compiled
from glp_rapids.propagation.schedule import Schedule
from glp_rapids.propagation.workload import Workload


class PartitionedEngine:
    """Run one program on one graph with several ranks; ``devices``: see `Options.devices`."""

    _how = "threads"  # winners are exchanged

    def __init__(
        self, workload: Workload, compiled: Compiled, fields: dict[str, Any],
        devices: tuple[int | str, ...],
    ):  # fmt: skip
        self._workload, self._compiled, self._fields = workload, compiled, fields
        self._devices = devices
        # asked here: `numba.set_num_threads` is for the thread of the caller, not for the ranks'
        self._threads = max(threads_available() // len(devices), 1)
        self._bounds = self._ranges()
        self._exchanges: list[Any] = self._connected()
        self._schedules: list[Schedule] = []
        self._engines: list[Any] = self._together(self._engine)

    # ------------------------------------------------------------ what a kind of device differs in

    def _connected(self) -> list[Exchange]:
        return exchanges(len(self._devices))

    def _ranges(self) -> list[int]:
        """Return where the range of each rank begins, and the end."""
        return ranges_of(self._workload.rows.indptr, len(self._devices))

    def _scope(self, rank: int) -> contextlib.AbstractContextManager:
        """Make the device of a rank the current one."""
        return contextlib.nullcontext()

    def _engine(self, rank: int) -> Any:
        """Make the engine of a rank; its thread calls this."""
        from glp_rapids.propagation.engines.rank_cpu import CpuRankEngine

        fields = self._fields
        if rank:
            fields = {name: copy.copy(value) for name, value in fields.items()}
        first, last = self._bounds[rank : rank + 2]
        rows, readers = self._parts(rank)
        workload = replace(self._workload, rows=rows, readers=readers)
        return CpuRankEngine(
            workload, self._compiled, fields, self._exchanges[rank], first, last, self._threads
        )  # fmt: skip

    # ------------------------------------------------------------ what an engine is asked

    def start(self) -> None:
        """Write the first label of every vertex, on every rank."""
        self._together(lambda rank: self._engines[rank].start())

    def advance(self, schedule: Schedule, sweeps: int) -> None:
        """Do up to so many sweeps, and record how many labels each changed."""
        if not self._schedules:
            self._schedules = [
                replace(schedule, changed=list(schedule.changed)) for _ in self._devices
            ]
        self._advance_ranks(sweeps)
        for changed in self._schedules[0].changed[len(schedule.changed) :]:
            schedule.record(changed)

    def _advance_ranks(self, sweeps: int) -> None:
        """Let every rank do up to so many sweeps, by its own schedule."""
        self._together(lambda rank: self._engines[rank].advance(self._schedules[rank], sweeps))

    def failure(self) -> int:
        """Return what a function of the program got wrong, or 0."""
        return self._engines[0].failure()

    def pending(self) -> np.ndarray | None:
        """Return the vertices that are not known to be settled, ascending; None: nobody noted."""
        parts = [engine.pending() for engine in self._engines]
        return None if any(part is None for part in parts) else np.concatenate(parts)

    def facts(self) -> dict[str, Any]:
        """Return what the report of a run says besides: the ranks, what they sent and waited."""
        return {
            "exchange": self._how,
            "ranks": [
                {
                    "device": device, "vertices": last - first, "bytes_sent": exchange.bytes,
                    "seconds_waiting": exchange.waiting,
                }
                for device, first, last, exchange in zip(
                    self._devices, self._bounds, self._bounds[1:], self._exchanges, strict=False
                )
            ],
        }  # fmt: skip

    # ------------------------------------------------------------ ranks

    def _parts(self, rank: int) -> tuple[Any, Any]:
        """Return the rows of a rank's range, and who of it reads each vertex."""
        workload, (first, last) = self._workload, self._bounds[rank : rank + 2]
        rows = rows_of_range(workload.rows, first, last)
        if not workload.skip:
            return rows, rows
        return rows, readers_in_range(workload.readers, first, last, rows.number_of_edges)

    def _together(self, do: Callable[[int], Any]) -> list[Any]:
        """Let every rank do something; return what each returned."""

        def in_scope(rank: int) -> Any:
            with self._scope(rank):
                return do(rank)

        works = [partial(in_scope, rank) for rank in range(len(self._devices))]
        return as_ranks(works, self._exchanges[0].abort)
