"""What a transaction counts by its age: half of itself after each half-life, in whole units.

What ages at every moment would have to be added up anew at every moment. Instead all transactions
count more the later they are, from an origin that stands still (forward decay: Cormode et al.,
Forward Decay: A Practical Time Decay Model for Streaming Systems, ICDE 2009): scores are of shares,
in which a common factor has no say. Every so many half-lives the origin moves, a function of the
newest time alone, and all is added up anew, so that units fit 64 bits. Ages are cut to a part of
a half-life, whose power of two is in a table of exact roundings: so that every device, in whatever
order, counts the same integers, and what joined can be taken away again.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from glp_rapids.device import array_module

Array = Any
PERIOD = 8  # half-lives from one origin to the next
STEPS = 1024  # of a half-life
GROWTH = 2**PERIOD  # of what something counts from one origin to the next
ONE = 20  # bits of a transaction at the origin: 2^31 of them at the end of a period fit 64 bits
LONGEST = 2**52  # microseconds; 142 years
NOTHING = -2000  # power of two below all floats


@dataclass(frozen=True)
class Decay:
    """How fast transactions fade, and what of each does.

    ``half_life``: as times count, microseconds or a float. ``amounts``: whether a transaction
    counts its amount, and not 1.
    """

    half_life: int | float
    amounts: bool

    def epoch(self, newest: int | float) -> int:
        """Return the number of the origin for a window with that newest time."""
        return math.floor(newest // (PERIOD * self.half_life))

    def counts(self, time: Array, units: Array, epoch: int) -> Array:
        """Return what each transaction counts: int64, at least 1 (0 for an amount of 0).

        An amount counts its units at the origin, and `GROWTH` times as much before the next one.
        """
        xp = array_module(time)
        since = time - epoch * PERIOD * self.half_life
        if since.dtype.kind == "i":
            whole = since // self.half_life
            step = (since - whole * self.half_life) * STEPS // self.half_life
        else:
            since = since / self.half_life
            whole = xp.floor(since)
            step = xp.clip(xp.floor((since - whole) * STEPS), 0, STEPS - 1).astype(np.int64)
        power = xp.clip(whole, NOTHING, PERIOD).astype(np.int32)
        factor = xp.asarray(_roots())[step]
        if not self.amounts:
            counts = xp.rint(xp.ldexp(factor, power + np.int32(ONE))).astype(np.int64)
            return xp.maximum(counts, 1)
        counts = xp.ldexp(units.astype(np.float64) * factor, power)
        return xp.maximum(xp.rint(counts).astype(np.int64), xp.minimum(units, 1))


def growth_of(decay: Decay | None) -> int:
    """Return how many times its units an amount may count."""
    return GROWTH if decay is not None and decay.amounts else 1


@functools.cache
def _roots() -> np.ndarray:
    """Return 2^(i / STEPS) for every step, correctly rounded."""
    bits = 256
    root = 2 << (2 * bits)
    for _ in range(STEPS.bit_length() - 1):  # the root of the root of ... of two
        root = math.isqrt(root) << bits
    root >>= bits
    powers, power = [], 1 << bits
    for _ in range(STEPS):
        powers.append(power / (1 << bits))
        power = power * root >> bits
    return np.array(powers)
