"""The keywords that many public functions share, written down once for type checkers."""

from __future__ import annotations

from typing import Any, Literal, TypedDict

ColumnNames = str | list[str] | tuple[str, ...]


class ByDefault(str):
    """A choice of the function called, not of its caller: it may be one that does not apply."""

    __slots__ = ()


class _Reading(TypedDict, total=False):
    directed: bool
    multigraph: Literal["merge", "keep", "min"]
    device: Literal["cpu", "gpu"] | None


class EdgeOptions(_Reading, total=False):
    """The keywords of `as_graph` that say how to read a graph; every public function takes them."""

    source: ColumnNames | None
    destination: ColumnNames | None
    weight: str | None
    vertices: Any


class EgoEdgeOptions(_Reading, total=False):
    """Those of `ego_networks`, whose ``vertices`` are others."""

    source: ColumnNames | None
    destination: ColumnNames | None
    weight: str | None


class PathEdgeOptions(_Reading, total=False):
    """Those of `sssp`, which begins at a ``source``, and names ``weight`` itself."""

    destination: ColumnNames | None
    vertices: Any
