"""The scalar bodies that every engine shares: the hash, the order of ties, fixed point.

Each is a plain function, compiled once for the CPU and once for the GPU, so that "the same answer
everywhere" rests on one text. All arithmetic is in 64-bit integers or in single correctly rounded
floating-point operations.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

TIE_MIN, TIE_MAX, TIE_HASH = 0, 1, 2
TIE_BREAKS = {"min": TIE_MIN, "max": TIE_MAX, "hash": TIE_HASH}

CLASS_SEED = 0x5EED

_WORD = (1 << 64) - 1
_WEYL, _FIRST, _SECOND = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB


def mix(value, seed):
    """Hash ``(value, seed)`` to 64 bits: the finaliser of SplitMix64 over a Weyl step."""
    z = np.uint64(value) + (np.uint64(seed) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def mix_array(values: Any, seed: int) -> Any:
    """Hash a whole array of NumPy or CuPy as ``mix`` does one value."""
    z = values.astype(np.uint64) + np.uint64(((seed + 1) * _WEYL) & _WORD)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(_FIRST)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(_SECOND)
    return z ^ (z >> np.uint64(31))


def sweep_seed(seed, sweep):
    """Give the seed of one sweep, so that every sweep has an order of its own."""
    return np.uint64(seed) + (np.uint64(sweep) << np.uint64(32))


def random_below(vertex, sweep, seed, bound):
    """Draw an integer in ``[0, bound)`` that depends on (seed, sweep, vertex) alone.

    For the functions of a `Program`: every engine draws the same.

    Parameters
    ----------
    vertex, sweep : int
        What the draw is for.
    seed : int
        ``state.seed`` in a program.
    bound : int
        At least 1.

    Returns
    -------
    int64
        Uniform to within ``bound`` / 2**64.

    Raises
    ------
    Nothing: it is compiled. A ``bound`` below 1 gives nonsense.

    Notes
    -----
    O(1), no state: a hash of the three numbers.

    Examples
    --------
    >>> import glp_rapids
    >>> from glp_rapids import random_below
    >>> class Doubting(glp_rapids.Program):
    ...     def pick_label(v, sweep, state):  # one time in ten, say your own name
    ...         return v if random_below(v, sweep, state.seed, 10) == 0 else state.labels[v]
    """
    return np.int64(mix(vertex, sweep_seed(seed, sweep) + np.uint64(1)) % np.uint64(bound))


def comes_first(label, other, tie_break, seed):
    """Tell whether ``label`` precedes ``other`` in the order that settles ties."""
    if tie_break == TIE_MIN:
        return label < other
    if tie_break == TIE_MAX:
        return label > other
    key = mix(label, seed)
    other_key = mix(other, seed)
    return key < other_key or (key == other_key and label < other)


def order_key(label, tie_break, seed):
    """Give a number by which labels are in the order that settles ties; the label decides last."""
    if tie_break == TIE_MIN:
        return np.uint64(label)
    if tie_break == TIE_MAX:
        return ~np.uint64(label)
    return mix(label, seed)


def preferred(label, other, current, retain, tie_break, seed):
    """Tell whether ``label`` wins over ``other`` when both have the highest score."""
    if retain:
        if label == current:
            return True
        if other == current:
            return False
    return comes_first(label, other, tie_break, seed)


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
    """Give summed integer votes to the score function as they are."""
    return votes


def real_of_fixed(votes, scale):
    """Give summed fixed-point votes to the score function in the caller's unit."""
    return np.float64(votes) / scale


def fixed_point_scale(largest: float, terms: int) -> float:
    """Give the largest power of two by which ``terms`` votes of ``largest`` sum within 2**62.

    Both arguments are order-free facts of the graph, so every engine finds the same scale.
    """
    bound = float(largest) * max(int(terms), 1)
    if bound <= 0:
        return 1.0
    fraction, exponent = math.frexp(bound)
    power = 62 - exponent + (1 if fraction == 0.5 else 0)
    return math.ldexp(1.0, max(min(power, 1000), -1000))
