"""Solving for scores, from nothing or from those of a slightly different graph.

Residuals are pushed where few vertices have large ones. Where a round of pushes would cost a good
part of the graph, sweeps over all of it are cheaper: Chebyshev's semi-iteration (Golub and Varga,
Numerische Mathematik 3, 1961), which gains as much in one as pushes to everybody in three or four,
since the matrix is similar to a symmetric one with a spectrum within -damping..damping.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from glp_rapids.common.cached_property import cached_property
from glp_rapids.common.progress import Report
from glp_rapids.common.scans import places_where
from glp_rapids.device import array_module, module_on
from glp_rapids.fraud.moved import moved
from glp_rapids.fraud.residual_engines import Engine, engine_of
from glp_rapids.fraud.system import HARMONIC, Fixed, System
from glp_rapids.fraud.totals import entries_of, row_weights_of, sums_are_of_64_bits
from glp_rapids.graph.graph import Graph

Array = Any
# Parts of all entries: largest round of pushes, and least that ends sweeps. With 3 and 2 two cores
# took 1.1 to 2 times as long on 2 million entries, whether cold or warm by 0.035, 1 or 10% of rows;
# on 15 million, 40 and 8 or 100 and 12 took as long as these.
ROUND, SWEEP = 12, 3
FEW = 8  # rows, of so many, up to which their residuals are computed alone
# Entries up to which a GPU reads all rows, since a host takes longer to ask for some. With this and
# the kernels of `gpu_transactions` the scores of a tick, over .5 million rows, took an H200 5.4 ms
# instead of 8.0; more than 2 million entries were not tried.
ALL_OF_GPU = 1 << 24
TOLD_EVERY = 8  # rounds of pushes; the kernels make them without a word in between


@dataclass(frozen=True)
class Effort:
    """What a solution took: rounds and sweeps, entries they pushed, and how far it got."""

    rounds: int
    entries: int
    residual: int


class ScoreState:
    """Scores of one graph that another call may go on from.

    It is never changed: `follow` returns another one. All residuals of it are exactly those of its
    numbers, so however often it is followed its scores are off by what ``error`` says at the most.

    Parameters
    ----------
    graph : Graph
        Undirected, plain.
    fixed : Fixed
        Seeds and accounts known to be honest.
    damping, tol, max_iter
        As in `account_scores`.
    scores : float array, optional
        Where to begin; None: from nothing.
    tell : callable, optional
        Takes a dict every few rounds and after every sweep; see `settle`.

    Attributes
    ----------
    numbers, residual : int64 array
        By vertex; the residuals follow from the numbers. To keep a state: `numbers`, and
        ``system.exponent``.
    effort : Effort
        What it took.
    """

    def __init__(
        self,
        graph: Graph,
        fixed: Fixed,
        damping: float,
        tol: float,
        max_iter: int,
        scores: Array | None = None,
        tell: Report | None = None,
    ) -> None:
        system = System(graph, fixed, damping, tol)
        engine = engine_of(system)
        if scores is None:
            numbers = system.clamp.copy()
        else:
            numbers = system.numbers(scores)
        self._settle(system, engine, numbers, engine.residuals(numbers), max_iter, tell)

    @classmethod
    def restored(
        cls, graph: Graph, fixed: Fixed, damping: float, tol: float, numbers: Array, exponent: int,
        rounds: int, entries: int,
    ) -> ScoreState:  # fmt: skip
        """Return the state of a graph that had these numbers, and took so much."""
        state = object.__new__(cls)
        state.system = System(graph, fixed, damping, tol, exponent)
        state.numbers, state.residual = numbers, engine_of(state.system).residuals(numbers)
        state.effort = Effort(rounds, entries, _largest(state.residual))
        return state

    @cached_property
    def scores(self) -> Array:
        """The scores, by vertex; not to be written to."""
        return self.system.scores(self.numbers, self.residual)

    @property
    def error(self) -> float:
        """How far scores of vertices may be off that trade no more than the mean; or infinite."""
        return self.system.error(self.effort.residual)

    @property
    def converged(self) -> bool:
        """Whether all residuals are as small as was asked."""
        return self.effort.residual <= self.system.allowed

    def follow(
        self,
        graph: Graph,
        fixed: Fixed,
        max_iter: int,
        *,
        place: Array | None = None,
        touched: Array | None = None,
        tell: Report | None = None,
    ) -> ScoreState:
        """Solve for another graph, from these scores.

        Parameters
        ----------
        graph, fixed, max_iter, tell
            As at the start; indices are those of this graph.
        place : int array, optional
            The index in this graph of every vertex of the state's; -1: it has left. None: the
            vertices are the same.
        touched : int array, optional
            The vertices whose rows are others than they were, in this graph; those that have come
            need not be named. Only their residuals and those around seeds that come, go or trade
            otherwise are computed anew, unless they are many or the graph is one that a GPU reads
            sooner as a whole; the result is that of None, which computes all.
        """
        xp, old = module_on(graph.device), self.system
        if touched is not None and reads_all(graph, len(touched)):
            touched = None
        of_vertices = [self.numbers]
        if touched is not None:
            of_vertices += self.residual, old.fixed, old.total
        size = graph.number_of_vertices
        if place is not None:
            of_vertices = [moved(one, place, size) for one in of_vertices]
        elif touched is not None:
            of_vertices = [one.copy() for one in of_vertices]
        numbers = of_vertices[0]
        if touched is not None:
            residual, was_fixed, total = of_vertices[1:]
            stayed = xp.ones(size if place is None else place.size, dtype=bool)
            changed = ~(stayed if place is None else moved(stayed, place, size))
            changed[touched] = True
            rows = places_where(changed)
            total[rows] = row_weights_of(graph, rows)
            graph.keep("row weights", lambda: total)
        system = System(graph, fixed, old.damping, old.tol, old.exponent)
        engine = engine_of(system)
        scaled = system.exponent - old.exponent
        if scaled:
            # what is smaller than a unit is lost, and what does not fit any more means nothing
            if scaled > 0:
                numbers = numbers >> min(scaled, 63)
            else:
                numbers = xp.clip(numbers, 0, system.most >> min(-scaled, 63)) << min(-scaled, 63)
        before, numbers = numbers, system.clamped(numbers)
        if touched is None or scaled:
            residual = engine.residuals(numbers)
        else:
            changed |= system.fixed != was_fixed
            changed |= _around(graph, places_where(before != numbers))
            rows = places_where(changed)
            residual[rows] = engine.residuals_of(rows, numbers)
        state = object.__new__(ScoreState)
        state._settle(system, engine, numbers, residual, max_iter, tell)
        return state

    def _settle(
        self, system: System, engine: Engine, numbers: Array, residual: Array, max_iter: int,
        tell: Report | None,
    ) -> None:  # fmt: skip
        self.system = system
        self.numbers, self.residual, self.effort = settle(
            system, engine, numbers, residual, max_iter, tell
        )


def reads_all(graph: Graph, rows: int) -> bool:
    """Tell whether to read all rows takes less time than to read so many."""
    if rows * FEW > graph.number_of_vertices:
        return True
    whole = graph.weights is None or graph.weights.dtype.kind in "iu"
    few = graph.device == "gpu" and graph.number_of_edges <= ALL_OF_GPU
    return few and whole and sums_are_of_64_bits(graph)


def settle(
    system: System, engine: Engine, numbers: Array, residual: Array, max_iter: int,
    tell: Report | None = None,
) -> tuple[Array, Array, Effort]:  # fmt: skip
    """Push and sweep until no residual is above what is allowed, or so many rounds are made.

    ``tell`` takes the ``step`` ("scores"), the ``round``, the entries ``pushed`` and the ``error``
    of the scores so far. Rounds are the same whether they are made in one call or in several.
    """

    def report() -> None:
        if tell is not None:
            error = system.error(_largest(residual))
            tell({"step": "scores", "round": rounds, "pushed": pushed, "error": error})

    entries = system.graph.number_of_edges
    allowed, rounds, pushed = system.allowed, 0, 0
    radius = min(system.damping, 1.0 - HARMONIC)
    while rounds < max_iter:
        most = max_iter - rounds if tell is None else min(TOLD_EVERY, max_iter - rounds)
        pushes = engine.push(numbers, residual, allowed, entries // ROUND, most)
        rounds, pushed = rounds + pushes.rounds, pushed + pushes.entries
        report()
        if not pushes.too_large:
            if pushes.rounds < most:
                break
            continue
        previous = numbers
        for factor in _factors(radius):
            following = engine.step(previous, numbers, residual, factor)
            previous, numbers = numbers, following
            residual = engine.residuals(numbers)
            rounds, pushed = rounds + 1, pushed + entries
            report()
            if rounds == max_iter or engine.above(residual, allowed) * SWEEP < entries:
                break
    return numbers, residual, Effort(rounds, pushed, _largest(residual))


def _largest(residual: Array) -> int:
    xp = array_module(residual)
    if not residual.size:
        return 0
    if xp is not np:  # where each kind of reduction is compiled anew
        return int(xp.abs(residual).max())
    return max(int(residual.max()), -int(residual.min()))


def _factors(radius: float) -> Iterator[float]:
    """Yield by how much each sweep goes beyond its residual."""
    factor = 1.0
    yield factor
    factor = 1.0 / (1.0 - radius**2 / 2)
    while True:
        yield factor
        factor = 1.0 / (1.0 - radius**2 * factor / 4)


def _around(graph: Graph, vertices: Array) -> Array:
    """Mark the neighbours of some vertices."""
    marked = array_module(graph.indptr).zeros(graph.number_of_vertices, dtype=bool)
    if vertices.size:
        marked[graph.indices[entries_of(graph, vertices)[1]]] = True
    return marked
