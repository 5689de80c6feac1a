"""The GPU engine of a warm run where few vertices are active: it looks at them alone.

No order of the rows is made, which would take most of such a run: rows are read where they lie in
the graph. Should the changes spread after all, the persistent engine goes on from there. Beside the
CSR and the labels it takes 24 bytes a vertex (28 with 64-bit indices) and 1 for 16 entries.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from glp_rapids.device import array_module, to_host
from glp_rapids.jit.cuda import bound, gpu_target, multiprocessors, reduces_lanes
from glp_rapids.jit.launch import launch_together
from glp_rapids.propagation.compile_program import Compiled
from glp_rapids.propagation.engines import workspace
from glp_rapids.propagation.engines.gpu import PersistentEngine
from glp_rapids.propagation.engines.launched import (
    LaunchedEngine,
    numbers_of,
    rows_and_readers,
)
from glp_rapids.propagation.engines.workspace import Kept
from glp_rapids.propagation.failures import WORDS
from glp_rapids.propagation.kernels.gpu import frontier, frontier_lists, shared_memory, votes
from glp_rapids.propagation.kernels.gpu.arguments import HubTables, Pieces
from glp_rapids.propagation.kernels.gpu.frontier_lists import FrontierRun, Listed
from glp_rapids.propagation.kernels.gpu.shared_memory import THREADS
from glp_rapids.propagation.pending import most_pending
from glp_rapids.propagation.schedule import Schedule
from glp_rapids.propagation.workload import Workload

OF_ENTRIES, OF_VERTICES = 3, 16  # so small a part of them is active at first, at the most
SPREAD = 16  # as soon as more than one vertex in so many is active, the other engine goes on
AT_ONCE = 64  # active vertices at first for each block of the launch
LONGEST = 1 << 17  # entries in a row that one block may read in each step

_built: dict[tuple, tuple] = {}


def engine_for(
    workload: Workload, compiled: Compiled, fields: dict[str, Any]
) -> FrontierGpuEngine | PersistentEngine:
    """Return the engine of plain rows that suits how many vertices and entries are active.

    Where an earlier run has left an order of the rows, there is nothing to be saved.
    """
    few = workload.active is not None and workload.marks
    few = few and not any(key[0] == "workspace" for key in workload.kept)
    few = few and workload.active.size * OF_VERTICES <= workload.graph.number_of_vertices
    few = few and workload.active_entries * OF_ENTRIES <= workload.rows.number_of_edges
    few = few and workload.classes <= frontier_lists.MOST_CLASSES and _rows_are_short(workload)
    return (FrontierGpuEngine if few else PersistentEngine)(workload, compiled, fields)


def _rows_are_short(workload: Workload) -> bool:
    """Tell whether a block can read any row alone, and long ones are not too many to be counted."""
    entries = workload.rows.number_of_edges
    if entries // frontier_lists.OF_WARP > frontier_lists.MOST_LONG_ROWS:
        return False
    return entries // OF_ENTRIES <= LONGEST or workload.largest_degree <= LONGEST


@dataclass
class FrontierWorkspace:
    """The arrays of a run, as the kernel takes them."""

    run: FrontierRun  # with arrays, not with what is bound
    bound_run: Any
    words: Any
    errors: Any
    bound_errors: Any


class FrontierGpuEngine(LaunchedEngine):
    """The engine of plain rows of which few vertices are active; ``workload.active`` are listed."""

    def __init__(self, workload: Workload, compiled: Compiled, fields: dict[str, Any]):
        self._xp = array_module(fields["labels"])
        self._workload, self._compiled, self._fields = workload, compiled, fields
        self._kernel, self._functions = self._kernels()
        self._workspace = self._new_workspace()
        self._bound = tuple(bound(value) for value in fields.values())
        self._numbers = numbers_of(workload, self._workspace.bound_errors)
        self._kept_words = np.zeros(3, np.int64)
        self._active = workload.active.astype(workload.rows.index_dtype, copy=False)
        self._rest: PersistentEngine | None = None

    def _kernels(self) -> tuple:
        compiled, index_type = self._compiled, self._workload.rows.indices.dtype.type
        key = compiled.digest, index_type, shared_memory.TABLE_SLOTS, reduces_lanes()
        if key not in _built:
            _built[key] = (
                frontier.build(compiled, index_type, gpu_target()),
                votes.build(compiled, index_type, gpu_target()),
            )
        return _built[key]

    def _new_workspace(self) -> FrontierWorkspace:
        """Make the arrays of the run; those that begin with zeros are one piece of memory."""
        xp, classes = self._xp, self._workload.classes
        entries = self._workload.rows.number_of_edges
        size, index_type = self._workload.graph.number_of_vertices, self._functions.index_type
        wanted = {
            "slack": Kept(size, np.int32),
            "of_class": Kept(2 * classes, np.int64),
            "counts": Kept(frontier_lists.COUNTS, np.int64),
            "words": Kept(workspace.CHANGED + workspace.LARGEST_LAUNCH, np.int64),
            "errors": Kept(WORDS, np.int64),
        }
        made = dict(zip(wanted, workspace.cut(list(wanted.values()), xp), strict=True))
        words = made["words"]
        run = FrontierRun(
            slack=made["slack"],
            winner=xp.empty(size, index_type),
            long_lists=made["counts"],
            changed=words[workspace.CHANGED :],
            barrier=words[workspace.BARRIER : workspace.CONTROL],
            control=words[workspace.CONTROL : workspace.CHANGED],
            listed=Listed(
                xp.empty((2, size), np.int64), made["of_class"], made["counts"],
                xp.empty(min(entries // frontier_lists.OF_WARP, size) + 1, np.int64),
            ),
            first_id=np.int64(self._workload.id_words.first),
            id_words=self._workload.id_words.words,
            classes=np.int64(classes),
            indptr=self._workload.rows.indptr,
            most_listed=np.int64(size // SPREAD),
            step=made["counts"],
        )
        bound_run = bound(run)
        return FrontierWorkspace(run, bound_run, words, made["errors"], bound(made["errors"]))

    def _no_hubs(self) -> tuple[HubTables, Pieces]:
        """Return what a row that blocks share would take: a block reads a row alone here."""
        index_type, vote_type, score_type = self._functions.types
        memory = bound(self._workspace.run.listed.counts.view(np.int32))
        kinds = {
            kind: bound(self._workspace.run.listed.counts.view(kind))
            for kind in (index_type, vote_type, score_type, np.uint8)
        }
        tables = HubTables(kinds[index_type], kinds[vote_type], kinds[vote_type], memory, memory)
        pieces = Pieces(
            kinds[index_type], kinds[score_type], kinds[np.uint8], kinds[vote_type], memory
        )
        return tables, pieces

    def start(self) -> None:
        """Do nothing: labels are there, and a plain program tells them as they are."""

    def advance(self, schedule: Schedule, sweeps: int) -> None:
        """Do up to so many sweeps; all but the first few may be done by the persistent engine."""
        end = len(schedule.changed) + sweeps
        if self._rest is None:
            self._launch(schedule, sweeps)
        left = end - len(schedule.changed)
        if self._rest is not None and left > 0 and not (schedule.over or self._failure):
            self._rest.advance(schedule, left)

    def _launch(self, schedule: Schedule, sweeps: int) -> None:
        workload, made = self._workload, self._workspace
        how, before = self._begin(schedule, sweeps)
        rows, readers = rows_and_readers(workload, self._xp)
        blocks = max(multiprocessors(), self._active.size // AT_ONCE)
        launch_together(
            self._kernel, blocks, THREADS, bound(self._active), *self._no_hubs(), made.bound_run,
            rows, readers, workload.readers is not workload.rows, self._bound, how, self._numbers,
        )  # fmt: skip
        self._record(schedule, before)
        self._active = self._active[:0]
        self._counts = to_host(made.run.listed.counts)
        if self._counts[frontier_lists.SPREADS] and not (schedule.over or self._failure):
            slack, self._workspace, self._numbers = made.run.slack, None, None
            del made
            self._rest = PersistentEngine(workload, self._compiled, self._fields)
            self._rest.go_on(slack, schedule)

    def failure(self) -> int:
        """Return what a function of the program got wrong (see `failures`), or 0."""
        return min(self._failure, 0 if self._rest is None else self._rest.failure())

    def pending(self) -> np.ndarray | None:
        """Return the vertices that are not known to be settled, ascending; None: they are many."""
        if self._rest is not None:
            return self._rest.pending()
        which = int(self._kept_words[2])
        number = int(self._counts[which])
        if number > most_pending(self._workload.graph.number_of_vertices):
            return None
        members = to_host(self._workspace.run.listed.members[which, :number])
        return np.sort(frontier_lists.vertices_of(members))
