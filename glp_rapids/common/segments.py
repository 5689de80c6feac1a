"""Sums of segments of an array: exact, rounded once, hence the same in any order on any device.

Numbers are cut into limbs of so few bits that a segment's worth of them adds up in 64-bit
integers. The limbs' sums are put together again in integers of 61 bits, of which the last says
whether anything is left below it, so that the one rounding to float64 goes the right way.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from glp_rapids.device import array_module

Array = Any
WORD, LOW = 32, (1 << 32) - 1
HEAD = 61  # bits: more than float64 keeps, and a sign and a carry to spare


def segment_sums(values: Array, offsets: Array) -> Array:
    """Add ``values[offsets[i]:offsets[i + 1]]`` for every i: numbers that are not negative.

    float64, correctly rounded; infinite where the sum is beyond it.
    """
    xp = array_module(values)
    longest = int((offsets[1:] - offsets[:-1]).max()) if offsets.size > 1 else 0
    if not values.size or not longest:
        return xp.zeros(offsets.size - 1, dtype=np.float64)
    if values.dtype.kind == "f":
        return _rounded(_limbs_of_floats(values.astype(np.float64), offsets, longest))
    if int(values.max()) * longest < 2**63:
        return integer_sums(values.astype(np.int64), offsets).astype(np.float64)
    high, low = values >> WORD, values & LOW
    return _rounded([(integer_sums(high, offsets), -WORD), (integer_sums(low, offsets), 0)])


def integer_sums(values: Array, offsets: Array) -> Array:
    """Add up int64; the running sum may wrap around, its differences are exact."""
    xp = array_module(values)
    running = xp.empty(values.size + 1, dtype=np.int64)
    running[0] = 0
    xp.cumsum(values, out=running[1:])
    return running[offsets[1:]] - running[offsets[:-1]]


def _limbs_of_floats(rest: Array, offsets: Array, longest: int) -> list[tuple[Array, int]]:
    """Give sums of integers and the powers of two that their values were multiplied by."""
    xp = array_module(rest)
    bits, limbs = 62 - longest.bit_length(), []
    scaled = xp.empty_like(rest)
    while (largest := float(rest.max())) > 0:
        shift = bits - math.frexp(largest)[1]
        _times_power(rest, shift, scaled)
        xp.trunc(scaled, out=scaled)
        limbs.append((integer_sums(scaled.astype(np.int64), offsets), shift))
        _times_power(scaled, -shift, scaled)
        rest -= scaled
    return limbs or [(xp.zeros(offsets.size - 1, np.int64), 0)]


def _times_power(values: Array, exponent: int, out: Array) -> None:
    xp = array_module(values)
    if abs(exponent) <= 1000:
        xp.multiply(values, math.ldexp(1.0, exponent), out=out)
    else:  # the power itself may be beyond float64
        xp.ldexp(values, np.int32(exponent), out=out)


def _rounded(limbs: list[tuple[Array, int]]) -> Array:
    """Put sums together, the one with the largest unit first: their total as float64."""
    xp = array_module(limbs[0][0])
    carry, parts = 0, []
    for i, (sums, shift) in reversed(list(enumerate(limbs))):
        sums = sums + carry
        width = shift - limbs[i - 1][1] if i else 0
        if 0 < width < 63:
            carry, sums = sums >> width, sums & ((1 << width) - 1)
        else:
            carry = 0
        parts.append((sums, shift, width))
    head, shift, _ = parts.pop()
    exponent = xp.full(head.size, -shift, dtype=np.int32)
    more = xp.zeros(head.size, dtype=bool)
    while parts:
        sums, shift, width = parts.pop()
        # as many of its bits as there is room for; all of them where nothing came before
        room = HEAD - xp.frexp(head.astype(np.float64))[1].astype(np.int64)
        taken = xp.where(head == 0, width, xp.maximum(xp.minimum(room, width), 0))
        left = xp.minimum(width - taken, 63)
        head = xp.where(head == 0, sums, (head << xp.minimum(taken, 62)) | (sums >> left))
        more |= (sums & ((xp.ones_like(left) << xp.minimum(left, 62)) - 1)) != 0
        exponent -= taken.astype(np.int32)
    with np.errstate(over="ignore"):
        return xp.ldexp((head | more.astype(np.int64)).astype(np.float64), exponent)
