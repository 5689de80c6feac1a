"""The host's part of a hybrid run: labels and state once more, and the sweep on rows of a class.

Rows are read where the layout of the strips has them, in the order of the GPU's plan. Labels and
state of the vertices that a class updates come from the GPU, so nothing is computed twice.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from glp_rapids.jit.target import cpu_target
from glp_rapids.outofcore.both_ends import BothEnds
from glp_rapids.propagation.compile_program import compile_program
from glp_rapids.propagation.engines import cpu_arrays
from glp_rapids.propagation.engines.cpu import CpuArrays
from glp_rapids.propagation.engines.strips import Layout
from glp_rapids.propagation.kernels.cpu import hybrid
from glp_rapids.propagation.kernels.cpu.hybrid import Outcome
from glp_rapids.propagation.kernels.cpu.tables import STAMPED
from glp_rapids.propagation.schedule import Rule
from glp_rapids.propagation.workload import Workload


class HostShare(CpuArrays):
    """What evaluates units of a layout on the host.

    Parameters
    ----------
    workload : Workload
        With ids on the host.
    fields : dict
        Host arrays of labels and state, which this keeps.
    layout : Layout
        Rows in the order of the plan.
    positions : int
        Of one class, at the most.
    """

    def __init__(
        self, workload: Workload, fields: dict[str, Any], layout: Layout, positions: int
    ):
        compiled = compile_program(workload.program, cpu_target(), fields, workload.rows.weights)
        sizes = cpu_arrays.sizes_of(workload, compiled.traits)
        tables = cpu_arrays.resident_layout(sizes)
        super().__init__(workload, compiled, fields, sizes, tables)
        self._kernel = hybrid.share_kernel(compiled, tables.tables == STAMPED)
        self._layout, total = layout, layout.number_of_entries
        weights = np.empty(0, np.int64)
        if layout.weights is not None:
            weights = layout.weights.array[:total]
        self._lists = layout.entries.array[:total], weights
        self._make_lists(positions)

    @property
    def fields(self) -> dict[str, Any]:
        """Labels and state on the host."""
        return self._fields

    def note(self, first: int, last: int, values: dict[str, np.ndarray]) -> None:
        """Take what a class was updated to: of each field, the values of some positions."""
        vertices = self._layout.vertices[first:last]
        if "volume" in self._fields:
            before, volume = self._fields["labels"], self._fields["volume"]
            hybrid.recount(vertices, values["labels"], before, volume)
        for name, given in values.items():
            into = self._fields[name]
            if into.ndim == 1:
                hybrid.put(self._threads, vertices, given, into)
            else:
                into[vertices] = given.reshape(vertices.size, *into.shape[1:])

    def evaluate(
        self, rule: Rule, skips: bool, left: BothEnds, known: Outcome | None, outcome: Outcome
    ) -> None:
        """Find the winners of units from the rear, for as long as the GPU leaves any.

        ``known``: of slack and ties; None: all vertices are active.
        """
        lowest, rear = int(left.units[-1]), int(left.units[0])
        self._fields["sweep"] = np.int64(rule.sweep)
        everybody = known is None
        self._kernel(
            self._threads, left.word, left.units - lowest, self._layout.vertices[lowest:rear],
            self._layout.starts[lowest : rear + 1], *self._lists, tuple(self._fields.values()),
            (skips, rule.revisit_tied), everybody, self._settings(rule), self._tables,
            self._slack, self._tied, outcome if everybody else known, self._winners, outcome,
            self._errors,
        )  # fmt: skip
