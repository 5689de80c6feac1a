"""The loop: move vertices, refine, contract, and again with the parts as vertices.

Louvain (Blondel et al. 2008) is the loop without refinement; with it, it is Leiden (Traag, Waltman,
van Eck 2019). Both take vertices one by one in a random order; here classes of them take turns, as
in `label_propagation`, and chance is a hash of ids, so that a result is the same everywhere.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from glp_rapids.common.fixed_point import sums_by_group
from glp_rapids.communities.engines import engine_of
from glp_rapids.communities.isolated import among_all, without_isolated
from glp_rapids.communities.numbers import Rest
from glp_rapids.communities.objective import MANY, Objective, crossing_weight, on_host
from glp_rapids.communities.schedule import REFINING_SWEEPS, iterations_for
from glp_rapids.device import array_module, to_host

Array = Any


@dataclass(frozen=True)
class Options:
    """How a run goes."""

    refine: bool
    max_level: int
    iterations: int | None  # as many as its size allows
    tol: float
    seed: int


@dataclass
class Found:
    """What a run found: a community a vertex, its quality, and the parts of each level.

    ``value`` is the quality in the integers of the objective, which tells partitions apart that
    have one quality in float64. ``steps`` holds the parts of the vertices of each level, which are
    the vertices of the next, and at last the communities; ``levels`` tells how it went. Vertices
    without an entry are in ``labels``, not in ``steps``; ``whole`` brings them in.
    """

    labels: Array
    quality: float
    value: int
    steps: list[Array]
    levels: list[dict] = field(default_factory=list)
    converged: bool = False
    whole: Callable[[Array], Array] | None = None

    @property
    def hierarchy(self) -> list[Array]:
        """The part of every vertex on each level, from the finest to the communities."""
        found, down = [], None
        for parts in self.steps:
            down = parts if down is None else parts[down]
            found.append(down)
        return found if self.whole is None else [self.whole(labels) for labels in found]


def run(
    objective: Objective, device: str, options: Options, tell: Callable[[dict], None] | None
) -> Found:
    """Find the communities of all vertices; those without an entry are one each."""
    size, (network, kept) = objective.network.size, without_isolated(objective.network)
    if not network.size:
        labels = array_module(network.indptr).arange(size)
        return replace(_alone(objective, labels, []), converged=True)
    engine = engine_of(device)(network, objective.constant)
    found = _iterations(replace(objective, network=network), engine, options, tell)
    if kept is None:
        return found

    def whole(labels: Array) -> Array:
        first = engine.counted(engine.numbered(labels)).first
        return among_all(labels, first, kept, size)

    return replace(found, labels=whole(found.labels), whole=whole)


def _iterations(
    objective: Objective, engine: Any, options: Options, tell: Callable[[dict], None] | None
) -> Found:
    """Iterate until an iteration gains little, each from the communities of the one before."""
    network, found = objective.network, None
    labels = array_module(network.indptr).arange(network.size)
    done: list[dict] = []
    most = options.iterations or iterations_for(network.size + network.indices.size)
    for iteration in range(1, most + 1):
        again = _iterate(objective, engine, options, iteration, labels, done, tell)
        better = enough = found is None and _beats_all_alone(objective, again.quality, options.tol)
        if not better:
            found = found or _alone(objective, labels, done)
            better = again.value > found.value
            enough = again.quality - found.quality > options.tol * objective.unit
        if better:
            found = again
        labels, found.converged = found.labels, not (better and enough)
        if found.converged:
            break
    return found


def _alone(objective: Objective, labels: Array, levels: list[dict]) -> Found:
    """Return what every vertex is for itself."""
    volumes = objective.network.volume
    return _found(objective, objective.in_loops, volumes, labels, [labels], levels)


def _beats_all_alone(objective: Objective, quality: float, tolerance: float) -> bool:
    """Tell whether a quality is surely above that of lone vertices, by more than a tolerance.

    What the sizes of communities take off is left out: to add it up takes a GPU a millisecond or
    two. Where the constant is a rounded small one, two qualities say less than two values.
    """
    most = objective.quality(objective.in_loops, objective.network.volume[:0])
    exact = 1 << 24 < objective.constant < 1 << 62
    return exact and quality - most > max(tolerance, 1e-6) * objective.unit


def _iterate(
    objective: Objective, engine: Any, options: Options, iteration: int, before: Array,
    told: list[dict], tell: Callable[[dict], None] | None,
) -> Found:  # fmt: skip
    numbers, first = engine.counted(engine.numbered(before))
    labels = first[numbers]
    parts_of: list[Array] = []
    done = 0
    while True:
        begin = time.perf_counter()
        # other classes on every level: two of one class that hinder each other do so only there
        seed = options.seed + (iteration << 48) + (done << 40)
        rest = engine.rest(labels, seed, done, options)
        if rest is None:
            rest = _level(engine, labels, seed, done, options)
        seconds = time.perf_counter() - begin - sum(level["seconds"] for level in rest.levels)
        rest.levels[0]["seconds"] += seconds
        for facts in rest.levels:
            told.append({"iteration": iteration, "level": done, **facts})
            if tell is not None:
                tell(told[-1])
            done += 1
        parts_of += rest.parts
        if rest.network is None:
            break
        engine, labels = type(engine)(rest.network, objective.constant), rest.labels
    inside = objective.total - rest.crossing
    labels = rest.communities
    for parts in reversed(parts_of):  # up: only the last step goes through all vertices
        labels = labels[parts]
    return _found(objective, inside, rest.volumes, labels, [*parts_of, rest.communities], told)


def _level(engine: Any, labels: Array, seed: int, depth: int, options: Options) -> Rest:
    """Do one level, all but its time."""
    network, partition = engine.network, engine.partition(labels)
    done = engine.move(partition, seed)
    parts = communities = engine.numbered(partition.labels)
    last = depth + 1 == options.max_level
    if options.refine and not last:
        parts = engine.numbered(engine.refine(partition, seed, REFINING_SWEEPS))
    # a GPU is waited for only now that all is on its way
    moved, communities = engine.swept(done), engine.counted(communities)
    parts = engine.counted(parts)
    last = last or parts.first.size == network.size
    if last and options.refine:
        # a community that moves left in pieces gains by every cut
        communities = engine.counted(engine.numbered(engine.connected(partition.labels)))
    facts = [
        {"vertices": network.size, "communities": communities.first.size, "moved": moved,
         "seconds": 0.0}
    ]  # fmt: skip
    if not last:
        return Rest(facts, [parts.numbers], None, None, 0, *engine.contract(parts, communities))
    numbers, first = communities
    if network.size + network.indices.size < MANY:
        network, numbers = on_host(network), to_host(numbers)
    volumes = sums_by_group(numbers, network.volume, first.size)
    crossing = crossing_weight(network, numbers)
    return Rest(facts, [], communities.numbers, volumes, crossing, None, None)


def _found(
    objective: Objective, inside: int, volumes: Array, labels: Array, steps: list[Array],
    levels: list[dict],
) -> Found:  # fmt: skip
    if volumes.size >= MANY:
        volumes = volumes[volumes != 0]  # of a GPU, and a host adds up few sooner
    if volumes.size < MANY:
        volumes = to_host(volumes)
    quality, value = objective.quality(inside, volumes), objective.value(inside, volumes)
    return Found(labels, quality, value, steps, levels)
