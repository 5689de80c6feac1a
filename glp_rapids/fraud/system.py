"""The equation that scores solve, in integers, and how far a solution of it is from the exact one.

Seeds have the score 1, accounts known to be honest 0, and of every other vertex v

    score[v] = damping * sum over its neighbours u of w[u, v] / sqrt(d[u] d[v]) * score[u],

w being the weights without self-loops and d[v] what those at v add up to: Zhou et al., Learning
with Local and Global Consistency (NIPS 2003), section 2, with clamped seeds. In y[v] = score[v] /
sqrt(d[v]) it says that y[v] is the damped mean of its neighbours, y[v] = damping * sum of w[u, v] /
d[v] * y[u]. Let P be these shares among the vertices that are not fixed; rows of P add up to at
most 1, so (1 - damping P)^-1 is not negative and its rows add up to at most 1 / (1 - damping). If
no residual, damping * mean - y[v], is beyond e, then no y is off by more than e / (1 - damping).
Scores are told of y and its residual together, one step further: so whoever deals with a seed for
more than nothing has one, and none is off by more than sqrt(d[v]) * damping * e / (1 - damping).

Scores, too, may be as large as sqrt(d[v]) times the largest y. One ``tol`` for all would ask of a
merchant with a million customers, where the errors of all do add up, a thousand times what it asks
of an account with one, and residuals of everybody would have to be so small for his sake alone. So
scores are to be within ``tol * max(1, sqrt(d[v] / mean d))``, the mean being of all that trade and
are not fixed.

Numbers are y in units of 2^(exponent - 56), 64-bit integers. What v hears from u is cut to such a
unit once, towards 0: integer((w / d[v]) * (damping * number[u])); and the residual of v is exactly
the sum of these less its own number. So residuals follow from the numbers, whoever computed them in
whatever order, by adding up or by pushing differences; nothing accumulates over rounds, nor over
warm starts that last for years. A residual in integers is off the true one by at most a unit an
entry and, since numbers are below 2^57 and six operations are rounded to 53 bits, 2^57 * 6 * 2^-53
< 2^8.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from glp_rapids.common.cached_property import cached_property
from glp_rapids.common.segments import times_power
from glp_rapids.device import device_of, module_on
from glp_rapids.fraud.totals import mean_traded, row_weights
from glp_rapids.graph.graph import Graph

Array = Any
BITS = 56
ROUNDED = 1 << 8  # units by which floating-point operations may add to a residual
CLAMPED = 1 << 6  # units by which the numbers of seeds may be off
SETTLES = 8  # allowances, from which on rounding cannot keep pushes going for ever
HARMONIC = 2.0**-10  # in the place of 1 - damping where that is 0
KEPT_ABOVE, KEPT_BELOW = 1, 8  # powers of two over which an exponent is not changed


class Fixed(NamedTuple):
    """The vertices whose scores are known: indices, each once."""

    seeds: Array
    good: Array


class System:
    """The equation for one graph and its seeds.

    Parameters
    ----------
    graph : Graph
        Undirected.
    fixed : Fixed
        No vertex is both.
    damping, tol
        What is left of a score at each step; how far the scores of vertices may be off that trade
        no more than the mean, see above.
    exponent : int, optional
        That of earlier numbers, which is kept where they are not to be scaled anew.
    """

    def __init__(
        self, graph: Graph, fixed: Fixed, damping: float, tol: float, exponent: int | None = None
    ) -> None:
        xp = module_on(graph.device)
        self.graph, self.damping, self.tol = graph, float(damping), float(tol)
        self.total = row_weights(graph)
        traded = self.total > 0
        self.fixed = ~traded
        self.fixed[fixed.seeds] = True
        self.fixed[fixed.good] = True
        self.of = fixed
        heard = fixed.seeds[traded[fixed.seeds]]
        clamps = 1.0 / xp.sqrt(self.total[heard])
        needed = int(math.frexp(float(clamps.max()))[1]) if heard.size else 0
        keeps = exponent is not None and (
            not heard.size or exponent - KEPT_BELOW <= needed <= exponent + KEPT_ABOVE
        )
        self.exponent = exponent if keeps else needed
        self.clamp = xp.zeros(self.total.size, np.int64)
        self.clamp[heard] = self._integers(clamps)
        self.most = int(self.clamp.max()) if heard.size else 0
        self.mean = mean_traded(self.total, self.fixed)

    @cached_property
    def root(self) -> Array:
        """The root of what each vertex trades."""
        return module_on(self.graph.device).sqrt(self.total)

    @cached_property
    def _allowance(self) -> int:
        """Bound what rounding adds to a residual, in units."""
        return self.graph.largest_degree() + ROUNDED

    @property
    def allowed(self) -> int:
        """The largest residual with which scores are as near as asked, or as near as can be."""
        gap = 1.0 - self.damping or HARMONIC
        least = math.ceil(min(SETTLES * self._allowance / gap, float(1 << BITS)))
        if not self.mean:
            return least
        # where seeds trade far more than all others, any residual will do
        root = math.sqrt(self.mean)
        power = min(BITS - self.exponent, 2 * BITS + math.frexp(root)[1])
        wanted = math.ldexp(self.tol / root, power) - CLAMPED
        most = min(max(wanted - self._allowance, 0.0) * gap / self.damping, float(1 << BITS))
        return max(least, math.floor(most) - self._allowance)

    def error(self, residual: int) -> float:
        """Bound how far scores are off of vertices that trade no more than the mean.

        Given the largest residual; infinite if damping is 1.
        """
        if not self.mean:
            return 0.0
        if self.damping == 1:
            return math.inf
        after = self.damping * (residual + self._allowance) / (1.0 - self.damping)
        units = after + self._allowance + CLAMPED
        return float(np.ldexp(units * math.sqrt(self.mean), self.exponent - BITS))

    def times_as_far(self, vertices: Array) -> Array:
        """Return how many times as far the scores of some vertices may be off; known: 1."""
        times = times_as_far(self.root[vertices], self.mean)
        times[self.fixed[vertices]] = 1.0
        return times

    def clamped(self, numbers: Array) -> Array:
        """Give the fixed vertices their numbers; those of others stay."""
        xp = module_on(self.graph.device)
        return xp.where(self.fixed, self.clamp, numbers)

    def numbers(self, scores: Array) -> Array:
        """Turn scores into numbers, between 0 and the largest of a seed."""
        xp = module_on(self.graph.device)
        ratio = scores / xp.where(self.fixed, 1.0, self.root)
        # what is larger has no meaning, and might not fit
        xp.minimum(ratio, math.ldexp(1.0, self.exponent + KEPT_ABOVE), out=ratio)
        return self.clamped(xp.clip(self._integers(ratio), 0, self.most))

    def scores(self, numbers: Array, residual: Array) -> Array:
        """Turn numbers into scores, with what they are off: 1 for seeds, else not negative."""
        xp = module_on(self.graph.device)
        # the root first: a unit on its own may be below all floats
        scores = (numbers + residual).astype(np.float64) * self.root
        times_power(scores, self.exponent - BITS, scores)
        scores = xp.maximum(scores, 0.0)
        scores[self.of.seeds] = 1.0
        return scores

    def _integers(self, values: Array) -> Array:
        xp, scaled = module_on(self.graph.device), values.copy()
        times_power(scaled, BITS - self.exponent, scaled)
        return xp.rint(scaled, out=scaled).astype(np.int64)


def times_as_far(root: Array, mean: float) -> Array:
    """Return how many times as far scores may be off as those of vertices that trade the mean.

    ``root``: of what the vertices trade.
    """
    return module_on(device_of(root)).maximum(root / (math.sqrt(mean) or 1.0), 1.0)
