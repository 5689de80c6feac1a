"""One run, as every engine gets it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from glp_rapids.propagation.schedule import Schedule

if TYPE_CHECKING:
    from glp_rapids.graph.graph import BaseGraph
    from glp_rapids.graph.rows import Rows


@dataclass(frozen=True)
class Workload:
    """One run, as every engine gets it: whose labels a row reads, who reads a row, the votes.

    ``rows`` and ``readers`` are both a `CSR` or both a `CompressedCSR`, as the engine was chosen.
    ``once``: a row ascends and holds a neighbour once, whose vote is for its label. ``distinct``:
    the first class of the first sweep hears every label once. In ``kept``, which stays on the
    graph, an engine may leave what the next run on the same rows can use.
    """

    graph: BaseGraph
    rows: Rows
    readers: Rows
    classes: int
    skip: bool
    scale: float
    largest_amount: float
    largest_degree: int
    once: bool
    distinct: bool
    kept: dict[tuple, Any]


class Engine(Protocol):
    """What a device supplies: the same calls, the same results."""

    def start(self) -> None:
        """Let every vertex say its first label."""

    def advance(self, schedule: Schedule, sweeps: int) -> None:
        """Do up to so many sweeps, and record in ``schedule`` how many labels each changed."""

    def failure(self) -> int:
        """Return what a function of the program got wrong (see `failures`), or 0."""
