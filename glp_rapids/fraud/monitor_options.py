"""The options of a monitor, checked, and what it is told of accounts at the start."""

from __future__ import annotations

from typing import Any, NamedTuple

from glp_rapids.fraud import clock, decay
from glp_rapids.fraud import seeds as seed_lists
from glp_rapids.fraud.clusters import Limits
from glp_rapids.fraud.monitor_state import State
from glp_rapids.fraud.scores import Rule
from glp_rapids.fraud.window import SlidingWindow


class Settings(NamedTuple):
    """The options of a monitor, checked.

    ``weight``: which graph of its window it looks at.
    """

    rule: Rule
    limits: Limits
    refresh: Any
    weight: str
    hubs: int | None


def span_of(length: Any, name: str, time_unit: str) -> Any:
    """Read a length of time, a number in a window's unit; None: there is none."""
    if length is None:
        return None
    span = clock.span(length, name)
    if not 1 <= clock.length_of(span, clock.DATES, time_unit) <= decay.LONGEST:
        raise ValueError(
            f"{name} must be above 0, a microsecond at the least, and below 140 years; None: never"
        )
    return span


def lists_of(window: SlidingWindow, seeds: Any, good: Any, merchants: Any) -> State:
    """Read what is known of accounts, and refuse ids of other types than the window's."""
    columns = window._reader.number_of_id_columns
    black = seed_lists.together({}, seed_lists.read_kinds(seeds, columns, "seeds"))
    honest, sellers = (
        None if ids is None else seed_lists.read(ids, columns, name)
        for name, ids in (("good", good), ("merchants", merchants))
    )
    seed_lists.refuse_common(black, honest)
    if len(window):
        graph = window.graph()
        for ids in black.values():
            seed_lists.index_of(ids, graph, "seeds")
        seed_lists.index_of(honest, graph, "good")
        seed_lists.index_of(sellers, graph, "merchants")
    return State(seeds=black, good=honest, merchants=sellers)
