"""The GPU engine of a rank that streams the rows of its range, over the bus of its own GPU.

A class ends for all ranks together: each has evaluated its strips of it, learns who won elsewhere
(`class_exchange`), and updates all. Who reads a vertex is known where its row is: so a rank takes
from the slack of all readers of its own vertices, and what it took from those of others it tells
them. All ranks take the same decisions, from the same counts; which strips are fetched row by row
each decides alone. While winners are exchanged the next strips are on their way.

On each device are, beside what `gpu_streamed` has of the rows of a range, winners of a class: of
others once, its own twice; and 4 bytes for each vertex of the range, for what others tell.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from glp_rapids.device import settle, to_host
from glp_rapids.jit import forks
from glp_rapids.jit.cuda import bound, multiprocessors
from glp_rapids.jit.launch import launch
from glp_rapids.multigpu.exchange import Exchange
from glp_rapids.propagation.compile_program import Compiled
from glp_rapids.propagation.engines.class_exchange import ClassExchange
from glp_rapids.propagation.engines.gpu_streamed import StreamedGpuEngine
from glp_rapids.propagation.engines.rank_cpu import agree
from glp_rapids.propagation.engines.workspace import CHANGED, clear
from glp_rapids.propagation.kernels.gpu import rank_winners
from glp_rapids.propagation.kernels.gpu.shared_memory import THREADS
from glp_rapids.propagation.kernels.gpu.streamed import EVERYTHING, Step
from glp_rapids.propagation.schedule import Schedule
from glp_rapids.propagation.workload import Workload

_built: dict[tuple, tuple] = {}
_building = forks.Lock()


class StreamedRankEngine(StreamedGpuEngine):
    """The engine of one rank; ``workload`` has the rows of its range in host memory."""

    def __init__(
        self, workload: Workload, compiled: Compiled, fields: dict[str, Any], exchange: Exchange,
        first: int, last: int,
    ):  # fmt: skip
        self._exchange, self._range = exchange, (first, last)
        self._many_of_all: int | None = None
        super().__init__(workload, compiled, fields)
        vertices = self._workload.graph.number_of_vertices
        slacks = vertices if self._workload.skip else 1
        self._others = ClassExchange(
            exchange, self._range, self._most, self._types, slacks, self._xp
        )
        made, self._come = self._workspace, bound(self._others.come)
        made.slack = self._others.slack
        made.run = made.run._replace(slack=bound(made.slack))

    def _kernels(self) -> tuple:
        index_type = self._workload.rows.index_dtype.type
        key = self._compiled.digest, index_type
        with _building:  # kernels of one program are compiled once, for all ranks
            if key not in _built:
                _built[key] = rank_winners.build(self._compiled, index_type)
            self._list_winners, self._apply_winners = _built[key]
            return super()._kernels()

    # ------------------------------------------------------------ what ranks agree about

    def _all(self, holds: bool) -> bool:
        return all(self._exchange.tell(holds))

    def _most_lacking(self, lacking: int, parts: dict[str, int]) -> tuple[int, dict[str, int]]:
        return max(self._exchange.tell((lacking, parts)), key=lambda told: told[0])

    def _many(self, schedule: Schedule) -> int:
        if self._many_of_all is None:
            self._many_of_all = min(self._exchange.tell(super()._many(schedule)))
        return self._many_of_all

    # ------------------------------------------------------------ memory

    @property
    def _types(self) -> tuple[Any, Any, Any]:
        """The types of a vertex, of a label, and of a score if these are told."""
        index_type, _, score_type = self._functions.types
        told = not self._compiled.traits.default_update
        return index_type, index_type, score_type if told else None

    def _bytes_beside(self) -> int:
        """Count what is exchanged; a slack of a vertex counts where others have it, too."""
        most = self._layout.largest_update(self._workload.classes)
        self._most = self._exchange.tell(most)
        skips = bool(self._workload.skip)
        return ClassExchange.bytes_of(
            self._exchange.rank, self._range, self._most, self._types, skips
        )

    def _slacks(self) -> int:
        """Return 1: slack lies where the others can read it."""
        return 1

    @property
    def number_of_entries(self) -> int:
        """Of the rows of its range."""
        return self._layout.number_of_entries

    def bytes_of_inbox(self) -> int:
        """Count what others read."""
        return self._others.bytes_others_read

    # ------------------------------------------------------------ sweeps

    def advance(self, schedule: Schedule, sweeps: int) -> None:
        """Do up to so many sweeps, with the other ranks."""
        try:
            super().advance(schedule, sweeps)
        except BaseException:
            settle()  # another rank may let go of what is being copied from it
            raise

    def _sweep_at_once(self, schedule: Schedule, sweeps: int) -> None:
        """Do a sweep of what is on the device, and fetch what else it needs."""
        how, before = self._begin(schedule, 1)
        self._prepare(how)
        self._do_strips(0, self._strips.place.size, 0, False, True)
        self._record(schedule, before)

    def _do_strips(self, first: int, end: int, slot: int, filled: bool, last: bool) -> None:
        """Evaluate strips, and update each class that ends there with the other ranks."""
        number = self._strips.place.size
        a_class = self._now[0].span * self._strips.a_class
        while first < end:
            begin = first // a_class * a_class
            end_of_class = min(begin + a_class, number)
            behind = min(end, end_of_class)
            self._step(first, behind, slot, filled, 0, False)
            if behind == end_of_class:
                self._update_class(begin, first, behind, slot)
            first = behind

    def _step(
        self, first: int, end: int, slot: int, filled: bool, since: int, updates: bool
    ) -> None:
        numbers, ends = map(np.int64, (first, end, slot)), map(np.int64, (since, EVERYTHING))
        self._launch(Step(*numbers, filled, False, *ends, updates))

    def _update_class(self, begin: int, first: int, end: int, slot: int) -> None:
        """Update a class, whose last strips, from ``first`` on, have been evaluated just now."""
        others, made = self._others, self._workspace
        positions = self._strips.positions[[begin, end]].tolist()
        clear(others.number, self._xp)
        launch(
            self._list_winners, _blocks(positions[1] - positions[0]), THREADS, made.run,
            made.plan_arrays.vertices, *map(np.int64, positions), bound(others.number),
            bound(others.out),
        )  # fmt: skip
        own, come, any_won = others.exchange_winners()
        if own:
            # the last strip that came is in its slot, where its readers are looked up
            streamed = np.flatnonzero(self._sizes[first:end])
            held = first + int(streamed[-1]) if streamed.size else end - 1
            self._step(held, end, slot, True, EVERYTHING, True)
        launch(
            self._apply_winners, _blocks(come), THREADS, made.plan_arrays, made.run, self._come,
            np.int64(come), self._bound, np.int64(self._now[0].sweep), np.int64(self._place),
            self._numbers,
        )  # fmt: skip
        if any_won and self._now[1]:
            others.wake()

    def _begin(self, schedule: Schedule, sweeps: int) -> tuple[Any, int]:
        how, self._place = super()._begin(schedule, sweeps)
        return how, self._place

    def _record(self, schedule: Schedule, before: int) -> None:
        """Take down a sweep, as all ranks do."""
        self._note_failure()
        changed = int(to_host(self._workspace.words)[CHANGED + before])
        told = self._exchange.tell((changed, self._failure))
        agree([changed for changed, _ in told])
        self._failure = min(failure for _, failure in told)
        schedule.record(changed)
        self._kept_words = np.array(
            [len(schedule.changed), schedule.explored, not self._now[1]], np.int64
        )


def _blocks(items: int) -> int:
    return min(-(-items // THREADS), 8 * multiprocessors())
