"""Reading rows that are not compressed: a thread gets four entries at a time, all loads first."""

from __future__ import annotations

import numpy as np

from glp_rapids.jit.cuda import cuda
from glp_rapids.propagation.kernels.gpu.entries import entry_at
from glp_rapids.propagation.kernels.gpu.shared_memory import LANES
from glp_rapids.propagation.kernels.gpu.votes import STEP


@cuda.jit(device=True)
def read_entries(entries, v, start, degree, offset, stride, begin, rows, lists, shared):
    """Read entry ``offset`` of a row and every ``stride``th from there on.

    Returns which these are: the first, and the step to the next.
    """
    for k in range(STEP):
        entries[k] = entry_at(rows.indices, start + min(offset + stride * k, degree - 1))
    return offset, stride


@cuda.jit(device=True)
def read_row(entries, v, start, degree, first_bits, rows, lists, shared):
    """Read every 32nd entry of a row, from the lane's own on."""
    lane = np.int64(cuda.laneid)
    for k in range(STEP):
        entries[k] = entry_at(rows.indices, start + min(lane + LANES * k, degree - 1))
