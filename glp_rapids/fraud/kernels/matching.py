"""Where the ids of before are among those of now: both ascend, so one walk along them tells."""

from __future__ import annotations

from glp_rapids.jit.cache import kept


@kept
def places_of(before, now, place):
    """Fill in ``place``, of every id of before: where it is now, -1 if it has left."""
    j = 0
    for i in range(before.size):
        while j < now.size and now[j] < before[i]:
            j += 1
        place[i] = j if j < now.size and now[j] == before[i] else -1
