"""The host's part of a hybrid run: labels and state once more, and the sweep on rows of a class.

Rows are read where the layout of the strips has them, in the order of the GPU's plan. Labels and
state of the vertices that a class updates come from the GPU, so nothing is computed twice.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from glp_rapids.jit.target import cpu_target
from glp_rapids.outofcore import pinned
from glp_rapids.propagation.compile_program import compile_program
from glp_rapids.propagation.engines import cpu_arrays
from glp_rapids.propagation.engines.cpu import CpuArrays
from glp_rapids.propagation.engines.strips import Layout
from glp_rapids.propagation.kernels.cpu import hash_votes, hybrid
from glp_rapids.propagation.schedule import Rule
from glp_rapids.propagation.workload import Workload

EVALUATE = hash_votes.ONE_AFTER_ANOTHER[0]


class HostShare(CpuArrays):
    """What evaluates positions of a layout on the host.

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
    score_type : numpy.dtype or None
        Of scores that the GPU's update asks for; None: it asks for none.
    device : {"cpu", "gpu"}
        That reads the outcome: "cpu" pins nothing.
    """

    def __init__(
        self, workload: Workload, fields: dict[str, Any], layout: Layout, positions: int,
        score_type: Any, device: str = "gpu",
    ):  # fmt: skip
        compiled = compile_program(workload.program, cpu_target(), fields, workload.rows.weights)
        sizes = cpu_arrays.sizes_of(workload, compiled.traits)
        super().__init__(workload, compiled, fields, sizes, cpu_arrays.resident_layout(sizes))
        self._layout = layout
        total = layout.number_of_entries
        self._entries = layout.entries.array[:total]
        self._weights = np.empty(0, np.int64)
        if layout.weights is not None:
            self._weights = layout.weights.array[:total]
        self._make_lists(positions)
        scored = 0 if score_type is None else positions
        # what comes of a position, in pinned memory: the place of `lowest` is the first
        self.outcome = {
            "winner": pinned.empty(positions, self._index_type, device).array,
            "winner_score": pinned.empty(scored, score_type or np.int64, device).array[:scored],
            "slack": pinned.empty(positions, np.int32, device).array,
            "tied": pinned.empty(positions, np.uint8, device).array,
        }

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

    def begin(
        self, first: int, last: int, slack: np.ndarray | None, tied: np.ndarray | None
    ) -> None:
        """Take who is active among some positions; None: all are."""
        vertices = self._layout.vertices[first:last]
        if slack is None:
            self._slack[vertices] = -1
            return
        hybrid.put(self._threads, vertices, slack, self._slack)
        hybrid.put(self._threads, vertices, tied, self._tied)

    def evaluate(self, rule: Rule, skips: bool, lowest: int, first: int, last: int) -> None:
        """Find the winners of some positions; the outcome lies as far behind as ``lowest`` is."""
        self._fields["sweep"] = np.int64(rule.sweep)
        vertices = self._layout.vertices[first:last]
        starts = self._layout.starts[first : last + 1]
        winners = tuple(array[: vertices.size] for array in self._winners)
        self._kernel(
            self._threads, EVALUATE, np.array([0, vertices.size]), vertices, starts,
            self._entries, self._weights, starts, self._entries, tuple(self._fields.values()),
            (skips, rule.revisit_tied), self._settings(rule), self._tables, self._slack,
            self._tied, winners, self._old, self._counts, self._errors,
        )  # fmt: skip
        place = slice(first - lowest, last - lowest)
        hybrid.spread(
            self._threads, hash_votes.CHUNK, vertices, self._counts, winners, self._slack,
            self._tied, *(self.outcome[name][place] for name in ("winner", "winner_score", "slack",
                                                                 "tied")),
        )  # fmt: skip
