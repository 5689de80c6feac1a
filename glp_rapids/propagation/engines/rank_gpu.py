"""The GPU engine of a rank: a launch and an exchange a class (see `kernels.gpu.partitioned`).

As on a CPU (`rank_cpu`) labels and state are on every rank. Beside what the persistent engine has,
a rank holds who of its vertices reads each vertex, and room for the winners of a class.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from glp_rapids.device import to_host
from glp_rapids.jit import forks
from glp_rapids.jit.cuda import bound, gpu_target, multiprocessors, reduces_lanes
from glp_rapids.jit.launch import prepared_together
from glp_rapids.multigpu.exchange import Exchange
from glp_rapids.propagation.compile_program import Compiled
from glp_rapids.propagation.engines import workspace
from glp_rapids.propagation.engines.gpu import PersistentEngine
from glp_rapids.propagation.engines.launched import clear
from glp_rapids.propagation.engines.rank_cpu import agree
from glp_rapids.propagation.kernels.gpu import partitioned, shared_memory, update, votes
from glp_rapids.propagation.kernels.gpu.arguments import LaunchSchedule
from glp_rapids.propagation.kernels.gpu.partitioned import Box, Step
from glp_rapids.propagation.kernels.gpu.plan import ENDS, HUBS, RANGES, Plan
from glp_rapids.propagation.kernels.gpu.shared_memory import THREADS
from glp_rapids.propagation.schedule import Schedule
from glp_rapids.propagation.workload import Workload

_built: dict[tuple, tuple] = {}
_building = forks.Lock()


class GpuRankEngine(PersistentEngine):
    """The engine of one rank; ``workload`` has the rows of its range, on the current GPU."""

    _module: Any = partitioned  # that makes its kernels
    _looks_at_names = False

    def __init__(
        self, workload: Workload, compiled: Compiled, fields: dict[str, Any], exchange: Exchange,
        first: int, last: int,
    ):  # fmt: skip
        self._exchange, self._range = exchange, (first, last)
        super().__init__(replace(workload, marks=False, active=None), compiled, fields)
        self._keeps_score = not compiled.traits.default_update
        self._box = self._new_box()
        self._bound_box = bound(self._box)

    @property
    def fields(self) -> dict[str, Any]:
        """The labels and the state, on this rank's GPU."""
        return self._fields

    def bytes_of_inbox(self) -> int:
        """Count what others write to, as far as no pool gives it: nothing."""
        return 0

    def _kernels(self) -> tuple:
        compiled, index_type = self._compiled, self._workload.rows.index_dtype.type
        key = (
            self._module, compiled.digest, index_type, shared_memory.TABLE_SLOTS, reduces_lanes()
        )  # fmt: skip
        with _building:  # kernels of one program are compiled once, for all ranks
            if key not in _built:
                _built[key] = (
                    *self._module.build(compiled, index_type, gpu_target()),
                    votes.build(compiled, index_type, gpu_target()),
                )
        return _built[key]

    def _long_lists(self, plan: Plan) -> int:
        """Return how many lists of readers there may be that all blocks go through together."""
        workload = self._workload
        return workload.readers.number_of_edges // update.OF_BLOCK if workload.skip else 0

    def _most_winners(self) -> int:
        """Return how many vertices the largest group has, or 1."""
        groups = to_host(self._workspace.plan.groups)
        sizes = groups[:, ENDS : ENDS + RANGES] - groups[:, HUBS : HUBS + RANGES]
        return max(int(sizes.sum(axis=1).max(initial=0)), 1)

    def _new_box(self) -> Any:
        """Make room for the winners that go out, and for all that can come.

        It never grows: to allocate while the GPU of another rank waits could wait for that GPU.
        """
        size = self._most_winners()
        number = self._xp.zeros(1, np.int64)
        return Box(number, *self._some(size), *self._some(self._exchange.sum(size)))

    def _some(self, size: int) -> tuple[Any, Any, Any]:
        """Make arrays of so many vertices, labels and scores."""
        xp, (index_type, _, score_type) = self._xp, self._functions.types
        scores = size if self._keeps_score else 1
        return xp.empty(size, index_type), xp.empty(size, index_type), xp.empty(scores, score_type)

    def advance(self, schedule: Schedule, sweeps: int) -> None:
        """Do up to so many sweeps, step by step, with the other ranks."""
        for _ in range(sweeps):
            self._sweep(schedule)
            if schedule.over or self._failure:
                break
        if schedule.over and not self._failure:
            self._workload.kept[self._key] = self._workspace

    def _sweep(self, schedule: Schedule) -> None:
        rule, (how, before) = schedule.rule(), self._begin(schedule, 1)
        come = 0
        self._prepare(how)
        for number in range(-(-self._workload.classes // rule.span)):
            self._launch(come, number, False)
            come = self._exchanged()
        self._launch(come, -1, True)
        self._record(schedule, before)
        told = self._exchange.numbers((schedule.changed[-1], self._failure))
        agree([changed for changed, _ in told])
        self._failure = min(failure for _, failure in told)

    def _prepare(self, how: LaunchSchedule) -> None:
        """Get the launches of a sweep ready, which differ in their steps alone."""
        made = self._workspace
        blocks = -(-made.plan.entries_a_group // (2 * THREADS))
        arguments = (
            made.plan_arrays, made.tables, made.hubs, made.pieces, made.run, made.rows,
            made.readers, made.lists, self._bound, how, self._numbers, self._bound_box,
        )  # fmt: skip
        step = Step(np.int64(0), np.int64(0), False)
        self._start_step = prepared_together(
            self._propagate, max(blocks, multiprocessors()), THREADS, arguments, step
        )
        self._counters = made.words[: workspace.CONTROL]

    def _launch(self, come: int, number: int, last: bool) -> None:
        """Launch a step: apply what has come, evaluate a class."""
        clear(self._counters)
        clear(self._box.number)
        self._start_step(Step(np.int64(come), np.int64(number), last))

    def _exchanged(self) -> int:
        """Exchange the winners of a class; return how many have come from all ranks."""
        box, kinds = self._box, 2 + self._keeps_score
        come = 0

        def into(size: int) -> list[Any]:
            nonlocal come
            come = size
            return [box.come_vertices, box.come_labels, box.come_scores][:kinds]

        out = [box.vertices, box.labels, box.scores][:kinds]
        self._exchange.allgather_first(box.number, out, into)
        return come
