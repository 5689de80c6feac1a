"""A hash of 64 bits, the same for scalars in compiled code and for arrays.

Plain functions, compiled once for the CPU and once for the GPU, so that "the same answer
everywhere" rests on one text. All arithmetic is in 64-bit integers.
"""

from __future__ import annotations

from typing import Any

import numpy as np

CLASS_SEED = 0x5EED
_WORD = (1 << 64) - 1
_WEYL, _FIRST, _SECOND = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB


def mix(value, seed):
    """Hash ``(value, seed)`` to 64 bits: a step of SplitMix64 (Steele et al., OOPSLA 2014)."""
    z = np.uint64(value) + (np.uint64(seed) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def mix_array(values: Any, seed: int) -> Any:
    """Hash a whole array of NumPy or CuPy as ``mix`` does one value."""
    z = values.astype(np.uint64)  # a copy, so that all the rest may be done in place
    z += np.uint64(((seed + 1) * _WEYL) & _WORD)
    for shift, factor in ((30, _FIRST), (27, _SECOND)):
        z ^= z >> np.uint64(shift)
        z *= np.uint64(factor)
    z ^= z >> np.uint64(31)
    return z


def sweep_seed(seed, sweep):
    """Return the seed of one sweep, so that every sweep has an order of its own."""
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
    O(1), no state: a hash of the three numbers. Called outside a program, NumPy warns of overflows,
    which are meant.

    Examples
    --------
    >>> import glp_rapids
    >>> from glp_rapids import random_below
    >>> class Doubting(glp_rapids.Program):
    ...     def pick_label(v, sweep, state):  # one time in ten, say your own name
    ...         return v if random_below(v, sweep, state.seed, 10) == 0 else state.labels[v]
    """
    return np.int64(mix(vertex, sweep_seed(seed, sweep) + np.uint64(1)) % np.uint64(bound))
