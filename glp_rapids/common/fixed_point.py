"""Numbers in 64-bit fixed point, whose sums are the same in any order: the way there and back.

First, for votes, plain functions, compiled once for the CPU and once for the GPU: integers, or
single correctly rounded floating-point operations. Then, for weights, functions of whole arrays.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from glp_rapids.device import array_module, noted

Array = Any
LARGEST_SCALE = 2.0**1000
LOOKED_AT = 1 << 16  # numbers that are looked at before all of them


def round_even(value):
    """Round half to even; every target puts its own ``rint`` in this place."""
    return np.rint(value)


def fixed_of_integer(amount, scale):
    """Turn an integer vote into fixed point."""
    return np.int64(amount)


def fixed_of_float(amount, scale):
    """Turn a real vote into fixed point: exact scaling by a power of two, one rounding."""
    return np.int64(round_even(amount * scale))


def real_of_integer(votes, scale):
    """Hand summed integer votes to the score function as they are."""
    return votes


def real_of_fixed(votes, scale):
    """Hand summed fixed-point votes to the score function in the caller's unit."""
    return np.float64(votes) / scale


def fixed_point_scale(largest: float, terms: int) -> float:
    """Find the largest power of two by which ``terms`` votes of ``largest`` sum within 2**62.

    Both arguments are facts of the graph, in whatever order its edges come. Engines may take
    another scale, of at least 1, for votes that are whole: those are exact by any.
    """
    bound = float(largest) * max(int(terms), 1)
    if bound <= 0:
        return 1.0
    fraction, exponent = math.frexp(bound)
    power = 62 - exponent + (1 if fraction == 0.5 else 0)
    return math.ldexp(1.0, max(power, -1000)) if power < 1000 else LARGEST_SCALE


def fixed_point_exponent(largest: float, terms: int) -> int:
    """Find an e for which ``terms`` numbers of up to ``largest``, times 2^e, sum below 2^62."""
    return 62 - math.frexp(float(terms))[1] - math.frexp(largest)[1]


def as_fixed_point(values: Array, exponent: int | None) -> Array:
    """Turn numbers into int64: times 2^exponent, rounded half to even, for None as they are."""
    xp = array_module(values)
    if exponent is None:
        return values.astype(xp.int64)
    # ldexp, because the power itself may be beyond float64
    return xp.rint(xp.ldexp(values.astype(xp.float64), exponent)).astype(xp.int64)


def all_whole(values: Array) -> bool:
    """Tell whether all of an array are known to be whole numbers.

    Most arrays that are not show it at their beginning. Of many numbers in host memory nobody looks
    at all: the answer is no.
    """
    if values.dtype.kind != "f":
        return True
    xp, first = array_module(values), values[:LOOKED_AT]
    if xp is np:
        return values.size <= LOOKED_AT and bool((np.rint(first) == first).all())
    look = noted("T", "value != rint(value)", "glp_any_fraction")
    for some in (first, values[LOOKED_AT:]):
        found = xp.zeros(1, dtype=np.int32)
        look(some, found)
        if bool(found[0]):
            return False
    return True


def sums_by_group(group: Array, values: Array, groups: int) -> Array:
    """Add up non-negative int64 values by group, exactly."""
    if array_module(group, values) is not np:
        return _added_by_group(group, values, groups)
    total = np.zeros(groups, np.int64)
    largest = int(values.max(initial=0))
    for shift in (0, 21, 42):
        if largest >> shift:
            # bincount adds float64: limbs of 21 bits stay below 2^53, hence exact in any order
            limb = ((values >> shift) & 0x1FFFFF).astype(np.float64)
            total += np.bincount(group, weights=limb, minlength=groups).astype(np.int64) << shift
    return total


def _added_by_group(group: Array, values: Array, groups: int) -> Array:
    import cupy

    total = cupy.zeros(groups, np.int64)
    _adder_by_group()(group, values, total.view(np.uint64))
    return total


@functools.cache
def _adder_by_group() -> Any:
    import cupy

    return cupy.ElementwiseKernel(
        "T group, V value", "raw uint64 total",
        "atomicAdd(&total[group], (unsigned long long)(long long)value)", "glp_sums_by_group",
    )  # fmt: skip
