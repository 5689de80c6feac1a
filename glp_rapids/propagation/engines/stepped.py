"""What the host asks of an engine that it leads sweep by sweep or step by step.

A sweep goes class after class, of which ``rule.span`` neighbours may count as one. All groups of a
class are evaluated on the labels as they stand, then the class is updated. What the groups of a
class are depends on the engine: rows that fit a buffer, or rows of a range of degrees.

Every engine has ``start``, ``advance`` and ``failure``. Each chooses how much it does without the
host: many sweeps (the persistent kernel, with an ``advance`` of its own), a sweep (`SweptEngine`),
or a step (`SteppedEngine`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

import numpy as np

from glp_rapids.propagation.schedule import Rule, Schedule


class SweptEngine(ABC):
    """An engine that does one sweep at a time, and lets the host decide what follows."""

    @abstractmethod
    def start(self) -> None:
        """Write the first label of every vertex."""

    @abstractmethod
    def sweep(self, rule: Rule) -> int:
        """Do one sweep; return how many labels it changed."""

    def failure(self) -> int:
        """Return what a function of the program got wrong (see `failures`), or 0."""
        return 0

    def facts(self) -> dict[str, Any]:
        """Return what the report of a run says of this engine besides."""
        return {}

    def pending(self) -> np.ndarray | None:
        """Return the vertices that are not known to be settled, ascending; None: nobody noted."""
        return None

    def advance(self, schedule: Schedule, sweeps: int) -> None:
        """Do up to so many sweeps, and record how many labels each changed."""
        for _ in range(sweeps):
            schedule.record(self.sweep(schedule.rule()))
            if schedule.over or self.failure():
                return


class SteppedEngine(SweptEngine):
    """An engine that does one step of a sweep at a time; it has ``classes`` classes.

    Class ``number`` of a sweep is made of those from ``number * rule.span`` on, ``rule.span`` of
    them or what is left.
    """

    classes: int

    def begin(self, rule: Rule) -> None:
        """Get ready for a sweep."""

    def groups(self, rule: Rule, number: int) -> Iterable[Any]:
        """Return the groups of class ``number`` that are to be evaluated, in any order."""
        return (None,)

    @abstractmethod
    def evaluate(self, rule: Rule, number: int, group: Any) -> None:
        """Find the winners of a group of a class; the labels stay as they are."""

    @abstractmethod
    def update(self, rule: Rule, number: int) -> None:
        """Write the winners of a class into the labels, and mark the readers of changes active."""

    @abstractmethod
    def report(self) -> int:
        """Return how many labels the sweep changed."""

    def sweep(self, rule: Rule) -> int:
        """Do one sweep, step by step; return how many labels it changed."""
        self.begin(rule)
        for number in range(-(-self.classes // rule.span)):
            for group in self.groups(rule, number):
                self.evaluate(rule, number, group)
            self.update(rule, number)
        return self.report()
