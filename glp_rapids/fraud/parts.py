"""The scores of a monitor: of each blacklist its part, and what they add up to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import pandas as pd

from glp_rapids.common.progress import Report
from glp_rapids.device import array_module, module_on
from glp_rapids.frames import kinds
from glp_rapids.fraud import seeds as seed_lists
from glp_rapids.fraud.known import with_hubs
from glp_rapids.fraud.moved import moved
from glp_rapids.fraud.placing import told_of
from glp_rapids.fraud.score_state import ScoreState
from glp_rapids.fraud.scores import Rule, how_far_off
from glp_rapids.fraud.system import Fixed
from glp_rapids.graph.graph import Graph
from glp_rapids.graph.vertex_ids import VertexIds
from glp_rapids.jit.interrupts import interruptible

Array = Any


class Parts(NamedTuple):
    """Scores of one graph, by kind of seeds; the equation is linear, so they add up.

    ``names``: (None,) where seeds have no kinds.
    """

    names: tuple[Any, ...]
    states: tuple[ScoreState, ...]

    @property
    def scores(self) -> Array:
        """The scores, by vertex."""
        first, *others = self.states
        return sum((state.scores for state in others), first.scores)

    @property
    def is_seed(self) -> Array:
        """Marks of all seeds."""
        graph = self.states[0].system.graph
        marks = module_on(graph.device).zeros(graph.number_of_vertices, dtype=bool)
        for state in self.states:
            marks[state.system.of.seeds] = True
        return marks

    @property
    def seeds_inside(self) -> int:
        """How many seeds are accounts of the graph."""
        return sum(int(state.system.of.seeds.size) for state in self.states)

    def facts(self) -> dict[str, Any]:
        """Tell what they took, and how far they may be off."""
        efforts = [state.effort for state in self.states]
        return {
            "seeds": self.seeds_inside,
            "rounds": sum(effort.rounds for effort in efforts),
            "pushed": sum(effort.entries for effort in efforts),
            **how_far_off(self.states),
        }

    def kind_columns(self, index: Array, kind: str, every: bool = False) -> dict[str, Any]:
        """Make the column of the strongest kind of some vertices, null where there is none.

        No column where seeds have no kinds. ``every``: also one of each part.
        """
        if self.names == (None,):
            return {}
        parts = [state.scores[index] for state in self.states]
        together = array_module(index).stack(parts)
        names = kinds.to_series(pd.Series(list(self.names)), kind)
        values = kinds.taken(names, together.argmax(axis=0))
        columns = {"kind": kinds.null_where(together.max(axis=0) == 0, values, kind)}
        if every:
            columns |= {f"score_{name}": part for name, part in zip(self.names, parts, strict=True)}
        return columns


def fixed_by_kind(
    seeds: seed_lists.Blacklists, good: VertexIds | None, graph: Graph, hubs: int | None
) -> dict[Any, Fixed]:
    """Find who is fixed in the equation of each kind: seeds of others have no part in it."""
    xp = module_on(graph.device)
    own = {kind: seed_lists.index_of(ids, graph, "seeds") for kind, ids in seeds.items()}
    own = own or {None: seed_lists.index_of(None, graph, "seeds")}
    everybody = xp.concatenate(list(own.values()))
    honest = seed_lists.index_of(good, graph, "good")
    stops = with_hubs(graph, Fixed(everybody, honest), hubs).good
    if len(own) == 1:
        return {kind: Fixed(index, stops) for kind, index in own.items()}
    return {
        kind: Fixed(index, xp.concatenate([stops, everybody[~xp.isin(everybody, index)]]))
        for kind, index in own.items()
    }


def rules_of(rule: Rule, number: int) -> Rule:
    """Share out the error that all kinds together may have."""
    return rule._replace(tol=rule.tol / number)


def solved_parts(
    graph: Graph, fixed: dict[Any, Fixed], rule: Rule, start: Parts | None = None,
    place: Array | None = None, tell: Report | None = None,
) -> Parts:  # fmt: skip
    """Solve from nothing, or from scores of another graph, whose vertices are at ``place`` here."""
    share = rules_of(rule, len(fixed))
    solve = ScoreState if tell else interruptible(ScoreState, graph.device)
    states = []
    for kind, one in fixed.items():
        scores = None
        if start is not None and kind in start.names:
            scores = start.states[start.names.index(kind)].scores
            if place is not None:
                scores = moved(scores, place, graph.number_of_vertices)
        states.append(solve(graph, one, *share, scores, _told_of(tell, kind)))
    return Parts(tuple(fixed), tuple(states))


def followed(
    parts: Parts, graph: Graph, fixed: dict[Any, Fixed], rule: Rule, place: Array | None,
    touched: Array, tell: Report | None = None,
) -> Parts:  # fmt: skip
    """Go on from scores of a slightly different graph; see `ScoreState.follow`."""
    states = []
    for state, (kind, one) in zip(parts.states, fixed.items(), strict=True):
        follow = state.follow if tell else interruptible(state.follow, graph.device)
        about = {"place": place, "touched": touched, "tell": _told_of(tell, kind)}
        states.append(follow(graph, one, rule.max_iter, **about))
    return Parts(parts.names, tuple(states))


def _told_of(tell: Report | None, kind: Any) -> Report | None:
    return tell if kind is None else told_of(tell, kind=kind)


def restored(
    graph: Graph, fixed: dict[Any, Fixed], rule: Rule, saved: list[dict[str, Any]],
    numbers: Iterator[Array],
) -> Parts:  # fmt: skip
    """Return the parts that had these numbers."""
    share = rules_of(rule, len(fixed))
    states = [
        ScoreState.restored(graph, one, share.damping, share.tol, array, **facts)
        for one, facts, array in zip(fixed.values(), saved, numbers, strict=True)
    ]
    return Parts(tuple(fixed), tuple(states))
