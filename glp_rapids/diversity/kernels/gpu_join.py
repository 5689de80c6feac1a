"""Joining the ends of chosen edges, and how many contexts that leaves at every level."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from glp_rapids.diversity.kernels.gpu_common import cuda, digest, joined, kernel

THREADS = 256


@functools.cache
def build(threads: int) -> Any:
    """Make the kernel that joins the ends of the entries ``chosen``; a thread an entry.

    With ``ego_of`` it takes one from ``scores``, ``level`` - 1 places after ``offsets[ego]``, for
    every two sets that become one. Any degrees.
    """

    def join_ends(rows, indices, chosen, parent, ego_of, offsets, level, scores):
        i = np.int64(cuda.blockIdx.x) * threads + cuda.threadIdx.x
        if i < chosen.size:
            entry = chosen[i]
            node = np.int32(rows[entry])
            if joined(parent, node, np.int32(indices[entry])) and ego_of.size > 0:
                cuda.atomic.sub(scores, offsets[ego_of[node]] + level - 1, np.int32(1))

    return kernel(join_ends, f"{digest()} {threads}")
