"""What a tick of a monitor does: from the state before it and what it is given, the next."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd

from glp_rapids.common.calls import warn_caller
from glp_rapids.common.progress import Report
from glp_rapids.device import module_on, to_device
from glp_rapids.frames.facts import set_attributes
from glp_rapids.frames.kinds import Frame
from glp_rapids.fraud import clock, parts
from glp_rapids.fraud import seeds as seed_lists
from glp_rapids.fraud.clusters import grouped
from glp_rapids.fraud.monitor_frames import (
    Suspects,
    Tick,
    alerts_frame,
    changes_frame,
    empty_frames,
    suspects_of,
)
from glp_rapids.fraud.monitor_options import Settings
from glp_rapids.fraud.monitor_state import Delivery, Laps, State, index_since, named, score_changes
from glp_rapids.fraud.names import carried
from glp_rapids.fraud.scores import Rule
from glp_rapids.fraud.window import Change, SlidingWindow
from glp_rapids.graph.graph import Graph

Array = Any


def next_state(
    window: SlidingWindow, settings: Settings, state: State, delivery: Delivery,
    tell: Report | None = None,
) -> tuple[State, Tick]:  # fmt: skip
    """Let the window take in what came, and find what becomes of scores and clusters."""
    laps = Laps()
    seeds = seed_lists.together(seed_lists.without(state.seeds, delivery.drop), delivery.add)
    seed_lists.refuse_common(seeds, state.good)
    merchants = seed_lists.joined(
        state.merchants, delivery.merchants, "merchants", "add_merchants"
    )
    before, first = state.scores, not state.tick
    state = state._replace(tick=state.tick + 1, seeds=seeds, merchants=merchants)
    change = Change(0, 0, 0, 0)
    if delivery.batch is not None:
        change = window._take(*delivery[:3])
    laps.lap("window")
    if tell is not None:
        tell({"step": "window", "rows": len(window)})
    facts = {"tick": state.tick, "device": window.device, **change._asdict()}
    if not len(window):
        return _emptied(window, state, change, facts, laps)
    graph, units = window._graph(settings.weight), window._graph("units")
    laps.lap("graph")
    state, place = _scored(window, settings, state, graph, tell)
    _warn_without_seeds(before, state, first)
    laps.lap("scores")
    score, is_seed = state.scores.scores, state.scores.is_seed
    sellers = None
    if merchants is not None:
        sellers = module_on(graph.device).zeros(score.size, dtype=bool)
        sellers[seed_lists.index_of(merchants, graph, "merchants")] = True
    found = grouped(graph, units, score, is_seed, settings.limits, sellers, window._scale, tell)
    laps.lap("clusters")
    facts |= state.scores.facts()
    state, ids, alerts = named(state, graph, found)
    changed, previous = score_changes(before, place, state.scores, settings.rule.tol)
    if sellers is not None:
        changed &= ~sellers
    changes = changes_frame(graph, state, changed, previous)
    suspects = suspects_of(graph, ids, found, state)
    return state, _tick(window, state, change, alerts, changes, suspects, facts, laps)


def _warn_without_seeds(before: parts.Parts | None, state: State, first: bool) -> None:
    if state.scores.seeds_inside:
        return
    if not state.seeds and first:
        warn_caller("there are no seeds: every score is 0; name some by add_seeds")
    elif before is not None and before.seeds_inside:
        number = sum(map(len, state.seeds.values()))
        why = f"none of {number} seeds is in the window any more" if number else "no seed is left"
        warn_caller(f"{why}: every score is 0")


def _scored(
    window: SlidingWindow, settings: Settings, state: State, graph: Graph, tell: Report | None
) -> tuple[State, Array | None]:
    """Score the accounts of the window, from their last scores; tell their former indices."""
    engine, held = window._state.engine, window._state
    fixed = parts.fixed_by_kind(state.seeds, state.good, graph, settings.hubs)
    period, epoch, old, place = state.period, epoch_of(window), state.scores, None
    touched = engine.changed_since(state.mark)
    now = graph.vertices, engine.places()
    if old is not None:
        place = index_since((state.vertices, state.places), now, touched)
    if settings.refresh is not None:
        length = clock.length_of(settings.refresh, held.times, window._time_unit)
        period = math.floor(held.newest / length)
    if old is None or period != state.period or old.names != tuple(fixed):
        scores = parts.solved_parts(graph, fixed, settings.rule, tell=tell)
    elif epoch != state.epoch:  # every weight is another
        scores = parts.solved_parts(graph, fixed, settings.rule, old, place, tell)
    else:
        scores = parts.followed(old, graph, fixed, settings.rule, place, touched, tell)
    vertices, places = now
    state = state._replace(
        scores=scores, vertices=vertices, places=places, mark=window.mark(), period=period,
        epoch=epoch,
    )  # fmt: skip
    return state, place


def epoch_of(window: SlidingWindow) -> int:
    """Return the number of the origin that ages in the window are counted from."""
    decay = window._state.engine.decay
    return 0 if decay is None else decay.epoch(window._state.newest)


def _emptied(
    window: SlidingWindow, state: State, change: Change, facts: dict[str, Any], laps: Laps
) -> tuple[State, Tick]:
    """Return the tick of a window without rows."""
    none, ids = np.empty(0), state.register.ids
    members = pd.DataFrame() if ids is None else ids[:0]
    register, changes = carried(state.register, members, none.astype(np.int64), none, state.tick)
    state = state._replace(
        register=register, scores=None, vertices=None, places=None, mark=window.mark()
    )
    kind = window._state.kind or "pandas"
    nothing = empty_frames(window._reader.no_vertices, kind, state)
    return state, _tick(window, state, change, changes.alerts, *nothing, facts, laps)


def _tick(
    window: SlidingWindow, state: State, change: Change, alerts: dict[str, list], changes: Frame,
    suspects: Suspects, facts: dict[str, Any], laps: Laps,
) -> Tick:  # fmt: skip
    became = alerts_frame(alerts, (window._state.kind or "pandas"))
    laps.lap("frames")
    facts["seconds"] = laps.seconds
    for frame in (became, changes):
        set_attributes(frame, dict(facts))
    return Tick(state.tick, change, became, changes, suspects, facts)


def scores_frame(state: State, rule: Rule) -> Frame:
    """Make the frame of the score of every account, which says what `explain` asks it for."""
    if state.scores is None:
        why = "the window is empty" if state.tick else "update first"
        raise ValueError(f"there are no scores: {why}")
    graph = state.scores.states[0].system.graph
    every = to_device(np.arange(graph.number_of_vertices), graph.device)
    columns = {"score": state.scores.scores, "is_seed": state.scores.is_seed}
    columns |= state.scores.kind_columns(every, graph.vertices.kind, every=True)
    facts = {"damping": rule.damping, **state.scores.facts(), "device": graph.device}
    return set_attributes(graph.frame(columns), facts)
