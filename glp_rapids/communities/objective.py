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
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from glp_rapids.common.fixed_point import as_fixed_point
from glp_rapids.common.scans import integer_sum
from glp_rapids.common.segments import integer_sums, segment_sums
from glp_rapids.communities import schedule
from glp_rapids.device import array_module, to_host
from glp_rapids.graph.graph import Graph
from glp_rapids.graph.rows import CSR
from glp_rapids.jit import search
from glp_rapids.jit.cache import kept

Array = Any
lower_bound = kept(search.lower_bound, error_model="numpy")

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
    quality_of : callable
        Returns the quality of a partition, of the number of vertices, the weight inside and the
        sum of the squares of the volumes of communities.
    isolated : int, optional
        How many vertices have no entry, where that is known.
    unit : float
        Of the quality, by which gains are measured: 1, or the weight of all edges.
    classes : int, optional
        The number of classes on every level, which are then done one at a time; None: what
        `schedule.classes_for` says.
    """

    network: Network
    constant: int
    total: int
    in_loops: int
    quality_of: Callable[[int, int, int], float]
    unit: float = 1.0
    isolated: int | None = None
    classes: int | None = None

    def classes_for(self, vertices: int, level: int, going_up: bool) -> int:
        """Return how many classes so many vertices fall in where they are moved."""
        return self.classes or schedule.classes_for(vertices, level, going_up)

    def quality(self, inside: int, squares: int) -> float:
        """Return the quality of a partition, rounded once."""
        return self.quality_of(self.network.size, inside, squares)

    def value(self, inside: int, squares: int) -> int:
        """Return C * inside minus the squares of the volumes, which is never rounded."""
        return self.constant * inside - squares


def squares_of(volumes: np.ndarray) -> int:
    """Add up the squares of volumes, exactly."""
    highest, mixed, lowest, rest = map(int, _add_squares(volumes))  # NumPy's if not compiled
    return (highest << 62) + ((mixed + lowest) << 32) + rest


@kept(error_model="numpy")
def _add_squares(volumes):
    """Add up squares of the high 31 bits, the products, and in halves the squares of the low.

    Volumes add up to 2^61, so that only squares of the low halves may add up to more.
    """
    highest = mixed = lowest = rest = np.int64(0)
    for v in range(volumes.size):
        high, low = volumes[v] >> 31, volumes[v] & 0x7FFFFFFF
        highest += high * high
        mixed += high * low
        lowest += (low * low) >> 32
        rest += (low * low) & 0xFFFFFFFF
    return highest, mixed, lowest, rest


def modularity(rows: Graph, words: Array, resolution: float) -> Objective:
    """Return the objective of modularity (Newman, Phys. Rev. E 70 (2004), eq. 5)."""
    share, (loops, isolated) = Fraction(resolution), _census(rows)
    # the constant, the total over the resolution, has as many bits to itself
    exponent = BITS - _bits(_total(rows, loops) * max(Fraction(1), 1 / share))
    weights, unit, degree, total, in_loops = _fixed(rows, loops, exponent)

    def quality(vertices: int, inside: int, squares: int) -> float:
        if not total:
            return math.nan
        return _rounded(Fraction(inside, total) - share * Fraction(squares, total * total))

    network = Network(rows.indptr, rows.indices, weights, unit, degree, words)
    return Objective(
        network, round(total / share), total, in_loops, quality, isolated=isolated
    )  # fmt: skip


def cpm(rows: Graph, words: Array, resolution: float) -> Objective:
    """Return the objective of the constant Potts model (Traag et al., Phys. Rev. E 84 (2011))."""
    share, (loops, isolated) = Fraction(resolution), _census(rows)
    exponent = BITS - _bits(_total(rows, loops))
    weights, unit, degree, total, in_loops = _fixed(rows, loops, exponent)
    # volumes count 2^shift a vertex, so that the constant has many bits, and fits
    shift = (exponent + BITS - _bits(1 / share)) // 2
    shift = max(min(shift, BITS - rows.number_of_vertices.bit_length()), 0)
    constant = min(round(Fraction(2) ** (2 * shift - exponent) / share), 1 << 62)
    volume = array_module(degree).full(rows.number_of_vertices, 1 << shift, np.int64)

    def quality(vertices: int, inside: int, squares: int) -> float:
        # no squares: a bound is asked for
        pairs = Fraction(max((squares >> 2 * shift) - vertices, 0), 2)
        return _rounded(Fraction(inside, 2) / Fraction(2) ** exponent - share * pairs)

    network = Network(rows.indptr, rows.indices, weights, unit, volume, words)
    weight = math.ldexp(total / 2, -exponent)
    return Objective(
        network, constant, total, in_loops, quality, weight, isolated, schedule.CLASSES
    )


OBJECTIVES = {"modularity": modularity, "cpm": cpm}


def _rounded(value: Fraction) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.copysign(math.inf, value)


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


def loops_of(rows: Graph) -> Array:
    """List the entries that are self-loops; entries of a row ascend."""
    return _census(rows)[0]


def _census(rows: Graph) -> tuple[Array, int | None]:
    """List the entries that are self-loops, and count rows without entries on a GPU; kept."""
    return rows.keep("self-loops", partial(_take_census, rows))


def _take_census(rows: Graph) -> tuple[Array, int | None]:
    xp = array_module(rows.indices)
    if xp is np:
        places = np.empty(rows.number_of_vertices, np.int64)
        return places[: _find_loops(rows.indptr, rows.indices, places)].copy(), None
    places, counts = xp.empty(rows.number_of_vertices, np.int64), xp.zeros(2, np.int64)
    _loop_finder()(rows.indptr[:-1], rows.indptr[1:], rows.indices, places, counts)
    loops, isolated = to_host(counts).tolist()
    return places[places >= 0] if loops else xp.empty(0, np.int64), isolated


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
    """Compile the same for a GPU: the loop of every vertex, or -1, and two counts."""
    import cupy

    search = """
        long long first = begin, last = end;
        while (first < last) {
            long long middle = (first + last) >> 1;
            if (indices[middle] < (T)i) first = middle + 1; else last = middle;
        }
        place = first < end && indices[first] == (T)i ? first : -1;
        for (int kind = 0; kind < 2; ++kind) {
            // many vertices of a warp may count, and one adds for all
            unsigned warp = __activemask();
            unsigned counting = __ballot_sync(warp, kind == 0 ? place >= 0 : begin == end);
            if (counting && (threadIdx.x & 31) == __ffs(warp) - 1)
                atomicAdd((unsigned long long*)&counts[kind], (unsigned long long)__popc(counting));
        }
    """
    return cupy.ElementwiseKernel(
        "int64 begin, int64 end, raw T indices", "int64 place, raw int64 counts", search,
        "glp_find_loops",
    )  # fmt: skip


def _fixed(rows: CSR, loops: Array, exponent: int) -> tuple[Array, int, Array, int, int]:
    """Return weights in fixed point, the unit, weighted degrees, their sum, and that of loops.

    Loops count from both ends.
    """
    xp = array_module(rows.indices)
    if rows.weights is None:
        unit = 1 << exponent
        weights, degree = xp.empty(0, np.int64), rows.degree * unit
        total, in_loops = (rows.number_of_edges + loops.size) * unit, 2 * loops.size * unit
        at_loops = unit
    else:
        unit = 1
        if rows.weights.dtype.kind == "i" and exponent >= 0:
            weights = rows.weights.astype(np.int64) << exponent
        else:
            weights = as_fixed_point(rows.weights, exponent)
        degree, at_loops = integer_sums(weights, rows.indptr), weights[loops]
        once = integer_sum(at_loops)
        total, in_loops = int(degree.sum()) + once, 2 * once
    if loops.size:
        degree[rows.indices[loops]] += at_loops  # a row has one loop at the most
    return weights, unit, degree, total, in_loops
