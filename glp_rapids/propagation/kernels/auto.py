"""The GPU engine: one persistent kernel does the sweeps, and the host waits for the end.

Beside the CSR it keeps some 26 bytes a vertex, and tables for rows that many blocks share.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from glp_rapids.device import array_module, to_device
from glp_rapids.propagation.compilation import Compiled
from glp_rapids.propagation.course import Course
from glp_rapids.propagation.kernels import auto_common, auto_sweep
from glp_rapids.propagation.kernels.auto_common import THREADS, WARPS, Numbers, Rows, common
from glp_rapids.propagation.kernels.auto_plan import Limits, Plan, make_plan
from glp_rapids.propagation.kernels.cuda_target import (
    Launcher,
    bound,
    gpu_target,
    multiprocessors,
)
from glp_rapids.propagation.scalar import TIE_BREAKS
from glp_rapids.propagation.sweep import Workload

WHOLESALE = 16  # from one vertex in so many that changed on, everybody is woken
LARGEST_LAUNCH = 1 << 12  # sweeps

_built: dict[tuple, tuple] = {}


def _kernels(compiled: Compiled, index_type: Any) -> tuple:
    """Give the kernels of a program and what they share, built once a process."""
    key = compiled.digest, index_type, auto_common.TABLE
    if key not in _built:
        _built[key] = (
            *auto_sweep.build(compiled, index_type, gpu_target()),
            common(compiled, index_type, gpu_target()),
            Launcher(compiled),
        )
    return _built[key]


class AutoEngine:
    """Run one program on one graph with a GPU."""

    def __init__(self, workload: Workload, compiled: Compiled, fields: dict[str, Any]):
        rows, readers = workload.rows, workload.readers
        self._xp = xp = array_module(rows.indptr)
        self._workload, self._compiled, self._fields = workload, compiled, fields
        index_type = rows.indices.dtype.type
        kernels = _kernels(compiled, index_type)
        self._propagate, self._start, shared, self._launch = kernels
        number_of_vertices = rows.indptr.size - 1
        bounded = shared.online and compiled.traits.default_update
        limits = Limits(
            blocks=multiprocessors() * auto_common.BLOCKS_A_MULTIPROCESSOR,
            warps_per_block=WARPS,
            slots=shared.slots,
            handed_over=auto_common.HANDED_OVER if bounded else None,
        )
        plan: Plan = workload.keep(
            ("plan", workload.classes, limits),
            partial(make_plan, rows, workload.classes, limits),
        )
        self._plan = plan

        def filled(size: int, value: int, dtype: Any) -> Any:
            return bound(xp.full(max(size, 1), value, dtype=dtype))

        weights = rows.weights
        if weights is None or weights.size == 0:
            weights = xp.zeros(1, np.int64 if weights is None else weights.dtype)
        indices = rows.indices if rows.indices.size else xp.zeros(1, index_type)
        readers_of = readers.indices if readers.indices.size else xp.zeros(1, index_type)
        self._rows = Rows(bound(rows.indptr), bound(indices), bound(weights))
        self._readers = Rows(bound(readers.indptr), bound(readers_of), bound(weights))
        self._lists = auto_sweep.Lists(
            *(bound(array) for array in
              (plan.vertices, plan.starts, plan.degrees, plan.meta))
        )  # fmt: skip
        self._hubs = auto_sweep.Hubs(*(bound(plan.hub[name]) for name in auto_sweep.Hubs._fields))
        number_of_hubs, pieces = plan.hub["position"].size, plan.hub["piece_hub"].size
        slots = plan.table_slots
        self._tables = auto_sweep.Tables(
            keys=filled(slots, -1, index_type),
            votes=filled(slots, 0, shared.vote_type),
            lacks=filled(slots if bounded else 1, 0, shared.vote_type),
            touched=filled(slots, 0, np.int32),
            filled=filled(number_of_hubs, 0, np.int32),
        )
        self._pieces = auto_sweep.Pieces(
            label=filled(pieces, -1, index_type),
            bound=filled(pieces, 0, shared.vote_type),
            arrived=filled(number_of_hubs, 0, np.int32),
        )
        listed = plan.vertices.size
        self._errors = xp.zeros(1, np.int32)
        self._changed = xp.zeros(0, np.int64)
        self._control = to_device(np.array([0, -1, 0, 1], np.int64), rows.device)
        score_size = 1 if compiled.traits.default_update else listed
        self._run = auto_sweep.Run(
            active=filled(number_of_vertices, 0, np.uint8),
            tied=filled(listed, 0, np.uint8),
            winner=filled(listed, -1, index_type),
            winner_score=filled(score_size, 0, shared.score_type),
            changed=None,
            drawn=filled(2, 0, np.int64),
            barrier=None,
            control=bound(self._control),
        )
        self._numbers = Numbers(
            np.float64(workload.scale), np.float64(workload.largest_amount), bound(self._errors)
        )
        self._bound = tuple(bound(value) for value in fields.values())

    def start(self) -> None:
        """Let every vertex say its first label."""
        if self._compiled.traits.default_pick:
            return
        labels = self._fields["labels"]
        self._launch(self._start, -(-labels.size // 128), 128, self._bound)
        if "volume" in self._fields:
            said = labels[labels >= 0]
            self._fields["volume"][:] = self._xp.bincount(said, minlength=labels.size)

    def advance(self, course: Course, sweeps: int) -> None:
        """Do up to so many sweeps in one launch."""
        xp, options, done = self._xp, course.options, len(course.changed)
        sweeps = min(sweeps, options.max_iter - done, LARGEST_LAUNCH)
        if self._changed.size < done + sweeps:
            grown = xp.zeros(done + sweeps, np.int64)
            grown[:done] = self._changed[:done]
            self._changed = grown
            self._run = self._run._replace(changed=bound(grown))
        if done == 0 and course.explored is not None:
            self._control[1] = course.explored
        self._run = self._run._replace(barrier=bound(xp.zeros(1, np.int64)))
        plain = self._compiled.traits.plain
        how = auto_sweep.Course(
            classes=np.int64(self._workload.classes),
            sweeps=np.int64(sweeps),
            explore=np.int64(options.explore),
            stops=bool(options.stops),
            few=np.int64(course.few),
            patience=np.int64(course.patience),
            retain=bool(options.retain),
            tie_break=np.int64(TIE_BREAKS[options.tie_break]),
            seed=np.uint64(options.seed),
            skip=bool(self._workload.skip),
            distinct=bool(self._workload.distinct),
            # What a program's own functions do must not be done once more than on a CPU.
            wholesale=np.int64(
                course.number_of_vertices // (WHOLESALE if plain else 1)
            ),
        )
        arguments = (
            self._lists, self._tables, self._hubs, self._pieces, self._run, self._rows,
            self._readers, self._bound, how, self._numbers,
        )  # fmt: skip
        self._launch(self._propagate, self._blocks(arguments), THREADS, *arguments)
        for changed in self._changed[done : done + sweeps].tolist():
            course.record(changed)
            if course.over:
                break
        if self.bad_amounts():
            done = int(self._control[0])
            del course.changed[done:]

    def _blocks(self, arguments: tuple) -> int:
        """Give the number of blocks: all that fit, or enough for a small graph."""
        most = self._launch.resident_blocks(self._propagate, THREADS, arguments)
        wanted = -(-self._plan.entries_a_class // THREADS)
        return max(1, min(most, max(wanted, multiprocessors())))

    def bad_amounts(self) -> bool:
        """Tell whether a program returned amounts that are not finite or too large."""
        traits = self._compiled.traits
        if traits.default_load or not traits.real_amounts:
            return False
        return bool(self._errors[0])
