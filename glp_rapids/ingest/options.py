"""The keywords that many public functions share, written down once for type checkers."""

from __future__ import annotations

from typing import Any, Literal, TypedDict

ColumnNames = str | list[str] | tuple[str, ...]


class ByDefault(str):
    """A choice of the function called, not of its caller: it may be one that does not apply."""

    __slots__ = ()


class EdgeOptions(TypedDict, total=False):
    """The keywords of `as_graph` that say how to read a graph; every public function takes them."""

    source: ColumnNames | None
    destination: ColumnNames | None
    weight: str | None
    directed: bool
    vertices: Any
    multigraph: Literal["merge", "keep", "min"]
    device: Literal["cpu", "gpu"] | None
