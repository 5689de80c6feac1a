"""The streamed engine of a rank: several GPUs bring a part of each class over a bus of their own.

All have the order of all rows, labels and state. Each brings the strips of its part of a class, by
entries, and evaluates them; then they tell one another what wins, slack and ties, in that order,
and each updates the class as a whole. So the launches are those of `gpu_streamed`, of which each
leaves out what others evaluate, as it does beside a host's cores (`hybrid`).

Readers of changed vertices are read over the bus unless they are in the strip that came last, by
every GPU for itself: from few changes on it costs less to evaluate everybody in the next sweep.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from glp_rapids.device import to_device
from glp_rapids.jit import forks
from glp_rapids.jit.cuda import bound, kernel
from glp_rapids.jit.launch import prepared_together
from glp_rapids.multigpu.exchange import Exchange
from glp_rapids.outofcore.double_buffer import SLOTS
from glp_rapids.propagation.compile_program import Compiled
from glp_rapids.propagation.engines import strips
from glp_rapids.propagation.engines.class_parts import most_positions
from glp_rapids.propagation.engines.gpu_streamed import FEW, StreamedGpuEngine
from glp_rapids.propagation.engines.rank_cpu import agree
from glp_rapids.propagation.engines.strips import Share
from glp_rapids.propagation.kernels.gpu import outcomes
from glp_rapids.propagation.kernels.gpu.outcomes import Outcome, Told
from glp_rapids.propagation.kernels.gpu.plan import Limits, Plan
from glp_rapids.propagation.kernels.gpu.shared_memory import THREADS
from glp_rapids.propagation.kernels.gpu.streamed import Step
from glp_rapids.propagation.schedule import Schedule
from glp_rapids.propagation.workload import TooLittleMemory, Workload

Array = Any
_building = forks.Lock()
PACK = kernel(outcomes.pack_outcome, "outcomes for other ranks")
UNPACK = kernel(outcomes.unpack_outcomes, "outcomes of other ranks")


class StreamedRankEngine(StreamedGpuEngine):
    """The engine of one rank; ``workload`` is that of the whole graph, whose lists all share."""

    _a_launch = 0.0  # no rank leads a sweep alone

    def __init__(
        self, workload: Workload, compiled: Compiled, fields: dict[str, Any], exchange: Exchange
    ):
        self._exchange = exchange
        self._share = Share(exchange.rank, exchange.ranks)
        self._turn = 0  # of the messages that go out
        super().__init__(workload, compiled, fields)

    @property
    def fields(self) -> dict[str, Any]:
        """The labels and the state, on this rank's GPU."""
        return self._fields

    @property
    def number_of_vertices(self) -> int:
        """How many vertices it evaluates."""
        return int(np.diff(self._bounds[self._share.rank]).sum())

    # ------------------------------------------------------------ what is on the device

    def _kernels(self) -> tuple:
        with _building:  # those of one program are compiled once, for all ranks
            return super()._kernels()

    def _plan(self, limits: Limits) -> Plan:
        """Let the first rank lay the rows out, and the others find what it has left.

        If memory is too little, all say what the one lacks that lacks most.
        """
        if self._share.rank:
            self._exchange.barrier()
        plan, lack = None, None
        try:
            plan = super()._plan(limits)
        except TooLittleMemory as error:
            lack = error.lacking, error.parts
        if not self._share.rank:
            self._exchange.barrier()
        lacks = [one for one in self._exchange.tell(lack) if one is not None]
        if plan is None or lacks:
            raise TooLittleMemory(*max(lacks, key=lambda one: one[0]))
        return plan

    def _cut(self, limits: Limits) -> None:
        ranks = range(self._share.ranks)
        self._bounds = [
            strips.own_bounds(self._layout, Share(rank, self._share.ranks)) for rank in ranks
        ]
        super()._cut(limits)

    def _bytes_beside(self) -> int:
        return 3 * self._bytes_of_message() + sum(bounds.nbytes for bounds in self._bounds)

    def _bytes_of_message(self) -> int:
        """Bound the bytes that all ranks tell one another of a class."""
        positions = most_positions(self._layout, self._workload.classes)
        told = outcomes.bytes_told(positions, *self._kinds_told(self._workload.skip))
        return told + self._share.ranks * outcomes.ALIGNED

    def _kinds_told(self, slack: bool) -> tuple[int, bool, bool]:
        """Return what is told of a position: of how many bytes an index is, scores, and slack."""
        scores = not self._compiled.traits.default_update
        return np.dtype(self._functions.types[0]).itemsize, scores, slack

    def _make_buffer(self) -> None:
        super()._make_buffer()
        run, slack = self._workspace.run, self._workspace.slack
        size = -(-self._bytes_of_message() // outcomes.ALIGNED) * outcomes.ALIGNED
        # What goes out may be read until all have come to the next exchange.
        self._going = [self._xp.empty(size, np.uint8) for _ in range(2)]
        self._come = self._xp.empty(size, np.uint8)
        bounds = np.stack(self._bounds)
        self._ends = np.cumsum(np.diff(bounds)[..., 0], axis=1)  # of positions, by rank and class
        self._bounds_there = to_device(bounds, self._device)  # launches do not keep it
        given = (
            self._workspace.plan_arrays.vertices, bound(self._bounds_there),
            Outcome(run.winner_score, run.winner, bound(slack), run.tied),
        )  # fmt: skip
        told, rank = Told(np.int64(0), np.int64(0), False, False), np.int64(self._share.rank)
        *self._pack, self._unpack = (
            prepared_together(
                one, self._blocks(), THREADS, (*given, self._as_outcome(message), rank), told
            )
            for one, message in ((PACK, self._going[0]), (PACK, self._going[1]),
                                 (UNPACK, self._come))
        )  # fmt: skip

    def _as_outcome(self, message: Array) -> Outcome:
        """See the bytes of messages as what they may tell."""
        index_type, _, score_type = self._functions.types
        return Outcome(
            *(bound(message.view(kind)) for kind in (score_type, index_type, np.int32, np.uint8))
        )

    def _blocks(self) -> int:
        return max(1, -(-most_positions(self._layout, self._workload.classes) // THREADS))

    # ------------------------------------------------------------ sweeps

    def _many(self, schedule: Schedule) -> int:
        if self._compiled.traits.plain:
            return schedule.number_of_vertices // FEW
        return schedule.number_of_vertices

    def _sweep(self, schedule: Schedule, sweeps: int) -> None:
        super()._sweep(schedule, sweeps)
        told = self._exchange.numbers((schedule.changed[-1], self._failure))
        agree([changed for changed, _ in told])
        self._failure = min(failure for _, failure in told)

    def _sweep_in_strips(self, schedule: Schedule, fetched: set[int]) -> None:
        """Lead one sweep, class by class: own strips, then all ranks' outcome, then the update."""
        how, before = self._begin(schedule, 1)
        self._prepare(how)
        found, transfers = self._strips, self._transfers
        coming = self._coming
        if not self._loaded:  # the front of each class comes before its first strip
            coming = np.flatnonzero(np.diff(found.entries) * found.own).tolist()
            self._loaded = True
        asked = transfers.waiting
        turns = {strip: turn for turn, strip in enumerate(coming)}
        for first, end, own in self._classes(self._now[0].span):
            slot, held, until = None, first, 0
            for strip in own:
                if slot is not None:
                    transfers.give_back(slot)
                    slot = None
                if strip in turns:
                    while asked < min(turns[strip] + SLOTS, len(coming)):
                        self._ask(coming[asked], coming[asked] in fetched)
                        asked += 1
                    slot = transfers.take()
                since, until = found.positions[strip : strip + 2].tolist()
                self._step(strip, strip + 1, slot, strip not in fetched, since, until)
                held = strip
            self._exchange_outcome(first, end)
            last = end == found.place.size
            self._step(held, end, slot, True, until, until, updates=True, last=last)
            if slot is not None:
                transfers.give_back(slot)
        self._record(schedule, before)

    def _classes(self, span: int) -> Iterator[tuple[int, int, list[int]]]:
        """Yield the classes of a sweep that updates ``span`` together: strips, and own ones."""
        found = self._strips
        filled = found.own & (np.diff(found.positions) > 0)
        for first in range(0, found.place.size, span * found.a_class):
            end = min(first + span * found.a_class, found.place.size)
            yield first, end, (np.flatnonzero(filled[first:end]) + first).tolist()

    def _step(
        self, first: int, end: int, slot: int | None, filled: bool, since: int, until: int, *,
        updates: bool = False, last: bool = False,
    ) -> None:  # fmt: skip
        """Launch the kernel for some strips."""
        self._reset()
        numbers = map(np.int64, (first, end, slot or 0))
        ends = map(np.int64, (since, until))
        self._launch(Step(*numbers, filled, last, *ends, updates))

    # ------------------------------------------------------------ what ranks tell one another

    def _exchange_outcome(self, first: int, end: int) -> None:
        """Tell the others what came of this rank's part of a class; take in what they tell."""
        a_class = self._strips.a_class
        first, end = first // a_class, -(-end // a_class)
        kinds = self._kinds_told(bool(self._now[1]))
        before = self._ends[:, first - 1] if first else 0
        sizes = outcomes.bytes_told(self._ends[:, end - 1] - before, *kinds)
        if self._share.ranks == 1 or not sizes.any():
            return
        told = Told(np.int64(first), np.int64(end), *kinds[1:])
        self._turn = 1 - self._turn
        going = self._going[self._turn][: int(sizes[self._share.rank])]
        if going.size:
            self._pack[self._turn](told)
        self._exchange.allgather([going], lambda total: [self._come])
        self._unpack(told)
