"""What a partition is judged by, in integers: the weights, the volumes and the constant of a graph.

The quality of a partition is, but for a positive factor, the sum over its communities of
``C * inside - V * V``: ``inside`` the weight inside, each edge from both its ends, and V the
volume of its vertices. Modularity takes the weighted degree for the volume, and the whole volume
over the resolution for C; the constant Potts model takes the number of vertices, and one over the
resolution. All are brought to 64-bit integers by powers of two, so large that 60 bits are filled
and so small that no sum overflows: integers stay exact as long as they fit.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from glp_rapids.common.fixed_point import as_fixed_point
from glp_rapids.common.segments import integer_sums, segment_sums
from glp_rapids.device import array_module, to_host
from glp_rapids.graph.rows import CSR
from glp_rapids.jit import search
from glp_rapids.jit.cache import kept

Array = Any
lower_bound = kept(search.lower_bound, error_model="numpy")

MANY = 1 << 14  # numbers that arrays, of a GPU where there is one, add up sooner than Python does
BITS = 61  # of all volumes together; a resolution below 1 takes some


class Network(NamedTuple):
    """The rows of one level, and what its vertices weigh.

    Parameters
    ----------
    indptr, indices : arrays
        As of a `CSR`; entries of a row come in any order, and a self-loop does not count.
    weights : int64 or int32 array
        Of the entries, in units; empty where each weighs one. Those of a CPU are in fixed point,
        and of int32 all together fit in there.
    unit : int
        In fixed point; 1 where weights of a graph are.
    volume : int64 array
        Of every vertex, in fixed point.
    words : uint64 array
        What is hashed in the place of every vertex.
    """

    indptr: Array
    indices: Array
    weights: Array
    unit: int
    volume: Array
    words: Array

    @property
    def size(self) -> int:
        """The number of vertices."""
        return self.indptr.size - 1

    @property
    def rows(self) -> CSR:
        """The rows alone."""
        return CSR(self.indptr, self.indices, self.weights if self.weights.size else None)


@dataclass(frozen=True)
class Objective:
    """An objective of a graph.

    Parameters
    ----------
    network : Network
        The graph's own rows.
    constant : int
        C, below 2^62.
    total, in_loops : int
        All weights and those of self-loops, from both ends, in fixed point.
    quality : callable
        Returns the quality of a partition, of the weight inside and the volumes of its communities.
    unit : float
        Of the quality, by which gains are measured: 1, or the weight of all edges.
    """

    network: Network
    constant: int
    total: int
    in_loops: int
    quality: Callable[[int, Array], float]
    unit: float = 1.0

    def value(self, inside: int, volumes: Array) -> int:
        """Return C * inside minus the squares of the volumes, which is never rounded."""
        high, low = volumes >> 31, volumes & (1 << 31) - 1
        # volumes add up to 2^61, so that only squares of the low halves may add up to more
        squares = low * low
        tall = (int((high * high).sum()) << 62) + (int((high * low).sum()) << 32)
        flat = (int((squares >> 32).sum()) << 32) + int((squares & (1 << 32) - 1).sum())
        return self.constant * inside - tall - flat


def modularity(rows: CSR, words: Array, resolution: float) -> Objective:
    """Return the objective of modularity (Newman, Phys. Rev. E 70 (2004), eq. 5)."""
    share, loops = Fraction(resolution), loops_of(rows)
    # the constant, the total over the resolution, has as many bits to itself
    exponent = BITS - _bits(_total(rows, loops) * max(Fraction(1), 1 / share))
    weights, unit, in_loops, degree = _fixed(rows, loops, exponent)
    total = int(degree.sum())

    def quality(inside: int, volumes: Array) -> float:
        if not total:
            return math.nan
        shares = volumes / total
        return inside / total - resolution * _sum(shares * shares)

    network = Network(rows.indptr, rows.indices, weights, unit, degree, words)
    return Objective(network, round(total / share), total, in_loops, quality)


def cpm(rows: CSR, words: Array, resolution: float) -> Objective:
    """Return the objective of the constant Potts model (Traag et al., Phys. Rev. E 84 (2011))."""
    share, loops = Fraction(resolution), loops_of(rows)
    exponent = BITS - _bits(_total(rows, loops))
    weights, unit, in_loops, degree = _fixed(rows, loops, exponent)
    # volumes count 2^shift a vertex, so that the constant has many bits, and fits
    shift = (exponent + BITS - _bits(1 / share)) // 2
    shift = max(min(shift, BITS - rows.number_of_vertices.bit_length()), 0)
    constant = min(round(Fraction(2) ** (2 * shift - exponent) / share), 1 << 62)
    volume = array_module(degree).full(rows.number_of_vertices, 1 << shift, np.int64)

    def quality(inside: int, volumes: Array) -> float:
        sizes = (volumes >> shift).astype(np.float64)
        pairs = _sum(sizes * (sizes - 1) / 2)
        return math.ldexp(inside / 2, -exponent) - resolution * pairs

    network = Network(rows.indptr, rows.indices, weights, unit, volume, words)
    total = int(degree.sum())
    return Objective(network, constant, total, in_loops, quality, math.ldexp(total / 2, -exponent))


def _sum(values: Array) -> float:
    """Add up, rounded once: how communities are numbered must not show in the last bit."""
    if values.size < MANY:
        return math.fsum(to_host(values))
    return float(segment_sums(values, array_module(values).asarray([0, values.size]))[0])


OBJECTIVES = {"modularity": modularity, "cpm": cpm}


def _bits(value: Fraction) -> int:
    """Return the least e for which a value is at most 2^e."""
    if not value:
        return 0
    power = value.numerator.bit_length() - value.denominator.bit_length() - 1
    while Fraction(2) ** power < value:
        power += 1
    return power


def _total(rows: CSR, loops: Array) -> Fraction:
    """Return the sum of the weighted degrees, correctly rounded; a loop counts twice."""
    if rows.weights is None:
        return Fraction(rows.number_of_edges + loops.size)
    xp = array_module(rows.indices)
    ends = xp.asarray([0, rows.weights.size])
    whole = float(segment_sums(rows.weights, ends)[0])
    twice = rows.weights[loops]
    whole += float(segment_sums(twice, xp.asarray([0, twice.size]))[0])
    if not math.isfinite(whole):
        raise ValueError(
            "weight: the weights add up to more than float64 can hold; divide them by a number"
        )
    return Fraction(whole)


def loops_of(rows: CSR) -> Array:
    """List the entries that are self-loops; entries of a row ascend."""
    xp = array_module(rows.indices)
    if xp is np:
        places = np.empty(rows.number_of_vertices, np.int64)
        return places[: _find_loops(rows.indptr, rows.indices, places)].copy()
    places = _loop_finder()(rows.indptr[:-1], rows.indptr[1:], rows.indices)
    return places[places >= 0]


@kept(error_model="numpy")
def _find_loops(indptr, indices, places):
    """Search for every vertex in its own row; return how many places were written."""
    found = 0
    for v in range(indptr.size - 1):
        place = lower_bound(indices, indptr[v], indptr[v + 1], v)
        if place < indptr[v + 1] and indices[place] == v:
            places[found] = place
            found += 1
    return found


@functools.cache
def _loop_finder() -> Any:
    """Compile the same for a GPU."""
    import cupy

    search = """
        long long first = begin, last = end;
        while (first < last) {
            long long middle = (first + last) >> 1;
            if (indices[middle] < (T)i) first = middle + 1; else last = middle;
        }
        place = first < end && indices[first] == (T)i ? first : -1
    """
    return cupy.ElementwiseKernel(
        "int64 begin, int64 end, raw T indices", "int64 place", search, "glp_find_loops"
    )


def _fixed(rows: CSR, loops: Array, exponent: int) -> tuple[Array, int, int, Array]:
    """Return weights in fixed point, the unit, the loops' from both ends, weighted degrees."""
    xp = array_module(rows.indices)
    if rows.weights is None:
        unit = 1 << exponent
        weights = xp.empty(0, np.int64)
        degree = rows.degree * unit
        at_loops = xp.full(loops.size, unit, np.int64)
    else:
        unit = 1
        if rows.weights.dtype.kind == "i" and exponent >= 0:
            weights = rows.weights.astype(np.int64) << exponent
        else:
            weights = as_fixed_point(rows.weights, exponent)
        degree = integer_sums(weights, rows.indptr)
        at_loops = weights[loops]
    degree[rows.indices[loops]] += at_loops  # a row has one loop at the most
    return weights, unit, 2 * int(at_loops.sum()), degree
