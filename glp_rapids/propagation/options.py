"""How a run goes: its keywords, checked once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from glp_rapids.common.checks import (
    check_choice,
    check_integer,
    check_progress,
    check_share,
    check_truth,
    is_number,
    shown,
)
from glp_rapids.common.sizes import as_bytes
from glp_rapids.device import DeviceName, memory_total
from glp_rapids.ingest.options import EdgeOptions
from glp_rapids.multigpu.devices import devices_of, kind_of

Update = Literal["semi", "sync"]
TieBreak = Literal["min", "max", "hash"]
Direction = Literal["in", "out", "both"]
# "auto" everywhere; the baselines for plain graphs on a GPU; "decode" for compressed ones there.
Strategy = Literal["auto", "shared+warp", "shared", "global", "sort", "decode"]
# How a run holds the neighbour lists, see `ways`; "auto": the fastest that fits.
WayName = Literal["auto", "plain", "packed", "streamed packed", "streamed plain", "hybrid"]


class SweepOptions(EdgeOptions, total=False):
    """The keywords of `label_propagation` that say how a run goes; every variant takes them."""

    max_iter: int
    classes: int
    explore: int
    tol: float
    update: Update
    tie_break: TieBreak
    retain: bool
    direction: Direction
    seed: int
    skip_inactive: bool
    strategy: Strategy
    memory_limit: int | str | None
    way: WayName
    devices: Sequence[int | str] | None
    progress: bool | Callable[[dict], None]


# The defaults of the loop, chosen by `glp-rapids bench parameters` (table in README.md).
CLASSES, EXPLORE, TOLERANCE, MAX_ITER = 32, 10, 1e-3, 100


@dataclass(frozen=True)
class Options:
    """How a run goes, checked on construction."""

    update: Update = "semi"
    classes: int = CLASSES
    explore: int = EXPLORE
    tie_break: TieBreak = "min"
    retain: bool = True
    direction: Direction = "in"
    max_iter: int = MAX_ITER
    tol: float | None = None
    seed: int = 0
    skip_inactive: bool = True
    strategy: Strategy = "auto"
    memory_limit: int | None = None  # bytes; a text such as "40GB" becomes those
    way: WayName = "auto"
    devices: Sequence[int | str] | None = None  # each holds a part of the graph; None: one has all
    progress: bool | Callable[[dict], None] = False
    stops: bool = True  # by its own criterion, before max_iter
    warns: bool = True  # of weights; False: an earlier run of the same call did
    merges: bool = True  # neighbouring classes once little changes
    streams_to: DeviceName | None = None  # where a graph in host memory is run; None: where it is

    def __post_init__(self) -> None:
        check_choice("update", self.update, get_args(Update))
        check_choice("tie_break", self.tie_break, get_args(TieBreak))
        check_choice("direction", self.direction, get_args(Direction))
        check_choice("strategy", self.strategy, get_args(Strategy))
        check_choice("way", self.way, get_args(WayName))
        object.__setattr__(self, "memory_limit", as_bytes("memory_limit", self.memory_limit))
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
        object.__setattr__(self, "devices", devices_of(self.devices))
        if self.devices is not None:
            self._check_devices()

    def _check_devices(self) -> None:
        """Raise if an option is not for runs on several devices."""
        if self.strategy != "auto":
            raise ValueError(
                f"strategy={self.strategy!r} is for a run on one device; leave it out, or devices="
            )
        if self.memory_limit is not None and kind_of(self.devices) == "cpu":
            raise ValueError(
                f"memory_limit={self.memory_limit!r} is what each GPU of devices= may take, and "
                "ranks on the host share its memory; leave it out, or devices="
            )
        ways = ("auto", "plain")
        if kind_of(self.devices) == "gpu":
            ways += ("streamed plain", "streamed packed")
        if self.way not in ways:
            raise ValueError(
                f"way must be {' or '.join(map(repr, ways))} with devices=, not {self.way!r}"
            )

    def check_limit(self, device: DeviceName) -> None:
        """Raise if the limit is more than the device has."""
        if self.memory_limit is not None and self.memory_limit > (most := memory_total(device)):
            raise ValueError(
                f"memory_limit must be at most the {most:,} bytes that the {device} has, not "
                f"{self.memory_limit:,}; None stands for what is free"
            )
