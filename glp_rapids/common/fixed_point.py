"""Votes in 64-bit fixed point: the scale, and the way there and back.

Plain functions, compiled once for the CPU and once for the GPU; integers, or single correctly
rounded floating-point operations.
"""

from __future__ import annotations

import math

import numpy as np


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

    Both arguments are order-free facts of the graph, so every engine finds the same scale.
    """
    bound = float(largest) * max(int(terms), 1)
    if bound <= 0:
        return 1.0
    fraction, exponent = math.frexp(bound)
    power = 62 - exponent + (1 if fraction == 0.5 else 0)
    return math.ldexp(1.0, max(min(power, 1000), -1000))
