"""The options of a monitor, checked, and what it is told of accounts at the start."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, NamedTuple

from glp_rapids.common.checks import check_choice, check_integer
from glp_rapids.fraud import clock, decay
from glp_rapids.fraud import seeds as seed_lists
from glp_rapids.fraud.clusters import Limits
from glp_rapids.fraud.journal import as_text
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


def check_weighing(window: SlidingWindow, weight: Any, hubs: Any) -> None:
    """Raise unless it can be said so what edges weigh, and who passes nothing on."""
    if hubs is not None:
        check_integer("hubs", hubs, 1)
    check_choice("weight", weight, ("transfers", "amount"), "'transfers' or 'amount'")
    if weight == "amount" and window._reader.amount is None:
        raise ValueError("weight='amount', but the window has amount=None; leave weight out")


def spans_of(window: SlidingWindow, refresh: Any, half_life: Any) -> tuple[Any, Any]:
    """Read the lengths of time among a monitor's options."""
    unit = window._time_unit
    return span_of(refresh, "refresh", unit), span_of(half_life, "half_life", unit)


def as_saved(rule: Rule, limits: Limits, weight: str, hubs: Any, spans: tuple) -> dict[str, Any]:
    """Return the options of a monitor, checked, as JSON has them."""
    refresh, half_life = map(as_text, spans)
    return {
        "damping": rule.damping, "tol": rule.tol, "weight": weight,
        "hubs": None if hubs is None else int(hubs), "refresh": refresh, "half_life": half_life,
        **asdict(limits),
    }  # fmt: skip


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
