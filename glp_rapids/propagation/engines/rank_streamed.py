"""The streamed engine of a rank: several GPUs bring a part of each class over a bus of their own.

All have the order of all rows, labels and state. Each brings the strips of its part of a class, by
entries, and evaluates them; then they tell one another what wins, slack and ties, in that order,
and each updates the class as a whole. One thread leads all ranks, class by class (`rounds`), and
waits for a GPU only where a sweep ends; a launch that updates a class also evaluates what is on the
device of the next one.

Where GPUs reach one another's memory they read what others tell where it lies; else the driver
copies it. Readers of changed vertices are read over the bus unless they are in the strip that came
last, by every GPU for itself: from few changes on it costs less to evaluate everybody in the next
sweep.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Any, NamedTuple

import numpy as np

from glp_rapids.device import to_device
from glp_rapids.jit import forks
from glp_rapids.jit.cuda import bound, kernel
from glp_rapids.jit.launch import prepared_together
from glp_rapids.multigpu.copies import fetch
from glp_rapids.multigpu.exchange import Exchange
from glp_rapids.multigpu.peers import plain_memory
from glp_rapids.multigpu.rounds import Rounds
from glp_rapids.outofcore.double_buffer import SLOTS
from glp_rapids.propagation.compile_program import Compiled
from glp_rapids.propagation.engines import strips
from glp_rapids.propagation.engines.gpu_streamed import FEW, StreamedGpuEngine
from glp_rapids.propagation.engines.gpu_streamed_packed import StreamedPackedGpuEngine
from glp_rapids.propagation.engines.launched import clear
from glp_rapids.propagation.engines.rank_cpu import agree
from glp_rapids.propagation.engines.strips import Share
from glp_rapids.propagation.kernels.gpu import outcomes
from glp_rapids.propagation.kernels.gpu.outcomes import Outcome, Told
from glp_rapids.propagation.kernels.gpu.plan import Limits, Plan
from glp_rapids.propagation.kernels.gpu.shared_memory import THREADS
from glp_rapids.propagation.kernels.gpu.streamed import EVERYTHING, Step
from glp_rapids.propagation.schedule import Schedule, spans_of
from glp_rapids.propagation.workload import TooLittleMemory, Workload

Array = Any
MESSAGES = 2  # in turn: one may still be read when the next one is written
FULL, BARE = "to load and allocate", "to launch"  # what a rank goes on to do (`rounds.in_rounds`)
_building = forks.Lock()
PACK = kernel(outcomes.pack_outcome, "outcomes for other ranks")
UNPACK = kernel(outcomes.unpack_outcome, "outcome of another rank")


class Messages(NamedTuple):
    """Where a rank writes what it tells, on which GPU."""

    device: int | None
    arrays: list[Array]


class ClassStep(NamedTuple):
    """What a sweep updates together: some classes, or all."""

    first: int  # strips, from here
    end: int
    own: list[int]  # of these those of this rank that hold anything
    begin: int  # position
    told: Told  # without slack
    sizes: list[int]  # bytes that each rank tells
    sizes_with_slack: list[int]


class Evaluated(NamedTuple):
    """A class that is evaluated, not updated yet: its end, the last strip that came, its slot."""

    end: int
    held: int
    slot: int | None


class StreamedRankEngine(StreamedGpuEngine):
    """The engine of one rank; ``workload`` is that of the whole graph, whose lists all share.

    ``reach``: whether GPUs read one another's memory.
    """

    _a_launch = 0.0  # no rank leads a sweep alone

    def __init__(
        self, workload: Workload, compiled: Compiled, fields: dict[str, Any], exchange: Exchange,
        rounds: Rounds, reach: bool,
    ):  # fmt: skip
        self._exchange, self._rounds, self._reach = exchange, rounds, reach
        self._share = Share(exchange.rank, exchange.ranks)
        self._round, self._turn = 0, 0  # of what is told, and of messages
        self._class_steps: dict[int, list[ClassStep]] = {}
        super().__init__(workload, compiled, fields)
        self._make_messages()

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
        counts = np.diff(np.stack(self._bounds))[..., 0]
        self._ends = np.cumsum(counts, axis=1)  # of positions, by rank and class
        self._most_told = max(
            int(np.add.reduceat(counts, np.arange(0, counts.shape[1], span), axis=1).max())
            for span in spans_of(counts.shape[1])
        )
        super()._cut(limits)

    def _bytes_beside(self) -> int:
        bounds = sum(bounds.nbytes for bounds in self._bounds)
        of_others = 0 if self._reach else 1  # is copied here
        return (MESSAGES + of_others) * self._bytes_of_message() + bounds

    def _bytes_of_message(self) -> int:
        """Count the bytes of the longest message."""
        return int(outcomes.bytes_told(max(self._most_told, 1), *self._kinds_told(True)))

    def _kinds_told(self, slack: bool) -> tuple[int, bool, bool]:
        """Return what is told of a position: of how many bytes an index is, scores, and slack."""
        scores = not self._compiled.traits.default_update
        return np.dtype(self._functions.types[0]).itemsize, scores, slack and self._workload.skip

    def _make_messages(self) -> None:
        """Make the messages, learn where those of the others are, and get the launches ready."""
        xp, size = self._xp, self._bytes_of_message()
        make = plain_memory if self._reach and xp is not np else xp.empty
        device = None if xp is np else xp.cuda.runtime.getDevice()
        made = Messages(device, [make(size, np.uint8) for _ in range(MESSAGES)])
        self._messages: list[Messages] = self._exchange.tell(made)
        copied = None if self._reach else xp.empty(size, np.uint8)
        run, slack = self._workspace.run, self._workspace.slack
        self._bounds_there = to_device(np.stack(self._bounds), self._device)  # which launches use
        given = (
            self._workspace.plan_arrays.vertices, bound(self._bounds_there),
            Outcome(run.winner_score, run.winner, bound(slack), run.tied),
        )  # fmt: skip
        told, blocks = Told(np.int64(0), np.int64(0), False, False), -(-self._most_told // THREADS)

        def prepared(one: Any, message: Array, rank: int) -> Any:
            arguments = *given, self._as_outcome(message), np.int64(rank)
            return prepared_together(one, max(blocks, 1), THREADS, arguments, told)

        self._pack = [prepared(PACK, array, self._share.rank) for array in made.arrays]
        self._unpack = [
            [
                prepared(UNPACK, theirs.arrays[turn] if copied is None else copied, rank)
                for rank, theirs in enumerate(self._messages)
            ]
            for turn in range(MESSAGES)
        ]
        self._copied = copied
        # Recorded in turn as well: the others wait for one before it is recorded again.
        self._written = [self._new_event() for _ in range(MESSAGES)]

    def _as_outcome(self, message: Array) -> Outcome:
        """See the bytes of messages as what they may tell."""
        index_type, _, score_type = self._functions.types
        return Outcome(
            *(bound(message.view(kind)) for kind in (score_type, index_type, np.int32, np.uint8))
        )

    # ------------------------------------------------------------ sweeps

    def _many(self, schedule: Schedule) -> int:
        if self._compiled.traits.plain:
            return schedule.number_of_vertices // FEW
        return schedule.number_of_vertices

    def advance(self, schedule: Schedule, sweeps: int) -> None:
        """Refuse to go on alone."""
        raise NotImplementedError("ranks are led together, see `sweeps`")

    def sweeps(self, schedule: Schedule, most: int) -> Iterator[str]:
        """Do up to so many sweeps; yield where the others have to come as far."""
        if self._workspace.rows is None:
            self._make_buffer()
        end = len(schedule.changed) + most
        while len(schedule.changed) < end and not (schedule.over or self._failure):
            fetched = self._begin_sweep(schedule)
            how, before = self._begin(schedule, 1)
            self._prepare(how)
            yield from self._classes_in_strips(fetched)
            self._record(schedule, before)
            told = yield from self._told((schedule.changed[-1], self._failure), FULL)
            agree([changed for changed, _ in told])
            self._failure = min(failure for _, failure in told)
            self._end_sweep(schedule)

    def settle(self) -> None:
        """Wait until nobody writes to what is this rank's, nor reads it."""
        if self._transfers is not None:
            self._transfers.settle()
        if self._xp is not np:
            self._xp.cuda.get_current_stream().synchronize()

    def _told(self, value: Any, then: str) -> Generator[str, None, list[Any]]:
        """Tell all ranks something; return what all tell, once they have."""
        self._round += 1
        self._rounds.leave(self._round, self._share.rank, value)
        yield then
        return self._rounds.left(self._round)

    def _classes_in_strips(self, fetched: set[int]) -> Iterator[str]:
        """Evaluate and update all classes: own strips, then all ranks' outcome, then the update."""
        found, transfers = self._strips, self._transfers
        coming, self._loaded = self._next_coming(), True
        asked = transfers.waiting
        turns = {strip: turn for turn, strip in enumerate(coming)}
        done: Evaluated | None = None
        for step in self._classes(self._now[0].span):
            first, end, own = step.first, step.end, step.own
            come = [strip for strip in own if strip in turns]
            self._update(done, own != come, first, come[0] if come else end, step.begin)
            held, slot = end - 1, None
            for strip, behind in zip(come, [*come, end][1:], strict=True):
                self._give_back(slot)
                while asked < min(turns[strip] + SLOTS, len(coming)):
                    self._ask(coming[asked], coming[asked] in fetched)
                    asked += 1
                held, slot = strip, transfers.take()
                self._step(strip, behind, slot, strip not in fetched, updated=0)
            done = Evaluated(end, held, slot)
            yield from self._exchange_outcome(step)
        if done is not None:
            self._update(done, False, done.end, done.end, int(found.positions[done.end]), last=True)
            yield FULL  # all have their last launch before anybody waits for one

    def _update(
        self, done: Evaluated | None, stays: bool, first: int, end: int, since: int,
        last: bool = False,
    ) -> None:  # fmt: skip
        """Update the class before, and evaluate the next one up to the first strip that comes.

        ``stays``: whether there is anything to be evaluated in it so far.
        """
        if done is None:
            if stays:
                self._step(first, end, None, True, updated=0)
            return
        held = done.held if done.slot is not None else done.end - 1
        behind = end if stays else done.end
        self._step(held, behind, done.slot, True, since=since, updated=done.end, last=last)
        self._give_back(done.slot)

    def _classes(self, span: int) -> list[ClassStep]:
        """Return the steps of a sweep that updates ``span`` classes together."""
        steps = self._class_steps.get(span)
        if steps is None:
            steps = self._class_steps[span] = self._new_class_steps(span)
        return steps

    def _new_class_steps(self, span: int) -> list[ClassStep]:
        found, a_class = self._strips, self._strips.a_class
        filled = found.own & (np.diff(found.positions) > 0)
        positions = np.pad(self._ends, ((0, 0), (1, 0)))
        number, steps = found.place.size // a_class, []
        for one in range(0, number, span):
            behind = min(one + span, number)
            first, end = one * a_class, behind * a_class
            told = Told(np.int64(one), np.int64(behind), self._kinds_told(False)[1], False)
            sizes = [
                outcomes.bytes_told(
                    positions[:, behind] - positions[:, one], *self._kinds_told(slack)
                ).tolist()
                for slack in (False, True)
            ]
            own = (np.flatnonzero(filled[first:end]) + first).tolist()
            steps.append(ClassStep(first, end, own, int(found.positions[first]), told, *sizes))
        return steps

    def _step(
        self, first: int, end: int, slot: int | None, filled: bool, *, updated: int,
        since: int = 0, last: bool = False,
    ) -> None:  # fmt: skip
        """Launch the kernel for some strips."""
        clear(self._counters)
        self._launch(Step(first, end, slot or 0, filled, last, since, EVERYTHING, updated))

    def _give_back(self, slot: int | None) -> None:
        if slot is not None:
            self._transfers.give_back(slot)

    # ------------------------------------------------------------ what ranks tell one another

    def _exchange_outcome(self, step: ClassStep) -> Iterator[str]:
        """Tell the others what came of this rank's part of classes; take in what they tell."""
        rank, slack = self._share.rank, bool(self._now[1]) and self._workload.skip
        sizes = step.sizes_with_slack if slack else step.sizes
        if self._share.ranks == 1 or not any(sizes):
            return
        told = step.told._replace(slack=slack)
        turn = self._turn = (self._turn + 1) % MESSAGES
        # All had read what it was before when they wrote what this one last waited for.
        if sizes[rank]:
            self._pack[turn](told)
        self._exchange.bytes += (self._share.ranks - 1) * sizes[rank]
        event = self._written[turn]
        if event is not None:
            event.record()
        written = yield from self._told(event, BARE)
        for other, event in enumerate(written):
            if other != rank and event is not None:
                self._xp.cuda.get_current_stream().wait_event(event)
        for other, size in enumerate(sizes):
            if other == rank or not size:
                continue
            if self._copied is not None:
                theirs = self._messages[other]
                fetch(self._copied, theirs.arrays[turn][:size], theirs.device)
            self._unpack[turn][other](told)

    def _new_event(self) -> Any:
        """Make an event, to be recorded behind what this GPU has to do."""
        return None if self._xp is np else self._xp.cuda.Event(disable_timing=True)

    def bytes_of_messages(self) -> int:
        """Count what no pool gives, and nobody has counted."""
        messages = self._messages[self._share.rank].arrays if self._reach else []
        return sum(array.nbytes for array in messages)


class StreamedPackedRankEngine(StreamedRankEngine, StreamedPackedGpuEngine):
    """The engine of one rank to which packed lists come."""
