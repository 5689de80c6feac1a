"""Where a call goes on a graph under a limit of memory: to the device asked for, or to the host."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from glp_rapids.common.reused_memory import give_back
from glp_rapids.device import choose, lacks_memory
from glp_rapids.graph.call_memory import taken_by
from glp_rapids.graph.graph import BaseGraph
from glp_rapids.ingest.read import as_any_graph

if TYPE_CHECKING:
    from glp_rapids.common.progress import Progress

Result = TypeVar("Result")


class Placed(NamedTuple):
    """A graph where a call goes on, and the limit that holds there; None: what is free."""

    graph: BaseGraph
    limit: int | None


def graph_within(
    function: str, graph: Any, edges: dict[str, Any], limit: int | None, more: int = 0,
    progress: Progress = False,
) -> Placed:  # fmt: skip
    """Read a graph to the device asked for, or to the host if a limit is too low for a GPU.

    Results are the same there. A limit that was meant for a GPU says nothing about the host.

    Parameters
    ----------
    function
        Named in `call_memory.TAKEN`.
    graph, edges, progress
        As of `as_graph`; a compressed graph stays so.
    limit
        Bytes, the graph included; None: there is none.
    more
        Bytes of each vertex that the call takes besides.
    """
    if limit is None or choose(edges.get("device")) == "cpu":
        return Placed(as_any_graph(graph, progress=progress, **edges), limit)
    if not (isinstance(graph, BaseGraph) and graph.device == "gpu"):
        edges = {**edges, "device": "cpu"}  # from where it is moved if it fits
    return moved_within(function, as_any_graph(graph, progress=progress, **edges), limit, more)


def moved_within(function: str, graph: BaseGraph, limit: int | None, more: int = 0) -> Placed:
    """Return a graph on a GPU if a call there fits a limit, else in host memory."""
    if limit is None or taken_by(function, graph, "gpu", more) <= limit:
        return Placed(graph.to("gpu"), limit)
    return Placed(graph.to("cpu"), None)


def unless_memory_lacks(work: Callable[[], Result]) -> Result | None:
    """Do what a GPU may have too little memory for: return None then, and all it made is gone."""
    try:
        return work()
    except Exception as error:
        if not lacks_memory(error):
            raise
    give_back(at_work=True)  # so that a result from the host finds room
    return None
