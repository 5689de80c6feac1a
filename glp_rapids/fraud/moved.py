"""What is known by vertex, taken along when vertices come and go."""

from __future__ import annotations

from typing import Any

import numpy as np

from glp_rapids.device import array_module
from glp_rapids.jit.parallel import threads_available

Array = Any
PARALLEL_FROM = 1 << 15


def moved(values: Array, place: Array, size: int) -> Array:
    """Return an array of ``size`` with each value at its new place, and zeros where none is.

    ``place``: of every value, -1 if it goes; no two have the same.
    """
    xp = array_module(place)
    if values.size != place.size:
        raise ValueError(f"{values.size} values have {place.size} places")
    # Numba takes longer to import than a small graph takes to build
    if xp is not np:
        from glp_rapids.fraud.kernels import gpu_transactions

        return gpu_transactions.moved(values, place, size)
    from glp_rapids.fraud.kernels import matching

    after = xp.zeros(size, dtype=values.dtype)
    threads = threads_available() if place.size >= PARALLEL_FROM else 1
    matching.move(threads, np.ascontiguousarray(values), place, after)
    return after
