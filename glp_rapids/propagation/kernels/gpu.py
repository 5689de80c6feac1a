"""The GPU engine: vertices listed by class and degree, a kernel a degree class, labels stay put.

All that crosses to the host is the number of changed labels, once a sweep.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from glp_rapids.device import array_module, to_device, to_host
from glp_rapids.propagation.compilation import Compiled
from glp_rapids.propagation.course import Rule, SweepBySweep
from glp_rapids.propagation.kernels import (
    gpu_block,
    gpu_common,
    gpu_hub,
    gpu_narrow,
    gpu_update,
)
from glp_rapids.propagation.kernels.cuda_target import (
    Launcher,
    bound,
    gpu_target,
    multiprocessors,
)
from glp_rapids.propagation.sweep import Workload, class_lists

__all__ = ["DEGREE_CLASSES", "DegreeClass", "GpuEngine", "gpu_target"]


@dataclass(frozen=True)
class DegreeClass:
    """Which kernel serves degrees up to a limit, and how it is launched."""

    largest_degree: int
    build: Any
    threads: int
    vertices_per_block: int


# In ascending order; what is beyond the last goes to the kernels for hubs.
DEGREE_CLASSES = (
    DegreeClass(8, lambda c, s: gpu_narrow.build(c, s, 8), gpu_narrow.BLOCK, 32),
    DegreeClass(32, lambda c, s: gpu_narrow.build(c, s, 32), gpu_narrow.BLOCK, 8),
    DegreeClass(gpu_block.LARGEST_DEGREE, gpu_block.build, gpu_common.THREADS, 1),
)

_built: dict[tuple, tuple] = {}


def _kernels(compiled: Compiled, index_type: Any) -> tuple:
    """Give all kernels of a program, built once a process."""
    key = compiled.digest, index_type, DEGREE_CLASSES
    if key not in _built:
        shared = gpu_common.common(compiled, index_type)
        _built[key] = (
            [degree_class.build(compiled, shared) for degree_class in DEGREE_CLASSES],
            gpu_hub.build(compiled, shared),
            gpu_update.build(compiled, index_type),
            Launcher(compiled),
        )
    return _built[key]


class GpuEngine(SweepBySweep):
    """Run one program on one graph with a GPU."""

    def __init__(self, workload: Workload, compiled: Compiled, fields: dict[str, Any]):
        rows, readers = workload.rows, workload.readers
        self._xp = xp = array_module(rows.indptr)
        number_of_vertices = rows.indptr.size - 1
        self._workload, self._compiled, self._fields = workload, compiled, fields
        index_type = rows.indices.dtype.type
        self._narrow, self._hub, self._update, self._launch = _kernels(compiled, index_type)
        score_type = np.float64 if compiled.traits.real_scores else np.int64

        weights = rows.weights
        if weights is None or weights.size == 0:
            weights = xp.zeros(1, np.int64 if weights is None else weights.dtype)
        indices = rows.indices if rows.indices.size else xp.zeros(1, index_type)
        readers_of = readers.indices if readers.indices.size else xp.zeros(1, index_type)
        vertices = self._list_vertices(rows, workload.classes)
        self._list_wide(readers)
        self._vertices = bound(vertices.astype(index_type))
        self._csr = tuple(bound(array) for array in (rows.indptr, indices, weights))
        self._readers = bound(readers.indptr), bound(readers_of)
        self._bound = {name: bound(value) for name, value in fields.items()}

        def filled(size: int, value: int, dtype: Any) -> Any:
            return bound(xp.full(max(size, 1), value, dtype=dtype))

        self._active_here = xp.ones(number_of_vertices, np.uint8)
        self._active = bound(self._active_here)
        self._tied = filled(number_of_vertices, 0, np.uint8)
        self._wide = filled(number_of_vertices, 0, np.uint8)
        self._winner = filled(number_of_vertices, -1, index_type)
        self._winner_score = filled(number_of_vertices, 0, score_type)
        self._errors_here = xp.zeros(1, np.int32)
        self._changed_here = xp.zeros(1, np.int64)
        self._errors, self._changed = bound(self._errors_here), bound(self._changed_here)
        self._keys = filled(self._plan.scratch_slots, -1, index_type)
        self._votes = filled(self._plan.scratch_slots, 0, np.int64)
        pieces = self._plan.slot_piece_hub.size
        self._pieces = (
            filled(pieces, -1, index_type),
            filled(pieces, 0, score_type),
            filled(pieces, 0, np.int32),
        )
        self._blocks = multiprocessors() * 16

    def _list_vertices(self, rows: Any, classes: int) -> Any:
        """List vertices by (class, degree class); those without a neighbour are never evaluated."""
        xp, number_of_vertices = self._xp, rows.indptr.size - 1
        class_indptr, vertices = class_lists(number_of_vertices, classes, xp)
        degree = (rows.indptr[1:] - rows.indptr[:-1])[vertices]
        limits = xp.asarray([0, *(kind.largest_degree for kind in DEGREE_CLASSES)], dtype=np.int64)
        kind = xp.searchsorted(limits, degree, side="left")  # 0: no neighbour, last: hub
        kinds = len(DEGREE_CLASSES) + 2
        group = xp.asarray(np.repeat(np.arange(classes), np.diff(class_indptr)).astype(np.int64))
        key = group * kinds + kind
        order = xp.argsort(key, kind="stable")
        counts = to_host(xp.bincount(key, minlength=classes * kinds)).reshape(classes, kinds)
        ends = np.cumsum(counts.ravel()).reshape(classes, kinds)
        begins = ends - counts
        self._ranges = [
            [(int(begins[c, k]), int(ends[c, k])) for k in range(kinds)] for c in range(classes)
        ]
        listed = vertices[order]
        hubs = [to_host(listed[slice(*ranges[-1])]) for ranges in self._ranges]
        degree_of = degree[order]
        degrees = [to_host(degree_of[slice(*ranges[-1])]) for ranges in self._ranges]
        self._plan = gpu_hub.plan(hubs, degrees)
        self._hub_arrays = {
            name: bound(to_device(getattr(self._plan, name), self._workload.graph.device)
                        if getattr(self._plan, name).size else xp.zeros(1, np.int64))
            for name in ("hub_vertex", "table_base", "table_slots", "slot_piece_indptr",
                         "edge_piece_hub", "edge_piece_start", "slot_piece_hub", "slot_piece_start")
        }
        return listed

    def _list_wide(self, readers: Any) -> None:
        """List the vertices with many readers, class after class."""
        xp, number_of_vertices = self._xp, readers.indptr.size - 1
        class_indptr, vertices = class_lists(number_of_vertices, self._workload.classes, xp)
        wide = (readers.indptr[1:] - readers.indptr[:-1])[vertices] > gpu_update.NARROW_READERS
        before = to_host(xp.concatenate([xp.zeros(1, np.int64), xp.cumsum(wide)]))
        self._wide_indptr = [int(before[end]) for end in class_indptr]
        listed = vertices[wide]
        self._wide_vertices = bound(listed if listed.size else xp.zeros(1, np.int64))

    def start(self) -> None:
        """Let every vertex say its first label."""
        if self._compiled.traits.default_pick:
            return
        labels = self._fields["labels"]
        self._launch(
            self._update.start, -(-labels.size // 128), 128, tuple(self._bound.values())
        )
        if "volume" in self._fields:
            said = labels[labels >= 0]
            self._fields["volume"][:] = self._xp.bincount(said, minlength=labels.size)

    def sweep(self, rule: Rule) -> int:
        """Do one sweep; return how many vertices now say another label."""
        self._bound["sweep"] = np.int64(rule.sweep)
        fields = tuple(self._bound.values())
        # At first nearly every label changes: waking everyone at once is cheaper than one by one.
        wholesale = self._workload.skip and rule.sweep == 1
        skip = self._workload.skip and not wholesale
        scale = np.float64(self._workload.scale)
        flags = (skip, rule.revisit_tied)
        ties = (rule.retain, np.int64(rule.tie_break), np.uint64(rule.tie_seed))
        limit = np.float64(self._workload.largest_amount)
        self._changed_here[0] = 0
        for group, ranges in enumerate(self._ranges):
            for degree_class, kernel, (first, last) in zip(
                DEGREE_CLASSES, self._narrow, ranges[1:], strict=False
            ):
                blocks = -(-(last - first) // degree_class.vertices_per_block)
                self._launch(
                    kernel, min(blocks, self._blocks), degree_class.threads, first, last,
                    self._vertices, *self._csr, fields, *flags, *ties, scale, limit, self._active,
                    self._tied, self._winner, self._winner_score, self._errors,
                )
            for batch in self._plan.batches[group]:
                self._sweep_hubs(batch, fields, flags, ties, scale, limit)
            first, last = ranges[1][0], ranges[-1][1]
            self._launch(
                self._update.update, -(-(last - first) // gpu_common.THREADS), gpu_common.THREADS,
                first, last, self._vertices, *self._readers, fields, skip, scale, self._active,
                self._winner, self._winner_score, self._wide, self._changed,
            )
            first, last = self._wide_indptr[group : group + 2]
            if skip:
                self._launch(
                    self._update.wake, last - first, gpu_common.THREADS, first,
                    self._wide_vertices, *self._readers, self._wide, self._active,
                )
        if wholesale:
            self._active_here[:] = 1
        return int(self._changed_here[0])

    def _sweep_hubs(self, batch, fields, flags, ties, scale, limit) -> None:
        """Evaluate a batch of hubs."""
        hub, arrays, threads = self._hub, self._hub_arrays, gpu_common.THREADS
        first, last = batch.edge_pieces
        self._launch(
            hub.insert, last - first, threads, first, arrays["edge_piece_hub"],
            arrays["edge_piece_start"], arrays["hub_vertex"], arrays["table_base"],
            arrays["table_slots"], self._keys, self._votes, *self._csr, fields, *flags, scale,
            limit, self._active, self._tied, self._errors,
        )
        first, last = batch.slot_pieces
        self._launch(
            hub.search, last - first, threads, first, arrays["slot_piece_hub"],
            arrays["slot_piece_start"], arrays["hub_vertex"], arrays["table_base"], self._keys,
            self._votes, fields, *flags, *ties, scale, self._active, self._tied, *self._pieces,
        )
        first, last = batch.hubs
        self._launch(
            hub.decide, -(-(last - first) // threads), threads, first, last,
            arrays["hub_vertex"], arrays["slot_piece_indptr"], fields, *flags, *ties,
            self._active, self._tied, *self._pieces, self._winner, self._winner_score,
        )

    def bad_amounts(self) -> bool:
        """Tell whether a program returned amounts that are not finite or too large."""
        traits = self._compiled.traits
        if traits.default_load or not traits.real_amounts:
            return False
        return bool(self._errors_here[0])
