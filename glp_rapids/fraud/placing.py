"""Where calls of scores and clusters work: where the graph is, or, lacking memory, on the host."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, NamedTuple, TypeVar

from glp_rapids.common.checks import check_progress, refuse_unknown
from glp_rapids.common.progress import Progress, Report, reporting
from glp_rapids.fraud.window import SlidingWindow
from glp_rapids.graph.call_memory import check_call
from glp_rapids.graph.graph import BaseGraph, Graph
from glp_rapids.ingest.options import ByDefault, EdgeOptions
from glp_rapids.ingest.within import Placed, graph_within, moved_within, unless_memory_lacks

Result = TypeVar("Result")


class Transfers(NamedTuple):
    """The graph of transfers and, of a window, that of amounts; and the limit that holds there.

    ``scale``: of so many units amounts are whole numbers; None: they are what they are.
    ``function``: whose call it is, named in `call_memory.TAKEN`. ``limit`` is in bytes, None: what
    is free; ``more``: bytes of each vertex that the call takes besides.
    """

    graph: Graph
    amounts: Graph | None
    function: str | None = None
    limit: int | None = None
    more: int = 0
    scale: int | None = None

    def on_host(self) -> Transfers:
        """Return the same in host memory, of which a limit that was meant for a GPU says nothing.

        Raises
        ------
        LackOfMemory
            The call takes more than is free there.
        """
        amounts = None if self.amounts is None else self.amounts.to("cpu")
        moved = self._replace(graph=self.graph.to("cpu"), amounts=amounts, limit=None)
        if self.function is not None:
            check_call(self.function, moved.graph, None, self.more)
        return moved


def prepared(
    graph: Any, edges: dict[str, Any], function: str | None = None, limit: int | None = None,
    more: int = 0, tell: Report | None = None, whole: bool = False,
) -> Transfers:  # fmt: skip
    """Return the graphs of a call where it fits a limit; see `Transfers`.

    ``whole``: the amounts of a window are to be whole numbers.

    Raises
    ------
    LackOfMemory
        It is to be done on a CPU, and takes more than the limit, or than is free.
    """
    amounts = scale = None
    if isinstance(graph, SlidingWindow):
        if edges:
            refuse_unknown(edges, EdgeOptions.__annotations__)
            name = next(iter(edges))
            mend = "; pass window.graph('amount') for amounts" if name == "weight" else ""
            raise TypeError(f"a SlidingWindow takes no {name}=: it has its own{mend}")
        placed = Placed(graph.graph("transfers"), limit)
        if function is not None and placed.graph.device == "gpu":
            placed = moved_within(function, placed.graph, limit, more)
        scale = graph._scale if whole else None
        amounts = graph._graph("units" if whole else "amount").to(placed.graph.device)
    else:
        if not isinstance(graph, BaseGraph) and edges.get("weight") is None:
            edges = {"multigraph": ByDefault("keep"), **edges}
        placed = graph_within(function, graph, edges, limit, more, tell or False)
    if placed.graph.directed:
        raise ValueError("the graph is directed; clusters and scores need directed=False")
    if function is not None and placed.graph.device == "cpu":
        check_call(function, placed.graph, placed.limit, more)
    return Transfers(placed.graph.to_graph(), amounts, function, placed.limit, more, scale)


def where_it_fits(transfers: Transfers, work: Callable[[Transfers], Result]) -> Result:
    """Do work where the graphs are or, if a GPU there has too little memory, on the host."""
    if transfers.graph.device == "gpu":
        found = unless_memory_lacks(partial(work, transfers))
        return work(transfers.on_host()) if found is None else found
    return work(transfers)


def telling(progress: Progress, function: str) -> AbstractContextManager[Report | None]:
    """Pass on how far a call has come, that it reads the graph included; see `reporting`."""
    check_progress(progress)
    bar = {"desc": function, "bar_format": "{desc}{postfix} {elapsed}"}
    return reporting(progress, _show, **bar)


def told_of(tell: Report | None, **of: Any) -> Report | None:
    """Add to what is reported what it is of, such as a fold."""
    return None if tell is None else lambda facts: tell({**facts, **of})


def _show(bar: Any, facts: dict[str, Any]) -> None:
    of = "".join(f", {name} {facts[name]}" for name in ("tick", "kind", "fold") if name in facts)
    if "error" in facts:
        text = f"round {facts['round']:,}, within {facts['error']:.1e}"
    elif "run" in facts:
        text = f"run {facts['run']} of {facts['of']}"
    else:
        text = f"{facts['rows']:,} rows"
    bar.set_postfix_str(f"{facts['step']}{of}: {text}")
