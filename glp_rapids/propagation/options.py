"""How a run goes: its keywords, checked once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from glp_rapids.common.checks import (
    check_choice,
    check_integer,
    check_progress,
    check_share,
    check_truth,
    is_number,
    shown,
)
from glp_rapids.ingest.options import EdgeOptions
from glp_rapids.propagation.ties import TIE_BREAKS


class SweepOptions(EdgeOptions, total=False):
    """The keywords of `label_propagation` that say how a run goes; every variant takes them."""

    max_iter: int
    classes: int
    explore: int
    tol: float
    update: Literal["semi", "sync"]
    tie_break: Literal["min", "max", "hash"]
    retain: bool
    direction: Literal["in", "out", "both"]
    seed: int
    skip_inactive: bool
    strategy: Literal["auto", "shared+warp", "shared", "global", "sort", "decode"]
    progress: bool | Callable[[dict], None]


UPDATES = ("semi", "sync")
DIRECTIONS = ("in", "out", "both")
STRATEGIES = ("auto", "shared+warp", "shared", "global", "sort")

# The defaults of the loop, chosen by `glp-rapids bench parameters` (table in README.md).
CLASSES, EXPLORE, TOLERANCE, MAX_ITER = 32, 10, 1e-3, 100


@dataclass(frozen=True)
class Options:
    """How a run goes, checked on construction."""

    update: Literal["semi", "sync"] = "semi"
    classes: int = CLASSES
    explore: int = EXPLORE
    tie_break: Literal["min", "max", "hash"] = "min"
    retain: bool = True
    direction: Literal["in", "out", "both"] = "in"
    max_iter: int = MAX_ITER
    tol: float | None = None
    seed: int = 0
    skip_inactive: bool = True
    strategy: Literal["auto", "shared+warp", "shared", "global", "sort", "decode"] = "auto"
    progress: bool | Callable[[dict], None] = False
    stops: bool = True  # by its own criterion, before max_iter

    def __post_init__(self) -> None:
        check_choice("update", self.update, UPDATES)
        check_choice("tie_break", self.tie_break, TIE_BREAKS)
        check_choice("direction", self.direction, DIRECTIONS)
        check_choice("strategy", self.strategy, (*STRATEGIES, "decode"))
        check_integer("classes", self.classes, 1, most=65536)
        check_integer("explore", self.explore, 0)
        check_integer("max_iter", self.max_iter, 0, most=(1 << 31) - 1)
        check_integer("seed", self.seed, 0, most=(1 << 32) - 1)
        check_truth(retain=self.retain, skip_inactive=self.skip_inactive)
        if self.tol is None:
            object.__setattr__(self, "tol", TOLERANCE if self.retain else 0.0)
        if not is_number(self.tol):
            raise TypeError(f"tol must be a number or None, not {shown(self.tol)}")
        check_share("tol", self.tol, "a share of the vertices in [0, 1]")
        check_progress(self.progress)
