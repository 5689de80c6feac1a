"""The loop: move vertices, contract their communities, and again with these as vertices; then back.

Louvain (Blondel et al. 2008) goes up level by level. Here every iteration goes down again, too,
and moves the vertices of each level once more, with the communities of all levels above
(multilevel refinement: Rotta and Noack 2011). Iterations after the first begin with communities:
these are refined, as Leiden does (Traag, Waltman, van Eck 2019), and parts are contracted instead,
so that on the way down a part may leave. Others take vertices one by one in a random order; here
classes of them take turns, as in `label_propagation`, and chance is a hash of ids, so that a result
is the same everywhere.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from glp_rapids.communities.engines import Engine, engine_of
from glp_rapids.communities.isolated import among_all, without_isolated
from glp_rapids.communities.numbers import Numbered, PendingLevels, Terms, facts_of
from glp_rapids.communities.objective import Objective
from glp_rapids.communities.schedule import (
    DOWN,
    REFINING_SWEEPS,
    UP,
    converges,
    is_refined,
    iterations_for,
    least_moves,
    seed_of,
)
from glp_rapids.device import array_module

Array = Any
Tell = Callable[[dict], None]


@dataclass(frozen=True)
class Options:
    """How a run goes."""

    refine: bool
    max_level: int
    iterations: int | None  # as many as its size allows
    tol: float
    seed: int
    hierarchy: bool = False  # of the communities, too


@dataclass
class Found:
    """What a run found: a community a vertex, its quality, and what they are made of.

    ``value`` is the quality in the integers of the objective, which tells partitions apart that
    have one quality in float64. ``hierarchy``: of every vertex the part that it is in, from the
    finest to the communities, where that was asked for; ``levels`` tells how it went.
    """

    labels: Array
    quality: float
    value: int
    communities: Numbered
    levels: list[dict] = field(default_factory=list)
    converged: bool = False
    hierarchy: list[Array] = field(default_factory=list)


def run(objective: Objective, device: str, options: Options, tell: Tell | None) -> Found:
    """Find the communities of all vertices, by number; those without an entry are one each."""
    size = objective.network.size
    network, kept = without_isolated(objective.network, objective.isolated)
    objective = replace(objective, network=network)
    if not network.size:
        labels = array_module(network.indptr).arange(size)
        nothing = Terms(0, 0, Numbered(labels, labels))
        found = replace(_found(objective, nothing, labels, []), converged=True)
        return replace(found, hierarchy=[labels] if options.hierarchy else [])
    engine = engine_of(device)(network, objective.constant)
    found = _iterations(objective, engine, options, tell)
    if options.refine:
        found = _in_pieces(objective, engine, found)
    steps = [found.communities]
    if options.hierarchy:
        steps = _hierarchy(engine, found.communities, options)
    if kept is not None:
        steps = [Numbered(among_all(*step, kept, size), step.first) for step in steps]
    found.labels = steps[-1].numbers
    if options.hierarchy:
        found.hierarchy = [step.numbers for step in steps]
    return found


def _iterations(
    objective: Objective, engine: Engine, options: Options, tell: Tell | None
) -> Found:
    """Iterate until an iteration gains little, each from the communities of the one before."""
    network, found, communities, alone = objective.network, None, None, False
    labels = array_module(network.indptr).arange(network.size, dtype=network.indices.dtype)
    done: list[dict] = []
    items = network.size + network.indices.size
    most = options.iterations or iterations_for(items)
    for iteration in range(1, most + 1):
        again = _Iteration(objective, options, iteration, done, tell).found(
            engine, labels, communities, options.refine and iteration == most
        )
        better = enough = found is None and _beats_all_alone(objective, again.quality, options.tol)
        if not better:
            if found is None:
                found = _found(objective, engine.terms(labels, network.volume), labels, done)
                alone = True
            better = again.value > found.value
            enough = again.quality - found.quality > options.tol * objective.unit
        if alone and again.value < found.value:
            # too many came together at once; refined, they may be what is better than nobody
            labels, communities = again.labels, again.communities
            continue
        if better:
            found, alone = again, False
        labels, communities = found.labels, found.communities
        found.converged = not (better and enough) or converges(done[-1]["moved"], network.size)
        if found.converged:
            break
    return found


def _beats_all_alone(objective: Objective, quality: float, tolerance: float) -> bool:
    """Tell whether a quality is surely above that of lone vertices, by more than a tolerance.

    What the sizes of communities take off is left out: to add it up takes a GPU three launches and
    a read. Where the constant is a rounded small one, two qualities say less than two values.
    """
    most = objective.quality(objective.in_loops, 0)
    exact = 1 << 24 < objective.constant < 1 << 62
    return exact and quality - most > max(tolerance, 1e-6) * objective.unit


@dataclass
class _Iteration:
    """Up from the communities that there are, as high as anything is gained, and down again."""

    objective: Objective
    options: Options
    number: int
    told: list[dict]
    tell: Tell | None
    since: float = field(default_factory=time.perf_counter)

    def found(
        self, engine: Engine, labels: Array, communities: Numbered | None, last: bool
    ) -> Found:
        """Iterate once on an engine of all vertices; ``last``: connected parts come next."""
        below, labels, rest = self._up(engine, labels, communities)
        terms = None
        for depth in reversed(range(len(below))):
            there, parts = below[depth]
            size, seed = there.network.size, self._seed(depth, DOWN)
            down = partial(
                there.down, labels, parts, seed, self.objective.classes_for(size, depth, False),
                terms=depth == 0, last=depth == 0 and last,
            )  # fmt: skip
            labels, moved, terms = down()
            levels = []
            if rest is not None:  # speculative: it was gone on with before it was waited for
                levels, complete = rest.wait()
                if not complete:
                    labels, moved, terms = down()
            self._report(*levels, facts_of(depth, DOWN, size, moved))
            rest = None
        if rest is not None:
            self._report(*rest.wait()[0])
            # of a copy, for these are parts of all that such levels take
            labels, volumes = rest.labels.copy(), rest.volumes
        elif terms is None:
            volumes = engine.volumes
        if terms is None:
            terms = engine.terms(labels, volumes)
        return _found(self.objective, terms, labels, self.told)

    def _up(
        self, engine: Engine, labels: Array, communities: Numbered | None
    ) -> tuple[list[tuple[Engine, Numbered | None]], Array, PendingLevels | None]:
        """Move or refine, and contract, level by level.

        ``communities``: the labels' numbers, where these are known. Returns the levels to go down
        through, each with the parts that are the vertices of the one above; communities by name, of
        the level above these; and what is done with that one and all above it, if that is done
        together. A level without parts is to be moved once more.
        """
        below: list[tuple[Engine, Numbered | None]] = []
        refining = refined = self.options.refine and self.number > 1
        most = self.options.max_level
        while True:
            depth, size = len(below), engine.network.size
            seed = self._seed(depth, UP)
            if refining and below:
                entries, before = (one.network.indices.size for one in (engine, below[-1][0]))
                refining = is_refined(size, entries, before)
            rest = None
            if self.objective.classes is None:
                rest = engine.rest(labels, seed, depth, most, refining)
            if rest is not None:
                return below, rest.labels, rest
            last, moved = depth + 1 == most, []
            refines = refining and not last
            if refines:
                parts, above = engine.refined(labels, seed, REFINING_SWEEPS, communities)
            else:
                classes = self.objective.classes_for(size, depth, True)
                least = None if last else least_moves(size, refined)
                labels, moved, parts, above = engine.up(labels, seed, classes, least)
            self._report(facts_of(depth, UP, size, moved, parts.first.size))
            if above is None:
                return [*below, (engine, None)] if refines else below, labels, None
            below.append((engine, parts))
            (engine, labels), communities = above, None

    def _seed(self, depth: int, way: str) -> int:
        return seed_of(self.options.seed, self.number, depth, way)

    def _report(self, *levels: dict) -> None:
        """Tell of levels; of the time since others were told of, the last has what is nobody's."""
        now = time.perf_counter()
        levels[-1]["seconds"] += now - self.since - sum(level["seconds"] for level in levels)
        self.since = now
        for facts in levels:
            self.told.append({"iteration": self.number, **facts})
            if self.tell is not None:
                # a copy, since what was told is read again, and is part of the result
                self.tell(deepcopy(self.told[-1]))


def _in_pieces(objective: Objective, engine: Engine, found: Found) -> Found:
    """Cut communities into what is connected: one that a vertex left gains by every cut."""
    labels, terms = engine.connected_parts(found.labels)
    if terms.communities.first.size == found.communities.first.size:
        return found
    pieces = _found(objective, terms, labels, found.levels)
    return replace(pieces, converged=found.converged)


def _hierarchy(engine: Engine, communities: Numbered, options: Options) -> list[Numbered]:
    """Refine communities, and their parts, as long as they join: the finest parts first."""
    found, depth, known = [], 0, communities
    labels, numbers, first = communities.first[communities.numbers], None, None
    while depth + 1 < options.max_level:
        seed = seed_of(options.seed, 0, depth, UP)
        # of one sweep there are more
        parts, above = engine.refined(labels, seed, 1, known)
        if above is None:
            break
        numbers = parts.numbers if numbers is None else parts.numbers[numbers]
        first = parts.first if first is None else first[parts.first]
        found.append(Numbered(numbers, first))
        (engine, labels), depth, known = above, depth + 1, None
    return [*found, communities]


def _found(objective: Objective, terms: Terms, labels: Array, levels: list[dict]) -> Found:
    inside = objective.total - terms.crossing
    return Found(
        labels, objective.quality(inside, terms.squares), objective.value(inside, terms.squares),
        terms.communities, levels,
    )  # fmt: skip
