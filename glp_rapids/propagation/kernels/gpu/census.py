"""A census of the active set, strip by strip: what it would cost to read only their rows.

Launch shape: 8 blocks of 256 a strip. Any degree. No shared memory; 28 registers.
"""

from __future__ import annotations

import numpy as np

from glp_rapids.jit.cuda import cuda
from glp_rapids.propagation.kernels.gpu.plan import HUBS, LAST_END
from glp_rapids.propagation.kernels.gpu.shared_memory import LANES, THREADS
from glp_rapids.propagation.kernels.gpu.votes import ALL

BLOCKS_A_STRIP = 8


def census(groups, vertices, degrees, slack, tied, costs, revisit_tied, a_read):
    """Add to each strip's cost, in entries, that of its active rows, ``a_read`` more of each."""
    group = np.int64(cuda.blockIdx.x) // BLOCKS_A_STRIP
    part = np.int64(cuda.blockIdx.x) % BLOCKS_A_STRIP
    last = groups[group, LAST_END]
    position = groups[group, HUBS] + part * THREADS + cuda.threadIdx.x
    cost = np.int64(0)
    while position < last:
        v = vertices[np.uint64(position)]
        if slack[np.uint64(v)] < 0 or (revisit_tied and tied[np.uint64(position)] != 0):
            cost += a_read + np.int64(degrees[np.uint64(position)])
        position += BLOCKS_A_STRIP * THREADS
    cuda.syncwarp()
    distance = np.int32(LANES // 2)
    while distance > 0:
        cost += cuda.shfl_down_sync(ALL, cost, distance)
        distance >>= 1
    if cuda.laneid == 0 and cost > 0:
        cuda.atomic.add(costs, group, cost)
