"""The queues of a block in shared memory, from which it goes on by itself between two barriers.

Two of them take turns, each first with short rows, which a few threads share, then with long ones,
which the whole block does.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np

from glp_rapids.jit.cuda import cuda

# What a block counts, of three steps in turn: short and long rows queued, and whether it must stop.
SHORT, LONGER, STOP, COUNTS = 0, 3, 6, 9


class Queue(NamedTuple):
    """In shared memory, two queues of a block: vertices, and their rows."""

    vertex: Any  # int32
    start: Any  # int64
    degree: Any  # int32


@functools.cache
def build_take(queued: int, long_queued: int, long: int, longest: int) -> Any:
    """Make the function that queues a vertex; see the constants of those names."""
    room = queued + long_queued

    @cuda.jit(device=True)
    def take(queue, counts, now, turn, vertex, start, degree):
        """Put a vertex into queue ``now``; return its slot, or -1 if there is no room."""
        if degree <= long:
            slot = cuda.atomic.add(counts, SHORT + turn, np.int32(1))
            if slot >= queued:
                return -1
        elif degree > longest:
            return -1
        else:
            slot = cuda.atomic.add(counts, LONGER + turn, np.int32(1))
            if slot >= long_queued:
                return -1
            slot += queued
        slot += now * room
        queue.vertex[slot] = vertex
        queue.start[slot] = start
        queue.degree[slot] = np.int32(degree)
        return slot

    return take
