"""The GPU engine of a warm run where few vertices are active: it needs no plan of all vertices.

Beside the CSR and the labels it keeps 21 bytes a vertex, of which it fills 4. Should the list of
active vertices grow, those that are still active are listed anew between two sweeps; are they many,
the engine of the run's way goes on from there.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from glp_rapids.jit.cuda import bound, gpu_target, multiprocessors, reduces_lanes
from glp_rapids.jit.launch import launch_together
from glp_rapids.propagation.compile_program import Compiled
from glp_rapids.propagation.engines.gpu import PersistentEngine
from glp_rapids.propagation.engines.workspace import (
    BARRIER,
    CHANGED,
    CONTROL,
    DRAWN,
    frontier_arrays,
)
from glp_rapids.propagation.kernels.gpu import frontier, shared_memory, votes
from glp_rapids.propagation.kernels.gpu.arguments import HubTables, Pieces
from glp_rapids.propagation.kernels.gpu.frontier import (
    LISTED,
    PLACES,
    Frontier,
    FrontierRun,
    Levels,
)
from glp_rapids.propagation.kernels.gpu.shared_memory import THREADS
from glp_rapids.propagation.schedule import Schedule, spans_of
from glp_rapids.propagation.workload import Workload

OF_VERTICES = 64  # so small a part of them is active at first, at the most
SPREAD = 16  # as soon as more than one vertex in so many is active, the other engine goes on
# The list is gone through in each step, and who has left keeps a place in it for a while.
OF_LIST = 4
# In a sweep a vertex may be listed before its step, and once more after it.
TIMES_A_SWEEP = 2

_built: dict[tuple, tuple] = {}


def engine_for(workload: Workload, compiled: Compiled, fields: dict[str, Any]) -> PersistentEngine:
    """Return the engine of plain rows that suits how many vertices are active.

    Where a run has left a plan, the engine that goes by it takes no more memory.
    """
    active, number = workload.active, workload.graph.number_of_vertices
    few = active is not None and active.size * OF_VERTICES <= number
    few = few and not any(key[0] == PersistentEngine.kept_as for key in list(workload.kept))
    return (FrontierEngine if few else PersistentEngine)(workload, compiled, fields)


@dataclass
class FrontierWorkspace:
    """The arrays of a run, as the kernel takes them, and as the host writes them."""

    plan: Levels
    tables: HubTables
    pieces: Pieces
    frontier: Frontier
    run: FrontierRun
    rows: Any
    readers: Any
    lists: Any
    words: Any
    slack: Any
    errors: Any
    bound_errors: Any
    active: Any


class FrontierEngine(PersistentEngine):
    """Run one plain program on one graph of which few vertices are active with a GPU."""

    kept_as = "frontier"

    def __init__(self, workload: Workload, compiled: Compiled, fields: dict[str, Any]):
        super().__init__(workload, compiled, fields)
        self._rest: PersistentEngine | None = None
        self._list(workload.active)

    @property
    def _most(self) -> int:
        """How many places of the list may be taken before a sweep."""
        number = self._workload.graph.number_of_vertices
        return self._workspace.active.size - TIMES_A_SWEEP * number

    def _kernels(self) -> tuple:
        compiled, index_type = self._compiled, self._workload.rows.indices.dtype.type
        key = compiled.digest, index_type, shared_memory.TABLE_SLOTS, reduces_lanes()
        if key not in _built:
            _built[key] = (
                frontier.build(compiled, index_type, gpu_target()),
                None,  # labels are there
                votes.build(compiled, index_type, gpu_target()),
            )
        return _built[key]

    def _long_lists(self, plan: Any) -> int:
        """Return 0: a list of readers is gone through by a block at the most."""
        return 0

    def _new_workspace(self) -> FrontierWorkspace:
        xp, workload = self._xp, self._workload
        number = workload.graph.number_of_vertices
        room = number // OF_LIST + TIMES_A_SWEEP * number
        made = frontier_arrays(number, room, *self._functions.types, xp)
        words = made["words"]
        label, votes_, number_, tied, score = (
            bound(made[name]) for name in ("label", "votes", "number", "tied", "score")
        )
        # a group is a class, of which a sweep takes so many as one
        levels = [(span, 0, workload.classes, span) for span in spans_of(workload.classes)]
        rows, readers, lists = self._rows(None)
        return FrontierWorkspace(
            plan=bound(Levels(xp.asarray(np.array(levels)), np.int64(1))),
            tables=HubTables(label, votes_, votes_, number_, number_),
            pieces=Pieces(label, score, tied, votes_, number_),
            frontier=bound(Frontier(
                made["active"], made["won_vertices"], made["won_labels"], words[DRAWN:BARRIER],
            )),
            run=bound(FrontierRun(
                made["slack"], words[CHANGED:], words[BARRIER:CONTROL], words[CONTROL:CHANGED],
            )),
            rows=rows,
            readers=readers,
            lists=lists,
            words=words,
            slack=made["slack"],
            errors=made["errors"],
            bound_errors=bound(made["errors"]),
            active=made["active"],
        )  # fmt: skip

    def _list(self, active: Any) -> None:
        """List the active vertices for the next launch."""
        self._workspace.active[: active.size] = active
        self._drawn = np.array([active.size, 0, 0, 0])

    def start(self) -> None:
        """Let no vertex say anything: it has a label."""
        self._workspace.errors.fill(0)

    def advance(self, schedule: Schedule, sweeps: int) -> None:
        """Do up to so many sweeps."""
        until = min(len(schedule.changed) + sweeps, schedule.options.max_iter)
        while len(schedule.changed) < until and not (schedule.over or self.failure()):
            left = until - len(schedule.changed)
            if self._rest is None and self._drawn[LISTED] > self._most:
                self._list_anew()
            if self._rest is None:
                self._go_through_list(schedule, left)
            else:
                self._rest.advance(schedule, left)
        if self._rest is None and schedule.over and not self._failure:
            self._note_pending(schedule)
            self._workload.kept[self._key] = self._workspace

    def _go_through_list(self, schedule: Schedule, sweeps: int) -> None:
        """Do up to so many sweeps in one launch, fewer if the list becomes long."""
        workspace = self._workspace
        how, before = self._begin(schedule, sweeps)
        blocks = -(-int(self._drawn[LISTED]) // PLACES)
        launch_together(
            self._propagate, max(blocks, multiprocessors()), THREADS,
            workspace.plan, workspace.tables, workspace.frontier, workspace.pieces,
            workspace.run, workspace.rows, workspace.readers, workspace.lists, self._bound, how,
            self._numbers, np.int64(self._most),
        )  # fmt: skip
        words = self._record(schedule, before)
        self._drawn = np.array([words[DRAWN + LISTED], 0, 0, 0])

    def _list_anew(self) -> None:
        """List those who are still active, or let the other engine go on from them."""
        active = self._xp.flatnonzero(self._workspace.slack < 0)
        if active.size * SPREAD <= self._workload.graph.number_of_vertices:
            self._list(active)
            return
        slack = self._workspace.slack.copy()
        self._workspace = self._numbers = None  # before the other engine makes room for its own
        workload = replace(self._workload, active=active)
        self._rest = PersistentEngine(workload, self._compiled, self._fields)
        self._rest.go_on(self._kept_words, slack)

    def pending(self) -> np.ndarray | None:
        """Return the vertices that are not known to be settled, see `PersistentEngine`."""
        return super().pending() if self._rest is None else self._rest.pending()

    def failure(self) -> int:
        """Give what a function of the program got wrong (see `failures`), or 0."""
        return min(super().failure(), 0 if self._rest is None else self._rest.failure())
