"""The host's part of a hybrid run: labels and state once more, and the sweep on rows of a class.

Rows are read where the layout of the strips has them, in the order of the GPU's plan. Labels and
state of the vertices that a class updates come from the GPU, so nothing is computed twice.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from glp_rapids.common.sizes import planned_bytes
from glp_rapids.jit.target import cpu_target
from glp_rapids.outofcore import pinned
from glp_rapids.outofcore.both_ends import BothEnds
from glp_rapids.propagation.compile_program import compile_program
from glp_rapids.propagation.engines import cpu_arrays
from glp_rapids.propagation.engines.cpu import CpuArrays
from glp_rapids.propagation.engines.strips import Layout
from glp_rapids.propagation.kernels.cpu import hybrid
from glp_rapids.propagation.kernels.cpu.hybrid import Outcome
from glp_rapids.propagation.kernels.cpu.tables import STAMPED
from glp_rapids.propagation.program import Traits
from glp_rapids.propagation.schedule import Rule
from glp_rapids.propagation.workload import Workload


class HostShare(CpuArrays):
    """What evaluates units of a layout on the host; it stays with the graph for the next run.

    Parameters
    ----------
    workload : Workload
        With ids on the host.
    fields : dict
        Labels and state on either device: of the arrays there will be others on the host.
    layout : Layout
        Rows in the order of the plan.
    positions : int
        Of one class, at the most.
    score_type : dtype or None
        Of the scores that the GPU's update asks for; None: it asks for none.
    device : {"cpu", "gpu"}
        For which memory is pinned.
    """

    def __init__(
        self, workload: Workload, fields: dict[str, Any], layout: Layout, positions: int,
        score_type: Any, device: Any,
    ):  # fmt: skip
        def empty(size: int, dtype: Any) -> np.ndarray:
            return pinned.empty(size, dtype, device).array[:size]

        here = {
            name: empty(value.size, value.dtype).reshape(value.shape)
            for name, value in fields.items() if getattr(value, "ndim", 0)
        }  # fmt: skip
        state = {name: here.get(name, value) for name, value in fields.items()}
        compiled = compile_program(workload.program, cpu_target(), state, workload.rows.weights)
        sizes = cpu_arrays.sizes_of(workload, compiled.traits)
        tables = cpu_arrays.resident_layout(sizes)
        super().__init__(workload, compiled, state, sizes, tables)
        self._kernel = hybrid.share_kernel(compiled, tables.tables == STAMPED)
        self.layout, total = layout, layout.number_of_entries
        weights = np.empty(0, np.int64)
        if layout.weights is not None:
            weights = layout.weights.array[:total]
        self._lists = layout.entries.array[:total], weights
        self._make_lists(positions)
        # of which an update of a vertex writes its own row
        number = workload.graph.number_of_vertices
        self.by_vertex = [
            name for name, value in here.items() if name != "volume" and len(value) == number
        ]
        # what a class was updated to, what is known of one before, and what comes of it
        self.staged = {
            name: empty(positions * self.width(name), here[name].dtype) for name in self.by_vertex
        }
        scored = 0 if score_type is None else positions
        self.known, self.outcome = (
            Outcome(
                empty(positions, self._index_type), empty(scored, score_type or np.int64),
                empty(positions, np.int32), empty(positions, np.uint8),
            )
            for _ in range(2)
        )  # fmt: skip

    def width(self, name: str) -> int:
        """Return how many values a vertex has in a field."""
        return int(np.prod(self._fields[name].shape[1:]))

    def begin(self, workload: Workload, fields: dict[str, Any]) -> None:
        """Get ready for a run."""
        self._workload = workload
        self._errors[:] = 0
        for name, value in fields.items():
            if not getattr(value, "ndim", 0):
                self._fields[name] = value

    def end(self) -> None:
        """Let go of the run, whose graph would hold itself by what is kept on it."""
        self._workload = None

    def refresh(self, fields: dict[str, Any]) -> None:
        """Take over labels and all state from the device."""
        for name, value in fields.items():
            if getattr(value, "ndim", 0):
                if isinstance(value, np.ndarray):
                    self._fields[name][...] = value
                else:
                    value.get(out=self._fields[name])

    def note(self, first: int, last: int) -> None:
        """Take what some positions of a class were updated to, as it is staged."""
        vertices = self.layout.vertices[first:last]
        if "volume" in self._fields:
            before, volume = self._fields["labels"], self._fields["volume"]
            hybrid.recount(vertices, self.staged["labels"], before, volume)
        for name in self.by_vertex:
            into, width = self._fields[name].reshape(-1), self.width(name)
            hybrid.put(self._threads, vertices, width, self.staged[name], into)

    def evaluate(
        self, rule: Rule, skips: bool, everybody: bool, left: BothEnds
    ) -> None:
        """Find the winners of units from the rear, for as long as the GPU leaves any."""
        lowest, rear = int(left.units[-1]), int(left.units[0])
        self._fields["sweep"] = np.int64(rule.sweep)
        self._kernel(
            self._threads, left.word, left.units - lowest, self.layout.vertices[lowest:rear],
            self.layout.starts[lowest : rear + 1], *self._lists, tuple(self._fields.values()),
            (skips, rule.revisit_tied), everybody, self._settings(rule), self._tables,
            self._slack, self._tied, self.known, self._winners, self.outcome, self._errors,
        )  # fmt: skip


def bytes_of_share(
    workload: Workload, traits: Traits, fields: dict[str, Any], positions: int
) -> int:
    """Count, from above, the bytes of host memory that a `HostShare` takes."""
    sizes = cpu_arrays.sizes_of(workload, traits)
    layout = cpu_arrays.resident_layout(sizes)
    planned = {
        **cpu_arrays.state_arrays(sizes, layout),
        **cpu_arrays.tables_of(sizes, layout),
        **cpu_arrays.winner_arrays(positions, sizes.index_dtype),
    }
    arrays = [value for value in fields.values() if getattr(value, "ndim", 0)]
    staged = positions * sum(array[:1].nbytes for array in arrays)
    outcomes = 2 * positions * (8 + 8 + 4 + 1)
    return planned_bytes(planned.values()) + sum(a.nbytes for a in arrays) + staged + outcomes
