"""What a window knows, and how it takes in a batch: either all of it or nothing."""

from __future__ import annotations

from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple

from glp_rapids.common.calls import warn_caller
from glp_rapids.common.scans import number_where, places_where
from glp_rapids.device import to_host
from glp_rapids.frames.kinds import Kind
from glp_rapids.fraud import clock
from glp_rapids.fraud.batches import first_of_each
from glp_rapids.fraud.clock import refuse_leap
from glp_rapids.fraud.decay import growth_of
from glp_rapids.fraud.deliveries import Deliveries
from glp_rapids.fraud.engines import ENGINES, Batch, Engine
from glp_rapids.fraud.pairs import refuse_total

if TYPE_CHECKING:
    from glp_rapids.fraud.window import SlidingWindow

Array = Any

Time = int | float
# rows of a window, at the least and for each that came, from which on it is told if most leave
MANY, FEW = 1000, 10
ROUNDS = 8  # in which rows make others of their batch late, before all are looked at in one pass


class Change(NamedTuple):
    """What an `append` did, in rows: joined the window, left it, came too late, came again."""

    added: int
    expired: int
    late: int
    duplicates: int


class State(NamedTuple):
    """All of a window that changes; replaced as a whole, so nothing sees half of a change."""

    engine: Engine | None = None
    newest: Time | None = None
    kind: Kind | None = None
    times: str | None = None
    deliveries: Deliveries = Deliveries()


def after_batch(
    window: SlidingWindow, batch: Batch, kind: Kind, time_kind: str
) -> tuple[State, Change]:
    """Return the state of a window that has taken in a batch, and what that changed."""
    state = window._state._replace(kind=kind, times=time_kind)
    engine = state.engine
    if engine is None:  # cuDF's ids are only where all is arrays
        decay = window._decay_of(time_kind)
        engine = ENGINES[window.device if kind == "pandas" else "gpu"]()(window.directed, decay)
    came, held, place = len(batch), len(engine), None  # of the rows that are left, in the frame
    if batch.ids is not None and len(engine):
        place = places_where(~engine.known(batch, window._start(state))[batch.index])
        batch = batch.chosen(place)
    again = came - len(batch)
    if not len(batch):
        return window._state, Change(0, 0, 0, again)
    counted, before, newest, there = batch, state.newest, state.newest, place
    start = None if before is None else window._start(state)
    repeats = batch.ids is not None and came > len(batch.ids)
    shown = partial(clock.shown, kind=time_kind)
    label = window._reader.time_label
    for rounds in count():
        if repeats:  # the time of a duplicate does not count
            first = _first_of_ids(batch, start)
            counted, there = batch.chosen(first), first if place is None else place[first]
        if len(counted):
            last = counted.rows.time.max().item()
            newest = last if newest is None else max(newest, last)
        state = state._replace(newest=newest)
        start = window._start(state)
        refuse_leap(counted.rows.time, start, newest, before, len(engine), label, shown, there)
        inside = counted.rows.time > start
        if not repeats or number_where(inside) == len(counted):
            break  # else one that is too late by others of its batch may have come before its id
        if rounds == ROUNDS:
            state = state._replace(newest=_settled(batch, newest, window, state))
            newest, start = state.newest, window._start(state)
    moved, late = newest != before, len(batch) - number_where(batch.rows.time > start)
    fresh = counted.chosen(places_where(inside))
    new, expired, units = engine.advanced(fresh, start, newest - start)
    total = engine.total() - units + float(fresh.rows.units.astype("float64").sum())
    refuse_total(total, window._scale, growth_of(new.decay))
    deliveries = state.deliveries.after(
        batch.rows, len(batch.vertices), len(fresh), len(new),
        # who has ids of its own is told apart by them
        lambda: batch.ids is None and engine.holds(fresh),
        start, newest - start, moved, f"{shown(newest)} in {label}",
    )  # fmt: skip
    if window._reader.lead is None and 2 * expired > held >= max(MANY, FEW * came + 1):
        warn_caller(
            f"{expired:,} of the {held:,} rows in the window leave it, as one of {came:,} "
            f"that came is dated {shown(newest)}; if that clock is wrong they cannot come back: "
            "SlidingWindow(max_lead=...) refuses what is too far ahead"
        )
    state = state._replace(engine=new, deliveries=deliveries)
    return state, Change(len(fresh), expired, late, came - late - len(fresh))


def _settled(batch: Batch, newest: Time, window: SlidingWindow, state: State) -> Time:
    """Return the latest time once no row that is first of its id is late, in one pass.

    A row is first as soon as all of its id above it are late: in the order of that, each may move
    the window, which makes others late.
    """
    latest: dict[int, Time] = {}
    waiting = []
    for code, time in zip(to_host(batch.index).tolist(), to_host(batch.rows.time).tolist(),
                          strict=True):  # fmt: skip
        above = latest.get(code)
        if above is not None and above < time:
            waiting.append((above, time))
        latest[code] = time if above is None else max(above, time)
    start = window._start(state._replace(newest=newest))
    for above, time in sorted(waiting):
        if above > start:
            break
        if time > newest:
            newest = time
            start = window._start(state._replace(newest=newest))
    return newest


def _first_of_ids(batch: Batch, start: int | float | None) -> Array:
    """Find the rows that came first of those with their id, and after ``start``."""
    if start is None:
        return first_of_each(batch)
    there = places_where(batch.rows.time > start)
    return there[first_of_each(batch.chosen(there))]
