"""The GPU engine: one persistent kernel does the sweeps, and the host waits for the end.

Beside the CSR and the labels it keeps 25 bytes for each vertex that has neighbours (with 32-bit
indices), and tables for rows that many blocks share. What a run leaves clean stays on the graph for
the next one of its kind: on a small graph, asking for memory and describing it to the driver takes
longer than the sweeps.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from glp_rapids.device import any_true, array_module
from glp_rapids.jit.cuda import bound, gpu_target, kernel, multiprocessors, reduces_lanes
from glp_rapids.jit.launch import launch, launch_together
from glp_rapids.propagation.compile_program import Compiled
from glp_rapids.propagation.engines.launched import (
    LaunchedEngine,
    numbers_of,
    rows_and_readers,
)
from glp_rapids.propagation.engines.unsettled import Unsettled
from glp_rapids.propagation.engines.workspace import PlanSizes, Workspace, arrays_of
from glp_rapids.propagation.kernels.gpu import persistent, shared_memory, update, volumes, votes
from glp_rapids.propagation.kernels.gpu.arguments import Decoding, Hubs, PlanArrays, Rows
from glp_rapids.propagation.kernels.gpu.block_per_row import HANDED_OVER
from glp_rapids.propagation.kernels.gpu.plan import Limits, Plan, make_plan
from glp_rapids.propagation.kernels.gpu.shared_memory import THREADS, WARPS
from glp_rapids.propagation.pending import most_pending
from glp_rapids.propagation.schedule import Schedule
from glp_rapids.propagation.workload import Workload

# Up to one in so many, few are active. Tried with 4 (H200): a warp that first looks who of its
# ticket is active, and an update that takes who changed from a list. Runs on road took 5% less
# (explore=0: 14%), on web 5%, on kron-22 2%; but what that added to the kernel cost sweeps with
# many active 1 to 8%, and runs on com-dblp with the defaults 2 to 4%.
SPARSE = 512

COUNT_LABELS = kernel(volumes.count_labels, "volumes")
_built: dict[tuple, tuple] = {}


def kernels_of(compiled: Compiled, index_type: Any, decoding: Decoding | None = None) -> tuple:
    """Return the kernels of a program and the functions that they share, built once a process."""
    key = (
        compiled.digest, index_type, shared_memory.TABLE_SLOTS, shared_memory.CLOCKED, decoding,
        reduces_lanes(),
    )  # fmt: skip
    if key not in _built:
        _built[key] = (
            *persistent.build(compiled, index_type, gpu_target(), decoding),
            votes.build(compiled, index_type, gpu_target()),
        )
    return _built[key]


def count_volumes(labels: Any, volume: Any) -> None:
    """Count, on the device, how many vertices say each label."""
    volume.fill(0)
    launch(COUNT_LABELS, -(-labels.size // THREADS), THREADS, bound(labels), bound(volume))


class PersistentEngine(LaunchedEngine):
    """Run one program on one graph with a GPU."""

    _looks_at_names = True  # whether first labels are, which takes some bytes a vertex

    def __init__(self, workload: Workload, compiled: Compiled, fields: dict[str, Any]):
        self._xp = array_module(fields["labels"])
        self._workload, self._compiled, self._fields = workload, compiled, fields
        self._propagate, self._start, self._functions = self._kernels()
        score_size = 0 if compiled.traits.default_update else 1
        # One run at a time has them: who finds none makes others.
        self._key = (
            "workspace", workload.classes, workload.skip, self._functions.index_type, score_size,
            self._functions.vote_type, self._functions.score_type, self._functions.growing,
            shared_memory.TABLE_SLOTS, shared_memory.CLOCKED,
        )  # fmt: skip
        kept = workload.kept
        self._workspace = kept.pop(self._key, None)
        if self._workspace is None:
            self._make_room(kept)
            self._workspace = self._new_workspace()
        active = self._workload.active
        if self._workload.skip:
            self._workspace.slack.fill(0)
            if active is not None:
                self._workspace.slack[active] = -1
        self._bound = tuple(bound(value) for value in fields.values())
        self._numbers = numbers_of(workload, self._workspace.bound_errors)
        self._distinct = bool(workload.distinct)
        self._kept_words = np.array([0, -1, active is None], np.int64)
        self._pending: Unsettled | None = None

    def _make_room(self, kept: dict[tuple, Any]) -> None:
        """Let go of what others left: runs of many kinds would pile up memory on a graph."""
        kept.clear()

    def _kernels(self) -> tuple:
        return kernels_of(self._compiled, self._workload.rows.indices.dtype.type)

    def _plan(self, limits: Limits) -> Plan:
        rows = self._workload.rows
        return make_plan(
            rows.indptr, rows.indices.size, rows.indices.dtype, self._workload.classes,
            self._workload.id_words, limits,
        )  # fmt: skip

    def _rows(self, plan: Plan) -> tuple[Rows, Rows, Any]:
        """Give what the kernel reads: the rows, who reads a row, and compressed lists (none)."""
        return *rows_and_readers(self._workload, self._xp), (np.int64(0),)

    def _new_workspace(self) -> Workspace:
        xp, functions = self._xp, self._functions
        prunes = functions.growing and self._compiled.traits.default_update
        limits = Limits(
            blocks=multiprocessors() * shared_memory.BLOCKS_A_MULTIPROCESSOR,
            warps_per_block=WARPS,
            slots=functions.table.slots,
            handed_over=HANDED_OVER if prunes else None,
            pruned=functions.growing,
        )
        plan = self._plan(limits)
        rows, readers, lists = self._rows(plan)

        made = arrays_of(
            PlanSizes.of(plan), functions, prunes, not self._compiled.traits.default_update,
            self._slacks(),
            self._long_lists(plan), shared_memory.CLOCKED * limits.blocks * persistent.MOMENTS, xp,
        )  # fmt: skip
        return Workspace(
            plan=plan,
            plan_arrays=PlanArrays(*(bound(getattr(plan, name)) for name in PlanArrays._fields)),
            hubs=Hubs(*(bound(plan.hubs[name]) for name in Hubs._fields)),
            tables=bound(made.pop("tables")),
            pieces=bound(made.pop("pieces")),
            run=bound(made.pop("run")),
            rows=rows,
            readers=readers,
            lists=lists,
            bound_errors=bound(made["errors"]),
            **made,
        )

    def _slacks(self) -> int:
        """Return how many vertices have a slack in the workspace, or 1."""
        return self._workload.graph.number_of_vertices if self._workload.skip else 1

    def _long_lists(self, plan: Plan) -> int:
        """Return how many lists of readers there may be that all blocks go through together."""
        workload = self._workload
        if not workload.skip or (workload.readers is workload.rows and not plan.has_long_rows):
            return 0
        return workload.readers.number_of_edges // update.OF_BLOCK

    def _strips_a_class(self) -> int:
        return self._workspace.plan.strips

    def _sparse(self, number_of_vertices: int) -> int:
        return number_of_vertices // SPARSE

    def _long_list(self) -> int:
        return update.OF_BLOCK if self._long_lists(self._workspace.plan) else 0

    def go_on(self, slack: Any, schedule: Schedule) -> None:
        """Begin where another engine has done some sweeps, and marked who a change concerns."""
        self._workspace.slack[:] = slack
        self._kept_words = np.array([len(schedule.changed), schedule.explored, 0], np.int64)

    def start(self) -> None:
        """Let every vertex say its first label."""
        self._workspace.errors.fill(0)
        if self._compiled.traits.default_pick:
            return
        labels = self._fields["labels"]
        launch(self._start, -(-labels.size // 128), 128, self._bound, self._workspace.bound_errors)
        if self._looks_at_names and self._workload.once and self._functions.growing:
            # A pick may well be the own name at first, as a speaker's who has heard nothing yet.
            names = self._xp.arange(labels.size, dtype=labels.dtype)
            self._distinct = not any_true(labels != names)
        if "volume" in self._fields:
            count_volumes(labels, self._fields["volume"])
        self._note_failure()

    def advance(self, schedule: Schedule, sweeps: int) -> None:
        """Do up to so many sweeps in one launch."""
        workspace = self._workspace
        how, before = self._begin(schedule, sweeps)
        blocks = -(-workspace.plan.entries_a_group // (2 * THREADS))
        launch_together(
            self._propagate, max(blocks, multiprocessors()), THREADS,
            workspace.plan_arrays, workspace.tables, workspace.hubs, workspace.pieces,
            workspace.run, workspace.rows, workspace.readers, workspace.lists, self._bound, how,
            self._numbers,
        )  # fmt: skip
        self._record(schedule, before)
        if schedule.over and not self._failure:
            self._note_pending(schedule)
            self._trim(workspace)
            self._workload.kept[self._key] = workspace

    def _trim(self, workspace: Workspace) -> None:
        """Let go of what is made anew sooner than kept, before another thread finds it."""

    def _note_pending(self, schedule: Schedule) -> None:
        """List who is not known to be settled, while nobody else has the workspace."""
        workload, marked = self._workload, not self._kept_words[2]
        if marked and self._compiled.traits.plain and schedule.changed[-1] > 0:
            self._settle_rowless()
            most = most_pending(workload.graph.number_of_vertices)
            self._pending = Unsettled(self._workspace.slack, most)

    def _settle_rowless(self) -> None:
        """Say that who was active and has no row is settled: the plan leaves these out."""
        active, slack = self._workload.active, self._workspace.slack
        if active is not None and active.size:
            rowless = self._xp.ones(slack.size, bool)
            rowless[self._workspace.plan.vertices] = False
            slack[active] = self._xp.where(rowless[active], 0, slack[active])

    def pending(self) -> np.ndarray | None:
        """Return the vertices that are not known to be settled, ascending.

        None: nobody noted, or they are more than a result would name. A hub of which a label was
        bounded from above may be among them where an engine that counts all its votes knows it to
        be settled.
        """
        return None if self._pending is None else self._pending.vertices()
