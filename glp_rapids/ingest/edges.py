"""What every reader of a graph gives: `Edges`, columns of ids or positions, not yet checked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from glp_rapids.frames.kinds import Column, Kind


@dataclass
class Options:
    """The edge options of `as_graph`, as given."""

    source: Any
    destination: Any
    weight: Any
    directed: bool
    vertices: Any

    @property
    def ends(self) -> list[list[Any]]:
        """What the columns of either end are called, where the caller says it of several."""
        given = self.source, self.destination
        return [list(names) for names in given if isinstance(names, list | tuple)]


@dataclass
class Edges:
    """Edges as columns of ids, or as positions in the columns ``vertices``."""

    source: list[Column]
    destination: list[Column]
    weight: Column | None
    directed: bool
    kind: Kind
    vertices: list[Column] | None = None
    positional: bool = False
    # `vertices` holds every id that the edges hold
    complete: bool = False
    # both directions of every undirected edge are there already
    symmetric: bool = False
    # symmetric if it looks so, as an adjacency matrix does
    maybe_symmetric: bool = False
    # what comes several times are parts of one edge, whatever becomes of duplicates
    adds_up: bool = False
    source_labels: tuple[str, ...] = ("source",)
    destination_labels: tuple[str, ...] = ("destination",)
    weight_label: str = "weight"
    # says where a weight stands, if not in a row
    weight_place: Callable[[int], str] | None = None
    vertices_labels: tuple[str, ...] = ()
    # what to do where ids cannot be vertices, if it is not to cast a column
    mend: str | None = None

    @property
    def size(self) -> int:
        """How many there are."""
        return len(self.source[0])


def refuse(options: Options, what: str, argument: str, reason: str) -> None:
    """Raise if an option is given that has no meaning for such a graph."""
    if getattr(options, argument) is not None:
        raise ValueError(f"{argument}= does not apply to {what}: {reason}; leave it out")


def refuse_ends(options: Options, what: str) -> None:
    """Raise if columns are named of what has none."""
    for argument in ("source", "destination"):
        refuse(options, what, argument, "it has no columns")


def refuse_to_merge(graph: Any) -> None:
    """Raise since a graph that is built has no duplicates of which something could become."""
    raise ValueError(
        f"multigraph= does not apply to a glp_rapids.{type(graph).__name__}, in which every edge "
        "is there once; tell as_graph when it is made"
    )


def refuse_direction(directed: bool, options: Options) -> None:
    """Raise if ``directed=True`` is asked of a graph that knows itself to be undirected."""
    if options.directed and not directed:
        raise ValueError("directed=True, but the graph given is undirected; leave directed= out")
