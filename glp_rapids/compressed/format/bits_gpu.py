"""What compressed rows need of a GPU: its own instructions for bits."""

from __future__ import annotations

import numpy as np

from glp_rapids.jit.cuda import SIMULATED, cuda


def put(words, place, value):
    """Put bits into a word of zeros that other threads may be putting theirs into."""
    cuda.atomic.or_(words, place, value)


if SIMULATED:

    def trailing_zeros(value):
        """Count the zeros below the lowest one."""
        value = int(value)
        return np.uint32((value & -value).bit_length() - 1 if value else 32)

    def bit_length(value):
        """Count the bits of a number."""
        return np.int64(int(value).bit_length())
else:

    def trailing_zeros(value):
        """Count the zeros below the lowest one."""
        return np.uint32(cuda.clz(cuda.brev(value)))

    def bit_length(value):
        """Count the bits of a number."""
        return np.int64(64) - np.int64(cuda.clz(value))
