"""The keywords that many public functions share, written down once for type checkers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypedDict

ColumnNames = str | list[str] | tuple[str, ...]


class EdgeOptions(TypedDict, total=False):
    """The keywords of `as_graph` that say how to read a graph; every public function takes them."""

    source: ColumnNames
    destination: ColumnNames
    weight: str | None
    directed: bool
    vertices: Any
    multigraph: Literal["merge", "keep"]
    device: Literal["cpu", "gpu"] | None


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
