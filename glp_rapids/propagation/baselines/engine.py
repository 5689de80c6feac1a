"""The baselines on a GPU, one sweep at a time: a strategy is a table of kernels by degree.

Vertices are listed by class and degree; labels stay put. All that crosses to the host is the
number of changed labels, once a sweep (with "sort" also, class by class, the sizes of its arrays).
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from glp_rapids.common.segments import occurrences
from glp_rapids.device import array_module, to_host
from glp_rapids.jit.cuda import bound, gpu_target, multiprocessors
from glp_rapids.jit.launch import launch
from glp_rapids.propagation.baselines import (
    block_per_row,
    blocks_per_row,
    global_table,
    rows_per_warp,
    segmented_sort,
    update,
    votes,
)  # fmt: skip
from glp_rapids.propagation.baselines.launches import (
    UNLIMITED,
    DegreeClass,
    Listed,
    RunArrays,
    SweepArguments,
    TieOrder,
)
from glp_rapids.propagation.compile_program import Compiled
from glp_rapids.propagation.engines.gpu import count_volumes
from glp_rapids.propagation.engines.stepped import SteppedEngine
from glp_rapids.propagation.failures import WORDS
from glp_rapids.propagation.schedule import Rule, class_lists
from glp_rapids.propagation.workload import Workload

__all__ = ["STRATEGIES", "BaselineEngine", "gpu_target"]

Strategy = tuple[DegreeClass, ...]

BLOCK_A_VERTEX = DegreeClass(
    block_per_row.LARGEST_DEGREE,
    block_per_row.build,
    partial(Listed, threads=votes.THREADS, vertices_per_block=1),
)
HUBS = DegreeClass(UNLIMITED, blocks_per_row.build, blocks_per_row.Hubs)

# In ascending order of degree.
STRATEGIES: dict[str, Strategy] = {
    "shared+warp": (
        DegreeClass(
            8,
            partial(rows_per_warp.build, width=8),
            partial(
                Listed, threads=rows_per_warp.BLOCK, vertices_per_block=rows_per_warp.BLOCK // 8
            ),
        ),
        DegreeClass(
            32,
            partial(rows_per_warp.build, width=32),
            partial(
                Listed, threads=rows_per_warp.BLOCK, vertices_per_block=rows_per_warp.BLOCK // 32
            ),
        ),
        BLOCK_A_VERTEX,
        HUBS,
    ),
    "shared": (BLOCK_A_VERTEX, HUBS),
    "global": (
        DegreeClass(128, global_table.build_warp, global_table.WarpTables),
        DegreeClass(1024, global_table.build_block, global_table.BlockTables),
        HUBS,
    ),
    "sort": (
        DegreeClass(32, partial(segmented_sort.build, lanes=1), segmented_sort.Sorted),
        DegreeClass(
            UNLIMITED, partial(segmented_sort.build, lanes=votes.THREADS), segmented_sort.Sorted
        ),
    ),
}


class Kernels:
    """The kernels of one program, each built when a strategy first asks for it."""

    def __init__(self, compiled: Compiled, index_type: Any):
        self.update = update.build(compiled, index_type)
        self._compiled, self._functions = compiled, votes.build(compiled, index_type)
        self._built: dict[Any, Any] = {}

    def of(self, degree_class: DegreeClass) -> Any:
        """Return the kernels of a degree class."""
        build = degree_class.build
        if build not in self._built:
            self._built[build] = build(self._compiled, self._functions)
        return self._built[build]


_kernels: dict[tuple, Kernels] = {}


def kernels_of(compiled: Compiled, index_type: Any) -> Kernels:
    """Return the kernels of a program, the same as long as the process lives."""
    key = compiled.digest, index_type
    if key not in _kernels:
        _kernels[key] = Kernels(compiled, index_type)
    return _kernels[key]


class BaselineEngine(SteppedEngine):
    """Run one program on one graph with a GPU, by one strategy."""

    def __init__(
        self, strategy: Strategy, workload: Workload, compiled: Compiled, fields: dict[str, Any]
    ):
        rows, readers = workload.rows, workload.readers
        self._xp = xp = array_module(rows.indptr)
        number_of_vertices = rows.indptr.size - 1
        self._workload, self._compiled, self._fields = workload, compiled, fields
        self.classes = workload.classes
        index_type = rows.indices.dtype.type
        kernels = kernels_of(compiled, index_type)
        self._update = kernels.update
        score_type = np.float64 if compiled.traits.real_scores else np.int64

        weights = rows.weights
        if weights is None or weights.size == 0:
            weights = xp.zeros(1, np.int64 if weights is None else weights.dtype)
        indices = rows.indices if rows.indices.size else xp.zeros(1, index_type)
        readers_of = readers.indices if readers.indices.size else xp.zeros(1, index_type)
        self._readers = bound(readers.indptr), bound(readers_of)
        self._wrapped = {name: bound(value) for name, value in fields.items()}
        self._active = xp.ones(max(number_of_vertices, 1), np.uint8)
        self._errors = xp.zeros(WORDS, np.int64)
        first_id, words = workload.id_words
        self._id_words = first_id, bound(words)
        self._changed = xp.zeros(1, np.int64)
        self._wrapped_changed = bound(self._changed)
        self._differing = bound(xp.zeros(max(number_of_vertices, 1), np.uint8))
        self._list_much_read(readers)

        vertices, ranges = self._list_vertices(rows, workload.classes, strategy)
        tied = xp.zeros(max(number_of_vertices, 1), np.uint8)
        winner = xp.full(max(number_of_vertices, 1), -1, index_type)
        winner_score = xp.zeros(max(number_of_vertices, 1), score_type)
        self._run = run = RunArrays(
            xp=xp, launch=launch, wrap=bound, most_blocks=multiprocessors() * 16,
            workload=workload, vertices=vertices, active=self._active, tied=tied,
            wrapped_vertices=bound(vertices),
            wrapped_csr=(bound(rows.indptr), bound(indices), bound(weights)),
            wrapped_marks=(bound(self._active), bound(tied)),
            wrapped_winners=(bound(winner), bound(winner_score)),
            wrapped_errors=bound(self._errors),
        )  # fmt: skip
        self._evaluations = [
            degree_class.serve(kernels.of(degree_class), run, ranges_of)
            for degree_class, ranges_of in zip(strategy, ranges[1:], strict=True)
        ]
        self._classes = [(low[0], high[1]) for low, high in zip(ranges[1], ranges[-1], strict=True)]

    def _list_vertices(self, rows: Any, classes: int, strategy: Strategy) -> tuple[Any, list]:
        """List vertices by (class, degree class); return each degree class's ranges by class.

        The first degree class is of those without a neighbour, which are never evaluated.
        """
        xp, number_of_vertices = self._xp, rows.indptr.size - 1
        class_indptr, vertices = class_lists(self._workload.id_words, number_of_vertices, classes)
        degree = (rows.indptr[1:] - rows.indptr[:-1])[vertices]
        limits = xp.asarray([0, *(kind.largest_degree for kind in strategy)], dtype=np.int64)
        kind = xp.searchsorted(limits, degree, side="left")
        kinds = len(limits)
        group = xp.asarray(np.repeat(np.arange(classes), np.diff(class_indptr)).astype(np.int64))
        key = group * kinds + kind
        order = xp.argsort(key, kind="stable")
        counts = to_host(occurrences(key, classes * kinds)).reshape(classes, kinds)
        ends = np.cumsum(counts.ravel()).reshape(classes, kinds)
        begins = ends - counts
        ranges = [
            list(zip(begins[:, kind].tolist(), ends[:, kind].tolist(), strict=True))
            for kind in range(kinds)
        ]
        return vertices[order].astype(rows.indices.dtype), ranges

    def _list_much_read(self, readers: Any) -> None:
        """List the vertices with many readers, class after class."""
        xp, number_of_vertices = self._xp, readers.indptr.size - 1
        class_indptr, vertices = class_lists(
            self._workload.id_words, number_of_vertices, self.classes
        )
        many = (readers.indptr[1:] - readers.indptr[:-1])[vertices] > update.READERS_OF_THREAD
        before = to_host(xp.concatenate([xp.zeros(1, np.int64), xp.cumsum(many)]))
        self._much_read_indptr = [int(before[end]) for end in class_indptr]
        listed = vertices[many]
        self._much_read = bound(listed if listed.size else xp.zeros(1, np.int64))

    def start(self) -> None:
        """Let every vertex say its first label."""
        if self._compiled.traits.default_pick:
            return
        labels = self._fields["labels"]
        launch(
            self._update.start, -(-labels.size // 128), 128, tuple(self._wrapped.values()),
            self._run.wrapped_errors,
        )  # fmt: skip
        if "volume" in self._fields:
            count_volumes(labels, self._fields["volume"])

    def begin(self, rule: Rule) -> None:
        """Get ready for a sweep."""
        self._wrapped["sweep"] = np.int64(rule.sweep)
        self._skip = self._workload.skip and not rule.activates_all
        self._arguments = SweepArguments(
            fields=tuple(self._wrapped.values()), flags=(self._skip, rule.revisit_tied),
            ties=(
                rule.retain, np.int64(rule.tie_break),
                TieOrder(np.uint64(rule.tie_seed), *self._id_words),
            ),
            scale=np.float64(self._workload.scale),
            limit=np.float64(self._workload.largest_amount),
        )  # fmt: skip
        self._changed[0] = 0

    def _members(self, rule: Rule, number: int) -> range:
        """Return the classes that are one in this sweep."""
        return range(number * rule.span, min((number + 1) * rule.span, self.classes))

    def groups(self, rule: Rule, number: int) -> Iterable[Any]:
        """Return what evaluates the vertices of a class: one for each class of degrees."""
        return product(self._members(rule, number), self._evaluations)

    def evaluate(self, rule: Rule, number: int, group: Any) -> None:
        """Find the winners among the vertices of a class of degrees."""
        member, evaluate = group
        evaluate(member, self._arguments)

    def report(self) -> int:
        """Return how many labels the sweep changed."""
        if self._workload.skip and not self._skip:
            self._active[:] = 1
        return int(self._changed[0])

    def update(self, rule: Rule, number: int) -> None:
        """Update the vertices of a class, and activate those who read them."""
        for member in self._members(rule, number):
            self._update_one(member)

    def _update_one(self, group: int) -> None:
        sweep, skip = self._arguments, self._skip
        run, threads = self._run, votes.THREADS
        first, last = self._classes[group]
        launch(
            self._update.update, -(-(last - first) // threads), threads, first, last,
            run.wrapped_vertices, *self._readers, sweep.fields, skip, sweep.scale,
            run.wrapped_marks[0], *run.wrapped_winners, self._differing, self._wrapped_changed,
            run.wrapped_errors,
        )  # fmt: skip
        first, last = self._much_read_indptr[group : group + 2]
        if skip:
            launch(
                self._update.activate, last - first, threads, first, self._much_read,
                *self._readers, self._differing, run.wrapped_marks[0],
            )  # fmt: skip

    def failure(self) -> int:
        """Return what a function of the program got wrong (see `failures`), or 0."""
        traits = self._compiled.traits
        return int(self._errors[1]) if traits.checks_amounts or traits.checks_said else 0
