"""What engines share whose kernel does many sweeps in a launch: its words, and what they say."""

from __future__ import annotations

from typing import Any

import numpy as np

from glp_rapids.device import overwrite, to_host
from glp_rapids.jit.cuda import bound
from glp_rapids.propagation.compile_program import Compiled
from glp_rapids.propagation.engines.workspace import CHANGED, CONTROL, LARGEST_LAUNCH
from glp_rapids.propagation.kernels.gpu.arguments import LaunchSchedule, Numbers, Rows
from glp_rapids.propagation.schedule import Schedule
from glp_rapids.propagation.ties import TIE_BREAKS
from glp_rapids.propagation.workload import Workload

EARLY = 1 << 22  # up to so many entries a group are decoded in any case before they are needed


def numbers_of(workload: Workload, errors: Any) -> Numbers:
    """Return how amounts become votes, and where failures are noted."""
    return Numbers(
        np.float64(workload.scale),
        np.float64(workload.largest_amount),
        np.int64(workload.largest_vote),
        errors,
        np.int64(workload.id_words.first),
        bound(workload.id_words.words),
    )


def rows_and_readers(workload: Workload, xp: Any) -> tuple[Rows, Rows]:
    """Return plain rows, and who reads a row, as kernels take them: no array is empty."""
    rows, readers = workload.rows, workload.readers
    weights = rows.weights
    if weights is None or weights.size == 0:
        weights = xp.empty(1, np.int64 if weights is None else weights.dtype)
    weights, found = bound(weights), []
    for one in (rows, readers):
        indices = one.indices if one.indices.size else xp.empty(1, one.indices.dtype)
        found.append(Rows(bound(one.indptr), bound(indices), weights))
    return found[0], found[1]


def clear(words: Any) -> None:
    """Set words to zero, by the driver: a kernel for that would take longer to launch."""
    if isinstance(words, np.ndarray):
        words.fill(0)
    else:
        words.data.memset_async(0, words.nbytes)


class LaunchedEngine:
    """An engine that has ``_workspace`` with the words of a launch, and where errors are noted."""

    _workload: Workload
    _compiled: Compiled
    _workspace: Any
    _kept_words: np.ndarray  # what a launch leaves for the next one: `arguments.Run.control`
    _distinct = False  # whether labels are, before the first sweep
    _buffer_entries = 0  # entries of the largest group of a compressed graph
    _failure = 0

    def _begin(self, schedule: Schedule, sweeps: int) -> tuple[LaunchSchedule, int]:
        """Write the words of a launch; return what it has to do, and how many sweeps it knows of.

        These were done before it.
        """
        workspace, options, done = self._workspace, schedule.options, len(schedule.changed)
        # The sweeps that still have a say in when to stop come before the new ones.
        before = min(done, LARGEST_LAUNCH // 2)
        sweeps = min(sweeps, options.max_iter - done, LARGEST_LAUNCH - before)
        how = self._how(schedule, sweeps, done - before)
        words = np.zeros(workspace.words.size, np.int64)
        if done == 0:
            self._kept_words[1] = schedule.explored
        words[CONTROL:CHANGED] = self._kept_words
        words[CHANGED : CHANGED + before] = schedule.changed[done - before : done]
        if done > before and not schedule.exploring and schedule.explored < done - before:
            # The least change so far still counts, though its sweep has no place any more.
            words[CHANGED] = min(schedule.changed[schedule.explored : done - before + 1])
        overwrite(workspace.words, words)
        return how, before

    def _record(self, schedule: Schedule, before: int) -> None:
        """Read what the launches of a sweep, or of several, have changed."""
        words, done = to_host(self._workspace.words), len(schedule.changed)
        self._kept_words = words[CONTROL:CHANGED].copy()
        for changed in words[CHANGED + before :][: int(words[CONTROL]) - done].tolist():
            schedule.record(changed)
        self._note_failure()

    def _how(self, schedule: Schedule, sweeps: int, dropped: int) -> LaunchSchedule:
        workload, options = self._workload, schedule.options
        return LaunchSchedule(
            classes=np.int64(workload.classes),
            vertices=np.int64(schedule.counted),
            before=np.int64(schedule.before),
            strips=np.int64(self._strips_a_class()),
            sweeps=np.int64(sweeps),
            forgotten=np.int64(dropped),
            explore=np.int64(options.explore),
            stops=bool(options.stops),
            few=np.int64(schedule.few),
            patience=np.int64(schedule.patience),
            retain=bool(options.retain),
            tie_break=np.int64(TIE_BREAKS[options.tie_break]),
            seed=np.uint64(options.seed),
            skip=bool(workload.skip),
            all_distinct=self._distinct,
            # with labels of communities few names are left out, and a sum without one is no margin
            rows_ascend=bool(workload.once and not workload.marks),
            many=np.int64(schedule.number_of_vertices),
            sparse=np.int64(self._sparse(schedule.number_of_vertices)),
            long_list=np.int64(self._long_list()),
            buffer=np.int64(self._buffer_entries),
            early=bool(self._buffer_entries <= EARLY),
            marks=bool(workload.marks),
        )

    def _strips_a_class(self) -> int:
        """Return how many groups a class has."""
        return 1

    def _sparse(self, number_of_vertices: int) -> int:
        """Return up to how many changes few are active in the next sweep."""
        return 0

    def _long_list(self) -> int:
        """Return how long a list of readers is at least that all blocks share; 0: there is none."""
        return 0

    def _note_failure(self) -> None:
        traits = self._compiled.traits
        if traits.checks_amounts or traits.checks_said:
            self._failure = int(self._workspace.errors[1])

    def facts(self) -> dict[str, Any]:
        """Return what the report of a run says of this engine besides: nothing."""
        return {}

    def failure(self) -> int:
        """Give what a function of the program got wrong (see `failures`), or 0."""
        return self._failure
