"""Whether what is carried along from batch to batch is what its rows say, to the bit."""

from __future__ import annotations

from typing import Any

import numpy as np

from glp_rapids.common.scans import number_where
from glp_rapids.device import array_module
from glp_rapids.frames import kinds
from glp_rapids.fraud import parts
from glp_rapids.fraud.engines import Batch, Window
from glp_rapids.fraud.monitor_options import Settings
from glp_rapids.fraud.monitor_state import State
from glp_rapids.fraud.pairs import Rows
from glp_rapids.fraud.residual_engines import engine_of
from glp_rapids.fraud.system import System
from glp_rapids.fraud.window import SlidingWindow
from glp_rapids.graph.graph import Graph

Array = Any
SUMS = {"transfers": "transfers", "units": "amounts", "faded": "what pairs count by age"}


def window_differs(window: SlidingWindow) -> list[str]:
    """Say in what a window is not what its rows add up to."""
    if not len(window):
        return []
    state, engine = window._state, window._state.engine
    start = window._start(state)
    held = engine.window()
    runs = list(engine.runs())
    xp = array_module(runs[0].time)
    rows = Rows(*(xp.concatenate(columns) for columns in
                  zip(*(vars(run).values() for run in runs), strict=True)))  # fmt: skip
    found = []
    if rows.time.size != len(engine):
        found.append(f"{len(engine)} rows are said to be inside, {rows.time.size} are")
    if units := int(engine.total()) - int(rows.units.sum()):
        found.append(f"the total of all amounts is off by {units} units")
    if outside := number_where(~((rows.time > start) & (rows.time <= state.newest))):
        found.append(f"{outside} rows are not within the window's times")
    anew = type(engine)(engine.directed, engine.decay)
    anew = anew.advanced(Batch(rows, held.vertices), start, state.newest - start)[0].window()
    return found + _sums_differ(held, anew)


def _sums_differ(held: Window, anew: Window) -> list[str]:
    same = len(held.vertices) == len(anew.vertices)
    if same:
        columns = zip(held.vertices.columns, anew.vertices.columns, strict=True)
        every = array_module(held.indptr).arange(len(anew.vertices))
        hosted = ((kinds.on_host(one.at(every)), kinds.on_host(other.at(every)))
                  for one, other in columns)  # fmt: skip
        same = not any(np.asarray(one != other).any() for one, other in hosted)
    if not same:
        return [f"accounts differ: {len(held.vertices)} are held, {len(anew.vertices)} trade"]
    if held.indices.size != anew.indices.size:
        return [f"{held.indices.size} entries are held, {anew.indices.size} are traded over"]
    if wrong := _places(held.indptr, anew.indptr) + _places(held.indices, anew.indices):
        return [f"who trades with whom differs at {wrong} places"]
    found = []
    for name, what in SUMS.items():
        if getattr(held, name) is not None and (
            wrong := _places(getattr(held, name), getattr(anew, name))
        ):
            found.append(f"{what} differ at {wrong} of {held.indices.size} entries")
    return found


def _places(one: Array, other: Array) -> int:
    return number_where(one != other)


def scores_differ(state: State, graph: Graph, settings: Settings) -> list[str]:
    """Say in what scores that were gone on from are not scores of this graph."""
    found = []
    fixed = parts.fixed_by_kind(state.seeds, state.good, graph, settings.hubs)
    if tuple(fixed) != state.scores.names:
        return ["scores are of other kinds of seeds"]
    anew = Graph(graph.indptr, graph.indices, graph.weights, False, graph.vertices)
    for (kind, one), held in zip(fixed.items(), state.scores.states, strict=True):
        name = "scores" if kind is None else f"scores of kind {kind!r}"
        rule = parts.rules_of(settings.rule, len(fixed))
        system = System(anew, one, rule.damping, rule.tol, held.system.exponent)
        if wrong := _places(held.system.total, system.total):
            found.append(f"{name}: the weights of {wrong} accounts differ")
        if wrong := _places(held.system.fixed, system.fixed):
            found.append(f"{name}: {wrong} accounts are, or are not, held fixed")
        if wrong := _places(held.residual, engine_of(system).residuals(held.numbers)):
            found.append(f"{name}: residuals differ at {wrong} accounts")
    return found


def refuse(found: list[str]) -> None:
    """Raise if anything differs."""
    if found:
        raise RuntimeError(
            f"what this monitor carries along is not what its rows say: {'; '.join(found)}; "
            "please report that, and open a saved state or start anew"
        )
