"""The course of a run: which rule the next sweep follows, and when exploring and settling end.

The two decisions are plain scalar functions over the changes sweep by sweep, so that an engine on
a GPU can take them where the labels are, without asking the host.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from glp_rapids.propagation import ties

if TYPE_CHECKING:
    from glp_rapids.propagation.options import Options

PATIENCE = 3  # settling sweeps without a new low of changes: the rest swaps labels for ever


def floods(changed, sweeps):
    """Tell whether changes hardly get fewer: one label overruns the others, or nothing is won.

    By less than one in 25, which bench quality shows to come before a collapse.
    """
    return sweeps > 1 and 25 * changed[sweeps - 1] > 24 * changed[sweeps - 2]


def settles(changed, explored, sweeps, few, patience):
    """Tell whether settling is over: few changes, or no fewer than before (patience 0: never)."""
    if changed[sweeps - 1] <= few:
        return True
    if patience == 0 or sweeps - explored <= patience:
        return False
    before = changed[explored]
    for sweep in range(explored + 1, sweeps - patience):
        before = min(before, changed[sweep])
    since = changed[sweeps - 1]
    for sweep in range(sweeps - patience, sweeps):
        since = min(since, changed[sweep])
    return since >= before


@dataclass(frozen=True)
class Rule:
    """What one sweep needs to know besides the graph and the state."""

    sweep: int
    retain: bool
    tie_break: int
    tie_seed: int
    revisit_tied: bool


@dataclass
class Course:
    """How far a run has come."""

    options: Options
    number_of_vertices: int
    changed: list[int] = field(default_factory=list)
    explored: int | None = None  # how many sweeps explored; None while they do
    settled: bool = False

    def __post_init__(self) -> None:
        if self.options.explore == 0:
            self.explored = 0
        self.settled = self.number_of_vertices == 0

    @property
    def few(self) -> int:
        """As many changes in a settling sweep end the run."""
        return int(self.options.tol * self.number_of_vertices)

    @property
    def patience(self) -> int:
        """Settling sweeps without a new low that end the run; 0: none do."""
        return PATIENCE if self.options.tol > 0 else 0

    @property
    def over(self) -> bool:
        """Whether no sweep is left to do."""
        return len(self.changed) >= self.options.max_iter or (
            self.settled and (self.options.stops or self.number_of_vertices == 0)
        )

    def rule(self) -> Rule:
        """Give the rule of the next sweep."""
        sweep, options = len(self.changed) + 1, self.options
        if self.explored is None:
            return Rule(
                sweep=sweep,
                retain=False,
                tie_break=ties.TIE_HASH,
                tie_seed=int(options.seed) + (sweep << 32),
                revisit_tied=True,
            )
        return Rule(
            sweep=sweep,
            retain=bool(options.retain),
            tie_break=ties.TIE_BREAKS[options.tie_break],
            tie_seed=int(options.seed),
            # Without retention the order of ties is another one from the first settling sweep on.
            revisit_tied=sweep == self.explored + 1 and not options.retain,
        )

    def record(self, changed: int) -> None:
        """Take down how many labels a sweep changed, and what follows from it."""
        self.changed.append(changed)
        sweeps = len(self.changed)
        if self.explored is None:
            if sweeps == self.options.explore or (
                self.options.stops and floods(self.changed, sweeps)
            ):
                self.explored = sweeps
        else:
            self.settled = settles(self.changed, self.explored, sweeps, self.few, self.patience)


class SweepBySweep:
    """An engine that does one sweep at a time, and lets the host decide what follows."""

    sweep: Callable[[Rule], int]
    failure: Callable[[], int]

    def advance(self, course: Course, sweeps: int) -> None:
        """Do up to so many sweeps."""
        for _ in range(sweeps):
            course.record(self.sweep(course.rule()))
            if course.over or self.failure():
                return
